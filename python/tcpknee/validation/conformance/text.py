"""Compared values and verdicts as text."""

from __future__ import annotations

from tcpknee import human

from .conform import Verdict


def value(metric: str, found: float | None) -> str:
    """Writes the value of a metric with its unit."""
    if found is None:
        return "none"
    if metric.endswith("_bits_per_sec"):
        return human.quantity("rate", found)
    if "_us" in metric:
        return human.quantity("time", found)
    return f"{found:.3f}"


def verdict_line(verdict: Verdict) -> str:
    """Writes what became of a tolerance over many cells."""
    unit = f" {verdict.unit}" if verdict.unit else ""
    word = "ok" if verdict.ok else "OUTSIDE"
    found, limit = f"{verdict.value:.3g}{unit}", f"{verdict.limit:g}{unit}"
    return f"  {verdict.what}: {found} of {verdict.cells} values, at most {limit}: {word}"
