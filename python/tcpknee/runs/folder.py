"""The run folder: `run.json`, Parquet tables and, while a run is under way or was interrupted, its parts.

    RUN/run.json                     what was asked, by whom it was run, how it ended
    RUN/{runs,flows,samples,queue,events}.parquet, from the kernel also
        {cpu,links,programs,host_costs,stacks}.parquet
    RUN/output/                      what programs of the scenario printed
    RUN/calls/                       calls of algorithms from files that went wrong
    RUN/parts/c000012-r0003.flows.parquet, c000012-r0003.samples.parquet, …
                                     one finished repetition of one cell, a file for each table; `flows` comes last

Every file is written beside its name and renamed into place (`writing.py`), so a reader never sees half of one. A
repetition's rows go into its part while it runs, and the tables are copied together from the parts
(`crates/store/src/parts`), so that memory holds a few rows of a run, however long it is. A simulated run's tables
hold nothing that differs between two runs of the same scenario; wall times, workers and the host stand in `run.json`.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tcpknee import _core, reading
from tcpknee.datasets import manifest
from tcpknee.errors import RunFolderError
from tcpknee.writing import cannot_write, new_file

from . import calls, tables
from .tables import PARTS

if TYPE_CHECKING:
    from .store import Store

_LAST = "flows"
"""The table whose file makes a part complete."""

_PART = re.compile(rf"c(\d{{6,}})-r(\d{{4,}})\.{_LAST}\.parquet")
_PART_FILE = re.compile(rf"c\d{{6,}}-r\d{{4,}}\.({'|'.join(tables.NAMES)})\.parquet")
_CALL_FILE = re.compile(r"\d+-\d+\.json")
_OUTPUT_FILE = re.compile(r"cell\d+-rep\d+-flow\d+-\w+\.txt")

# Streams are read once and thrown away: lz4 on the calling thread costs next to nothing.
_WRITE_STREAM = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ_STREAM = pa.ipc.IpcReadOptions(use_threads=False)

_LOCK = ".lock"

_JSON = json.JSONEncoder(ensure_ascii=False).encode

_NAME = b"table"
"""Key of a schema that holds the table's name, as the engines write it."""

Key = tuple[int, int]
"""(cell, repetition)."""


class Written(NamedTuple):
    """A repetition whose rows are in its part, which has still to be kept, and its note."""

    part: _core.Part
    note: Mapping[str, Any]


OF_HOSTS = {"sender": "sender.host.json", "receiver": "receiver.host.json"}
"""Of the engine hosts: the files that a host sent of itself."""


