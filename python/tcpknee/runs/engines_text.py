"""Runs of one scenario by several engines, as one table: a row per engine and kernel, under each path and algorithm."""

from __future__ import annotations

from collections.abc import Sequence

from tcpknee import human
from tcpknee.evidence import metrics, written
from tcpknee.say import aligned

from . import beside, manifest
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


def lines(runs: Sequence[Run]) -> list[str]:
    """A block for each group of flows; the first run is what the others are held against."""
    blocks: dict[tuple[Place, str], list[tuple[str, Group]]] = {}
    for run in runs:
        for group in run.summary.groups:
            axes = [(key, value) for key, value in run.meta["cells"][group.cell]["axes"] if key != "kernel"]
            place = tuple((key, value) for key, value in axes if not key.endswith(".algorithm"))
            blocks.setdefault((place, flow_label(group)), []).append((_who(run, group.cell), group))
    for group in beside.groups(runs[0].meta):
        blocks.setdefault(((), "beside, each on a path of its own"), []).append((flow_label(group), group))
    names = [name for name in _SHOWN if any(name in group.metrics for rows in blocks.values() for _, group in rows)]
    units = {name: _unit(name, [group for rows in blocks.values() for _, group in rows]) for name in names}
    rows = [["", *(f"{metrics.BY_NAME[name].label}{units[name][1]}" for name in names)]]
    heads: dict[int, str] = {}
    for (place, label), members in blocks.items():
        # Behind the rule below the header.
        heads[len(rows) + 1] = ", ".join([*(f"{key.removeprefix('path.')} {value}" for key, value in place), label])
        rows += [[f"  {who}", *(_cell(group, name, units[name][0]) for name in names)] for who, group in members]
    made = aligned(rows, left=[True] + [False] * len(names))
    return [line for at, text in enumerate(made) for line in (*([heads[at]] if at in heads else []), text)]


def _who(run: Run, cell: int) -> str:
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
