"""Programs that set what the doctor judges, other network namespaces, and the time of ksoftirqd."""

from __future__ import annotations

import os
from typing import Any

from tcpknee.doctor.snapshot.reader import Reader, whole

Rows = list[dict[str, Any]]

OWNERS = {
    "tuned": "tuned",
    "bpftune": "bpftune",
    "irqbalance": "irqbalance",
    "NetworkManager": "NetworkManager",
    "systemd-network": "systemd-networkd",
    "cilium-agent": "cilium",
    "calico-node": "calico",
    "kubelet": "kubelet",
    "dockerd": "docker",
    "cloud-init": "cloud-init",
    "google_guest_ag": "google-guest-agent",
    "waagent": "waagent",
    "numad": "numad",
}
"""By the name that the kernel keeps, of at most 15 characters."""

STAMPING = {"chronyd", "ntpd", "openntpd", "systemd-timesyn", "ptp4l", "phc2sys", "tcpdump", "dumpcap"}
"""Programs that may ask for SO_TIMESTAMP, SO_TIMESTAMPNS or SO_TIMESTAMPING. While any socket does, the kernel
stamps every packet that arrives, whatever its socket, and does not tell who asked."""

MOST_NAMESPACES = 256


def read(reader: Reader, host: dict[str, Any]) -> dict[str, Rows]:
    """The tables `owners` (what runs) and `namespaces`; adds to the row of `host`."""
    running: set[str] = set()
    stamping: set[str] = set()
    namespaces: dict[str, int] = {}
    ticks, kthreads, hidden = 0, 0, 0
    for folder in reader.entries(reader.roots.proc):
        if not folder.name.isdigit():
            continue
        name = reader.text(folder / "comm") or ""
        if name in OWNERS:
            running.add(OWNERS[name])
        elif name in STAMPING:
            stamping.add(name)
        elif name.startswith("ksoftirqd/"):
            kthreads += 1
            ticks += _ticks(reader.text(folder / "stat"))
        try:
            inode = (folder / "ns/net").readlink().name
            namespaces[inode] = namespaces.get(inode, 0) + 1
        except PermissionError:
            hidden += 1
        except OSError:
            # A process that has ended.
            continue
    if hidden:
        reader.miss("network namespaces of other users' processes", "permission denied", "CAP_SYS_PTRACE on the host")
    if kthreads:
        host["ksoftirqd_us"] = ticks * 1_000_000 // os.sysconf("SC_CLK_TCK")
    host["stamping"] = sorted(stamping)
    named = _named(reader)
    others = (namespaces.keys() | named.keys()) - {reader.netns}
    if len(others) > MOST_NAMESPACES:
        reader.miss("network namespaces", f"of {len(others):,} the first {MOST_NAMESPACES} were kept", "")
    rows = [
        {"netns": one, "name": named.get(one), "processes": namespaces.get(one, 0)}
        for one in sorted(others)[:MOST_NAMESPACES]
    ]
    return {"owners": [{"owner": one, "kind": "running"} for one in sorted(running)], "namespaces": rows}


def _ticks(stat: str | None) -> int:
    """utime and stime, the 14th and 15th word; the second may hold blanks, and ends with the last bracket."""
    words = (stat or "").rpartition(")")[2].split()
    return (whole(words[11]) or 0) + (whole(words[12]) or 0) if len(words) > 12 else 0


def _named(reader: Reader) -> dict[str, str]:
    """Inodes of the namespaces below /run/netns, by name."""
    found = {}
    for path in reader.entries(reader.roots.root / "run/netns"):
        try:
            found[f"net:[{path.stat().st_ino}]"] = path.name
        except OSError:
            continue
    return found
