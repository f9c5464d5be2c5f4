"""Calls of algorithms from files that went wrong, one a file: `knee check FILE --call CALL` plays one again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tcpknee import provenance, writing
from tcpknee.errors import AlgorithmFailed

from .pool import Key

FOLDER = "calls"
"""Of a run's folder."""

_MOST = 20
"""Of a run. Those of other repetitions say the same."""


def write(folder: Path, failures: Mapping[Key, AlgorithmFailed]) -> list[dict[str, Any]]:
    """Writes the calls into the folder of a run; what `run.json` says of each."""
    told = []
    for number, ((cell, rep), failure) in enumerate(sorted(failures.items())):
        told.append({"cell": cell, "rep": rep, "words": words(failure)})
        if number < _MOST:
            name = _name(cell, rep)
            with writing.replacing(folder / name, make=True) as file:
                file.write(json.dumps(failure.call, indent=1).encode() + b"\n")
            told[-1]["call"] = name
    return told


def words(failure: AlgorithmFailed) -> str:
    """What an algorithm did, without where."""
    return str(failure).partition("): ")[2] or str(failure)


def again(folder: Path, file: str, failures: Mapping[Key, AlgorithmFailed]) -> str:
    """What to type to make the first of these calls again, which `write` wrote; empty of a prototype, whose error is
    told by its line. `file`: the scenario, whose folder the algorithm's path begins at."""
    cell, rep = min(failures)
    path = str(failures[cell, rep].call["path"])
    from tcpknee.algorithms import prototype

    if prototype.is_one(path):
        return ""
    at = file[: file.rfind("/") + 1]
    if at and not file.startswith("<") and not path.startswith("/"):
        path = os.path.normpath(f"{at}{path}")
        path = path if "/" in path else f"./{path}"
    words = provenance.command_line("knee", "check", path, "--call", str(folder / _name(cell, rep)))
    return f"That call again: {words}"


def _name(cell: int, rep: int) -> str:
    return f"{FOLDER}/{cell}-{rep}.json"
