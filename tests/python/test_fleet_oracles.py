"""gbstats and spotify-confidence (asked once, tools/fleet_oracles.py) say the same where they have the method."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tcpknee.fleet import statistics
from tcpknee.fleet.statistics import Interval, Moments, minus, tally

SAID = json.loads((Path(__file__).parent / "fleet_oracles.json").read_text())
ARMS = runpy.run_path(str(Path(__file__).resolve().parents[2] / "tools/fleet_oracles.py"))["data"]()


def means(arm: str, part: slice = slice(None)) -> np.ndarray:
    return np.array([np.mean(cluster["values"]) for cluster in ARMS[arm][part]])


def of_means(part: slice = slice(None)) -> Interval:
    return minus(*(Moments.of(means(arm, part)).interval() for arm in ("treated", "control")))


def agrees(found: Interval, said: dict[str, float], rel: float = 1e-6) -> None:
    assert {name: getattr(found, name) for name in said} == {
        name: pytest.approx(value, rel=rel) for name, value in said.items()
    }


def test_means_of_clusters_differ_as_both_say() -> None:
    agrees(of_means(), SAID["gbstats"]["means"])
    agrees(of_means(), SAID["spotify-confidence"]["means"])


def test_p_values_of_several_questions_are_corrected_as_spotify_confidence_does() -> None:
    halves = [of_means(slice(half, None, 2)) for half in (0, 1)]
    for found, said in zip(halves, SAID["spotify-confidence"]["halves"], strict=True):
        assert found.p_value == pytest.approx(said["p_value"])
    corrected = statistics.adjust([found.p_value or 0.0 for found in halves])
    assert list(corrected) == pytest.approx(SAID["spotify-confidence"]["halves corrected"])


def test_means_over_connections_differ_as_gbstats_says() -> None:
    """Its degrees of freedom are those of equal clusters, ours fewer: the intervals differ by 2 % of their width."""
    arms = []
    for arm in ("treated", "control"):
        sizes = np.array([float(len(cluster["values"])) for cluster in ARMS[arm]])
        arms.append(Moments.of(sizes * means(arm), sizes).interval())
    said = SAID["gbstats"]["weighted means"]
    found = minus(*arms)
    assert found.value == pytest.approx(said["value"])
    assert found.high - found.low == pytest.approx(said["high"] - said["low"], rel=0.02)
    by_resampling = statistics.difference(*(whole(arm) for arm in ("treated", "control")), resamples=4000)
    assert by_resampling.value == pytest.approx(said["value"])
    assert by_resampling.error == pytest.approx((said["high"] - said["low"]) / 3.95, rel=0.05)


def test_a_covariate_takes_out_what_gbstats_takes_out() -> None:
    """It fits the slope to both arms as one, we within the arms: the difference moves by some 1 %."""
    treated = np.r_[np.ones(len(ARMS["treated"]), bool), np.zeros(len(ARMS["control"]), bool)]
    before = np.array([cluster["before"] for arm in ("treated", "control") for cluster in ARMS[arm]])
    found = statistics.covariate_adjusted(np.r_[means("treated"), means("control")], before, treated)
    agrees(
        replace(found, p_value=None),
        {name: SAID["gbstats"]["adjusted means"][name] for name in ("value", "low", "high")},
        0.02,
    )


def test_intervals_that_always_hold_are_those_of_gbstats() -> None:
    """It counts the clusters of both arms together."""
    found = statistics.always(replace(of_means(), effective=160.0), 500)
    agrees(found, SAID["gbstats"]["always, 500 planned"])


def test_the_error_of_a_median_is_near_that_of_gbstats() -> None:
    """It takes the density from one interval and the correlation from the median, we test each value by itself."""
    found = statistics.quantile(whole("control"), 0.5)
    assert found.value == pytest.approx(SAID["gbstats"]["median of control"]["value"], rel=0.01)
    assert found.error == pytest.approx(SAID["gbstats"]["median of control"]["error"], rel=0.2)


def test_a_mismatch_of_shares_is_as_likely_as_gbstats_says() -> None:
    found = statistics.mismatch({"a": len(ARMS["treated"]), "b": len(ARMS["control"])}, {"a": 0.5, "b": 0.5})
    assert found.p_value == pytest.approx(SAID["gbstats"]["mismatch"])


def whole(arm: str) -> statistics.Tally:
    names = statistics.cluster_hashes([f"{arm} {number}" for number in range(len(ARMS[arm]))])
    sizes = [len(cluster["values"]) for cluster in ARMS[arm]]
    return tally(np.concatenate([cluster["values"] for cluster in ARMS[arm]]), np.repeat(names, sizes))
