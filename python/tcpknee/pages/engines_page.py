"""The page of one scenario by several engines: a table of what each says, and figures of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tcpknee.runs import engines_text
from tcpknee.runs.results import Run

from . import export, figures, html, page
from .joined import Joined


def write(runs: Sequence[Run], out: Path) -> Path:
    export.write_file(out, render(runs).encode("utf-8"))
    return out


def render(runs: Sequence[Run]) -> str:
    """`runs`: of one scenario, in the order in which they stand."""
    run = Joined.of_engines(runs)
    shown = figures.of(run)
    heads, blocks = engines_text.table(runs)
    return html.page(
        "engines.html.j2",
        page.payload(run, shown),
        title=run.title,
        runs=runs,
        names=[one.meta["engine"] for one in runs],
        heads=heads,
        blocks=blocks,
        doubts=[*engines_text.paths(runs), *engines_text.warnings(runs)],
        figures=shown,
        first_timed=next((figure.name for figure in shown if hasattr(figure, "data")), ""),
        captions={figure.name: page.caption(run, figure) for figure in shown},
    )
