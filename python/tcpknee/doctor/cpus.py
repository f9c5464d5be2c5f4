"""Sets of processors, as files below /proc and /sys have them: masks and lists."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 1 << 16
"""No machine has a processor of this number: a list that names one is cut there."""


def of_mask(text: str) -> list[int]:
    """Processors of a mask, hexadecimal words of 32 bits with commas between: `3`, `ff,00000000`. Raises ValueError."""
    bits = int(text.strip().replace(",", "") or "0", 16)
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


def of_list(text: str) -> list[int]:
    """Processors of a list: `0-3,8`. Raises ValueError."""
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), min(int(last or first), MOST) + 1)
    return found


def mask_like(text: str, cpus: Iterable[int]) -> str:
    """The mask of the processors, with as many digits as `text` has."""
    digits = len(text.strip().replace(",", ""))
    plain = f"{sum(1 << cpu for cpu in set(cpus)):x}".zfill(digits)
    groups = []
    while plain:
        groups.append(plain[-8:])
        plain = plain[:-8]
    return ",".join(reversed(groups))
