"""`knee trace`."""

from __future__ import annotations

import json as json_module
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kneepoint import _core, human
from kneepoint.errors import UsageError
from kneepoint.folder import next_free
from kneepoint.observe import figure, qdiscs, trace
from kneepoint.output import aligned

_RUNS = Path("runs")
_SHOWN = 10
"""Connections of the table; --json has all."""
_BAR = 40
_TELL_EVERY_SEC = 0.5


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
    told = _Progress(quiet)
    with _until_ctrl_c() as stop:
        found = trace.connections(
            folder,
            connection,
            port=port,
            address=address,
            netns=netns,
            seconds=seconds,
            stop=stop,
            progress=lambda rows, lost: told(f"{human.counted(rows, 'segment')}, {_lost(lost)}"),
        )
    told.end()
    drawn = figure.save(found, folder / "trace.html") if figure.shown(found) else None
    if json:
        whole = {"schema": 1, "folder": str(folder), **found.about, "connections": found.summary}
        print(json_module.dumps(whole, indent=2))
        return 0
    for line in _connections(found):
        print(line)
    print(f"Trace: {folder} ({', '.join(f'{name}.parquet' for name in trace.TABLES)})")
    if drawn:
        print(f"Figure: {drawn}")
    return 0


def _connections(found: trace.Trace) -> Iterator[str]:
    rows = found.summary
    if not rows:
        yield (
            f"No segment of such a connection arrived in {human.duration(int(found.about['seconds'] * 1e9))}. "
            "`ss -tn` prints the connections there are."
        )
    else:
        head = [
            "connection",
            "algorithm",
            "segments in",
            "acked",
            "cwnd p50",
            "max",
            "srtt p50",
            "p95",
            "retransmitted",
        ]
        body = [_row(row) for row in rows[:_SHOWN]]
        yield from aligned([head, *body], left=[True, True, *[False] * 7])
        if len(rows) > _SHOWN:
            yield f"and {len(rows) - _SHOWN} more, which sent less; --json and connections.parquet have all"
    counts, seconds, lost = found.about["rows"], found.about["seconds"], found.about["lost"]
    yield ""
    segments, events = human.counted(counts["acks"], "segment"), human.counted(counts["events"], "event")
    yield f"{segments} and {events} in {seconds:.3g} s; {_lost(lost)}"
    if gaps := found.about["gaps"]:
        yield f"{gaps:,} gaps: an ACK found more acknowledged than the row before it tells; see docs/trace.md"
    yield from _cost(found.about["cost"], found.about["seconds"])


def _row(row: dict[str, Any]) -> list[str]:
    def text(name: str, kind: str) -> str:
        return human.quantity(kind, row[name]) if row[name] is not None else "-"

    def number(name: str) -> str:
        return f"{row[name]:,.0f}" if row[name] is not None else "-"

    return [
        figure.label(row),
        row["algorithm"],
        number("acks"),
        text("bytes_acked", "bytes"),
        number("snd_cwnd_p50"),
        number("snd_cwnd_max"),
        text("srtt_us_p50", "time"),
        text("srtt_us_p95", "time"),
        number("retransmitted"),
    ]


def queues(*, device: str | None, netns: str | None, length: str | None, json: bool, quiet: bool) -> int:
    """`knee trace --qdisc`."""
    seconds = _seconds(length)
    told = _Progress(quiet)
    with _until_ctrl_c() as stop:
        found = qdiscs.qdiscs(
            device=device, netns=netns, seconds=seconds, stop=stop, progress=lambda so_far: told(f"{so_far:.0f} s")
        )
    told.end()
    if json:
        whole = {
            "schema": 1,
            "seconds": round(found.seconds, 3),
            "lost": found.lost,
            "cost": found.cost,
            "qdiscs": [one.json() for one in found.latencies],
        }
        print(json_module.dumps(whole, indent=2))
        return 0
    if not found.latencies:
        where = f"of {device} " if device else ""
        print(
            f"No packet went into a qdisc {where}in {human.duration(int(found.seconds * 1e9))}. A device whose qdisc "
            "is noqueue has none, and an idle qdisc lets packets pass by; `tc qdisc` prints them."
        )
    for one in found.latencies:
        for line in _histogram(one):
            print(line)
        print()
    print(f"{found.seconds:.3g} s; {_lost(found.lost)}")
    for line in _cost(found.cost, found.seconds):
        print(line)
    return 0


def _histogram(one: qdiscs.Latency) -> Iterator[str]:
    def time_of(ns: float | None) -> str:
        return _time(ns) if ns is not None else "-"

    quantiles = ", ".join(f"p{share * 100:.0f} {time_of(one.quantile_ns(share))}" for share in qdiscs.QUANTILES)
    longest = f", longest {_time(one.max_ns)}" if one.measured else ""
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
        rows.append([_time(begin), _time(end), f"{count:,}", "#" * -(-count * _BAR // most)])
    if octaves:
        yield from (f"  {line}" for line in aligned(rows, left=[False, False, False, True]))


def _time(ns: float) -> str:
    """`820 ns`, `1.5 us`, `12 ms`, `2 s`."""
    for divisor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= divisor:
            return f"{human.digits(ns / divisor)} {unit}"
    return f"{ns:.0f} ns"


def _lost(lost: int) -> str:
    return f"{lost:,} lost" if lost else "none lost"


def _cost(cost: dict[str, Any], seconds: float) -> Iterator[str]:
    """What the trace took from this machine."""
    if cost["not_measured"]:
        yield f"Cost in the kernel: not measured; {cost['not_measured']}"
    else:
        ran = [one for one in cost["programs"] if one["runs"]]
        spent_ns = sum(one["run_time_ns"] for one in ran)
        each = ", ".join(
            f"{one['tracepoint']} {one['run_time_ns'] / one['runs']:.0f} ns x {one['runs']:,}" for one in ran
        )
        share = f", {human.quantity('share', spent_ns / 1e9 / seconds)} of a processor" if seconds else ""
        yield f"Cost in the kernel: {_time(spent_ns)} in all{share}" + (f" ({each})" if each else "")
    if "writing_cpu_sec" in cost:
        share = human.quantity("share", cost["writing_cpu_sec"] / seconds) if seconds else "-"
        yield f"Cost of writing: {_time(cost['writing_cpu_sec'] * 1e9)}, {share} of a processor"


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


class _Progress:
    """One line on stderr, where that is a terminal."""

    def __init__(self, quiet: bool) -> None:
        self.shown = not quiet and sys.stderr.isatty()
        self._said = 0.0

    def __call__(self, words: str) -> None:
        now = time.monotonic()
        if self.shown and now - self._said >= _TELL_EVERY_SEC:
            self._said = now
            print(f"\r\x1b[K{words}; Ctrl-C ends it", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
