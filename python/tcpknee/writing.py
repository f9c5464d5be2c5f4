"""Files that the front writes: all of them go through here.

    with replacing(Path("report.html")) as file:
        file.write(b"...")

`_core.Folder` does it (`crates/store/src/folder.rs`), as it does for the recorder: names are taken within a folder's
descriptor, no link is followed, names of temporary files cannot be guessed, root's files are root's alone, and root
refuses a folder that another user owns.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from . import _core, interrupts
from .errors import RunFolderError

_SPILL = "tcpknee-spill-"
_LOCK = ".lock"

_foreign_allowed = False


def allow_foreign_folders() -> None:
    """From now on, root writes into folders of other users as well, whose owners can put anything in a file's place;
    `--allow-foreign-folder` does it for a command."""
    global _foreign_allowed
    _foreign_allowed = True
    _core.allow_foreign_folders()


def foreign_folders_allowed() -> bool:
    """Was that said?"""
    return _foreign_allowed


@contextmanager
def new_file(folder: _core.Folder, name: str, *, public: bool = False) -> Iterator[BinaryIO]:
    """A file to write to, which has its name when all went well; else nothing is left of it. Raises OSError,
    RunFolderError."""
    temporary, descriptor = folder.temporary(name, public)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        interrupts.check()
        folder.replace(temporary, name)
    except BaseException:
        with suppress(OSError, RunFolderError):
            folder.remove(temporary)
        raise


@contextmanager
def replacing(path: Path, *, make: bool = False, public: bool = False) -> Iterator[BinaryIO]:
    """The same by its path, in place of what file was there. `make`: its folder too; `public`: it tells nothing of this
    host, so that others may read what root wrote. Raises RunFolderError."""
    try:
        with new_file(_core.Folder(path.parent, make=make), path.name, public=public) as file:
            yield file
    except OSError as error:
        raise cannot_write(path, error) from None


def user_cache() -> Path:
    """The folder for what can be made anew: this user's (XDG Base Directory Specification), or root's, whose HOME may
    be that of whoever called sudo."""
    of_user = Path("/var/cache") if os.geteuid() == 0 else Path.home() / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or of_user) / "tcpknee"


@contextmanager
def spill_folder() -> Iterator[Path]:
    """A folder for what memory does not hold, which may be much. What killed processes of this user left of theirs goes
    first."""
    import tempfile

    parent = Path(tempfile.gettempdir())
    with suppress(OSError):
        _sweep_spills(_core.Folder(parent, make=False))
    lock = None
    with ExitStack() as stack:
        # Another process that sweeps can be quicker with the lock of a new folder, and takes that away.
        while lock is None:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_SPILL, ignore_cleanup_errors=True)))
            with suppress(FileNotFoundError):
                lock = _core.Folder(path, make=False).lock(_LOCK)
            # Of a file that is gone the lock keeps nobody out.
            if lock is not None and not (path / _LOCK).exists():
                lock.release()
                lock = None
        stack.callback(lock.release)
        yield path


def _sweep_spills(parent: _core.Folder) -> None:
    for name in parent.names():
        if not name.startswith(_SPILL):
            continue
        with suppress(OSError, RunFolderError):
            folder = parent.open_folder(name)
            if folder is None or folder.owner != os.geteuid():
                continue
            lock = folder.lock(_LOCK)
            if lock is not None:
                for file in folder.names():
                    folder.remove(file)
                parent.remove_empty(name)
                lock.release()


def cannot_write(path: Path, error: OSError, *, resumable: bool = False) -> RunFolderError:
    """What to say of an OSError; `resumable` when finished repetitions stay in the folder."""
    after = " What is finished can be taken up with --resume." if resumable else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "Make room, or choose another place."
    elif error.errno in (errno.EACCES, errno.EPERM):
        advice = "Ask for the right to write there, or choose another place."
    else:
        advice = "Choose another place."
    return RunFolderError(f"{path}: cannot be written: {error.strerror or error}. {advice}{after}")
