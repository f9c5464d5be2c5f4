"""The run folder: `run.json`, Parquet tables and, while a run is under way or was interrupted, its parts.

    RUN/run.json                     what was asked, by whom it was run, how it ended
    RUN/{runs,flows,samples,queue,events}.parquet, from the kernel also {cpu,links,programs}.parquet
    RUN/output/                      what programs of the scenario printed
    RUN/parts/c000012-r0003.arrow    one finished repetition of one cell: Arrow streams, one after the other

Every file is written beside its name and renamed into place (`writing.py`), so a reader never sees half of one. A
simulated run's tables hold nothing that differs between two runs of the same scenario; wall times, workers and the host
stand in `run.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from kneepoint import _core
from kneepoint.datasets import manifest
from kneepoint.errors import RunFolderError
from kneepoint.writing import cannot_write, new_file

from . import tables

_PART = re.compile(r"c(\d{6,})-r(\d{4,})\.arrow")
_ROW_GROUP = 1 << 17

# Parts are read once and thrown away, and repetitions already keep the processors busy: lz4 on the calling thread is
# ten times faster than zstd on Arrow's own threads for short runs, and no slower for long ones.
_WRITE_PART = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ_PART = pa.ipc.IpcReadOptions(use_threads=False)

_JSON = json.JSONEncoder(ensure_ascii=False).encode

_NAME = b"table"
"""Key of a schema that holds the table's name, as the engines write it."""

Key = tuple[int, int]
"""(cell, repetition)."""


class RunFolder:
    """A folder that a run writes or wrote."""

    def __init__(self, path: Path, created: bool = False) -> None:
        self.path = path
        self.created = created
        self._held: _core.Folder | None = None
        self._lock: _core.Lock | None = None

    @staticmethod
    def create(path: Path, *, force: bool = False) -> RunFolder:
        """A fresh folder; an earlier run in it goes only with `force`, and anything else in it is never touched."""
        present = path.exists()
        if present and not path.is_dir():
            raise RunFolderError(f"{path}: is a file; expected a folder, or a name that is free. Choose another --out.")
        if present and any(path.iterdir()):
            if not (path / "run.json").is_file():
                raise RunFolderError(
                    f"{path}: is not empty and holds no run.json, so it is not a run folder. Choose another --out."
                )
            if not force:
                raise RunFolderError(
                    f"{path}: already holds a run. Choose another --out, finish it with --resume, or replace it with "
                    "--force."
                )
        try:
            folder = RunFolder(path)
            folder._held = _core.Folder(path)
            folder.created = folder._held.made
            folder.lock()
            if present:
                folder._clear()
        except OSError as error:
            raise cannot_write(path, error) from None
        return folder

    @staticmethod
    def open(path: Path) -> RunFolder:
        """A folder that holds a run."""
        if not (path / "run.json").is_file():
            got = "a folder without run.json" if path.is_dir() else "a file" if path.exists() else "no such folder"
            raise RunFolderError(f"{path}: got {got}; expected a run folder, as `knee run` writes one.")
        return RunFolder(path)

    def lock(self) -> None:
        """Keeps other processes from writing here until this one ends, however it ends."""
        self._lock = self._writing.lock(".lock")
        if self._lock is None:
            raise RunFolderError(
                f"{self.path}: another process is writing to it. Wait for it, or choose another --out."
            ) from None
        self._writing.sweep()

    def unlock(self) -> None:
        if self._lock is not None:
            self._writing.remove(".lock")
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
            raise cannot_write(self.path / "run.json", error, resumable=True) from None

    def write_part(self, key: Key, streams: Mapping[str, pa.Table]) -> None:
        """Keeps one finished repetition."""
        name = _part_name(key)
        # Arrow writes piece by piece, which in memory costs nothing.
        content = pa.BufferOutputStream()
        write_streams(content, streams)
        try:
            with new_file(self._writing.folder("parts"), name) as file:
                file.write(content.getvalue())
        except OSError as error:
            raise cannot_write(self.path / "parts" / name, error, resumable=True) from None

    @property
    def output(self) -> Path:
        """Where programs of the scenario leave what they print."""
        return self.path / "output"

    def parts(self) -> list[Key]:
        """Repetitions kept, in the order of the matrix."""
        with suppress(FileNotFoundError):
            found = [_PART.fullmatch(file.name) for file in (self.path / "parts").iterdir()]
            return sorted((int(match[1]), int(match[2])) for match in found if match)
        return []

    def read_part(self, key: Key) -> dict[str, pa.Table]:
        """The tables of a repetition kept."""
        file = self.path / "parts" / _part_name(key)
        try:
            with pa.OSFile(str(file), "rb") as source:
                return read_streams(source)
        except (OSError, pa.ArrowInvalid) as error:
            raise RunFolderError(f"{file}: cannot be read: {error}. Remove it and --resume again.") from None

    def merge(self, run: Mapping[str, Any], keys: Sequence[Key]) -> dict[Key, dict[str, Any]]:
        """Writes the tables from the parts, in the order of the matrix; memory holds a few parts at a time.

        `run` is the content of `run.json`. Returns the note of each repetition.
        """
        names = tables.of_engine(run["engine"])
        try:
            with ExitStack() as stack:
                files = {name: stack.enter_context(new_file(self._writing, f"{name}.parquet")) for name in names}
                done = self._merge_into(files, keys)
                pq.write_table(tables.runs_table(run, done), files["runs"], compression="zstd")
            return done
        except OSError as error:
            raise cannot_write(self.path, error, resumable=True) from None

    def _merge_into(self, files: Mapping[str, BinaryIO], keys: Sequence[Key]) -> dict[Key, dict[str, Any]]:
        """Merges the engine's tables; returns the note of each part."""
        writers: dict[str, _Rows] = {}
        done = {}
        try:
            for key in keys:
                part = self.read_part(key)
                part["flows"], done[key] = tables.take_note(part["flows"])
                for name, table in part.items():
                    if name not in writers:
                        writers[name] = _Rows(files[name], table.schema)
                    writers[name].append(table)
            for writer in writers.values():
                writer.finish()
        finally:
            for writer in writers.values():
                writer.abandon()
        return done

    def remove_parts(self) -> None:
        with suppress(OSError):
            self._writing.remove_folder("parts")

    def discard(self) -> None:
        """Takes back a folder in which nothing was finished."""
        self.unlock()
        if self.created:
            with suppress(OSError):
                self._writing.clear()
                self.path.rmdir()

    def _clear(self) -> None:
        """Removes what a run wrote here, and nothing else."""
        for name in ("parts", self.output.name):
            self._writing.remove_folder(name)
        for name in ("run.json", *(f"{name}.parquet" for name in tables.NAMES)):
            self._writing.remove(name)


