"""Two runs side by side: before and after a patch, one kernel and another, the simulator and a kernel.

A cell of one is compared with the cell of the other that has the same values of the axes, and a group of its flows
with the one in the same place. Repetitions are paired where both runs are by one engine and draw from one seed;
otherwise they are independent samples. Runs of scenarios that differ in what they have in common are refused, unless
the keys that differ are named: then these are what is compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

from tcpknee import _core
from tcpknee.arguments import LISTED, PATH, checked
from tcpknee.errors import UsageError
from tcpknee.evidence.metrics import METRICS, TOTALS
from tcpknee.evidence.metrics import compared as first_compared
from tcpknee.evidence.verdicts import Pair, Side, Verdict, compare
from tcpknee.shapes import Kind

from . import api
from .results import Run
from .summary import REPETITION, Group, Total

ALL_FLOWS = "all flows"
"""What a cell as a whole is called."""

_NOT_THE_SCENARIO = ("repeat", "seed")
"""Described, but of how often and from where it was drawn."""

_NAMED = 12
"""Keys that a refusal names."""

Place = tuple[tuple[str, str], ...]
"""A cell's axes and their values."""


@dataclass(frozen=True)
class Differing:
    """A key of the scenario with its values in cells of each run; "-" where one does not describe it."""

    key: str
    a: tuple[str, ...]
    b: tuple[str, ...]

    @property
    def is_rule(self) -> bool:
        """Whether a kernel decides it where the scenario does not: `sender.send_stamps`, `flow.0.cubic.per_ack`."""
        rule = re.sub(r"^\w+\.(\d+\.)?", "", self.key)
        return any(known["rule"] == rule for known in _core.kernel_rules())

    def __str__(self) -> str:
        return f"{self.key} ({', '.join(self.a)}; {', '.join(self.b)})"


@dataclass(frozen=True, eq=False)
class Compared:
    """A group of flows, or a whole cell, of both runs, and the verdicts of `b` beside `a`."""

    place: Place
    label: str
    a: Group | Total
    b: Group | Total
    verdicts: list[Verdict]

    @property
    def where(self) -> str:
        """`rtt 20ms, cubic`."""
        axes = [f"{key.removeprefix('path.')} {value}" for key, value in self.place if not key.endswith(".algorithm")]
        return ", ".join([*axes, self.label])


@dataclass(frozen=True, eq=False)
class Diff:
    """What a run `b` is beside a run `a`, both called by `names`."""

    a: Run
    b: Run
    names: tuple[str, str]
    differing: list[Differing]
    compared: list[Compared]
    only: tuple[list[str], list[str]]
    """Cells and groups of flows that one of them has and the other not."""

    @property
    def paired(self) -> bool:
        return _are_paired(self.a, self.b)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        return [verdict for one in self.compared for verdict in one.verdicts]

    def json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        from .differences_text import as_json

        return as_json(self)


_RUN = Kind("a run, or the path of its folder", lambda value: isinstance(value, Run) or PATH.holds(value))


@checked(a=_RUN, b=_RUN, varying=LISTED)
def diff(
    a: Run | str | PathLike[str],
    b: Run | str | PathLike[str],
    varying: Sequence[str] = (),
    names: tuple[str, str] | None = None,
) -> Diff:
    """Compares two runs, given as such or by their folders. `varying`: keys of the scenario in which they may differ.
    `names`: what they are called, if not by their folders.

    Raises UsageError: they differ in other keys, or have no cell in common. RunFolderError: no run is there.
    """
    a, b = (run if isinstance(run, Run) else api.open(run) for run in (a, b))
    names = names or _names(a, b)
    keys = [key for key in _axes(a, b) if key not in varying]
    places = [_places(run, keys, name, varying) for run, name in zip((a, b), names, strict=True)]
    common = [place for place in places[0] if place in places[1]]
    if not common:
        raise UsageError(
            f"{names[0]} and {names[1]}: have no cell in common: {_listed(places[0])} there, {_listed(places[1])} "
            "here; expected two runs of one scenario."
        )
    differing = _differing([(places[0][place], places[1][place]) for place in common])
    if "kernel" in varying:
        # What follows from it.
        varying = [*varying, *(one.key for one in differing if one.is_rule)]
    found = {one.key for one in differing}
    if wrong := [key for key in varying if key not in found and key not in _axes(a, b)]:
        told = ", ".join(one.key for one in differing) or "no key"
        raise UsageError(f'varying: got "{wrong[0]}", in which these runs are alike; they differ in {told}.')
    if left := [one for one in differing if one.key not in varying]:
        more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
        raise UsageError(
            f"{names[0]} and {names[1]}: are runs of scenarios that differ in {'; '.join(map(str, left[:_NAMED]))}"
            f"{more}; expected runs of one scenario. If this is what you compare, give --varying "
            f"{','.join(one.key for one in differing)}"
        )
    groups: list[list[Group | Total]] = [[*run.summary.groups, *run.summary.totals] for run in (a, b)]
    compared: list[Compared] = []
    only: tuple[list[str], list[str]] = ([], [])
    for side in (0, 1):
        only[side].extend(_where(place) for place in places[side] if place not in places[1 - side])
    apart = not _are_paired(a, b)
    for place in common:
        indices = [found[place]["index"] for found in places]
        here, there = (
            {_key(one): one for one in found if one.cell == at} for found, at in zip(groups, indices, strict=True)
        )
        compared += [_compared(place, here[key], there[key], names, apart) for key in here if key in there]
        only[0].extend(_where(place, _label(one)) for key, one in here.items() if key not in there)
        only[1].extend(_where(place, _label(one)) for key, one in there.items() if key not in here)
    return Diff(a, b, names, differing, compared, only)


