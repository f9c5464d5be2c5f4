"""What each processor did over time: ran programs, the kernel for them, interrupts, or other machines of its host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from tcpknee.errors import MissingTable
from tcpknee.pages import marks
from tcpknee.pages.encode import Block
from tcpknee.pages.run import Condition, ReportRun
from tcpknee.pages.theme import Layout

name = "cpu"
title = "Processors over time"
needs = "processors: --engine kernel, or hosts with `costs`"
summary = (
    "Shares of each processor's time in programs (user), in the kernel on their behalf (system), in interrupts "
    "(softirq) and taken by the hypervisor (steal); what is left is idle. Each cell's repetition of median goodput. Of "
    "a lab these are the machine's processors, with the emulated link and whatever else ran there."
)
#: Of one cell; of more processors the busiest.
PROCESSORS_AT_MOST = 16
#: Of one small chart. Counters only grow, so a row left out makes a longer mean and loses nothing.
POINTS_AT_MOST = 100
HEIGHT = 64
#: From the axis upwards; fills as of the classes of work, which no algorithm has.
KINDS = {"user": "#AAAA66", "system": "#77AADD", "softirq": "#EE8866", "steal": "#555555"}
_COLUMNS = ("t_ns", "name", "run_us", *(f"{kind}_us" for kind in KINDS))


def applies(run: ReportRun) -> bool:
    if not run.entrants:
        return False
    with suppress(MissingTable):
        user = run.table("cpu_time", ["user_us"])["user_us"]
        return bool(user.null_count < len(user))
    return False


def words(run: ReportRun) -> str:
    """What is left out; nothing where all are shown."""
    most = max((_processors(run, cell)[0] for cell in run.median_rep), default=0)
    return f"Of {most} processors the {PROCESSORS_AT_MOST} busiest are shown." if most > PROCESSORS_AT_MOST else ""


def data(run: ReportRun, condition: Condition) -> dict[str, list[Block]]:
    """A block for each processor of each of the condition's cells."""
    return {
        "cpu": [
            Block({"processor": _label(run, condition, cell, processor)}, columns)
            for cell in condition.cells
            for processor, columns in _processors(run, cell)[1].items()
        ]
    }


def chart(run: ReportRun, layout: Layout) -> Any:
    import altair as alt

    labels = [
        _label(run, condition, cell, processor)
        for condition in run.conditions
        for cell in condition.cells
        for processor in _processors(run, cell)[1]
    ]
    return drawn(labels, run.end_ns * 1e-9, layout, alt.NamedData(name="cpu"))


def drawn(labels: Sequence[str], seconds: float, layout: Layout, data: Any) -> Any:
    """A small chart for each processor, of rows with `processor`, `t` and a column for each of KINDS."""
    import altair as alt

    across = layout.across
    scale = alt.Scale(domain=list(KINDS), range=list(KINDS.values()))
    area = (
        alt.Chart()
        .transform_fold(list(KINDS), as_=["kind", "share"])
        # In the order of KINDS, not of the alphabet.
        .transform_calculate(place=f"indexof({list(KINDS)!r}, datum.kind)")
        .mark_area(interpolate="step-before", clip=True)
        .encode(
            x=marks.time(seconds, last=True),
            y=alt.Y(
                "share:Q",
                title="Time (%)",
                stack="zero",
                scale=alt.Scale(domain=[0, 100]),
                axis=alt.Axis(values=[0, 50, 100]),
            ),
            color=alt.Color("kind:N", scale=scale, legend=marks.legend(list(KINDS), layout)),
            order=alt.Order("place:Q"),
            tooltip=[alt.Tooltip("processor:N"), alt.Tooltip("kind:N", title="time in")],
        )
        .properties(width=layout.width / across - (40 if across > 1 else 0), height=HEIGHT)
    )
    header = alt.Header(labelAnchor="start", labelPadding=3)
    return area.facet(
        facet=alt.Facet("processor:N", title=None, sort=list(dict.fromkeys(labels)), header=header),
        columns=across,
        data=data,
        spacing=12,
    )


def _label(run: ReportRun, condition: Condition, cell: int, processor: str) -> str:
    return processor if len(condition.cells) == 1 else f"{run.entrants_words(cell)}: {processor}"


def _processors(run: ReportRun, cell: int) -> tuple[int, dict[str, dict[str, Any]]]:
    """How many processors a cell has, and the series of those that are shown, in the order of their numbers."""
    if cell not in run.median_rep:
        return 0, {}
    import pyarrow.compute as pc

    rows = run.table("cpu_time", _COLUMNS, cell=cell, rep=run.median_rep[cell])
    # Threads have no user_us.
    rows = rows.filter(pc.is_valid(rows["user_us"]))
    names = np.array(rows["name"].to_pylist(), dtype=object)
    t_ns, run_us = (rows[column].to_numpy().astype(np.float64) for column in ("t_ns", "run_us"))
    used_us = np.array([rows[f"{kind}_us"].to_numpy() for kind in KINDS], dtype=np.float64)
    own = {name: np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())}
    busiest = sorted(own, key=lambda name: (-float(run_us[own[name]].max()), _natural(name)))[:PROCESSORS_AT_MOST]
    return len(own), {name: shares(t_ns[own[name]], used_us[:, own[name]]) for name in sorted(busiest, key=_natural)}


def shares(t_ns: Any, used_us: Any) -> dict[str, Any]:
    """Percent of the time up to each `t`, s, by kind, from counters that begin at 0 with the run.

    A step reaches back from its point to the one before, so a first point at 0 repeats what the second says.
    """
    picks = np.unique(np.linspace(0, len(t_ns) - 1, min(len(t_ns), POINTS_AT_MOST)).round().astype(int))
    ends = np.r_[0.0, t_ns[picks]]
    counters = np.concatenate([np.zeros((len(used_us), 1)), used_us[:, picks]], axis=1)
    lengths_us = np.diff(ends) / 1e3
    later = lengths_us > 0
    grown = np.maximum(np.diff(counters, axis=1)[:, later], 0.0) / lengths_us[later] * 100.0
    if not later.any():
        return {"t": np.zeros(0), **{kind: np.zeros(0) for kind in KINDS}}
    columns = {kind: np.r_[one[0], one] for kind, one in zip(KINDS, grown, strict=True)}
    return {"t": np.r_[0.0, ends[1:][later] * 1e-9], **columns}


@cache
def _natural(name: str) -> tuple[Any, ...]:
    """cpu2 before cpu10."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name))
