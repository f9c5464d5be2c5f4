"""One look for every figure: quiet axes, no chart junk, on white paper or on black."""

from __future__ import annotations

from typing import Any

FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', 'DejaVu Sans', sans-serif"
#: The page scales figures to its own width; this one suits a printed page.
WIDTH = 860

#: For words inside a drawing: legible on both papers.
NEUTRAL = "#757d86"

INKS = {
    "light": {"ink": "#1c1f23", "soft": "#5b626b", "grid": "#e4e7ea", "rule": "#b4bac1"},
    "dark": {"ink": "#e8eaed", "soft": "#a3abb5", "grid": "#2c3137", "rule": "#59616b"},
}


def config(mode: str = "light") -> dict[str, Any]:
    """Vega-Lite configuration; `mode` is "light" or "dark". The background stays clear."""
    ink = INKS[mode]
    return {
        "background": "transparent" if mode == "dark" else "white",
        "font": FONT,
        "axis": {
            "labelColor": ink["soft"], "titleColor": ink["ink"], "gridColor": ink["grid"],
            "domainColor": ink["rule"], "tickColor": ink["rule"], "labelFontSize": 12,
            "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 260, "titlePadding": 8,
            "tickCount": 8, "labelOverlap": True,
        },
        "legend": {
            "labelColor": ink["ink"], "titleColor": ink["soft"], "labelFontSize": 12,
            "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 320, "symbolSize": 90,
            "orient": "top", "columns": 6, "symbolStrokeWidth": 2,
        },
        "header": {"labelColor": ink["ink"], "titleColor": ink["soft"], "labelFontSize": 12, "labelLimit": 320},
        "title": {"color": ink["ink"], "subtitleColor": ink["soft"], "anchor": "start", "fontSize": 13},
        "text": {"color": ink["ink"], "fontSize": 12},
        "rule": {"color": ink["rule"]},
        "view": {"stroke": None},
        "concat": {"spacing": 14},
        "facet": {"spacing": 22},
    }  # fmt: skip
