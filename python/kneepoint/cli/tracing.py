"""`knee trace`."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kneepoint import _core, human, record, say
from kneepoint.errors import UsageError
from kneepoint.folder import next_free
from kneepoint.observe import figure, qdiscs, told, trace
from kneepoint.output import aligned
from kneepoint.progress import Line, Phase

_RUNS = Path("runs")
_SHOWN = 10
"""Connections of the table; --json has all."""
_BAR = 40
_LOADING = "Loading the programs into the kernel"


def connections(
    connection: str | None,
    *,
    port: int | None,
    address: str | None,
    netns: str | None,
    length: str | None,
    out: Path | None,
    json: bool,
    quiet: bool,
) -> int:
    """`knee trace CONNECTION`."""
    if connection is None and port is None and address is None:
        raise UsageError(
            "knee trace: got no connection; expected CONNECTION, --port or --address (or --qdisc). `--address "
            "0.0.0.0/0` takes every connection over IPv4."
        )
    seconds = _seconds(length)
    folder = out or next_free(_RUNS, "trace")
    progress, loading = Line(quiet=quiet), Phase(_LOADING, quiet=quiet)
    writing = Phase("Writing the tables", quiet=quiet, later=True)

    def tell(rows: int, lost: int) -> None:
        loading.end()
        progress(f"{human.counted(rows, 'segment')}, {told.lost(lost)}; Ctrl-C ends it")

    def ending() -> None:
        progress.end()
        writing.begin()

    with _until_ctrl_c() as stop, loading, progress, writing:
        found = trace.connections(
            folder,
            connection,
            port=port,
            address=address,
            netns=netns,
            seconds=seconds,
            stop=stop,
            command=record.command_line("knee", *sys.argv[1:]),
            progress=tell,
            ending=ending,
        )
    with Phase("Drawing the figure", quiet=quiet):
        drawn = figure.save(found, folder / "trace.html") if figure.shown(found) else None
    if json:
        whole = {"schema": 1, "folder": str(folder), **found.about, "connections": found.summary}
        say.json(whole)
        return 0
    say.lines(_connections(found))
    say.line(f"Trace: {folder} ({', '.join(f'{name}.parquet' for name in trace.TABLES)})")
    if drawn:
        say.line(f"Figure: {drawn}")
    return 0


def _connections(found: trace.Trace) -> Iterator[str]:
    rows = found.summary
    if not rows:
        yield (
            f"No segment of such a connection arrived in {human.duration(int(found.about['seconds'] * 1e9))}. "
            "`ss -tn` prints the connections there are."
        )
    else:
        body = [told.row(row) for row in rows[:_SHOWN]]
        yield from aligned([told.HEADS, *body], left=[True, True, *[False] * 7])
        if len(rows) > _SHOWN:
            yield f"and {len(rows) - _SHOWN} more, which sent less; --json and connections.parquet have all"
    yield ""
    yield told.counted(found)
    yield from told.gaps(found)
    yield from _cost(found.about["cost"], found.about["seconds"])


def queues(*, device: str | None, netns: str | None, length: str | None, json: bool, quiet: bool) -> int:
    """`knee trace --qdisc`."""
    seconds = _seconds(length)
    progress, loading = Line(quiet=quiet), Phase(_LOADING, quiet=quiet)

    def tell(so_far: float) -> None:
        loading.end()
        progress(f"{so_far:.0f} s; Ctrl-C ends it")

    def gone(at: float) -> None:
        progress.end()
        if not quiet:
            say.warn(f"knee trace: {_gone(device, at)} No packet can be seen until it is back.")

    with _until_ctrl_c() as stop, loading, progress:
        found = qdiscs.qdiscs(device=device, netns=netns, seconds=seconds, stop=stop, progress=tell, gone=gone)
    if json:
        whole = {
            "schema": 1,
            "seconds": round(found.seconds, 3),
            "gone_after_sec": None if found.gone_after is None else round(found.gone_after, 3),
            "lost": found.lost,
            "cost": found.cost,
            "qdiscs": [one.json() for one in found.latencies],
        }
        say.json(whole)
        return 0
    if found.gone_after is not None:
        say.lines([_gone(device, found.gone_after), ""])
    if not found.latencies:
        where = f"of {device} " if device else ""
        say.line(
            f"No packet went into a qdisc {where}in {human.duration(int(found.seconds * 1e9))}. A device whose qdisc "
            "is noqueue has none, and an idle qdisc lets packets pass by; `tc qdisc` prints them."
        )
    for one in found.latencies:
        say.lines([*_histogram(one), ""])
    say.line(f"{found.seconds:.3g} s; {told.lost(found.lost)}")
    say.lines(_cost(found.cost, found.seconds))
    return 0


def _gone(device: str | None, after: float) -> str:
    return f"the device {device} is gone, {after:.1f} s after the beginning."


def _histogram(one: qdiscs.Latency) -> Iterator[str]:
    def time_of(ns: float | None) -> str:
        return told.time_of(ns) if ns is not None else "-"

    quantiles = ", ".join(f"p{share * 100:.0f} {time_of(one.quantile_ns(share))}" for share in qdiscs.QUANTILES)
    longest = f", longest {told.time_of(one.max_ns)}" if one.measured else ""
    yield f"{one.name} (namespace {one.netns}): {human.counted(one.measured, 'packet')} measured; {quantiles}{longest}"
    gone = one.taken_in - one.measured
    if gone > 0:
        yield f"  {gone:,} were taken in and not seen to leave: dropped within, split into segments, or waiting still"
    if one.unknown:
        yield (
            f"  {one.unknown:,} left without having been seen to arrive: segments split within, sent a second time, or "
            "waiting since before"
        )
    octaves = list(one.octaves())
    most = max((count for _, _, count in octaves), default=0)
    rows = [["wait from", "to", "packets", ""]]
    for begin, end, count in octaves:
        rows.append([told.time_of(begin), told.time_of(end), f"{count:,}", "#" * -(-count * _BAR // most)])
    if octaves:
        yield from (f"  {line}" for line in aligned(rows, left=[False, False, False, True]))


def _cost(cost: dict[str, Any], seconds: float) -> Iterator[str]:
    return (f"{where}: {much}" for where, much in told.cost(cost, seconds))


def _seconds(length: str | None) -> float | None:
    return None if length is None else _core.duration_ns("--for", length) / 1e9


@contextmanager
def _until_ctrl_c() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM end the trace, whose results are what was asked for."""
    stop = threading.Event()
    numbers: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
