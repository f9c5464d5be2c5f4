"""What a test run that was killed left in the kernel, and its removal.

Namespaces carry the process that made them in their name. A registered congestion control does not, so a note of it
lies in NOTES; both are gone after a reboot. What a living run or someone else made is left alone.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NOTES = Path("/run/kneepoint-tests")
NAMESPACES = Path("/run/netns")


def started(pid: int) -> str | None:
    """When the process began, in ticks since boot; None for one that does not run. Tells a pid used again apart."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, ticks = fields[0], fields[19]
    return None if state in "ZX" else ticks


@contextmanager
def noted(name: str) -> Iterator[None]:
    """Meanwhile this process owns the registration of that name."""
    NOTES.mkdir(exist_ok=True)
    note = NOTES / name
    note.write_text(f"{os.getpid()} {started(os.getpid())}\n")
    try:
        yield
    finally:
        note.unlink()


def quietly(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def sweep() -> list[str]:
    """Removes what dead processes left. Returns its names."""
    swept = []
    for namespace in sorted(NAMESPACES.glob("knee-*")):
        named = re.fullmatch(r"knee-(\d+)-[arb]", namespace.name)
        if named is None or started(int(named[1])):
            continue
        for pid in quietly("ip", "netns", "pids", namespace.name).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        quietly("ip", "netns", "delete", namespace.name)
        swept.append(namespace.name)
    for note in sorted(NOTES.glob("*")):
        words = note.read_text().split()
        # A note cut short was being written when its process died.
        if len(words) == 2 and started(int(words[0])) == words[1]:
            continue
        quietly("bpftool", "struct_ops", "unregister", "name", note.name)
        note.unlink()
        swept.append(note.name)
    return swept
