"""Snapshots made by hand: a well-tuned host, and what differs from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tcpknee.doctor.snapshot import Snapshot, samples
from tcpknee.doctor.snapshot.snapshot import Earlier

NETNS = "net:[4026531840]"

KEYS: dict[str, tuple[str, ...]] = {
    "host": (),
    "sysctls": ("name",),
    "counters": ("name",),
    "interfaces": ("interface",),
    "rings": ("interface",),
    "channels": ("interface",),
    "offloads": ("interface", "name"),
    "coalescing": ("interface",),
    "qdiscs": ("interface", "parent", "handle"),
    "queues": ("interface", "direction", "number"),
    "irqs": ("number",),
    "softnet": ("cpu",),
    "sockets": ("algorithm", "remote", "rtt_band"),
    "listeners": ("local_port",),
    "cpus": ("cpu",),
    "owners": ("owner", "kind", "path", "name"),
    "nic_stats": ("interface", "name"),
    "pci": ("interface",),
    "routes": ("interface", "default"),
    "namespaces": ("netns",),
}
"""Columns by which a row of a difference finds the row that it changes."""

Difference = Mapping[str, Any]
"""Tables by name: of `sysctls` and `counters` values by name, of `host` its columns, of others rows, which change the
row with the same key or are new. `without` lists tables that are emptied first."""


def snapshot(difference: Difference | None = None, *, cpus: int = 4) -> Snapshot:
    """The well-tuned host with a difference."""
    tables = well_tuned(cpus)
    for name in (difference or {}).get("without", ()):
        tables[name] = []
    for name, found in (difference or {}).items():
        if name != "without":
            change(tables[name], KEYS[name], _rows(name, found))
    for name, rows in tables.items():
        for row in rows:
            if name not in {"host", "irqs", "softnet", "cpus", "owners", "pci", "namespaces"}:
                row["netns"] = NETNS
    return Snapshot.of(1_700_000_000_000_000_000, tables)


def sampled(now: Difference, first: Difference, seconds: float = 10.0) -> Snapshot:
    """A host with two samples: one difference from the well-tuned host, and another some seconds before."""
    return replace(snapshot(now), earlier=Earlier.of(seconds, samples.counts_of(snapshot(first).tables)))


def _rows(table: str, found: Any) -> Sequence[dict[str, Any]]:
    if table in ("sysctls", "counters"):
        return [{"name": name, "value": value} for name, value in found.items()]
    return [found] if table == "host" else [dict(row) for row in found]


def change(rows: list[dict[str, Any]], key: tuple[str, ...], changes: Sequence[dict[str, Any]]) -> None:
    """Each change becomes a row, or a part of the rows with the same key."""
    for one in changes:
        same = [row for row in rows if all(row.get(name) == one.get(name) for name in key)]
        for row in same:
            row.update(one)
        if not same:
            rows.append(one)


def qdiscs(interface: str, *leaves: str, root: str | None = "mq") -> list[dict[str, Any]]:
    """A root with leaves; with `root=None` the only leaf is the root."""
    if root is None:
        return [{"interface": interface, "kind": leaves[0], "handle": "8001:", "parent": "root", "options": {}}]
    rows = [{"interface": interface, "kind": root, "handle": "1:", "parent": "root", "options": {}}]
    return rows + [
        {"interface": interface, "kind": kind, "handle": f"80{at:02x}:", "parent": f"1:{at:x}", "options": {}}
        for at, kind in enumerate(leaves, 1)
    ]


def well_tuned(cpus: int) -> dict[str, list[dict[str, Any]]]:
    """A server with a 25 Gbit/s device of as many queues as processors, Linux 6.12, CUBIC with fq."""
    every = list(range(cpus))
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in KEYS}
    tables["host"] = [
        {
            "host": "tuned",
            "kernel": "6.12.48",
            "arch": "x86_64",
            "distribution": "debian",
            "distribution_version": "13",
            "hypervisor": "none",
            "container": "none",
            "root": True,
            "initial_netns": True,
            "netns": NETNS,
            "cpus": cpus,
            "numa_nodes": 1,
            "memory_bytes": 64 << 30,
            "memory_available_bytes": 48 << 30,
            "memory_pressure_pct": 0.0,
            "clocksource": "tsc",
            "clocksources": ["tsc", "hpet"],
            "smt": "on",
            "boot_parameters": [],
            "modules": ["sch_fq"],
            "algorithms": ["reno", "cubic", "bbr"],
            "uptime_sec": 1_000_000.0,
            "steal_pct": 0.0,
            "page_bytes": 4096,
            "init": "systemd",
        }
    ]
    tables["sysctls"] = _rows("sysctls", SYSCTLS)  # type: ignore[assignment]
    tables["counters"] = _rows("counters", COUNTERS)  # type: ignore[assignment]
    tables["interfaces"] = [
        {
            "interface": "lo",
            "ifindex": 1,
            "operstate": "unknown",
            "loopback": True,
            "mtu_bytes": 65536,
            "default_route": False,
            "rx_queues": 1,
            "tx_queues": 1,
        },
        {
            "interface": "eth0",
            "ifindex": 2,
            "driver": "ice",
            "bus": "pci",
            "operstate": "up",
            "loopback": False,
            "mtu_bytes": 9000,
            "txqueuelen_pkts": 1000,
            "speed_bits_per_sec": 25_000_000_000,
            "duplex": "full",
            "default_route": True,
            "numa_node": 0,
            "rx_queues": cpus,
            "tx_queues": cpus,
            "carrier_changes": 2,
            "rx_packets": 10_000_000_000,
            "tx_packets": 10_000_000_000,
            "rx_dropped": 0,
            "tx_dropped": 0,
            "rx_errors": 0,
            "tx_errors": 0,
            "rx_missed_errors": 0,
            "rx_fifo_errors": 0,
            "rx_crc_errors": 0,
        },
    ]
    tables["rings"] = [{"interface": "eth0", "rx": 2048, "rx_max": 8160, "tx": 1024, "tx_max": 8160}]
    tables["channels"] = [{"interface": "eth0", "combined": cpus, "combined_max": 2 * cpus}]
    tables["offloads"] = [
        {"interface": "eth0", "name": name, "on": name != "large-receive-offload", "fixed": False}
        for name in (
            "rx-checksumming",
            "tx-checksumming",
            "scatter-gather",
            "tcp-segmentation-offload",
            "generic-segmentation-offload",
            "generic-receive-offload",
            "large-receive-offload",
            "receive-hashing",
        )
    ]
    tables["coalescing"] = [{"interface": "eth0", "rx_us": 50, "tx_us": 50, "adaptive_rx": True, "adaptive_tx": True}]
    tables["qdiscs"] = qdiscs("eth0", *["fq"] * cpus)
    tables["queues"] = [
        {"interface": "eth0", "direction": "rx", "number": cpu, "rps_cpus": [], "rps_flow_cnt": 0} for cpu in every
    ] + [{"interface": "eth0", "direction": "tx", "number": cpu, "xps_cpus": [cpu]} for cpu in every]
    tables["irqs"] = [
        {
            "number": 40 + cpu,
            "name": f"ice-eth0-TxRx-{cpu}",
            "interface": "eth0",
            "affinity": [cpu],
            "effective": [cpu],
            "counts": {str(cpu): 1_000_000_000},
        }
        for cpu in every
    ]
    tables["softnet"] = [
        {
            "cpu": cpu,
            "processed": 2_000_000_000,
            "dropped": 0,
            "squeezed": 100,
            "received_rps": 0,
            "flow_limit_count": 0,
        }
        for cpu in every
    ]
    tables["sockets"] = [
        {
            "algorithm": "cubic",
            "remote": "public",
            "rtt_band": "10-50ms",
            "connections": 400,
            "busy_connections": 40,
            "srtt_us_p50": 20_000,
            "min_rtt_us_p50": 18_000,
            "snd_mss_bytes_p50": 1448,
            "bytes_acked": 40_000_000_000,
            "bytes_received": 1_000_000_000,
            "bytes_sent": 40_100_000_000,
            "bytes_retrans": 100_000_000,
            "data_segs_out": 27_600_000,
            "retrans_segs": 69_000,
            "delivered_ce": 0,
            "delivery_rate_bits_per_sec_p50": 40_000_000,
            "delivery_rate_bits_per_sec_max": 200_000_000,
            "busy_us": 1_000_000_000,
            "rwnd_limited_us": 10_000_000,
            "sndbuf_limited_us": 0,
            "rwnd_limited_connections": 0,
            "sndbuf_limited_connections": 0,
            "no_sack_connections": 0,
            "no_timestamps_connections": 0,
            "no_scaling_connections": 0,
        }
    ]
    tables["listeners"] = [{"local_port": 443, "queued": 0, "backlog": 4096}]
    tables["cpus"] = [
        {
            "cpu": cpu,
            "numa_node": 0,
            "governor": "performance",
            "driver": "intel_pstate",
            "max_khz": 3_500_000,
            "hardware_max_khz": 3_500_000,
            "idle_state": "C1E",
            "idle_exit_us": 10,
            "busy_pct": 20.0,
            "softirq_pct": 3.0,
            "steal_pct": 0.0,
            "isolated": False,
        }
        for cpu in every
    ]
    tables["pci"] = [
        {
            "interface": "eth0",
            "vendor": "0x8086",
            "device": "0x159b",
            "speed_gt_per_sec": 16.0,
            "max_speed_gt_per_sec": 16.0,
            "width": 8,
            "max_width": 8,
            "iommu_group": False,
        }
    ]
    tables["routes"] = [{"interface": "eth0", "default": True, "routes": 2, "mtu_locked": False}]
    tables["owners"] = []
    return tables


SYSCTLS: dict[str, str] = {
    "net.core.default_qdisc": "fq",
    "net.core.somaxconn": "4096",
    "net.core.netdev_max_backlog": "1000",
    "net.core.netdev_budget": "300",
    "net.core.netdev_budget_usecs": "8000",
    "net.core.rmem_max": "67108864",
    "net.core.wmem_max": "67108864",
    "net.core.rps_sock_flow_entries": "0",
    "net.core.flow_limit_cpu_bitmap": "0",
    "net.core.optmem_max": "131072",
    "net.ipv4.ip_forward": "0",
    "net.ipv4.ip_local_port_range": "32768 60999",
    "net.ipv4.tcp_congestion_control": "cubic",
    "net.ipv4.tcp_rmem": "4096 131072 67108864",
    "net.ipv4.tcp_wmem": "4096 16384 67108864",
    "net.ipv4.tcp_mem": "751200 1001601 1502400",
    "net.ipv4.tcp_max_syn_backlog": "4096",
    "net.ipv4.tcp_max_tw_buckets": "262144",
    "net.ipv4.tcp_max_orphans": "262144",
    "net.ipv4.tcp_syncookies": "1",
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_timestamps": "1",
    "net.ipv4.tcp_window_scaling": "1",
    "net.ipv4.tcp_moderate_rcvbuf": "1",
    "net.ipv4.tcp_slow_start_after_idle": "0",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_notsent_lowat": "131072",
    "net.ipv4.tcp_adv_win_scale": "1",
    "net.ipv4.tcp_mtu_probing": "1",
    "net.ipv4.tcp_tw_reuse": "2",
    "net.ipv4.tcp_ecn": "2",
    "net.ipv4.tcp_limit_output_bytes": "4194304",
    "net.ipv4.tcp_low_latency": "0",
    "net.ipv4.neigh.default.gc_thresh3": "1024",
    "net.ipv6.neigh.default.gc_thresh3": "1024",
    "net.ipv6.conf.all.forwarding": "0",
}

COUNTERS: dict[str, int] = {
    "Tcp.OutSegs": 10_000_000_000,
    "Tcp.InSegs": 10_000_000_000,
    "Tcp.RetransSegs": 5_000_000,
    "Tcp.PassiveOpens": 10_000_000,
    "Tcp.ActiveOpens": 1_000_000,
    "TcpExt.ListenDrops": 0,
    "TcpExt.ListenOverflows": 0,
    "TcpExt.TCPTimeouts": 10_000,
    "TcpExt.PruneCalled": 0,
    "TcpExt.RcvPruned": 0,
    "TcpExt.TCPRcvQDrop": 0,
    "TcpExt.TCPOFODrop": 0,
    "TcpExt.TCPBacklogDrop": 0,
    "TcpExt.TCPRcvCollapsed": 0,
    "TcpExt.TCPMemoryPressures": 0,
    "TcpExt.TCPAbortOnMemory": 0,
    "TcpExt.TCPSpuriousRTOs": 10,
    "TCP.inuse": 420,
    "TCP.mem": 3_000,
}
