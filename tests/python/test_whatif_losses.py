"""`knee whatif`: losses and cross traffic are read from a recording and simulated where they were."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tcpknee.whatif.distance import Features
from tcpknee.whatif.events import (
    as_it_happened,
    load_of_others,
    random_losses,
    unevenness,
    with_random_losses,
)
from tcpknee.whatif.model import Path, simulate
from tcpknee.whatif.series import Series
from tcpknee.whatif.trial import SEEDS, Trial
from whatif_paths import PLAIN, SECONDS, load, recording


def test_recorded_losses_are_simulated_where_they_were_and_those_of_a_full_queue_are_left_to_it() -> None:
    lossy = replace(PLAIN, loss_pct=0.3, buffer_bytes=400_000)
    observed = recording(lossy, load("cubic"))
    (series,) = observed.connections
    again = as_it_happened(lossy, observed, 1)
    assert len(again.lost) == series.retransmitted > 3
    at = np.interp(np.arange(1, 9) / 8, np.arange(len(series.t_us)) / len(series.t_us), series.total_retrans)
    (simulated,) = simulate(again, load("cubic"))
    assert isinstance(simulated, Series)
    there = np.interp(
        np.arange(1, 9) / 8, np.arange(len(simulated.t_us)) / len(simulated.t_us), simulated.total_retrans
    )
    assert np.abs(at - there).max() <= 2
    full = recording(PLAIN, load("cubic"))
    assert full.connections[0].retransmitted > 3
    assert random_losses(PLAIN, full) == 0


def test_losses_that_come_together_are_told_from_those_that_come_alone() -> None:
    """A connection that loses two packets at a time slows down half as often as one that loses as many apart."""
    deep = replace(PLAIN, buffer_bytes=400_000, loss_pct=1.0)
    apart = [recording(deep, load("cubic", seconds=20.0), seed=seed) for seed in range(6)]
    assert sum(with_random_losses(deep, one).loss_burst_pkts == 1 for one in apart) >= 5
    pairs = [recording(replace(deep, loss_burst_pkts=2.0), load("cubic", seconds=20.0), seed=seed) for seed in range(6)]
    together = [with_random_losses(deep, one) for one in pairs]
    assert 1.5 < np.median([path.loss_burst_pkts for path in together]) < 3
    assert 0.5 < np.median([path.loss_pct for path in together]) < 2
    lost = as_it_happened(together[0], pairs[0], 1).lost
    neighbours = sum(second == first + 1 for first, second in itertools.pairwise(lost))
    assert neighbours > len(lost) / 4
    assert isinstance(simulate(replace(together[0], lost=()), load("cubic"))[0], Series)


def test_many_losses_at_once_are_not_random_ones() -> None:
    deep = replace(PLAIN, loss_pct=1.0, buffer_bytes=400_000)
    observed = recording(deep, load("cubic"))
    (series,) = observed.connections
    at_once = np.where(np.arange(len(series.t_us)) > 20, series.retransmitted, 0.0)
    bursty = replace(observed, connections=(replace(series, total_retrans=at_once),))
    assert random_losses(deep, observed) == random_losses(deep, bursty) > 20
    assert unevenness(deep, observed) == 0
    assert unevenness(deep, bursty) > 50


def test_a_path_that_lost_is_none_that_loses_nothing() -> None:
    shallow, deep = (
        Features(recording(replace(PLAIN, buffer_bytes=size), load("cubic")).connections, 100_000)
        for size in (40_000, 4_000_000)
    )
    assert (shallow.parts["any_loss"], deep.parts["any_loss"]) == (1, 0)


def test_what_others_took_is_read_as_transfers_that_they_began() -> None:
    crossed = replace(PLAIN, transfers=((2e6, 400_000.0),))
    observed = recording(crossed, load("cubic"))
    hidden = replace(PLAIN, hidden_load_bits_per_sec=load_of_others(observed, PLAIN))
    read = as_it_happened(hidden, observed, 1).transfers
    # What slow start does not use looks like others, too.
    meanwhile = sum(size for start, size in read if 1.8e6 < start < 3.5e6)
    assert meanwhile == pytest.approx(400_000, rel=0.3)
    assert sum(size for _, size in read) == pytest.approx(hidden.hidden_load_bits_per_sec * SECONDS / 8, rel=0.05)


def test_what_others_took_may_be_many_small_transfers_at_the_same_time() -> None:
    crossed = replace(PLAIN, transfers=((2e6, 400_000.0),))
    observed = recording(crossed, load("cubic"))
    hidden = replace(PLAIN, hidden_load_bits_per_sec=load_of_others(observed, PLAIN), hidden_median_bytes=15_000.0)
    read, again, other = (as_it_happened(hidden, observed, seed).transfers for seed in (1, 1, 2))
    assert read == again != other
    assert sum(size for _, size in read) == pytest.approx(hidden.hidden_load_bits_per_sec * SECONDS / 8)
    assert np.median([size for _, size in read]) == pytest.approx(15_000, rel=0.4)
    in_one = as_it_happened(replace(hidden, hidden_median_bytes=None), observed, 1).transfers
    every = [as_it_happened(hidden, observed, seed).transfers for seed in range(40)]
    later = [sum(size for start, size in found if start > 1.8e6) for found in (in_one, *every)]
    assert np.mean(later[1:]) == pytest.approx(later[0], rel=0.1)
    much = replace(hidden, hidden_load_bits_per_sec=1e9)
    assert 300 < len(as_it_happened(much, observed, 1).transfers) <= 1001


@pytest.mark.parametrize(
    ("truth", "median_bytes"),
    [
        (replace(PLAIN, hidden_load_bits_per_sec=2e6, hidden_median_bytes=15_000.0), 15_000.0),
        (replace(PLAIN, transfers=tuple((start * 1e6, 1.5e6) for start in (1, 5, 9))), None),
    ],
)
def test_recordings_tell_small_transfers_by_others_from_large_ones(truth: Path, median_bytes: float | None) -> None:
    cubic = load("cubic", seconds=12.0)
    scores = dict.fromkeys((15_000.0, None), 0.0)
    for seed in range(1, 7):
        observed = recording(truth, cubic, seed=seed)
        trial = Trial(observed, cubic, happened=True)
        known = replace(PLAIN, hidden_load_bits_per_sec=load_of_others(observed, PLAIN))
        for median in scores:
            scores[median] += trial(replace(known, hidden_median_bytes=median), SEEDS, of_any=True)
    other = next(score for median, score in scores.items() if median != median_bytes)
    assert scores[median_bytes] < other - 50


def test_what_others_took_begins_and_ends_within_the_recording() -> None:
    """A window of missing bytes that reaches past the end is as long as what was recorded of it."""
    observed = replace(recording(PLAIN, load("cubic")), interval_us=700_000)
    hidden = replace(PLAIN.faster(4), hidden_load_bits_per_sec=load_of_others(observed, PLAIN.faster(4)))
    assert hidden.hidden_load_bits_per_sec < 32e6 - 7e6
    read = as_it_happened(hidden, observed, 1)
    assert len(read.transfers) > 1 and all(start < observed.horizon_us for start, _ in read.transfers)
    (series,) = simulate(read, load("cubic"))
    assert isinstance(series, Series)
