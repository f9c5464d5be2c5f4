"""The snapshot of a host that sent its files (`crates/hold/src/recorded.rs`), as `--engine hosts` brings them of both
hosts. What only the kernel itself tells, its interfaces, qdiscs, routes and sockets, is missing there."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tcpknee import host_files, reading
from tcpknee.errors import UsageError
from tcpknee.writing import replacing

from .reader import Roots
from .snapshot import Snapshot
from .take import take

FORMAT = "tcpknee-host-files"


def read(path: Path) -> Snapshot:
    """A snapshot or such a file, which the user named. Raises UsageError."""
    return Snapshot.read(path, {FORMAT: of_json})


def of_folder(path: Path) -> Snapshot:
    """Such a file in the folder of a run. Raises UsageError, RunFolderError."""
    try:
        found = json.loads(reading.content(path))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: cannot be read ({str(error)[:200]}); the engine hosts writes one.") from None
    return of_json(found if isinstance(found, dict) else {})


def of_json(found: Mapping[str, Any]) -> Snapshot:
    """What such a file holds. Raises UsageError."""
    files, taken = found.get("files"), found.get("taken_unix_ns")
    if (
        found.get("version") != 1
        or not isinstance(taken, int)
        or not isinstance(files, dict)
        or not all(isinstance(text, str) for text in files.values())
    ):
        raise UsageError("got files of a host in another form than this program reads. Run it again with this version.")
    return snapshot_of(files, taken)


def snapshot_of(files: Mapping[str, str], taken_unix_ns: int) -> Snapshot:
    """Of the files' paths below the root, and what they hold. Raises UsageError where a path leads elsewhere."""
    if why := host_files.mistake(files):
        raise UsageError(f"files of a host: {why}.")
    with tempfile.TemporaryDirectory(prefix="tcpknee-host-") as name:
        root = Path(name)
        for path, text in files.items():
            with replacing(root / path, make=True) as file:
                file.write(text.encode("utf-8", "replace"))
        found = take(roots=Roots(root / "proc", root / "sys", root, netlink=False))
    # Who reads here says nothing of who read there.
    host = {
        **found.host,
        "root": None,
        "cpus": found.host["cpus"] if "sys/devices/system/cpu/online" in files else None,
    }
    return dataclasses.replace(found, taken_unix_ns=taken_unix_ns, tables={**found.tables, "host": [host]})
