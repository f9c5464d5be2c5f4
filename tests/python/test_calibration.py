"""A calibration without its measurement: rounds put together, costs fitted, what a busy machine is told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import tcpknee
from tcpknee.calibration import profile
from tcpknee.calibration.calibrate import Calibration, Checked, refuse_busy
from tcpknee.calibration.fit import Cost, Measured, fit
from tcpknee.calibration.measuring import Predicted
from tcpknee.calibration.micro import CALIBRATED, DIFFERS, HELD_BACK, Micro, requests
from tcpknee.calibration.rounds import even_out, levels
from tcpknee.cli.calibrate import _not_seen
from tcpknee.errors import EngineError

COUNTS = {"a": {"send_ns": 2.0, "copy_ns": 10.0}, "b": {"send_ns": 2.0, "copy_ns": 1_000.0}}
"""How often two runs do two operations."""


def micro(name: str) -> Micro:
    return Micro(name, "cubic", "", "request")


def predict(of: Micro, costs: Mapping[str, float]) -> Predicted:
    spent = {name: count * costs[name] for name, count in COUNTS[of.name].items()}
    return Predicted(sum(spent.values()), spent)


def test_what_a_round_was_slower_as_a_whole_is_taken_off() -> None:
    true = {"a": 100.0, "b": 2_000.0, "c": 30.0}
    rounds = [{name: ns * slower for name, ns in true.items()} for slower in (1.0, 1.3, 0.8)]
    for name, logs in even_out(rounds).items():
        assert [math.exp(log) for log in logs] == pytest.approx([true[name]] * 3)


def test_a_round_in_which_something_else_ran_does_not_move_a_runs_level() -> None:
    (level, _) = levels({"a": [10.0, 10.02, 10.9, 10.01, 9.99], "b": [5.0, 5.03, 5.01, 4.98, 5.02]})["a"]
    assert level == pytest.approx(10.01)


def test_rounds_that_are_near_each_other_by_chance_make_no_run_certain() -> None:
    wide = {name: [5.0, 5.1, 4.9, 5.2, 4.8] for name in ("a", "b", "c")}
    found = levels({**wide, "lucky": [5.0, 5.0, 5.0, 5.0, 5.0]})
    assert 0.4 * found["a"][1] < found["lucky"][1] < found["a"][1]


def test_a_levels_interval_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    for rounds in (5, 8):
        logs = {str(run): rng.normal(0.0, 0.1, rounds).tolist() for run in range(4_000)}
        inside = [abs(level) < 1.96 * error for level, error in levels(logs).values()]
        assert 0.93 < sum(inside) / len(inside) < 0.97


def test_costs_are_found_that_the_runs_tell_apart() -> None:
    true = {"send_ns": 700.0, "copy_ns": 0.5}
    runs = [Measured(micro(name), math.log(predict(micro(name), true).ns), 0.001) for name in COUNTS for _ in range(5)]
    found = fit(runs, {"send_ns": 400.0, "copy_ns": 1.0, "none_ns": 0.0}, predict)
    for name, ns in true.items():
        assert found[name].ns == pytest.approx(ns, rel=0.05)
        assert found[name].low < ns < found[name].high and found[name].told > 0.8
    assert found["none_ns"] == Cost(0.0, 0.0, 0.0, 0.0)


def test_a_run_in_which_the_model_does_something_else_does_not_outvote_the_others() -> None:
    true = {"send_ns": 700.0, "copy_ns": 0.5}
    runs = [Measured(micro(name), math.log(predict(micro(name), true).ns), 0.02) for name in COUNTS for _ in range(3)]
    runs.append(Measured(micro("a"), math.log(3 * predict(micro("a"), true).ns), 0.001))
    found = fit(runs, {"send_ns": 400.0, "copy_ns": 1.0}, predict)
    for name, ns in true.items():
        assert found[name].ns == pytest.approx(ns, rel=0.15)


def test_a_cost_far_from_the_prior_is_found_though_few_runs_say_so() -> None:
    true = {"send_ns": 500.0, "copy_ns": 1.0, "idle_exit_ns": 40_000.0}

    def with_idling(of: Micro, costs: Mapping[str, float]) -> Predicted:
        counts = {**COUNTS.get(of.name, {"send_ns": 50.0, "copy_ns": 10.0}), "idle_exit_ns": 2.0 * (of.name == "c")}
        spent = {name: count * costs[name] for name, count in counts.items()}
        return Predicted(sum(spent.values()), spent)

    runs = [
        Measured(micro(name), math.log(with_idling(micro(name), true).ns), 0.06)
        for name in ("a", "a", "b", "b", "c", "c")
    ]
    found = fit(runs, {"send_ns": 400.0, "copy_ns": 1.0, "idle_exit_ns": 1_000.0}, with_idling)
    assert found["idle_exit_ns"].ns == pytest.approx(true["idle_exit_ns"], rel=0.1)
    assert found["send_ns"].ns == pytest.approx(true["send_ns"], rel=0.1)


def test_runs_that_are_split_and_merged_are_calibrated_and_held_back() -> None:
    for runs in (CALIBRATED, HELD_BACK):
        split = [run for run in runs if run.split]
        assert {run.per for run in split} == {"request", "byte"}
        assert all('super_packets = "split"' in run.text() and "gro = true" in run.text() for run in split)


def test_an_operation_that_no_run_does_keeps_its_cost_and_nothing_is_told_of_it() -> None:
    def with_another(of: Micro, costs: Mapping[str, float]) -> Predicted:
        found = predict(of, costs)
        return Predicted(found.ns, {**found.by_operation, "fq_ns": 0.0})

    runs = [Measured(micro(name), math.log(1_500.0), 0.01) for name in COUNTS]
    found = fit(runs, {"send_ns": 400.0, "copy_ns": 1.0, "fq_ns": 80.0}, with_another)["fq_ns"]
    assert found.ns == pytest.approx(80.0) and found.told == pytest.approx(0.0, abs=1e-6)


def test_a_single_round_is_refused_as_nothing_says_how_far_rounds_are_apart() -> None:
    with pytest.raises(EngineError, match="got one round; expected two or more"):
        fit([Measured(micro("a"), 5.0, math.inf)], {"send_ns": 1.0, "copy_ns": 1.0}, predict)


def test_an_error_within_the_measurements_interval_is_none_beyond_it() -> None:
    measured = Measured(micro("a"), math.log(100.0), 0.05)
    low, high = measured.interval
    assert Checked(measured, (low + high) / 2).beyond == 0.0
    assert Checked(measured, high + 10).beyond == pytest.approx(0.1)
    assert Checked(measured, 120.0).error == pytest.approx(0.2)


def test_a_busy_machine_is_refused_unless_it_is_asked_for() -> None:
    refuse_busy(0.05, anyway=False)
    refuse_busy(0.5, anyway=True)
    with pytest.raises(EngineError, match="busy for 50% of the time; expected 10% at most"):
        refuse_busy(0.5, anyway=False)


def test_no_run_that_is_held_back_is_fitted_to() -> None:
    texts = [one.text() for one in (*CALIBRATED, *HELD_BACK, *DIFFERS)]
    assert len(texts) == len(set(texts))


def test_a_cost_that_no_run_sees_is_said_to_be_the_priors() -> None:
    seen, unseen = Cost(10.0, 5.0, 20.0, 0.4), Cost(110.0, 30.0, 400.0, 0.01)
    costs = {"send_call_ns": seen, "timer_arm_ns": unseen, "ipi_ns": Cost(0.0, 0.0, 0.0, 0.0)}
    text = profile.written(costs, title="t", kernel="k", machine="m", how="fitted", prior="published-vm")
    send, timer = (line for line in text.splitlines() if line.startswith(("send_call_ns", "timer_arm_ns")))
    assert "took 40% of the uncertainty" in send
    assert (
        "not seen by the runs of knee calibrate: a cost of the profile published-vm" in timer and "fitted" not in timer
    )
    found = Calibration(costs, [], [], [], 5, 1.0, 0.0)
    assert _not_seen(found) == ["timer_arm_ns"]


def test_a_written_profile_is_one_that_scenarios_can_name(tmp_path: Path) -> None:
    costs = {name: Cost(ns, ns / 2, ns * 2, 0.5) for name, ns in profile.shipped("published").items() if ns}
    costs |= {name: Cost(0.0, 0.0, 0.0, 0.0) for name in profile.shipped("published") if name not in costs}
    text = profile.written(costs, title='a "host"\n[costs]', kernel="6.18", machine="m", how="by a test", prior="p")
    profile.keep(tmp_path / "host.toml", text)
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(requests(64).text(costs="file host.toml"))
    (flow,) = tcpknee.run(scenario).flows.arrow().to_pylist()
    assert flow["requests"] > 1_000
