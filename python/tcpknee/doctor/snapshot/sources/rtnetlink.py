"""Interfaces, qdiscs and routes, by rtnetlink."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from tcpknee.doctor.snapshot.reader import Reader

from . import fq

if TYPE_CHECKING:
    from pyroute2 import IPRoute

Rows = list[dict[str, Any]]

ROOT = 0xFFFFFFFF
INGRESS = 0xFFFFFFF1
RTA_CC_ALGO, RTA_LOCK = "RTAX_CC_ALGO", "RTAX_LOCK"
RTAX_MTU_BIT = 1 << 2

STATS = (
    "rx_packets",
    "tx_packets",
    "rx_bytes",
    "tx_bytes",
    "rx_dropped",
    "tx_dropped",
    "rx_errors",
    "tx_errors",
    "rx_missed_errors",
    "rx_fifo_errors",
    "rx_crc_errors",
    "rx_nohandler",
)

BOND_MODES = (
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "802.3ad",
    "balance-tlb",
    "balance-alb",
)
BOND_HASHES = ("layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac")


def read(reader: Reader) -> dict[str, Rows]:
    """The tables `interfaces`, `qdiscs` and `routes`; what /sys tells of interfaces, `sysfs` adds."""
    from pyroute2 import IPRoute

    with IPRoute() as kernel:
        links, names = _links(kernel)
        routes, through = _routes(reader, kernel, names)
        interfaces = [_interface(reader, link, names, through) for link in links]
        qdiscs = _qdiscs(reader, kernel, names)
    return {"interfaces": interfaces, "qdiscs": qdiscs, "routes": routes}


def read_counts(reader: Reader) -> dict[str, Rows]:
    """The tables `interfaces` and `qdiscs` as above, without what routes say."""
    from pyroute2 import IPRoute

    with IPRoute() as kernel:
        links, names = _links(kernel)
        interfaces = [_interface(reader, link, names, set()) for link in links]
        return {"interfaces": interfaces, "qdiscs": _qdiscs(reader, kernel, names)}


def _links(kernel: IPRoute) -> tuple[list[Any], dict[int, str]]:
    """The interfaces, and their names by index."""
    links = list(kernel.get_links())
    return links, {link["index"]: _name(link.get_attr("IFLA_IFNAME")) for link in links}


def _qdiscs(reader: Reader, kernel: IPRoute, names: dict[int, str]) -> Rows:
    return [_qdisc(reader, qdisc, names) for qdisc in kernel.get_qdiscs() if qdisc["index"] in names]


def _name(found: str | bytes) -> str:
    """A name need not be UTF-8: the library then gives its bytes."""
    return os.fsdecode(found)


def _attributes(message: Any) -> Callable[[str], Any]:
    """The attributes of a message by name, decoded when asked for; null where there is none.

    The library searches them from the start for each: with thousands of interfaces that takes seconds."""
    slots: dict[str, Any] = {}
    for slot in message["attrs"]:
        slots.setdefault(slot[0], slot)
    return lambda name: slots[name][1] if name in slots else None


def _interface(reader: Reader, link: Any, names: dict[int, str], through: set[int]) -> dict[str, Any]:
    told = _attributes(link)
    info = told("IFLA_LINKINFO")
    kind = info.get_attr("IFLA_INFO_KIND") if info else None
    data = info.get_attr("IFLA_INFO_DATA") if info else None
    stats = told("IFLA_STATS64") or {}
    row = {
        "netns": reader.netns,
        "interface": names[link["index"]],
        "ifindex": link["index"],
        "kind": kind,
        "operstate": (told("IFLA_OPERSTATE") or "unknown").lower(),
        "loopback": bool(link["flags"] & 0x8),
        "mtu_bytes": told("IFLA_MTU"),
        "max_mtu_bytes": told("IFLA_MAX_MTU") or None,
        "txqueuelen_pkts": told("IFLA_TXQLEN"),
        "master": names.get(told("IFLA_MASTER") or 0),
        "lower": None,
        "peer_elsewhere": told("IFLA_LINK_NETNSID") is not None,
        "default_route": link["index"] in through,
        "rx_queues": told("IFLA_NUM_RX_QUEUES"),
        "tx_queues": told("IFLA_NUM_TX_QUEUES"),
        "gso_max_bytes": told("IFLA_GSO_MAX_SIZE"),
        "gro_max_bytes": told("IFLA_GRO_MAX_SIZE"),
        "carrier_changes": told("IFLA_CARRIER_CHANGES"),
        **{name: stats.get(name) for name in STATS},
    }
    if not row["peer_elsewhere"]:
        row["lower"] = names.get(told("IFLA_LINK") or 0)
    if kind == "bond" and data is not None:
        row["bond_mode"] = _named(BOND_MODES, data.get_attr("IFLA_BOND_MODE"))
        row["bond_xmit_hash_policy"] = _named(BOND_HASHES, data.get_attr("IFLA_BOND_XMIT_HASH_POLICY"))
    return row


def _named(names: tuple[str, ...], number: int | None) -> str | None:
    return names[number] if number is not None and number < len(names) else None


def _qdisc(reader: Reader, qdisc: Any, names: dict[int, str]) -> dict[str, Any]:
    told = _attributes(qdisc)
    kind = told("TCA_KIND")
    stats = told("TCA_STATS2")
    basic = (stats.get_attr("TCA_STATS_BASIC") if stats else None) or {}
    queue = (stats.get_attr("TCA_STATS_QUEUE") if stats else None) or {}
    row = {
        "netns": reader.netns,
        "interface": names[qdisc["index"]],
        "kind": kind,
        "handle": f"{qdisc['handle'] >> 16:x}:",
        "parent": _parent(qdisc["parent"]),
        "options": {},
        "bytes": basic.get("bytes"),
        "packets": basic.get("packets"),
        "drops": queue.get("drops"),
        "overlimits": queue.get("overlimits"),
        "requeues": queue.get("requeues"),
        "backlog_pkts": queue.get("qlen"),
    }
    if kind == "fq":
        row["options"] = fq.options(told("TCA_OPTIONS"))
        row |= fq.counters(stats.get_attr("TCA_STATS_APP") if stats else None)
    else:
        row["options"] = _options(told("TCA_OPTIONS"))
    return row


def _parent(parent: int) -> str:
    if parent == ROOT:
        return "root"
    if parent == INGRESS:
        return "ingress"
    return f"{parent >> 16:x}:{parent & 0xFFFF:x}" if parent >> 16 else f":{parent & 0xFFFF:x}"


def _options(found: Any) -> dict[str, Any]:
    """Options that are one number or text each; their names as the kernel's without the kind: `limit`, `target`."""
    named: dict[str, Any] = {}
    pairs: Iterable[Any] = found["attrs"] if isinstance(found, dict) and "attrs" in found else ()
    for pair in pairs:
        name, value = pair[0], pair[1]
        if isinstance(value, (int, str)) and name.startswith("TCA_"):
            named[name.rpartition("_")[2].lower()] = value
    return named


