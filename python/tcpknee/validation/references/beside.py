"""Compares the simulator with results that were measured elsewhere: `knee conform --against FILE.csv`.

Each cell of the file is simulated with the file's settings and compared flow by flow. As in `conform`, what cannot be
compared is a disagreement: a value that is missing on one side, a goodput or a round-trip time of zero.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tcpknee import _core, algorithms
from tcpknee.errors import UsageError
from tcpknee.evidence import stats
from tcpknee.human import suggest
from tcpknee.runs import pool, tables
from tcpknee.runs.pool import Key, Watcher
from tcpknee.validation.conformance.conform import SHARE, Compared, Verdict

from .reference import Cell, Reference, Row

Flows = Sequence[Mapping[str, Any]]
"""The metrics of each flow of a run."""

GOODPUT_PCT = 1.0
GOODPUT_LOSSY_PCT = 5.0
"""Under random loss, of means of at least `DRAWS` runs."""
GOODPUT_FEW_PCT = 25.0
"""Of fewer: runs of one kernel differ by as much."""
DRAWS = 8
SRTT_PCT = 3.0
RETRANSMIT_POINTS = 0.2


@dataclass(frozen=True)
class Beside(Compared):
    """`group`: the row of the suite's table. `line`: where the file has the cell. `milliseconds`: the difference of a
    time. `low`, `high`: the 95 % interval of the difference of the means, where the cell was run more than once."""

    group: str
    line: int
    milliseconds: float | None = None
    low: float | None = None
    high: float | None = None


class _Simulator:
    """The cells of a file as one engine of the pool."""

    def __init__(self, reference: Reference, cells: Sequence[Cell]) -> None:
        self.scenarios = [reference.parsed(cell, repeat=repetitions(cell)) for cell in cells]
        self.cells = [{**scenario.cells[0], "index": i} for i, scenario in enumerate(self.scenarios)]

    def run_cell(self, index: int, rep: int, *, cancel: Any = None, progress: Any = None) -> Flows:
        output = self.scenarios[index].run_cell(0, rep, cancel=cancel, progress=progress)
        return measure(tables.of_simulator(output), self.cells[index])


MANY = 16
"""Draws that tell a distribution: a cell that was measured as often is simulated no more often."""


def repetitions(cell: Cell) -> int:
    """Returns how often a cell is simulated: once, or if chance decides it twice as often as it was measured, up to
    `MANY` times or as often."""
    runs = len(cell.runs)
    return max(runs, min(2 * runs, MANY)) if runs > 1 else 1


def every_repetition(cells: Sequence[Cell]) -> list[Key]:
    """Lists the repetitions to simulate of those cells."""
    return [(i, rep) for i, cell in enumerate(cells) for rep in range(repetitions(cell))]


def chosen(reference: Reference, only: Sequence[str]) -> list[Cell]:
    """Selects the cells of some suites, groups or algorithms, or all. Raises `UsageError`, `ReferenceError`."""
    cells = reference.cells()
    names = [{cell.suite, cell.group, *(flow["flow.algorithm"] for flow in cell.flows)} for cell in cells]
    known = sorted(set().union(*names))
    wanted = {name if name in known else algorithms.ours(name) for name in only}
    if unknown := next((name for name in only if not {name, algorithms.ours(name)} & set(known)), None):
        raise UsageError(f'--only: got "{unknown}"; {suggest(unknown, known, f"{reference.file} has")}')
    algorithms.note({name: algorithms.ours(name) for name in only if name not in known})
    return [cell for cell, mine in zip(cells, names, strict=True) if not wanted or mine & wanted]


def simulate(
    reference: Reference, cells: Sequence[Cell], keys: Sequence[Key], *, workers: int, watcher: Watcher
) -> dict[Key, Flows]:
    """Simulates those repetitions of the cells. Raises `ReferenceError` with the line of a cell that is no scenario."""
    engine = _Simulator(reference, cells)
    found: dict[Key, Flows] = {}
    watcher.start(f"{len(cells)} cells of {reference.file}", len(keys), 0)
    try:
        pool.execute(engine, keys, found.__setitem__, cancel=_core.Cancel(), workers=workers, watcher=watcher)
    finally:
        watcher.stop()
    return found


def kept(cells: Sequence[Cell], simulated: Reference) -> dict[Key, Flows]:
    """Reads stored simulations of those cells, which have the format of measured results."""
    runs = {cell.key: cell.runs for cell in simulated.cells()}
    return {
        (i, run - 1): [row.metrics for row in rows]
        for i, cell in enumerate(cells)
        for run, rows in runs.get(cell.key, {}).items()
    }


def to_keep(reference: Reference, cells: Sequence[Cell], simulated: Mapping[Key, Flows]) -> Reference:
    """Makes the file that stores simulations."""
    rows = [
        Row(
            {"suite": cell.suite, "group": cell.group, "run": str(rep + 1), "flow": str(number)},
            {**cell.settings, **flow},
            metrics,
        )
        for (i, rep), flows in sorted(simulated.items())
        for cell in [cells[i]]
        for number, (flow, metrics) in enumerate(zip(cell.flows, flows, strict=True))
    ]
    facts = {"kernel": "none: tcpknee's simulator", "hz": reference.facts["hz"], "clock": "simulated"}
    return Reference(reference.file, facts, reference.settings, rows)


def measure(found: Mapping[str, Any], cell: Mapping[str, Any]) -> Flows:
    """Computes the metrics of each flow of a repetition, of any engine; None without a value."""
    samples = found["samples"]
    at = {name: samples.column(name).to_numpy() for name in ("t_ns", "srtt_us", "flow")}
    steady = (at["t_ns"] >= cell["warmup_ns"]) & (at["srtt_us"] > 0)
    flows = sorted(found["flows"].to_pylist(), key=lambda flow: int(flow["flow"]))
    measured = []
    for flow in flows:
        srtts = at["srtt_us"][steady & (at["flow"] == flow["flow"])]
        sent, again = flow["data_segs_out"], flow["total_retrans"]
        measured.append(
            {
                "goodput_bits_per_sec": flow["goodput_bits_per_sec"],
                "srtt_us_p50": float(np.median(srtts)) if len(srtts) else None,
                "retransmit_pct": again * 100 / sent if sent and again is not None else None,
            }
        )
    return measured


def compare(cells: Sequence[Cell], simulated: Mapping[Key, Flows]) -> list[Beside]:
    """Compares every metric of every cell."""
    labels = _labels(cells)
    compared = []
    for i, cell in enumerate(cells):
        sim = [simulated.get((i, rep), ()) for rep in range(repetitions(cell))]
        compared += _compare(i, cell, labels[i], sim)
    return compared


def _compare(index: int, cell: Cell, label: str, sim: Sequence[Flows]) -> list[Beside]:
    """Compares means over runs and repetitions, flow by flow, and shares of several flows."""
    kernel = [[row.metrics for row in rows] for _, rows in sorted(cell.runs.items())]
    loss = cell.settings.get("path.loss", "0%")
    # What is lost periodically is the same packets on both sides.
    lossy = loss not in ("0%", "0.0%") and not loss.startswith("periodic")
    goodput_pct = GOODPUT_PCT
    if lossy:
        goodput_pct = GOODPUT_LOSSY_PCT if len(cell.runs) >= DRAWS else GOODPUT_FEW_PCT
    count = len(cell.flows)

    def judged(metric: str, where: str, of: Callable[[Flows], float | None]) -> Beside:
        values = [[of(flows) if len(flows) == count else None for flows in runs] for runs in (sim, kernel)]
        ours, theirs = map(_mean, values)
        difference, unit, tolerance, ok = _judge(metric, ours, theirs, goodput_pct=goodput_pct)
        whole = theirs if unit == "%" and theirs else 100
        low, high = _interval(values[0], values[1], whole) if difference is not None else (None, None)
        is_time = metric == "srtt_us_p50" and ours is not None and theirs is not None
        return Beside(
            suite=cell.suite,
            cell=index,
            label=label + where,
            lossy=lossy,
            metric=metric,
            sim=ours,
            kernel=theirs,
            difference=difference,
            unit=unit,
            tolerance=tolerance,
            ok=ok,
            group=cell.group,
            line=cell.line,
            milliseconds=(ours - theirs) / 1000 if is_time else None,  # type: ignore[operator]
            low=low,
            high=high,
        )

    entries = [judged("goodput_bits_per_sec", "", _goodput)]
    if count == 1:
        entries += [judged(metric, "", partial(_of, 0, metric)) for metric in ("srtt_us_p50", "retransmit_pct")]
    else:
        # The last flow's share is what the others leave.
        entries += [judged("share", f", flow {i}", partial(_share, i)) for i in range(count - 1)]
        entries += [judged("srtt_us_p50", f", flow {i}", partial(_of, i, "srtt_us_p50")) for i in range(count)]
    return entries


def _of(i: int, metric: str, flows: Flows) -> float | None:
    found: float | None = flows[i][metric]
    return found


def _goodput(flows: Flows) -> float | None:
    goodputs = [flow["goodput_bits_per_sec"] for flow in flows]
    return None if None in goodputs else float(sum(goodputs))


def _share(i: int, flows: Flows) -> float | None:
    """Returns a flow's share; None if any flow carried nothing."""
    goodputs = [flow["goodput_bits_per_sec"] for flow in flows]
    return float(goodputs[i] / sum(goodputs)) if all(goodputs) else None


