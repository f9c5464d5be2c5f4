"""A trace as a picture: windows, threshold, round-trip time and turning points of each connection over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tcpknee.errors import UsageError
from tcpknee.live.trace import Trace

from . import export, html, marks, palette, sources, theme, trace_text
from .connections import HOW_TO_LOOK, Connection, Connections
from .encode import Block, packed
from .sources import Panel
from .theme import Layout

PANEL_HEIGHT = 150
TOLD_AT_MOST = 200
"""Connections of the page's table."""

PANELS = (
    Panel("cwnd", "Congestion window", "acks", "snd_cwnd", 1.0, "segments"),
    Panel("ssthresh", "Slow-start threshold", "acks", "snd_ssthresh", 1.0, "segments"),
    Panel("inflight", "In flight", "acks", "inflight", 1.0, "segments"),
    Panel("srtt", "Smoothed RTT", "acks", "srtt_us", 1e-3, "ms"),
)
TURNING_POINTS = ("retransmit", "cwr", "recovery", "loss")


def shown(trace: Trace) -> list[Connection]:
    """The connections of the figure: those that sent most."""
    return _series(trace).shown


def _series(trace: Trace) -> Connections:
    return Connections(trace.dataset, sources.ACKS, PANELS)


def save(trace: Trace, path: Path, paper: export.Paper = export.PAGE) -> Path:
    """Writes the page as .html, which needs no network, or the figure by itself as .pdf, .svg or .png."""
    ending = path.suffix.lower()
    if ending not in (".html", ".pdf", ".svg", ".png"):
        raise UsageError(f"{path}: got the ending {ending or 'of no kind'!r}; expected .html, .pdf, .svg or .png.")
    if ending != ".html":
        return export.save_figure(lambda layout: spec(trace, layout), path, paper)
    export.write_file(path, page(trace).encode("utf-8"))
    return path


def page(trace: Trace) -> str:
    """The trace as a page: its connections, its figure, what it cost. Raises UsageError as `spec` does."""
    series = _drawn(trace)
    sets = data(trace, series)
    specs = {layout.name: _spec(trace, series, sets, layout) for layout in theme.LAYOUTS}
    inks = {one.key[0]: ink for one, ink in zip(series.shown, _inks(series), strict=True)}
    about = trace.about
    return html.page(
        "trace.html.j2",
        {
            "specs": [{"name": "trace", "specs": specs, "timed": True}],
            "shared": {},
            "conditions": [{"label": "", "sets": packed(sets)}],
            "bands": False,
            "layouts": theme.layouts(),
        },
        title=_title(trace),
        counted=trace_text.counted(trace),
        warnings=[*trace_text.drops(trace), *trace_text.gaps(trace), *_lost(trace)],
        heads=trace_text.HEADS,
        rows=[(inks.get(row["cookie"]), trace_text.row(row)) for row in trace.summary[:TOLD_AT_MOST]],
        left_out=max(len(trace.summary) - TOLD_AT_MOST, 0),
        caption=" ".join([*_notes(series), HOW_TO_LOOK]),
        command=about.get("command"),
        facts=[*trace_text.cost(about["cost"], about["seconds"]), *_host(about)],
    )


def _host(about: dict[str, Any]) -> list[tuple[str, str]]:
    host = {"tcpknee": about["engine_version"], **about["host"]}
    return [(name, str(value)) for name, value in host.items()]


def _title(trace: Trace) -> str:
    return f"Live connections, {trace.about['seconds']:.3g} s from {trace.about['began']}"


def _lost(trace: Trace) -> list[str]:
    lost = trace.about["lost"]
    return [f"{lost:,} records were lost: the buffer was full."] if lost else []


def spec(trace: Trace, layout: theme.Layout = theme.WIDE) -> dict[str, Any]:
    """The figure's Vega-Lite specification, with its data. Raises UsageError: the trace has no segment."""
    series = _drawn(trace)
    sets = data(trace, series)
    found = _spec(trace, series, sets, layout)
    found["config"] = theme.config(layout=layout)
    found["title"] = {"text": _title(trace), "subtitle": [*_notes(series), *_lost(trace)]}
    found["datasets"] = {name: [row for block in blocks for row in block.rows()] for name, blocks in sets.items()}
    return found


def _drawn(trace: Trace) -> Connections:
    series = _series(trace)
    if not series.shown:
        raise UsageError(f"{trace.folder}: no segment was traced, so that there is nothing to draw.")
    return series


def _spec(trace: Trace, series: Connections, sets: dict[str, list[Block]], layout: Layout) -> dict[str, Any]:
    found = export.written(lambda: _chart(trace, series, sets, layout))
    del found["config"]
    return found


def data(trace: Trace, series: Connections) -> dict[str, list[Block]]:
    """A data set per panel, and `turns`."""
    sets = {
        name: [Block({"connection": block.constants["series"]}, block.columns) for block in blocks]
        for name, blocks in series.lines().items()
    }
    labels = {one.key[0]: one.label for one in series.shown}
    sets["turns"] = _turns(trace, labels, series.columns, series.end_ns)
    return sets


