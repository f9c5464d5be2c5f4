"""Millions of points as counts in cells: what a scatter would show, without points that hide each other.

Both axes are logarithmic. DuckDB counts, a pass over two columns; what leaves it is a row per cell that holds a point,
however many points there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import theme
from .encode import Block
from .quantities import Quantity
from .theme import Layout

if TYPE_CHECKING:
    from .cohorts import Cohorts
    from .run import Condition

ACROSS_ONE, ACROSS, UP = 140, 70, 75
"""Cells along the axes: some 4 pixels each, of one drawing as wide as the page or of several side by side."""
OUTER_PCT = 0.05
"""Of the points at each end of an axis: beyond these the cells at the edge gather what there is, so that a single
connection does not decide what all others look like."""

CEILING_INK = "#C44601"

ENOUGH, TOGETHER = 50, 5
"""Points whose median is drawn, and columns that it is of."""


@dataclass(frozen=True)
class Span:
    """An axis in cells: cell `k` begins at low * step ** k."""

    low: float
    step: float
    cells: int

    @property
    def high(self) -> float:
        return self.low * self.step**self.cells

    def cell(self, column: str) -> str:
        """The cell of a value, in SQL."""
        found = f"floor(ln({column} / {self.low!r}) / {math.log(self.step)!r})"
        return f"least(greatest({found}, 0), {self.cells - 1})::int"

    def edge(self, field: str, offset: float = 0) -> str:
        """Where a cell begins, as Vega computes it."""
        return f"{self.low!r} * pow({self.step!r}, datum.{field} + {offset})"


@dataclass(frozen=True)
class Ceiling:
    """Where connections cannot go: what x times y comes to at most, in the units of the axes."""

    product: float


@dataclass(frozen=True)
class Density:
    """Cells of two quantities; each block is of one cohort."""

    x: Span
    y: Span
    cells: list[Block]
    medians: list[Block]
    """Of the upper quantity, in columns of cells that hold `ENOUGH` points."""
    points: int
    left_out: int
    """Connections in which one of the two is not known, or is 0 and stands on no logarithmic axis."""


def density(found: Cohorts, x: Quantity, y: Quantity) -> Density | None:
    """Counts by cohort and cell; None: no connection has both."""
    if not {x.column, y.column} <= found.columns or not found.names:
        return None
    both = f"{x.column} > 0 and {y.column} > 0"
    known = f"from {found.connections} where {both}"
    ends = ", ".join(
        f"quantile_disc({one.column} * {one.scale!r}, [{OUTER_PCT / 100!r}, {1 - OUTER_PCT / 100!r}])" for one in (x, y)
    )
    (row,) = found.ask(f"select count(*) as n, {ends} {known}").to_pylist()
    points, x_ends, y_ends = row.values()
    if not points:
        return None
    across = ACROSS_ONE if len(found.names) == 1 else ACROSS
    spans = _span(x_ends, across), _span(y_ends, UP)
    columns = [span.cell(f"({one.column} * {one.scale!r})") for one, span in zip((x, y), spans, strict=True)]
    cells = found.ask(
        f"select cohort, {columns[0]} as i, {columns[1]} as j, count(*) as n {known} group by all order by all"
    )
    of = np.array(cells["cohort"].to_pylist(), dtype=object)
    numbers = {name: cells[name].to_numpy().astype(np.float64) for name in ("i", "j", "n")}
    blocks, medians = [], []
    for cohort in found.names:
        own = np.flatnonzero(of == cohort)
        i, j, n = (numbers[name][own] for name in ("i", "j", "n"))
        # Of a count of thousands 16 bits tell more exactly by its logarithm.
        blocks.append(Block({"cohort": cohort}, {"i": i, "j": j, "log_n": np.log(n)}))
        medians.append(Block({"cohort": cohort}, _medians(i, j, n)))
    return Density(*spans, blocks, medians, points, sum(found.counts.values()) - points)


def _medians(i: Any, j: Any, n: Any) -> dict[str, Any]:
    """The row of cells in which the median of several columns lies; cells are in the order of i, then j."""
    columns, medians = [], []
    for group in np.unique(i // TOGETHER):
        own = i // TOGETHER == group
        rows, counts = np.unique(j[own]), np.bincount(j[own].astype(int), n[own])
        counts = counts[rows.astype(int)]
        if counts.sum() >= ENOUGH:
            columns.append(group * TOGETHER + (TOGETHER - 1) / 2)
            medians.append(rows[np.searchsorted(np.cumsum(counts), counts.sum() / 2)])
    return {"i": np.array(columns, dtype=np.float64), "m": np.array(medians, dtype=np.float64)}


def _span(ends: Sequence[float], cells: int) -> Span:
    """An axis that holds the ends, which are at least 2 % apart."""
    low, high = float(f"{ends[0] * 0.995:.6g}"), ends[1] * 1.005
    return Span(low, float(f"{max(high / low, 1.02) ** (1 / cells):.9g}"), cells)


def figure(
    name: str,
    x: Quantity,
    y: Quantity,
    *,
    height: int,
    medians: bool,
    ceiling: Callable[[Cohorts], Ceiling | None] = lambda found: None,
    more: Callable[[Cohorts, Density], str] = lambda found, density: "",
) -> tuple[
    Callable[[Cohorts], bool],
    Callable[[Cohorts], str],
    Callable[[Cohorts, Condition], dict[str, list[Block]]],
    Callable[[Cohorts, Layout], Any],
]:
    """What a figure of two quantities consists of: `applies`, `words`, `data` and `chart`.

    `ceiling`: the curve below which a window over the round-trip time keeps a connection; `more`: further words.
    """

    def applies(found: Cohorts) -> bool:
        return found.density(x, y) is not None

    def words(found: Cohorts) -> str:
        density = found.density(x, y)
        return " ".join(filter(None, (_words(density), more(found, density)))) if density else ""

    def data(found: Cohorts, condition: Condition) -> dict[str, list[Block]]:
        density = found.density(x, y)
        return {name: [*density.cells, *(density.medians if medians else ())] if density else []}

    def chart(found: Cohorts, layout: Layout) -> Any:
        density = found.density(x, y)
        assert density is not None, "a figure is drawn where it applies"
        return _chart(density, name, x, y, layout, height, ceiling(found), medians=medians)

    return applies, words, data, chart


def _chart(
    found: Density,
    name: str,
    x: Quantity,
    y: Quantity,
    layout: Layout,
    height: int,
    ceiling: Ceiling | None,
    *,
    medians: bool,
) -> Any:
    """Draws a panel for each cohort, on common axes, of the data set `name`."""
    import altair as alt

    scales = [alt.Scale(type="log", domain=[span.low, span.high], nice=False) for span in (found.x, found.y)]
    base = alt.Chart().transform_calculate(
        x=found.x.edge("i"),
        x2=found.x.edge("i", 1),
        y=found.y.edge("j"),
        y2=found.y.edge("j", 1),
        n="round(exp(datum.log_n))",
        middle=found.x.edge("i", 0.5),
        median=found.y.edge("m", 0.5),
        # A curve in the units of the axes: what x times y comes to.
        ceiling=f"{ceiling.product if ceiling else 0!r} / ({found.x.edge('i', 0.5)})",
    )
    places = alt.X("x:Q", title=x.axis, scale=scales[0]), alt.Y("y:Q", title=y.axis, scale=scales[1])
    layers: list[Any] = [
        base.transform_filter("isValid(datum.j)")
        .mark_rect(clip=True, aria=False)
        .encode(
            x=places[0],
            x2="x2:Q",
            y=places[1],
            y2="y2:Q",
            color=alt.Color(
                "n:Q",
                scale=alt.Scale(type="log", domain=[1, max(_most(found), 2)]),
                legend=alt.Legend(title="connections in a cell", format="~s", gradientLength=160),
            ),
            tooltip=[
                alt.Tooltip("cohort:N"),
                alt.Tooltip("x:Q", title=f"{x.axis} from", format=",.3~g"),
                alt.Tooltip("x2:Q", title="to", format=",.3~g"),
                alt.Tooltip("y:Q", title=f"{y.axis} from", format=",.3~g"),
                alt.Tooltip("y2:Q", title="to", format=",.3~g"),
                alt.Tooltip("n:Q", title="connections", format=","),
            ],
        )
    ]
    if medians:
        line = base.transform_filter("isValid(datum.m)").mark_line(strokeWidth=2, color=theme.NEUTRAL, clip=True)
        layers.append(
            line.encode(
                x=alt.X("middle:Q", title=x.axis, scale=scales[0]), y=alt.Y("median:Q", title=y.axis, scale=scales[1])
            )
        )
    if ceiling is not None:
        curve = base.transform_filter("isValid(datum.j)").mark_line(
            strokeWidth=2, strokeDash=[6, 4], color=CEILING_INK, clip=True
        )
        layers.append(
            curve.encode(
                x=alt.X("middle:Q", title=x.axis, scale=scales[0]), y=alt.Y("ceiling:Q", title=y.axis, scale=scales[1])
            )
        )
    names = [block.constants["cohort"] for block in found.cells]
    across = min(len(names), layout.across, 3)
    width = layout.width / across - (40 if across > 1 else 0)
    return (
        alt.layer(*layers)
        .properties(width=width, height=height)
        .facet(
            facet=alt.Facet("cohort:N", title=None, sort=names, header=alt.Header(labelFontWeight=600)),
            columns=across,
            data=alt.NamedData(name=name),
        )
    )


def _most(found: Density) -> float:
    return float(max(np.exp(block.columns["log_n"].max(initial=0.0)) for block in found.cells))


def _words(found: Density) -> str:
    """Says how many points there are, and what is not drawn."""
    left = f" {found.left_out:,} have not both, or have a 0, and are left out." if found.left_out else ""
    edge = f"those in the outermost {OUTER_PCT} % of an axis are in the cells at its edge"
    return f"{found.points:,} connections; {edge}.{left}"
