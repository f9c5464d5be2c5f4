"""One look for every figure: quiet axes, no chart junk, on white paper or on black."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Layout:
    """How a figure is laid out for the room it has; the page scales it to its own width."""

    name: str
    width: int
    """Of the drawing without its axes: as it stands in PNG and SVG."""
    least: int
    """The page shows it no narrower than this: words must not touch there."""
    most: int
    """Nor wider."""
    across: int
    """Small charts side by side."""
    ticks: int
    """About as many on an axis of numbers that lies flat."""
    label_limit: int
    """Pixels that the name of a row may take beside it."""

    def legend_columns(self, names: Sequence[str]) -> int:
        """Names side by side above the drawing, such that they are no wider than it."""
        for columns in range(min(len(names), 6), 1, -1):
            longest = (max(map(len, names[k::columns])) for k in range(columns))
            if sum(letters * LETTER + LEGEND_SYMBOL for letters in longest) <= self.least:
                return columns
        return 1


WIDE = Layout("wide", width=860, least=600, most=1180, across=4, ticks=10, label_limit=260)
#: For telephones. 230 is what a window of 320 pixels leaves.
NARROW = Layout("narrow", width=300, least=230, most=600, across=1, ticks=5, label_limit=105)
LAYOUTS = (WIDE, NARROW)
#: What the value axis with its title and numbers takes of the page besides.
AXIS_ROOM = 80

#: Width of a letter of 12 pixels in the mean, and of what stands before a name in a legend.
LETTER = 6.6
LEGEND_SYMBOL = 26

#: For words inside a drawing: legible on both papers.
NEUTRAL = "#757d86"

INKS = {
    "light": {"ink": "#1c1f23", "soft": "#5b626b", "grid": "#e4e7ea", "rule": "#b4bac1"},
    "dark": {"ink": "#e8eaed", "soft": "#a3abb5", "grid": "#2c3137", "rule": "#59616b"},
}

#: From few to many, on light and on dark paper: of one hue, which every eye sees alike.
HEAT = {
    "light": ("#d6e6f4", "#8cbfdf", "#3787c0", "#0b4f95", "#06254d"),
    "dark": ("#17324d", "#1f5c8f", "#3f8fc7", "#8cc3e8", "#e8f4fd"),
}


def config(mode: str = "light", layout: Layout = WIDE) -> dict[str, Any]:
    """Vega-Lite configuration; `mode` is "light" or "dark". The background stays clear."""
    ink = INKS[mode]
    return {
        "background": "transparent" if mode == "dark" else "white",
        "font": FONT,
        "axis": {
            "labelColor": ink["soft"], "titleColor": ink["ink"], "gridColor": ink["grid"],
            "domainColor": ink["rule"], "tickColor": ink["rule"], "labelFontSize": 12,
            "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": layout.label_limit, "titlePadding": 8,
            "labelOverlap": True,
        },
        "range": {"heatmap": list(HEAT[mode])},
        # One number for all panels that share an axis: then their grids are at its ticks.
        "axisX": {"tickCount": layout.ticks},
        "axisY": {"tickCount": 8},
        "legend": {
            "labelColor": ink["ink"], "titleColor": ink["soft"], "labelFontSize": 12,
            "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 320, "symbolSize": 90,
            "orient": "top", "symbolStrokeWidth": 2, "symbolOpacity": 1,
        },
        "header": {"labelColor": ink["ink"], "titleColor": ink["soft"], "labelFontSize": 12, "labelLimit": 320},
        "title": {"color": ink["ink"], "subtitleColor": ink["soft"], "anchor": "start", "fontSize": 13},
        "text": {"color": ink["ink"], "fontSize": 12},
        "rule": {"color": ink["rule"]},
        "view": {"stroke": None},
        "concat": {"spacing": 14},
        "facet": {"spacing": 22},
    }  # fmt: skip


def layouts() -> list[dict[str, Any]]:
    """What `page.js` chooses from by the room that a figure has; the widest comes first."""
    return [
        {
            "name": layout.name,
            "width": layout.width,
            "from": layout.least + AXIS_ROOM,
            "config": {mode: config(mode, layout) for mode in INKS},
        }
        for layout in LAYOUTS
    ]
