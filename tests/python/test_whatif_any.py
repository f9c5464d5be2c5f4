"""`knee whatif` on recordings of all sorts: whatever was recorded, it predicts something finite or says why not."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import numpy as np
import pytest

from tcpknee import _core
from tcpknee.runs.workers import on_processes
from tcpknee.whatif import fit, predict
from tcpknee.whatif.model import Flow, Load, Path, simulate
from tcpknee.whatif.observation import LEAST_SAMPLES, Observed, says_something
from tcpknee.whatif.series import Series

WORKLOADS = ("", 'workload = "transfer"\nbytes = "300kB"', 'workload = "on-off"\non = "300ms"\noff = "500ms"')
COUNTED = ("bytes_acked", "delivered", "data_segs_out", "total_retrans")
MEASURED = ("srtt_us", "rttvar_us", "min_rtt_us", "snd_cwnd")


def damaged(series: Series, how: int) -> Series:
    """As a kernel that does not count everything would tell it, or a path that was cut off."""
    none = np.zeros(len(series.t_us))
    third = len(none) // 3
    stuck = {name: getattr(series, name).copy() for name in (*COUNTED, *MEASURED)}
    for values in stuck.values():
        values[third:] = values[third]
    changes = ({}, {"rttvar_us": none}, {"min_rtt_us": none}, {"snd_cwnd": none + 10}, stuck, {"busy_us": none})
    return replace(series, **(*changes, {"delivered": none, "bytes_acked": none})[how])


def drawn(rng: np.random.Generator) -> Observed:
    """A recording of one to three connections on any path, which say something of it."""

    def log(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    rate, rtt_us, interval_us = log(3e4, 3e7), log(100, 8e5), log(1e4, 2e6)
    duration_us = min(interval_us * rng.integers(LEAST_SAMPLES + 1, 30), max(3e7 * 1e6 / rate, 9 * interval_us))
    path = Path(rate, rtt_us, log(0.05, 10) * rate * rtt_us / 8e6, loss_pct=rng.choice([0, log(0.01, 20)]))
    if rng.random() < 0.3:
        path = replace(path, policer_rate_bits_per_sec=rate * rng.uniform(0.05, 1), policer_burst_bytes=log(3e3, 1e6))
    if rng.random() < 0.3:
        path = replace(path, aggregate_us=log(500, 50_000))
    if rng.random() < 0.3:
        path = replace(path, hidden_load_bits_per_sec=rate * rng.uniform(0.05, 1.2))
    name, workload = str(rng.choice([one["name"] for one in _core.algorithms()])), str(rng.choice(WORKLOADS))
    starts = [0.0, *rng.uniform(0, duration_us / 3, rng.integers(0, 3))]
    load = Load(tuple(Flow(name, start, workload) for start in starts), duration_us, interval_us, 0.0)
    how = int(rng.integers(7))
    every = [damaged(series, how) for series in simulate(path, load, seed=7) if isinstance(series, Series)]
    kept = tuple(replace(series, fresh=rng.random() < 0.8) for series in every if says_something(series))
    return Observed("any", kept, interval_us) if kept else drawn(rng)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 16))])
def test_any_recording_is_fitted_and_predicted(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcpknee.whatif.surrogate._MOST_STEPS", 2)
    monkeypatch.setattr(f"{fit.__name__}._AGAIN", 1)
    observed = drawn(np.random.default_rng(seed))
    with on_processes(1) as on_all:
        fits = predict.fit_all([observed], on_all)
        found = predict.outcomes(fits, ["bbr1"], [10.0, 100.0], seed=1, on_all=on_all)
    for prediction in predict.predictions(found, ["bbr1"], [10.0, 100.0], 1):
        for change in prediction.everyone.values():
            assert np.isfinite(list(asdict(change).values())).all()
            assert change.low <= change.high and change.low_here <= change.high_here
