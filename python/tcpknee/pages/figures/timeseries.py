"""Windows, rates, RTT and queue over time: of a run, and of any dataset with series of connections."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

from tcpknee.pages import marks, palette, theme
from tcpknee.pages.encode import Block
from tcpknee.pages.observed import Observed
from tcpknee.pages.run import Condition, ReportRun
from tcpknee.pages.series import LINES_AT_MOST, QUEUE_INK
from tcpknee.pages.sources import Panel
from tcpknee.pages.theme import Layout

name = "timeseries"
title = "Over time"
summary = (
    "Each cell's repetition of median goodput. Long series are thinned to the least and greatest value of every pixel "
    "column, so no spike is lost. Shaded: warm-up, which rates, delays and limits leave out; those of transfers "
    "count from their opening. Click a name to single it out; drag to move along time, Shift + wheel to zoom, "
    "double-click to go back."
)
PANEL_HEIGHT = 120


def applies(run: ReportRun | Observed) -> bool:
    if isinstance(run, ReportRun):
        return any(run.rows(table) for table in ("samples", "queue"))
    return run.has_series


def labels(run: ReportRun | Observed) -> tuple[list[str], list[str], list[list[int]]]:
    """Series with their colours and dashes: colour by family, lighter or darker by algorithm and by turn in the colour,
    and dashed where dashes can be made out."""
    series = run.series
    look: dict[str, tuple[str, list[int]]] = {}
    taken: dict[str, set[int]] = defaultdict(set)
    solid = dense(run)

    def add(label: str, ink: str, slot: int) -> None:
        if label not in look:
            turn = next(one for one in itertools.count(palette.turn(slot)) if one not in taken[ink])
            look[label] = palette.tint(ink, turn), palette.dash(0 if label in solid else slot + turn)
            taken[ink].add(turn)

    for label, ink, slot in series.looks():
        add(label, ink, slot)
    return list(look), [ink for ink, _ in look.values()], [dash for _, dash in look.values()]


def dense(run: ReportRun | Observed) -> set[str]:
    """Labels of the lines that have many points in some panel of some condition."""
    key = "entrant" if run.series.as_bands else "series"
    return {
        block.constants[key]
        for condition in run.conditions
        for name, blocks in data(run, condition).items()
        for block in blocks
        if key in block.constants and marks.is_dense(block)
    }


def data(run: ReportRun | Observed, condition: Condition) -> dict[str, list[Block]]:
    """Named data sets of the chart for one condition. Single flows among bands are called up by the page."""
    series = run.series
    lines = series.lines(condition)
    sets = {f"lines_{name}": blocks for name, blocks in lines.items()}
    if isinstance(run, ReportRun) and run.series.as_bands:
        sets |= {f"bands_{name}": blocks for name, blocks in run.series.bands(condition).items()}
    return sets


def chart(run: ReportRun | Observed, layout: Layout) -> Any:
    import altair as alt

    series = run.series
    names, inks, dashes = labels(run)
    key = "entrant" if series.as_bands else "series"
    legend = marks.line_legend(names, layout) if len(names) <= 2 * LINES_AT_MOST else None
    colour = alt.Color(f"{key}:N", scale=alt.Scale(domain=names, range=inks), legend=legend)
    dash = alt.StrokeDash(f"{key}:N", scale=alt.Scale(domain=names, range=dashes), legend=legend)
    # Unless told, each of thousands of points makes a sentence of all its fields, and a line reads its first one out.
    spoken = alt.Description(f"{key}:N")
    chosen = alt.selection_point(name="chosen", fields=[key], bind="legend", toggle="true")
    zoom = alt.selection_interval(
        name="zoom", encodings=["x"], bind="scales", zoom="wheel![event.shiftKey]", translate=True
    )

    def faded(opacity: float) -> Any:
        """That opacity for what the reader chose, or for all; next to nothing for the rest."""
        return alt.condition(chosen, alt.value(opacity), alt.value(0.08 * opacity))

    def panel_chart(panel: Panel, last: bool) -> Any:
        x, y = marks.time(run.end_ns * 1e-9, last=last), marks.value(panel)
        zero = marks.begins_at_zero(panel)
        layers: list[Any] = [warm_up(run)] if isinstance(run, ReportRun) and 0 < run.warmup_ns < run.end_ns else []
        tooltip = [
            alt.Tooltip(f"{key}:N", title="flow"),
            alt.Tooltip("t:Q", title="time (s)", format=".3f"),
            alt.Tooltip("v:Q", title=f"{panel.title} ({panel.unit})", format=",.4~g"),
        ]
        if series.as_bands and panel.table == "samples":
            bands = alt.Chart(alt.NamedData(name=f"bands_{panel.name}")).encode(x=x)
            layers += [
                bands.mark_area(opacity=0.14, interpolate="step-after").encode(
                    y=alt.Y("low:Q"),
                    y2="high:Q",
                    color=colour,
                    opacity=faded(0.14),
                    description=spoken,
                ),
                bands.mark_area(opacity=0.3, interpolate="step-after").encode(
                    y=alt.Y("q1:Q"),
                    y2="q3:Q",
                    color=colour,
                    opacity=faded(0.3),
                    description=spoken,
                ),
                bands.mark_line(strokeWidth=1.6, interpolate="step-after", clip=True).encode(
                    y=y, color=colour, strokeDash=dash, opacity=faded(1.0), tooltip=tooltip, description=spoken
                ),
            ]
        found = alt.NamedData(name=f"lines_{panel.name}")
        lines = alt.Chart(found).encode(x=x, y=y, detail="series:N")
        style = {"strokeWidth": 1.2, "interpolate": "step-after", "clip": True}
        if series.as_bands and panel.table == "samples":
            layers.append(
                lines.mark_line(**style, color="#E69F00").encode(
                    tooltip=[alt.Tooltip("series:N")], description=alt.Description("series:N")
                )
            )
        else:
            # Between two samples of a recording may be minutes: a point says where there is a row.
            points = {"point": {"size": 14, "filled": True}} if run.is_sparse else {}
            layers.append(
                lines.mark_line(**style, **points).encode(
                    color=colour, strokeDash=dash, opacity=faded(1.0), tooltip=tooltip, description=spoken
                )
            )
        # Behind those that have both axes: the zoom is by the axes of the first layer.
        layers.append(marks.headroom(found, zero=zero))
        if series.as_bands and panel.table == "samples":
            layers.append(marks.headroom(alt.NamedData(name=f"bands_{panel.name}"), "high", "low", zero=zero))
        if panel.name == "queue" and isinstance(run, ReportRun):
            layers += buffer_line(run, panel)
        return alt.layer(*layers).properties(width=layout.width, height=PANEL_HEIGHT)

    # What others wrote has columns in which some of their files have no value.
    drawn = [panel for panel in series.panels if isinstance(run, ReportRun) or run.series.lines()[panel.name]]
    panels = [panel_chart(panel, panel is drawn[-1]) for panel in drawn]
    panels[0] = panels[0].add_params(chosen)
    return alt.vconcat(*(panel.add_params(zoom) for panel in panels), spacing=10)


def warm_up(run: ReportRun) -> Any:
    """What no steady-state metric counts, shaded."""
    import altair as alt

    rows = [{"begin": 0.0, "end": run.warmup_ns * 1e-9}]
    shade = alt.Chart(marks.values(rows)).mark_rect(color=QUEUE_INK, opacity=0.12, clip=True)
    return shade.encode(x=alt.X("begin:Q"), x2="end:Q")


def buffer_line(run: ReportRun, panel: Panel) -> list[Any]:
    """The height at which the buffer is full, where all cells have one, on a single hop, and it is ever near."""
    import altair as alt
    import pyarrow.compute as pc

    sizes = {cell.get("buffer_bytes") for cell in run.meta.get("cells", ())}
    if len(sizes) != 1 or None in sizes or any(cell.hops > 1 for cell in run.cells.values()):
        return []
    (size,) = sizes
    most = pc.max(run.table("queue", ["queue_bytes_max"])["queue_bytes_max"]).as_py() or 0
    if most < size / 4:
        return []
    rows = [{"full": size * panel.scale, "word": "buffer full"}]
    found = marks.values(rows)
    line = alt.Chart(found).encode(y=alt.Y("full:Q"))
    words = line.mark_text(align="right", baseline="top", dx=-4, dy=4, fontSize=11, color=theme.NEUTRAL)
    return [
        marks.headroom(found, "full", "full", zero=True),
        line.mark_rule(strokeDash=[4, 4], color=theme.NEUTRAL),
        words.encode(x=alt.value("width"), text="word:N"),
    ]
