"""Files that somebody else may have put into a folder: manifests, snapshots, notes to a running command.

Whoever may write there can put a FIFO, a device or a file without end at the name. Nobody waits for it, and no more
than asked for is read.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from . import _core
from .errors import RunFolderError

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BYTES = 256 << 20
"""Of a file whose reader says nothing else: a run.json of 100,000 cells, the most that a scenario has, is of 80 MB."""


ReadFile = Callable[[str], tuple[str, bool]]
"""The text of a file, a Parquet table as CSV, and whether errors may quote it. Raises OSError."""

_MOST_PROGRAM_BYTES = 16 << 20


def toml(text: str) -> dict[str, Any]:
    """What a text in TOML says. Raises ValueError where it is none, also where it is nested too deeply."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError(str(error)) from None


_foreign_allowed = False


def allow_foreign_files() -> None:
    """From now on, root reads what a scenario names outside of its own folder as well, and compiles what others own;
    `--allow-foreign-files` does it for a command."""
    global _foreign_allowed
    _foreign_allowed = True


def foreign_files_allowed() -> bool:
    """Was that said?"""
    return _foreign_allowed


def regular(path: str) -> tuple[str, BinaryIO]:
    """A regular file and its real path. Nothing else is opened: a device acts, a FIFO waits."""
    try:
        place = os.open(path, os.O_PATH)
    except ValueError as error:
        raise OSError(str(error)) from None
    try:
        mode = os.fstat(place).st_mode
        if not stat.S_ISREG(mode):
            kind = "a FIFO" if stat.S_ISFIFO(mode) else "a folder" if stat.S_ISDIR(mode) else "a device"
            raise OSError(f"it is {kind}; expected a regular file")
        held = Path(f"/proc/self/fd/{place}")
        return str(held.readlink()), held.open("rb")
    finally:
        os.close(place)


def program(path: str) -> tuple[str, bool]:
    """The text of a source that will be compiled and run, which the user himself named, so that errors may quote it.
    Raises OSError; for root also where somebody else can have written it."""
    try:
        real, file = regular(path)
        with file:
            check_owner(real, file)
            text = file.read(_MOST_PROGRAM_BYTES)
        return text.decode("utf-8"), True
    except UnicodeDecodeError:
        raise OSError("it is no text in UTF-8") from None
    except OSError as error:
        raise OSError(reason(error)) from None


def check_owner(real: str, file: BinaryIO) -> None:
    """Raises OSError where root would run what somebody else can have written."""
    if os.geteuid() != 0 or _foreign_allowed:
        return
    folder = Path(real).parent
    for what, about in (("it", os.fstat(file.fileno())), (f"its folder {folder}", folder.stat())):
        # In a folder like /tmp others replace no file of root's.
        others = 0 if stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX else 0o022
        if about.st_uid != 0 or about.st_mode & others:
            whose = f"belongs to the user {about.st_uid}" if about.st_uid != 0 else "can be written by others"
            raise OSError(
                f"{what} {whose}, and root runs nothing that somebody else can have written. Run it as that user, copy "
                "it into a folder of root's, or say --allow-foreign-files"
            )


def reason(error: OSError) -> str:
    """Why a file cannot be read, in words."""
    return "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror or str(error)


def parquet(source: Any) -> pa.Table:
    """The table in a Parquet file. Raises what `parquet_errors` names, also for a column's name that is no UTF-8: Arrow
    looks at names only when it is asked for them."""
    import pyarrow.parquet as pq

    table: pa.Table = pq.read_table(source)
    list(table.column_names)
    return table


def parquet_errors() -> tuple[type[Exception], ...]:
    """What Arrow raises for a Parquet file that somebody else wrote: its own errors, those of the system, and for a
    name or a note that is no UTF-8 Python's."""
    import pyarrow as pa

    return (OSError, pa.ArrowException, UnicodeDecodeError)


def content(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """What a file holds. Raises OSError; RunFolderError for what is no file, or larger."""
    return of_open(_core.open_readable(path), path, most_bytes=most_bytes)


def of_open(descriptor: int, path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """The same of one that was opened, which is closed. Raises OSError, RunFolderError."""
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise RunFolderError(
                f"{path}: has {size / (1 << 20):,.1f} MiB; expected {most_bytes / (1 << 20):g} at most. Move it away."
            )
        return file.read(size)


def json_of(path: Path, *, most_bytes: int = MOST_BYTES) -> Any:
    """The same as JSON. Raises also ValueError, for what is none."""
    text = content(path, most_bytes=most_bytes)
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError(str(error)) from None
