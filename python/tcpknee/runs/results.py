"""A run as Python sees it: what was asked, its tables, and what the statistics say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tcpknee.datasets import manifest
from tcpknee.datasets.dataset import Dataset
from tcpknee.datasets.table import Table, check_columns
from tcpknee.errors import MissingTable, UsageError

from . import tables

if TYPE_CHECKING:
    from tcpknee.evidence.blocks import Drift
    from tcpknee.evidence.expect import Outcome
    from tcpknee.evidence.published import Beside

    from .doubts import Doubt
    from .pool import Key
    from .summary import Summary


class Run:
    """A run, in memory or in a folder; its tables are read when first asked for.

    `meta` is the content of `run.json` (see `tcpknee.runs.manifest`); `folder` is where the run lies, None for one in
    memory only.
    """

    def __init__(
        self,
        meta: Mapping[str, Any],
        folder: Path | None = None,
        parts: Mapping[Key, Mapping[str, pa.Table]] | None = None,
    ) -> None:
        self.meta = meta
        self.folder = folder
        self._parts = dict(sorted(parts.items())) if parts is not None else None
        self._tables: dict[str, Table] = {}

    @property
    def runs(self) -> Table:
        """One row per repetition: scenario, seed, engine, path."""
        return self.table("runs")

    @property
    def flows(self) -> Table:
        """One row per flow: goodput, retransmissions, delay, what limited it."""
        return self.table("flows")

    @property
    def samples(self) -> Table:
        """Each flow's sender over time, in the words of `tcp_info`."""
        return self.table("samples")

    @property
    def queue(self) -> Table:
        """The bottleneck over time."""
        return self.table("queue")

    @property
    def events(self) -> Table:
        """Openings, recoveries, timeouts, undos, ends."""
        return self.table("events")

    @property
    def cpu_time(self) -> Table:
        """Who used the processors; of the kernel engine."""
        return self.table("cpu_time")

    @property
    def links(self) -> Table:
        """What the emulated link asked of itself and achieved; of the kernel engine."""
        return self.table("links")

    @property
    def programs(self) -> Table:
        """External programs that ran, and what they measured; of the kernel engine."""
        return self.table("programs")

    @property
    def host_costs(self) -> Table:
        """What the instruments counted; of the kernel engine."""
        return self.table("host_costs")

    @property
    def stacks(self) -> Table:
        """What the processors were doing, sampled; of the kernel engine."""
        return self.table("stacks")

    @property
    def packets(self) -> Table:
        """Packets that passed the hosts' devices, of a run with `capture`."""
        return self.table("packets")

    def table(self, name: str) -> Table:
        """A table by name. Raises `MissingTable`."""
        if name not in self._tables:
            source = self._load(name) if self.folder is None else self._dataset(name).files(name)
            self._tables[name] = Table(source, self._why_missing(name))
        return self._tables[name]

    def rows(self, name: str, columns: Sequence[str] | None = None, **equals: int) -> pa.Table:
        """A table, or those of its `columns` and rows where each column in `equals` has that value.

        Of a folder only what is asked for is read. Raises `MissingTable`, `MissingColumn`.
        """
        self._check_columns(name, [*(columns or ()), *equals])
        if self.folder is not None:
            return self._dataset(name).rows(name, columns, **equals)
        import pyarrow.compute as pc

        table = self.table(name).arrow()
        for key, value in equals.items():
            table = table.filter(pc.equal(table[key], value))
        return table.select(list(columns)) if columns else table

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Those columns of a table, a few rows at a time. Raises as `rows`."""
        self._check_columns(name, columns)
        if self.folder is not None:
            return self._dataset(name).batches(name, columns)
        return iter(self.table(name).arrow().select(list(columns)).to_batches())

    def _check_columns(self, name: str, asked: Sequence[str]) -> None:
        """Raises MissingTable, MissingColumn."""
        where = f"{self.folder or self.meta['title']}: {name}: "
        check_columns(asked, self._columns(name), where, self._why_missing(name))

    def _columns(self, name: str) -> Sequence[str]:
        names: Sequence[str] = (
            self.table(name).arrow() if self.folder is None else self._dataset(name).files(name)
        ).schema.names
        return names

    @cached_property
    def dataset(self) -> Dataset:
        """The folder with its tables. Raises UsageError (a run in memory), MissingTable (no table yet)."""
        if self.folder is None:
            raise UsageError("dataset: the run is in memory; expected one in a folder. Give `out` to run it into one.")
        return Dataset(self.folder)

    @property
    def complete(self) -> bool:
        """Is every repetition there?"""
        return self.meta.get("status") == "complete"

    @cached_property
    def summary(self) -> Summary:
        """Metrics with intervals, and verdicts."""
        from . import groups, hosts, summary

        programs = self.programs.arrow() if self.meta["engine"] != "sim" else None
        cpu = self.rows("cpu_time", hosts.OF_CPU)
        has_costs = self.meta["engine"] == "sim" or self.meta.get("measure")
        host_costs = self.host_costs.arrow() if has_costs else None
        # A run of before this table had what links offer has no use of a link.
        offers = "offered_bytes" in self._columns("queue")
        queue = self.batches("queue", groups.OF_QUEUE) if offers else None
        ended = Counter(entry["cell"] for entry in self.meta.get("failed", ()))
        failed = {cell for cell, count in ended.items() if count == self.meta["repeat"]}
        looking = self.meta.get("ending", {}).get("until_decided", False)
        return summary.summarise(
            self.flows,
            queue,
            self.meta["cells"],
            programs,
            cpu,
            host_costs,
            failed,
            looking=looking,
            repeat=self.meta["repeat"],
        )

    @cached_property
    def drifts(self) -> list[Drift]:
        """Whether the path changed while a run in real time went on, by quantity."""
        from .drift import of_run

        return of_run(self)

    @cached_property
    def doubts(self) -> list[Doubt]:
        """What makes repetitions of the kernel engine doubtful, or failed, in the order of the matrix."""
        from .doubts import of_run

        return of_run(self.meta)

    @cached_property
    def expectations(self) -> list[Outcome]:
        """What became of each `[[expect]]`."""
        expects = [(entry["assert"], entry["line"]) for entry in self.meta.get("expects", [])]
        if not expects:
            return []
        from tcpknee.evidence import expect

        from .terms import OfCells

        return expect.evaluate(expects, OfCells(self.meta["cells"], self.summary))

    @cached_property
    def published(self) -> list[Beside]:
        """Each `[[published]]` figure beside ours."""
        stored = self.meta.get("published", [])
        if not stored:
            return []
        from tcpknee.evidence import published

        from .terms import OfCells

        entries = [published.Published(**entry) for entry in stored]
        return published.beside(entries, OfCells(self.meta["cells"], self.summary))

    def figure(self, name: str, *, condition: int = 0) -> Any:
        """A figure by its name, as `tcpknee.figure` gives it: run.figure("goodput").save("a.pdf", width="3.4in")."""
        import tcpknee

        return tcpknee.figure(self, name, condition=condition)

    def json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        from .output import as_json

        return as_json([self])

    def _repr_html_(self) -> str:
        """What the command prints of it."""
        from html import escape

        from tcpknee.say import printable

        from .output import lines

        return "<pre>" + "\n".join(escape(printable(line)) for line in lines(self)) + "</pre>"

    def __repr__(self) -> str:
        where = str(self.folder) if self.folder else "in memory"
        return f"<tcpknee run {self.meta.get('title')!r}, {self.meta.get('status')}, {where}>"

    def _dataset(self, name: str) -> Dataset:
        """The folder, which has that table. Raises MissingTable."""
        if name not in tables.NAMES:
            raise MissingTable(f"{self.folder}: got the table {name!r}; expected one of {', '.join(tables.NAMES)}.")
        try:
            found: Dataset | None = self.dataset
        except MissingTable:
            found = None
        if found is not None and name in found.tables:
            return found
        file = Path(str(self.folder)) / f"{name}.parquet"
        if name not in tables.FROM_ENGINE["sim"] and found is not None and "runs" in found.tables:
            raise MissingTable(f"{file}: no such table; only runs with --engine kernel or guest have it.")
        again = ", with its hosts and their options named again" if self.meta["engine"] == "hosts" else ""
        raise MissingTable(
            f"{file}: no such table. If the run was killed, `knee run --resume --out {self.folder}`{again} finishes it."
        )

    def _why_missing(self, name: str) -> Callable[[str], str | None] | None:
        """Says why a table lacks a column: `samples` alone has some that a scenario may leave out."""
        return partial(_why_not_kept, self.meta, str(self.folder or self.meta["title"])) if name == "samples" else None

    def _load(self, name: str) -> pa.Table:
        assert self._parts is not None
        known = tables.of_engine(self.meta["engine"])
        if name not in known:
            raise MissingTable(f"got the table {name!r}; expected one of {', '.join(known)}.")
        bare = {key: tables.take_note(part["flows"]) for key, part in self._parts.items()}
        if name == "runs":
            return tables.runs_table(self.meta, {key: note for key, (_, note) in bare.items()})
        chosen = [bare[key][0] if name == "flows" else part[name] for key, part in self._parts.items()]
        if not chosen:
            raise MissingTable(f"the table {name!r}: no repetition was finished, so there is none.")
        return pa.concat_tables(chosen).unify_dictionaries()


def _why_not_kept(meta: Mapping[str, Any], where: str, column: str) -> str | None:
    """Why `samples` lacks that column; None: it does not, or nobody knows it."""
    why = manifest.not_kept(meta, column)
    return f"{where}: {why}" if why else None
