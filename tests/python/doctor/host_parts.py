"""What made hosts are made of: the well-tuned host of `made.py`, and differences that several hosts have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from made import KEYS, Difference, change, qdiscs


@dataclass(frozen=True)
class Host:
    name: str
    facts: str
    """What is true of such hosts."""
    source: str
    """Where that is published."""
    difference: Difference
    expected: frozenset[str]
    cpus: int = 4


def host(name: str, facts: str, source: str, *differences: Difference, expected: str = "", cpus: int = 4) -> Host:
    return Host(name, facts, source, merged(*differences), frozenset(expected.split()), cpus)


def merged(*differences: Difference) -> Difference:
    """One after the other: of tables by name the later value holds, rows with the same key are put together."""
    whole: dict[str, Any] = {"without": []}
    for difference in differences:
        # A table that a later difference empties has nothing of the earlier ones.
        for table in difference.get("without", ()):
            whole["without"].append(table)
            whole.pop(table, None)
        for table, found in difference.items():
            if table in ("host", "sysctls", "counters"):
                whole[table] = {**whole.get(table, {}), **found}
            elif table != "without":
                whole[table] = rows = [dict(row) for row in whole.get(table, ())]
                change(rows, KEYS[table], [dict(row) for row in found])
    return whole


def kernel(release: str, distribution: str, version: str) -> Difference:
    """A kernel with its own defaults: what nobody has tuned."""
    numbers = tuple(int(part) for part in release.split("-")[0].split(".")[:2])
    sysctls = {
        "net.core.somaxconn": "4096" if numbers >= (5, 4) else "128",
        "net.core.default_qdisc": "pfifo_fast",
        "net.core.rmem_max": "212992",
        "net.core.wmem_max": "212992",
        "net.core.netdev_budget_usecs": "8000",
        "net.ipv4.tcp_rmem": f"4096 {131072 if numbers >= (4, 20) else 87380} 6291456",
        "net.ipv4.tcp_wmem": "4096 16384 4194304",
        "net.ipv4.tcp_notsent_lowat": "4294967295" if numbers >= (4, 0) else "-1",
        "net.ipv4.tcp_slow_start_after_idle": "1",
        "net.ipv4.tcp_no_metrics_save": "0",
        "net.ipv4.tcp_mtu_probing": "0",
    }
    if numbers >= (5, 6):
        sysctls["net.ipv4.tcp_no_ssthresh_metrics_save"] = "1"
    return {
        "host": {"kernel": release, "distribution": distribution, "distribution_version": version},
        "sysctls": sysctls,
    }


def leaves(kind: str, count: int = 4, name: str = "eth0") -> Difference:
    """mq with a leaf of the kind for each queue, as the kernel makes them: all with the handle 0."""
    rows = [{**row, "handle": "0:"} for row in qdiscs(name, *[kind] * count)]
    for at, row in enumerate(rows[1:], 1):
        row["parent"] = f":{at:x}"
    return {"without": ["qdiscs"], "qdiscs": rows}


def root(kind: str, name: str = "eth0") -> Difference:
    """One qdisc at the root, made by the kernel."""
    return {"without": ["qdiscs"], "qdiscs": [{**qdiscs(name, kind, root=None)[0], "handle": "0:"}]}


SYSTEMD: Difference = {"sysctls": {"net.core.default_qdisc": "fq_codel"}}
"""50-default.conf of systemd since version 217."""

BBR: Difference = {"sysctls": {"net.ipv4.tcp_congestion_control": "bbr"}}

GIGABIT: Difference = {"interfaces": [{"interface": "eth0", "mtu_bytes": 1500, "speed_bits_per_sec": 1_000_000_000}]}

POD: Difference = {
    "without": ["interfaces", "qdiscs", "rings", "channels", "offloads", "coalescing", "queues", "irqs", "pci"],
    "interfaces": [
        {
            "interface": "eth0",
            "ifindex": 3,
            "kind": "veth",
            "operstate": "up",
            "loopback": False,
            "mtu_bytes": 1500,
            "peer_elsewhere": True,
            "default_route": True,
            "rx_queues": 4,
            "tx_queues": 4,
        }
    ],
    "qdiscs": [{"interface": "eth0", "kind": "noqueue", "handle": "0:", "parent": "root", "options": {}}],
}
"""What a container sees of its interfaces."""

NO_SOCKETS: Difference = {"without": ["sockets"]}


def quiet_web(algorithm: str = "cubic", **values: Any) -> Difference:
    """Connections that ask for little: no bulk, so that buffers and idle pauses cost nothing."""
    row = {"algorithm": algorithm, "remote": "public", "rtt_band": "10-50ms", "connections": 50, "busy_connections": 4}
    return {"without": ["sockets"], "sockets": [{**row, "srtt_us_p50": 30_000, "min_rtt_us_p50": 25_000, **values}]}


def rack(algorithm: str = "cubic", **values: Any) -> Difference:
    """Connections within a data centre."""
    row = {"algorithm": algorithm, "remote": "private", "rtt_band": "below-1ms", "connections": 300}
    row |= {"busy_connections": 100, "srtt_us_p50": 150, "min_rtt_us_p50": 90, "data_segs_out": 50_000_000, **values}
    return {"without": ["sockets"], "sockets": [row]}


IP_SYSCTL = "Documentation/networking/ip-sysctl.rst"
SCALING = "Documentation/networking/scaling.rst"
