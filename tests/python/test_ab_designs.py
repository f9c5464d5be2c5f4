"""Experiments on one bottleneck: a naive A/B test misses the truth that designs for shared bottlenecks find."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import ab_designs

LITTLE = ab_designs.Plan(
    periods=8, period_sec=12, carry_over_sec=4, drain_sec=10, median_bytes=2.5e5, rate_bits_per_sec=5e6
)


@pytest.mark.slow("three seeds of each design on a link for as long as a switchback takes")
def test_intervals_of_the_designs_hold_the_truth_where_those_of_a_naive_test_do_not() -> None:
    """The script's own link with three seeds; docs/validation/experiment-designs.md has all of them."""
    names = ("naive A/B, 50 % treated", "switchback", "paired link, 95 % and 5 %")
    found = {one.name: one for one in ab_designs.compare(ab_designs.Plan(), range(1, 4), workers=1, names=names)}
    naive, switchback, paired = (found[name] for name in names)
    assert naive.covered == 0 and switchback.covered >= 2 and paired.covered >= 2


def test_the_transfers_of_a_link_are_the_same_whoever_is_treated() -> None:
    off, on = (ab_designs.simulated(LITTLE, 3, "x", [share] * 8) for share in (0.0, 1.0))
    assert not off.treated.any() and on.treated.all()
    assert np.array_equal(off.period, on.period) and np.array_equal(off.since_switch_us, on.since_switch_us)
    assert off.period.min() == 0 and off.period.max() == 7
    assert off.since_switch_us.min() >= 0 and off.since_switch_us.max() < 12e6
    assert np.nanmax(off.goodput_bits_per_sec) < 5e6


def test_a_switchback_treats_one_of_every_two_periods() -> None:
    [(_, shares)] = ab_designs.DESIGNS["switchback"].links(LITTLE, 5)
    assert [sorted(shares[at : at + 2]) for at in range(0, 8, 2)] == [[0.0, 1.0]] * 4


@pytest.mark.parametrize(("truth", "wrong"), [(0.8, 1), (1.2, 1)])
def test_a_sign_is_wrong_where_the_interval_is_on_the_other_side_of_1(truth: float, wrong: int) -> None:
    from tcpknee.fleet.statistics import Interval

    intervals = [Interval(1, low, high, 9, 9, 9, 0.1, 8) for low, high in ((1.1, 1.3), (0.5, 0.7), (0.9, 1.25))]
    outcome = ab_designs.Outcome("x", truth, intervals)
    assert outcome.wrong_sign == wrong and outcome.covered == (0 if truth == 0.8 else 2)
