"""BPF programs in the kernel, and those of one process: others may be there, of tests that run beside this one."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from building import run


def programs() -> dict[int, str]:
    """All, by identifier: their names."""
    return {entry["id"]: entry.get("name", "") for entry in json.loads(run("bpftool", "-j", "prog", "list"))}


def programs_of(pid: int) -> dict[int, str]:
    """Those that the process holds, by what its descriptors say."""
    found = set()
    for info in Path(f"/proc/{pid}/fdinfo").glob("*"):
        # A descriptor may be closed between its listing and its reading.
        with contextlib.suppress(FileNotFoundError):
            for line in info.read_text().splitlines():
                if line.startswith("prog_id:"):
                    found.add(int(line.split()[1]))
    return {number: name for number, name in programs().items() if number in found}
