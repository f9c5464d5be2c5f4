"""Pieces that several figures draw alike: scales by algorithm, points with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kneepoint.report import palette
from kneepoint.report.encode import rounded
from kneepoint.report.run import Condition, Entrant, ReportRun

if TYPE_CHECKING:
    import altair as alt

    from kneepoint.stats import Estimate


def values(rows: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    import altair as alt

    return alt.InlineData(values=rounded(rows))


def algorithms(run: ReportRun) -> list[str]:
    return list(run.slots)


def colour(run: ReportRun, field: str = "algorithm") -> alt.Color:
    import altair as alt

    slots = run.slots
    return alt.Color(
        f"{field}:N",
        title=None,
        scale=alt.Scale(domain=list(slots), range=[palette.colour(k) for k in slots.values()]),
    )


def shape(run: ReportRun, field: str = "algorithm") -> alt.Shape:
    import altair as alt

    slots = run.slots
    return alt.Shape(
        f"{field}:N",
        title=None,
        scale=alt.Scale(domain=list(slots), range=[palette.shape(k) for k in slots.values()]),
    )


def spread(interval: Estimate, scale: float, prefix: str) -> dict[str, float | None]:
    """`prefix`, `prefix_low`, `prefix_high`; without an interval the ends are the mean itself."""
    low = interval.mean if interval.low is None else interval.low
    high = interval.mean if interval.high is None else interval.high
    return {
        prefix: interval.mean * scale,
        f"{prefix}_low": max(low, 0.0) * scale,
        f"{prefix}_high": high * scale,
    }


def entrant_words(run: ReportRun, entrant: Entrant) -> dict[str, Any]:
    return {
        "algorithm": entrant.algorithm,
        "entrant": entrant.label,
        "condition": condition_label(run, entrant),
    }


def condition_label(run: ReportRun, entrant: Entrant) -> str:
    condition: Condition = run.conditions[entrant.condition]
    return condition.label


def conditions(run: ReportRun) -> list[str]:
    return [condition.label for condition in run.conditions]


def entrants(run: ReportRun) -> list[str]:
    """Entrant labels, in the order of their algorithms' palette, then of the matrix."""
    seen = dict.fromkeys(e.label for e in sorted(run.entrants, key=lambda e: run.slots[e.algorithm]))
    return list(seen)


def stacked(run: ReportRun, layers: Any, rows: Sequence[Mapping[str, Any]]) -> alt.FacetChart:
    """One strip per condition, one under the other on a common scale."""
    import altair as alt

    header = alt.Header(labelOrient="top", labelAnchor="start", labelFontWeight=600, labelPadding=4)
    facet: alt.FacetChart = layers.facet(
        row=alt.Row("condition:N", title=None, sort=conditions(run), header=header), data=values(rows), spacing=8
    )
    return facet
