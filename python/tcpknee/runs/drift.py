"""Whether the path changed while a run in real time went on: over its blocks, of what was probed and measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpknee import human
from tcpknee.evidence.blocks import LEAST_TO_TELL, Drift, drifts
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
    return drifts({**_probed(run.meta), **_measured(run.summary.groups)})


def probed(meta: Mapping[str, Any], name: str) -> list[float]:
    """What was measured of the path before each block; rtt_us, rate_bits_per_sec (of payload) or loss_pct."""
    return [float(one[name]) for one in meta.get("path_measured", ()) if one.get(name) is not None]


def _probed(meta: Mapping[str, Any]) -> dict[str, Floats]:
    return {words: np.array(found) for name, words in _PROBES.items() if (found := probed(meta, name))}


def _measured(groups: Sequence[Group]) -> dict[str, Floats]:
    """Of each metric that matters most to some group, and that of the path which each has: the geometric mean over the
    groups in each block, beside each group's own over all blocks. Blocks that a group lacks say nothing."""
    names = dict.fromkeys(name for group in groups for name in (*primary(group.workload), *_OF_EVERY_FLOW))
    return {BY_NAME[name].label: values for name in names if (values := _over_blocks(name, groups)) is not None}


def _over_blocks(name: str, groups: Sequence[Group]) -> Floats | None:
    having = [group for group in groups if name in group.metrics and np.all(group.values[name] > 0)]
    if not having:
        return None
    common = sorted(set.intersection(*(set(group.reps.tolist()) for group in having)))
    logs = [np.log(group.values[name][np.isin(group.reps, common)]) for group in having]
    found: Floats = np.exp(np.mean([one - one.mean() for one in logs], axis=0))
    return found


def lines(run: Run) -> Iterator[str]:
    """What text says of it."""
    blocks = len({rep for group in run.summary.groups for rep in group.reps.tolist()})
    if not engines.in_real_time(run.meta["engine"]) or blocks < 2:
        return
    if blocks < LEAST_TO_TELL:
        yield f"Drift of the path: not told by {blocks} blocks; by {LEAST_TO_TELL} and more it is."
        return
    shown = [one for one in run.drifts if one.shown]
    for one in shown:
        yield (
            f"Drift of the path: {one.what} is {human.digits(one.change)}× after block {one.after} of {one.blocks} (by "
            f"chance in {human.digits(100 * one.chance, 2)} % of runs). Each block has every cell and the next one has "
            "them in the opposite order, so that no cell is favoured by it; intervals are wider for it."
        )
    if run.drifts and not shown:
        yield f"Drift of the path: none shown over {blocks} blocks, of {' and '.join(one.what for one in run.drifts)}."
