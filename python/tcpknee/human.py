"""Text for people: numbers with three significant digits and a unit that fits, counts, and what was perhaps meant."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_STEPS: dict[str, tuple[tuple[float, str], ...]] = {
    "rate": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "bytes": ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1.0, "B")),
    "pct": ((1.0, "%"),),
    "share": ((0.01, "%"),),
    "per_sec": ((1.0, "/s"),),
    "segments": ((1.0, "segments"),),
}


def scale(kind: str, largest: float) -> tuple[float, str]:
    """The divisor and unit in which `largest` reads best; (1, "") for kinds without a unit."""
    if kind == "time":
        # Milliseconds from 0.1 ms to 10 s: delays are compared in them.
        if abs(largest) >= 1e7:
            return 1e6, "s"
        return (1e3, "ms") if abs(largest) >= 100 or largest == 0 else (1.0, "us")
    steps = _STEPS.get(kind, ((1.0, ""),))
    return next((step for step in steps if abs(largest) >= step[0]), steps[-1])


_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGT]?)(i?)B")


def bytes_of(text: str) -> float | None:
    """What a size such as 5GB or 64KiB means; None: it is none."""
    size = _BYTES.fullmatch(text.strip())
    if size is None:
        return None
    power = " KMGT".index((size[2] or " ").upper())
    return float(float(size[1]) * (1024 if size[3] else 1000) ** power)


def digits(value: float, significant: int = 3) -> str:
    """Fixed-point text with that many significant digits; whole numbers are never cut."""
    if not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    places = max(0, significant - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{min(places, 9)}f}"
    if "." in text and len(text.split(".")[0].lstrip("-")) > significant:
        text = text.split(".")[0]
    return text


def quantity(kind: str, value: float) -> str:
    """`value`, in the base unit of its kind (bit/s, us, bytes, %), with its unit: `48.1 Mbit/s`."""
    divisor, unit = scale(kind, value)
    return f"{digits(value / divisor)} {unit}".rstrip()


def counted(count: int, one: str) -> str:
    """`1 repetition`, `1,200 repetitions`."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"


def agreeing(sentence: str) -> str:
    """A sentence that begins with how many of what were or have: of one in the singular."""
    singular = {"were": "was", "have": "has", "are": "is"}
    return re.sub(
        r"^1 (\S+?)s\b(.*?)\b(were|have|are)\b",
        lambda found: f"1 {found[1]}{found[2]}{singular[found[3]]}",
        sentence,
    )


def duration(ns: int) -> str:
    """A length of time for notes: `0.5 s`, `12 s`, `3 min 20 s`."""
    seconds = ns / 1e9
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


_MOST_SUGGESTED = 20
"""Names that a sentence lists; of more the nearest."""


def suggest(
    got: str, known: Sequence[str], expected: str, shown: Sequence[str] | None = None, besides: str = ""
) -> str:
    """The end of a sentence, and perhaps another: `expected …: a, b, c. Did you mean "b"?`.

    Of many that are known the nearest are said, unless `shown` are to be; `besides`: what else may stand there."""
    from difflib import SequenceMatcher, get_close_matches

    if shown is None and len(known) > _MOST_SUGGESTED:
        near = sorted(known, key=lambda name: -SequenceMatcher(None, got, name).ratio())[: _MOST_SUGGESTED // 4]
        listed = f"{', '.join(near)} and {len(known) - len(near)} more"
    else:
        listed = ", ".join(known if shown is None else shown)
    close = get_close_matches(got, known, n=1)
    return f"{expected} {listed}{besides}." + (f' Did you mean "{close[0]}"?' if close else "")
