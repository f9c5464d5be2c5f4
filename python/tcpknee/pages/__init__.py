"""Pages: the report of a run, of a recording, an import or a trace, each one HTML file that needs no network; figures
as PDF, PNG or SVG.

They read tables and what the folder says of itself, nothing else. Heavy libraries are imported when a page is made, not
when this package is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["chart", "figure_names", "save", "write"]


def write(run: Any, out_html: str | Path) -> Path:
    """Writes the report of `run` (a folder, a `tcpknee.Run` or a `tcpknee.Dataset`) as one HTML file that needs no
    network; of a `tcpknee.diff` the page of its two runs, whose figures lie over each other; of a list of runs of one
    scenario by several engines the page of all.

    Returns its path. Raises RunFolderError when there is nothing to read or the file cannot be written, MissingTable
    when a run lacks `flows`.
    """
    from tcpknee.runs.differences import Diff

    if isinstance(run, Diff):
        from . import diff_page

        return diff_page.write(run, Path(out_html))
    if isinstance(run, list):
        from . import engines_page

        return engines_page.write(run, Path(out_html))
    from . import page

    return page.write(run, Path(out_html))


def save(
    run: Any,
    figure: str,
    path: str | Path,
    *,
    condition: int = 0,
    width: str | None = None,
    font: str | None = None,
    grey: bool = False,
) -> Path:
    """Writes one figure as PDF, PNG or SVG, by the ending of `path`.

    `condition` picks the setting of the matrix that a figure over time shows. `width`: of the whole picture on paper,
    as "3.4in" or "86mm"; its letters are of 8 points then. `font`: the family of its letters, which must be installed.
    `grey`: no colours, and algorithms are told apart by greys, dashes and shapes.
    Raises UsageError for an unknown figure, ending or width, or when the figure does not apply: "timeseries", "acks"
    and "processors" are drawn of recordings, imports and traces.
    """
    from . import export

    return export.save(run, figure, Path(path), condition=condition, paper=export.Paper(width, font, grey))


def chart(run: Any, figure: str, *, condition: int = 0) -> Any:
    """A figure as an Altair chart with its data, for notebooks. Raises as `save`."""
    from . import export

    return export.chart(run, figure, condition=condition)


def figure_names() -> list[tuple[str, str, str]]:
    """(name, title, summary) of every figure, in the order of the page."""
    from .export import EVERY

    return [(figure.name, figure.title, figure.summary) for figure in EVERY]
