"""Values of an axis of a matrix as numbers, where they are such: `10ms, 50ms, 0.2s` lie on an axis of milliseconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_FACTORS: tuple[dict[str, float], ...] = (
    {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0},
    {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3},
    {"%": 1.0},
    {"bdp": 1.0},
    {"packets": 1.0, "packet": 1.0},
    {"": 1.0},
)
"""Units of one kind, and their factors."""

_VALUE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z/%]*)")

AT_LEAST = 3
"""Fewer values show no distance."""

_WIDE = 10.0
"""From so many times the least value on, powers of ten say more than equal steps."""


@dataclass(frozen=True)
class Numbers:
    """The number of each value, all in one unit."""

    of: dict[str, float]
    unit: str

    @property
    def is_logarithmic(self) -> bool:
        least, most = self.least_above_zero, max(self.of.values())
        return most >= _WIDE * least

    @property
    def least_above_zero(self) -> float:
        return min(value for value in self.of.values() if value > 0)


def seconds(text: str) -> float:
    """Of a time as reports of scenarios show it: 0.02 of `20ms`."""
    number, unit = _VALUE.fullmatch(text).groups()  # type: ignore[union-attr]
    return float(number) * _FACTORS[0][unit]


def numbers(values: Sequence[str]) -> Numbers | None:
    """None: they are of different kinds, or no numbers, or too few."""
    found = [_VALUE.fullmatch(value) for value in values]
    parts = [(float(one[1]), one[2]) for one in found if one]
    if len(parts) < max(len(values), AT_LEAST):
        return None
    factors = next((kind for kind in _FACTORS if all(unit in kind for _, unit in parts)), None)
    if factors is None:
        return None
    # As most of them are written, and the first where none is more frequent.
    units = [unit for _, unit in parts]
    unit = max(units, key=units.count)
    of = {value: number * factors[one] / factors[unit] for value, (number, one) in zip(values, parts, strict=True)}
    return Numbers(of, unit) if len(set(of.values())) == len(of) else None
