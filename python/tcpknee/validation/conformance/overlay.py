"""Draws two engines in one figure: window and smoothed RTT over time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tcpknee.pages import export, marks, palette, theme

from .conform import Pair

CELLS_AT_MOST = 6
"""Panels side by side that a reader still compares."""

POINTS = 400
"""Per line: more than a panel has pixels."""

_PANELS = (("snd_cwnd", "window, segments", 1.0), ("srtt_us", "smoothed RTT, ms", 1e-3))
_PNG_SCALE = 2.0


def write(pairs: Sequence[Pair], folder: Path) -> list[Path]:
    """Writes `overlay.svg` and `overlay.png`; the first repetition of a few cells of each kind."""
    import vl_convert

    spec = json.dumps(_spec(list(_rows(pairs))))
    svg, png = folder / "overlay.svg", folder / "overlay.png"
    export.write_file(svg, vl_convert.vegalite_to_svg(spec).encode("utf-8"))
    export.write_file(png, vl_convert.vegalite_to_png(spec, scale=_PNG_SCALE))
    return [svg, png]


def chosen(pair: Pair) -> list[int]:
    """Selects cells spread over the matrix, with single flows only."""
    cells = [int(cell["index"]) for cell in pair.kernel.meta["cells"] if len(cell["flows"]) == 1]
    if len(cells) <= CELLS_AT_MOST:
        return cells
    return sorted({cells[at] for at in np.linspace(0, len(cells) - 1, CELLS_AT_MOST).astype(int)})


def _rows(pairs: Iterable[Pair]) -> Iterable[dict[str, Any]]:
    for pair in pairs:
        labels = {
            int(cell["index"]): " ".join(str(value) for _, value in cell["axes"]) for cell in pair.kernel.meta["cells"]
        }
        cells = chosen(pair)
        for engine, run in (("sim", pair.sim), ("kernel", pair.kernel)):
            column = {
                name: run.samples[name].to_numpy(zero_copy_only=False)
                for name in ("cell", "rep", "t_ns", "snd_cwnd", "srtt_us")
            }
            for cell in cells:
                rows = np.flatnonzero((column["cell"] == cell) & (column["rep"] == 0))
                for at in rows[:: max(1, len(rows) // POINTS)]:
                    for name, panel, factor in _PANELS:
                        yield {
                            "cell": labels[cell],
                            "engine": engine,
                            "panel": panel,
                            "t": float(column["t_ns"][at]) / 1e9,
                            "value": float(column[name][at]) * factor,
                        }


def _spec(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "config": theme.config(),
        "data": {"values": rows},
        "facet": {
            "row": {"field": "cell", "type": "nominal", "title": None, "sort": None},
            "column": {"field": "panel", "type": "nominal", "title": None},
        },
        "resolve": {"scale": {"y": "independent"}},
        "spec": {
            "width": 380,
            "height": 110,
            "layer": [
                {
                    "mark": {"type": "line", "strokeWidth": 1.2, "opacity": 0.85},
                    "encoding": {
                        "x": {"field": "t", "type": "quantitative", "title": "time, s", "axis": {"tickCount": 8}},
                        "y": {"field": "value", "type": "quantitative", "title": None, "axis": {"tickCount": 5}},
                        "color": {
                            "field": "engine",
                            "type": "nominal",
                            "title": None,
                            "scale": {
                                "domain": ["sim", "kernel"],
                                "range": [palette.colour(1), palette.colour(0)],
                            },
                        },
                    },
                },
                # Draws nothing: a constant has room above it, too.
                {
                    "transform": [
                        {
                            "aggregate": [{"op": "max", "field": "value", "as": "most"}],
                            "groupby": ["cell", "panel"],
                        },
                        {"calculate": f"{1 + marks.HEADROOM} * datum.most", "as": "value"},
                    ],
                    "mark": {"type": "rule", "opacity": 0},
                    "encoding": {"y": {"field": "value", "type": "quantitative", "title": None}},
                },
            ],
        },
    }
