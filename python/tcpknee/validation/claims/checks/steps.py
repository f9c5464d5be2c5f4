"""Samples of a run as step functions: sparse, the last row holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcpknee.evidence.stats import Floats
from tcpknee.runs.results import Run


@dataclass(frozen=True)
class Steps:
    """A column of one flow of one repetition over time."""

    axes: Mapping[str, str]
    rep: int
    t_ns: Floats
    values: Floats
    end_ns: float | None
    """When its work was complete; None: not within the run."""

    def at(self, t_ns: Floats) -> Floats:
        """Values at these times; the first one before there is any."""
        place = np.searchsorted(self.t_ns, t_ns, side="right") - 1
        return self.values[np.maximum(place, 0)]


def of(run: Run, column: str) -> Iterator[Steps]:
    """The first flow of each cell and repetition."""
    wanted = ["cell", "rep", "flow", "t_ns", column]
    samples = {name: _numbers(run.samples[name]) for name in wanted}
    flows = {name: _numbers(run.flows[name]) for name in ("cell", "rep", "flow", "end_ns")}
    for cell in run.meta["cells"]:
        for rep in range(int(run.meta["repeat"])):
            here = (samples["cell"] == cell["index"]) & (samples["rep"] == rep) & (samples["flow"] == 0)
            ended = flows["end_ns"][(flows["cell"] == cell["index"]) & (flows["rep"] == rep) & (flows["flow"] == 0)]
            if not here.any():
                continue
            end = float(ended[0]) if len(ended) and np.isfinite(ended[0]) else None
            yield Steps(dict(cell["axes"]), rep, samples["t_ns"][here], samples[column][here], end)


def _numbers(column: Any) -> Floats:
    """As floats, NaN for null."""
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
