"""Puts entries beside a finished run: into its `run.json`, from where text, pages and `--json` have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tcpknee.runs.folder import RunFolder

if TYPE_CHECKING:
    from tcpknee.runs.beside import Entry
    from tcpknee.runs.results import Run


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
