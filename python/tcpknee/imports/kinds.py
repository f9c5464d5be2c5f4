"""The importers, as the core describes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tcpknee import _core


@dataclass(frozen=True)
class Table:
    """A table that an importer fills."""

    name: str
    short: str
    """Its name in the result of the Python function."""
    rows: str
    """What a row of it is."""
    recorded: bool
    """Is it one that `knee record` writes?"""
    columns: Sequence[dict[str, str]]


@dataclass(frozen=True)
class Option:
    """An option: `--NAME` on the command line, `NAME` in Python."""

    name: str
    takes: str
    """text, file, time, choice or flag"""
    metavar: str
    default: str
    """Empty: none."""
    help: str


@dataclass(frozen=True)
class Count:
    """A count of a report. `crates/import/src/counts.rs` says what may stand in braces."""

    name: str
    doc: str
    doubt: str
    alone: str


@dataclass(frozen=True)
class Kind:
    """An importer."""

    name: str
    summary: str
    about: str
    page: str
    examples: Sequence[str]
    tables: Sequence[Table]
    options: Sequence[Option]
    unit: str
    """What its files consist of, in the plural: lines, packets or documents."""
    row: str
    expected: str
    told: str
    counts: Sequence[Count]

    @property
    def function(self) -> str:
        """The name of its Python function."""
        return f"import_{self.name.replace('-', '_')}"


def _kind(found: dict[str, Any]) -> Kind:
    parts = {
        "tables": [Table(**table) for table in found["tables"]],
        "options": [Option(**option) for option in found["options"]],
        "counts": [Count(**count) for count in found["counts"]],
    }
    return Kind(**{**found, **parts})


IMPORTERS = {kind.name: kind for kind in map(_kind, _core.importers())}
"""Every importer by its name, in the order in which help lists them."""
