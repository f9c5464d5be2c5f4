"""What the network costs this host: a folder of Parquet tables.

    found = tcpknee.live.profile.take("cost", seconds=10)
    found.costs["pacing_timer_fires"] / found.costs["data_skbs_sent"]

A profile is a folder: `host_costs.parquet`, `stacks.parquet` and the other tables of `TABLES`, whose columns carry
unit, meaning and source in their metadata, and `profile.json`, which says what was asked, what it cost, what was lost.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tcpknee import _core, provenance
from tcpknee.datasets import manifest
from tcpknee.datasets.dataset import Dataset
from tcpknee.errors import RunFolderError, UsageError
from tcpknee.human import suggest
from tcpknee.writing import replacing

from . import which

TABLES = ("host_costs", "stacks", "histograms", "processors", "softirqs", "threads")
ABOUT = manifest.PROFILE
STACKS_HZ = 499
"""Samples of stacks per second and processor; a prime, so that it does not beat with the kernel's tick."""
LOOK_EVERY_SEC = 0.1


@dataclass(frozen=True)
class Profile:
    """A profile that was taken."""

    folder: Path
    about: dict[str, Any]
    """What `profile.json` says: `began` (UTC), `seconds`, `asked`, `idle_samples`, `lost_samples`, `unreadable`,
    `cost`, `host`. Of imported stacks there is none: nobody knows how long they were sampled, and the others are
    empty."""

    @cached_property
    def dataset(self) -> Dataset:
        """The folder with its tables. Raises RunFolderError."""
        return Dataset(self.folder)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table. Raises RunFolderError."""
        if not self.is_taken and name not in self.dataset.tables:
            return []
        found: list[dict[str, Any]] = self.dataset.rows(name).to_pylist()
        return found

    @property
    def is_taken(self) -> bool:
        """Whether `knee profile` took it, so that it has more than stacks."""
        return bool(self.about["began"])

    @property
    def stacks(self) -> list[tuple[str, int]]:
        """Folded stacks of busy processors with their samples."""
        return [(row["stack"], row["samples"]) for row in self.rows("stacks")]

    @cached_property
    def costs(self) -> dict[str, int]:
        """What each counter came to."""
        return {row["counter"]: row["value"] for row in self.rows("host_costs")}

    @cached_property
    def classes(self) -> dict[str, int]:
        """Samples of each class that has some, the most first."""
        found: dict[str, int] = {}
        for row in self.rows("stacks"):
            found[row["class"]] = found.get(row["class"], 0) + row["samples"]
        return dict(sorted(found.items(), key=lambda entry: -entry[1]))

    @property
    def samples(self) -> int:
        """All samples, those of idle processors too."""
        return sum(self.classes.values()) + int(self.about["idle_samples"])


_IMPORTED: dict[str, Any] = {
    "began": "",
    "seconds": None,
    "asked": {},
    "command": None,
    "idle_samples": 0,
    "lost_samples": 0,
    "unreadable": 0,
    "cost": {"programs": []},
    "host": {},
}


def read(folder: Path) -> Profile:
    """A profile taken before, or imported stacks. Raises RunFolderError."""
    if not (folder / ABOUT).is_file() and _are_imported_stacks(folder):
        return Profile(folder, {**_IMPORTED, "engine_version": provenance.engine_version()})
    return Profile(folder, manifest.read(folder / ABOUT))


def is_profile(folder: Path) -> bool:
    """Whether a folder is a profile, or holds imported stacks and nothing else."""
    return (folder / ABOUT).is_file() or _are_imported_stacks(folder)


def _are_imported_stacks(folder: Path) -> bool:
    if (folder / manifest.RUN).is_file() or next(folder.glob("stacks-*.parquet"), None) is None:
        return False
    return Dataset(folder).tables == ("stacks",)


def instruments() -> list[str]:
    """Names of all instruments."""
    return [one["name"] for one in _core.profile_registry()["instruments"]]


def without_bpf() -> list[str]:
    """Names of those that need no privilege."""
    return [one["name"] for one in _core.profile_registry()["instruments"] if not one["bpf"]]


def take(
    out: Path | str,
    *,
    seconds: float | None = None,
    netns: str | None = None,
    pid: int | None = None,
    chosen: Sequence[str] | None = None,
    stop: threading.Event | None = None,
    command: str | None = None,
    progress: Callable[[float], object] | None = None,
    ending: Callable[[], object] | None = None,
) -> Profile:
    """Measures what the network costs this host into the folder `out`, for `seconds` or until `stop` is set.

    `netns` is the one network namespace whose packets and timers count: a name, a process or a path; `pid` a process,
    whose threads, stacks and network namespace alone count. `chosen` are the instruments; by default all. `progress`
    is called ten times a second, at first as soon as all of them measure, with the seconds so far; `ending` when it is
    over and the names of functions and the tables remain.

    Raises UsageError, RunFolderError (the folder cannot be written), KernelUnsupported (no privilege, no BTF, no
    tracepoint).
    """
    folder = Path(out)
    chosen = instruments() if chosen is None else list(chosen)
    if unknown := next((name for name in chosen if name not in instruments()), None):
        raise UsageError(f'instruments: got "{unknown}"; ' + suggest(unknown, instruments(), "expected some of"))
    place = _namespace(netns, pid)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunFolderError(
            f"{folder}: is there already and not empty; expected a free name for the profile. Choose another --out."
        )
    asked = {"instruments": chosen, "stacks_hz": STACKS_HZ, "netns": place, "pid": pid, "is_lab": False}
    session = _core.HostSession(json.dumps(asked))
    stop = stop or threading.Event()
    began, start = datetime.now(timezone.utc), time.monotonic()
    session.begin()
    while not stop.is_set() and (seconds is None or time.monotonic() - start < seconds):
        so_far = time.monotonic() - start
        if progress is not None:
            progress(so_far)
        stop.wait(LOOK_EVERY_SEC if seconds is None else min(LOOK_EVERY_SEC, max(seconds - so_far, 0)))
    if ending is not None:
        ending()
    found, told = session.finish()
    about = {
        "schema": manifest.SCHEMA,
        "began": began.isoformat(timespec="milliseconds"),
        **told,
        "asked": {"netns": netns, "pid": pid, "instruments": chosen},
        "command": command,
        "engine_version": provenance.engine_version(),
        "host": provenance.host(),
    }
    for name in TABLES:
        with replacing(folder / f"{name}.parquet", make=True) as file:
            rows = pa.RecordBatchReader.from_stream(found[name]).read_all()
            pq.write_table(rows, file, compression="zstd")
    with replacing(folder / ABOUT) as file:
        file.write((json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode())
    return Profile(folder, about)


def _namespace(netns: str | None, pid: int | None) -> tuple[int, str] | None:
    """Inode and path of the namespace that counts; None: all of them. Raises UsageError."""
    if pid is not None and not Path("/proc", str(pid)).is_dir():
        raise UsageError(
            f"pid: got {pid}, and there is no such process; expected the number of one that runs. `ss -tnp` prints "
            "those with connections."
        )
    if netns is not None:
        return which.namespace(netns), str(which.namespace_path(netns))
    if pid is not None:
        return which.namespace(str(pid)), str(which.namespace_path(str(pid)))
    return None
