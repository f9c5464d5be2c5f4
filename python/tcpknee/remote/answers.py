"""What a far host may say: the shape of each answer (`crates/remote/src/said.rs`, `crates/hold/src/hold.rs`). Who has
that host may say anything, and it goes into the tables and the folder of a run here."""

from __future__ import annotations

import ipaddress
import json
import math
from collections.abc import Mapping
from typing import Any

from tcpknee.shapes import FLAG, NUMBER, WHOLE, Every, Kind, Optional, OrNull, Shape, mistake, one_of


def _is_text(value: Any) -> bool:
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _is_up_to(most: int) -> Any:
    return lambda value: WHOLE.holds(value) and value <= most


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 1 << 61


def _is_address(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(ipaddress.ip_address(value))
    except ValueError:
        return False


_TEXT = Kind("text of Unicode", _is_text)
_ADDRESS = Kind("an IP address", _is_address)
_BYTE = Kind("a byte", _is_up_to(255))
_TIME_NS = Kind("nanoseconds of less than a century", _is_up_to(1 << 61))
_PORT = Kind("a port", _is_up_to((1 << 16) - 1))
_STEP_NS = Kind("nanoseconds of less than a century, either way", _is_step)
_AMOUNT = Kind("a number from 0 on", lambda value: NUMBER.holds(value) and value >= 0)

_PAGE: Shape = {
    # Of the greatest value of 64 bits.
    "number": Kind("a page of a histogram", _is_up_to(943)),
    "counts": (Kind("a count", _is_up_to((1 << 32) - 1)),) * 4,
}
_HISTOGRAM: Shape = {
    "count": WHOLE,
    "sum": WHOLE,
    "range": (WHOLE, WHOLE),
    "current": _PAGE,
    "place": Kind("a place", _is_up_to(943)),
    "pages": [_PAGE],
}

_SAID: Mapping[str, Shape] = {
    "hello": {
        "version": _TEXT,
        "machine": _TEXT,
        "kernel": _TEXT,
        "host": _TEXT,
        "boot": _TEXT,
        "uid": WHOLE,
        "processors": WHOLE,
        "ssh": OrNull((_TEXT, _TEXT)),
        "available": [_TEXT],
        "allowed": [_TEXT],
        "counters": Every(WHOLE),
    },
    "pong": {"n": WHOLE, "monotonic_ns": _TIME_NS, "realtime_ns": _TIME_NS},
    "counters": Every(WHOLE),
    "locked": OrNull({"who": _TEXT, "since_unix_s": Kind("seconds since 1970", _is_up_to(1 << 35))}),
    "settings": _TEXT,
    "recorded": {"files": Every(_TEXT)},
    "listening": {"ports": [OrNull(_PORT)], "everywhere": FLAG, "servers": [[_PORT]]},
    "path": {
        "rtt_us_least": _AMOUNT,
        "rtt_us_median": _AMOUNT,
        "rate_bits_per_sec": OrNull(_AMOUNT),
        "retransmit_pct": OrNull(_AMOUNT),
        "bytes": WHOLE,
    },
    "capture": _TEXT,
    "captured": {"records_bytes": WHOLE},
    "over": WHOLE,
    "done": {
        "ended_ns": _TIME_NS,
        "progress": [(WHOLE, (OrNull(_TIME_NS),) * 4)],
        "reports": [
            {
                "latency_us": _HISTOGRAM,
                "writes": WHOLE,
                "reads": OrNull({"bytes": _HISTOGRAM, "gap_us": _HISTOGRAM}),
                "tcp_info": [_BYTE],
            }
        ],
        "congestion": Every(_TEXT),
        "connections": [{"group": WHOLE, "ends": ((_ADDRESS, _PORT), (_ADDRESS, _PORT)), "congestion": _TEXT}],
        "programs": [
            {
                "group": WHOLE,
                "role": one_of("server", "client"),
                "start_ns": _STEP_NS,
                "wall_us": _TIME_NS,
                "exit_code": OrNull(_BYTE),
                "signal": OrNull(_BYTE),
                "printed": _TEXT,
            }
        ],
        "samples": WHOLE,
        "missed": WHOLE,
        "records_bytes": WHOLE,
    },
    "error": _TEXT,
}
"""Of a helper: one of these at a time."""

HELD: Shape = {
    "held": Optional([{"setting": _TEXT, "was": _TEXT, "is": OrNull(_TEXT)}]),
    "back": Optional([{"setting": _TEXT, "is_back": FLAG, "said": _TEXT}]),
    "why": Optional(_TEXT),
    "error": Optional(_TEXT),
}
"""Of who holds settings."""


def read(line: bytes) -> Any:
    """A line of JSON. Raises ValueError, also for numbers that are none or have no end."""
    try:
        return json.loads(line, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(word: str) -> float:
    raise ValueError(f"got {word}")


def _finite(text: str) -> float:
    found = float(text)
    return found if math.isfinite(found) else _refuse(text)


def of_helper(said: Any) -> dict[str, Any]:
    """What a helper said, of what is known. Raises ValueError where it is of another shape."""
    if not isinstance(said, dict) or len(said) != 1 or not said.keys() <= _SAID.keys():
        raise ValueError(f"got {repr(said)[:60]}; expected one of {', '.join(_SAID)}")
    name, value = next(iter(said.items()))
    shape = _SAID[name]
    if (why := mistake({name: shape}, said)) or (why := _disorder(name, value)):
        raise ValueError(why)
    return {name: {key: value[key] for key in shape} if isinstance(shape, dict) else value}


def _disorder(name: str, value: Any) -> str | None:
    """A histogram that says nothing of its values."""
    if name != "done":
        return None
    for at, report in enumerate(value["reports"]):
        for one in (report["latency_us"], *(report["reads"] or {}).values()):
            least, most = one["range"]
            if least > most and any(map(any, (page["counts"] for page in (one["current"], *one["pages"])))):
                return f"done.reports[{at}]: got a histogram from {least} to {most}; expected the least first"
    return None
