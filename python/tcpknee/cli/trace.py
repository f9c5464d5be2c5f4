"""`knee trace`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpknee import human, say
from tcpknee.errors import UsageError
from tcpknee.say import aligned

from .options import Whole, foreign, json_option, out_option, quiet_option
from .until import seconds, until_ctrl_c

if TYPE_CHECKING:
    from tcpknee.live.qdiscs import Latency
    from tcpknee.live.trace import Trace

_RUNS = Path("runs")
_SHOWN = 10
"""Connections of the table; --json has all."""
_BAR = 40
_LOADING = "Loading the programs into the kernel"


@click.command("trace", short_help="Trace live connections ACK by ACK, or waits in qdiscs.")
@click.argument("connection", metavar="[CONNECTION]", required=False)
@click.option("--port", type=Whole(1, 65535), help="Connections with this port at either end.")
@click.option("--address", metavar="PREFIX", help="Connections with an end within it: 192.0.2.0/24, 2001:db8::/32.")
@click.option("--qdisc", is_flag=True, help="How long packets wait in the root qdisc of each device, instead.")
@click.option("--device", metavar="DEV", help="With --qdisc: only this device.")
@click.option("--netns", metavar="NETNS", help="Only this network namespace: a name, a PID or a path.  [default: all]")
@click.option("--for", "length", metavar="TIME", help="How long, as in 10s.  [default: until Ctrl-C]")
@out_option("Folder of the tables and the figure; by default the next free runs/trace-N.")
@foreign
@json_option
@quiet_option
def command(connection: str | None, qdisc: bool, device: str | None, **given: Any) -> int:
    """Trace live TCP connections of this host segment by segment: window, threshold, round-trip time, state.

    CONNECTION is the far end, 192.0.2.1:443, or both, 192.0.2.7:40000-192.0.2.1:443, or a socket's cookie as `ss -e`
    prints it, sk:1a2b. Needs root (CAP_BPF and CAP_PERFMON) and a kernel with BTF, 5.12 or later; the connections
    themselves are not touched.

    Example: knee trace --port 443 --for 10s
    """
    if not qdisc:
        if device is not None:
            raise click.UsageError("--device is for --qdisc; a connection is chosen by CONNECTION, --port, --address.")
        return _trace(connection, **given)
    chosen = {"CONNECTION": connection, "--port": given.pop("port"), "--address": given.pop("address")}
    chosen["--out"] = given.pop("out")
    if useless := [name for name, value in chosen.items() if value is not None]:
        raise click.UsageError(f"{useless[0]} is not for --qdisc, which prints what it found; --device chooses one.")
    return _trace_qdiscs(device=device, **given)


def _trace(
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
    from tcpknee import provenance
    from tcpknee.live import trace
    from tcpknee.pages import trace_page, trace_text
    from tcpknee.runs.folder import next_free
    from tcpknee.runs.progress import Line, Phase

    if connection is None and port is None and address is None:
        raise UsageError(
            "knee trace: got no connection; expected CONNECTION, --port or --address (or --qdisc). `--address "
            "0.0.0.0/0` takes every connection over IPv4."
        )
    wanted = seconds(length)
    folder = out or next_free(_RUNS, "trace")
    progress, loading = Line(quiet=quiet), Phase(_LOADING, quiet=quiet)
    writing = Phase("Writing the tables", quiet=quiet, later=True)

    def tell(rows: int, lost: int) -> None:
        loading.end()
        progress(f"{human.counted(rows, 'segment')}, {trace_text.lost(lost)}; Ctrl-C ends it")

    def ending() -> None:
        progress.end()
        writing.begin()

    with until_ctrl_c() as stop, loading, progress, writing:
        found = trace.connections(
            folder,
            connection,
            port=port,
            address=address,
            netns=netns,
            seconds=wanted,
            stop=stop,
            command=provenance.command_line("knee", *sys.argv[1:]),
            progress=tell,
            ending=ending,
        )
    with Phase("Drawing the figure", quiet=quiet):
        drawn = trace_page.save(found, folder / "trace.html") if trace_page.shown(found) else None
    if json:
        whole = {"schema": 1, "folder": str(folder), **found.about, "connections": found.summary}
        say.json(whole)
        return 0
    say.lines(_connections(found))
    say.line(f"Trace: {folder} ({', '.join(f'{name}.parquet' for name in trace.TABLES)})")
    if drawn:
        say.line(f"Figure: {drawn}")
    return 0


def _connections(found: Trace) -> Iterator[str]:
    from tcpknee.pages import trace_text

    rows = found.summary
    if not rows:
        yield (
            f"No segment of such a connection arrived in {human.duration(int(found.about['seconds'] * 1e9))}. "
            "`ss -tn` prints the connections there are."
        )
    else:
        body = [trace_text.row(row) for row in rows[:_SHOWN]]
        yield from aligned([trace_text.HEADS, *body], left=[True, True, *[False] * 7])
        if len(rows) > _SHOWN:
            yield f"and {len(rows) - _SHOWN} more, which sent less; --json and connections.parquet have all"
    yield ""
    yield trace_text.counted(found)
    yield from trace_text.gaps(found)
    yield from trace_text.drops(found)
    yield from _cost(found.about["cost"], found.about["seconds"])


def _trace_qdiscs(*, device: str | None, netns: str | None, length: str | None, json: bool, quiet: bool) -> int:
    """`knee trace --qdisc`."""
    from tcpknee.live import qdiscs
    from tcpknee.pages import trace_text
    from tcpknee.runs.progress import Line, Phase

    wanted = seconds(length)
    progress, loading = Line(quiet=quiet), Phase(_LOADING, quiet=quiet)

    def tell(so_far: float) -> None:
        loading.end()
        progress(f"{so_far:.0f} s; Ctrl-C ends it")

    def gone(at: float) -> None:
        progress.end()
        if not quiet:
            say.warn(f"knee trace: {_gone(device, at)} No packet can be seen until it is back.")

    with until_ctrl_c() as stop, loading, progress:
        found = qdiscs.qdiscs(device=device, netns=netns, seconds=wanted, stop=stop, progress=tell, gone=gone)
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
    say.line(f"{found.seconds:.3g} s; {trace_text.lost(found.lost)}")
    say.lines(_cost(found.cost, found.seconds))
    return 0


def _gone(device: str | None, after: float) -> str:
    return f"the device {device} is gone, {after:.1f} s after the beginning."


def _histogram(one: Latency) -> Iterator[str]:
    from tcpknee.live import qdiscs
    from tcpknee.pages import trace_text

    def time_of(ns: float | None) -> str:
        return trace_text.time_of(ns) if ns is not None else "-"

    quantiles = ", ".join(f"p{share * 100:.0f} {time_of(one.quantile_ns(share))}" for share in qdiscs.QUANTILES)
    longest = f", longest {trace_text.time_of(one.max_ns)}" if one.measured else ""
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
        rows.append([trace_text.time_of(begin), trace_text.time_of(end), f"{count:,}", "#" * -(-count * _BAR // most)])
    if octaves:
        yield from (f"  {line}" for line in aligned(rows, left=[False, False, False, True]))


def _cost(cost: dict[str, Any], seconds: float) -> Iterator[str]:
    from tcpknee.pages import trace_text

    return (f"{where}: {much}" for where, much in trace_text.cost(cost, seconds))
