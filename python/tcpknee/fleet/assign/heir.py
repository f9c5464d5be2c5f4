"""The user who called sudo: what root writes into that user's folder is left to them, who compare it later.

That user counts as root here (docs/guide.md, "Root and the folders of others"), so a name in the folder is taken for
the file that was written there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tcpknee.runs import run_as


def missing(folder: Path) -> list[Path]:
    """The folder and those above it, as far as root still has to make them."""
    return [path for path in (folder, *folder.parents) if not path.exists()] if os.geteuid() == 0 else []


class Heir:
    """Who gets the files of a folder: the user who called sudo, if the folder is theirs; else they stay root's."""

    def __init__(self, folder: Path, made: Sequence[Path]) -> None:
        """`made`: folders that were made for this, which that user gets too. Raises UsageError: SUDO_UID is no user."""
        self._user = run_as.caller() if os.geteuid() == 0 else None
        self._folder = folder
        for path in made:
            self._take(path)
        if self._user is not None and folder.stat().st_uid != self._user.uid:
            self._user = None

    def take_file(self, descriptor: int) -> None:
        """An open file of root's is theirs from now on."""
        if self._user is None:
            return
        about = os.fstat(descriptor)
        # A file of several names may be one of root's elsewhere.
        if about.st_uid == 0 and (stat.S_ISDIR(about.st_mode) or (stat.S_ISREG(about.st_mode) and about.st_nlink < 2)):
            # Some file systems have one owner for all.
            with suppress(OSError):
                os.fchown(descriptor, self._user.uid, self._user.gid)

    def take(self, pattern: str) -> None:
        """Likewise the files of the folder whose names fit."""
        for path in self._folder.glob(pattern):
            self._take(path)

    def _take(self, path: Path) -> None:
        # A link is nobody's to follow, and a segment gets another name when it ends.
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                self.take_file(descriptor)
            finally:
                os.close(descriptor)
