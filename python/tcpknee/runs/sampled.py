"""Verdicts over the paths of a `[[sample]]`: each path counts once, and what paths differ by is in the interval.

Repetitions of a path are averaged first. They are no further evidence of other paths, and a path that has one is a path
all the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tcpknee.evidence.stats import Unit
from tcpknee.evidence.verdicts import Pair, Side, Verdict, compare, paired

PATH = Unit("path", "paths")

_ROW = re.compile(r"sample\.\d+\.row")
"""The axis of a sample: which path it is."""

Path = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class OverPaths:
    """A verdict whose units are paths."""

    verdict: Verdict
    greater: int
    """On how many paths the one with the greater mean is greater."""
    paths: int
    """How many there are."""
    lacking: Mapping[str, int]
    """On how many of them one side has no value, as a transfer was not complete; those do not count."""

    @property
    def text(self) -> str:
        """`goodput: bbr3 is 1.62× cubic [1.31, 2.00], above it on 41 of 60 paths`."""
        text = self.verdict.text
        if self.verdict.decision in ("more", "less"):
            text += f", above it on {self.greater} of {self.verdict.n} {PATH.many}"
        if self.lacking:
            told = ", ".join(f"{label} on {count}" for label, count in self.lacking.items())
            text += f"; of {self.verdict.n} of {self.paths} {PATH.many}, as there is no value of {told}"
        return text


def over_paths(pairs: Sequence[Pair]) -> list[OverPaths]:
    """The pairs of cells that differ by their path alone, taken together. Of runs without a sample none."""
    alike: dict[tuple[object, ...], dict[Path, Pair]] = {}
    seen: Counter[tuple[object, ...]] = Counter()
    sampled = [(path, pair) for pair in pairs if (path := _path(pair.axes))]
    columns = _columns(sampled)
    for path, pair in sampled:
        rest = _rest(pair.axes, columns)
        kind = (pair.a.label, pair.b.label, pair.metrics, pair.shared, tuple(rest.items()))
        # Flows of several tables may be called the same in one cell.
        seen[kind, path] += 1
        alike.setdefault((*kind, seen[kind, path]), {})[path] = pair
    return [found for by_path in alike.values() if len(by_path) > 1 for found in _found(by_path, columns)]


def _found(by_path: Mapping[Path, Pair], columns: set[str]) -> Iterator[OverPaths]:
    pairs = list(by_path.values())
    first = pairs[0]
    names = (*first.metrics, "members")
    sides = [_side(pairs, place, names) for place in (0, 1)]
    axes = _rest(first.axes, columns)
    whole = replace(first, a=sides[0], b=sides[1], axes=axes, limit="")
    for verdict in compare([whole], PATH):
        left, right = paired(whole, verdict.metric)
        is_more = verdict.value > (1 if verdict.scale == "ratio" else 0)
        greater = int(np.sum(right > left if is_more else left > right))
        missing = {side.label: int(np.isnan(side.values[verdict.metric]).sum()) for side in sides}
        yield OverPaths(verdict, greater, len(pairs), {label: count for label, count in missing.items() if count})


def _side(pairs: Sequence[Pair], place: int, names: Sequence[str]) -> Side:
    """The first or second group of each pair, with the mean over the repetitions that both have as its values."""
    values: dict[str, list[float]] = {name: [] for name in names}
    for pair in pairs:
        side, other = (pair.a, pair.b)[place], (pair.b, pair.a)[place]
        both = np.isin(side.units, other.units)
        for name in names:
            known = side.values[name][both]
            known = known[~np.isnan(known)]
            values[name].append(float(known.mean()) if len(known) else np.nan)
    label = (pairs[0].a, pairs[0].b)[place].label
    return Side(label, np.arange(len(pairs)), {name: np.array(found) for name, found in values.items()})


def _path(axes: Mapping[str, str]) -> Path:
    return tuple((key, value) for key, value in axes.items() if _ROW.fullmatch(key))


def _rest(axes: Mapping[str, str], columns: set[str]) -> dict[str, str]:
    """The axes that multiply the paths."""
    return {key: value for key, value in axes.items() if key not in columns}


def _columns(sampled: Sequence[tuple[Path, Pair]]) -> set[str]:
    """Axes that are one for each path: those of the samples."""
    by_path: dict[str, dict[Path, set[str]]] = {}
    for path, pair in sampled:
        for key, value in pair.axes.items():
            by_path.setdefault(key, {}).setdefault(path, set()).add(value)
    return {key for key, values in by_path.items() if all(len(each) == 1 for each in values.values())}
