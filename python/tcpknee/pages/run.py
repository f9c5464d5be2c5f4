"""A run as its figures see it: five tables and `run.json`, with labels.

Words used throughout:
- a *condition* is what cells share that differ only in their algorithms: the
  path, the buffer, the workload. Figures compare within a condition.
- an *entrant* is one `[[flow]]` table in one cell: what a condition compares.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpknee.errors import MissingTable, UsageError
from tcpknee.runs import between_text
from tcpknee.runs.beside import SIMULATED, of_run

from . import palette
from .numeric import seconds

if TYPE_CHECKING:
    import pyarrow as pa

    from tcpknee.runs.beside import Entry, Row
    from tcpknee.runs.results import Run
    from tcpknee.runs.summary import Group, Summary

    from .series import Series

TABLES = ("flows", "samples", "queue")
_RTT_OF_FLOW = re.compile(r"flow\.(\d+)\.rtt")


@dataclass(frozen=True)
class Cell:
    index: int
    axes: tuple[tuple[str, str], ...]
    describe: tuple[tuple[str, str, str], ...]

    @property
    def condition_axes(self) -> tuple[tuple[str, str], ...]:
        return tuple(axis for axis in self.axes if not is_algorithm_axis(axis[0]))

    @property
    def hops(self) -> int:
        return max(sum(key.startswith("hop.") and key.endswith(".rate") for key, *_ in self.describe), 1)


@dataclass(frozen=True)
class Entrant:
    """One `[[flow]]` table of one cell."""

    cell: int
    group: int
    condition: int
    algorithm: str
    label: str
    flows: tuple[int, ...]
    workload: str


@dataclass(frozen=True)
class Beside:
    """What stands beside the run, on a path of its own: it belongs to no condition and is drawn with each."""

    label: str
    algorithm: str
    """Or its name, where that is not known."""
    row: Row


@dataclass(frozen=True)
class Condition:
    index: int
    axes: tuple[tuple[str, str], ...]
    cells: tuple[int, ...]

    @property
    def label(self) -> str:
        return ", ".join(f"{axis_name(key)} {value}" for key, value in self.axes) or "as described"


def is_algorithm_axis(key: str) -> bool:
    return key.startswith("flow") and key.endswith(".algorithm")


def algorithm_axis(group: int) -> str:
    return f"flow.{group}.algorithm"


def axis_name(key: str) -> str:
    """`path.loss` reads "loss", `path.rtt` "RTT", `flow.0.count` "flow 0 count"."""
    head, _, rest = key.partition(".")
    words = rest if head == "path" and rest else key
    return " ".join("RTT" if word == "rtt" else word for word in words.split(".")).replace("ack_loss", "ACK loss")


def beside_label(entry: Entry, row: Row) -> str:
    """`up.json (cubic, measured)`."""
    words = ["simulated" if entry.kind == SIMULATED else "measured"]
    return f"{row.name} ({', '.join([row.algorithm, *words] if row.algorithm else words)})"


class ReportRun:
    """Lazily read tables of a run, and the labels that every figure uses."""

    is_sparse = False
    """Are its series so short that single rows count?"""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.meta = run.meta

    @property
    def parts(self) -> list[tuple[ReportRun, int, str]]:
        """The runs that it is made of; what their cells' numbers are less than here, and what each is called."""
        return [(self, 0, "")]

    @classmethod
    def open(cls, run: Any) -> ReportRun:
        """From a run folder's path, or from a `tcpknee.Run` (also one without a folder).

        Raises RunFolderError when there is no run there.
        """
        if isinstance(run, ReportRun):
            return run
        from tcpknee.runs import api
        from tcpknee.runs.results import Run

        if isinstance(run, str | PathLike):
            run = api.open(run)
        if not isinstance(run, Run):
            raise UsageError(
                f"run: got {run!r:.60}; expected a run, a Dataset, or the path of a folder with the tables of one."
            )
        return cls(run)

    def table(self, name: str, columns: Sequence[str] | None = None, **equals: int) -> pa.Table:
        """A table, or those of its `columns` and rows where each column in `equals` has that value.

        Of a folder only what is asked for is read. Raises MissingTable when the run has no such table.
        """
        return self.run.rows(name, columns, **equals)

    # --- what run.json says -------------------------------------------------

    @property
    def title(self) -> str:
        return str(self.meta.get("title") or self.meta.get("file") or "A run of tcpknee")

    @property
    def duration_ns(self) -> int:
        return max((int(cell.get("duration_ns") or 0) for cell in self.meta.get("cells", ())), default=0)

    @property
    def warmup_ns(self) -> int:
        """The longest warm-up of any cell: what lies before it is in no steady-state metric."""
        return max((int(cell.get("warmup_ns") or 0) for cell in self.meta.get("cells", ())), default=0)

    @cached_property
    def cells(self) -> dict[int, Cell]:
        cells = {}
        for entry in self.meta.get("cells", ()):
            cells[int(entry["index"])] = Cell(
                int(entry["index"]),
                tuple((str(key), str(value)) for key, value in entry["axes"]),
                tuple((str(key), str(value), str(doc)) for key, value, doc in entry["describe"]),
            )
        return cells

    @cached_property
    def base_rtts_ms(self) -> dict[tuple[int, int], float]:
        """Of each cell's `[[flow]]` tables: between hosts of the user's what was measured, else what the scenario says;
        none where it leaves that to the hosts."""
        found = {}
        for part, shift, _ in self.parts:
            is_of_hosts = part.meta.get("engine") == "hosts"
            for cell in part.cells.values():
                measured_us = between_text.base_rtt_us(part.meta, cell.index) if is_of_hosts else None
                for key, value, _ in cell.describe:
                    group = _RTT_OF_FLOW.fullmatch(key)
                    if group and (rtt_ms := measured_us / 1e3 if measured_us else 1e3 * seconds(value)):
                        found[cell.index + shift, int(group[1])] = rtt_ms
        return found

    @cached_property
    def algorithm_axes(self) -> set[str]:
        return {key for cell in self.cells.values() for key, _ in cell.axes if is_algorithm_axis(key)}

    # --- what the statistics say --------------------------------------------

    @property
    def stats(self) -> Summary:
        return self.run.summary

    @cached_property
    def measured(self) -> list[tuple[Entrant, Group]]:
        """Each entrant with its metrics over the repetitions."""
        groups = {(group.cell, group.group): group for group in self.stats.groups}
        return [(entrant, groups[entrant.cell, entrant.group]) for entrant in self.entrants]

    @cached_property
    def names(self) -> dict[int, str]:
        """Of the `[[flow]]` tables that have one of their own."""
        return {group.group: group.name for group in self.stats.groups if group.name != group.algorithm}

    @cached_property
    def series(self) -> Series:
        from .series import Series

        return Series(self)

    # --- rows and labels ----------------------------------------------------

    @cached_property
    def flows(self) -> list[dict[str, Any]]:
        """Every row of `flows`."""
        rows: list[dict[str, Any]] = self.table("flows").to_pylist()
        return rows

    @cached_property
    def field_docs(self) -> dict[str, dict[str, dict[str, str]]]:
        """table -> column -> {unit, doc, source}, from the columns' metadata."""
        docs: dict[str, dict[str, dict[str, str]]] = {}
        for name in TABLES:
            with suppress(MissingTable):
                docs[name] = self.run.table(name).describe()
        return docs

    def rows(self, name: str) -> int:
        """How many rows a table has; 0 when there is no such table."""
        try:
            return len(self.run.table(name))
        except MissingTable:
            return 0

    @cached_property
    def conditions(self) -> list[Condition]:
        grouped: dict[tuple[tuple[str, str], ...], list[int]] = defaultdict(list)
        for cell in self.cells.values():
            grouped[cell.condition_axes].append(cell.index)
        return [Condition(k, axes, tuple(cells)) for k, (axes, cells) in enumerate(grouped.items())]

    @cached_property
    def condition_of(self) -> dict[int, Condition]:
        return {cell: condition for condition in self.conditions for cell in condition.cells}

    @cached_property
    def varied(self) -> dict[str, list[str]]:
        """Axes other than algorithms with more than one value, values in the order of the file."""
        values: dict[str, dict[str, None]] = {}
        for condition in self.conditions:
            for key, value in condition.axes:
                values.setdefault(key, {})[value] = None
        return {key: list(found) for key, found in values.items() if len(found) > 1}

    @cached_property
    def entrants(self) -> list[Entrant]:
        """In the order of the matrix; labels differ within a condition."""
        members: dict[tuple[int, int], list[int]] = defaultdict(list)
        facts: dict[tuple[int, int], tuple[str, str, str]] = {}
        for row in self.flows:
            key = (row["cell"], row["group"])
            if row["flow"] not in members[key]:
                members[key].append(row["flow"])
            facts[key] = (row["algorithm"], row["name"] or row["algorithm"], row["workload"])
        keys = sorted(key for key in members if key[0] in self.condition_of)
        base = {}
        for key in keys:
            algorithm, name, _ = facts[key]
            base[key] = algorithm if name == algorithm else f"{name} ({algorithm})"
        clashes = Counter((self.condition_of[key[0]].index, base[key]) for key in keys)
        entrants = []
        for key in keys:
            condition = self.condition_of[key[0]].index
            label = base[key]
            if clashes[condition, label] > 1:
                beside = [facts[other][0] for other in keys if other[0] == key[0] and other != key]
                label += f" beside {' + '.join(beside)}" if beside else f", cell {key[0]}"
            entrants.append(
                Entrant(key[0], key[1], condition, facts[key][0], label, tuple(sorted(members[key])), facts[key][2])
            )
        return _unique(entrants)

    @cached_property
    def beside(self) -> list[Beside]:
        """The rows that stand beside the run, as lines and points of its figures."""
        return [
            Beside(beside_label(entry, row), row.algorithm or row.name, row)
            for entry in of_run(self.meta)
            for row in entry.rows
        ]

    @cached_property
    def slots(self) -> dict[str, int]:
        present = [entrant.algorithm for entrant in self.entrants]
        return palette.slots([*present, *(one.algorithm for one in self.beside)])

    @cached_property
    def repetitions(self) -> int:
        return len({row["rep"] for row in self.flows})

    @cached_property
    def median_rep(self) -> dict[int, int]:
        """Per cell, the repetition whose total goodput is the median (the lower of two)."""
        found = {}
        for total in self.stats.totals:
            goodputs = np.nan_to_num(total.values["goodput_bits_per_sec"])
            order = np.lexsort((total.reps, goodputs))
            found[total.cell] = int(total.reps[order[(len(order) - 1) // 2]])
        return found

    def entrants_words(self, cell: int) -> str:
        """Who runs in a cell: "cubic", "cubic + bbr1"."""
        return " + ".join(entrant.label for entrant in self.entrants if entrant.cell == cell)

    @cached_property
    def end_ns(self) -> int:
        """The end of the time axis."""
        ends = [int(row["end_ns"] or row["start_ns"]) for row in self.flows]
        return max([self.duration_ns, *ends, 1])


def _unique(entrants: list[Entrant]) -> list[Entrant]:
    """Two tables of one cell may still read alike (same algorithm, no names): number them."""
    clashes = Counter((entrant.condition, entrant.label) for entrant in entrants)
    return [
        Entrant(e.cell, e.group, e.condition, e.algorithm, f"{e.label}, table {e.group}", e.flows, e.workload)
        if clashes[e.condition, e.label] > 1
        else e
        for e in entrants
    ]
