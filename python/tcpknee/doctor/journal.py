"""What was changed on this host, kept so that it can be put back: after a crash, too, and after a boot.

A file of JSON in a folder of root's, below folders of root's. It is obeyed only if nobody else can have written it. It
is written anew before and after each step, and is on the disk before the step goes on. An entry holds a change with
what was there before, what is wanted, and what the kernel made of it:

    intended   it may have been made, or not
    made       it was
    undoing    putting back has begun

What has been put back, is gone or was changed by somebody else is no longer in it. What could not be put back is made.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tcpknee import _core, reading
from tcpknee.errors import EngineError, TcpkneeError
from tcpknee.writing import cannot_write, new_file

from .changes import Change, State, change_of, checked

FOLDER = Path("/var/lib/tcpknee/doctor")
FORMAT, VERSION = "tcpknee-journal", 1
_FILE = "journal.json"
_LOCK = "lock"


@dataclass
class Beside:
    """A setting that a change may have reset; None: it was not there."""

    change: dict[str, Any]
    before: State
    after: State = None
    is_ours: bool = True
    """Nobody else changed it before the change was taken back."""

    @property
    def subject(self) -> Change:
        return change_of(self.change)


@dataclass
class Entry:
    """A change that was made, or begun."""

    change: dict[str, Any]
    rule: str
    before: State
    goal: State
    boot_id: str
    netns_inode: int
    state: Literal["intended", "made", "undoing"] = "intended"
    after: State = None
    persists: bool = False
    """Whether a file of ours has it made again after a boot."""
    beside: list[Beside] = field(default_factory=list)
    t_unix_ns: int = field(default_factory=time.time_ns)

    @property
    def subject(self) -> Change:
        return change_of(self.change)


@dataclass
class WrittenFile:
    """A file of ours: what it may hold now. Two texts while it is being written; None: no file."""

    path: str
    texts: list[str | None]


class Journal:
    """The entries of this host, and the files that were written for its next boots. `open_journal` gives it.

    Raises RunFolderError for a file that another user may have written, EngineError for one that is no journal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: list[Entry] = []
        self.files: list[WrittenFile] = []
        self._held = _core.Folder(folder, of_root=True)
        self._read()

    def _read(self) -> None:
        descriptor = self._held.open_own(_FILE)
        if descriptor is None:
            return
        text = reading.of_open(descriptor, self.folder / _FILE)
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.unreadable(str(error)) from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise self.unreadable("it is no journal")
        if found.get("version") != VERSION:
            raise self.unreadable(f"its version is {found.get('version')}, and this release reads {VERSION}")
        try:
            self.entries = [_entry(entry) for entry in found["entries"]]
            self.files = [WrittenFile(**checked(WrittenFile, one)) for one in found["files"]]
            for entry in self.entries:
                _ = entry.subject
        except (KeyError, TypeError, TcpkneeError) as error:
            raise self.unreadable(f"an entry is damaged: {str(error).rstrip('.')}") from None

    def unreadable(self, why: str) -> EngineError:
        """The error to raise where nothing may be done by this journal."""
        return EngineError(
            f"{self.folder / _FILE}: cannot be read: {why}. Nothing was changed. Put the file back from a backup; or "
            "look in it for what was there before, put that back by hand, and remove it."
        )

    def write(self) -> None:
        """Puts the journal on the disk as it is now. Raises RunFolderError."""
        found = {
            "format": FORMAT,
            "version": VERSION,
            "entries": [asdict(entry) for entry in self.entries],
            "files": [asdict(one) for one in self.files],
        }
        try:
            with new_file(self._held, _FILE) as file:
                # A file that a group may write is not read again.
                os.fchmod(file.fileno(), 0o600)
                file.write(json.dumps(found, indent=1).encode())
                file.flush()
                os.fsync(file.fileno())
            synced(self.folder)
        except OSError as error:
            raise cannot_write(self.folder / _FILE, error) from None


def _entry(found: Any) -> Entry:
    beside = [Beside(**checked(Beside, one)) for one in found["beside"]]
    return Entry(**checked(Entry, {**found, "beside": beside}))


def synced(folder: Path) -> None:
    """The names in a folder are on the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def open_journal(folder: Path = FOLDER) -> Iterator[Journal]:
    """The journal, which no other process changes meanwhile. Raises EngineError, RunFolderError."""
    try:
        lock = _core.Folder(folder, of_root=True).lock(_LOCK)
    except OSError as error:
        raise cannot_write(folder, error) from None
    if lock is None:
        raise EngineError(f"{folder}: another knee doctor is changing this host; wait for its end.")
    try:
        yield Journal(folder)
    finally:
        lock.release()


def boot_id() -> str:
    """It tells one boot from another."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
