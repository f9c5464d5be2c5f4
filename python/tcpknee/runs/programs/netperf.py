"""`netperf`: transactions per second of request/response tests, or throughput of streams, from its table with or
without headings (`-P 0`), and from the output selectors of omni tests as CSV (`-o`) or keywords (`-k`).

Without a heading nothing says in which unit a stream's throughput is: it is taken for netperf's own, 10^6 bits/s. A
selection without THROUGHPUT_UNITS says nothing for the same reason."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping

from .measured import Measured

command = "netperf"

_KEYWORD = re.compile(r"^([A-Z0-9_]+)=(.*)$", re.M)
_STREAM_HEAD = re.compile(r"^bytes\s+bytes\s+bytes\s+secs\.\s+(\S+?)/s(?:ec)?\s*$", re.M)
_NUMBERS = re.compile(r"^[ \t]*\d[\d.]*(?:[ \t]+\d[\d.]*)*[ \t]*$", re.M)

_BITS = {"10^3bits": 1e3, "10^6bits": 1e6, "10^9bits": 1e9}
_TRANSACTIONS = "Trans/s"
# Headings of omni's CSV, by the keyword of the same selector.
_HEADS = {
    "Throughput": "THROUGHPUT",
    "Throughput Units": "THROUGHPUT_UNITS",
    "50th Percentile Latency Microseconds": "P50_LATENCY",
    "99th Percentile Latency Microseconds": "P99_LATENCY",
}


def parse(text: str) -> Measured:
    return _of_omni(dict(_KEYWORD.findall(text)) or _of_csv(text)) or _of_table(text) or Measured()


def _of_omni(said: Mapping[str, str]) -> Measured | None:
    value, unit = _number(said.get("THROUGHPUT")), said.get("THROUGHPUT_UNITS", "")
    if value is None:
        return None
    if unit == _TRANSACTIONS:
        p50, p99 = (_number(said.get(name)) for name in ("P50_LATENCY", "P99_LATENCY"))
        return Measured(requests_per_sec=value, latency_us_p50=p50, latency_us_p99=p99)
    bits = _BITS.get(unit.removesuffix("/s"))
    return Measured(goodput_bits_per_sec=value * bits) if bits else None


def _of_csv(text: str) -> dict[str, str]:
    """The last line of values; without headings the value before a unit."""
    rows = [row for row in csv.reader(text.splitlines()) if len(row) >= 2]
    if not rows:
        return {}
    heads = next((row for row in rows if "Throughput" in row), None)
    values = rows[-1]
    if heads is not None and values is not heads:
        return {_HEADS[head]: value for head, value in zip(heads, values, strict=False) if head in _HEADS}
    units = {_TRANSACTIONS, *(f"{bits}/s" for bits in _BITS)}
    at = next((at for at, value in enumerate(values) if at and value in units), None)
    return {} if at is None else {"THROUGHPUT": values[at - 1], "THROUGHPUT_UNITS": values[at]}


def _of_table(text: str) -> Measured | None:
    """A line of five numbers is a stream's: sizes, time, throughput. One of six is of request/response."""
    rows = [line.split() for line in _NUMBERS.findall(text)]
    row = next((row for row in rows if len(row) in (5, 6)), None)
    value = _number(row[-1]) if row else None
    if row is None or value is None:
        return None
    if len(row) == 6:
        return Measured(requests_per_sec=value)
    head = _STREAM_HEAD.search(text)
    bits = _BITS.get(head[1] if head else "10^6bits")
    return Measured(goodput_bits_per_sec=value * bits) if bits else None


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None
