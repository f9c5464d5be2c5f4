"""A small part of tools/coverage_fleet.py: intervals hold the truth as often as the table of
docs/validation/fleet-statistics.md says.

Bounds are those that so many fleets pass with a chance of less than 1 in 10,000 if the stated rate is true.
"""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path

import pytest
from scipy.stats import binom

STUDY = runpy.run_path(str(Path(__file__).resolve().parents[2] / "tools/coverage_fleet.py"), run_name="coverage_fleet")
FLEETS = 60
RARE = 1e-4


@pytest.mark.parametrize("shared", [False, pytest.param(True, marks=pytest.mark.long)])
def test_intervals_over_60_unequal_clusters_hold_the_truth_and_half_of_them_does_not(shared: bool) -> None:
    kind = STUDY["Kind"]("60 clusters", 60, shared=shared)
    whole, half = Counter[str](), Counter[str]()
    for seed in range(FLEETS):
        for name, found, truth in STUDY["questions"](kind, *kind.cohorts(seed), seed):
            whole[name] += found.low <= truth <= found.high
            middle = (found.low + found.high) / 2
            half[name] += abs(truth - middle) <= (found.high - found.low) / 4
    least = binom.ppf(RARE, FLEETS, 0.93)
    # Half of an interval of 97 % is one of 72 %.
    most = binom.isf(RARE, FLEETS, 0.72)
    assert {name: hits for name, hits in whole.items() if hits < least} == {}
    assert {name: hits for name, hits in half.items() if hits > most} == {}
    assert len(whole) == 12


@pytest.mark.long
def test_intervals_over_10_unequal_clusters_are_rather_too_wide_than_too_narrow() -> None:
    kind, hits = STUDY["Kind"]("10 clusters", 10), Counter[str]()
    for seed in range(FLEETS):
        for name, found, truth in STUDY["questions"](kind, *kind.cohorts(seed), seed):
            hits[name] += found.low <= truth <= found.high
    two = {name: held for name, held in hits.items() if "ratio" in name or "difference" in name}
    assert len(two) == 7 and min(two.values()) >= binom.ppf(RARE, FLEETS, 0.98)
    assert min(hits.values()) >= binom.ppf(RARE, FLEETS, 0.92)


def test_the_truth_of_a_fleet_is_what_a_large_one_has() -> None:
    kind = STUDY["Kind"]("large ones are slow", 20_000, informative=0.5)
    _, other = kind.cohorts(1)
    for name, found, truth in STUDY["questions"](kind, other, other, 1):
        if "ratio" not in name and "difference" not in name:
            assert found.value == pytest.approx(truth, rel=0.04), name


def test_cohorts_that_are_alike_are_rarely_called_different_by_any_of_15_metrics() -> None:
    _, _, called = STUDY["false_calls"](20, clusters=40)
    assert called <= binom.isf(RARE, 20, 0.05)


@pytest.mark.parametrize("arriving", [False, True])
def test_looking_40_times_calls_no_more_than_looking_once(arriving: bool) -> None:
    calls = STUDY["peeked"](30, arriving, clusters=100)
    for _, always in calls.values():
        assert always <= binom.isf(RARE, 30, 0.05)
    assert sum(ordinary for ordinary, _ in calls.values()) > sum(always for _, always in calls.values()) + 3
