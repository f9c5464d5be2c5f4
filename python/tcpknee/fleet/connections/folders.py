"""DATA: folders of recordings, imports, runs and ready tables, and what of them is read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tcpknee.datasets.dataset import Dataset
from tcpknee.datasets.partitions import Damage, Partitions
from tcpknee.errors import MissingTable, RunFolderError, TcpkneeError, UsageError

READ = ("connections", "sockets", "samples", "assignments")
"""Tables that connections are made of, the best first: what is made already is not made again. A folder with the log of
`knee assign` alone says which arms those of other folders have."""

_OWN = frozenset(("boot_id", "cookie", "bytes_acked"))
"""Columns that tell a fleet's `connections` from a trace's table of that name."""


@dataclass
class Folder:
    """A folder with connections, the table that they come from, and the words that describe it."""

    path: Path
    dataset: Dataset
    source: str
    name: str = ""
    """What stands for the host where no table names it; no other folder of DATA has it."""
    tags: Mapping[str, str] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    """What its rows say against themselves."""
    read: list[Partitions] = field(default_factory=list)
    """Tables that are read."""
    views: dict[str, str] = field(default_factory=dict)
    """The view of each of these in the database, by the table's name."""
    columns: dict[str, list[str]] = field(default_factory=dict)

    @property
    def files(self) -> list[Path]:
        """The whole files of all its tables."""
        tables = (*self.dataset.partitions.values(), *self.dataset.remains.values())
        return [path for table in tables for path in table.whole]

    def leave_out(self, damage: Damage, notes: list[str]) -> bool:
        """Takes the damaged file from the folder's tables and notes it; False: none of them has it."""
        for table in self.read:
            if damage.path in table.whole:
                table.whole.remove(damage.path)
                notes.append(f"left out: {damage.why}")
                return True
        return False

    def table(self, name: str, *, partial: bool, notes: list[str]) -> Partitions | None:
        """A table's files, None where there is no such table. `partial`: less the damaged ones, with a note.

        Raises RunFolderError: a file is damaged.
        """
        if name not in self.dataset.damaged:
            return self.dataset.partitions.get(name)
        if not partial:
            raise RunFolderError(f"{self.dataset.damaged[name]} --partial leaves the file out, and says so.")
        notes.append(f"left out: {self.dataset.damaged[name]}")
        return self.dataset.remains.get(name)


def find(data: Sequence[Path | str], tags: Iterable[str], *, partial: bool, notes: list[str]) -> list[Folder]:
    """The folders of DATA: each itself, or those below it that hold tables.

    Raises UsageError (a tag), RunFolderError (a folder without connections, unless `partial`, which notes it).
    """
    if not data:
        raise UsageError("DATA: got nothing; expected a folder that record, import or run wrote.")
    described = _tags(tags)
    found: dict[Path, Folder] = {}
    for given in map(Path, data):
        for path in _with_tables(given):
            try:
                folder = _opened(path, _words_of(path, given, described))
            except TcpkneeError as error:
                if not partial:
                    raise
                notes.append(f"left out: {error}")
                continue
            if path.resolve() in found:
                notes.append(f"{path}: was given twice, and is read once.")
            found[path.resolve()] = folder
    unused = {str(path) for path in described} - {
        str(path) for given in map(Path, data) for path in (given, *_with_tables(given))
    }
    if unused:
        raise UsageError(f"--tag: got {min(unused)}, which is no folder of DATA; expected one of {_listed(data)}.")
    if found and all(folder.source == "assignments" for folder in found.values()):
        raise MissingTable(
            f"{_listed(data)}: holds an assignment log alone; expected the connections that it is about."
        )
    if not found:
        raise MissingTable(f"{_listed(data)}: no folder of it can be read, so that there is nothing left.")
    for resolved, name in _names(found).items():
        found[resolved].name = name
    return list(found.values())


def _names(paths: Iterable[Path]) -> dict[Path, str]:
    """As much of the end of each path as tells it from the others."""
    names: dict[Path, str] = {}
    left, parts = list(paths), 1
    while left:
        ends = {path: str(Path(*path.parts[-parts:])) for path in left}
        times = Counter(ends.values())
        names |= {path: end for path, end in ends.items() if times[end] == 1}
        left = [path for path in left if path not in names]
        parts += 1
    return names


def _listed(data: Sequence[Path | str]) -> str:
    return ", ".join(map(str, data))


def _with_tables(given: Path) -> list[Path]:
    """The folder itself where it holds a table; else those below it that do."""
    if not given.is_dir() or any(given.glob("*.parquet*")):
        return [given]
    below = sorted({path.parent for path in given.rglob("*.parquet*")})
    return below or [given]


def _opened(path: Path, tags: Mapping[str, str]) -> Folder:
    dataset = Dataset(path)
    held = {*dataset.tables}
    ready = dataset.partitions.get("connections")
    if ready is not None and not set(ready.schema.names) >= _OWN:
        held.discard("connections")
    source = next((name for name in READ if name in held), None)
    if held == {"requests"}:
        raise MissingTable(
            f"{path}: holds requests alone; expected the sockets that they came over. Import the log of nginx into the "
            "folder of the host's recording (--out)."
        )
    if source is None:
        raise MissingTable(
            f"{path}: holds {', '.join(sorted(held)) or 'no table'}; expected sockets of a recording or an import, "
            "samples of a run, or connections of `knee fleet connections`."
        )
    return Folder(path, dataset, source, tags=tags)


def _tags(given: Iterable[str]) -> dict[Path, dict[str, str]]:
    """DIR:NAME=VALUE, by folder."""
    found: dict[Path, dict[str, str]] = {}
    for tag in given:
        folder, colon, words = tag.rpartition(":")
        name, equals, value = words.partition("=")
        if not (folder and colon and name.isidentifier() and equals and value):
            raise UsageError(f'--tag: got "{tag}"; expected DIR:NAME=VALUE, as in rec/edge1:site=tokyo.')
        found.setdefault(Path(folder), {})[name] = value
    return found


def _words_of(path: Path, given: Path, described: Mapping[Path, Mapping[str, str]]) -> dict[str, str]:
    return {**described.get(given, {}), **described.get(path, {})}


def tagged(tags: Mapping[str, str], more: Mapping[str, object] | None = None) -> str | None:
    """Tags as JSON text; None where there are none."""
    words = {**{name: str(value) for name, value in (more or {}).items()}, **tags}
    return json.dumps(words, sort_keys=True) if words else None
