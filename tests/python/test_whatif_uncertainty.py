"""What an interval of `knee whatif` is made of: what differs from path to path, and what paths have in common."""

from __future__ import annotations

import numpy as np
import pytest

from tcpknee.whatif.series import METRICS
from tcpknee.whatif.uncertainty import Errors, errors_of

DRAWS = 4


def errors(
    wrong: np.ndarray,
    *,
    off: np.ndarray | None = None,
    by_draw: np.ndarray | None = None,
    sources: np.ndarray | None = None,
) -> Errors:
    """Of paths with these rehearsed errors, simulations of the recording that are `off`, and a change that differs
    `by_draw` (paths and draws)."""
    count = len(wrong)
    every = np.ones(len(METRICS))
    now = np.zeros((count, DRAWS, len(METRICS)))
    recorded = np.outer(np.zeros(count) if off is None else off, every)
    changed = np.zeros((count, DRAWS)) if by_draw is None else by_draw
    then = now + changed[:, :, np.newaxis]
    sources = np.arange(count) if sources is None else sources
    return errors_of(recorded, now, then, np.outer(wrong, every), sources, np.ones(count))


def test_errors_that_differ_from_path_to_path_are_counted_once() -> None:
    # In the mean over many populations with nothing in common, the sum of all parts is the variance of the mean.
    # Chance alone gives the mean's square that variance once more: without the correction it would be twice as much.
    rng = np.random.default_rng(1)
    count, populations = 25, 400
    total = mean = 0.0
    for _ in range(populations):
        wrong = rng.standard_normal(count)
        found = errors(wrong)
        total += found.common_rehearsed[0] ** 2 / populations
        mean += wrong.mean() ** 2 / populations
    assert mean == pytest.approx(1 / count, rel=0.2)
    # Cut at 0, a little of it stays: of a normal mean E[max(z^2 - 1, 0)] = 0.48.
    assert total == pytest.approx(0.48 / count, rel=0.3)


def test_what_paths_have_in_common_does_not_become_smaller_with_their_number() -> None:
    rng = np.random.default_rng(2)
    wrong = 0.3 + 0.1 * rng.standard_normal(100)
    found = errors(wrong, off=wrong / 3)
    assert found.common_rehearsed[0] == pytest.approx(0.3, rel=0.1)
    assert found.common_misfit[0] == pytest.approx(0.1, rel=0.1)
    assert found.parts()["draws and rehearsals"][0] == pytest.approx(0.3 / 10, rel=0.15)


def test_the_truth_may_be_as_far_off_as_draws_are_apart_or_as_a_rehearsal_was() -> None:
    # Truths and draws of the same distribution: the truth is as far from the mean of four draws as five of them say,
    # also where the rehearsal came out right.
    rng = np.random.default_rng(4)
    drawn, truth = rng.standard_normal((4000, DRAWS)), rng.standard_normal(4000)
    found = errors(np.zeros(4000), by_draw=drawn).guessed[:, 0]
    assert np.mean(found**2) == pytest.approx(np.mean((truth - drawn.mean(axis=1)) ** 2), rel=0.05)
    # What a fit misses shows in the rehearsal alone.
    assert errors(np.array([-9.0]), by_draw=drawn[:1]).guessed[0, 0] == 9
    apart = np.array([[-0.3, -0.1, 0.1, 0.3]])
    assert errors(np.zeros(1), by_draw=apart).guessed[0, 0] == pytest.approx(np.sqrt(0.2 / 3 * 5 / 4))


def test_an_error_lent_to_other_paths_is_one_witness() -> None:
    wrong = np.array([0.3, 0.1, -0.1, 0.0])
    lent = errors(np.repeat(wrong, 5), sources=np.repeat(np.arange(4), 5))
    own = errors(wrong)
    assert lent.witnesses == own.witnesses == 4
    assert lent.common_rehearsed == pytest.approx(own.common_rehearsed)
    # Taken for 20 witnesses, the same errors would seem to have more in common.
    assert errors(np.repeat(wrong, 5)).common_rehearsed[0] > lent.common_rehearsed[0]


def test_few_estimates_widen_what_differs_from_path_to_path() -> None:
    few, many = (errors(np.tile([0.2, -0.2], count // 2)).of_paths[0, 0] for count in (4, 400))
    # Student's t at 97.5 % with 15 degrees of freedom, four of each path, against the normal distribution.
    assert few / 0.2 == pytest.approx(2.1314 / 1.9600, rel=0.001)
    assert many / 0.2 == pytest.approx(1, rel=0.01)
    # What simulations of the recording are off by is one estimate of each path.
    few, many = (errors(np.zeros(count), off=np.tile([0.1, -0.1], count // 2)).of_paths[0, 0] for count in (4, 400))
    assert few / many == pytest.approx(3.182 / 1.960, rel=0.01)


def test_draws_that_differ_by_chance_say_nothing_of_late_hosts() -> None:
    rng = np.random.default_rng(3)
    count = 200
    chance = 0.5 * rng.standard_normal((count, DRAWS))
    lateness = np.array([-0.2, -0.1, 0.1, 0.2])
    none = np.zeros(count)
    assert np.all(errors(none, by_draw=chance).late == 0)
    assert errors(none, by_draw=chance + lateness).late[:, 0] == pytest.approx(lateness, abs=0.1)
    # One path alone cannot tell them apart, so all counts.
    assert errors(none[:1], by_draw=lateness[np.newaxis]).late[:, 0] == pytest.approx(lateness)
