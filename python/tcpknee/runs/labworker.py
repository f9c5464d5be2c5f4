"""One repetition of one cell on the kernel: a process that enters a lab, runs, writes its tables and ends.

    python -m tcpknee.runs.labworker < REQUEST

REQUEST is an object: `scenario` `file` (text and name), `files` (text of each file that the scenario names, by its
path), `algorithm_files` (of each file whose algorithm it names: `path` `name` `digest`, the shared `object`, and the
text of a `prototype`), `kernels` (what built ones call themselves, by their names), `modules` (of a guest: each a path,
its words and the file that it is of), `cell` `rep`, `algorithms` (what the kernel calls each of the scenario's),
`output` (folder for what programs print), `host_settings` (what was set for the whole machine), `seed` (of a guest
kernel's random numbers), `capture_bytes` (memory for packets at each host), `part` (descriptor for the tables),
`parent` (who asks); where the scenario has programs, `user` (whom they run as) and `run_as` (what it takes to become
that user, or null).
Standard output gets lines of JSON: `{"hosts": [SENDER, RECEIVER]}`, the inodes of their network namespaces, once they
are there; `{"t_ns": …}` now and then; `{"measuring": true}` after the warm-up and `false` at the end; `{"error": CLASS,
"message": …}`, `{"done": true}`.

Until the lab has run, nothing is imported that starts a thread: a process with threads may not make user namespaces,
and what it forks may not wait for their locks.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tcpknee import _core
from tcpknee.errors import TcpkneeError


def main() -> int:
    """Exit code 0 when the repetition was run and written, 1 when it was refused or failed."""
    request = json.load(sys.stdin)
    # Forks keep it, programs of the scenario do not get it.
    os.set_inheritable(request["part"], False)
    try:
        # Returns in a child that is the first process of the lab; this one waits for it and ends as it does.
        _core.enter_lab(request["parent"])
        _run(request)
    except TcpkneeError as error:
        say({"error": type(error).__name__, "message": str(error)})
        return 1
    except OSError as error:
        say({"error": "EngineError", "message": not_written(error)})
        return 1
    say({"done": True})
    return 0


def not_written(error: OSError) -> str:
    """What a worker says of a file that it could not write."""
    where = error.filename or "the temporary file for the tables"
    return f"{where}: {error.strerror}. Make room, or set TMPDIR."


def parsed(request: Mapping[str, Any]) -> _core.Scenario:
    """The scenario of a request."""
    for one in request["algorithm_files"]:
        if "prototype" in one:
            from tcpknee.algorithms import prototype

            prototype.serve(one["path"], one["prototype"], one["digest"])
        _core.load_algorithm(Path(one["object"]), one["digest"], one["name"])
    return _core.parse(
        request["scenario"],
        request["file"],
        request["files"],
        kernels=request["kernels"],
        algorithms=[(one["path"], one["name"], one["digest"]) for one in request["algorithm_files"]],
    )


def _run(request: Mapping[str, Any]) -> None:
    scenario = parsed(request)
    output = Path(request["output"])
    measured = scenario.run_in_lab(
        request["cell"],
        request["rep"],
        algorithms=request["algorithms"],
        output=str(output),
        progress=say,
        run_as=json.dumps(request["run_as"]) if request.get("run_as") else None,
        capture_bytes=request["capture_bytes"],
    )
    import pyarrow as pa

    from . import folder, programs, tables

    found = tables.of_lab(measured, scenario.cells[request["cell"]]["samples"])
    found["programs"], failures = programs.read(found["programs"], output)
    further = {"programs_ran_as": request["user"]} if "user" in request else {}
    if request["host_settings"]:
        further["host_settings"] = request["host_settings"]
    note = {
        "data_packets": measured.data_packets,
        "lab": {**json.loads(measured.facts), "algorithms": request["algorithms"], **further},
        "warnings": list(measured.warnings),
        "failures": failures,
    }
    with pa.PythonFile(os.fdopen(request["part"], "wb"), mode="w") as sink:
        folder.write_streams(sink, tables.with_note(found, note))


def say(said: Mapping[str, Any]) -> None:
    """Tells who asked, in a line."""
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    sys.exit(main())
