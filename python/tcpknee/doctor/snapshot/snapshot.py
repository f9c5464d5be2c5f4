"""A snapshot: tables of rows, and what could not be read."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeGuard

from tcpknee import reading
from tcpknee.errors import UsageError
from tcpknee.human import suggest
from tcpknee.writing import replacing

from . import samples
from .tables import TABLES, Kind

FORMAT = "tcpknee-snapshot"
VERSION = 2
"""2: columns that are counted, and a first sample of them. Files of version 1 are read, too: they lack columns."""

MOST_BYTES = 512 << 20
"""A larger file is no snapshot: 4,096 interfaces on 512 processors come to about 50 MB."""

MOST_SECONDS = 86_400
"""Between two samples."""

Row = Mapping[str, Any]

_PLAIN = {str, bool, float, int, type(None)}
"""Types of the values of an object."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Keeps Python's cyclic collector from looking: of thousands of interfaces it would go through millions of objects
    again and again, which takes longer than to make them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@dataclass(frozen=True)
class Missing:
    """Something that could not be read."""

    what: str
    why: str
    needs: str
    """What would be needed to read it: root, a module, another namespace; "" where nothing helps."""


@dataclass(frozen=True)
class Earlier:
    """The first of two samples: the tables of `samples.KEYS`, with what their rows count."""

    seconds: float
    """Time from it to the second, which is the snapshot."""
    tables: Mapping[str, Sequence[Row]]

    @staticmethod
    def of(seconds: float, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Earlier:
        """Raises UsageError."""
        for name in tables:
            if name not in samples.KEYS:
                raise UsageError(f'tables: got "{name}"; {suggest(name, list(samples.KEYS), "expected")}')
        return Earlier(seconds, _full(tables))


@dataclass(frozen=True)
class Snapshot:
    """The tables that `tables.py` describes. Every row has all columns of its table; null where not known."""

    taken_unix_ns: int
    tables: Mapping[str, Sequence[Row]]
    missing: Sequence[Missing] = ()
    earlier: Earlier | None = None

    @staticmethod
    def of(
        taken_unix_ns: int, tables: Mapping[str, Sequence[Mapping[str, Any]]], missing: Sequence[Missing] = ()
    ) -> Snapshot:
        """The same with the tables and columns that were left out, as empty and null. Raises UsageError where a table,
        column or type is not one of this version."""
        for name in tables:
            if name not in TABLES:
                raise UsageError(f'tables: got "{name}"; {suggest(name, list(TABLES), "expected")}')
        return Snapshot(taken_unix_ns, dict.fromkeys(TABLES, ()) | _full(tables), tuple(missing))

    @cached_property
    def window(self) -> Snapshot | None:
        """The same host with counts of the time between its two samples alone. None: there was one sample."""
        if self.earlier is None:
            return None
        return replace(
            self, tables=samples.window(self.tables, self.earlier.tables, self.earlier.seconds), earlier=None
        )

    @cached_property
    def before(self) -> Snapshot | None:
        """The same host with the counts of the first sample. None: there was one sample."""
        if self.earlier is None:
            return None
        return replace(self, tables=samples.before(self.tables, self.earlier.tables), earlier=None)

    def rows(self, table: str) -> Sequence[Row]:
        """The rows of a table."""
        return self.tables[table]

    @property
    def host(self) -> Row:
        """The row of `host`; all null where there is none."""
        rows = self.tables["host"]
        return rows[0] if rows else dict.fromkeys(TABLES["host"].columns)

    @property
    def netns(self) -> str | None:
        """The namespace's name where one was asked for; None: that of who took the snapshot."""
        name: str | None = self.host["netns"]
        return None if name is None or name == "unknown" or name.startswith("net:[") else name

    def of_interface(self, table: str, interface: Row) -> Sequence[Row]:
        """The rows of a table that belong to a row of `interfaces`. A table about the machine has no namespaces."""
        netns = interface["netns"] if "netns" in TABLES[table].columns else None
        return self._by_interface(table).get((netns, interface["interface"]), ())

    def sysctl(self, name: str) -> str | None:
        """The value of a sysctl; null: not known here."""
        return self._sysctls.get(name)

    def counter(self, name: str) -> int | None:
        """The value of a counter; null: not known here."""
        return self._counters.get(name)

    @cached_property
    def _sysctls(self) -> Mapping[str, str | None]:
        return {row["name"]: row["value"] for row in self.tables["sysctls"]}

    @cached_property
    def _counters(self) -> Mapping[str, int | None]:
        return {row["name"]: row["value"] for row in self.tables["counters"]}

    @cached_property
    def _indexes(self) -> dict[str, dict[tuple[str | None, str | None], list[Row]]]:
        return {}

    def _by_interface(self, table: str) -> Mapping[tuple[str | None, str | None], Sequence[Row]]:
        """Built once per table: with 4,096 interfaces a search for each would take minutes."""
        if table not in self._indexes:
            index: dict[tuple[str | None, str | None], list[Row]] = {}
            for row in self.tables[table]:
                index.setdefault((row.get("netns"), row["interface"]), []).append(row)
            self._indexes[table] = index
        return self._indexes[table]

    @staticmethod
    def read(path: Path, others: Mapping[str, Callable[[Any], Snapshot]] = MappingProxyType({})) -> Snapshot:
        """One that the user named, as a file or a pipe; `others`: what reads files of other formats, by their names.
        Raises UsageError for what is no snapshot, is cut off, or comes from a newer version."""

        def content() -> bytes:
            with path.open("rb") as file:
                return file.read(MOST_BYTES + 1)

        return Snapshot._of(path, content, others)

    @staticmethod
    def of_folder(path: Path) -> Snapshot:
        """One that lies in a folder. Raises also RunFolderError, for what is no file."""
        return Snapshot._of(path, lambda: reading.content(path, most_bytes=MOST_BYTES), {})

    @staticmethod
    def _of(path: Path, content: Callable[[], bytes], others: Mapping[str, Callable[[Any], Snapshot]]) -> Snapshot:
        try:
            text = content()
        except OSError as error:
            raise UsageError(
                f"{path}: cannot be read: {error.strerror or error}. `knee snapshot --out FILE` writes one."
            ) from None
        if len(text) > MOST_BYTES:
            raise UsageError(
                f"{path}: is larger than {MOST_BYTES >> 20} MiB; expected a snapshot, which is smaller. "
                "`knee snapshot --out FILE` writes one."
            )
        with uncollected():
            return Snapshot._of_text(path, text, others)

    @staticmethod
    def _of_text(path: Path, text: bytes, others: Mapping[str, Callable[[Any], Snapshot]]) -> Snapshot:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"{path}: is not JSON, or is cut off ({str(error)[:200]}); expected a file of `knee snapshot`. "
                "Copy it again, or take a new one."
            ) from None
        other = others.get(str(found.get("format"))) if isinstance(found, dict) else None
        try:
            return (other or Snapshot.of_json)(found)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None

    @staticmethod
    def of_json(found: Any) -> Snapshot:
        """What `json` gave. Raises UsageError."""
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise UsageError(f'got a file without "format": "{FORMAT}"; expected one that `knee snapshot` wrote.')
        version = found.get("version")
        if not _is_whole(version) or version < 1:
            raise UsageError(f'version: got "{version}"; expected {VERSION}. Take a new snapshot with this program.')
        if version > VERSION:
            raise UsageError(
                f"version: got {version}, which a newer tcpknee wrote; this one reads up to {VERSION}. Update "
                "tcpknee here, or take the snapshot with this version."
            )
        taken, tables, missing = found.get("taken_unix_ns"), found.get("tables"), found.get("missing", [])
        if not _is_whole(taken):
            raise UsageError(
                f'taken_unix_ns: got "{taken}"; expected a whole number of nanoseconds. Take a new snapshot.'
            )
        if not isinstance(tables, dict) or not all(isinstance(rows, list) for rows in tables.values()):
            raise UsageError("tables: expected an object whose values are lists of rows. Take a new snapshot.")
        if not isinstance(missing, list) or not all(
            isinstance(one, dict) and all(isinstance(one.get(key, ""), str) for key in ("what", "why", "needs"))
            for one in missing
        ):
            raise UsageError('missing: expected a list of objects with the texts "what", "why", "needs".')
        named = [Missing(one.get("what", ""), one.get("why", ""), one.get("needs", "")) for one in missing]
        return replace(Snapshot.of(taken, tables, named), earlier=_earlier(found.get("earlier")))

    def write(self, path: Path) -> None:
        """Raises RunFolderError."""
        with replacing(path, make=True) as file:
            file.write(json.dumps(self.json(), separators=(",", ":")).encode())
            file.write(b"\n")

    def json(self) -> dict[str, Any]:
        """As it is written: columns that are null are left out."""
        whole: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "taken_unix_ns": self.taken_unix_ns,
            "tables": _written(self.tables),
            "missing": [{"what": one.what, "why": one.why, "needs": one.needs} for one in self.missing],
        }
        if self.earlier is not None:
            whole["earlier"] = {"seconds": self.earlier.seconds, "tables": _written(self.earlier.tables)}
        return whole


