"""What a test run that was killed left in the kernel, and its removal.

Who makes namespaces or registers a congestion control notes so in a file of its own in NOTES, a folder that is root's
alone, and holds a lock on that file while it lives. A note without a lock is of a process that is dead: what it names
is removed. What anybody else made is left alone. All of it is gone after a reboot.
"""

import fcntl
import os
import re
import secrets
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tcpknee.fleet.assign import cgroup

NOTES = Path("/run/tcpknee-tests")
NAMESPACES = Path("/run/netns")
# What our tests make, and nothing that a command could take for something else.
OURS = {
    "netns": re.compile(r"knee-[0-9a-f]{8}-[a-z]"),
    "struct_ops": re.compile(r"knee_[a-z0-9_]{1,10}"),
    "cgroup": re.compile(r"knee-[0-9a-f]{8}-[a-z]"),
}


def folder() -> Path:
    """NOTES, which only root can have made and nobody else can write to."""
    with suppress(FileExistsError):
        NOTES.mkdir(mode=0o700)
    found = NOTES.lstat()
    assert stat.S_ISDIR(found.st_mode) and found.st_uid == 0, f"{NOTES} is not a folder of root's; remove it"
    if stat.S_IMODE(found.st_mode) != 0o700:
        NOTES.chmod(0o700)
    return NOTES


@contextmanager
def noted(kind: str, *names: str) -> Iterator[None]:
    """Meanwhile these belong to this process: network namespaces (`netns`), registrations (`struct_ops`), cgroups."""
    assert all(OURS[kind].fullmatch(name) for name in names), names
    note = folder() / secrets.token_hex(8)
    directory = os.open(NOTES, os.O_DIRECTORY)
    # It has no name before it is whole and locked.
    with os.fdopen(os.open(NOTES, os.O_TMPFILE | os.O_RDWR, 0o600), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write("".join(f"{kind} {name}\n" for name in names))
        file.flush()
        # With a descriptor, link(2) follows the link that /proc has for the file.
        os.link(f"/proc/self/fd/{file.fileno()}", note.name, dst_dir_fd=directory)
        os.close(directory)
        try:
            yield
        finally:
            note.unlink()


def new_namespace(role: str) -> str:
    """A name that nobody has."""
    return f"knee-{secrets.token_hex(4)}-{role}"


def quietly(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def sweep() -> list[str]:
    """Removes what dead processes left. Returns its names."""
    swept = []
    for note in sorted(folder().iterdir()):
        try:
            descriptor = os.open(note, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        with os.fdopen(descriptor) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            for line in file.read().splitlines():
                kind, _, name = line.partition(" ")
                if kind in OURS and OURS[kind].fullmatch(name):
                    remove(kind, name)
                    swept.append(name)
            note.unlink(missing_ok=True)
    return swept


def remove(kind: str, name: str) -> None:
    if kind == "struct_ops":
        quietly("bpftool", "struct_ops", "unregister", "name", name)
        return
    if kind == "cgroup":
        with suppress(OSError):
            (cgroup.folder(None) / name).rmdir()
        return
    if not (NAMESPACES / name).exists():
        return
    for pid in quietly("ip", "netns", "pids", name).split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    quietly("ip", "netns", "delete", name)
