"""`knee whatif`: paths whose truth is known are fitted from what a recorder would have seen of them."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tcpknee.whatif import fit as whatif_fit
from tcpknee.whatif import observation
from tcpknee.whatif.distance import Features, likeness
from tcpknee.whatif.fit import explanations, fit
from tcpknee.whatif.identifiability import judged
from tcpknee.whatif.model import Path, is_held_back, load_of, simulate
from tcpknee.whatif.observation import Observed
from tcpknee.whatif.predict import outcomes
from tcpknee.whatif.series import Series, Starved, measured, percentiles
from tcpknee.whatif.surrogate import proposed
from tcpknee.whatif.trial import Trial
from whatif_paths import PLAIN, fitted, held_back, load, recording


def test_rate_rtt_and_buffer_of_a_path_that_filled_are_recovered() -> None:
    found = fitted(PLAIN, load("cubic"))
    assert found.explanation == "queue"
    assert found.path.rate_bits_per_sec == pytest.approx(8e6, rel=0.03)
    assert found.path.rtt_us == pytest.approx(40_000, rel=0.05)
    assert found.path.buffer_us == pytest.approx(40_000, rel=0.15)
    assert found.path.loss_pct == 0
    told_of_it = judged(found)
    assert told_of_it.rate.identified and told_of_it.buffer.identified


def test_random_loss_is_told_from_that_of_a_full_queue() -> None:
    found = fitted(replace(PLAIN, loss_pct=0.8), load("cubic"))
    assert found.explanation == "random loss"
    assert 0.4 < found.path.loss_pct < 1.6


def test_the_rate_of_a_link_that_losses_keep_a_connection_from_is_recovered() -> None:
    """Its goodput is below 60 % of the rate; the bursts of its windows tell the rest."""
    lossy = replace(PLAIN, loss_pct=1.2)
    (series,) = recording(lossy, load("cubic")).connections
    assert measured(series)["goodput_bits_per_sec"] < 0.6 * 8e6
    assert fitted(lossy, load("cubic")).path.rate_bits_per_sec == pytest.approx(8e6, rel=0.25)


def test_what_a_search_keeps_are_paths_that_differ() -> None:
    """A queue of a few packets: the rate of its link is known within some per cent only, and draws must show that."""
    shallow = replace(PLAIN, rate_bits_per_sec=25e6, buffer_bytes=12_000)
    found = fitted(shallow, load("cubic"))
    kept = {one.path for one in found.tried if one.explanation == found.explanation}
    kept -= {found.path.faster(times) for times in (2.0, 6.0)} | {found.path.deeper(times) for times in (2.0, 6.0)}
    likely = [one.path for one in found.tried if one.path in kept and one.score < found.best.score + 8]
    values = sorted((one.rate_bits_per_sec, one.buffer_bytes) for one in likely)
    assert len(values) >= 2
    for (rate, buffer), (next_rate, next_buffer) in itertools.pairwise(values):
        assert next_rate > 1.06 * rate or abs(np.log(next_buffer / buffer)) > 0.25


def test_a_search_that_began_far_off_finds_its_way() -> None:
    """Losses keep the connection at an eighth of the rate, where every begin of the search is."""
    far = Path(22.7e6, 80_230, 262_000, loss_pct=0.361)
    found = fit(recording(far, load("cubic", seconds=8.0)))
    (series,) = found.observed.connections
    assert measured(series)["goodput_bits_per_sec"] < 0.4 * far.rate_bits_per_sec
    assert found.explanation == "random loss"
    assert found.path.rate_bits_per_sec == pytest.approx(far.rate_bits_per_sec, rel=0.1)


def test_what_begins_far_behind_is_searched_where_nothing_fits_well() -> None:
    """Losses keep the connection far below its rate. Where the search begins, a policer is nearer by 900."""
    far = Path(200e6, 100_000, 2.5e6, loss_pct=1.5)
    found = fit(recording(far, load("reno", seconds=20.0)))
    (series,) = found.observed.connections
    assert measured(series)["goodput_bits_per_sec"] < 0.05 * far.rate_bits_per_sec
    assert found.explanation == "random loss"
    assert found.path.rate_bits_per_sec == pytest.approx(far.rate_bits_per_sec, rel=0.5)


def test_a_search_may_wander_beyond_what_a_scenario_takes() -> None:
    beyond = Path(
        9e13,
        40_000,
        40_000,
        policer_rate_bits_per_sec=9e13,
        policer_burst_bytes=2e9,
        aggregate_us=2e6,
        hidden_load_bits_per_sec=1e6,
    )
    (series,) = simulate(beyond, load("cubic", seconds=10.0))
    assert isinstance(series, Series) and series.acked > 0


def test_a_connection_that_was_cut_off_is_fitted() -> None:
    """Nothing is delivered after a third of the time: a policer's rate, read from the rest, would be none."""
    observed = recording(replace(PLAIN, loss_pct=1.0), load("cubic"))
    (series,) = observed.connections
    end = len(series.t_us) // 3
    stuck = {
        name: np.r_[values[:end], np.full(len(values) - end, values[end])]
        for name, values in vars(series).items()
        if isinstance(values, np.ndarray) and name not in ("t_us", "busy_us")
    }
    assert stuck["total_retrans"][-1] >= 5
    found = fit(replace(observed, connections=(replace(series, **stuck),)))
    assert np.isfinite(found.best.score)


