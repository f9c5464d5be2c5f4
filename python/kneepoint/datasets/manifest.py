"""What a folder says of itself: `run.json` of a run, `trace.json` of a trace, `profile.json` of a profile,
`import-SEGMENT.json` of each import.

A recording has none: what is known of it stands in its rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kneepoint import _core
from kneepoint.errors import RunFolderError

RUN = "run.json"
TRACE = "trace.json"
PROFILE = "profile.json"
SCHEMA = 1
"""Version of each of these files."""

_IMPORT = "import-"

OF_EVERY_SAMPLE = ("cell", "rep", "t_ns", "flow")
"""Columns of `samples` that every run has."""


def of_import(segment: Path) -> Path:
    """The manifest of the import whose first segment that is: of several imports into a folder each has its own."""
    return segment.with_name(f"{_IMPORT}{segment.stem}.json")


def read(file: Path) -> dict[str, Any]:
    """One of them. Raises RunFolderError."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{file}: cannot be read as JSON: {error}.") from None
    if not isinstance(found, dict):
        raise RunFolderError(f"{file}: got a {type(found).__name__}; expected an object, as kneepoint writes it.")
    if found.get("schema") != SCHEMA:
        got = found.get("schema")
        raise RunFolderError(f"{file}: schema: got {got!r}; expected {SCHEMA}. It is of another version of kneepoint.")
    if "facts" in found:
        try:
            return _with_facts_in_place(found)
        except (LookupError, TypeError):
            raise RunFolderError(
                f"{file}: cells: describe: got other than positions in facts; expected the file as kneepoint wrote "
                "it. Run the scenario again."
            ) from None
    return found


def not_kept(run: Mapping[str, Any], column: str) -> str | None:
    """Why the table `samples` of a run lacks this column, where its scenario left it out; `run` is its `run.json`."""
    # Runs of before there was a choice kept every column.
    chosen = run["cells"][0].get("samples") if run["cells"] else None
    registry = _core.tables()
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
            raise RunFolderError(
                f"{file}: files: got {found.get('files')!r}; expected the list of segments that the import wrote."
            )
        yield found
