"""Rings, queues, offloads, coalescing and counters of drivers, by the calls of ethtool."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

from tcpknee.doctor.changes import ethtool
from tcpknee.doctor.snapshot.reader import Reader

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
    r"rx_drops|drv_rx_drops|pkts_rx_oob|rx_alloc_fail_cnt|module_unplug|link_down_events_phy|ena_srd_mode"
)
"""Counters that a rule reads. Drivers have thousands, each with names of its own."""


def read(reader: Reader, interfaces: Rows) -> dict[str, Rows]:
    """The tables `rings`, `channels`, `offloads`, `coalescing` and `nic_stats`."""
    tables = _each(reader, interfaces, _ASKED)
    _add_push(tables["rings"], interfaces)
    return tables


def read_counts(reader: Reader, interfaces: Rows) -> dict[str, Rows]:
    """The table `nic_stats` alone."""
    return _each(reader, interfaces, {"nic_stats": _stats})


def _each(reader: Reader, interfaces: Rows, asked: dict[str, Callable[[str], Rows]]) -> dict[str, Rows]:
    tables: dict[str, Rows] = {table: [] for table in asked}
    for interface in _chosen(reader, interfaces):
        where = {"netns": reader.netns, "interface": interface}
        for table, ask in asked.items():
            try:
                tables[table] += [{**where, **found} for found in ask(interface)]
            except PermissionError:
                reader.miss(f"{table} of interfaces", "permission denied", "CAP_NET_ADMIN")
            except (OSError, ValueError, struct.error):
                # The driver has no such thing, or its answer makes no sense.
                continue
    return tables


def _chosen(reader: Reader, interfaces: Rows) -> Iterator[str]:
    """Every device, and virtual interfaces up to a bound."""
    yield from (row["interface"] for row in interfaces if row["kind"] is None and not row["loopback"])
    virtual = [row["interface"] for row in interfaces if row["kind"] is not None]
    if len(virtual) > MOST_VIRTUAL:
        reader.miss("rings and offloads", f"of {len(virtual):,} virtual interfaces only {MOST_VIRTUAL} were asked", "")
    yield from virtual[:MOST_VIRTUAL]


def _add_push(rings: Rows, interfaces: Rows) -> None:
    """How many bytes of a packet the driver writes into the device, which only netlink tells (Linux 6.4)."""
    from pyroute2.netlink.exceptions import NetlinkError
    from pyroute2.netlink.generic.ethtool import NlEthtool

    devices = {row["interface"]: row["ifindex"] for row in interfaces if row["kind"] is None}
    asked = [(row, devices[row["interface"]]) for row in rings if row["interface"] in devices]
    if not asked:
        return
    with NlEthtool() as kernel:
        for row, index in asked:
            try:
                [found] = kernel.get_rings(ifindex=index)
            except (NetlinkError, OSError, ValueError):
                # A kernel from before 5.6, or a driver without it.
                continue
            row["tx_push_bytes"] = found.get_attr("ETHTOOL_A_RINGS_TX_PUSH_BUF_LEN")
            row["tx_push_max_bytes"] = found.get_attr("ETHTOOL_A_RINGS_TX_PUSH_BUF_LEN_MAX")


def _rings(interface: str) -> Rows:
    found = ethtool.numbers(interface, ethtool.GRINGPARAM, ethtool.RING)
    return [{name: found[name] for name in ("rx", "rx_max", "tx", "tx_max")}]


def _channels(interface: str) -> Rows:
    found = ethtool.numbers(interface, ethtool.GCHANNELS, ethtool.CHANNELS)
    row: dict[str, Any] = {}
    for name in ("rx", "tx", "combined"):
        row |= {name: found[name], f"{name}_max": found[f"max_{name}"]}
    try:
        row["rss_queues"] = sorted(ethtool.rss_queues(interface)) or None
    except OSError:
        # No RSS.
        row["rss_queues"] = None
    return [row]


def _offloads(interface: str) -> Rows:
    """Of names that stand for several of the kernel's, one that is on is enough."""
    names = ethtool.feature_names(interface)
    changeable, _, active, never = ethtool.features(interface, len(names))
    rows: dict[str, dict[str, Any]] = {}
    for bit, name in enumerate(names):
        printed = _OFFLOADS.get(name)
        if printed is None:
            continue
        row = rows.setdefault(printed, {"name": printed, "on": False, "fixed": True})
        row["on"] = row["on"] or bool(active >> bit & 1)
        row["fixed"] = row["fixed"] and not changeable & ~never & 1 << bit
    return list(rows.values())


def _coalescing(interface: str) -> Rows:
    found = ethtool.numbers(interface, ethtool.GCOALESCE, ethtool.COALESCE)
    return [
        {
            "rx_us": found["rx_usecs"],
            "rx_pkts": found["rx_frames"],
            "tx_us": found["tx_usecs"],
            "tx_pkts": found["tx_frames"],
            "adaptive_rx": bool(found["adaptive_rx"]),
            "adaptive_tx": bool(found["adaptive_tx"]),
        }
    ]


def _stats(interface: str) -> Rows:
    return [
        {"name": name, "value": value}
        for name, value in ethtool.stats(interface).items()
        if KNOWN_STATS.fullmatch(name)
    ]


_ASKED: dict[str, Callable[[str], Rows]] = {
    "rings": _rings,
    "channels": _channels,
    "offloads": _offloads,
    "coalescing": _coalescing,
    "nic_stats": _stats,
}
