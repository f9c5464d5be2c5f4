"""The curve of a receive window over the round-trip time, among connections by RTT and bandwidth."""

from __future__ import annotations

from tcpknee import human

from .binned import Ceiling
from .cohorts import Cohorts
from .quantities import Quantity

LIMITED_PCT = 50
"""Share of its busy time from which on a connection counts as limited by the receive window."""
LIMITED_AT_LEAST = 20


def _limited(found: Cohorts, rtt: Quantity, bandwidth: Quantity) -> tuple[int, float] | None:
    """Connections that the receive window limits, and the median of their windows in bytes."""
    if not {"rwnd_limited_pct", rtt.column, bandwidth.column} <= found.columns:
        return None
    (row,) = found.ask(
        f"""
        select count(*) as n, median({bandwidth.column} * {rtt.column} / 8e6) as window
        from {found.connections}
        where rwnd_limited_pct >= {LIMITED_PCT} and {bandwidth.column} > 0 and {rtt.column} > 0
        """
    ).to_pylist()
    return (row["n"], row["window"]) if row["n"] >= LIMITED_AT_LEAST else None


def ceiling(found: Cohorts, rtt: Quantity, bandwidth: Quantity) -> Ceiling | None:
    """None: too few connections are limited by it."""
    limited = _limited(found, rtt, bandwidth)
    # Bytes in the units of the axes: microseconds and bits per second, each scaled.
    return Ceiling(limited[1] * 8e6 * rtt.scale * bandwidth.scale) if limited else None


def words(found: Cohorts, rtt: Quantity, bandwidth: Quantity) -> str:
    """How many connections it holds back, and what the curve is; empty: too few."""
    limited = _limited(found, rtt, bandwidth)
    if limited is None:
        return ""
    share = human.quantity("share", limited[0] / max(sum(found.counts.values()), 1))
    return (
        f"The receive window limited {limited[0]:,} connections ({share}) for half of their busy time or more; the "
        f"curve is the median of their windows, {human.quantity('bytes', limited[1])}, over the RTT."
    )
