"""Runs of one scenario by several engines, as one table: a row per engine and kernel, under each path and algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tcpknee import human
from tcpknee.evidence import metrics, written
from tcpknee.say import aligned

from . import beside, between_text, doubts, manifest, output
from .differences import Place
from .output import flow_label
from .results import Run
from .summary import Group

_SHOWN = (
    "goodput_bits_per_sec",
    "completion_us_p50",
    "requests_per_sec",
    "latency_us_p50",
    "srtt_us_p50",
    "retransmit_pct",
)
"""Metrics of flows. Those that some workload here has are columns."""


@dataclass(frozen=True)
class Block:
    """What engines say of the flows of one `[[flow]]` on one path: a row per engine and kernel."""

    head: str
    rows: list[list[str]]


def warnings(runs: Sequence[Run]) -> list[str]:
    """What to know before the figures are trusted, with the engine that it is of."""
    told = [
        f"{run.meta['engine']}: {line}"
        for run in runs
        for line in (
            *(between_text.warnings(run.meta) if run.meta["engine"] == "hosts" else ()),
            *(doubt.line for doubt in run.doubts),
            *doubts.of_settings(run.meta["cells"]),
        )
    ]
    return list(dict.fromkeys(told))


def paths(runs: Sequence[Run]) -> list[str]:
    """The paths as they were found, of engines that run over one which is there."""
    return [line for run in runs if run.meta["engine"] == "hosts" for line in between_text.path(run.meta)]


def expectations(runs: Sequence[Run]) -> Iterator[str]:
    """What must hold, and whether it does, with the engine that it is of."""
    for run in runs:
        if run.expectations:
            yield ""
            yield f"Expectations, {run.meta['engine']}"
            yield from output.expectations(run)


def table(runs: Sequence[Run]) -> tuple[list[str], list[Block]]:
    """The heads of the columns behind the first one, and a block for each group of flows. The first run is what the
    others are held against."""
    blocks: dict[tuple[Place, str], list[tuple[str, Group]]] = {}
    for run in runs:
        for group in run.summary.groups:
            axes = axes_of(run, group.cell)
            place = tuple((key, value) for key, value in axes if not key.endswith(".algorithm"))
            blocks.setdefault((place, flow_label(group)), []).append((who(run, group.cell), group))
    for group in beside.groups(runs[0].meta):
        blocks.setdefault(((), "beside, each on a path of its own"), []).append((flow_label(group), group))
    names = [name for name in _SHOWN if any(name in group.metrics for rows in blocks.values() for _, group in rows)]
    units = {name: _unit(name, [group for rows in blocks.values() for _, group in rows]) for name in names}
    heads = [f"{metrics.BY_NAME[name].label}{units[name][1]}" for name in names]
    return heads, [
        Block(
            ", ".join([*(f"{key.removeprefix('path.')} {value}" for key, value in place), label]),
            [[one, *(_cell(group, name, units[name][0]) for name in names)] for one, group in members],
        )
        for (place, label), members in blocks.items()
    ]


def lines(runs: Sequence[Run]) -> list[str]:
    """The table for a terminal."""
    heads, blocks = table(runs)
    rows = [["", *heads]]
    above: dict[int, str] = {}
    for block in blocks:
        # Behind the rule below the header.
        above[len(rows) + 1] = block.head
        rows += [[f"  {row[0]}", *row[1:]] for row in block.rows]
    made = aligned(rows, left=[True] + [False] * len(heads))
    return [line for at, text in enumerate(made) for line in (*([above[at]] if at in above else []), text)]


def axes_of(run: Run, cell: int) -> list[tuple[str, str]]:
    """Those of a cell, but for the kernel: another one answers for the same cell."""
    return [(key, value) for key, value in run.meta["cells"][cell]["axes"] if key != "kernel"]


def who(run: Run, cell: int) -> str:
    """`sim, rules of 6.12`, `guest 6.12.117`, `kernel 6.18.44`, `hosts 6.1.0, 6.12.3`."""
    meta, named = run.meta, run.meta["cells"][cell].get("kernel")
    if meta["engine"] == "sim":
        return f"sim, rules of {named}" if named else "sim"
    if meta["engine"] == "guest":
        return f"guest {named}"
    if meta["engine"] == "hosts":
        return f"hosts {manifest.kernel_of(meta)}"
    return f"kernel {manifest.kernel_of(meta)}"


def _unit(name: str, groups: Sequence[Group]) -> tuple[float, str]:
    means = [abs(group.metrics[name].mean) for group in groups if name in group.metrics]
    divisor, unit = human.scale(metrics.BY_NAME[name].kind, max(means, default=0.0))
    return divisor, f", {unit}" if unit else ""


def _cell(group: Group, name: str, divisor: float) -> str:
    found = group.metrics.get(name)
    if found is None:
        return "-"
    number, bracket = written.bracketed(found, divisor)
    return f"{number} {bracket}".rstrip()
