"""Repetitions of cells that use algorithms from files: a process that may crash, and ends when its input does.

    python -m tcpknee.runs.fileworker

The first line of its input is an object: `scenario` `file` `files` `algorithm_files` `kernels` as of `labworker`,
`part` and `report`, descriptors for the tables of a repetition and for a call that goes wrong, and `foreign_folders`
where captures may go into folders of others. Each further line asks
for a repetition: `cell` `rep`, and `noise_ns` where hosts are to be late by that, or `packets`, a file for a capture;
or for a `call` of the one algorithm, as `_core.play_call` takes it. Standard output gets lines of JSON: `{"t_ns": …}`
now and then; `{"done": true}`, or `{"played": …}`, or `{"error": CLASS, "message": …}`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tcpknee import _core, writing
from tcpknee.errors import TcpkneeError

from . import labworker


def main() -> int:
    """Exit code 0 when the input has ended."""
    start = json.loads(sys.stdin.readline())
    _core.guard_process(start["report"])
    if start.get("foreign_folders"):
        writing.allow_foreign_folders()
    scenario = labworker.parsed(start)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "call" in request:
                (file,) = start["algorithm_files"]
                labworker.say({"played": json.loads(_core.play_call(file["name"], file["digest"], request["call"]))})
                continue
            _run(scenario, request, start["part"])
        except TcpkneeError as error:
            labworker.say({"error": type(error).__name__, "message": str(error)})
        except OSError as error:
            labworker.say({"error": "EngineError", "message": labworker.not_written(error)})
        else:
            labworker.say({"done": True})
    return 0


def _run(scenario: _core.Scenario, request: Mapping[str, Any], part: int) -> None:
    import pyarrow as pa

    from . import folder, packets, tables

    def progress(now_ns: int) -> None:
        labworker.say({"t_ns": now_ns})

    cell, rep = request["cell"], request["rep"]
    if "noise_ns" in request:
        found = {"flows": tables.as_table(scenario.run_late(cell, rep, request["noise_ns"], progress=progress))}
    elif "packets" in request:
        packets.write(scenario, cell, rep, Path(request["packets"]))
        found = {}
    else:
        found = tables.of_simulator(scenario.run_cell(cell, rep, progress=progress))
    os.ftruncate(part, 0)
    os.lseek(part, 0, os.SEEK_SET)
    with pa.PythonFile(os.fdopen(os.dup(part), "wb"), mode="w") as sink:
        folder.write_streams(sink, found)


if __name__ == "__main__":
    sys.exit(main())
