"""Environments for learners (docs/gym.md)."""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcpknee
from tcpknee.errors import TcpkneeError, UsageError

gymnasium = pytest.importorskip("gymnasium", reason="not installed: gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from tcpknee.gym import CONTROLS, FIELDS, REWARDS, CongestionEnv, CongestionVectorEnv  # noqa: E402

PATH = """\
duration = "4s"
sample_interval = "10ms"
[path]
rate = "10Mbit/s"
rtt = "40ms"
buffer = "1bdp"
{more}
[[flow]]
algorithm = "reno"
"""
CLEAN = PATH.format(more="")
LOSSY = PATH.format(more='loss = "1%"')


def episode(env: CongestionEnv, seed: int, draws: int = 0) -> Iterator[tuple[Any, float, bool, bool, dict[str, Any]]]:
    """All steps of an episode, whose actions are drawn."""
    rng = np.random.default_rng(draws)
    env.reset(seed=seed)
    low, high = env.action_space.low, env.action_space.high
    ended = False
    while not ended:
        step = env.step(rng.uniform(low, high).astype(np.float32))
        ended = step[2] or step[3]
        yield step


@pytest.mark.parametrize("decide", ["ack", "round", "20ms"])
@pytest.mark.parametrize("actions", [["snd_cwnd"], ["pacing_rate_factor"], ["snd_cwnd_factor", "pacing_rate_factor"]])
@pytest.mark.parametrize("scaled", [False, True])
def test_the_checker_of_gymnasium_finds_nothing(decide: str, actions: list[str], scaled: bool) -> None:
    names = [field["name"] for field in FIELDS]
    env = CongestionEnv(LOSSY, decide=decide, actions=actions, observations=names, scaled=scaled)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if not scaled:
            warnings.filterwarnings("ignore", message=".*symmetric and normalized space")
        check_env(env, skip_render_check=True)


def test_gymnasium_makes_one_by_name() -> None:
    env = gymnasium.make("tcpknee/Congestion-v0", scenario=CLEAN, decide="round")
    env.reset(seed=1)
    assert env.step(np.array([1.0], dtype=np.float32))[0].shape == (9,)


@pytest.mark.parametrize("decide", ["ack", "round", "20ms"])
def test_the_same_seed_and_actions_give_the_same_bytes_and_another_seed_others(decide: str) -> None:
    def seen(seed: int) -> list[bytes]:
        env = CongestionEnv(LOSSY, decide=decide, observations=[field["name"] for field in FIELDS])
        told = [(step[0].tobytes(), step[1], repr(step[4])) for step in episode(env, seed)]
        return [repr(one).encode() for one in told]

    assert seen(5) == seen(5)
    assert seen(5) != seen(6)


def test_every_field_stays_within_its_bounds() -> None:
    names = [field["name"] for field in FIELDS]
    for actions in (["snd_cwnd_factor"], ["pacing_rate_factor"]):
        env = CongestionEnv(LOSSY, decide="ack", observations=names, actions=actions)
        steps = list(episode(env, 1))
        assert len(steps) > 500
        assert all(env.observation_space.contains(seen) for seen, *_ in steps)
        moved = np.ptp(np.array([seen for seen, *_ in steps]), axis=0) > 0
        # A bulk sender is not limited by its application, nothing is marked, and the first RTT is the least.
        still = {"step_delivered_ce", "min_rtt_us"} | {name for name in names if "app_limited" in name}
        assert {name for name, has_moved in zip(names, moved, strict=True) if not has_moved} <= still


class Reno:
    """Reno's rules, and proportional rate reduction (RFC 6937 as Linux has it), by what an agent sees."""

    SEEN = (
        "snd_cwnd",
        "snd_ssthresh",
        "prior_cwnd",
        "in_flight",
        "max_packets_out",
        "is_cwnd_limited",
        "ca_state",
        "rs_acked_sacked",
        "rs_losses",
        "step_una_advanced",
        "step_sent",
    )

    def __init__(self) -> None:
        self.credit = self.delivered = self.out = 0
        self.reduces = False

    def window(self, seen: Any) -> int:
        s = {name: int(value) for name, value in zip(self.SEEN, seen, strict=True)}
        cwnd, reduced = s["snd_cwnd"], self.reduces
        self.reduces = s["ca_state"] in (2, 3)
        if self.reduces:
            if not reduced:
                self.credit = self.delivered = self.out = 0
            else:
                self.out += s["step_sent"]
            return self.reduced(s) if s["rs_acked_sacked"] else cwnd
        if reduced:
            cwnd = s["snd_ssthresh"]
        return self.grown(cwnd, s) if s["step_una_advanced"] else cwnd

    def reduced(self, s: dict[str, int]) -> int:
        self.delivered += s["rs_acked_sacked"]
        room = s["snd_ssthresh"] - s["in_flight"]
        if room < 0:
            send = -(-s["snd_ssthresh"] * self.delivered // s["prior_cwnd"]) - self.out
        else:
            may_grow = s["step_una_advanced"] and not s["rs_losses"]
            send = min(max(self.delivered - self.out, s["rs_acked_sacked"]) + may_grow, room)
        return max(s["in_flight"] + max(send, self.out == 0), 1)

    def grown(self, cwnd: int, s: dict[str, int]) -> int:
        slow, acked = cwnd < s["snd_ssthresh"], s["rs_acked_sacked"]
        if not (s["is_cwnd_limited"] or (slow and cwnd < 2 * s["max_packets_out"])):
            return cwnd
        if slow:
            before, cwnd = cwnd, min(cwnd + acked, s["snd_ssthresh"])
            acked -= cwnd - before
            if not acked:
                return cwnd
        width = cwnd
        if self.credit >= width:
            self.credit, cwnd = 0, cwnd + 1
        self.credit += acked
        cwnd, self.credit = cwnd + self.credit // width, self.credit % width
        return cwnd


@pytest.mark.parametrize("buffer", ["1bdp", "10packets"])
@pytest.mark.parametrize("more", ['queue = "fifo"', 'ack_loss = "10%"'])
def test_an_agent_that_plays_reno_has_the_windows_of_reno_at_every_sample(more: str, buffer: str) -> None:
    text = PATH.format(more=more).replace("4s", "20s").replace("1bdp", buffer)
    samples = tcpknee.run(text).samples
    env = CongestionEnv(text, decide="ack", observations=Reno.SEEN, actions={"snd_cwnd": (1, 1e6)})
    reno, cwnd = Reno(), 10
    times, windows, ended = [0.0], [10], False
    seen, info = env.reset(seed=1)
    while not ended:
        seen, _, terminated, ended, info = env.step(np.array([cwnd], dtype=np.float32))
        assert not terminated
        if not ended:
            cwnd = reno.window(seen)
            times.append(info["time_s"])
            windows.append(cwnd)
    at = np.array(samples["t_ns"]) / 1e9
    expected = np.array(windows)[np.searchsorted(times, at - 1e-9, side="right") - 1]
    opened = at > times[1]
    assert np.array(samples["total_retrans"])[-1] > 5 and opened.sum() > 1_900
    np.testing.assert_array_equal(np.array(samples["snd_cwnd"])[opened], expected[opened])


def test_decisions_come_at_the_times_asked_for() -> None:
    env = CongestionEnv(CLEAN, decide="20ms", observations=["step_us"])
    steps = [seen[0] for seen, *_ in episode(env, 1)]
    assert set(steps[:-1]) == {20_000.0} and 0 < steps[-1] <= 20_000
    rounds = CongestionEnv(CLEAN, decide="round", observations=["step_us", "srtt_us"], actions={"snd_cwnd": (20, 21)})
    taken = np.array([seen for seen, *_ in episode(rounds, 1)])[5:-1]
    assert np.all(np.abs(taken[:, 0] / taken[:, 1] - 1) < 0.1)


def test_a_pacing_rate_is_kept_and_a_factor_multiplies_it() -> None:
    observed = ["pacing_rate_bits_per_sec", "snd_cwnd", "srtt_us"]
    env = CongestionEnv(CLEAN, decide="round", observations=observed, actions=["pacing_rate_bits_per_sec"])
    env.reset(seed=1)
    for _ in range(60):
        seen, _, _, _, info = env.step(np.array([4e6], dtype=np.float32))
    # Of 1500 bytes 1448 are payload.
    assert seen[0] == 4e6 and info["goodput_bits_per_sec"] == pytest.approx(4e6, rel=0.05)
    assert seen[1] == np.ceil(2 * 5e5 * seen[2] / 1e6 / 1448)
    env = CongestionEnv(CLEAN, decide="round", observations=observed, actions=["pacing_rate_factor"])
    before, _ = env.reset(seed=1)
    for _ in range(3):
        seen, *_ = env.step(np.array([1.5], dtype=np.float32))
        assert seen[0] == pytest.approx(before[0] * 1.5, rel=1e-6)
        before = seen


def test_small_factors_add_up() -> None:
    env = CongestionEnv(CLEAN, decide="round", observations=["snd_cwnd"])
    env.reset(seed=1)
    windows = [int(env.step(np.array([1.04], dtype=np.float32))[0][0]) for _ in range(10)]
    assert windows == [int(10 * 1.04**n + 1e-6) for n in range(1, 11)]


def test_what_lies_outside_counts_as_the_bound() -> None:
    env = CongestionEnv(CLEAN, decide="round", observations=["snd_cwnd"], actions={"snd_cwnd": (5, 50)})
    env.reset(seed=1)
    assert [int(env.step([value])[0][0]) for value in (1_000, -3)] == [50, 5]


def test_scaled_actions_are_logarithms_between_the_bounds() -> None:
    env = CongestionEnv(CLEAN, observations=["snd_cwnd"], actions={"snd_cwnd": (1, 10_000)}, scaled=True)
    env.reset(seed=1)
    seen = [env.step([action])[0][0] for action in (-1, -0.5, 0, 0.5, 7)]
    windows = np.expm1(np.array(seen) * np.log1p(2**32 - 1))
    np.testing.assert_allclose(windows, [1, 10, 100, 1_000, 10_000], rtol=1e-4)


def rewards(name: str, text: str) -> list[tuple[Any, float, dict[str, Any]]]:
    env = CongestionEnv(
        text, decide="50ms", observations=["step_rtt_us_mean", "step_lost", "step_delivered"], reward=name
    )
    steps = [(seen, reward, info) for seen, reward, _, _, info in episode(env, 3)]
    # Of a step without an RTT the smoothed one counts, which is not seen here.
    return [step for step in steps[2:-1] if step[0][0] > 0]


COMPETED = CLEAN + '[[flow]]\nalgorithm = "cubic"\ncount = 2\n'


def test_rewards_are_what_their_formulas_say() -> None:
    def share(info: dict[str, Any]) -> float:
        return float(info["goodput_bits_per_sec"] / info["capacity_bits_per_sec"])

    def loss(seen: Any) -> float:
        return float(seen[1] / max(seen[1] + seen[2], 1))

    def log_power(seen: Any, info: dict[str, Any]) -> float:
        return float(np.log(max(share(info), 1e-3)) - np.log(max(seen[0] / info["base_rtt_us"], 1)))

    def delay_loss(seen: Any, info: dict[str, Any]) -> float:
        return share(info) - 0.5 * max(seen[0] / info["base_rtt_us"] - 1, 0) - 10 * loss(seen)

    def harm(seen: Any, info: dict[str, Any]) -> float:
        fair = info["capacity_bits_per_sec"] * 2 / 3
        return share(info) - 2 * max(0.0, 1 - info["others_goodput_bits_per_sec"] / fair)

    formulas = {
        "goodput": lambda seen, info: share(info),
        "goodput-delay-loss": delay_loss,
        "power": lambda seen, info: share(info) * info["base_rtt_us"] / seen[0],
        "log-power": log_power,
        "aurora": lambda seen, info: seen[2] / 0.05 * 10 - 1000 * seen[0] / 1e6 - 2000 * loss(seen),
        "harm": harm,
    }
    assert set(formulas) == {reward["name"] for reward in REWARDS} - {"vivace"}
    for name, formula in formulas.items():
        for seen, reward, info in rewards(name, COMPETED):
            assert reward == pytest.approx(formula(seen, info), rel=1e-4, abs=1e-4), name


def test_vivace_pays_for_a_rate_and_charges_for_a_growing_rtt() -> None:
    steps = rewards("vivace", CLEAN)
    compared = 0
    for (before, _, earlier), (seen, reward, info) in pairwise(steps):
        x = info["goodput_bits_per_sec"] / 1e6
        slope = max(0.0, (seen[0] - before[0]) / 1e6 / 0.05)
        lost = seen[1] / max(seen[1] + seen[2], 1)
        if info["time_s"] - earlier["time_s"] < 0.06:
            compared += 1
            assert reward == pytest.approx(x**0.9 - 900 * x * slope - 11.35 * x * lost, rel=1e-3, abs=1e-2)
    assert compared > 30


def test_the_truth_is_the_paths() -> None:
    env = CongestionEnv(CLEAN, decide="100ms", actions={"snd_cwnd": (1, 1_000)})
    env.reset(seed=1)
    for _ in range(20):
        _, _, _, _, info = env.step([60])
    # Of 60 segments the path holds 33, one is being sent, and two at most wait for their ACK. The rest waits.
    assert info["capacity_bits_per_sec"] == pytest.approx(10e6, rel=1e-3)
    assert info["base_rtt_us"] == 40_000
    assert 24 * 1500 <= info["queue_bytes"] <= 26 * 1500
    assert info["queue_delay_us"] == pytest.approx(info["queue_bytes"] * 8 / 10, rel=0.05)
    assert info["time_s"] == pytest.approx(2.04, abs=0.01)
    assert info["goodput_bits_per_sec"] == pytest.approx(10e6 * 1448 / 1500, rel=0.02)


def test_a_transfer_ends_its_episode_when_it_is_complete() -> None:
    text = CLEAN + 'workload = "transfer"\nbytes = "1MB"\n'
    steps = list(episode(CongestionEnv(text, actions={"snd_cwnd": (20, 30)}), 1))
    assert steps[-1][2:4] == (True, False) and steps[-1][4]["time_s"] < 3
    steps = list(episode(CongestionEnv(CLEAN), 1))
    assert steps[-1][2:4] == (False, True) and steps[-1][4]["time_s"] == 4


def test_each_episode_draws_a_cell_unless_one_is_named() -> None:
    env = CongestionEnv(CLEAN.replace('"40ms"', '["40ms", "20ms", "80ms"]'))
    base_ms = [env.reset(seed=seed)[1]["base_rtt_us"] / 1_000 for seed in range(30)]
    assert set(base_ms) == {20, 40, 80}
    assert env.reset(seed=1, options={"cell": 2})[1]["base_rtt_us"] == 80_000
    drawn = [env.reset()[1]["seed"] for _ in range(3)]
    env.reset(seed=1, options={"cell": 2})
    assert [env.reset()[1]["seed"] for _ in range(3)] == drawn and len(set(drawn)) == 3


@pytest.mark.parametrize("threads", [1, 2])
def test_environments_side_by_side_are_each_as_one_alone(threads: int) -> None:
    text = LOSSY.replace("4s", "1s")
    several = CongestionVectorEnv(5, text, threads=threads)
    alone = [CongestionEnv(text) for _ in range(5)]
    seen, infos = several.reset(seed=10)
    begun = [env.reset(seed=10 + place) for place, env in enumerate(alone)]
    assert seen.tobytes() == b"".join(one.tobytes() for one, _ in begun)
    assert infos["seed"].tolist() == [10, 11, 12, 13, 14]
    rng, over, restarts = np.random.default_rng(1), [False] * 5, 0
    for _ in range(120):
        actions = rng.uniform(0.5, 2, (5, 1)).astype(np.float32)
        seen, reward, terminated, truncated, infos = several.step(actions)
        for place, env in enumerate(alone):
            if over[place]:
                one, info = env.reset()
                expected, restarts = (one, 0.0, False, False, info), restarts + 1
                assert infos["seed"][place] == info["seed"] and infos["_seed"][place]
            else:
                expected = env.step(actions[place])
            over[place] = expected[2] or expected[3]
            assert seen[place].tobytes() == expected[0].tobytes()
            assert (reward[place], terminated[place], truncated[place]) == expected[1:4]
            assert infos["queue_bytes"][place] == expected[4]["queue_bytes"]
    assert restarts > 5


def test_memory_does_not_grow_with_the_steps() -> None:
    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    env = CongestionVectorEnv(2, CLEAN.replace("4s", "20s"), decide="ack", threads=1)
    env.reset(seed=1)
    action = np.full((2, 1), 1.0, dtype=np.float32)
    grown = []
    for _ in range(4):
        before = resident_bytes()
        for _ in range(30_000):
            env.step(action)
        grown.append(resident_bytes() - before)
    assert min(grown[1:]) < 200_000, grown


def message(call: Any) -> str:
    with pytest.raises(TcpkneeError) as caught:
        call()
    return str(caught.value)


def test_what_is_wrong_is_said_with_the_nearest_that_is_right() -> None:
    said = message(lambda: CongestionEnv(CLEAN, observations=["srtt_ms"]))
    assert "got 'srtt_ms'" in said and 'Did you mean "srtt_us"?' in said
    said = message(lambda: CongestionEnv(CLEAN, actions=["cwnd"]))
    assert all(control["name"] in said for control in CONTROLS)
    assert 'Did you mean "power"?' in message(lambda: CongestionEnv(CLEAN, reward="powr"))
    assert 'Or "ack", or "round"' in message(lambda: CongestionEnv(CLEAN, decide="acks"))
    assert "above 0" in message(lambda: CongestionEnv(CLEAN, decide="0ms"))
    assert 'Did you mean "reno"?' in message(lambda: CongestionEnv(CLEAN, flow="rno"))
    assert "none of them twice" in message(lambda: CongestionEnv(CLEAN, observations=[]))
    both = {"snd_cwnd": (1, 10), "snd_cwnd_factor": (0.5, 2)}
    assert "one that sets the pacing rate" in message(lambda: CongestionEnv(CLEAN, actions=both))
    assert "the lower first" in message(lambda: CongestionEnv(CLEAN, actions={"snd_cwnd": (10, 1)}))
    assert "got 3 seeds" in message(lambda: CongestionVectorEnv(2, CLEAN).reset(seed=[1, 2, 3]))
    assert "num_envs: got 0" in message(lambda: CongestionVectorEnv(0, CLEAN))
    assert "<text>:" in message(lambda: CongestionEnv(CLEAN + 'nonsense = "1"\n'))


def test_a_scenario_without_a_seat_for_an_agent_is_refused() -> None:
    said = message(CongestionEnv(CLEAN + "count = 2\n").reset)
    assert "2 connections" in said and "expected" in said
    costs = '[sender]\ncosts = "published"\n'
    assert "costs" in message(CongestionEnv(CLEAN.replace("[[flow]]", costs + "[[flow]]")).reset)
    assert "does not open" in message(CongestionEnv(CLEAN + 'start = "3.99s"\n').reset)
    unlimited = CLEAN.replace("10Mbit/s", "unlimited").replace('buffer = "1bdp"\n', "")
    assert "power" in message(CongestionEnv(unlimited).reset)
    CongestionEnv(unlimited, reward="aurora").reset(seed=1)


def test_a_step_that_cannot_be_taken_is_refused() -> None:
    env = CongestionEnv(CLEAN)
    assert "no episode was begun" in message(lambda: env.step([1.0]))
    env.reset(seed=1)
    assert "shape (2,); expected (1,)" in message(lambda: env.step([1.0, 2.0]))
    assert "shape ()" in message(lambda: env.step("up"))
    assert "finite" in message(lambda: env.step([float("nan")]))
    for _ in episode(env, 1):
        pass
    assert "the scenario's duration is over" in message(lambda: env.step([1.0]))
    assert "expected the number of a cell" in message(lambda: env.reset(options={"cell": 1}))
    assert "'cells'" in message(lambda: env.reset(options={"cells": 1}))
    several = CongestionVectorEnv(2, CLEAN)
    several.reset(seed=1)
    with pytest.raises(UsageError, match=re.escape("shape (2,); expected (2, 1)")):
        several.step([1.0, 2.0])


def test_a_reset_that_failed_leaves_nothing_to_step() -> None:
    env, several = CongestionEnv(CLEAN), CongestionVectorEnv(2, CLEAN)
    for one, action in ((env, [1.0]), (several, [[1.0], [1.0]])):
        one.reset(seed=1)
        message(lambda one=one: one.reset(options={"cell": 1}))
        assert "no episode was begun" in message(lambda one=one, action=action: one.step(action))
        one.reset(seed=1)
        one.step(action)


def test_a_seed_is_any_whole_number_of_64_bits() -> None:
    env, several = CongestionEnv(CLEAN), CongestionVectorEnv(2, CLEAN)
    most = (1 << 64) - 1
    assert env.reset(seed=most)[1]["seed"] == most
    assert several.reset(seed=[3, most])[1]["seed"].tolist() == [3, most]
    assert env.reset(seed=np.int64(7))[0].tobytes() == env.reset(seed=7)[0].tobytes()
    assert several.reset(seed=np.uint32(7))[1]["seed"].tolist() == [7, 8]
    assert several.reset(seed=np.array([5, 9]))[1]["seed"].tolist() == [5, 9]
    for seed in (-1, most + 1, 1.5, "1"):
        assert f"seed: got {seed!r}; expected a whole number from 0" in message(lambda seed=seed: env.reset(seed=seed))
    assert "expected a whole number from 0" in message(lambda: several.reset(seed=most))


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_scenario_with_the_algorithm_of_a_file_is_refused(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parents[2] / "cc" / "reno.c", tmp_path / "mine.c")
    (tmp_path / "s.toml").write_text(CLEAN + '[[flow]]\nalgorithm = "./mine.c"\n', encoding="utf-8")
    said = message(lambda: CongestionEnv(tmp_path / "s.toml"))
    assert "got the algorithm of a file, ./mine.c; expected algorithms of ours" in said


def test_the_pages_first_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "gym.md").read_text(encoding="utf-8")
    one, many = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]
    exec(one + many, {})
    assert re.fullmatch(r"[\d.]+ in 4\.0 s, [\d.]+ Mbit/s at last\n", capsys.readouterr().out)


