"""What experiments on shared bottlenecks say of the total effect, where the truth is known.

The bottleneck of the tests gives a treated connection `GRAB` times the share of one that is not, out of a capacity that
is all used whatever the mix. So the total effect is a ratio of 1, while a naive comparison sees `GRAB` (the case of
Spang et al., IMC 2021, section 2).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tcpknee.errors import UsageError
from tcpknee.fleet import statistics
from tcpknee.fleet.statistics import Effect, Interval, tally
from tcpknee.fleet.statistics.robust import contrast

GRAB = 2.5


def throughput(allocation: float, treated: bool) -> float:
    """Of a connection on a bottleneck of which that share is treated, with the capacity per connection as unit."""
    return (GRAB if treated else 1.0) / (allocation * GRAB + 1 - allocation)


def holds(found: Interval | None, truth: float) -> bool:
    assert found is not None
    return found.low <= truth <= found.high


def test_an_ab_comparison_sees_who_wins_and_claims_no_total_effect() -> None:
    rng = np.random.default_rng(1)
    prefixes = statistics.cluster_hashes([str(number) for number in range(200)])
    sides = []
    for treated in (True, False):
        values = throughput(0.5, treated) * np.exp(rng.normal(0, 0.3, 4000))
        sides.append(tally(values, prefixes[rng.integers(0, 200, 4000)]))
    found = statistics.ab(*sides, 0.5, relative=True)
    assert found.total is None and found.spillover is None and found.allocation == 0.5
    assert holds(found.direct, GRAB) and not holds(found.direct, 1)


def switched(seed: int, carry_over_us: int) -> Effect:
    """40 periods of 10 s, the first 2 s of each still as the period before; all used capacity grows with time."""
    rng = np.random.default_rng([seed, 2])
    arms = np.concatenate([rng.permutation([True, False]) for _ in range(20)])
    rows = []
    for period, treated in enumerate(arms):
        began = rng.integers(0, 10_000_000, 60)
        old = arms[max(period - 1, 0)]
        effect = np.where((began < 2_000_000) & (old != treated), 1 + 0.3 * old, 1 + 0.3 * treated)
        level = math.exp(0.01 * period + rng.normal(0, 0.03))
        rows += list(
            zip(level * effect * np.exp(rng.normal(0, 0.2, 60)), [period] * 60, [treated] * 60, began, strict=True)
        )
    values, period, treated, since = (np.array(column) for column in zip(*rows, strict=True))
    return statistics.switchback(values, period, treated, since, carry_over_us=carry_over_us, relative=True)


def test_a_switchback_covers_the_total_effect_once_the_carry_over_is_left_out() -> None:
    fleets = range(60)
    without = [switched(seed, 2_000_000).total for seed in fleets]
    with_all = [switched(seed, 0).total for seed in fleets]
    # 60 intervals of which each covers with 95 % probability: fewer than 52 have a chance of 1 in 1000.
    assert sum(holds(one, 1.3) for one in without) >= 52
    assert np.mean([one.value for one in with_all if one]) < 1.27 < np.mean([one.value for one in without if one])


def test_a_switchback_whose_periods_hold_both_arms_is_refused() -> None:
    ones = np.ones(4)
    with pytest.raises(UsageError, match="period 1 holds connections of both arms"):
        statistics.switchback(
            ones, np.array([0, 0, 1, 1]), np.array([True, True, True, False]), np.zeros(4, np.int64), carry_over_us=0
        )


def linked(seed: int, unlike: float, before: bool) -> Effect:
    """Two links for 20 days, 90 % treated on one and 10 % on the other, which is `unlike` times as fast."""
    rng = np.random.default_rng([seed, 3])
    rows = []
    for day in range(20):
        busy = rng.normal(0, 0.2)
        for mostly in (True, False):
            level = math.exp(busy + rng.normal(0, 0.03)) * (unlike if mostly else 1)
            for treated in (True, False):
                value = level * throughput(0.9 if mostly else 0.1, treated) * math.exp(rng.normal(0, 0.03))
                rows.append((value, day, mostly, treated))
    outcome, day, link, arm = (np.array(column) for column in zip(*rows, strict=True))
    earlier = np.array([unlike if mostly else 1 for _ in range(20) for mostly in (True, False)])
    earlier = earlier * np.exp(rng.normal(0, 0.04, 40))
    links = np.tile([True, False], 20)
    known = (earlier, links) if before else None
    return statistics.paired_link(outcome, day, link, arm, allocation=0.9, before=known, relative=True)


def test_paired_links_cover_the_total_effect_and_the_spillover_where_the_naive_comparison_does_not() -> None:
    total = throughput(0.9, True) / throughput(0.1, False)
    spillover = throughput(0.9, False) / throughput(0.1, False)
    found = [linked(seed, 1.0, False) for seed in range(60)]
    assert sum(holds(one.total, total) for one in found) >= 52
    assert sum(holds(one.spillover, spillover) for one in found) >= 52
    assert not any(holds(one.direct, total) for one in found)
    assert total < 1.25 < 2.4 < np.mean([one.direct.value for one in found if one.direct])


def test_links_that_were_unlike_before_are_made_alike() -> None:
    total = throughput(0.9, True) / throughput(0.1, False)
    assert not any(holds(linked(seed, 1.3, False).total, total) for seed in range(20))
    assert sum(holds(linked(seed, 1.3, True).total, total) for seed in range(60)) >= 52


def test_assignment_by_cluster_covers_the_total_effect_where_clusters_share_no_bottleneck() -> None:
    covered = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 4])
        treated = rng.permutation(np.arange(60) < 30)
        outcome = np.where(treated, throughput(1, True), throughput(0, False)) * np.exp(rng.normal(0, 0.4, 60))
        covered += holds(statistics.by_cluster(outcome, treated, relative=True).total, 1)
    assert covered >= 52


def test_a_ramp_tells_total_effect_and_spillover_of_a_linear_interference() -> None:
    """Control loses 0.5 times the allocation, treated gain 0.4 at once and lose 0.5 times it too."""
    covered = np.zeros(3)
    for seed in range(60):
        rng = np.random.default_rng([seed, 5])
        rows = []
        for unit in range(30):
            level = rng.normal(0, 0.1)
            for allocation in (0.05, 0.25, 0.5, 0.75):
                for treated in (True, False):
                    rows.append(
                        (1 + 0.4 * treated - 0.5 * allocation + level + rng.normal(0, 0.05), allocation, treated, unit)
                    )
        found = statistics.ramp(*(np.array(column) for column in zip(*rows, strict=True)))
        assert found.allocation == 0.75
        covered += [holds(found.total, -0.1), holds(found.direct, 0.4), holds(found.spillover, -0.375)]
    assert (covered >= 52).all()


def test_what_a_design_cannot_tell_is_not_a_number() -> None:
    single = statistics.by_cluster(np.array([1.0, 2.0, 3.0]), np.array([True, True, True])).total
    assert single is not None and math.isnan(single.value) and math.isnan(single.low)
    with pytest.raises(UsageError, match="not above 0"):
        statistics.by_cluster(np.array([1.0, 0.0, 3.0]), np.array([True, False, True]), relative=True)


def test_least_squares_of_two_arms_is_the_test_of_welch() -> None:
    """CR2 of single units is each arm's own variance."""
    rng = np.random.default_rng(8)
    treated = np.arange(40) < 12
    outcome = rng.normal(0, np.where(treated, 3, 1))
    found = statistics.by_cluster(outcome, treated).total
    welch = stats.ttest_ind(outcome[treated], outcome[~treated], equal_var=False)
    assert found is not None and found.value == pytest.approx(outcome[treated].mean() - outcome[~treated].mean())
    assert found.value / found.error == pytest.approx(welch.statistic)


