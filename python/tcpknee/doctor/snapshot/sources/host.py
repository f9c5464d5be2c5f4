"""What the host is: kernel, distribution, virtual machine, container, clocks, memory."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from typing import Any

from tcpknee import processors
from tcpknee.doctor.snapshot.reader import Reader, cpus_of_list, whole

_PARAMETERS = re.compile(
    r"(intel_idle|processor|cpuidle|idle|iommu|intel_iommu|amd_iommu|mitigations|nosmt|isolcpus|nohz_full|rcu_nocbs|tsc|"
    r"clocksource|intel_pstate|amd_pstate|pcie_aspm|irqaffinity|numa_balancing|threadirqs|hpet|skew_tick)\b"
)
"""Parameters that matter here; others may hold names of hosts and passwords of installers."""

_MODULES = re.compile(
    r"(tcp_\w+|sch_\w+|nf_conntrack|bonding|team|ena|mlx[45]_\w+|i40e|ice|ixgbe\w*|igb|e1000e?|virtio_net|"
    r"hv_netvsc|mana|gve|vmxnet3|bnxt_en|br_netfilter|ip_vs|xt_\w+|nf_tables)$"
)

_CLOUDS = {
    "Amazon EC2": "amazon",
    "Google": "google",
    "Microsoft Corporation": "microsoft",
    "Alibaba Cloud": "alibaba",
    "DigitalOcean": "digitalocean",
    "Hetzner": "hetzner",
    "OpenStack Foundation": "openstack",
    "OracleCloud.com": "oracle",
}
"""By /sys/class/dmi/id: sys_vendor, and for Oracle chassis_asset_tag."""

_HYPERVISORS = (
    ("Firecracker", "firecracker"),
    ("QEMU", "kvm"),
    ("KVM", "kvm"),
    ("Amazon EC2", "kvm"),
    ("Google", "kvm"),
    ("VMware", "vmware"),
    ("Microsoft Corporation Virtual", "hyper-v"),
    ("VirtualBox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("Xen", "xen"),
    ("Parallels", "parallels"),
)
"""By vendor and product together, the first that is in them."""


def read(reader: Reader) -> dict[str, list[dict[str, Any]]]:
    """The table `host`."""
    roots = reader.roots
    proc, sys = roots.proc, roots.sys
    vendor = reader.text(sys / "class/dmi/id/sys_vendor") or ""
    product = reader.text(sys / "class/dmi/id/product_name") or ""
    tag = reader.text(sys / "class/dmi/id/chassis_asset_tag") or ""
    cloud = _CLOUDS.get(tag) or _CLOUDS.get(vendor)
    distribution = _release(reader)
    memory = _fields(reader.text(proc / "meminfo"))
    online = cpus_of_list(reader.text(sys / "devices/system/cpu/online")) or []
    release = reader.text(proc / "sys/kernel/osrelease")
    uptime = (reader.text(proc / "uptime") or "").split()
    stat = processors.times_us(reader.text(proc / "stat") or "").get(processors.ALL)
    row = {
        "host": reader.text(proc / "sys/kernel/hostname"),
        "host_id": _hashed(reader.text(roots.root / "etc/machine-id")),
        "kernel": release,
        "arch": os.uname().machine if roots.netlink else None,
        "distribution": distribution.get("ID"),
        "distribution_version": distribution.get("VERSION_ID"),
        "hypervisor": _hypervisor(reader, vendor, product),
        "container": _container(reader),
        "cloud": cloud,
        "instance_type": product if cloud else None,
        "root": os.geteuid() == 0,
        "initial_netns": _is_initial(reader),
        "netns": reader.netns,
        "cpus": len(online) or os.cpu_count(),
        "numa_nodes": _nodes(reader),
        "memory_bytes": _kib(memory.get("MemTotal")),
        "memory_available_bytes": _kib(memory.get("MemAvailable")),
        "memory_limit_bytes": whole(reader.text(sys / "fs/cgroup/memory.max")),
        "memory_pressure_pct": _pressure(reader.text(proc / "pressure/memory")),
        "cpu_pressure_pct": _pressure(reader.text(proc / "pressure/cpu")),
        "clocksource": reader.text(sys / "devices/system/clocksource/clocksource0/current_clocksource"),
        "clocksources": (
            reader.text(sys / "devices/system/clocksource/clocksource0/available_clocksource") or ""
        ).split(),
        "smt": reader.text(sys / "devices/system/cpu/smt/control"),
        "boot_parameters": _parameters(reader.text(proc / "cmdline")),
        "modules": sorted(
            line.split()[0]
            for line in (reader.text(proc / "modules") or "").splitlines()
            if line and _MODULES.match(line.split()[0])
        ),
        "bbr_version": _bbr_version(reader),
        "has_fq": _has_fq(reader, release),
        "algorithms": (reader.text(proc / "sys/net/ipv4/tcp_available_congestion_control") or "").split(),
        "uptime_sec": _decimal(uptime[0] if uptime else None),
        "steal_pct": processors.shares(stat).get("steal_pct") if stat else None,
        "page_bytes": os.sysconf("SC_PAGE_SIZE") if roots.netlink else None,
        "init": "systemd" if reader.text(proc / "1/comm") == "systemd" else "other",
    }
    return {"host": [row]}


_LATER_BBR = b"\0inflight_hi\0"
"""A member of `struct bbr` since version 2, as BTF has it."""
_MOST_TYPES_BYTES = 64 << 20


def _bbr_version(reader: Reader) -> str | None:
    """Version 1 says no version of its own (Linux 7.2, net/ipv4/tcp_bbr.c); 3 does, and has other members."""
    said = reader.text(reader.roots.sys / "module/tcp_bbr/version")
    if said:
        return said
    for name in ("tcp_bbr", "vmlinux"):
        try:
            with (reader.roots.sys / "kernel/btf" / name).open("rb") as file:
                types = file.read(_MOST_TYPES_BYTES)
        except OSError:
            continue
        if b"\0full_bw_reached\0" in types or b"\0has_seen_rtt\0" in types:
            return "2 or 3" if _LATER_BBR in types else "1"
    return None


def _has_fq(reader: Reader, release: str | None) -> bool | None:
    """Whether fq is a part of the kernel or a module of it."""
    config = reader.unpacked(reader.roots.proc / "config.gz") or (
        reader.text(reader.roots.root / f"boot/config-{release}") if release else None
    )
    return bool(re.search(r"^CONFIG_NET_SCH_FQ=[ym]$", config, re.M)) if config else None


def _release(reader: Reader) -> dict[str, str]:
    text = reader.text(reader.roots.root / "etc/os-release") or reader.text(reader.roots.root / "usr/lib/os-release")
    found = {}
    for line in (text or "").splitlines():
        name, _, value = line.partition("=")
        try:
            words = shlex.split(value)
        except ValueError:
            continue
        found[name.strip()] = words[0] if words else ""
    return found


def _hashed(machine_id: str | None) -> str | None:
    """machine-id(5) asks that it is never told to others as it is."""
    return hashlib.blake2b(machine_id.encode(), digest_size=8, person=b"tcpknee").hexdigest() if machine_id else None


def _hypervisor(reader: Reader, vendor: str, product: str) -> str:
    told = f"{vendor} {product}"
    for part, name in _HYPERVISORS:
        if part in told and not product.endswith(".metal"):
            return name
    kind = reader.text(reader.roots.sys / "hypervisor/type")
    if kind:
        return kind
    flags = re.search(r"^flags\s*:.*\bhypervisor\b", reader.text(reader.roots.proc / "cpuinfo") or "", re.M)
    return "other" if flags else "none"


def _container(reader: Reader) -> str:
    root, proc = reader.roots.root, reader.roots.proc
    cgroups = reader.text(proc / "self/cgroup") or ""
    if "kubepods" in cgroups or (root / "var/run/secrets/kubernetes.io").is_dir():
        return "kubernetes"
    if (root / ".dockerenv").exists() or "/docker" in cgroups:
        return "docker"
    if (root / "run/.containerenv").exists() or "/libpod" in cgroups:
        return "podman"
    said = reader.text(root / "run/systemd/container")
    if said:
        return said
    return "lxc" if "/lxc" in cgroups else "none"


def _is_initial(reader: Reader) -> bool | None:
    """The first network namespace of a boot has an inode of its own (include/linux/proc_ns.h does not fix it, but the
    kernel makes it first): that of the process 1 of the host, which only root sees."""
    ours = _inode(reader, "self")
    first = _inode(reader, "1")
    if ours is None or first is None:
        return None
    return ours == first


def _inode(reader: Reader, process: str) -> str | None:
    return reader.target(reader.roots.proc / process / "ns/net")


def _nodes(reader: Reader) -> int | None:
    nodes = [path for path in reader.entries(reader.roots.sys / "devices/system/node") if path.name[4:].isdigit()]
    return sum(1 for path in nodes if path.name.startswith("node") and reader.text(path / "cpulist")) or None


def _fields(text: str | None) -> dict[str, str]:
    return {name: value.strip() for name, _, value in (line.partition(":") for line in (text or "").splitlines())}


def _kib(text: str | None) -> int | None:
    number = whole((text or "").removesuffix("kB").strip())
    return number * 1024 if number is not None else None


def _decimal(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < 1e12 else None


def _pressure(text: str | None) -> float | None:
    found = re.search(r"^some .*\bavg60=([\d.]+)", text or "", re.M)
    return _decimal(found[1]) if found else None


def _parameters(text: str | None) -> list[str]:
    return sorted(word for word in (text or "").split() if _PARAMETERS.match(word))
