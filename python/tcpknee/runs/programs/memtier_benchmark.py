"""`memtier_benchmark`: operations per second and latency, from its table, or from the JSON of `--json-out-file` where
that goes to standard output (`/dev/stdout`), which has the 95th percentile if `--print-percentiles` asks for it."""

from __future__ import annotations

import json
import re
from typing import Any

from .measured import Measured

command = "memtier_benchmark"

_HEADS = re.compile(r"^Type\s+(Ops/sec\s.*)$", re.M)
_TOTALS = re.compile(r"^Totals\s+(.*)$", re.M)
_BETWEEN_HEADS = re.compile(r"\s{2,}")
_PERCENTILE = re.compile(r"p?(\d+\.?\d*)")


def parse(text: str) -> Measured:
    return _of_json(text) or _of_table(text) or Measured()


def _of_json(text: str) -> Measured | None:
    begins = text.find("{")
    if begins < 0:
        return None
    try:
        # Progress is printed before it, and the table behind it.
        document, _ = json.JSONDecoder().raw_decode(text, begins)
        totals = document["ALL STATS"]["Totals"]
        return _measured(totals["Ops/sec"], totals.get("Percentile Latencies", {}))
    except (ValueError, KeyError, TypeError):
        return None


def _of_table(text: str) -> Measured | None:
    heads, totals = _HEADS.search(text), _TOTALS.search(text)
    if not heads or not totals:
        return None
    named = dict(zip(_BETWEEN_HEADS.split(heads[1].strip()), totals[1].split(), strict=False))
    found = {head.removesuffix(" Latency"): value for head, value in named.items() if head.endswith(" Latency")}
    return _measured(named.get("Ops/sec"), found)


def _measured(rate: Any, latencies_ms: Any) -> Measured | None:
    """Of percentiles by names such as `p50`, `p50.00` or `50.000`."""
    by_percent = {float(m[1]): _number(ms) for name, ms in latencies_ms.items() if (m := _PERCENTILE.fullmatch(name))}
    if (per_sec := _number(rate)) is None:
        return None
    p50, p95, p99 = (ms * 1e3 if (ms := by_percent.get(percent)) is not None else None for percent in (50, 95, 99))
    return Measured(requests_per_sec=per_sec, latency_us_p50=p50, latency_us_p95=p95, latency_us_p99=p99)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
