"""Following an experiment: its recordings and logs are read again and again while they grow."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpknee.errors import UsageError
from tcpknee.fleet import connections
from tcpknee.fleet.assign import running
from tcpknee.fleet.connections import clusters

from .guards import PLANNED, Guard, Judged

if TYPE_CHECKING:
    import pyarrow as pa

    from tcpknee.fleet.statistics.bins import Floats


@dataclass(frozen=True)
class Look:
    """What the data said at one look."""

    connections: dict[str, int]
    """Of each arm, those that have ended."""
    judged: dict[str, list[Judged]]
    """Of each arm but the control, the guards."""
    clusters: str
    """What a cluster is, in words."""
    allocation_pct: dict[str, float]
    """Share of each arm when its last connection was assigned."""
    is_over: bool
    """Has every assignment in DATA ended?"""

    @property
    def crossed(self) -> str | None:
        """The first guard that is crossed, in words."""
        found = ((arm, one) for arm, judged in self.judged.items() for one in judged if one.is_crossed)
        arm, one = next(found, (None, None))
        return None if one is None else f"{arm}: {one.guard} does not hold: {one.told}"

    def json(self) -> dict[str, Any]:
        """As an object of JSON; a bound that is endless or not known is null."""
        return {
            "connections": self.connections,
            "allocation_pct": self.allocation_pct,
            "clusters": self.clusters,
            "crossed": self.crossed,
            "guards": [
                {
                    "arm": arm,
                    "guard": str(one.guard),
                    "value": _finite(one.interval.value),
                    "low": _finite(one.interval.low),
                    "high": _finite(one.interval.high),
                    "clusters": one.interval.clusters,
                    "is_crossed": one.is_crossed,
                }
                for arm, judged in self.judged.items()
                for one in judged
            ],
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Ended:
    """How it ended, and which assignments were told to."""

    look: Look
    told: list[Path]


def follow(
    data: Sequence[Path],
    guards: Sequence[Guard],
    *,
    control: str | None = None,
    cluster: str = "unit",
    where: str = "",
    planned: int = PLANNED,
    every_sec: float = 60,
    seconds: float | None = None,
    stop: threading.Event | None = None,
    tell: Callable[[Look], object] = lambda look: None,
) -> Ended:
    """Looks every `every_sec` until a guard is crossed, each assignment in DATA is over, the time is, or `stop` is set.

    An assignment in DATA whose guard is crossed is told to end. `control` is the arm that the others are compared with,
    by default the last of `knee assign`. Raises UsageError, RunFolderError (DATA cannot be read).
    """
    stop = stop or threading.Event()
    begun = time.monotonic()
    while True:
        seen = look(data, guards, control=control, cluster=cluster, where=where, planned=planned)
        tell(seen)
        if seen.crossed is not None:
            folders = [folder for folder, _ in _assigning(data)]
            return Ended(seen, [folder for folder in folders if running.end(folder, seen.crossed)])
        left = every_sec if seconds is None else min(every_sec, seconds - (time.monotonic() - begun))
        if seen.is_over or left <= 0 or stop.wait(left):
            return Ended(seen, [])


def look(
    data: Sequence[Path],
    guards: Sequence[Guard],
    *,
    control: str | None = None,
    cluster: str = "unit",
    where: str = "",
    planned: int = PLANNED,
) -> Look:
    """What DATA says now, of connections whose end was seen: what is open yet may still change."""
    logs = list(_assigning(data))
    found, units = _read(data, guards, where, cluster)
    arms = found["arm"].to_pylist()
    known = sorted(set(arms))
    if control is None and logs:
        control = logs[0][1]["asked"]["arms"][-1]["name"]
    if control is None:
        raise UsageError(f"control: is missing, and DATA has no {running.ABOUT} that names it; {_expected(known)}")
    named = sorted({*known, *(arm["name"] for _, about in logs for arm in about["asked"]["arms"])})
    if named and control not in named:
        raise UsageError(f'control: got "{control}"; {_expected(named)}')
    names = np.asarray(found["cluster"].fill_null("").to_pylist(), dtype=object)
    of_arm = {arm: np.asarray([one == arm for one in arms], dtype=bool) for arm in {*known, control}}

    def values(arm: str, metric: str) -> tuple[Floats, list[str]]:
        column = found[metric].cast("float64").to_numpy()
        return column[of_arm[arm]], list(names[of_arm[arm]])

    judged = {
        arm: [
            guard.judge(values(arm, guard.metric), values(control, guard.metric), planned=planned) for guard in guards
        ]
        for arm in known
        if arm != control
    }
    return Look(
        connections={arm: int(rows.sum()) for arm, rows in sorted(of_arm.items())},
        judged=judged,
        clusters=units,
        allocation_pct=_allocation(found),
        is_over=bool(logs) and all(about["is_over"] for _, about in logs),
    )


def _expected(arms: Sequence[str]) -> str:
    listed = f", one of {', '.join(arms)}" if arms else ""
    return f"expected the arm that others are compared with{listed}."


def _read(data: Sequence[Path], guards: Sequence[Guard], where: str, cluster: str) -> tuple[pa.Table, str]:
    """The connections of arms, in the order in which they ended, and what their clusters are."""
    metrics = dict.fromkeys(guard.metric for guard in guards)
    columns = ["arm", "design", "period", "unit", "remote_prefix", "allocation_pct", "end_unix_ns", *metrics]
    select = ", ".join([*columns, f"{clusters.OF[cluster]} as cluster"])
    with connections.opened(data) as fleet:
        fleet.gather("followed", select, where, besides="arm is not null and final")
        told = clusters.units_told(fleet.database, "followed") if cluster == "unit" else cluster
        return fleet.database.sql("from followed order by end_unix_ns").to_arrow_table(), told


def _allocation(found: pa.Table) -> dict[str, float]:
    """By arm, of the connection that ended last."""
    pairs = zip(found["arm"].to_pylist(), found["allocation_pct"].to_pylist(), strict=True)
    return {arm: share for arm, share in pairs if share is not None}


def _assigning(data: Sequence[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Folders of DATA, and below it, in which `knee assign` writes or wrote, and what it says."""
    for folder in data:
        for path in sorted({folder, *(file.parent for file in folder.rglob(running.ABOUT))}):
            about = running.read(path)
            if about is not None:
                yield path, about
