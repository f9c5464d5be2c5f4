"""`memtier_benchmark`: the row of totals of its table. By default it prints no 95th percentile; `--print-percentiles
50,95,99` adds it."""

from __future__ import annotations

import re

from kneepoint.programs.measured import Measured

command = "memtier_benchmark"

_BETWEEN_COLUMNS = re.compile(r"\s{2,}")


def parse(text: str) -> Measured:
    """The last table counts: with several runs it is that of the best, worst and mean, mean last."""
    heads: list[str] = []
    totals: dict[str, str] = {}
    for line in text.splitlines():
        cells = _BETWEEN_COLUMNS.split(line.strip())
        if cells[0] == "Type":
            heads = cells
        elif cells[0] == "Totals" and heads:
            totals = dict(zip(heads, cells, strict=False))

    def us(column: str) -> float | None:
        value = _number(totals.get(column))
        return None if value is None else value * 1e3

    return Measured(
        requests_per_sec=_number(totals.get("Ops/sec")),
        latency_us_p50=us("p50 Latency"),
        latency_us_p95=us("p95 Latency"),
        latency_us_p99=us("p99 Latency"),
    )


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None
