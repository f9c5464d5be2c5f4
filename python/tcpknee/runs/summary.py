"""What the statistics say of a run: metrics of its groups and cells, and verdicts between algorithms on paired seeds.

Everything is computed from the tables of a run and the cells of its `run.json`. The unit of evidence is the
repetition: repetition `r` of one cell is paired with repetition `r` of another, which ran on the same seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tcpknee.datasets.table import Table
from tcpknee.evidence.metrics import BY_NAME, LIMITED_BY, SIZES, Sizes, compared, of_sizes, primary
from tcpknee.evidence.stats import (
    FURTHEST_ADVICE,
    LEAST_TO_ADVISE,
    LEAST_TO_LOOK,
    MINIMAL_EFFECT,
    Estimate,
    Floats,
    Unit,
    estimate,
)
from tcpknee.evidence.verdicts import Pair, Side, Verdict, compare, shown
from tcpknee.human import counted

from . import doubts, groups, hosts
from .sampled import OverPaths, over_paths

REPETITION = Unit("repetition", "repetitions")
"""The unit of evidence of a run."""


@dataclass(frozen=True, eq=False)
class Group:
    """One `[[flow]]` table in one cell: its metrics, and their values by repetition (NaN: does not apply there). `each`
    has also those of percentiles that other repetitions lack."""

    cell: int
    group: int
    name: str
    algorithm: str
    workload: str
    count: int
    axes: Mapping[str, str]
    reps: npt.NDArray[np.int64]
    values: Mapping[str, Floats]
    each: Mapping[str, Floats]
    metrics: Mapping[str, Estimate]
    limited_by: Mapping[str, Estimate]

    @property
    def sizes(self) -> list[Sizes]:
        """Those that some of its transfers are of."""
        counts = ((sizes, self.metrics.get(of_sizes("transfers", sizes))) for sizes in SIZES)
        return [sizes for sizes, count in counts if count and count.mean > 0]

    @property
    def limits(self) -> list[tuple[str, Estimate]]:
        """What held it back most: the two greatest shares of time, from 5 % on."""
        shares = sorted(self.limited_by.items(), key=lambda entry: entry[1].mean, reverse=True)
        return [(limit, found) for limit, found in shares[:2] if found.mean >= 0.05]


@dataclass(frozen=True, eq=False)
class Total:
    """A whole cell: goodput of all flows, the share of the link used, Jain's index where there are several flows."""

    cell: int
    axes: Mapping[str, str]
    reps: npt.NDArray[np.int64]
    values: Mapping[str, Floats]
    metrics: Mapping[str, Estimate]

    @staticmethod
    def of_none(cell: int) -> Total:
        """Of what stands beside a run, whose link nobody knows."""
        return Total(cell, {}, np.empty(0, dtype=np.int64), {}, {})


@dataclass(frozen=True)
class Summary:
    """All that the statistics say of a run, in the order of the matrix."""

    groups: list[Group]
    totals: list[Total]
    verdicts: list[Verdict]
    over_paths: list[OverPaths] = field(default_factory=list)
    """Of a run with a `[[sample]]`: verdicts whose units are its paths."""
    warnings: list[str] = field(default_factory=list)

    @property
    def shown(self) -> list[Verdict]:
        """What text shows: the verdicts in the first metric of each pair. Warnings speak of these. None where paths
        are a sample: then `over_paths` is the answer."""
        return [] if self.over_paths else shown(self.verdicts)


