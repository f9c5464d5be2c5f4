"""Verdicts that follow from intervals: corrections, margins, shares of arms, covariates, looks while data come in."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tcpknee.errors import UsageError
from tcpknee.fleet import statistics
from tcpknee.fleet.statistics import Interval, Moments, minus

RATIO = Interval(1.0, 0.97, 1.01, 1000, 100, 80.0, 0.01, 79.0, logarithmic=True, p_value=0.4)


def moments(values: np.ndarray) -> Interval:
    return Moments.of(values).interval()


def test_p_values_are_corrected_as_scipy_does() -> None:
    raw = np.random.default_rng(1).random(40) ** 2
    assert statistics.adjust(raw) == pytest.approx(stats.false_discovery_control(raw))
    with_gap = statistics.adjust([0.01, math.nan, 0.04])
    assert with_gap[0] == pytest.approx(0.02) and math.isnan(with_gap[1]) and with_gap[2] == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("low", "high", "better", "said"),
    [
        (0.985, 1.20, 1, "no worse"),
        (0.975, 1.20, 1, "undecided"),
        (0.900, 0.97, 1, "worse"),
        (0.900, 1.01, -1, "no worse"),
        (0.900, 1.03, -1, "undecided"),
        (1.030, 1.10, -1, "worse"),
        (math.nan, math.nan, 1, "undecided"),
    ],
)
def test_no_worse_than_two_percent_is_decided_by_the_worse_end(low: float, high: float, better: int, said: str) -> None:
    assert statistics.non_inferior(replace(RATIO, low=low, high=high), 0.02, better) == said


def test_no_worse_is_refused_of_a_difference_and_without_a_direction() -> None:
    with pytest.raises(UsageError, match="give it the ratio"):
        statistics.non_inferior(replace(RATIO, logarithmic=False), 0.02, 1)
    with pytest.raises(UsageError, match=r"expected \+1"):
        statistics.non_inferior(RATIO, 0.02, 0)


def test_the_least_difference_is_found_four_times_in_five() -> None:
    rng = np.random.default_rng(2)
    planned = minus(moments(rng.normal(size=60)), moments(rng.normal(size=60)))
    size = statistics.least_difference(replace(planned, error=math.sqrt(2 / 60)))
    found = [minus(moments(rng.normal(size, 1, 60)), moments(rng.normal(size=60))).p_value for _ in range(800)]
    # 80 % of 800 draws, and three standard errors to each side.
    assert 0.755 < np.mean([p is not None and p < 0.05 for p in found]) < 0.845
    assert statistics.least_difference(RATIO) == pytest.approx(math.exp(0.01 * (1.9905 + 0.8464)), rel=1e-4)


def test_wrong_shares_of_arms_are_found_as_scipy_does() -> None:
    found = statistics.mismatch({"a": 50_600, "b": 49_400}, {"a": 1, "b": 1})
    assert found.p_value == pytest.approx(stats.chisquare([50_600, 49_400]).pvalue) and found.suspicious
    fair = statistics.mismatch({"a": 9_010, "b": 990}, {"a": 90, "b": 10})
    assert fair.intended == {"a": 0.9, "b": 0.1} and not fair.suspicious
    with pytest.raises(UsageError, match="give both the same arms"):
        statistics.mismatch({"a": 1}, {"b": 1})


@pytest.mark.parametrize(("units", "treated", "share"), [(20, 2, 0.01), (20, 5, 0.05), (200, 8, 0.01)])
def test_shares_of_an_arm_that_was_to_get_few_units_are_judged_exactly(units: int, treated: int, share: float) -> None:
    """Chi-squared has 5e-05 for two of twenty where 1 % was intended."""
    found = statistics.mismatch({"a": units - treated, "b": treated}, {"a": 1 - share, "b": share})
    assert found.p_value == pytest.approx(stats.binomtest(treated, units, share).pvalue, rel=0.2, abs=3e-5)


def test_a_covariate_narrows_the_interval_and_moves_nothing() -> None:
    rng = np.random.default_rng(3)
    covered, narrower = 0, []
    for _ in range(60):
        before = rng.normal(10, 2, 300)
        treated = rng.random(300) < 0.5
        outcome = before + rng.normal(0, 1, 300) + 0.5 * treated
        before[rng.random(300) < 0.1] = np.nan
        adjusted = statistics.covariate_adjusted(outcome, before, treated)
        plain = minus(moments(outcome[treated]), moments(outcome[~treated]))
        covered += adjusted.low <= 0.5 <= adjusted.high
        narrower.append(adjusted.error / plain.error)
    assert covered >= 52
    # What is left of the variance: 1 + 4 / 10 of 5 by what was seen before, which is 0.53 of the standard error.
    assert 0.45 < np.mean(narrower) < 0.65


@pytest.mark.parametrize("clusters", [5, 30])
def test_what_arms_differed_by_before_is_taken_out_whole(clusters: int) -> None:
    """As hosts of two places do, each with one algorithm: the past says half of the outcome, the arms had two
    deviations between them, and nothing has changed."""
    rng = np.random.default_rng(6)
    treated = np.repeat([True, False], clusters)
    held = 0
    for _ in range(100):
        before = rng.normal(size=2 * clusters) + 2 * treated
        outcome = 0.5 * before + rng.normal(0, 0.9, 2 * clusters)
        found = statistics.covariate_adjusted(outcome, before, treated, rng.uniform(50, 200, 2 * clusters))
        held += found.low <= 0 <= found.high
    # At 95 % fewer come once in 2,000 times.
    assert held >= 87


def test_a_cluster_in_both_arms_is_one_cluster() -> None:
    rng = np.random.default_rng(7)
    own = rng.normal(0, 5, 40)
    outcome, treated = np.r_[own, own + 1] + rng.normal(0, 0.1, 80), np.repeat([False, True], 40)
    before = rng.normal(size=80)
    apart = statistics.covariate_adjusted(outcome, before, treated)
    paired = statistics.covariate_adjusted(outcome, before, treated, clusters=np.tile(np.arange(40), 2))
    assert paired.clusters == 40 and paired.error < apart.error / 5 and paired.low <= 1.5 and paired.high >= 0.5


def test_a_covariate_that_nobody_has_is_refused() -> None:
    with pytest.raises(UsageError, match="no cluster has a value of the period before"):
        statistics.covariate_adjusted(np.ones(3), np.full(3, np.nan), np.array([True, False, True]))


def test_moments_of_hosts_add_up_to_those_of_all() -> None:
    rng = np.random.default_rng(4)
    totals, weights = rng.random(90), 1 + rng.integers(0, 9, 90).astype(float)
    parts = [Moments.of(totals[part::3], weights[part::3]) for part in range(3)]
    whole = Moments.of(totals, weights)
    merged = parts[0] + parts[1] + parts[2]
    assert merged.interval().low == pytest.approx(whole.interval().low) and merged.clusters == 90
    assert whole.interval().value == pytest.approx(totals.sum() / weights.sum())


def test_peeking_calls_nothing_by_intervals_that_always_hold_and_much_by_ordinary_ones() -> None:
    ordinary = always = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, 6])
        sides = rng.exponential(size=(2, 1000))
        looks = [minus(moments(sides[0, :seen]), moments(sides[1, :seen])) for seen in range(50, 1001, 25)]
        held = [statistics.always(look, 500) for look in looks]
        ordinary += any(not look.low <= 0 <= look.high for look in looks)
        always += any(not look.low <= 0 <= look.high for look in held)
        assert [look.p_value < 0.05 for look in held if look.p_value is not None] == [
            not look.low <= 0 <= look.high for look in held
        ]
    # At most 5 % of 200, and three standard errors more; ordinary intervals call a fifth and more.
    assert always <= 19 and ordinary >= 30


def test_an_interval_that_always_holds_finds_a_real_difference_and_is_endless_below_30_clusters() -> None:
    rng = np.random.default_rng(7)
    found = minus(moments(rng.normal(1, 1, 300)), moments(rng.normal(0, 1, 300)))
    assert statistics.always(found, 300).low > 0
    early = statistics.always(minus(moments(rng.normal(1, 1, 20)), moments(rng.normal(0, 1, 300))), 300)
    assert (early.low, early.high, early.p_value) == (-math.inf, math.inf, 1.0)


@pytest.mark.parametrize("value", [0.9, 0.97, 1.0, 1.02, 1.2])
def test_of_a_ratio_the_interval_that_always_holds_lies_around_it_and_agrees_with_its_p_value(value: float) -> None:
    found = replace(RATIO, value=value, error=0.02)
    held = statistics.always(found, 80)
    assert held.low * held.high == pytest.approx(value**2) and held.p_value is not None
    assert (held.p_value < 0.05) == (not held.low <= 1 <= held.high)
    # Wider than the ordinary interval, and narrower than twice it.
    assert 1.2 < math.log(held.high / value) / (1.99 * 0.02) < 2
    early = statistics.always(replace(found, effective=29.9), 80)
    assert (early.low, early.high) == (0, math.inf)