def _names(a: Run, b: Run) -> tuple[str, str]:
    """What the runs are called: their folders' names where these differ."""
    if a.folder is None or b.folder is None:
        return "A", "B"
    short = a.folder.resolve().name, b.folder.resolve().name
    whole = str(a.folder), str(b.folder)
    return short if short[0] != short[1] else whole if whole[0] != whole[1] else (f"{short[0]} (A)", f"{short[1]} (B)")


def _are_paired(a: Run, b: Run) -> bool:
    return a.meta["engine"] == b.meta["engine"] and bool(a.meta["seed"] == b.meta["seed"])


def _axes(a: Run, b: Run) -> list[str]:
    """Axes of either run, in the order of the first."""
    return list(dict.fromkeys(key for run in (a, b) for cell in run.meta["cells"] for key, _ in cell["axes"]))


def _places(run: Run, keys: Sequence[str], name: str, varying: Sequence[str]) -> dict[Place, Mapping[str, Any]]:
    """The run's cells by their values of those axes; of an axis that only the other run has, what is described."""
    found: dict[Place, Mapping[str, Any]] = {}
    for cell in run.meta["cells"]:
        described = {key: value for key, value, _ in cell["describe"]} | dict(cell["axes"])
        place = tuple((key, described.get(key, "-")) for key in keys)
        if place in found:
            raise UsageError(
                f"varying: got {', '.join(varying)}, without which cells of {name} cannot be told apart; expected keys "
                "that are no axis of it, or an axis of one value."
            )
        found[place] = cell
    return found


def _differing(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> list[Differing]:
    """Keys of the scenario whose values differ in some pair of cells."""
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for pair in pairs:
        a, b = ({key: value for key, value, _ in cell["describe"]} for cell in pair)
        for key in dict.fromkeys((*a, *b)):
            if a.get(key) != b.get(key) and key not in _NOT_THE_SCENARIO:
                values = found.setdefault(key, ({}, {}))
                values[0][a.get(key, "-")] = None
                values[1][b.get(key, "-")] = None
    # What follows from other keys, such as a buffer in packets, is described too.
    written = [key for key in found if _is_key(key)] or list(found)
    return [Differing(key, *(tuple(values) for values in found[key])) for key in written]


def _is_key(described: str) -> bool:
    """Whether a scenario can have it: a key, or a parameter of an algorithm."""
    parts = re.sub(r"\.\d+\b", "", described).split(".")
    if parts[0] == "hop":
        parts[0] = "path"
    return ".".join(parts) in {key["path"] for key in _core.keys()} or (parts[0] == "flow" and len(parts) == 3)  # noqa: SIM118  (a function of the module)


def _key(one: Group | Total) -> int:
    """Its place in the cell; the whole cell stands last."""
    return one.group if isinstance(one, Group) else -1


def _label(one: Group | Total) -> str:
    from .output import flow_label

    return flow_label(one) if isinstance(one, Group) else ALL_FLOWS


def _compared(place: Place, a: Group | Total, b: Group | Total, names: tuple[str, str], apart: bool) -> Compared:
    first = first_compared(a.workload) if isinstance(a, Group) else ()
    order = dict.fromkeys((*first, *(one.name for one in (METRICS if isinstance(a, Group) else TOTALS))))
    metrics = tuple(name for name in order if name in a.metrics and name in b.metrics)
    left, right = (Side(name, one.reps, one.values) for name, one in zip(names, (a, b), strict=True))
    pair = Pair(left, right, metrics, shared=False, places=(a.cell, b.cell), axes=dict(place), apart=apart)
    labels = dict.fromkeys((_label(a), _label(b)))
    return Compared(place, " and ".join(labels), a, b, compare([pair], REPETITION))


def _where(place: Place, label: str = "") -> str:
    """`path.rtt 20ms, flow.0.algorithm cubic`."""
    return ", ".join([*(f"{key} {value}" for key, value in place), *([label] if label else [])]) or "its one cell"


def _listed(places: Mapping[Place, Any]) -> str:
    found = [_where(place) for place in places]
    return "; ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
