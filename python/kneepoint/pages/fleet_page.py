"""The report of a fleet: verdicts first, then the figures that explain them, in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import export, html, palette, theme
from .cohorts import Cohorts
from .encode import packed
from .figures import fleet


def write(found: Cohorts, out: Path) -> Path:
    """Writes the page, which needs no network."""
    export.write_file(out, render(found).encode("utf-8"))
    return out


def render(found: Cohorts) -> str:
    """The page."""
    shown = fleet.of(found)
    total = sum(found.counts.values())
    return html.page(
        "fleet.html.j2",
        _payload(found, shown),
        found=found,
        total=total,
        rows=[
            {
                "cohort": cohort,
                "colour": _colour(found, cohort),
                "n": n,
                "pct": 100 * n / total,
                **_sizes(found, cohort),
            }
            for cohort, n in found.counts.items()
        ],
        figures=shown,
        captions={figure.name: _caption(found, figure) for figure in shown},
    )


def _payload(found: Cohorts, shown: list[Any]) -> dict[str, Any]:
    """What `page.js` draws."""
    specs, shared, sets = [], {}, {}
    for figure in shown:
        laid_out = {}
        for layout in theme.LAYOUTS:
            spec = export.spec(found, figure, data=False, layout=layout)
            del spec["config"]
            shared.update(spec.pop("datasets", {}))
            laid_out[layout.name] = spec
        is_packed = hasattr(figure, "data")
        specs.append({"name": figure.name, "specs": laid_out, "timed": is_packed})
        if is_packed:
            sets |= figure.data(found, found.conditions[0])
    return {
        "specs": specs,
        "shared": shared,
        "conditions": [{"label": "", "sets": packed(sets)}],
        "bands": False,
        "layouts": theme.layouts(),
    }


def _colour(found: Cohorts, cohort: str) -> str:
    """Of a cohort that figures show; else none."""
    return palette.colour(found.slots[cohort]) if cohort in found.slots else "transparent"


def _sizes(found: Cohorts, cohort: str) -> dict[str, Any]:
    """Clusters of a cohort, as its first tally has them; None where no figure shows it."""
    tallies = [of[cohort] for of in found.tallies.values() if cohort in of]
    return {"clusters": max((one.clusters for one in tallies), default=None)}


def _caption(found: Cohorts, figure: Any) -> str:
    words = [str(figure.summary)]
    if hasattr(figure, "words"):
        words.append(figure.words(found))
    words.append(found.left_out)
    return " ".join(filter(None, words))
