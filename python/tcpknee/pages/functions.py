"""The functions of sampled stacks: which share of the busy samples each has, and who calls one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tcpknee import human
from tcpknee.errors import UsageError
from tcpknee.say import aligned

HEADS = ("function", "itself %", "with calls %")
BESIDE_HEADS = ("function", "before %", "now %", "change %", "all before", "all now")
"""The last two are with calls."""
CALLER_HEADS = ("caller", "share %")
CALLER_BESIDE_HEADS = ("caller", "before %", "now %", "change %")
SHOWN = 20
"""Rows in the terminal."""
SHOWN_ON_PAGE = 100
_OF_KERNEL = "_[k]"
_COLUMNS = 80
"""Of a terminal."""

Stacks = Iterable[tuple[str, float]]
"""Folded stacks with their samples."""


@dataclass(frozen=True)
class Functions:
    """Samples by function, as shares of all busy ones."""

    itself: dict[str, float]
    """It was running."""
    within: dict[str, float]
    """It was running, or something that it called."""


def of(stacks: Stacks) -> Functions:
    """The functions of stacks; the program that a stack begins with is none."""
    itself: dict[str, float] = defaultdict(float)
    within: dict[str, float] = defaultdict(float)
    total = 0.0
    for stack, samples in stacks:
        _, *frames = stack.split(";")
        total += samples
        if frames:
            itself[frames[-1]] += samples
        for frame in set(frames):
            within[frame] += samples
    return Functions(*({name: value / total for name, value in one.items()} for one in (itself, within)))


def rows(now: Functions, before: Functions | None = None, shown: int = SHOWN) -> list[list[str]]:
    """Rows under HEADS, those with the largest share first; or under BESIDE_HEADS, those that changed most first."""
    if before is None:
        order = sorted(now.within, key=lambda name: (-now.itself.get(name, 0), -now.within[name], name))
        return [[_name(name), _share(now.itself, name), _share(now.within, name)] for name in order[:shown]]
    both = now.within.keys() | before.within.keys()

    def rank(name: str) -> tuple[float, float, float, str]:
        pairs = [(now.itself, before.itself), (now.within, before.within)]
        changes = [abs(one.get(name, 0) - other.get(name, 0)) for one, other in pairs]
        return -changes[0], -changes[1], -max(now.itself.get(name, 0), before.itself.get(name, 0)), name

    return [
        [
            _name(name),
            _share(before.itself, name),
            _share(now.itself, name),
            _change(before.itself, now.itself, name),
            _share(before.within, name),
            _share(now.within, name),
        ]
        for name in sorted(both, key=rank)[:shown]
    ]


def callers(function: str, now: Stacks, before: Stacks | None = None) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: who calls the function, with the share of the busy samples in which that call was under way.

    Raises UsageError: no stack has the function.
    """
    known: set[str] = set()
    found = _callers(function, now, known)
    then = _callers(function, before, known) if before is not None else None
    if not found and not then:
        names = sorted({_name(name).removesuffix(" [k]") for name in known})
        if not names:
            raise UsageError(
                f'--function: got "{function}", and no call stack was sampled; expected stacks to look in.'
            )
        raise UsageError(
            f'--function: got "{function}"; ' + human.suggest(function, names, "expected a function such as")
        )
    if then is None:
        order = sorted(found, key=lambda name: (-found[name], name))
        return [*CALLER_HEADS], [[_name(name), _share(found, name)] for name in order]
    order = sorted(found.keys() | then.keys(), key=lambda name: (-max(found.get(name, 0), then.get(name, 0)), name))
    return [*CALLER_BESIDE_HEADS], [
        [_name(name), _share(then, name), _share(found, name), _change(then, found, name)] for name in order
    ]


def lines(heads: Sequence[str], rows: list[list[str]]) -> list[str]:
    """The table for a terminal, its names cut to what the figures leave of its width."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    room = _COLUMNS - sum(2 + width for width in widths[1:])
    return aligned(
        [heads, *([_cut(name, room), *figures] for name, *figures in rows)], left=[True, *[False] * (len(heads) - 1)]
    )


def _cut(name: str, room: int) -> str:
    """What fits, with the mark of the kernel's functions."""
    if len(name) <= room:
        return name
    mark = " [k]" if name.endswith(" [k]") else ""
    return f"{name[: room - 1 - len(mark)]}…{mark}"


def _callers(function: str, stacks: Stacks, known: set[str]) -> dict[str, float]:
    """The share of the busy samples by caller; `known` gets the functions that were met."""
    wanted = function.removesuffix(" [k]").removesuffix(_OF_KERNEL)
    found: dict[str, float] = defaultdict(float)
    total = 0.0
    for stack, samples in stacks:
        frames = stack.split(";")
        known.update(frames[1:])
        total += samples
        # Each caller once, also where the function calls itself.
        for caller in {caller for caller, frame in pairwise(frames) if frame.removesuffix(_OF_KERNEL) == wanted}:
            found[caller] += samples
    return {name: samples / total for name, samples in found.items()}


def _name(frame: str) -> str:
    """As `perf report` writes it: [k] behind those of the kernel."""
    return f"{frame.removesuffix(_OF_KERNEL)} [k]" if frame.endswith(_OF_KERNEL) else frame


def _share(shares: dict[str, float], name: str) -> str:
    return f"{100 * shares[name]:.2f}" if name in shares else "-"


def _change(before: dict[str, float], now: dict[str, float], name: str) -> str:
    return f"{100 * (now.get(name, 0) - before.get(name, 0)):+.2f}"