def _mean(values: Sequence[float | None]) -> float | None:
    """Averages the values; None if one is missing."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None


def _interval(
    sim: Sequence[float | None], kernel: Sequence[float | None], whole: float
) -> tuple[float | None, float | None]:
    """Returns the ends of the difference of the means, in per cent of `whole`; None where one value tells nothing."""
    found = stats.difference_apart(np.array(kernel, np.float64), np.array(sim, np.float64))
    if found is None or found.low is None or found.high is None:
        return None, None
    return found.low * 100 / whole, found.high * 100 / whole


def _judge(
    metric: str, sim: float | None, kernel: float | None, *, goodput_pct: float
) -> tuple[float | None, str, str, bool]:
    """Returns the difference, its unit, the tolerance in words, and whether it holds."""
    limit = {
        "goodput_bits_per_sec": goodput_pct,
        "srtt_us_p50": SRTT_PCT,
        "share": SHARE,
        "retransmit_pct": RETRANSMIT_POINTS,
    }[metric]
    unit = {"share": "", "retransmit_pct": "points"}.get(metric, "%")
    tolerance = f"±{limit:g} {unit}".rstrip()
    # Only retransmissions may be zero.
    if sim is None or kernel is None or (metric != "retransmit_pct" and not (sim and kernel)):
        return None, unit, tolerance, False
    difference = (sim - kernel) / kernel * 100 if unit == "%" else sim - kernel
    return difference, unit, tolerance, abs(difference) <= limit


def _labels(cells: Sequence[Cell]) -> list[str]:
    """Labels each cell by its algorithms and the settings that differ within its suite."""
    every = [_settings(cell) for cell in cells]
    labels = []
    for cell, settings in zip(cells, every, strict=True):
        of_suite = [other for mate, other in zip(cells, every, strict=True) if mate.suite == cell.suite]
        vary = [key for key in settings if len({other.get(key) for other in of_suite}) > 1]
        words = [f"{key}={settings[key]}" for key in vary]
        labels.append(" ".join(["+".join(flow["flow.algorithm"] for flow in cell.flows), *words]))
    return labels


def _settings(cell: Cell) -> dict[str, str]:
    """Lists a cell's settings by the last word of each key, without algorithms; several flows are numbered."""
    found = {key.split(".")[-1]: value for key, value in cell.settings.items() if key != "receiver.algorithm"}
    for i, flow in enumerate(cell.flows):
        number = f"[{i}]" if len(cell.flows) > 1 else ""
        found |= {key.split(".")[-1] + number: value for key, value in flow.items() if key != "flow.algorithm"}
    return found