class _Rows:
    """A Parquet file written in row groups of about the same size, whatever the sizes of the parts."""

    def __init__(self, file: BinaryIO, schema: pa.Schema) -> None:
        self._writer: pq.ParquetWriter | None = pq.ParquetWriter(file, schema, compression="zstd")
        self._waiting: list[pa.Table] = []
        self._rows = 0

    def append(self, table: pa.Table) -> None:
        self._waiting.append(table)
        self._rows += table.num_rows
        if self._rows >= _ROW_GROUP:
            self._flush()

    def finish(self) -> None:
        if self._rows:
            self._flush()
        assert self._writer is not None
        self._writer.close()
        self._writer = None

    def abandon(self) -> None:
        """Closes without a word; the file is thrown away."""
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()
            self._writer = None

    def _flush(self) -> None:
        assert self._writer is not None
        table = pa.concat_tables(self._waiting).unify_dictionaries().combine_chunks()
        self._writer.write_table(table, row_group_size=_ROW_GROUP)
        self._waiting, self._rows = [], 0


def write_streams(sink: pa.NativeFile, found: Mapping[str, pa.Table]) -> None:
    """Writes tables as Arrow streams, one after the other, each with its name in the schema."""
    for name, table in found.items():
        whole = table.replace_schema_metadata({**(table.schema.metadata or {}), _NAME: name}).combine_chunks()
        with pa.ipc.new_stream(sink, whole.schema, options=_WRITE_PART) as writer:
            writer.write_table(whole)


def read_streams(source: pa.NativeFile) -> dict[str, pa.Table]:
    """The tables that `write_streams` wrote."""
    found = {}
    while source.tell() < source.size():
        table = pa.ipc.open_stream(source, options=_READ_PART).read_all()
        found[table.schema.metadata[_NAME].decode()] = table
    return found


def next_free(parent: Path, stem: str) -> Path:
    """`parent/stem-1`, or the first number after all that exist."""
    return parent / f"{stem}-{max(_numbers(parent, stem), default=0) + 1}"


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
    return f"c{key[0]:06d}-r{key[1]:04d}.arrow"
