"""Estimates as text: the one place that rounds a number and its interval.

Terminal, report, verdicts, expectations and published figures all write through it, so that a number has the same
digits wherever it stands: those that its interval allows.
"""

from __future__ import annotations

import math

from tcpknee import human

from .stats import Estimate

_MOST_PLACES = 15


def plus_minus(found: Estimate, divisor: float = 1.0) -> tuple[str, str]:
    """`("48.12", "±0.31")`; without a second part for a single repetition, or when all are identical. As `bracketed`
    where the interval ends at the most that the quantity can be, as an index of 1: ± would go beyond."""
    if found.low is not None and found.high is not None and found.high - found.mean < 0.9 * (found.mean - found.low):
        return bracketed(found, divisor)
    number, places = _rounded(found, divisor)
    half = _half(found, divisor)
    if half is None:
        return number, ""
    # Rounded up, so never ±0.
    return number, f"±{math.ceil(round(half * 10**places, 6)) / 10**places:.{places}f}"


def bracketed(found: Estimate, divisor: float = 1.0) -> tuple[str, str]:
    """`("48.12", "[47.81, 48.43]")`; without a second part as in `plus_minus`."""
    return _with_bracket(found, divisor)


def ratio(found: Estimate) -> tuple[str, str]:
    """`("21.0×", "[19.4, 22.5]")`, with enough digits to tell it from 1."""
    number, bracket = _with_bracket(found, 1.0, apart_from=1.0)
    return f"{number}×", bracket


def quantity(found: Estimate, kind: str) -> tuple[str, str]:
    """`("48.12 Mbit/s", "[47.81, 48.43]")`: in the unit of its kind that fits."""
    divisor, unit = human.scale(kind, found.mean)
    number, bracket = bracketed(found, divisor)
    return f"{number} {unit}".rstrip(), bracket


def _with_bracket(found: Estimate, divisor: float, apart_from: float | None = None) -> tuple[str, str]:
    number, places = _rounded(found, divisor, apart_from)
    if found.low is None or found.high is None or found.identical:
        return number, ""
    low, high = found.low / divisor, found.high / divisor
    # The two ends of an interval never read alike.
    while _fixed(low, places) == _fixed(high, places) and low != high and places < _MOST_PLACES:
        places += 1
        number = _fixed(found.mean / divisor, places)
    return number, f"[{_fixed(low, places)}, {_fixed(high, places)}]"


def _half(found: Estimate, divisor: float) -> float | None:
    """The longer side of the interval; None without one."""
    if found.low is None or found.high is None or found.identical:
        return None
    return max(found.high - found.mean, found.mean - found.low) / divisor or None


def _rounded(found: Estimate, divisor: float, apart_from: float | None = None) -> tuple[str, int]:
    """The number, and its decimal places: two digits of the interval, but no more than four digits of the number, and
    no more than three places where these make three digits. Without an interval three digits."""
    value, half = found.mean / divisor, _half(found, divisor)
    if not math.isfinite(value) or value == 0:
        return human.digits(value), 0 if half is None else max(0, 1 - math.floor(math.log10(half)))
    size = math.floor(math.log10(abs(value)))
    places = 2 - size
    if half is not None:
        places = min(1 - math.floor(math.log10(half)), 3 - size, max(3, 2 - size))
    if apart_from is not None and value != apart_from:
        places = max(places, min(1 - math.floor(math.log10(abs(value - apart_from))), 5 - size))
    places = min(max(places, 0), _MOST_PLACES)
    return _fixed(value, places), places


def _fixed(value: float, places: int) -> str:
    """With that many decimals; zero has no sign."""
    text = f"{value:.{places}f}"
    return text if float(text) else text.removeprefix("-")
