"""Files that a scenario names. Who named them says which are read, and whether errors may quote them.

A scenario that somebody sent can name any file, and its errors may end in a log that many read. So the words of a
file stand in errors only where it lies in the scenario's own folder, links followed; and root, who can read all files,
reads no other one before `--allow-foreign-files`. What the user names himself, on the command line or in Python, is his
affair.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

ReadFile = Callable[[str], tuple[str, bool]]
"""The text of a file, a Parquet table as CSV, and whether errors may quote it. Raises OSError."""

_MOST_BYTES = 256 << 20
"""Of a file, and of the text of a Parquet table. A table of 100,000 paths has some 10 MB; a device has no end."""

_foreign_allowed = False


def allow_foreign_files() -> None:
    """From now on, root reads what a scenario names outside of its own folder as well; `--allow-foreign-files` does it
    for a command."""
    global _foreign_allowed
    _foreign_allowed = True


def named_by(file: str) -> ReadFile:
    """Reads for a scenario of that file; for one that never was a file, `<text>`, what the user himself named. What
    comes by stdin may be anybody's; names in it are relative to the current folder."""
    return _by_hand if file.startswith("<") and file != "<stdin>" else _Named(_folder(file))


def named_by_stored(file: str, text: str) -> ReadFile:
    """Reads for a scenario that a run's folder holds. What else that folder says is not believed: only a file that
    still holds the text shows which folder is the scenario's own."""
    with suppress(OSError, ValueError):
        _, found = _open(file)
        with found:
            if found.read(len(text.encode()) + 1) == text.encode():
                return _Named(_folder(file))
    return _Named(None)


def _folder(file: str) -> str:
    return os.path.realpath(Path(file).parent)


def _by_hand(path: str) -> tuple[str, bool]:
    try:
        with Path(path).open("rb") as file:
            return _text(path, file), True
    except OSError as error:
        raise OSError(_reason(error)) from None


@dataclass(frozen=True)
class _Named:
    """Reads for a scenario in that folder, a real path; None: in no folder that is known."""

    folder: str | None

    def __call__(self, path: str) -> tuple[str, bool]:
        try:
            real, file = _open(path)
        except OSError as error:
            # Which files there are elsewhere is not said either.
            self._is_own(os.path.realpath(path))
            raise OSError(_reason(error)) from None
        with file:
            is_own = self._is_own(real)
            try:
                return _text(path, file), is_own
            except OSError as error:
                raise OSError(_reason(error) if is_own else "it is no text in UTF-8, or no table") from None

    def _is_own(self, real: str) -> bool:
        """Is the file in the scenario's folder? Raises OSError where it is not to be read at all."""
        is_own = self.folder is not None and os.path.commonpath([self.folder, real]) == self.folder
        if not is_own and os.geteuid() == 0 and not _foreign_allowed:
            raise OSError(
                "it lies outside of the scenario's folder, and root reads no such file for a scenario that may be of "
                "somebody else. Put it beside the scenario, or say --allow-foreign-files"
            )
        return is_own


def _open(path: str) -> tuple[str, BinaryIO]:
    """A regular file and its real path. Nothing else is opened: a device acts, a FIFO waits."""
    place = os.open(path, os.O_PATH)
    try:
        mode = os.fstat(place).st_mode
        if not stat.S_ISREG(mode):
            kind = "a FIFO" if stat.S_ISFIFO(mode) else "a folder" if stat.S_ISDIR(mode) else "a device"
            raise OSError(f"it is {kind}; expected a regular file")
        held = Path(f"/proc/self/fd/{place}")
        return str(held.readlink()), held.open("rb")
    finally:
        os.close(place)


def _text(path: str, file: BinaryIO) -> str:
    data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise OSError(f"it has more than {_MOST_BYTES >> 20} MiB")
    if path.endswith(".parquet"):
        from . import parquet

        return parquet.as_csv(data, most_bytes=_MOST_BYTES)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise OSError("it is no text in UTF-8") from None


def _reason(error: OSError) -> str:
    return "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
