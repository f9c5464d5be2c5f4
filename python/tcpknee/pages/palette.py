"""Colours, dashes and shapes: one set per algorithm, the same in every figure.

The colours are those of Okabe and Ito (2008), told apart with every common kind
of colour blindness; yellow and black are left out, which vanish on white or black
paper. Shapes say the same a second time, and so do dashes where a line is smooth enough
for them. Several lines of one colour differ in how light they are.
"""

from __future__ import annotations

from collections.abc import Iterable

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
#: Short gaps: a line under another shows through.
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (9, 2), (4, 2), (9, 2, 2, 2), (2, 2), (16, 3), (6, 2, 2, 2, 2, 2))

# The algorithms that most runs compare keep their look from one report to the next.
FIXED = ("cubic", "bbr1", "reno")

#: What held a flow back, in the order of the stack: fill, and ink that reads on it. After Tol's muted
#: scheme, so that no limit looks like an algorithm.
LIMITS = {
    "congestion window": ("#5E4FA2", "white"),
    "pacing": ("#88CCEE", "black"),
    "receive window": ("#AA4466", "white"),
    "send buffer": ("#DDCC77", "black"),
    "application": ("#117733", "white"),
    "processors": ("#882255", "white"),
    "not told": ("#BBBBBB", "black"),
}


def slots(algorithms: Iterable[str]) -> dict[str, int]:
    """Each algorithm's place in the palette: fixed ones first, the rest by name."""
    present = set(algorithms)
    place = {name: FIXED.index(name) for name in FIXED if name in present}
    place.update({name: len(FIXED) + k for k, name in enumerate(sorted(present - set(FIXED)))})
    return place


def colour(slot: int) -> str:
    return COLOURS[slot % len(COLOURS)]


#: Parts of white (above 0) or black (below) in the colour of a second, third, … line of one colour. No darker than
#: this: on black paper it would vanish.
TINTS = (0.0, 0.42, -0.3, 0.65)


def tint(ink: str, turn: int) -> str:
    """The colour of line `turn`, from 0, of those that share `ink`."""
    part = TINTS[turn % len(TINTS)]
    towards = 255 if part > 0 else 0
    levels = (int(ink[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(level + abs(part) * (towards - level)):02X}" for level in levels)


def shape(slot: int) -> str:
    # A second turn through the colours takes other shapes.
    return SHAPES[(slot + slot // len(COLOURS)) % len(SHAPES)]


def dash(index: int) -> list[int]:
    return list(DASHES[index % len(DASHES)])


#: Classes of call stacks: fills on which black letters read.
CLASSES = {
    "data copy": "#EE8866",
    "skb": "#EEDD88",
    "memory": "#FFAABB",
    "TCP/IP": "#77AADD",
    "netdev": "#99DDFF",
    "scheduler": "#BBCC33",
    "lock": "#FF9F80",
    "timer": "#44BB99",
    "entry": "#C9B8E8",
    "BPF": "#D8B38A",
    "user": "#AAAA66",
    "other": "#DDDDDD",
}
