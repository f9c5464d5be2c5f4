"""The page of a diff: who is better, in what, and the figures of both runs laid over each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tcpknee.runs import differences_text
from tcpknee.runs.differences import Diff

from . import export, figures, flames, html, page
from .joined import Joined


def write(diff: Diff, out: Path) -> Path:
    export.write_file(out, render(diff).encode("utf-8"))
    return out


def render(diff: Diff) -> str:
    run = Joined.of_diff(diff)
    shown = figures.of(run)
    flame = flames.of(run)
    return html.page(
        "diff.html.j2",
        {**page.payload(run, shown), "flame": flame},
        title=" and ".join(diff.names),
        diff=diff,
        answer=differences_text.answer(diff),
        paired=differences_text.how_paired(diff),
        told=[(name, differences_text.told(one)) for name, one in zip(diff.names, (diff.a, diff.b), strict=True)],
        doubts=list(differences_text.doubted(diff)),
        rows=[row for one in diff.compared for row in _rows(one)],
        figures=shown,
        first_timed=next((figure.name for figure in shown if hasattr(figure, "data")), ""),
        captions={figure.name: page.caption(run, figure) for figure in shown},
        **flames.shown(flame),
    )


def _rows(one: Any) -> list[dict[str, Any]]:
    """A row per metric, as the terminal has it; the first says of what."""
    return [
        {"where": one.where if not place else "", "cells": differences_text.row(one, verdict), "word": verdict.word}
        for place, verdict in enumerate(one.verdicts)
        if differences_text.is_headline(verdict)
    ]
