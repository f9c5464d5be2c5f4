"""Options and counters of the qdisc fq, which the netlink library does not know.

Source: include/uapi/linux/pkt_sched.h (TCA_FQ_*, struct tc_fq_qd_stats) of Linux 6.12.
"""

from __future__ import annotations

import struct
import sys
from typing import Any

_OPTIONS = {
    1: "limit_pkts",
    2: "flow_limit_pkts",
    3: "quantum_bytes",
    4: "initial_quantum_bytes",
    5: "pacing",
    7: "maxrate_bytes_per_sec",
    8: "buckets_log",
    9: "refill_delay_us",
    10: "orphan_mask",
    11: "low_rate_threshold_bytes_per_sec",
    12: "ce_threshold_us",
    13: "timer_slack_ns",
    14: "horizon_us",
    15: "horizon_drop",
}
_UNLIMITED = 0xFFFFFFFF
"""What maxrate and ce_threshold are where there is none."""

_COUNTERS = ("throttled", "flows_plimit", "pkts_too_long", "allocation_errors")
_LATER = ("ce_mark", "horizon_drops", "horizon_caps", "fastpath_pkts")
"""The first stand from byte 24 on, the others from byte 80, as many of them as the kernel has."""
_KEPT = {"throttled", "flows_plimit", "horizon_drops", "horizon_caps", "fastpath_pkts"}


def options(hexadecimal: object) -> dict[str, Any]:
    """TCA_OPTIONS as the library shows what it does not know: bytes in hexadecimal with colons between."""
    raw = _bytes(hexadecimal)
    found: dict[str, Any] = {}
    at = 0
    while at + 4 <= len(raw):
        length, kind = struct.unpack_from("=HH", raw, at)
        if length < 4 or at + length > len(raw):
            break
        body = raw[at + 4 : at + length]
        name = _OPTIONS.get(kind & 0x3FFF)
        if name is not None and len(body) in (1, 4, 8):
            value = int.from_bytes(body, sys.byteorder)
            if value != _UNLIMITED or name not in ("maxrate_bytes_per_sec", "ce_threshold_us"):
                found[name] = value
        at += (length + 3) & ~3
    return found


def counters(hexadecimal: object) -> dict[str, int]:
    """TCA_STATS_APP: those counters that a snapshot keeps."""
    raw = _bytes(hexadecimal)
    places = [*zip(_COUNTERS, range(24, 56, 8), strict=True), *zip(_LATER, range(80, 112, 8), strict=True)]
    return {
        name: int.from_bytes(raw[at : at + 8], sys.byteorder)
        for name, at in places
        if name in _KEPT and at + 8 <= len(raw)
    }


def _bytes(hexadecimal: object) -> bytes:
    try:
        return bytes.fromhex(hexadecimal.replace(":", "")) if isinstance(hexadecimal, str) else b""
    except ValueError:
        return b""
