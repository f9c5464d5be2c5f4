"""Files that somebody else may have put into a folder: manifests, snapshots, notes to a running command.

Whoever may write there can put a FIFO, a device or a file without end at the name. Nobody waits for it, and no more
than asked for is read.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from . import _core
from .errors import RunFolderError

MOST_BYTES = 256 << 20
"""Of a file whose reader says nothing else: a run.json of 100,000 cells, the most that a scenario has, is of 80 MB."""


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