def test_a_search_simulates_the_begin_of_what_carried_much(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = recording(PLAIN, load("cubic"))
    (series,) = observed.connections
    monkeypatch.setattr(f"{fit.__module__}._MOST_SEGMENTS", series.segments * 0.6)
    found = fit(observed)
    (seen,) = found.trial.observed.connections
    assert seen.segments == pytest.approx(0.6 * series.segments, rel=0.05)
    assert found.path.rate_bits_per_sec == pytest.approx(8e6, rel=0.03)
    assert found.observed is observed and found.load.duration_us == pytest.approx(observed.horizon_us)


def test_of_a_path_the_begin_is_kept_with_who_says_something_until_then() -> None:
    pair = recording(PLAIN, load("cubic", "cubic", starts=(0.0, 4e6)))
    first, second = pair.connections
    assert pair.beginning(first.segments + second.segments) is pair
    (kept,) = pair.beginning(first.segments / 2).connections
    assert kept.key == first.key and kept.segments == pytest.approx(first.segments / 2, rel=0.05)
    # However few segments: some samples.
    assert len(pair.beginning(1).connections[0].t_us) >= 24


def test_a_policer_that_was_met_is_recovered() -> None:
    policed = Path(20e6, 30_000, 75_000, policer_rate_bits_per_sec=4e6, policer_burst_bytes=100_000)
    found = fitted(policed, load("cubic"))
    assert found.explanation == "policer"
    assert found.path.policer_rate_bits_per_sec == pytest.approx(4e6, rel=0.08)


def test_bursts_are_told_from_a_longer_path() -> None:
    found = fitted(replace(PLAIN, aggregate_us=8_000), load("cubic"))
    assert found.explanation == "bursts"
    assert 2_000 < found.path.aggregate_us < 16_000
    assert found.path.rate_bits_per_sec == pytest.approx(8e6, rel=0.05)


def test_a_plain_queue_that_fits_does_not_hide_bursts_that_fit_as_well() -> None:
    """On a slow link, bursts of one or two packets look like a longer path, and bbr1 keeps another queue on them."""
    slow = Path(2.8e6, 66_000, 43_700, aggregate_us=6_500)
    assert "bursts" in judged(fitted(slow, load("cubic", seconds=8.0))).names


def test_two_connections_of_a_path_share_its_bottleneck() -> None:
    found = fitted(PLAIN, load("cubic", "cubic"))
    assert found.path.rate_bits_per_sec == pytest.approx(8e6, rel=0.05)
    assert len(found.load.flows) == 2


def test_what_was_under_way_is_simulated_from_before() -> None:
    whole = recording(PLAIN, load("cubic"))
    (series,) = whole.connections
    cut = {name: getattr(series, name)[20:] for name in vars(series) if isinstance(getattr(series, name), np.ndarray)}
    late = replace(series, **{**cut, "t_us": cut["t_us"] - cut["t_us"][0]}, fresh=False)
    found = load_of(Observed("late", (late,), whole.interval_us))
    assert found.lead_us == 2e6
    (again,) = simulate(PLAIN, found)
    assert isinstance(again, Series) and not again.fresh
    assert again.t_us[0] >= 0
    assert measured(again)["goodput_bits_per_sec"] == pytest.approx(measured(late)["goodput_bits_per_sec"], rel=0.05)


def test_a_connection_that_was_held_back_is_held_to_its_rate() -> None:
    (flow,) = load_of(held_back()).flows
    (rate,) = (line for line in flow.workload.splitlines() if "max_pacing_rate" in line)
    assert float(rate.split('"')[1].removesuffix("bit/s")) == pytest.approx(2e6, rel=0.1)


@pytest.mark.parametrize("algorithm", ["cubic", "bbr1"])
def test_answers_with_pauses_between_are_simulated_as_large_and_as_far_apart(algorithm: str) -> None:
    """What lies in the socket's buffer when the application pauses is sent afterwards: it was busy for longer."""
    observed = recording(
        PLAIN, load(algorithm, workload='workload = "on-off"\non = "300ms"\noff = "900ms"', seconds=9.0)
    )
    (series,) = observed.connections
    # Idle samples, which a recorder of all sockets has, are those of an application with nothing to send.
    idle = np.diff(series.busy_us, prepend=0) < np.diff(series.t_us, prepend=-1) / 2
    series = replace(series, app_limited=np.where(idle, 1.0, series.app_limited))
    assert not is_held_back(series)
    (again,) = simulate(PLAIN, load_of(replace(observed, connections=(series,))))
    assert isinstance(again, Series)
    assert again.acked == pytest.approx(series.acked, rel=0.1)
    assert again.busy_share == pytest.approx(series.busy_share, rel=0.1)
    before, after = (measured(one) for one in (series, again))
    assert after["goodput_bits_per_sec"] == pytest.approx(before["goodput_bits_per_sec"], rel=0.05)
    assert after["srtt_us_p95"] == pytest.approx(before["srtt_us_p95"], rel=0.1)


@pytest.mark.parametrize("every_sample", [False, True])
def test_answers_that_are_shorter_than_a_sample_are_counted(every_sample: bool) -> None:
    """20 answers of 60 kB, 5 ms each. A recorder of all sockets has a sample of them where nothing changed, too."""
    fast = Path(100e6, 5_000, 60_000)
    answers = 'workload = "request-response"\nresponse = "60kB"\nservice_time = "245ms"'
    observed = recording(fast, load("cubic", workload=answers))
    (series,) = observed.connections
    if every_sample:
        at = np.arange(0.0, series.t_us[-1], 100_000)
        kept = np.searchsorted(series.t_us, at, side="right") - 1
        arrays = {name: value[kept] for name, value in vars(series).items() if isinstance(value, np.ndarray)}
        series = replace(series, **{**arrays, "t_us": at})
    (flow,) = load_of(replace(observed, connections=(series,))).flows
    (size,) = re.findall(r'response = "(\d+)B"', flow.workload)
    assert float(size) == pytest.approx(60_000, rel=0.15)


def test_a_score_is_best_for_what_was_recorded_and_chance_is_compared_less_strictly() -> None:
    wanted = Features(recording(PLAIN, load("cubic")).connections, 100_000)
    other = Features(recording(replace(PLAIN, rate_bits_per_sec=6e6), load("cubic")).connections, 100_000)
    none, some = np.zeros(len(wanted.values)), np.full(len(wanted.values), 0.2)
    assert likeness(wanted, wanted.values, none) == (0, 0)
    apart, cost = likeness(wanted, other.values, none)
    assert apart > 50 and cost == 0
    nearer, costs = likeness(wanted, other.values, some)
    assert 0 < nearer < apart and costs > 0


def test_of_a_path_that_many_share_those_that_sent_most_are_compared() -> None:
    many = recording(PLAIN, load(*["cubic"] * 14, starts=[0.1e6 * number for number in range(14)]))
    compared = sorted(many.telling)
    assert len(compared) == observation.MOST_COMPARED
    others = set(range(14)) - many.telling
    assert max(many.connections[place].segments for place in others) <= min(
        many.connections[place].segments for place in compared
    )
    trial = Trial(many, load_of(many))
    assert len(trial.wanted.parts["goodput"]) == observation.MOST_COMPARED
    goodputs = Features([many.connections[place] for place in compared], many.interval_us).parts["goodput"]
    assert np.array_equal(trial.wanted.parts["goodput"], goodputs)
    # What all delivered together is compared nevertheless.
    assert np.array_equal(trial.wanted.parts["top_rate"], Features(many.connections, 100_000).parts["top_rate"])
    # Another one need not get through.
    (last, *_) = others
    late = replace(trial.load.flows[last], start_us=trial.load.duration_us - 1000)
    flows = tuple(late if place == last else flow for place, flow in enumerate(trial.load.flows))
    hindered = Trial(many, replace(trial.load, flows=flows))
    assert isinstance(simulate(PLAIN, hindered.load)[last], Starved) and hindered.features(PLAIN) is not None


@pytest.fixture
def simulations(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The paths that a search simulates, as it does."""
    every: list[Path] = []

    def counted(path: Path, *arguments: Any, **keywords: Any) -> list[Series | Starved]:
        every.append(path)
        return simulate(path, *arguments, **keywords)

    monkeypatch.setattr(f"{Trial.__module__}.simulate", counted)
    return every


def test_a_search_simulates_some_hundred_times(simulations: list[Path]) -> None:
    """Of a recording that several explanations are searched for."""
    observed = recording(Path(9e6, 11_000, 23_000, aggregate_us=4_200), load("cubic", seconds=8.0))
    found = fit(observed)
    assert found.explanation == "bursts" and found.misfit < 1.0
    assert {one.explanation for one in found.tried} >= {"bursts", "queue"}
    assert 100 < len(simulations) < 300


def test_what_costs_more_than_the_best_score_is_not_searched(simulations: list[Path]) -> None:
    found = fit(recording(PLAIN, load("cubic")))
    assert {one.explanation for one in found.tried} == {"queue"}
    assert len(simulations) < 40
    queue, *others = explanations(found.observed)
    assert queue.may_be_better(found.best.score + 1.6) and not any(
        one.may_be_better(found.best.score) for one in others
    )


def test_what_stays_far_behind_is_given_up_and_a_rehearsal_searches_for_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rehearsal that knew what the recording has ruled out would be surer than the fit was."""
    searched: list[str] = []

    def seen(one: Any, *arguments: Any) -> None:
        searched.append(one.explanation.name)
        search(one, *arguments)

    search = whatif_fit._search
    monkeypatch.setattr(whatif_fit, "_search", seen)
    policed = Path(20e6, 30_000, 75_000, policer_rate_bits_per_sec=4e6, policer_burst_bytes=100_000)
    found = fit(recording(policed, load("cubic")))
    assert found.explanation == "policer" and {"queue", "cross traffic"} <= set(searched)
    assert not {one.explanation for one in found.tried} & {"queue", "cross traffic"}
    searched.clear()
    outcomes([judged(found)], ["bbr1"], [100.0], seed=1, on_all=lambda _, what, items: [what(one) for one in items])
    assert {"queue", "cross traffic"} <= set(searched)


def test_a_surrogate_finds_the_best_point_within_its_radius() -> None:
    """Of features that are linear in two values, with an optimum at (1.5, -1)."""
    rng = np.random.default_rng(1)
    slopes, best = rng.standard_normal((2, 12)), np.array([1.5, -1.0])
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    rows = (points - best) @ slopes

    def scores(every: np.ndarray) -> np.ndarray:
        return np.sum(every**2, axis=-1)

    point, gain = proposed(points, rows, 4.0, scores)
    assert point == pytest.approx(best, abs=0.15)
    assert gain == pytest.approx(scores(rows[0]), rel=0.05)
    near, less = proposed(points, rows, 0.5, scores)
    assert np.linalg.norm(near) == pytest.approx(0.5, abs=0.02) and 0 < less < gain


def test_percentiles_are_those_of_numpy() -> None:
    rng = np.random.default_rng(1)
    for count in (1, 2, 3, 8, 37):
        values, pcts = rng.integers(0, 1000, count).astype(float), (0, 10, 20, 50, 95, 100)
        assert np.array_equal(percentiles(values, pcts), np.percentile(values, pcts))