def summarise(
    flows: Table,
    queue: Iterable[pa.RecordBatch] | None,
    cells: Sequence[Mapping[str, Any]],
    programs: pa.Table | None = None,
    cpu: pa.Table | None = None,
    host_costs: pa.Table | None = None,
    failed: Set[int] = frozenset(),
    *,
    looking: bool = False,
    repeat: int = 1,
) -> Summary:
    """Summary of a run's tables; `cells` as in `run.json`. A column of `flows` is read at a time, and of `queue` its
    columns `groups.OF_QUEUE` are taken a few rows at a time.

    Without `queue` no use of the link; `programs` gives groups of external programs what those measured themselves;
    `cpu` and `host_costs` give cells what their hosts spent. `failed`: the cells of which every repetition did.
    `looking`: repetitions were added until the verdicts were decided. `repeat`: how many a cell has in the end.
    """
    by_cell = {int(cell["index"]): cell for cell in cells}
    of_flows = groups.of_flows(flows, by_cell, programs)
    found = [_group(by_cell[part.cell], part) for part in of_flows]
    of_cells = hosts.added(groups.of_cells(flows, queue, by_cell), of_flows, by_cell, cpu, host_costs)
    totals = [_total(by_cell[part.cell], part) for part in of_cells]
    pairs = list(_pairs(found))
    summary = Summary(found, totals, compare(pairs, REPETITION, looking=looking), over_paths(pairs))
    ran = set(programs["cell"].to_pylist()) if programs is not None else set()
    return replace(summary, warnings=_warnings(summary, by_cell, ran, failed, repeat))


def is_decided(flows: pa.Table, cells: Sequence[Mapping[str, Any]], programs: pa.Table | None = None) -> bool:
    """Whether every verdict that text shows is: a difference, or an interval that is narrow enough."""
    by_cell = {int(cell["index"]): cell for cell in cells}
    found = [_group(by_cell[part.cell], part) for part in groups.of_flows(Table(flows), by_cell, programs)]
    verdicts = shown(compare(_pairs(found), REPETITION, looking=True))
    return bool(verdicts) and all(one.n >= LEAST_TO_LOOK and not one.too_wide for one in verdicts)


def _pairs(found: Sequence[Group]) -> Iterator[Pair]:
    """Groups of cells that are equal but for one algorithm and its own parameters: those that have it, and those that
    are beside it; then groups that share a cell."""
    alike: dict[tuple[object, ...], list[Group]] = {}
    beside: dict[tuple[object, ...], list[tuple[str, Group]]] = {}
    sharing: dict[int, list[Group]] = {}
    for group in found:
        alike.setdefault((group.group, group.workload, _but(group, group.group, group.algorithm)), []).append(group)
        for axis, algorithm in group.axes.items():
            other = ALGORITHM.fullmatch(axis)
            if other and int(other[1]) != group.group:
                key = (group.group, group.workload, axis, _but(group, int(other[1]), algorithm))
                beside.setdefault(key, []).append((algorithm, group))
        sharing.setdefault(group.cell, []).append(group)
    for members in alike.values():
        yield from (_pair(a, b, shared=False) for a, b in combinations(members, 2) if a.algorithm != b.algorithm)
    for neighbours in beside.values():
        for (left, a), (right, b) in combinations(neighbours, 2):
            if left != right:
                yield _pair(a, b, labels=(f"{a.name} beside {left}", f"{b.name} beside {right}"))
    for members in sharing.values():
        yield from (_pair(a, b, shared=True) for a, b in combinations(members, 2) if a.workload == b.workload)


ALGORITHM = re.compile(r"flow\.(\d+)\.algorithm")
"""The axis of a flow's algorithm."""


def _but(group: Group, flow: int, algorithm: str) -> tuple[tuple[str, str], ...]:
    """The group's axes without those of that flow's algorithm."""
    axis, own = f"flow.{flow}.algorithm", f"flow.{flow}.{algorithm}."
    return tuple((key, value) for key, value in group.axes.items() if key != axis and not key.startswith(own))


def _pair(a: Group, b: Group, *, shared: bool = False, labels: tuple[str, str] | None = None) -> Pair:
    labels = labels or _labels(a, b, shared=shared)
    left, right = (Side(label, group.reps, group.values) for label, group in zip(labels, (a, b), strict=True))
    # Of those that one of them has, which are its own parameters, too.
    both = {**a.axes, **b.axes}
    axes = {key: value for key, value in both.items() if value == a.axes.get(key, value) == b.axes.get(key, value)}
    names = _distinct(a, b, compared(a.workload))
    places, groups = (a.cell, b.cell), (a.group, b.group)
    main, limit = primary(a.workload), _limit(a, b)
    return Pair(left, right, names, shared, places, axes, primary=main, groups=groups, limit=limit)