def outside(compared: Sequence[Beside]) -> list[Beside]:
    """Selects values outside their tolerance."""
    return [entry for entry in compared if not entry.ok]


def difference(entry: Beside) -> str:
    """Its difference as text, with the 95 % interval of the difference of means, where there is one."""
    if entry.difference is None:
        return "-"
    interval = "" if entry.low is None else f" [{entry.low:+.2f}, {entry.high:+.2f}]"
    return f"{entry.difference:+.2f}{interval} {entry.unit}".rstrip()


def verdicts(compared: Sequence[Compared]) -> list[Verdict]:
    """Counts the values outside by each metric, and the values that cannot be compared."""
    judged = []
    for metric, what in NAMES.items():
        entries = [entry for entry in compared if entry.metric == metric]
        if entries:
            judged.append(Verdict(f"{what}, outside", sum(not entry.ok for entry in entries), "", 0, len(entries)))
    untold = sum(entry.difference is None for entry in compared)
    # Nothing compared is no agreement.
    judged.append(Verdict("values that cannot be compared", untold if compared else 1, "", 0, len(compared)))
    return judged


NAMES = {
    "goodput_bits_per_sec": "goodput",
    "share": "shares",
    "srtt_us_p50": "srtt p50",
    "retransmit_pct": "retransmissions",
}


