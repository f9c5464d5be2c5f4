"""Paths whose truth is known, and what a recorder would have seen of them: for the tests of `knee whatif`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tcpknee.whatif.fit import Fit, fit
from tcpknee.whatif.model import Flow, Load, Path, simulate
from tcpknee.whatif.observation import Observed
from tcpknee.whatif.series import Series

PLAIN = Path(8e6, 40_000, 40_000)
"""8 Mbit/s, 40 ms, 1 BDP."""


SECONDS = 5.0


def load(*algorithms: str, workload: str = "", starts: Sequence[float] = (), seconds: float = SECONDS) -> Load:
    starts = starts or [0.0] * len(algorithms)
    flows = (Flow(name, start, workload) for name, start in zip(algorithms, starts, strict=True))
    return Load(tuple(flows), seconds * 1e6, 100_000, 0.0)


def recording(path: Path, asked_for: Load, key: str = "truth", seed: int = 99) -> Observed:
    """What a recorder would have seen, by other draws than those of a fit."""
    found = simulate(path, asked_for, seed=seed)
    known = tuple(series for series in found if isinstance(series, Series))
    assert len(known) == len(found)
    return Observed(key, known, asked_for.interval_us)


def fitted(path: Path, asked_for: Load) -> Fit:
    return fit(recording(path, asked_for))


def held_back() -> Observed:
    """A connection whose application had 2 Mbit/s to send."""
    observed = recording(PLAIN, load("cubic", workload='max_pacing_rate = "2Mbit/s"'))
    (series,) = observed.connections
    return replace(observed, connections=(replace(series, app_limited=np.ones_like(series.t_us)),))
