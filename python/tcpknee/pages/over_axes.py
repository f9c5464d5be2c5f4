"""A value of each cell over each axis of a matrix: what the figures by axis draw alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import marks, numeric, palette
from .run import Entrant, ReportRun, axis_name
from .theme import Layout

if TYPE_CHECKING:
    from tcpknee.evidence.stats import Estimate

#: Of one axis; beyond this nobody compares them any more, and `words` says so.
PANELS_AT_MOST = 60
#: Side by side in a full grid, where there is room: narrower ones cannot be read.
COLUMNS_AT_MOST = 6

Measured = list[tuple[Entrant, str, "Estimate"]]
"""Entrants with what is drawn of them and its value; the word begins the titles of panels, and may be empty."""


def of_totals(run: ReportRun, name: str) -> list[tuple[Entrant, Estimate]]:
    """A metric of whole cells, at the first entrant of each."""
    totals = {total.cell: total.metrics[name] for total in run.stats.totals if name in total.metrics}
    first = {entrant.cell: entrant for entrant in reversed(run.entrants)}
    return [(first[cell], totals[cell]) for cell in sorted(totals) if cell in first]


def words(run: ReportRun, measured: Measured) -> str:
    """Of which axes not all small charts are shown."""
    counts = {key: len({_panel(run, key, entrant, word) for entrant, word, _ in measured}) for key in run.varied}
    return " ".join(
        f"Over {axis_name(key)} the first {PANELS_AT_MOST} of {count} small charts are shown."
        for key, count in counts.items()
        if count > PANELS_AT_MOST
    )


def chart(run: ReportRun, layout: Layout, measured: Measured, title: str, scale: float) -> Any:
    """One row per axis with several values, one small chart per word and setting of the other axes, all on one scale.

    `title` has the unit, in which a value is `scale` times its own.
    """
    import altair as alt

    parts = []
    heights = marks.from_zero(marks.spread(estimate, scale, "v")["v_high"] for _, _, estimate in measured)
    for key, order in run.varied.items():
        places = numeric.numbers(order)
        rows = []
        panels: dict[str, None] = {}
        for entrant, word, estimate in measured:
            axes = dict(run.conditions[entrant.condition].axes)
            panel = _panel(run, key, entrant, word)
            panels[panel] = None
            rows.append(
                {
                    **marks.entrant_words(run, entrant),
                    "at": places.of.get(axes.get(key, "")) if places else axes.get(key, "–"),
                    "panel": panel,
                    "ink": palette.colour(run.slots[entrant.algorithm]),
                    **marks.spread(estimate, scale, "v"),
                }
            )
        shown = list(panels)[:PANELS_AT_MOST]
        x = _across(key, order, places)
        y = alt.Y("v:Q", title=title, scale=heights, axis=alt.Axis(tickCount=5))
        base = alt.Chart().encode(x=x, detail="entrant:N")
        colour = marks.colour(run, layout)
        layers = alt.layer(
            base.mark_area(opacity=0.18).encode(
                y=alt.Y("v_low:Q", title=title),
                y2="v_high:Q",
                fill=alt.Fill("ink:N", scale=None),
            ),
            base.mark_line(strokeWidth=2).encode(y=y, color=colour),
            base.mark_point(size=60, filled=True, opacity=1).encode(
                y=y,
                color=colour,
                shape=marks.shape(run, layout),
                tooltip=[
                    alt.Tooltip("entrant:N", title="algorithm"),
                    alt.Tooltip("condition:N"),
                    alt.Tooltip("v:Q", title=title, format=",.4~g"),
                    alt.Tooltip("v_low:Q", title="95 % from", format=",.4~g"),
                    alt.Tooltip("v_high:Q", title="to", format=",.4~g"),
                ],
            ),
        ).properties(height=190 if layout.across > 1 else 130)
        rows = [row for row in rows if row["panel"] in shown]
        parts.append(marks.grid(layers, rows, "panel", shown, layout, columns=_columns(run, key, measured)))
    return alt.vconcat(*parts, spacing=30)


def _panel(run: ReportRun, key: str, entrant: Entrant, word: str) -> str:
    """The small chart over `key` that an entrant stands in: the word, and the setting of the other axes."""
    axes = run.conditions[entrant.condition].axes
    others = [f"{axis_name(k)} {v}" for k, v in axes if k != key and k in run.varied]
    return ", ".join([word, *others] if word else others)


def _columns(run: ReportRun, key: str, measured: Measured) -> int | None:
    """Of a full grid: what changes fastest from chart to chart, the words or the last of several axes."""
    kinds = len({word for _, word, _ in measured})
    others = [len(order) for k, order in run.varied.items() if k != key]
    fastest = kinds if kinds > 1 else others[-1] if len(others) > 1 else None
    return fastest if fastest is not None and fastest <= COLUMNS_AT_MOST else None


def _across(key: str, order: list[str], found: numeric.Numbers | None) -> Any:
    """The axis of a key: numbers where they lie, other values in the order of the file, evenly spaced."""
    import altair as alt

    name = axis_name(key)
    title = name[:1].upper() + name[1:]
    labels: dict[str, Any] = {"labelAngle": 0, "labelOverlap": "greedy", "labelSeparation": 8}
    if found is None:
        return alt.X(
            "at:O", title=title, sort=order, axis=alt.Axis(**labels), scale=alt.Scale(padding=0.3, domain=order)
        )
    values = sorted(found.of.values())
    scale: dict[str, Any] = {"nice": False, "padding": 14, "domain": [values[0], values[-1]]}
    if not found.is_logarithmic:
        scale["zero"] = False
    elif values[0] > 0:
        scale["type"] = "log"
    else:
        # Nothing has no logarithm: beside it the axis is linear up to the least value.
        scale |= {"type": "symlog", "constant": found.least_above_zero, "zero": False}
    titled = f"{title} ({found.unit})" if found.unit else title
    return alt.X("at:Q", title=titled, axis=alt.Axis(values=values, format="~g", **labels), scale=alt.Scale(**scale))