def _distinct(a: Group, b: Group, names: tuple[str, ...]) -> tuple[str, ...]:
    """Without the percentiles that say the same as the one before: where both groups have one transfer at a time."""
    is_alone = all(np.all(group.values["members"] == 1) for group in (a, b))
    columns = [BY_NAME[name].column for name in names]
    return tuple(
        name
        for at, name in enumerate(names)
        if not (is_alone and BY_NAME[name].how == "percentile" and columns[at] in columns[:at])
    )


_NEARLY_ALL = 0.9
"""Share of the time from which on a limit leaves a congestion control no say."""

_NO_CHOICE = {
    "sndbuf": "the send buffer (`tcp_wmem`)",
    "rwnd": "the receive window (`tcp_rmem` of the far end)",
}
"""Limits that no congestion control changes."""


def _limit(a: Group, b: Group) -> str:
    """What held both back nearly all the time, if that is no matter of congestion control."""
    shares = [
        {limit: group.limited_by[limit].mean for limit in _NO_CHOICE if limit in group.limited_by} for group in (a, b)
    ]
    if any(sum(found.values()) < _NEARLY_ALL for found in shares):
        return ""
    held = [_NO_CHOICE[limit] for limit in _NO_CHOICE if max(found.get(limit, 0.0) for found in shares) >= 0.05]
    return f"; both were held back by {' and '.join(held)}: no congestion control changes that"


def _labels(a: Group, b: Group, *, shared: bool) -> tuple[str, str]:
    names = (a.name, b.name) if shared else (a.algorithm, b.algorithm)
    return names if names[0] != names[1] else (f"{a.name} (flow {a.group})", f"{b.name} (flow {b.group})")


def _group(cell: Mapping[str, Any], part: groups.Part) -> Group:
    spec: Mapping[str, Any] = next((flow for flow in cell["flows"] if flow["group"] == part.group), {})
    told = {name: _of_all(values) for name, values in part.values.items()}
    estimates = {name: estimate(values, BY_NAME[name].bounds) for name, values in told.items() if name in BY_NAME}
    shares = {limit: estimate(part.values[f"limited_by.{limit}"], (0.0, 1.0)) for limit in LIMITED_BY}
    return Group(
        cell=part.cell,
        group=part.group,
        name=part.name,
        algorithm=part.algorithm,
        workload=part.workload,
        count=int(spec.get("count", 1)),
        axes=dict(cell["axes"]),
        reps=part.reps,
        values=told,
        each={name: np.where(np.isinf(values), np.nan, values) for name, values in part.values.items()},
        metrics={name: found for name, found in estimates.items() if found is not None},
        limited_by={limit: found for limit, found in shares.items() if found is not None},
    )


def _of_all(values: Floats) -> Floats:
    """The values, or none of them where a repetition's falls on a transfer that is not complete: the repetitions that
    have one are the better ones."""
    return np.full_like(values, np.nan) if np.isinf(values).any() else values


def _total(cell: Mapping[str, Any], part: groups.Part) -> Total:
    metrics = [name for name in part.values if name in BY_NAME]
    estimates = {name: estimate(part.values[name], BY_NAME[name].bounds) for name in metrics}
    known = {name: found for name, found in estimates.items() if found is not None}
    return Total(part.cell, dict(cell["axes"]), part.reps, part.values, known)


