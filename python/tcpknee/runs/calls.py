"""Calls of algorithms from files that went wrong, one a file: `knee check FILE --call CALL` plays one again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tcpknee import writing
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
        path = folder / FOLDER / f"{cell}-{rep}.json"
        words = str(failure).partition("): ")[2] or str(failure)
        if number < _MOST:
            with writing.replacing(path, make=True) as file:
                file.write(json.dumps(failure.call, indent=1).encode() + b"\n")
            words += f". That call again: knee check {failure.call['path']} --call {path}"
            failure.args = (f"{failure}. That call again: knee check {failure.call['path']} --call {path}",)
        told.append({"cell": cell, "rep": rep, "words": words, "call": f"{FOLDER}/{path.name}"})
    return told
