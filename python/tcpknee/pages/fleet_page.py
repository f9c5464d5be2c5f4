"""The report of a fleet: verdicts first, then the figures that explain them, in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpknee import human
from tcpknee.fleet.cohorts.verdicts import ALPHA, UNKNOWN
from tcpknee.fleet.cohorts.verdicts import shown as shown_value

from . import export, html, palette, theme
from .cohorts import Cohorts
from .encode import Block, packed
from .figures import fleet
from .figures.fleet import forest

if TYPE_CHECKING:
    from tcpknee.fleet.cohorts import Verdict

ORDER = ("better", "worse", "higher", "lower")
"""In which the head of the page has what differs."""


def write(found: Cohorts, out: Path) -> Path:
    """Writes the page, which needs no network."""
    export.write_file(out, render(found).encode("utf-8"))
    return out


def render(found: Cohorts) -> str:
    """The page."""
    shown = fleet.of(found)
    return html.page(
        "fleet.html.j2",
        _payload(found, shown),
        found=found,
        answer=answer(found),
        total=sum(found.counts.values()),
        figures=shown,
        captions={figure.name: _caption(found, figure) for figure in shown},
        **_tables(found),
    )


def answer(found: Cohorts) -> list[str]:
    """A sentence per cohort: in what it differs from the baseline."""
    said = []
    for cohort in dict.fromkeys(one.cohort for one in found.verdicts):
        own = [one for one in found.verdicts if one.cohort == cohort]
        differing = [one for one in own if one.p_adjusted < ALPHA]
        parts = []
        # A word may go on: "worse, by less than 2 %".
        for word in sorted({one.word for one in differing}, key=lambda word: (ORDER.index(word.split(",")[0]), word)):
            alike = [f"{forest.label(one)} {_times(one)}".rstrip() for one in differing if one.word == word]
            parts.append(f"{word}: {', '.join(alike)}")
        unknown = sum(one.word == UNKNOWN for one in own)
        if unknown == len(own):
            parts = ["whether it differs cannot be told: there are too few clusters for an interval"]
        elif not parts:
            parts = ["no difference is shown"]
        if 0 < unknown < len(own):
            parts.append(f"{unknown} of {human.counted(len(own), 'metric')} cannot be told")
        shown = "; ".join(parts)
        adoption = human.quantity("share", own[0].adoption)
        said.append(f"{cohort} against {own[0].baseline}, at {adoption} adoption: {shown}")
    return said


def _times(one: Verdict) -> str:
    return f"{human.digits(one.ratio.value)}×" if one.is_relative else ""


def notebook(found: Cohorts) -> str:
    """Verdicts and cohorts as a notebook shows them."""
    return html.part("fleet_notebook.html.j2", found=found, **_tables(found))


def _tables(found: Cohorts) -> dict[str, list[dict[str, Any]]]:
    total = sum(found.counts.values()) or 1
    return {
        "verdicts": [_verdict(one) for one in found.verdicts],
        "rows": [
            {
                "cohort": cohort,
                "colour": palette.colour(found.slots[cohort]),
                "n": found.counts[cohort],
                "pct": 100 * found.counts[cohort] / total,
                "clusters": found.clusters(cohort),
            }
            for cohort in found.names
        ],
    }


def _verdict(one: Verdict) -> dict[str, str]:
    """A row of the table, as the command prints it."""
    kind = one.metric.kind
    return {
        "cohort": one.cohort,
        "metric": forest.label(one),
        "word": one.word,
        "value": shown_value(kind, one.value.value),
        "base": shown_value(kind, one.base.value),
        "apart": one.apart,
    }


def _payload(found: Cohorts, shown: list[Any]) -> dict[str, Any]:
    """What `page.js` draws."""
    specs, shared = [], {}
    sets: dict[str, list[Block]] = {}
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


def _caption(found: Cohorts, figure: Any) -> str:
    words = [str(figure.summary)]
    if hasattr(figure, "words"):
        words.append(figure.words(found))
    return " ".join(filter(None, words))