def the_learner_of_the_page() -> tuple[str, str]:
    """The program of docs/gym.md, and what the page says that it prints."""
    page = (Path(__file__).parents[2] / "docs" / "gym.md").read_text(encoding="utf-8")
    program = re.search(r"```python\n(import numpy as np\nimport tcpknee\n.*?)```", page, re.DOTALL)
    printed = re.search(r"It prints:\n\n```text\n(.*?)```", page, re.DOTALL)
    assert program and printed
    return program[1], printed[1]


def test_the_pages_learner_has_60_lines_and_learns(capsys: pytest.CaptureFixture[str]) -> None:
    program, printed = the_learner_of_the_page()
    assert len(program.splitlines()) <= 60
    exec(program.replace("EPISODES = 3000", "EPISODES = 300"), {})
    lines = capsys.readouterr().out.splitlines()
    # What it is judged beside does not learn.
    assert [line.partition("reno")[2] for line in lines] == [line.partition("reno")[2] for line in printed.splitlines()]
    learner, reno = map(float, re.findall(r"([\d.]+) Mbit/s", lines[0]))
    assert learner > 2 * reno


@pytest.mark.long
def test_the_page_shows_what_its_learner_prints(capsys: pytest.CaptureFixture[str]) -> None:
    program, printed = the_learner_of_the_page()
    exec(program, {})
    assert capsys.readouterr().out == printed
