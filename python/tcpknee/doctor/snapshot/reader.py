"""Reading files of /proc and /sys that may be absent or unreadable."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from tcpknee.doctor.cpus import of_list

from .snapshot import Missing

MOST_BYTES = 16 << 20
"""/proc/interrupts of 512 processors and 4,096 interrupts has 24 MB; its tail is then left out, and named."""
_PIECE_BYTES = 64 << 10


@dataclass(frozen=True)
class Roots:
    """Where the file systems are; tests give folders of their own."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    root: Path = Path("/")
    """Folder of etc, run and usr."""
    netlink: bool = True
    """Whether the kernel is asked besides the files."""


@dataclass
class Reader:
    """The files, the namespace's name, and what was missing so far."""

    roots: Roots
    netns: str
    missing: list[Missing] = field(default_factory=list)

    def text(self, path: Path, what: str = "") -> str | None:
        """What a file holds, without blanks at its ends. None: it is not there, or cannot be read; with `what` the
        latter is named once."""
        try:
            with path.open("rb", buffering=0) as file:
                found = _whole_of(cast(BinaryIO, file))
        except PermissionError:
            self.miss(what or str(path), "permission denied", "root")
            return None
        except OSError:
            # The file is not there, or the driver has nothing to say: EINVAL, EOPNOTSUPP, ENODEV.
            return None
        if len(found) > MOST_BYTES:
            self.miss(what or str(path), f"larger than {MOST_BYTES >> 20} MiB; its end was left out", "")
        return found[:MOST_BYTES].decode("utf-8", "replace").strip()

    def unpacked(self, path: Path) -> str | None:
        """What a file that gzip packed holds. None: it is not there, or is no such file."""
        try:
            with gzip.open(path) as file:
                return file.read(MOST_BYTES).decode("utf-8", "replace")
        except (OSError, EOFError, zlib.error):
            return None

    def number(self, path: Path, what: str = "") -> int | None:
        """A file that is one whole number."""
        return whole(self.text(path, what))

    def entries(self, path: Path) -> Iterator[Path]:
        """What a folder holds, by name; nothing where it is not there or cannot be listed."""
        try:
            yield from sorted(path.iterdir())
        except OSError:
            return

    def target(self, path: Path) -> str | None:
        """The last part of where a link leads."""
        try:
            return path.readlink().name
        except OSError:
            return None

    def miss(self, what: str, why: str, needs: str) -> None:
        """Notes that something could not be read, once."""
        one = Missing(what, why, needs)
        if one not in self.missing:
            self.missing.append(one)


def _whole_of(file: BinaryIO) -> bytes:
    """In pieces: /proc/sys refuses a read of more than its largest allocation."""
    pieces = []
    room = MOST_BYTES + 1
    while room > 0 and (piece := file.read(min(room, _PIECE_BYTES))):
        pieces.append(piece)
        room -= len(piece)
    return b"".join(pieces)


def whole(text: str | None) -> int | None:
    """A whole number of 64 bits; None for anything else."""
    try:
        value = int(text or "")
    except ValueError:
        return None
    return value if -(1 << 63) <= value < 1 << 64 else None


def cpus_of_list(text: str | None) -> list[int] | None:
    """The processors of a list; None where it cannot be read."""
    try:
        return None if text is None else of_list(text)
    except ValueError:
        return None