def _turns(trace: Trace, labels: dict[int, str], columns: int, end_ns: int) -> list[Block]:
    """Turning points, one per kind, connection and pixel column."""
    events = trace.table("events", ["t_ns", "cookie", "event"]).to_pydict()
    seen: dict[tuple[str, int], dict[int, float]] = {}
    for t_ns, cookie, event in zip(events["t_ns"], events["cookie"], events["event"], strict=True):
        if cookie in labels and event in TURNING_POINTS:
            seen.setdefault((event, cookie), {}).setdefault(t_ns * columns // end_ns, t_ns * 1e-9)
    return [
        Block({"event": event, "connection": labels[cookie]}, {"t": np.array(list(times.values()))})
        for (event, cookie), times in seen.items()
    ]


def _inks(series: Connections) -> list[str]:
    return [palette.tint(ink, turn) for _, ink, turn in series.looks()]


def _notes(series: Connections) -> list[str]:
    """How the figure is read, and what it leaves out."""
    notes = ["Strong line: congestion window; pale line: slow-start threshold."]
    if left_out := series.total - len(series.shown):
        notes.append(f"{left_out:,} further connections, which sent less, are in the tables.")
    return notes


def _chart(trace: Trace, series: Connections, sets: dict[str, list[Block]], layout: Layout) -> Any:
    import altair as alt

    labels = [one.label for one in series.shown]
    inks = _inks(series)
    dense = {block.constants["connection"] for panel in PANELS for block in sets[panel.name] if marks.is_dense(block)}
    dashes = [palette.dash(0 if label in dense else k // len(palette.COLOURS)) for k, label in enumerate(labels)]
    legend = marks.line_legend(labels, layout)
    colour = alt.Color("connection:N", scale=alt.Scale(domain=labels, range=inks), legend=legend)
    dash = alt.StrokeDash("connection:N", scale=alt.Scale(domain=labels, range=dashes), legend=legend)
    chosen = alt.selection_point(name="chosen", fields=["connection"], bind="legend", toggle="true")
    zoom = alt.selection_interval(
        name="zoom", encodings=["x"], bind="scales", zoom="wheel![event.shiftKey]", translate=True
    )

    def faded(opacity: float) -> Any:
        return alt.condition(chosen, alt.value(opacity), alt.value(0.08 * opacity))

    def x(last: bool = False) -> Any:
        return marks.time(max(trace.about["seconds"], 1e-3), last=last)

    def lines(panel: Panel, title: str, opacity: float = 1.0, width: float = 1.2) -> list[Any]:
        """A panel's lines, and the headroom above them. Lines come first: the zoom is by the first layer's axes."""
        found = alt.NamedData(name=panel.name)
        tooltip = [
            alt.Tooltip("connection:N"),
            alt.Tooltip("t:Q", title="time (s)", format=".6f"),
            alt.Tooltip("v:Q", title=f"{panel.title} ({panel.unit})", format=",.4~g"),
        ]
        drawn = (
            alt.Chart(found)
            .mark_line(interpolate="step-after", clip=True, strokeWidth=width)
            .encode(
                x=x(),
                y=marks.value(panel, title),
                color=colour,
                strokeDash=dash,
                opacity=faded(opacity),
                tooltip=tooltip,
                description=alt.Description("connection:N"),
            )
        )
        return [drawn, marks.headroom(found, zero=marks.begins_at_zero(panel))]

    panels = {panel.name: panel for panel in PANELS}
    both = "Window, threshold"
    turns = (
        alt.Chart(alt.NamedData(name="turns"))
        .mark_tick(thickness=1.5, clip=True)
        .encode(
            x=x(last=True),
            y=alt.Y(
                "event:N",
                title=None,
                scale=alt.Scale(domain=list(reversed(TURNING_POINTS))),
                axis=alt.Axis(minExtent=marks.AXIS_PIXELS, maxExtent=marks.AXIS_PIXELS),
            ),
            color=colour,
            opacity=faded(1.0),
            tooltip=[alt.Tooltip("connection:N"), alt.Tooltip("event:N"), alt.Tooltip("t:Q", format=".6f")],
        )
    )
    drawn = [
        alt.layer(*lines(panels["ssthresh"], both, 0.45, 1.0), *lines(panels["cwnd"], both, width=1.4)).add_params(
            chosen
        ),
        alt.layer(*lines(panels["inflight"], panels["inflight"].title)),
        alt.layer(*lines(panels["srtt"], panels["srtt"].title)),
    ]
    parts = [part.properties(width=layout.width, height=PANEL_HEIGHT) for part in drawn]
    parts.append(turns.properties(width=layout.width, height=16 * len(TURNING_POINTS)))
    return alt.vconcat(*(part.add_params(zoom) for part in parts), spacing=10)