def test_units_of_one_cluster_count_as_one() -> None:
    """Each outcome twice, in the same cluster, says no more than once."""
    rng = np.random.default_rng(9)
    columns, outcome = np.column_stack([np.ones(20), rng.random(20)]), rng.normal(size=20)
    once = contrast(columns, outcome, np.arange(20), np.array([0.0, 1.0]))
    twice = contrast(
        np.repeat(columns, 2, axis=0), np.repeat(outcome, 2), np.repeat(np.arange(20), 2), np.array([0.0, 1.0])
    )
    for name in ("value", "error", "degrees", "low", "high"):
        assert getattr(twice, name) == pytest.approx(getattr(once, name)), name
    plain = np.linalg.inv(columns.T @ columns)
    residuals = outcome - columns @ (plain @ columns.T @ outcome)
    leverage = np.einsum("ij,jk,ik->i", columns, plain, columns)
    weights = columns @ plain @ np.array([0.0, 1.0])
    assert once.error == pytest.approx(np.sqrt(np.sum(weights**2 * residuals**2 / (1 - leverage))))
    hat = np.eye(20) - columns @ plain @ columns.T
    covariance = (weights / np.sqrt(1 - leverage))[:, None] * hat * (weights / np.sqrt(1 - leverage))
    assert once.degrees == pytest.approx(np.trace(covariance) ** 2 / np.sum(covariance**2))


def test_a_hundred_thousand_clusters_are_compared() -> None:
    rng = np.random.default_rng(10)
    treated = rng.random(100_000) < 0.5
    found = statistics.by_cluster(rng.normal(1 + 0.1 * treated, 1), treated).total
    assert holds(found, 0.1) and found is not None and found.error == pytest.approx(2 / np.sqrt(100_000), rel=0.02)
