"""Puts entries beside a finished run: into its `run.json`, from where text, pages and `--json` have them."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

from tcpknee.runs.beside import SIMULATED
from tcpknee.runs.folder import RunFolder

from . import reading, simulated

if TYPE_CHECKING:
    from tcpknee.runs.beside import Entry
    from tcpknee.runs.results import Run


def beside(run: Run, *data: str | PathLike[str]) -> Run:
    """Sets beside a finished run what was measured elsewhere: files of iperf3 or flent, captures, folders of `knee
    record`, `import` or `run`; and by "sim" the simulator's answer for the path that a run of the engine hosts has
    measured. It is in `run.json`, so that reports draw it too. Raises UsageError, RunFolderError."""
    words = [fspath(one) for one in data]
    put(run, [simulated.answer(run) if word == SIMULATED else reading.read(word) for word in words])
    return run


def put(run: Run, entries: Sequence[Entry]) -> None:
    """Also beside what stands there already, but for entries of the same name. Raises RunFolderError."""
    new = [entry.json() for entry in entries]
    names = {entry["label"] for entry in new}
    kept = [entry for entry in run.meta.get("beside", ()) if entry["label"] not in names]
    run.meta = {**run.meta, "beside": [*kept, *new]}
    if run.folder is None:
        return
    folder = RunFolder.open(run.folder)
    folder.lock()
    try:
        folder.write_json(run.meta)
    finally:
        folder.unlock()
