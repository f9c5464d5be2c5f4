"""`wrk`: requests per second, and with `--latency` percentiles of latency (it prints no 95th)."""

from __future__ import annotations

import re

from .measured import Measured

command = "wrk"

_RATE = re.compile(r"^Requests/sec:\s+([\d.]+)", re.M)
_PERCENTILE = re.compile(r"^\s+(\d+)%\s+([\d.]+)(us|ms|s|m)\s*$", re.M)
_US = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6}


def parse(text: str) -> Measured:
    rate = _RATE.search(text)
    spread = {int(percent): float(value) * _US[unit] for percent, value, unit in _PERCENTILE.findall(text)}
    return Measured(
        requests_per_sec=float(rate[1]) if rate else None,
        latency_us_p50=spread.get(50),
        latency_us_p95=spread.get(95),
        latency_us_p99=spread.get(99),
    )