def _warnings(
    summary: Summary, by_cell: Mapping[int, Mapping[str, Any]], ran: Set[int], failed: Set[int], repeat: int
) -> list[str]:
    """`ran`: the cells in which programs ran; `failed`: those of which every repetition did; `repeat`: as many
    repetitions has a cell in the end."""
    found, verdicts = summary.groups, summary.shown
    counts = {len(group.reps) for group in found}
    lines = []
    if counts == {1} and not summary.over_paths:
        give = "`repeat = 5` in the scenario" if repeat == 1 else f"all {repeat} of the scenario"
        lines.append(f"One repetition: no intervals and no verdicts; {give} would give them.")
    elif len(counts) > 1:
        lines.append(f"Cells have between {min(counts)} and {max(counts)} repetitions: the run is not complete.")
    if counts and min(counts) > 1 and all(m.identical for group in found for m in group.metrics.values()):
        lines.append(
            "Every repetition is identical: nothing in this scenario is random, so one would do (`repeat = 1`)."
        )
    wide = [verdict for verdict in verdicts if verdict.too_wide]
    if wide:
        are = "is" if len(wide) == 1 else "are"
        lines.append(
            f"{len(wide)} of {len(verdicts)} comparison{'s' if len(verdicts) > 1 else ''} {are} too wide to decide a "
            f"difference of {MINIMAL_EFFECT * 100:.0f} %; {_advice(wide)}."
        )
    for group in found:
        if told := _late(group):
            lines.append(told)
    lines += _without_effect(found)
    lines += doubts.of_settings(list(by_cell.values()))
    missing_cells = set(by_cell) - {group.cell for group in found}
    if missing_cells:
        silent = len(ran & missing_cells)
        if silent:
            lines.append(
                f"The programs of {silent} of {counted(len(by_cell), 'cell')} opened no connection between the hosts, "
                "so that nothing was measured there. {server} and {client} in a command are the hosts' addresses."
            )
        if ended := len((missing_cells & failed) - ran):
            lines.append(f"In {ended} of {counted(len(by_cell), 'cell')} every repetition failed.")
        if missing := len(missing_cells) - silent - ended:
            lines.append(f"{missing} of {len(by_cell)} cells have no repetition yet.")
    return lines


def _late(group: Group) -> str:
    """What cannot be known of a group as some of its transfers were not complete; "" where that leaves nothing out."""
    unknown = [name for name in ("p50", "p95", "p99") if f"completion_us_{name}" not in group.metrics]
    missing, members = (int(np.sum(group.values[name])) for name in ("unfinished", "members"))
    if not missing or not unknown:
        return ""
    axes = ", ".join(f"{key} {value}" for key, value in group.axes.items())
    return (
        f"cell {group.cell}{f' ({axes})' if axes else ''}, {group.name}: {missing} of {members} transfers were not "
        f"complete when the run ended, so that {' and '.join(unknown)} of their completion cannot be known of every "
        "repetition, and are left out; a longer `duration` would show them."
    )


def _without_effect(found: Sequence[Group]) -> Iterator[str]:
    """Axes but algorithms by whose values nothing differs, wherever they act. Of algorithms verdicts say so."""
    for axis in dict.fromkeys(axis for group in found for axis in group.axes if not ALGORITHM.fullmatch(axis)):
        alike: dict[object, list[Group]] = {}
        for group in found:
            if axis in group.axes:
                rest = tuple(item for item in group.axes.items() if item[0] != axis)
                alike.setdefault((group.group, rest), []).append(group)
        compared = [members for members in alike.values() if len(members) > 1]
        if compared and all(_is_same(members[0], other) for members in compared for other in members[1:]):
            values = list(dict.fromkeys(group.axes[axis] for members in compared for group in members))
            told = " and ".join(values) if len(values) <= _MOST_TOLD else f"its {len(values)} values"
            yield f"{axis} changes nothing here: {told} give every flow the same in each repetition."


_MOST_TOLD = 4
"""Values of an axis that a warning names."""


def _is_same(a: Group, b: Group) -> bool:
    return np.array_equal(a.reps, b.reps) and all(
        np.array_equal(values, b.values[name], equal_nan=True) for name, values in a.values.items()
    )


def _advice(wide: Sequence[Verdict]) -> str:
    """How many repetitions would narrow all of these."""
    beyond = [verdict.n for verdict in wide if verdict.units_needed is None]
    if beyond and min(beyond) < LEAST_TO_ADVISE:
        return f"how many repetitions would do is told from {LEAST_TO_ADVISE} on"
    if beyond:
        return f"more than {FURTHEST_ADVICE * max(beyond)} repetitions would be needed"
    most = max(verdict.units_needed or 0 for verdict in wide)
    return f"about {most} repetitions would do (`repeat = {most}`)"
