"""The report of a recording, an import or a trace: where its rows come from, its tables, its connections over time."""

from __future__ import annotations

from typing import Any

from tcpknee import human
from tcpknee.errors import RunFolderError

from . import export, html, overview, theme
from .connections import HOW_TO_LOOK
from .encode import packed
from .figures import OF_DATASETS
from .observed import Observed


def render(found: Observed) -> str:
    """The page."""
    dataset = found.dataset
    shown = [figure for figure in OF_DATASETS if figure.applies(found)]
    return html.page(
        "dataset.html.j2",
        _payload(found, shown),
        kind=dataset.kind,
        title=" and ".join(name for name, _ in found.sides if name) or dataset.path.resolve().name,
        overview=_overview(found),
        facts=dataset.provenance.facts(),
        warnings=list(dataset.damaged.values()),
        tables=[_table(found, name) for name in dataset.partitions],
        figures=shown,
        captions={figure.name: _caption(found) if hasattr(figure, "data") else figure.summary for figure in shown},
    )


def _overview(found: Observed) -> overview.Overview | None:
    """Of two datasets beside each other their figures say more than a sum; a damaged table is among the warnings."""
    if len(found.sides) > 1:
        return None
    try:
        return overview.of(found)
    except RunFolderError:
        return None


def _payload(found: Observed, shown: list[Any]) -> dict[str, Any]:
    """What `page.js` draws."""
    specs, shared = [], {}
    timed = [figure for figure in shown if hasattr(figure, "data")]
    for figure in shown:
        laid_out = {}
        for layout in theme.LAYOUTS:
            laid_out[layout.name] = export.spec(found, figure, data=False, layout=layout)
            del laid_out[layout.name]["config"]
            shared.update(laid_out[layout.name].pop("datasets", {}))
        specs.append({"name": figure.name, "specs": laid_out, "timed": figure in timed})
    sets = {name: blocks for figure in timed for name, blocks in figure.data(found, found.conditions[0]).items()}
    return {
        "specs": specs,
        "shared": shared,
        "conditions": [{"label": "", "sets": packed(sets)}],
        "bands": False,
        "layouts": theme.layouts(),
    }


def _table(found: Observed, name: str) -> dict[str, Any]:
    """A table in words."""
    try:
        rows = len(found.dataset.table(name))
        return {"name": name, "rows": rows, "count": human.counted(rows, "row"), "columns": found.dataset.schema(name)}
    except RunFolderError as error:
        return {"name": name, "rows": None, "columns": (), "why": str(error)}


def _caption(found: Observed) -> str:
    """How the figure is read, and what it leaves out."""
    series = found.series
    shown, total = len(series.shown), series.total
    most = "those that sent most" if series.source.sent else "those with most rows"
    which = f"{human.counted(shown, series.source.of)} of {total:,}, {most}" if total > shown else "All"
    return f"{which}, from the table {series.source.table}. {HOW_TO_LOOK}"
