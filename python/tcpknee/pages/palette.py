"""Colours, dashes and shapes: a colour per family of algorithms, and one look per algorithm, the same in every figure
and on the site.

The colours are those of Okabe and Ito (2008), told apart with every common kind
of colour blindness; yellow and black are left out, which vanish on white or black
paper. Shapes say the same a second time, and so do dashes where a line is smooth enough
for them. Members of a family, and several lines of one colour, differ in how light they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
#: Short gaps: a line under another shows through.
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (9, 2), (4, 2), (9, 2, 2, 2), (2, 2), (16, 3), (6, 2, 2, 2, 2, 2))

#: Families, a colour each in the order of COLOURS; members are told apart by how light they are, and by shape. The last
#: colour is nobody's: queues have it.
FAMILIES = {
    "CUBIC": ("cubic", "cubic_preack", "bic"),
    "BBR": ("bbr1", "bbr2", "bbr3"),
    "Reno": ("reno", "westwood", "veno", "hybla"),
    "by delay": ("vegas", "nv", "lp", "cdg", "compound", "yeah"),
    "by ECN": ("dctcp", "prague"),
    "for high speed": ("htcp", "highspeed", "scalable", "illinois"),
}
KNOWN = {
    name: family + len(COLOURS) * rank
    for family, members in enumerate(FAMILIES.values())
    for rank, name in enumerate(members)
}
"""The place of each algorithm: its family's colour, by turn."""
KNOWN["bbr"] = KNOWN["bbr1"]

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


def slots(names: Iterable[str]) -> dict[str, int]:
    """The place of each algorithm, or of whatever is compared, in the palette: known ones have theirs, the rest take by
    name what is free, colours of no common family first."""
    present = set(names)
    place = {name: KNOWN[name] for name in KNOWN if name in present}
    if "bbr1" in place:
        place.pop("bbr", None)
    order = (turn * len(COLOURS) + at for turn in itertools.count() for at in (3, 4, 5, 6, 0, 1, 2))
    free = (slot for slot in order if slot not in place.values())
    place.update(zip(sorted(present - place.keys()), free, strict=False))
    return place


def base(slot: int) -> str:
    """The colour of a place's family."""
    return COLOURS[slot % len(COLOURS)]


def turn(slot: int) -> int:
    """Which of its colour a place is, from 0."""
    return slot // len(COLOURS)


def colour(slot: int) -> str:
    return tint(base(slot), turn(slot))


#: Parts of white (above 0) or black (below) in the colour of a second, third, … line of one colour. No darker than
#: this: on black paper it would vanish.
TINTS = (0.0, 0.42, -0.3, 0.65)


def tint(ink: str, number: int) -> str:
    """The colour of line `number`, from 0, of those that share `ink`."""
    part = TINTS[number % len(TINTS)]
    towards = 255 if part > 0 else 0
    levels = (int(ink[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(level + abs(part) * (towards - level)):02X}" for level in levels)


#: The colours above on paper without colours, a row per tint. Neighbours of the first row differ most: two of them are
#: what most figures compare. Algorithms of one dash and shape have greys far apart; of others, these tell apart.
GREYS = (
    ("#000000", "#999999", "#595959", "#BBBBBB", "#2B2B2B", "#CCCCCC", "#7A7A7A"),
    ("#666666", "#000000", "#999999", "#000000", "#AAAAAA", "#000000", "#222222"),
    ("#CCCCCC", "#444444", "#CCCCCC", "#666666", "#BBBBBB", "#888888", "#BBBBBB"),
    ("#000000", "#AAAAAA", "#000000", "#333333", "#666666", "#444444", "#222222"),
)
_GREY = {
    tint(ink, number): grey for number, greys in enumerate(GREYS) for ink, grey in zip(COLOURS, greys, strict=True)
}


def grey(ink: str) -> str:
    """A colour's grey: that of its algorithm, or one as light as it is (ITU-R BT.709)."""
    if ink.upper() in _GREY:
        return _GREY[ink.upper()]
    red, green, blue = (int(ink[at : at + 2], 16) for at in (1, 3, 5))
    level = round(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    return f"#{level:02X}{level:02X}{level:02X}"


def shape(slot: int) -> str:
    # A second turn through the colours takes other shapes.
    return SHAPES[(slot + turn(slot)) % len(SHAPES)]


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
