"""What a program says it measured."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import harmonic_mean


@dataclass(frozen=True)
class Measured:
    """What a client printed about itself, as one value per run of it; None: it did not say.

    The fields are columns of `programs` and carry their units; `columns.PROGRAMS` says what each means.
    """

    requests_per_sec: float | None = None
    latency_us_p50: float | None = None
    latency_us_p95: float | None = None
    latency_us_p99: float | None = None
    goodput_bits_per_sec: float | None = None


def over_tests(tests: list[Measured]) -> Measured:
    """One value for tests that ran one after the other with as many requests each: requests per second over all of
    them, and the means of their percentiles."""
    rates = [test.requests_per_sec for test in tests if test.requests_per_sec]
    return Measured(
        requests_per_sec=harmonic_mean(rates) if rates else None,
        latency_us_p50=_mean([test.latency_us_p50 for test in tests]),
        latency_us_p95=_mean([test.latency_us_p95 for test in tests]),
        latency_us_p99=_mean([test.latency_us_p99 for test in tests]),
    )


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