def groups(compared: Iterable[Beside]) -> dict[str, dict[str, list[Beside]]]:
    """Sorts compared values by suite and group, in the order of the file."""
    found: dict[str, dict[str, list[Beside]]] = {}
    for entry in compared:
        found.setdefault(entry.suite, {}).setdefault(entry.group, []).append(entry)
    return found


def table(of_suite: Mapping[str, Sequence[Beside]]) -> list[list[str]]:
    """Makes a header and a row per group: cells within; median and largest difference of each metric."""
    entries = [entry for group in of_suite.values() for entry in group]
    columns = [column for column in _COLUMNS if any(column.takes(entry) for entry in entries)]
    rows = [["group", "cells within", *(column.title for column in columns)]]
    for name, group in of_suite.items():
        cells = {entry.cell for entry in group}
        within = len(cells - {entry.cell for entry in group if not entry.ok})
        rows.append([name, f"{within} of {len(cells)}", *(column.text(group) for column in columns)])
    return rows


@dataclass(frozen=True)
class _Column:
    title: str
    metric: str
    lossy: bool | None = None
    milliseconds: bool = False
    digits: int = 1
    unit: str = ""

    def takes(self, entry: Beside) -> bool:
        return entry.metric == self.metric and self.lossy in (None, entry.lossy)

    def text(self, group: Sequence[Beside]) -> str:
        mine = [entry for entry in group if self.takes(entry)]
        values = [entry.milliseconds if self.milliseconds else entry.difference for entry in mine]
        known = [abs(value) for value in values if value is not None]
        if not mine:
            return ""
        if len(known) < len(mine):
            return f"{len(mine) - len(known)} unknown"
        return f"{statistics.median(known):.{self.digits}f} ({max(known):.{self.digits}f}){self.unit}"


_COLUMNS = (
    _Column("goodput, no loss", "goodput_bits_per_sec", lossy=False, unit=" %"),
    _Column("goodput, loss", "goodput_bits_per_sec", lossy=True, unit=" %"),
    _Column("share", "share", digits=3),
    _Column("srtt p50", "srtt_us_p50", unit=" %"),
    _Column("srtt p50, ms", "srtt_us_p50", milliseconds=True, digits=2),
    _Column("retransmitted, points", "retransmit_pct", digits=2),
)
