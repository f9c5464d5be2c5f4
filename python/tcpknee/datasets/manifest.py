"""What a folder says of itself: `run.json` of a run, `trace.json` of a trace, `profile.json` of a profile,
`import-SEGMENT.json` of each import.

A recording has none: what is known of it stands in its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tcpknee import _core, reading
from tcpknee.errors import RunFolderError
from tcpknee.shapes import ANY, FLAG, NUMBER, TEXT, TIME, WHOLE, Optional, OrNull, Shape, mistake, one_of

RUN = "run.json"
TRACE = "trace.json"
PROFILE = "profile.json"
SCHEMA = 1
"""Version of each of these files."""

_IMPORT = "import-"

_FACT = (TEXT, TEXT, TEXT)

_CELL: Shape = {
    "index": WHOLE,
    "hash": TEXT,
    "axes": [(TEXT, TEXT)],
    "describe": [_FACT],
    "cautions": Optional([TEXT]),
    "phase_noise_ns": Optional(OrNull(WHOLE)),
    "is_random": Optional(FLAG),
    "kernel": Optional(OrNull(TEXT)),
    "duration_ns": WHOLE,
    "warmup_ns": WHOLE,
    "samples": Optional(OrNull([TEXT])),
    "bottleneck_hop": Optional(WHOLE),
    "rate_bits_per_sec": OrNull(WHOLE),
    "rtt_ns": WHOLE,
    "bdp_bytes": OrNull(WHOLE),
    "buffer_bytes": OrNull(WHOLE),
    "buffer_pkts": OrNull(WHOLE),
    "flows": [{"group": WHOLE, "name": TEXT, "algorithm": TEXT, "workload": TEXT, "count": WHOLE}],
}

_PROBED = ("rtt_us", "rate_bits_per_sec", "loss_pct", "bytes")

_BESIDE: Shape = {
    "label": TEXT,
    "kind": TEXT,
    "rows": [{"name": TEXT, "algorithm": TEXT, "unit": TEXT, "metrics": ANY, "lines": ANY}],
    "path": OrNull({"words": TEXT}),
    "notes": [TEXT],
}

_RUN: Shape = {
    "status": TEXT,
    "title": TEXT,
    "claim": Optional(OrNull(TEXT)),
    "file": TEXT,
    "scenario": TEXT,
    "scenario_sha256": TEXT,
    "seed": WHOLE,
    "repeat": WHOLE,
    "cells": [_CELL],
    "facts": Optional([_FACT]),
    "expects": Optional([{"assert": TEXT, "line": WHOLE}]),
    "published": Optional([{"value": TEXT, "figure": TEXT, "source": TEXT, "line": WHOLE}]),
    "engine": one_of("sim", "kernel", "guest", "hosts"),
    "engine_version": TEXT,
    "bpf": Optional(FLAG),
    "measure": Optional([TEXT]),
    "capture": Optional(TEXT),
    "algorithm_files": Optional([{"path": TEXT, "name": TEXT, "kind": TEXT, "sha256": TEXT, "sources": {}}]),
    "guests": Optional([{"name": TEXT, "release": TEXT, "built": TEXT}]),
    "labs": Optional([{"programs_ran_as": Optional({"user": TEXT, "uid": WHOLE})}]),
    "repetitions": Optional(
        [
            {
                "cell": WHOLE,
                "rep": WHOLE,
                "measured": {"instruments": Optional(OrNull({"seconds": NUMBER, "stacks_hz": NUMBER}))},
                "warnings": [TEXT],
                "failures": [TEXT],
            }
        ]
    ),
    "path_measured": Optional([{"block": WHOLE, **{name: Optional(OrNull(NUMBER)) for name in _PROBED}}]),
    "beside": Optional([_BESIDE]),
    "ending": Optional({"until_decided": FLAG, "budget": TEXT, "pause": Optional(TEXT), "by": TEXT, "blocks": WHOLE}),
    "failed": Optional([{"cell": WHOLE, "rep": WHOLE, "words": TEXT, "call": Optional(TEXT)}]),
    "versions": Optional({}),
    "host": {"kernel": TEXT},
    "command": TEXT,
    "sessions": [{"started": TIME, "parts": Optional(TEXT)}],
}
"""Runs of before it came lack what is optional."""

_SET: Shape = Optional([{"setting": TEXT, "was": TEXT, "is": OrNull(TEXT)}])
_TOLD: Shape = Optional({"held": _SET, "of_cells": _SET, "as_before": Optional(FLAG), "differs": Optional([TEXT])})

_OF_HOSTS: Shape = {
    "hosts": {
        "sender": TEXT,
        "receiver": TEXT,
        "address": OrNull(TEXT),
        "port": WHOLE,
        "netem": FLAG,
        "programs": FLAG,
    },
    "labs": Optional(
        [
            {
                "sender": {"kernel": TEXT},
                "receiver": {"kernel": TEXT},
                "addresses": Optional({"sender": TEXT, "receiver": TEXT}),
            }
        ]
    ),
    "repetitions": Optional(
        [
            {
                "measured": {
                    "sender_clock_uncertainty_us": NUMBER,
                    "receiver_clock_uncertainty_us": NUMBER,
                    "sender_calendar_off_ms": NUMBER,
                    "receiver_calendar_off_ms": NUMBER,
                    "path_rtt_us_least": Optional(NUMBER),
                    "path_rate_bits_per_sec": Optional(NUMBER),
                    "path_retransmit_pct": Optional(NUMBER),
                }
            }
        ]
    ),
    "sessions": [{"hosts": Optional({"sender": _TOLD, "receiver": _TOLD})}],
}
"""Of the engine hosts besides."""

_RUN_WITH_FACTS: Shape = {**_RUN, "cells": [{**_CELL, "describe": ANY}]}
"""The same while `describe` of a cell has positions in `facts`."""

_COST: Shape = {
    "not_measured": OrNull(TEXT),
    "programs": [{"tracepoint": TEXT, "runs": WHOLE, "run_time_ns": WHOLE, "missed": WHOLE}],
    "writing_cpu_sec": Optional(NUMBER),
}

_TAKEN: Shape = {
    "began": TEXT,
    "seconds": NUMBER,
    "asked": {},
    "command": Optional(OrNull(TEXT)),
    "cost": _COST,
    "engine_version": TEXT,
    "host": {},
}

_SHAPES: dict[str, Shape] = {
    RUN: _RUN,
    TRACE: {
        **_TAKEN,
        "rows": {"acks": WHOLE, "events": WHOLE, "connections": WHOLE},
        "lost": WHOLE,
        "gaps": WHOLE,
    },
    PROFILE: {**_TAKEN, "idle_samples": WHOLE, "lost_samples": WHOLE, "unreadable": WHOLE},
}
"""Of each file, the keys that are read."""

OF_EVERY_SAMPLE = ("cell", "rep", "t_ns", "flow")
"""Columns of `samples` that every run has."""


def of_import(segment: Path) -> Path:
    """The manifest of the import whose first segment that is: of several imports into a folder each has its own."""
    return segment.with_name(f"{_IMPORT}{segment.stem}.json")


def read(file: Path) -> dict[str, Any]:
    """One of them. Raises RunFolderError."""
    try:
        found = reading.json_of(file)
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{file}: cannot be read as JSON: {error}.") from None
    if not isinstance(found, dict):
        raise RunFolderError(f"{file}: got a {type(found).__name__}; expected an object, as tcpknee writes it.")
    if found.get("schema") != SCHEMA:
        # A folder of somebody's may have a link to another file here, whose words are not to stand in an error.
        got = found["schema"] if isinstance(found.get("schema"), int) else "none"
        raise RunFolderError(f"{file}: schema: got {got}; expected {SCHEMA}. It is of another version of tcpknee.")
    shape = _RUN_WITH_FACTS if file.name == RUN and "facts" in found else _SHAPES.get(file.name, {})
    if why := mistake(shape, found) or (_lacking(found) if file.name == RUN else None):
        raise RunFolderError(
            f"{file}: {why}, as tcpknee writes it. Bring the file back as it was, or make the folder anew."
        )
    if "facts" in found:
        try:
            return _with_facts_in_place(found)
        except (LookupError, TypeError):
            raise RunFolderError(
                f"{file}: cells: describe: got other than positions in facts; expected the file as tcpknee wrote "
                "it. Run the scenario again."
            ) from None
    return found


def _lacking(run: Mapping[str, Any]) -> str | None:
    """What a run of the right shape still lacks: a cell, a session, or cells whose numbers are their places."""
    if run["engine"] == "hosts" and (why := mistake(_OF_HOSTS, run)):
        return why
    for name in ("cells", "sessions"):
        if not run[name]:
            return f"{name}: got none; expected one at least"
    numbers = [cell["index"] for cell in run["cells"]]
    wrong = next((place for place, number in enumerate(numbers) if number != place), None)
    return None if wrong is None else f"cells[{wrong}].index: got {numbers[wrong]}; expected {wrong}"


def not_kept(run: Mapping[str, Any], column: str) -> str | None:
    """Why the table `samples` of a run lacks this column, where its scenario left it out; `run` is its `run.json`."""
    # Runs of before there was a choice kept every column.
    chosen = run["cells"][0].get("samples") if run["cells"] else None
    registry = _core.tables("run")
    known = {about["name"] for name in ("samples", "tcp_info") for about in registry[name]}
    if chosen is None or column not in known or column in (*chosen, *OF_EVERY_SAMPLE):
        return None
    kept = ", ".join(f'"{name}"' for name in chosen)
    return (
        f"samples.{column} was not kept: the scenario says samples = [{kept}]. Add it there, or leave `samples` out to "
        "keep every column, and run the scenario again."
    )


def with_facts_once(run: Mapping[str, Any]) -> dict[str, Any]:
    """What `run.json` holds of a run: nearly all facts of its cells are those of thousands of others, and stand in
    `facts` once; `describe` of a cell has their positions."""
    facts: dict[tuple[str, str, str], int] = {}
    cells = [
        {**cell, "describe": [facts.setdefault(tuple(fact), len(facts)) for fact in cell["describe"]]}
        for cell in run["cells"]
    ]
    return {**run, "cells": cells, "facts": [list(fact) for fact in facts]}


def _with_facts_in_place(run: dict[str, Any]) -> dict[str, Any]:
    """The opposite. Raises LookupError, TypeError."""
    facts = run.pop("facts")
    for cell in run["cells"]:
        cell["describe"] = [facts[position] for position in cell["describe"]]
    return run


def imports(folder: Path) -> Iterator[dict[str, Any]]:
    """Those of imports into the folder, in the order of their names. Raises RunFolderError."""
    for file in sorted(folder.glob(f"{_IMPORT}*.json")):
        found = read(file)
        if not isinstance(found.get("files"), list):
            raise RunFolderError(f"{file}: files: got no list; expected that of the segments that the import wrote.")
        yield found
