"""The files of a folder's tables, and their rows as Arrow.

A table is one file, TABLE.parquet, or segments in the order of their numbers. Of a segment that its writer has not
ended, or never will, the complete row groups are read where they are (`crates/store/src/segment/unfinished.rs`).
"""

from __future__ import annotations

import errno
import io
import os
import re
import shlex
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tcpknee import _core, reading
from tcpknee.errors import RunFolderError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_SEGMENT = re.compile(r"(?P<table>[A-Za-z]\w*?)(-\d{6,})?\.parquet")


def find(folder: Path) -> tuple[dict[str, Partitions], dict[str, str], dict[str, Partitions]]:
    """The tables of a folder by their names, why some of them cannot be read, and of these the files that can.

    Raises RunFolderError.
    """
    found: dict[str, Partitions] = {}
    damaged: dict[str, str] = {}
    # Before the whole ones: a part that its writer ends meanwhile is found as either.
    parts = _core.unfinished(folder)
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise RunFolderError(
            f"{folder}: cannot be read: {error.strerror}. Ask for the right to read it, or choose another folder."
        ) from None
    for path in paths:
        if match := _SEGMENT.fullmatch(path.name):
            try:
                _core.check_readable(path)
            except (OSError, RunFolderError) as error:
                damaged[match["table"]] = str(error)
            else:
                found.setdefault(match["table"], Partitions(match["table"])).whole.append(path)
    whole = {path for table in found.values() for path in table.whole}
    for name, part, content, why in parts:
        if not _SEGMENT.fullmatch(part.with_suffix("").name):
            continue
        if why is not None:
            damaged[name] = _forbidden(part) if _is_forbidden(why) else why
        elif content is not None and part.with_suffix("") not in whole:
            found.setdefault(name, Partitions(name)).unfinished.append((part, content))
    remains = {name: found.pop(name) for name in damaged if name in found}
    return found, damaged, remains


@dataclass
class Partitions:
    """The files of one table, in the order of its rows. Methods raise RunFolderError: a file is damaged or gone."""

    name: str
    whole: list[Path] = field(default_factory=list)
    unfinished: list[tuple[Path, _core.Unfinished]] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:
        """Columns of all files. Those of different versions may differ: what a file lacks is null."""
        schema: pa.Schema = self._file.schema_arrow if self._file else self._rows.schema
        return schema

    @property
    def num_rows(self) -> int:
        """As the footers say."""
        if self._file:
            return int(self._file.metadata.num_rows)
        return sum(part.metadata.num_rows for part in self.fragments)

    def read(self, columns: Sequence[str] | None = None, equals: Mapping[str, int] | None = None) -> pa.Table:
        """The rows, or of them those columns, and only where each column in `equals` has that value."""

        chosen = list(columns) if columns else None
        try:
            table: pa.Table
            if self._file and not equals and set(chosen or ()) <= set(self._file.schema_arrow.names):
                # Of one group the columns are read before Arrow's threads have begun.
                table = self._file.read(chosen, use_threads=self._file.num_row_groups > 1)
                if chosen:
                    # A file gives its columns in its own order.
                    table = table.select(chosen)
            else:
                table = self._rows.to_table(columns=chosen, filter=_where(equals or {}))
        except reading.parquet_errors() as error:
            raise RunFolderError(self._why(error)) from None
        return table

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Those columns, a few rows at a time."""

        try:
            if self._file:
                yield from self._file.iter_batches(columns=list(columns), use_threads=False)
            else:
                yield from self._rows.to_batches(columns=list(columns), batch_readahead=2, fragment_readahead=1)
        except reading.parquet_errors() as error:
            raise RunFolderError(self._why(error)) from None

    @cached_property
    def _file(self) -> Any:
        """Of a table of one whole file that file, to be read without the machinery for many, whose import takes longer
        than a short run."""
        if len(self.whole) != 1 or self.unfinished:
            return None
        import pyarrow as pa
        from pyarrow import parquet

        [path] = self.whole
        with _telling_of(path):
            # By an open file: a path alone may be taken for a URI.
            return parquet.ParquetFile(pa.OSFile(str(path)))

    @cached_property
    def fragments(self) -> list[Any]:
        """A fragment of pyarrow's per file, in the order of the rows."""
        return [part for _, part in self._opened]

    def scanned(self, part: Path) -> Any:
        """An unfinished segment as a data set of pyarrow's: DuckDB reads it column by column and group by group, as it
        does files."""
        from pyarrow import dataset

        fragment = self.fragments[len(self.whole) + [path for path, _ in self.unfinished].index(part)]
        return dataset.FileSystemDataset([fragment], fragment.physical_schema, dataset.ParquetFileFormat())

    @cached_property
    def _opened(self) -> list[tuple[Path, Any]]:
        import pyarrow as pa
        from pyarrow import dataset, fs

        form = dataset.ParquetFileFormat()
        # A path alone may be taken for a URI: "a:b".
        here = fs.LocalFileSystem()
        opened = [(path, form.make_fragment(str(path.absolute()), filesystem=here)) for path in self.whole]
        opened += [
            (part, form.make_fragment(pa.PythonFile(_File(content), mode="r"))) for part, content in self.unfinished
        ]
        for path, fragment in opened:
            with _telling_of(path):
                fragment.ensure_complete_metadata()
        return opened

    @cached_property
    def _rows(self) -> Any:
        import pyarrow as pa
        from pyarrow import dataset, fs

        schemas = [fragment.physical_schema for fragment in self.fragments]
        try:
            schema = pa.unify_schemas(schemas, promote_options="permissive")
        except reading.parquet_errors() as error:
            raise RunFolderError(
                f"{self.whole[0].parent if self.whole else self.unfinished[0][0].parent}: the files of {self.name} "
                f"do not fit one another: {_first_line(error)}. Move those of one kind to another folder."
            ) from None
        return dataset.FileSystemDataset(self.fragments, schema, dataset.ParquetFileFormat(), fs.LocalFileSystem())

    def __getstate__(self) -> dict[str, Any]:
        """Names alone: another process opens the files itself. Raises UsageError: one is not whole."""
        if self.unfinished:
            raise UsageError(
                f"{self.unfinished[0][0]}: is being written, and cannot be pickled; expected whole files. Give the "
                "other process the folder, or the rows: `arrow()`."
            )
        return {"name": self.name, "whole": self.whole, "unfinished": []}

    def _why(self, error: Exception) -> str:
        damage = self.first_damaged()
        return damage.why if damage else f"{self.name}: {_first_line(error)}"

    def first_damaged(self) -> Damage | None:
        """The first file whose rows cannot be read, whichever column it is."""

        for path, fragment in self._opened:
            try:
                for _ in fragment.to_batches():
                    pass
            except reading.parquet_errors() as error:
                return Damage.of(path, _first_line(error))
        return None


