"""Live connections, segment by segment: a folder of Parquet tables.

    trace = tcpknee.live.trace.connections("slow", port=443, seconds=10)
    trace.table("acks").to_pandas()

A trace is a folder: `acks.parquet`, `events.parquet` and `connections.parquet`, whose columns carry unit, meaning and
source in their metadata, and `trace.json`, which says what was asked, what it cost and what was lost.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from tcpknee import _core, provenance
from tcpknee.datasets import manifest
from tcpknee.datasets.dataset import Dataset
from tcpknee.errors import EngineError, RunFolderError, UsageError
from tcpknee.writing import cannot_write, replacing

from . import which

TABLES = ("acks", "events", "connections")
ABOUT = manifest.TRACE
GROUP_MS = 2_000
"""What a kill may cost: row groups of Parquet that are older are safe."""


@dataclass(frozen=True)
class Trace:
    """A trace that was taken."""

    folder: Path
    about: dict[str, Any]
    """What `trace.json` says: `began` (UTC), `seconds`, `asked`, `rows` by table, `lost`, `gaps`, `qdisc_drops`,
    `cost`, `host`."""

    @cached_property
    def dataset(self) -> Dataset:
        """The folder with its tables: `acks`, `events`, `connections`. Raises RunFolderError."""
        return Dataset(self.folder)

    def table(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """The rows of one of them. Raises RunFolderError."""
        return self.dataset.rows(name, columns)

    @cached_property
    def summary(self) -> list[dict[str, Any]]:
        """The connections, those that sent most first: their row of `connections`, and of their rows of `acks` the
        payload acknowledged, medians and extremes. None stands for what no row tells."""
        query = """
            with seen as (
                select cookie, count(*) as rows, max(bytes_acked) - min(bytes_acked) as bytes_acked,
                       quantile_cont(snd_cwnd, 0.5) as snd_cwnd_p50, max(snd_cwnd) as snd_cwnd_max,
                       quantile_cont(srtt_us, 0.5) filter (srtt_us > 0) as srtt_us_p50,
                       quantile_cont(srtt_us, 0.95) filter (srtt_us > 0) as srtt_us_p95,
                       min(min_rtt_us) filter (min_rtt_us > 0) as min_rtt_us,
                       max(total_retrans) - min(total_retrans) as retransmitted
                from acks group by cookie
            )
            select connections.*, seen.* exclude (cookie, rows)
            from connections left join seen using (cookie)
            order by coalesce(bytes_acked, 0) desc, acks desc, cookie
        """
        found: list[dict[str, Any]] = self.dataset.sql(query).to_pylist()
        return found


def is_trace(folder: Path) -> bool:
    return (folder / ABOUT).is_file()


def read(folder: Path) -> Trace:
    """A trace taken before. Raises RunFolderError."""
    return Trace(folder, manifest.read(folder / ABOUT))


def connections(
    out: Path | str,
    connection: str | None = None,
    *,
    port: int | None = None,
    address: str | None = None,
    netns: str | None = None,
    seconds: float | None = None,
    stop: threading.Event | None = None,
    command: str | None = None,
    progress: Callable[[int, int], object] | None = None,
    ending: Callable[[], object] | None = None,
) -> Trace:
    """Traces live connections into the folder `out`, for `seconds` or until `stop` is set.

    `connection` is the far end (`192.0.2.1:443`), both ends (`192.0.2.7:40000-192.0.2.1:443`) or a cookie (`sk:1a2b`);
    `port` is that of either end, `address` a prefix that either end is within, `netns` the network namespace: a name,
    a process or a path. All that is given must hold. `command` is what to type to trace it again, for the page.
    `progress` is called about twenty times a second, at first as soon as the kernel reports, with the rows of `acks` so
    far and the records lost so far; `ending` when it is over and the tables remain to be written.

    Raises UsageError, RunFolderError (the folder cannot be written, or the disk is full: what was seen so far is in
    whole files then), KernelUnsupported (no privilege, no BTF, no tracepoint).
    """
    folder = Path(out)
    if connection is None and port is None and address is None:
        raise UsageError("trace: got no connection; expected CONNECTION, a port or an address.")
    asked: dict[str, Any] = which.connection(connection) if connection is not None else {}
    if port is not None:
        asked["port"] = port
    if address is not None:
        asked["address"] = which.prefix(address)
    if netns is not None:
        asked["netns"] = which.namespace(netns)
    _check_free(folder)
    about = {
        "schema": manifest.SCHEMA,
        "began": "",
        "seconds": 0.0,
        "asked": {"connection": connection, "port": port, "address": address, "netns": netns},
        "command": command,
        "engine_version": provenance.engine_version(),
        "host": provenance.host(),
    }
    with which.held(netns) as file:
        return _traced(folder, asked, about, _Drops(netns, file), seconds, stop, progress, ending)


def _traced(
    folder: Path,
    asked: dict[str, Any],
    about: dict[str, Any],
    drops: _Drops,
    seconds: float | None,
    stop: threading.Event | None,
    progress: Callable[[int, int], object] | None,
    ending: Callable[[], object] | None,
) -> Trace:
    """The same, of what is asked of the kernel."""
    sink = _Sink(folder)
    begun = ended = 0.0
    used = 0.0

    def take(batch: Any) -> bool:
        nonlocal begun, ended, used
        before = time.thread_time()
        if not begun:
            begun = time.monotonic()
            about["began"] = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
            drops.begin()
        sink.take(batch)
        if progress is not None:
            progress(sink.rows["acks"], batch.lost)
        used += time.thread_time() - before
        ended = time.monotonic()
        is_over = (stop is not None and stop.is_set()) or (seconds is not None and ended - begun >= seconds)
        if is_over and ending is not None:
            ending()
        return not is_over

    try:
        found = _core.trace_tcp(take, **asked)
        sink.close()
    except OSError as error:
        sink.leave()
        raise cannot_write(folder, error) from None
    except BaseException:
        sink.leave()
        raise
    about |= {"seconds": round(ended - begun, 3), "rows": sink.rows, "lost": found["lost"], "gaps": found["gaps"]}
    about["qdisc_drops"] = drops.since()
    about["cost"] = {**found["cost"], "writing_cpu_sec": round(used, 6)}
    with replacing(folder / ABOUT) as file:
        file.write((json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode())
    return Trace(folder, about)


def _check_free(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunFolderError(
            f"{folder}: is there already and not empty; expected a free name for the trace. Choose another --out."
        )


class _Drops:
    """What the root qdiscs of this host's devices drop meanwhile: in the network namespace that is traced, or else in
    ours and in those with a name. TCP counts segments that it sends again after such a drop as retransmitted."""

    def __init__(self, netns: str | None, file: Path | None) -> None:
        self._netns, self._file = netns, file
        self._before: dict[tuple[str | None, str, str, str], int] = {}

    def begin(self) -> None:
        self._before = dict(self._now())

    def since(self) -> list[dict[str, Any]]:
        """Those that dropped packets since then, most first."""
        names = ("netns", "device", "kind", "handle")
        found = [
            {**dict(zip(names, qdisc, strict=True)), "packets": (dropped - self._before[qdisc]) % (1 << 32)}
            for qdisc, dropped in self._now()
            if dropped != self._before.get(qdisc, dropped)
        ]
        return sorted(found, key=lambda one: -one["packets"])

    def _now(self) -> Iterator[tuple[tuple[str | None, str, str, str], int]]:
        for name, path in which.namespaces(self._netns, self._file):
            # A namespace that has gone meanwhile has no queue any more.
            with suppress(EngineError, UsageError):
                for device, kind, handle, dropped in _core.root_qdiscs(path):
                    yield (name, device, kind, handle), dropped


class _Sink:
    """The tables of a trace, written as they come such that they outlive a kill.

    While they are written they are segments, TABLE-000001.parquet, as of a recording, which `recover` knows. They have
    their names when all of them are whole.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows = dict.fromkeys(TABLES, 0)
        self._writers: dict[str, _core.SegmentWriter] = {}

    def take(self, batch: Any) -> None:
        for name in TABLES:
            rows = getattr(batch, name)
            if name not in self._writers:
                self._writers[name] = _core.SegmentWriter(self.folder, name, rows, GROUP_MS)
            self._writers[name].write(rows)
            self.rows[name] += len(rows)

    def close(self) -> None:
        written = {name: self._writers.pop(name).finish() for name in list(self._writers)}
        held = _core.Folder(self.folder)
        for name, path in written.items():
            held.replace(path.name, f"{name}.parquet")

    def leave(self) -> None:
        """Makes whole what came before it went wrong. Without rows nothing stays, but a folder that was there may."""
        for name in list(self._writers):
            with suppress(RunFolderError, OSError):
                path = self._writers.pop(name).finish()
                if not any(self.rows.values()):
                    _core.Folder(self.folder).remove(path.name)
        with suppress(OSError):
            self.folder.rmdir()