def _written(tables: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    return {
        name: [{column: value for column, value in row.items() if value is not None} for row in rows]
        for name, rows in tables.items()
    }


def _earlier(found: Any) -> Earlier | None:
    """The first sample of a file; None where it has one sample only."""
    if found is None:
        return None
    if (
        not isinstance(found, dict)
        or not _fits("number", found.get("seconds"))
        or not 0 < found["seconds"] < MOST_SECONDS
    ):
        raise UsageError("earlier: expected an object with the seconds between the samples. Take a new snapshot.")
    tables = found.get("tables")
    if not isinstance(tables, dict) or not all(isinstance(rows, list) for rows in tables.values()):
        raise UsageError("earlier.tables: expected an object whose values are lists of rows. Take a new snapshot.")
    try:
        return Earlier.of(found["seconds"], tables)
    except UsageError as error:
        raise UsageError(f"earlier.{error}") from None


def _full(tables: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Row]]:
    return {name: [_row(name, at, row) for at, row in enumerate(rows)] for name, rows in tables.items()}


def _row(table: str, at: int, row: Any) -> Row:
    """The row with all columns."""
    columns = TABLES[table].columns
    if not isinstance(row, Mapping):
        raise UsageError(f'tables.{table}[{at}]: got "{_shown(row)}"; expected an object. Take a new snapshot.')
    full: dict[str, Any] = dict.fromkeys(columns)
    for name, value in row.items():
        column = columns.get(name)
        if column is None:
            raise UsageError(f'tables.{table}[{at}]: got "{name}"; {suggest(name, list(columns), "expected")}')
        if value is not None and not _fits(column.kind, value):
            raise UsageError(
                f'tables.{table}[{at}].{name}: got "{_shown(value)}"; expected {column.kind}. Take a new snapshot.'
            )
        full[name] = value
    if full.get("interface") is not None and not _names_an_interface(full["interface"]):
        raise UsageError(
            f'tables.{table}[{at}].interface: got "{_shown(full["interface"])}", a name that no kernel gives; expected '
            "at most 15 bytes without blank, slash or colon. Take a new snapshot."
        )
    return full


