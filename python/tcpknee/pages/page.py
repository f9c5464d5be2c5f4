"""The page: words, tables, figures and their data in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tcpknee.evidence import published

from . import dataset_page, export, figures, flames, html, summary, theme
from .encode import packed
from .observed import Observed, opened
from .run import ReportRun
from .sources import SAMPLES

BYTES_AT_MOST = 3_000_000


def write(source: Any, out: Path) -> Path:
    found = opened(source)
    text = dataset_page.render(found) if isinstance(found, Observed) else render(found)
    export.write_file(out, text.encode("utf-8"))
    return out


def render(run: ReportRun) -> str:
    shown = figures.of(run)
    answer, verdicts = summary.answer(run)
    heads, rows = summary.table(run)
    described, settings = summary.described(run)
    flame = flames.of(run)
    return html.page(
        "page.html.j2",
        {**payload(run, shown), "flame": flame},
        run=run,
        meta=run.meta,
        answer=answer,
        verdicts=verdicts,
        others=summary.others(run),
        warnings=summary.warnings(run),
        outcomes=run.run.expectations,
        published=run.run.published,
        published_note=published.NOTE,
        heads=heads,
        rows=rows,
        figures=shown,
        first_timed=next((figure.name for figure in shown if hasattr(figure, "data")), ""),
        captions={figure.name: caption(run, figure) for figure in shown},
        described=described,
        settings=settings,
        condition_labels=[condition.label for condition in run.conditions],
        facts=summary.facts(run),
        definitions=summary.definitions(run),
        **flames.shown(flame),
    )


def payload(run: ReportRun, shown: list[Any]) -> dict[str, Any]:
    """What `page.js` draws: specifications, one copy of each data set, the looks of light and dark."""
    specs, shared = [], {}
    timed = [figure for figure in shown if hasattr(figure, "data")]
    for figure in shown:
        laid_out = {}
        for layout in theme.LAYOUTS:
            found = export.spec(run, figure, data=False, layout=layout)
            del found["config"]
            shared.update(found.pop("datasets", {}))
            laid_out[layout.name] = found
        specs.append({"name": figure.name, "specs": laid_out, "timed": hasattr(figure, "data")})
    conditions = []
    for condition in run.conditions if timed else ():
        sets = {name: blocks for figure in timed for name, blocks in figure.data(run, condition).items()}
        conditions.append({"label": condition.label, "sets": packed(sets)})
    return {
        "specs": specs,
        "shared": shared,
        "conditions": conditions,
        "bands": bool(conditions) and run.series.as_bands,
        "layouts": theme.layouts(),
    }


def caption(run: ReportRun, figure: Any) -> str:
    words = str(figure.summary)
    if hasattr(figure, "words"):
        words = f"{words} {figure.words(run)}".rstrip()
    if figure.name != "timeseries":
        return words
    if run.repetitions > 1:
        picks = {f"{rep} of {run.entrants_words(cell)}" for cell, rep in run.median_rep.items()}
        if len(picks) <= 4:
            words += f" Here: repetition {', '.join(sorted(picks))} (counted from 0)."
    if absent := [panel for panel in SAMPLES.panels if panel not in run.series.of_flows]:
        names = ", ".join(panel.title.lower() for panel in absent)
        words += f" Not kept, as the scenario's `samples` says, and so not drawn: {names}."
    if run.series.as_bands:
        words += (
            " Many flows: per kind the line is the median over the flows, the dark band their middle half, "
            "the light band from least to greatest."
        )
        total = sum(len(entrant.flows) for entrant in run.entrants)
        kept = len(run.series.kept)
        if kept < total:
            words += f" {kept} of {total} single flows can be called up, evenly by goodput."
    return words