class RunFolder:
    """A folder that a run writes or wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_new = False
        self.replaces = False
        """It still holds the run that `begin` clears."""
        self._held: _core.Folder | None = None
        self._lock: _core.Lock | None = None

    @staticmethod
    def create(path: Path, *, force: bool = False) -> RunFolder:
        """A fresh folder. With `force` it may hold an earlier run, which goes when this one begins; anything else in
        it is never touched."""
        try:
            had_lock = (path / _LOCK).exists()
            if not had_lock:
                _check_free(path, force)
            folder = RunFolder(path)
            folder._held = _core.Folder(path)
            folder.lock()
            try:
                # Another process may have begun here, or come to its end, meanwhile.
                _check_free(path, force)
            except BaseException:
                folder.unlock(keep=had_lock)
                raise
            folder.replaces = (path / "run.json").is_file()
            folder._is_new = not folder.replaces
        except OSError as error:
            raise cannot_write(path, error) from None
        return folder

    def begin(self, place: str = "") -> None:
        """Clears the run that this one replaces, now that nothing can keep this one from its first repetition. `place`:
        where a cluster's workers write, which stays. Raises `RunFolderError`."""
        if not self.replaces:
            return
        try:
            self._clear(place)
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self.replaces, self._is_new = False, True

    @staticmethod
    def open(path: Path) -> RunFolder:
        """A folder that holds a run."""
        if not (path / "run.json").is_file():
            got = "a folder without run.json" if path.is_dir() else "a file" if path.exists() else "no such folder"
            raise RunFolderError(f"{path}: got {got}; expected a run folder, as `knee run` writes one.")
        return RunFolder(path)

    def lock(self) -> None:
        """Keeps other processes from writing here until this one ends, however it ends."""
        while self._lock is None:
            before = self._lock_file()
            lock = self._writing.lock(_LOCK)
            if lock is None:
                raise RunFolderError(
                    f"{self.path}: another process is writing to it. Wait for it, or choose another folder."
                ) from None
            # Who held it takes its file away at the end: of a file that is gone the lock keeps nobody out.
            if before is not None and before == self._lock_file():
                self._lock = lock
            else:
                lock.release()
        self._writing.sweep()

    def _lock_file(self) -> tuple[int, int] | None:
        """Which file the lock is now; None: there is none."""
        with suppress(FileNotFoundError):
            found = (self.path / _LOCK).lstat()
            return found.st_ino, found.st_ctime_ns
        return None

    def unlock(self, *, keep: bool = False) -> None:
        """`keep`: the lock's file stays."""
        if self._lock is not None:
            if not keep:
                self._writing.remove(_LOCK)
            self._lock.release()
            self._lock = None

    @property
    def _writing(self) -> _core.Folder:
        """The folder as it is held to write into. Raises OSError, RunFolderError."""
        if self._held is None:
            self._held = _core.Folder(self.path, make=False)
        return self._held

    def read_json(self) -> dict[str, Any]:
        """`run.json`."""
        return manifest.read(self.path / manifest.RUN)

    def write_json(self, content: Mapping[str, Any]) -> None:
        fields = {"schema": manifest.SCHEMA, **manifest.with_facts_once(content)}
        text = ",\n".join(f"{json.dumps(name)}: {_lines(value)}" for name, value in fields.items())
        try:
            with new_file(self._writing, "run.json") as file:
                file.write(f"{{\n{text}\n}}\n".encode())
        except OSError as error:
            raise cannot_write(self.path / "run.json", error, resumable=bool(self.parts())) from None

    def write_hosts(self, told: Mapping[str, Any]) -> None:
        """A file for each of two hosts with the files that it sent, by which the doctor judges it. Raises
        `RunFolderError`."""
        for role, name in OF_HOSTS.items():
            if role not in told:
                continue
            taken = {"format": "tcpknee-host-files", "version": 1, "taken_unix_ns": time.time_ns()}
            try:
                with new_file(self._writing, name) as file:
                    file.write(json.dumps({**taken, **told[role]["files"]}).encode())
            except OSError as error:
                raise cannot_write(self.path / name, error, resumable=bool(self.parts())) from None

    @contextmanager
    def writing_part(self, key: Key) -> Iterator[_core.Part]:
        """What the rows of a repetition are written to, before `keep_part`. Raises RunFolderError."""
        try:
            yield _core.Part(self._writing.folder(PARTS), _part_name(key), _LAST)
        except OSError as error:
            raise cannot_write(self._part_file(key, _LAST), error, resumable=bool(self.parts())) from None

    def keep_part(self, key: Key, written: Written) -> None:
        """Keeps a finished repetition whose rows were written while it ran."""
        try:
            written.part.keep(_JSON(written.note))
        except OSError as error:
            raise cannot_write(self._part_file(key, _LAST), error, resumable=bool(self.parts())) from None

    def write_part(self, key: Key, found: Mapping[str, pa.Table]) -> None:
        """Keeps a finished repetition whose tables are in memory."""
        flows, note = tables.take_note(found[_LAST])
        with self.writing_part(key) as part:
            for name, table in found.items():
                part.write(name, flows if name == _LAST else table)
        self.keep_part(key, Written(part, note))

    @property
    def output(self) -> Path:
        """Where programs of the scenario leave what they print."""
        return self.path / "output"

    def parts(self) -> list[Key]:
        """Repetitions kept of this run, in the order of the matrix."""
        if self.replaces:
            return []
        try:
            found = [_PART.fullmatch(file.name) for file in (self.path / PARTS).iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RunFolderError(f"{self.path / PARTS}: cannot be read: {error.strerror}.") from None
        return sorted((int(match[1]), int(match[2])) for match in found if match)

    def merge(self, run: Mapping[str, Any], keys: Sequence[Key]) -> dict[Key, dict[str, Any]]:
        """Writes the tables from the parts, in the order of the matrix.

        `run` is the content of `run.json`. Returns the note of each repetition.
        """
        names = tables.of_engine(run["engine"])
        try:
            with ExitStack() as stack:
                files = {name: stack.enter_context(new_file(self._writing, f"{name}.parquet")) for name in names}
                for name in names[1:]:
                    order = "flow" if name == _LAST else None
                    parts = [self._part_file(key, name) for key in keys]
                    notes = _core.compose(parts, order, files[name].fileno(), self.path / f"{name}.parquet")
                    if name == _LAST:
                        done = {key: json.loads(note or "{}") for key, note in zip(keys, notes, strict=True)}
                pq.write_table(tables.runs_table(run, done), files["runs"], compression="zstd")
            return done
        except OSError as error:
            raise cannot_write(self.path, error, resumable=bool(self.parts())) from None

    def read_part(self, key: Key, names: Iterable[str]) -> dict[str, pa.Table]:
        """Those tables of a repetition that was kept, `flows` with its note. Raises RunFolderError."""
        unreadable: tuple[type[Exception], ...] = (*reading.parquet_errors(), ValueError)
        try:
            files = {name: self._part_file(key, name) for name in names}
            found = {name: reading.parquet(file) for name, file in files.items() if file.exists()}
            if _LAST in found:
                found[_LAST] = tables.as_kept(found[_LAST], pq.read_metadata(files[_LAST]).metadata or {})
            return found
        except unreadable as error:
            raise RunFolderError(f"{self._part_file(key, _LAST)}: cannot be read: {error}.") from None

    def bring_home(self, stores: Iterable[Store]) -> None:
        """Takes over the units that this run lacks and that earlier sessions finished on a cluster."""
        have = set(self.parts())
        for store in stores:
            for part in store.parts():
                for key, found in store.read(part):
                    if key not in have:
                        self.write_part(key, found)
                        have.add(key)
                store.discard(part)

    def _part_file(self, key: Key, table: str) -> Path:
        return self.path / PARTS / f"{_part_name(key)}.{table}.parquet"

    def remove_parts(self) -> None:
        """Removes kept repetitions. What cannot be removed stays."""
        with suppress(OSError, RunFolderError):
            self._remove_parts()

    def _remove_parts(self, place: str = "") -> None:
        folder = self._writing.open_folder(PARTS)
        if folder is not None and any(name.startswith("tcpknee-") for name in folder.names()):
            from . import store

            for one in store.within(self.path):
                if one.url != place:
                    one.remove()
        self._remove_below(PARTS, _PART_FILE)

    def discard(self) -> None:
        """Takes back a run that this process began and of which nothing was finished. What was not written by a run
        stays, and so does a run that an earlier session began."""
        if self.replaces:
            # Of a cluster that could not begin.
            with suppress(OSError, RunFolderError):
                self._writing.remove_empty(PARTS)
        elif self._is_new:
            with suppress(OSError, RunFolderError):
                self._clear()
        self.unlock()
        if self._is_new and self._writing.made:
            with suppress(OSError):
                self.path.rmdir()

    def _clear(self, place: str = "") -> None:
        """Removes what a run wrote here, and nothing else. A `place` of a cluster's workers stays."""
        self._remove_parts(place)
        self._remove_below(self.output.name, _OUTPUT_FILE)
        self._remove_below(calls.FOLDER, _CALL_FILE)
        for name in ("run.json", *OF_HOSTS.values(), *(f"{name}.parquet" for name in tables.NAMES)):
            self._writing.remove(name)

    def _remove_below(self, name: str, ours: re.Pattern[str]) -> None:
        """Removes files of ours in a folder of it, and that folder if nothing else is in it."""
        folder = self._writing.open_folder(name)
        if folder is None:
            return
        folder.sweep()
        for file in filter(ours.fullmatch, folder.names()):
            folder.remove(file)
        with suppress(OSError):
            self._writing.remove_empty(name)


def _check_free(path: Path, force: bool) -> None:
    """Refuses a place for a fresh run where something else is. Raises OSError, RunFolderError."""
    if path.exists() and not path.is_dir():
        raise RunFolderError(f"{path}: is a file; expected a folder, or a name that is free. Choose another one.")
    if not path.exists() or all(file.name == _LOCK for file in path.iterdir()):
        return
    if not (path / "run.json").is_file():
        raise RunFolderError(
            f"{path}: is not empty and holds no run.json, so it is not a run folder. Choose another one."
        )
    if not force:
        raise RunFolderError(
            f"{path}: already holds a run. Choose another folder, finish it with `knee run --resume --out {path}`, or "
            "replace it with --force. In Python these are `resume=True` and `force=True`."
        )


def refuse_taken(path: Path, *, force: bool) -> None:
    """Refuses a place that a fresh run could not have, before others are waited for. Raises RunFolderError."""
    try:
        _check_free(path, force)
    except OSError as error:
        raise cannot_write(path, error) from None


def write_streams(sink: pa.NativeFile, found: Mapping[str, pa.Table]) -> None:
    """Writes tables as Arrow streams, one after the other, each with its name in the schema."""
    for name, table in found.items():
        whole = table.replace_schema_metadata({**(table.schema.metadata or {}), _NAME: name}).combine_chunks()
        with pa.ipc.new_stream(sink, whole.schema, options=_WRITE_STREAM) as writer:
            writer.write_table(whole)


def read_streams(source: pa.NativeFile) -> dict[str, pa.Table]:
    """The tables that `write_streams` wrote."""
    found = {}
    while source.tell() < source.size():
        table = pa.ipc.open_stream(source, options=_READ_STREAM).read_all()
        found[table.schema.metadata[_NAME].decode()] = table
    return found


def next_free(parent: Path, stem: str) -> Path:
    """`parent/stem-1`, or the first number after all that exist."""
    return parent / f"{stem}-{max(_numbers(parent, stem), default=0) + 1}"


@contextmanager
def fresh(parent: Path, stem: str) -> Iterator[Path]:
    """The same as a new folder, which no other process gets as well. It is taken back if nothing is in it at the end.
    Raises RunFolderError."""
    try:
        above = _core.Folder(parent)
        first = max(_numbers(parent, stem), default=0) + 1
        path = next(path for n in count(first) if _core.Folder(path := parent / f"{stem}-{n}").made)
    except OSError as error:
        raise cannot_write(parent, error) from None
    try:
        yield path
    finally:
        with suppress(OSError):
            path.rmdir()
            if above.made:
                parent.rmdir()


def newest(parent: Path, stem: str) -> Path | None:
    """The `parent/stem-N` of the greatest number."""
    taken = _numbers(parent, stem)
    return parent / f"{stem}-{max(taken)}" if taken else None


def _numbers(parent: Path, stem: str) -> list[int]:
    pattern = re.compile(re.escape(stem) + r"-(\d+)")
    with suppress(OSError):
        return [int(match[1]) for file in parent.iterdir() if (match := pattern.fullmatch(file.name))]
    return []


def _lines(value: Any) -> str:
    """JSON with a line per entry of a list, so that a matrix of thousands of cells stays readable and small."""
    if not isinstance(value, list) or not value:
        return _JSON(value)
    return "[\n  " + ",\n  ".join(map(_JSON, value)) + "\n]"


def _part_name(key: Key) -> str:
    return f"c{key[0]:06d}-r{key[1]:04d}"
