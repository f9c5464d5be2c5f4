"""Files that a scenario names. Who named them says which are read, and whether errors may quote them.

A scenario that somebody sent can name any file, and its errors may end in a log that many read. So the words of a
file stand in errors only where it lies in the scenario's own folder, links followed; and root, who can read all files,
reads no other one before `--allow-foreign-files`. What the user names himself, on the command line or in Python, is his
affair.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tcpknee import reading
from tcpknee.reading import ReadFile

_MOST_BYTES = 256 << 20
"""Of a file, and of the text of a Parquet table. A table of 100,000 paths has some 10 MB; a device has no end."""


def named_by(file: str) -> ReadFile:
    """Reads for a scenario of that file; for one that never was a file, `<text>`, what the user himself named. What
    comes by stdin may be anybody's; names in it are relative to the current folder."""
    return _by_hand if file.startswith("<") and file != "<stdin>" else _Named(_folder(file))


def named_by_stored(file: str, text: str) -> ReadFile:
    """Reads for a scenario that a run's folder holds. What else that folder says is not believed: only a file that
    still holds the text shows which folder is the scenario's own."""
    with suppress(OSError, ValueError):
        _, found = reading.regular(file)
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
        raise OSError(reading.reason(error)) from None


def programs_named_by(file: str) -> ReadFile:
    """The same of sources that will be compiled and run: root takes none that somebody else can have written."""
    return reading.program if file.startswith("<") and file != "<stdin>" else _Named(_folder(file), will_run=True)


@dataclass(frozen=True)
class _Named:
    """Reads for a scenario in that folder, a real path; None: in no folder that is known."""

    folder: str | None
    will_run: bool = False

    def __call__(self, path: str) -> tuple[str, bool]:
        try:
            real, file = reading.regular(path)
        except OSError as error:
            # Which files there are elsewhere is not said either.
            self._is_own(os.path.realpath(path))
            raise OSError(reading.reason(error)) from None
        with file:
            is_own = self._is_own(real)
            if self.will_run:
                reading.check_owner(real, file)
            try:
                return _text(path, file), is_own
            except OSError as error:
                raise OSError(reading.reason(error) if is_own else "it is no text in UTF-8, or no table") from None

    def _is_own(self, real: str) -> bool:
        """Is the file in the scenario's folder? Raises OSError where it is not to be read at all."""
        is_own = self.folder is not None and os.path.commonpath([self.folder, real]) == self.folder
        if not is_own and os.geteuid() == 0 and not reading.foreign_files_allowed():
            raise OSError(
                "it lies outside of the scenario's folder, and root reads no such file for a scenario that may be of "
                "somebody else. Put it beside the scenario, or say --allow-foreign-files"
            )
        return is_own


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
