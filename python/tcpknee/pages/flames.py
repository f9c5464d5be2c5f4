"""The flame graphs of a run whose call stacks were sampled: one of each cell, each to be laid beside another."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tcpknee.errors import MissingTable

from . import functions, palette
from .run import ReportRun

HELD = 20_000
"""Stacks that a page holds; those with fewest samples are left to the table."""
GRAPHS_AT_MOST = 24
HOW = (
    "Each box is a function, as wide as its share of the busy samples; what it called stands above it. A click on "
    "a box widens it to the whole figure, a click on the lowest box goes back."
)
BESIDE = "Red: more time than in the other; blue: less; the darker, the greater the change."
CAPTION = (
    f"Call stacks sampled on every processor of the lab, the link's included; means over the repetitions. {HOW} "
    f"By itself a graph has the colours of the classes of work. Beside another, {BESIDE[0].lower()}{BESIDE[1:]}"
)

Stacks = list[tuple[str, float, str]]


def of(run: ReportRun) -> dict[str, Any] | None:
    """What flame.js draws; `None`: no stacks were sampled."""
    samples: dict[int, dict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))
    reps: dict[int, set[int]] = defaultdict(set)
    try:
        table = run.table("stacks", ["cell", "rep", "stack", "samples", "class"])
    except MissingTable:
        return None
    for row in table.to_pylist():
        samples[row["cell"]][row["stack"], row["class"]] += row["samples"]
        reps[row["cell"]].add(row["rep"])
    cells = [cell for cell in run.cells if cell in samples and cell in run.condition_of][:GRAPHS_AT_MOST]
    if not cells:
        return None
    held = HELD // len(cells)
    graphs = [
        {
            "label": _label(run, cell),
            "stacks": largest([(stack, n / len(reps[cell]), kind) for (stack, kind), n in samples[cell].items()], held),
        }
        for cell in cells
    ]
    # The first beside the other algorithm under the same condition.
    first = run.condition_of[cells[0]].index
    others = [place for place, cell in enumerate(cells) if place and run.condition_of[cell].index == first]
    return drawn(graphs, others[0] if others else None)


def shown(flame: dict[str, Any] | None) -> dict[str, Any]:
    """What a template says of the graphs; nothing where there are none."""
    if flame is None:
        return {"flame_labels": []}
    return {
        "flame_labels": [graph["label"] for graph in flame["graphs"]],
        "flame_beside": flame["beside"],
        "flame_caption": CAPTION,
        "flame_functions": _functions(flame),
    }


def _functions(flame: dict[str, Any]) -> dict[str, Any]:
    """The functions of the first graph, and of the one beside it, as shares of the busy samples."""
    graphs = [flame["graphs"][0], *([flame["graphs"][flame["beside"]]] if flame["beside"] is not None else [])]
    found = [functions.of((stack, count) for stack, count, _ in graph["stacks"]) for graph in graphs]
    labels = [graph["label"] for graph in graphs]
    if len(found) == 1:
        rows = functions.rows(found[0], shown=functions.SHOWN_ON_PAGE)
        return {"title": f"Functions of {labels[0]}", "heads": functions.HEADS, "rows": rows}
    return {
        "title": f"Functions of {labels[0]} (before) and {labels[1]} (now)",
        "heads": functions.BESIDE_HEADS,
        "rows": functions.rows(found[1], found[0], functions.SHOWN_ON_PAGE),
    }


def drawn(graphs: list[dict[str, Any]], beside: int | None) -> dict[str, Any]:
    """The first graph, beside another of them or by itself."""
    return {"classes": palette.CLASSES, "graphs": graphs, "beside": beside}


def largest(stacks: Stacks, held: int = HELD) -> Stacks:
    return sorted(stacks, key=lambda one: (-one[1], one[0]))[:held]


def _label(run: ReportRun, cell: int) -> str:
    words = run.entrants_words(cell)
    return f"{words}, {run.condition_of[cell].label}" if len(run.conditions) > 1 else words