@contextmanager
def _telling_of(path: Path) -> Iterator[None]:
    """What opens a file within says of it what is wrong. Raises RunFolderError."""

    try:
        yield
    except FileNotFoundError:
        raise RunFolderError(f"{path}: was deleted meanwhile. Ask again.") from None
    except reading.parquet_errors() as error:
        raise RunFolderError(Damage.of(path, _first_line(error)).why) from None


def _where(equals: Mapping[str, int]) -> Any:
    """A filter: each column has that value; None: every row."""
    import pyarrow.compute as pc

    wanted = None
    for key, value in equals.items():
        here = pc.field(key) == value
        wanted = here if wanted is None else wanted & here
    return wanted


class _File(io.RawIOBase):
    """The whole file that an unfinished segment would be. Each thread has a position of its own: Arrow's threads move
    theirs and read in two calls, and ask for the size in four."""

    def __init__(self, content: _core.Unfinished) -> None:
        self._content, self._positions = content, threading.local()

    @property
    def _at(self) -> int:
        return getattr(self._positions, "at", 0)

    @_at.setter
    def _at(self, at: int) -> None:
        self._positions.at = at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._content)}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        rest = max(len(self._content) - self._at, 0)
        found = self._content.read_at(rest if size < 0 else min(size, rest), self._at)
        self._at += len(found)
        return found


class Damage(NamedTuple):
    """A file that cannot be read."""

    path: Path
    why: str
    """A sentence that begins with the path."""

    @staticmethod
    def of(path: Path, error: str) -> Damage:
        """The file is damaged, or this user may not read it."""
        if _is_forbidden(error):
            return Damage(path, _forbidden(path))
        return Damage(
            path,
            f"{path}: is damaged: {error.rstrip('. ')}; expected a whole Parquet file. Move it away, and the table has "
            "the rows of its other files; other tables can be asked as it is.",
        )


def _is_forbidden(why: str) -> bool:
    """Is that what the kernel says of a file that this user may not read? DuckDB and Arrow tell it as text alone."""
    return any(os.strerror(number) in why for number in (errno.EACCES, errno.EPERM))


def _forbidden(path: Path) -> str:
    return (
        f"{path}: this user may not read it; expected a file of this user's. "
        f'`sudo chown -R "$USER" {shlex.quote(str(path.parent))}` hands the folder over; or run this as its owner.'
    )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
