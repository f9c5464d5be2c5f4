"""A recording, an import or a trace as its figures see it, beside `ReportRun` for a run."""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from tcpknee.datasets import manifest
from tcpknee.datasets.dataset import Dataset
from tcpknee.errors import UsageError

from . import marks, sources
from .connections import Connections
from .run import Condition, ReportRun


class Observed:
    """A dataset that no scenario stands behind: connections over time, all under one condition."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.source = sources.of(dataset)
        self.conditions = [Condition(0, (), ())]

    @property
    def sides(self) -> list[tuple[str, Dataset]]:
        """The folders that it is made of, and what each is called: of one nothing."""
        return [("", self.dataset)]

    @cached_property
    def series(self) -> Connections:
        """Raises UsageError: no table has any."""
        if self.source is None:
            expected = ", ".join(source.table for source in sources.SOURCES)
            raise UsageError(
                f"{self.dataset.path}: has no series of connections to draw; expected one of the tables {expected}, "
                "with its columns. `knee sql` asks any table."
            )
        return Connections(self.dataset, self.source)

    @property
    def has_series(self) -> bool:
        return self.source is not None and any(self.series.lines().values())

    @property
    def end_ns(self) -> int:
        return self.series.end_ns

    @property
    def is_sparse(self) -> bool:
        return not any(marks.is_dense(block) for blocks in self.series.lines().values() for block in blocks)


def opened(found: Any) -> ReportRun | Observed:
    """What figures are drawn of: a run (`tcpknee.Run`), a `tcpknee.Dataset`, or the path of a folder of any kind.

    Raises RunFolderError when there is none.
    """
    if isinstance(found, str | PathLike):
        folder = Path(found)
        found = folder if (folder / manifest.RUN).is_file() else Dataset(folder)
    if isinstance(found, Dataset) and found.kind == "run":
        found = found.path
    if isinstance(found, Dataset):
        return Observed(found)
    return found if isinstance(found, Observed) else ReportRun.open(found)
