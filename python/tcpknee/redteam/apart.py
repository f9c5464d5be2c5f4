"""A run of an algorithm of a file, in a process of its own: what it does wrong ends that run alone, and what it
remembers beside its state does not reach the next one."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import tempfile
from collections.abc import Callable
from typing import TypeVar

from tcpknee import _core
from tcpknee.errors import AlgorithmFailed, WorkerLost
from tcpknee.runs import isolated

Made = TypeVar("Made")


def apart(make: Callable[[], Made]) -> Made:
    """What this returns. Raises `AlgorithmFailed`, with the call; `WorkerLost`.

    A fork, which takes some milliseconds, where a new process would take a hundred times as long as the run: it runs
    the simulator, and no thread but its own."""
    # Once, and not in each process.
    importlib.import_module("pyarrow")
    with tempfile.TemporaryFile() as result, tempfile.TemporaryFile() as report:
        child = os.fork()
        if child == 0:
            _child(make, result.fileno(), report.fileno())
        os.waitpid(child, 0)
        report.seek(0)
        result.seek(0)
        if call := _core.read_call(report.read()):
            found = json.loads(call)
            raise AlgorithmFailed(isolated.words(found), found)
        if not (written := result.read()):
            raise WorkerLost("a process of a run ended before its work was done; was it killed?")
        made: Made
        made, error = pickle.loads(written)
        if error is not None:
            raise error
        return made


def _child(make: Callable[[], object], result: int, report: int) -> None:
    try:
        _core.guard_process(report)
        try:
            made = pickle.dumps((make(), None))
        except Exception as error:
            made = pickle.dumps((None, error))
        with os.fdopen(result, "wb", closefd=False) as file:
            file.write(made)
    finally:
        os._exit(0)
