"""The TCP connections of this namespace in groups, without addresses, and its listeners."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from statistics import median
from typing import Any

from tcpknee.doctor.snapshot.reader import Reader

Rows = list[dict[str, Any]]

BANDS = ((1_000, "below-1ms"), (10_000, "1-10ms"), (50_000, "10-50ms"))

BUSY_BYTES = 1_000_000
"""A connection that moved less says little of what limits it."""

LIMITED_SHARE = 0.2
"""Share of its busy time from which a connection counts as limited."""

_ASKED = (
    "algorithm",
    "remote_addr",
    "srtt_us",
    "min_rtt_us",
    "snd_mss_bytes",
    "bytes_acked",
    "bytes_received",
    "bytes_sent",
    "bytes_retrans",
    "data_segs_out",
    "total_retrans",
    "delivered_ce",
    "delivery_rate_bits_per_sec",
    "delivery_rate_app_limited",
    "busy_us",
    "rwnd_limited_us",
    "sndbuf_limited_us",
    "options",
)
_SUMS = {
    "bytes_acked": "bytes_acked",
    "bytes_received": "bytes_received",
    "bytes_sent": "bytes_sent",
    "bytes_retrans": "bytes_retrans",
    "data_segs_out": "data_segs_out",
    "total_retrans": "retrans_segs",
    "delivered_ce": "delivered_ce",
    "busy_us": "busy_us",
    "rwnd_limited_us": "rwnd_limited_us",
    "sndbuf_limited_us": "sndbuf_limited_us",
}
_OPTION_TIMESTAMPS, _OPTION_SACK, _OPTION_SCALING = 1, 2, 4
"""Bits of tcpi_options (include/uapi/linux/tcp.h)."""


def read(reader: Reader) -> dict[str, Rows]:
    """The tables `sockets` and `listeners`."""
    from tcpknee.live.record import sockets

    groups: dict[tuple[str | None, str, str], list[dict[str, Any]]] = {}
    for batch in sockets(columns=_ASKED).to_batches():
        columns = batch.to_pydict()
        for values in zip(*(columns[name] for name in _ASKED), strict=True):
            one = dict(zip(_ASKED, values, strict=True))
            key = (one["algorithm"], _scope(one["remote_addr"]), _band(one["srtt_us"]))
            groups.setdefault(key, []).append(one)
    rows = [_group(reader, key, found) for key, found in sorted(groups.items(), key=lambda item: str(item[0]))]
    listening = sockets(states=["listen"], columns=["local_port", "recv_q_bytes", "send_q_bytes"]).to_pylist()
    listeners = [
        {
            "netns": reader.netns,
            "local_port": one["local_port"],
            "queued": one["recv_q_bytes"],
            "backlog": one["send_q_bytes"],
        }
        for one in listening
    ]
    return {"sockets": rows, "listeners": listeners}


def _group(reader: Reader, key: tuple[str | None, str, str], found: Rows) -> dict[str, Any]:
    algorithm, remote, band = key
    busy = [one for one in found if (one["bytes_acked"] or 0) + (one["bytes_received"] or 0) >= BUSY_BYTES]
    rates = [one["delivery_rate_bits_per_sec"] for one in found if one["delivery_rate_bits_per_sec"]]
    full = [
        one["delivery_rate_bits_per_sec"]
        for one in found
        if one["delivery_rate_bits_per_sec"] and not one["delivery_rate_app_limited"]
    ]
    row: dict[str, Any] = {
        "netns": reader.netns,
        "algorithm": algorithm,
        "remote": remote,
        "rtt_band": band,
        "connections": len(found),
        "busy_connections": len(busy),
        "srtt_us_p50": _middle([one["srtt_us"] for one in found]),
        "min_rtt_us_p50": _middle([one["min_rtt_us"] for one in found]),
        "snd_mss_bytes_p50": _middle([one["snd_mss_bytes"] for one in found]),
        "delivery_rate_bits_per_sec_p50": _middle(full),
        "delivery_rate_bits_per_sec_max": max(rates, default=None),
        "rwnd_limited_connections": _limited(busy, "rwnd_limited_us"),
        "sndbuf_limited_connections": _limited(busy, "sndbuf_limited_us"),
        "no_sack_connections": _without(found, _OPTION_SACK),
        "no_timestamps_connections": _without(found, _OPTION_TIMESTAMPS),
        "no_scaling_connections": _without(found, _OPTION_SCALING),
    }
    return row | {name: sum(one[column] or 0 for one in found) for column, name in _SUMS.items()}


def _middle(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return round(median(known)) if known else None


def _limited(busy: Rows, column: str) -> int:
    return sum(1 for one in busy if (one[column] or 0) > LIMITED_SHARE * (one["busy_us"] or 0) > 0)


def _without(found: Rows, option: int) -> int:
    return sum(1 for one in found if one["options"] is not None and not one["options"] & option)


def _band(srtt_us: int | None) -> str:
    if not srtt_us:
        return "unknown"
    return next((name for most, name in BANDS if srtt_us < most), "above-50ms")


@lru_cache(maxsize=1 << 16)
def _scope(address: str | None) -> str:
    """Kind of the far end, all that is kept of its address."""
    try:
        found = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if found.is_loopback:
        return "loopback"
    return "private" if found.is_private or found.is_link_local else "public"
