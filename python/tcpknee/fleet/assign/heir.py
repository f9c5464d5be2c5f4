"""The user who called sudo: what root writes into that user's folder is left to them, who compare it later.

That user counts as root here (docs/guide.md, "Root and the folders of others"), so a name in the folder is taken for
the file that was written there. The folder is held: what its owner puts at its path meanwhile gets nothing.
"""

from __future__ import annotations

import os
from contextlib import suppress
from fnmatch import filter as of_names

from tcpknee import _core
from tcpknee.runs import run_as


class Heir:
    """Who gets the files of a folder: the user who called sudo, if the folder is theirs; else they stay root's."""

    def __init__(self, folder: _core.Folder) -> None:
        """Folders that were made for it go to that user, too. Raises UsageError: SUDO_UID is no user."""
        self._user = run_as.caller() if os.geteuid() == 0 else None
        self._folder = folder
        if self._user is not None:
            # Some file systems have one owner for all.
            with suppress(OSError):
                folder.give_made(self._user.uid, self._user.gid)
            if folder.owner != self._user.uid:
                self._user = None

    def take_file(self, descriptor: int) -> None:
        """A file that was just made is theirs from now on."""
        if self._user is not None:
            with suppress(OSError):
                os.fchown(descriptor, self._user.uid, self._user.gid)

    def take(self, pattern: str) -> None:
        """Likewise files of ours in the folder whose names fit; a link is none."""
        if self._user is not None:
            with suppress(OSError):
                for name in of_names(self._folder.names(), pattern):
                    # A segment gets another name when it ends.
                    with suppress(FileNotFoundError):
                        self._folder.give(name, self._user.uid, self._user.gid)
