"""The text of a trace of connections: table and lines for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tcpknee import human
from tcpknee.live.trace import Trace

from .connections import ends

HEADS = ("connection", "algorithm", "segments in", "acked", "cwnd p50", "max", "srtt p50", "p95", "retransmitted")
"""Of the table; all but the first two are numbers."""


def row(of: dict[str, Any]) -> list[str]:
    """A row of `Trace.summary` under HEADS."""

    def text(name: str, kind: str) -> str:
        return human.quantity(kind, of[name]) if of[name] is not None else "-"

    def number(name: str) -> str:
        return f"{of[name]:,.0f}" if of[name] is not None else "-"

    return [
        ends(of["source"], of["source_port"], of["destination"], of["destination_port"]),
        of["algorithm"],
        number("acks"),
        text("bytes_acked", "bytes"),
        number("snd_cwnd_p50"),
        number("snd_cwnd_max"),
        text("srtt_us_p50", "time"),
        text("srtt_us_p95", "time"),
        number("retransmitted"),
    ]


def counted(found: Trace) -> str:
    """What was seen, in how long, and what was lost."""
    about = found.about
    segments, events = about["rows"]["acks"], about["rows"]["events"]
    seen = f"{human.counted(segments, 'segment')} and {human.counted(events, 'event')}"
    return f"{seen} in {about['seconds']:.3g} s; {lost(about['lost'])}"


def gaps(found: Trace) -> Iterator[str]:
    """Where rows are missing."""
    if count := found.about["gaps"]:
        found_more = "an ACK found more acknowledged than the row before it tells"
        yield f"{human.counted(count, 'gap')}: {found_more}; see docs/trace.md"


def drops(found: Trace) -> Iterator[str]:
    """What was dropped before it left this host."""
    for one in found.about.get("qdisc_drops", []):
        where = f" in {one['netns']}" if one["netns"] else ""
        count = human.counted(one["packets"], "packet")
        yield (
            f"Dropped by the local qdisc {one['kind']} of {one['device']}{where}: {count}, of all connections; "
            "what TCP sends again of these counts as retransmitted"
        )


def lost(count: int) -> str:
    """`none lost`."""
    return f"{count:,} lost" if count else "none lost"


def time_of(ns: float) -> str:
    """`820 ns`, `1.5 us`, `12 ms`, `2 s`."""
    for divisor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= divisor:
            return f"{human.digits(ns / divisor)} {unit}"
    return f"{ns:.0f} ns"


def cost(cost: dict[str, Any], seconds: float) -> Iterator[tuple[str, str]]:
    """What the trace took from this machine: where, and how much."""
    if cost["not_measured"]:
        yield "Cost in the kernel", f"not measured; {cost['not_measured']}"
    else:
        ran = [one for one in cost["programs"] if one["runs"]]
        spent_ns = sum(one["run_time_ns"] for one in ran)
        each = ", ".join(
            f"{one['tracepoint']} {one['run_time_ns'] / one['runs']:.0f} ns x {one['runs']:,}" for one in ran
        )
        share = f", {human.quantity('share', spent_ns / 1e9 / seconds)} of a processor" if seconds else ""
        yield "Cost in the kernel", f"{time_of(spent_ns)} in all{share}" + (f" ({each})" if each else "")
    if missed := sum(one["missed"] for one in cost["programs"]):
        yield "Left out by the kernel", f"{human.counted(missed, 'run')} of the programs, of all connections"
    if "writing_cpu_sec" in cost:
        share = human.quantity("share", cost["writing_cpu_sec"] / seconds) if seconds else "-"
        yield "Cost of writing", f"{time_of(cost['writing_cpu_sec'] * 1e9)}, {share} of a processor"