def _names_an_interface(name: str) -> bool:
    """The kernel's rule (dev_valid_name in net/core/dev.c)."""
    size = len(name.encode("utf-8", "surrogateescape"))
    return 0 < size <= 15 and name not in (".", "..") and not re.search(r"[/:\s\0]", name)


def _fits(kind: Kind, value: Any) -> bool:
    if kind in ("integer", "count"):
        return _is_whole(value)
    if kind == "number":
        return _is_whole(value) or (isinstance(value, float) and value == value and abs(value) != float("inf"))
    if kind == "text":
        return isinstance(value, str)
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "integers":
        return isinstance(value, list) and all(map(_is_whole, value))
    if kind == "texts":
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if kind == "counts":
        return isinstance(value, dict) and _are_counts(value.values())
    return isinstance(value, dict) and _is_plain(value.values())


def _are_counts(values: Collection[Any]) -> bool:
    """All at once: interrupts of 512 processors are such objects, thousands of them."""
    return not values or (set(map(type, values)) == {int} and _is_whole(min(values)) and _is_whole(max(values)))


def _is_plain(values: Collection[Any]) -> bool:
    """Numbers and texts."""
    numbers = [value for value in values if type(value) is int]
    return set(map(type, values)) <= _PLAIN and (not numbers or (_is_whole(min(numbers)) and _is_whole(max(numbers))))


def _is_whole(value: Any) -> TypeGuard[int]:
    """A whole number of at most 64 bits, which is what the kernel counts in."""
    return type(value) is int and -(1 << 63) <= value < 1 << 64


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
