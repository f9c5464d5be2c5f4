"""Whether the path changed while a run in real time went on: over its blocks, of what was probed and measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpknee import human
from tcpknee.evidence.blocks import Drift, drifts, least_to_tell
from tcpknee.evidence.metrics import BY_NAME, primary

from . import engines

if TYPE_CHECKING:
    from tcpknee.evidence.stats import Floats

    from .results import Run
    from .summary import Group

_PROBES = {
    "rtt_us": "round trip without load",
    "rate_bits_per_sec": "probed rate",
    "loss_pct": "probed loss",
}
"""Of `path_measured` in `run.json`, which has them block by block."""
_OF_EVERY_FLOW = ("min_rtt_us",)


def of_run(run: Run) -> list[Drift]:
    """What the test says of each quantity; none where time is virtual, whose path is the same again."""
    if not engines.in_real_time(run.meta["engine"]):
        return []
    return drifts(_quantities(run))


def _quantities(run: Run) -> dict[str, Floats]:
    return {**_probed(run.meta), **_measured(run.summary.groups)}


def probed(meta: Mapping[str, Any], name: str) -> list[float]:
    """What was measured of the path before each block; rtt_us, rate_bits_per_sec (of payload) or loss_pct."""
    return [float(one[name]) for one in meta.get("path_measured", ()) if one.get(name) is not None]


def _probed(meta: Mapping[str, Any]) -> dict[str, Floats]:
    return {words: np.array(found) for name, words in _PROBES.items() if (found := probed(meta, name))}


def _measured(groups: Sequence[Group]) -> dict[str, Floats]:
    """Of each metric that matters most to some group, and that of the path which each has: the mean over the groups in
    each block, beside each group's own over all blocks. Blocks that a group lacks say nothing."""
    names = dict.fromkeys(name for group in groups for name in (*primary(group.workload), *_OF_EVERY_FLOW))
    return {BY_NAME[name].label: values for name in names if (values := _over_blocks(name, groups)) is not None}


def _over_blocks(name: str, groups: Sequence[Group]) -> Floats | None:
    known = [
        {rep: value for rep, value in zip(group.reps.tolist(), group.values[name].tolist(), strict=True) if value >= 0}
        for group in groups
        if name in group.metrics
    ]
    # One that is 0 throughout has nothing that its blocks could stand beside.
    having = [by_rep for by_rep in known if any(by_rep.values())]
    if not having:
        return None
    common = sorted(set.intersection(*map(set, having)))
    every = np.array([[by_rep[rep] / np.mean(list(by_rep.values())) for rep in common] for by_rep in having])
    found: Floats = every.mean(axis=0)
    return found


def lines(run: Run) -> Iterator[str]:
    """What text says of it."""
    blocks = len({rep for group in run.summary.groups for rep in group.reps.tolist()})
    if not engines.in_real_time(run.meta["engine"]) or blocks < 2:
        return
    quantities, told = _quantities(run), {one.what for one in run.drifts}
    if untold := [what for what in quantities if what not in told]:
        enough = least_to_tell(len(quantities))
        yield f"Drift of the path: not told by {blocks} blocks of {' and '.join(untold)}; by {enough} and more it is."
    shown = [one for one in run.drifts if one.shown]
    for one in shown:
        times = f"{human.digits(one.change)}×" if one.change is not None else "more" if one.more else "less"
        yield (
            f"Drift of the path: {one.what} is {times} after block {one.after} of {one.blocks} (by "
            f"chance in {human.digits(100 * one.chance, 2)} % of runs). Each block has every cell and the next one has "
            "them in the opposite order, so that no cell is favoured by it; intervals are wider for it."
        )
    if told and not shown:
        yield f"Drift of the path: none shown over {blocks} blocks, of {' and '.join(one.what for one in run.drifts)}."
