"""`redis-benchmark`: requests per second and latency, from its plain text, `-q` and `--csv`.

Its latency ends with the first bytes of an answer; requests per second count whole ones. An answer of many packets that
dribbles in shows in the second only.
"""

from __future__ import annotations

import csv
import re

from .measured import Measured, over_tests

command = "redis-benchmark"

# Redis 7, plain: a block per test.
_RATE = re.compile(r"throughput summary: ([\d.]+) requests per second")
_LATENCY = re.compile(r"latency summary \(msec\):\s*\n\s*avg\s+min\s+p50\s+p95\s+p99\s+max\s*\n([\d. \t]+)")
# Redis 7, -q: a line per test. Carriage returns overwrite interim figures.
_QUIET = re.compile(r"^(?P<test>[^:\r\n]+): (?P<rate>[\d.]+) requests per second(?:, p50=(?P<p50>[\d.]+) msec)?", re.M)


def parse(text: str) -> Measured:
    """Several tests (`-t set,get`) ran one after the other with as many requests each."""
    return over_tests(_of_csv(text) or _of_blocks(text) or _of_lines(text))


def _of_csv(text: str) -> list[Measured]:
    """`--csv`. Before Redis 6.2 it has no heading and only the rate."""
    rows = [row for row in csv.reader(text.splitlines()) if len(row) >= 2]
    heads = next((row for row in rows if row[0] == "test"), ["test", "rps"])
    found = []
    for row in rows:
        named = dict(zip(heads, row, strict=False))
        if row is not heads and _number(named.get("rps")) is not None and f'"{row[0]}"' in text:
            found.append(
                Measured(
                    requests_per_sec=_number(named["rps"]),
                    latency_us_p50=_us(named.get("p50_latency_ms")),
                    latency_us_p95=_us(named.get("p95_latency_ms")),
                    latency_us_p99=_us(named.get("p99_latency_ms")),
                )
            )
    return found


def _of_blocks(text: str) -> list[Measured]:
    latencies = [line.split() for line in _LATENCY.findall(text)]
    rates = _RATE.findall(text)
    if len(latencies) != len(rates):
        latencies = [[]] * len(rates)
    found = []
    for rate, latency in zip(rates, latencies, strict=True):
        p50, p95, p99 = latency[2:5] if len(latency) >= 5 else (None, None, None)
        found.append(Measured(_number(rate), latency_us_p50=_us(p50), latency_us_p95=_us(p95), latency_us_p99=_us(p99)))
    return found


def _of_lines(text: str) -> list[Measured]:
    lines = text.replace("\r", "\n")
    return [Measured(_number(m["rate"]), latency_us_p50=_us(m["p50"])) for m in _QUIET.finditer(lines)]


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def _us(milliseconds: str | None) -> float | None:
    value = _number(milliseconds)
    return None if value is None else value * 1e3
