"""Assigning: the kernel does it, and what it did is written down.

    outcome = assign(plan, Path("rec"), cgroup=cgroup.folder(None), seconds=3600)

DIR gets the table `assignments` and `assign.json`, which says what was asked and what came of it. A file
`assign-stop.json` in it, as `knee fleet watch` writes it, ends the experiment. Where the user who called sudo owns the
folder, the files are that user's (`heir.py`).
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tcpknee import _core, provenance, reading
from tcpknee.errors import RunFolderError
from tcpknee.writing import cannot_write, new_file, replacing

from .heir import Heir
from .plan import Plan, told

ABOUT = "assign.json"
STOP = "assign-stop.json"
TABLE = "assignments"
SCHEMA = 1

_LOCK = ".assign.lock"
_PATIENCE_SEC = 0.1
"""For `knee fleet watch`, which has the lock for a moment."""
_LOOK_SEC = 0.5
"""Between two looks at what the kernel did; its buffer holds that of seconds."""
_STOP_SEC = 1.0
"""Between two looks for the file that ends it."""
_STOP_BYTES = 1 << 16
_GROUP_MS = 2_000
"""What a kill may cost of the log."""


@dataclass
class Outcome:
    """What an assignment came to."""

    began: str
    """UTC; tells one assignment in a folder from the next."""
    algorithms: dict[str, str] = field(default_factory=dict)
    """What the kernel calls each."""
    assigned: list[int] = field(default_factory=list)
    """Connections of each arm."""
    refused: int = 0
    """Of those, the ones whose algorithm the kernel refused."""
    lost: int = 0
    """Connections left alone, because they could not have been logged."""
    seconds: float = 0.0
    guard: str | None = None
    """Why `knee fleet watch` ended it."""
    error: str | None = None
    """Why it did not end well."""
    is_over: bool = False


def assign(
    plan: Plan,
    out: Path,
    *,
    cgroup: Path,
    seconds: float | None = None,
    stop: threading.Event | None = None,
    progress: Callable[[Outcome], object] | None = None,
) -> Outcome:
    """Assigns new connections of the cgroup, for `seconds`, until `stop` is set, or until a guard ends it.

    Raises UsageError, RunFolderError (the folder cannot be written, or another `knee assign` writes to it),
    KernelUnsupported (no privilege, no BTF), EngineError. However it ends, also by kill -9, the kernel assigns nothing
    any more; connections that were assigned keep their algorithm.
    """
    stop = stop or threading.Event()
    try:
        folder = _core.Folder(out)
        lock = folder.lock(_LOCK)
        if lock is None:
            time.sleep(_PATIENCE_SEC)
            lock = folder.lock(_LOCK)
    except OSError as error:
        raise cannot_write(out, error) from None
    if lock is None:
        raise RunFolderError(f"{out}: another `knee assign` writes there. Choose another --out, or end that one first.")
    try:
        heir = Heir(folder)
        heir.take(_LOCK)
        return _Running(plan, out, cgroup, folder, heir).run(seconds, stop, progress)
    finally:
        lock.release()


class _Running:
    def __init__(self, plan: Plan, out: Path, cgroup: Path, folder: _core.Folder, heir: Heir) -> None:
        self.plan, self.out, self.folder, self.heir = plan, out, folder, heir
        self.phase = plan.phase(time.time_ns())
        self.outcome = Outcome(datetime.now(timezone.utc).isoformat(timespec="microseconds"))
        self.about = {
            "schema": SCHEMA,
            "began": self.outcome.began,
            "asked": json.loads(plan.told) | {"cgroup": str(cgroup), **_timing(plan)},
            "engine_version": provenance.engine_version(),
            "host": provenance.host(),
        }
        self.assigner = _core.Assigner(plan.told, told(self.phase), cgroup)
        self.outcome.algorithms = self.assigner.algorithms
        self.writer: _core.SegmentWriter | None = None

    def run(
        self, seconds: float | None, stop: threading.Event, progress: Callable[[Outcome], object] | None
    ) -> Outcome:
        begun = time.monotonic()
        try:
            self._describe()
            looked = begun
            while True:
                now = time.monotonic()
                self.outcome.seconds = now - begun
                self._follow_the_clock()
                self._take()
                if progress is not None:
                    progress(self.outcome)
                if now - looked >= _STOP_SEC:
                    looked = now
                    self.outcome.guard = stopped(self.out, self.outcome.began)
                left = _LOOK_SEC if seconds is None else min(_LOOK_SEC, seconds - self.outcome.seconds)
                if self.outcome.guard is not None or left <= 0 or stop.wait(self._until_next(left)):
                    break
            self.assigner.end()
            self.outcome.seconds = time.monotonic() - begun
            self._take()
            self._finish()
            self.outcome.is_over = True
            self._describe()
        except BaseException as error:
            self.assigner.end()
            # What ended it is the reason, also where the log cannot be finished or described either.
            with suppress(RunFolderError):
                self._finish()
            self.outcome.error, self.outcome.is_over = str(error) or type(error).__name__, True
            with suppress(RunFolderError):
                self._describe()
            raise
        return self.outcome

    def _finish(self) -> None:
        """Writes the log's last rows."""
        writer, self.writer = self.writer, None
        if writer is not None:
            writer.finish()

    def _follow_the_clock(self) -> None:
        if self.phase.ends_unix_ns is not None and time.time_ns() >= self.phase.ends_unix_ns:
            self.phase = self.plan.phase(time.time_ns())
            self.assigner.allocate(told(self.phase))

    def _until_next(self, left_sec: float) -> float:
        if self.phase.ends_unix_ns is None:
            return left_sec
        return min(left_sec, max(0.0, (self.phase.ends_unix_ns - time.time_ns()) / 1e9))

    def _take(self) -> None:
        while True:
            found = self.assigner.take()
            is_first = self.writer is None and len(found.rows) > 0
            if is_first:
                self.writer = _core.SegmentWriter(self.out, TABLE, found.rows, _GROUP_MS, ["unit"])
            if self.writer is not None:
                self.writer.write(found.rows)
            if is_first:
                # The writer has one segment, however long it writes.
                self.heir.take(f"{TABLE}-*")
            self.outcome.assigned, self.outcome.refused, self.outcome.lost = found.assigned, found.refused, found.lost
            if len(found.rows) < _ROWS:
                return

    def _describe(self) -> None:
        outcome = self.outcome
        shown = {
            "is_over": outcome.is_over,
            "seconds": round(outcome.seconds, 3),
            "algorithms": outcome.algorithms,
            "assigned": dict(zip((arm.name for arm in self.plan.arms), outcome.assigned, strict=False)),
            "refused": outcome.refused,
            "lost": outcome.lost,
            "guard": outcome.guard,
            "error": outcome.error,
        }
        try:
            with new_file(self.folder, ABOUT) as file:
                file.write((json.dumps(self.about | shown, indent=1, ensure_ascii=False) + "\n").encode())
                self.heir.take_file(file.fileno())
        except OSError as error:
            raise cannot_write(self.out / ABOUT, error) from None


