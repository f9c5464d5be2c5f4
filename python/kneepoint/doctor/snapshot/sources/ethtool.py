"""Rings, queues, offloads, coalescing and counters of drivers, by the calls of ethtool."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kneepoint.doctor.snapshot.reader import Reader

Rows = list[dict[str, Any]]

MOST_VIRTUAL = 64
"""Virtual interfaces that are asked: of thousands of veths one is like the other."""

_OFFLOADS = {
    "rx-checksum": "rx-checksumming",
    "tx-checksum-ip-generic": "tx-checksumming",
    "tx-checksum-ipv4": "tx-checksumming",
    "tx-scatter-gather": "scatter-gather",
    "tx-tcp-segmentation": "tcp-segmentation-offload",
    "tx-generic-segmentation": "generic-segmentation-offload",
    "rx-gro": "generic-receive-offload",
    "rx-gro-hw": "rx-gro-hw",
    "rx-lro": "large-receive-offload",
    "rx-hashing": "receive-hashing",
    "rx-ntuple-filter": "ntuple-filters",
}
"""The kernel's names, and those that `ethtool -k` prints."""

KNOWN_STATS = re.compile(
    r"bw_(in|out)_allowance_exceeded|pps_allowance_exceeded|conntrack_allowance_(exceeded|available)|"
    r"linklocal_allowance_exceeded|"
    r"rx_(out_of_buffer|discards_phy|missed_errors|no_buffer_count|no_dma_resources|prio\d_discards|buff_alloc_err)|"
    r"port\.rx_(dropped|discards)|rx_dropped|rx_queue_\d+_drops|queue_\d+_tx_llq_buffer_copy|tx_timeout|"
    r"tx_queue_\d+_(drops|kicks)|vf_rx_dropped|rx_no_memory|(rx|tx)_pause(_ctrl_phy)?|rx_crc_errors(_phy)?|"
    r"rx_drops|drv_rx_drops|pkts_rx_oob|rx_alloc_fail_cnt|module_unplug|link_down_events_phy"
)
"""Counters that a rule reads. Drivers have thousands, each with names of its own."""


def read(reader: Reader, interfaces: Rows) -> dict[str, Rows]:
    """The tables `rings`, `channels`, `offloads`, `coalescing` and `nic_stats`."""
    from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool

    tables: dict[str, Rows] = {name: [] for name in ("rings", "channels", "offloads", "coalescing", "nic_stats")}
    real = [row for row in interfaces if row["kind"] is None and not row["loopback"]]
    virtual = [row for row in interfaces if row["kind"] is not None]
    if len(virtual) > MOST_VIRTUAL:
        reader.miss("rings and offloads", f"of {len(virtual):,} virtual interfaces only {MOST_VIRTUAL} were asked", "")
    kernel = IoctlEthtool()
    try:
        for row in (*real, *virtual[:MOST_VIRTUAL]):
            where = {"netns": reader.netns, "interface": row["interface"]}
            try:
                kernel.change_ifname(row["interface"])
            except (ValueError, IndexError):
                # A name that this library cannot hold.
                continue
            for table, ask in _ASKED.items():
                try:
                    tables[table] += [{**where, **found} for found in ask(kernel)]
                except PermissionError:
                    reader.miss(f"{table} of interfaces", "permission denied", "CAP_NET_ADMIN")
                except (EthtoolError, OSError):
                    # The driver has no such thing.
                    continue
    finally:
        kernel.close()
    return tables


def _rings(kernel: Any) -> Rows:
    found = kernel.get_rings()
    return [{"rx": found["rx"], "rx_max": found["rx_max"], "tx": found["tx"], "tx_max": found["tx_max"]}]


def _channels(kernel: Any) -> Rows:
    found = kernel.get_channels()
    return [
        {
            "rx": found["rx_count"],
            "rx_max": found["max_rx"],
            "tx": found["tx_count"],
            "tx_max": found["max_tx"],
            "combined": found["combined_count"],
            "combined_max": found["max_combined"],
        }
    ]


def _offloads(kernel: Any) -> Rows:
    """Of names that stand for several of the kernel's, one that is on is enough."""
    rows: dict[str, dict[str, Any]] = {}
    for name, on, changeable, *_ in kernel.get_features():
        printed = _OFFLOADS.get(name)
        if printed is None:
            continue
        row = rows.setdefault(printed, {"name": printed, "on": False, "fixed": True})
        row["on"] = row["on"] or bool(on)
        row["fixed"] = row["fixed"] and not changeable
    return list(rows.values())


def _coalescing(kernel: Any) -> Rows:
    found = kernel.get_coalesce()
    return [
        {
            "rx_us": found["rx_coalesce_usecs"],
            "rx_pkts": found["rx_max_coalesced_frames"],
            "tx_us": found["tx_coalesce_usecs"],
            "tx_pkts": found["tx_max_coalesced_frames"],
            "adaptive_rx": bool(found["use_adaptive_rx_coalesce"]),
            "adaptive_tx": bool(found["use_adaptive_tx_coalesce"]),
        }
    ]


def _stats(kernel: Any) -> Rows:
    return [
        {"name": name, "value": int(value)} for name, value in kernel.get_statistics() if KNOWN_STATS.fullmatch(name)
    ]


_ASKED: dict[str, Callable[[Any], Rows]] = {
    "rings": _rings,
    "channels": _channels,
    "offloads": _offloads,
    "coalescing": _coalescing,
    "nic_stats": _stats,
}