def _routes(reader: Reader, kernel: IPRoute, names: dict[int, str]) -> tuple[Rows, set[int]]:
    """Routes by interface and metrics, and the interfaces that default routes lead through. Addresses are left out."""
    groups: dict[tuple[Any, ...], int] = {}
    through: set[int] = set()
    for route in kernel.get_routes():
        # Broadcasts, multicasts and the host's own addresses are none that TCP sends over.
        if route["type"] != 1:
            continue
        told = _attributes(route)
        if told("RTA_TABLE") == 255:
            continue
        out = _outputs(told)
        default = route["dst_len"] == 0
        through |= out if default else set()
        metrics = told("RTA_METRICS")
        set_to = metrics.get_attr if metrics else lambda name: None
        lock = set_to(RTA_LOCK) or 0
        for index in out:
            key = (
                names.get(index),
                default,
                set_to("RTAX_INITCWND"),
                set_to("RTAX_INITRWND"),
                set_to(RTA_CC_ALGO) or None,
                set_to("RTAX_MTU"),
                bool(lock & RTAX_MTU_BIT),
            )
            groups[key] = groups.get(key, 0) + 1
    columns = ("interface", "default", "initcwnd_pkts", "initrwnd_pkts", "algorithm", "mtu_bytes", "mtu_locked")
    rows = [
        {"netns": reader.netns, "routes": count, **dict(zip(columns, key, strict=True))}
        for key, count in groups.items()
    ]
    return rows, through


def _outputs(told: Callable[[str], Any]) -> set[int]:
    """Interfaces that a route leads through: several where it is spread over hops."""
    one = told("RTA_OIF")
    hops = told("RTA_MULTIPATH") or []
    return {one} if one is not None else {hop["oif"] for hop in hops}