_ROWS = 8192
"""Rows of a full batch (`ROWS` in crates/tables/src/column.rs)."""


def stopped(folder: Path, began: str) -> str | None:
    """Why the assignment that began then is to end; None: it is not."""
    try:
        found = reading.json_of(folder / STOP, most_bytes=_STOP_BYTES)
    except (OSError, ValueError, RunFolderError):
        return None
    is_meant = isinstance(found, dict) and found.get("began") == began
    return str(found.get("why")) if is_meant else None


def end(folder: Path, why: str) -> bool:
    """Asks the assignment that runs in the folder to end; False: none does. Raises RunFolderError."""
    about = read(folder)
    if about is None or about["is_over"]:
        return False
    with replacing(folder / STOP) as file:
        file.write((json.dumps({"schema": SCHEMA, "began": about["began"], "why": why}) + "\n").encode())
    return True


def read(folder: Path) -> dict[str, Any] | None:
    """What the assignment in the folder says of itself, or, where it was killed, what came of it; None: there is none.
    Raises RunFolderError."""
    from tcpknee.datasets import manifest

    if not (folder / ABOUT).is_file():
        return None
    about = manifest.read(folder / ABOUT)
    return about | {"is_over": about["is_over"] or _was_killed(folder, about)}


def _was_killed(folder: Path, about: dict[str, Any]) -> bool:
    """Whether nobody holds the lock, as far as this can be told: only of the kernel on which it ran."""
    host = about.get("host")
    if not isinstance(host, dict) or host.get("boot_id") != provenance.host()["boot_id"]:
        return False
    try:
        lock = _core.open_readable(folder / _LOCK)
    except (OSError, RunFolderError):
        return False
    try:
        # Several may look at once.
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def _timing(plan: Plan) -> dict[str, Any]:
    timing = plan.timing
    return {
        "begin_unix_ns": timing.begin_unix_ns,
        "period_ns": timing.period_ns,
        "steps_pct": timing.steps_pct,
        "links_pct": timing.links_pct,
        "shares_pct": [arm.share_pct for arm in plan.arms],
    }
