"""Rules by release of Linux: `kernel` in scenarios, `--kernel`, `knee kernel rules`, `knee diff --kernel`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import tcpknee
from support import keep_kernel, knee, refused
from tcpknee import _core
from tcpknee.cli.diff import called
from tcpknee.errors import ScenarioError, UsageError
from tcpknee.runs import engines_text, rules

SCENARIO = """\
duration = "4s"
warmup = "1s"
[path]
rate = "20Mbit/s"
rtt = "20ms"
buffer = "1bdp"
[[flow]]
algorithm = "cubic"
"""


def test_a_release_changes_what_a_simulation_gives() -> None:
    [old, new] = tcpknee.run(SCENARIO, kernel=["3.10", "6.18"]).flows.arrow().to_pylist()
    [plain] = tcpknee.run(SCENARIO).flows.arrow().to_pylist()
    assert {**new, "cell": 0} == plain
    assert old["total_retrans"] != plain["total_retrans"]


def test_a_scenario_with_a_kernel_and_another_beside_it_is_refused() -> None:
    with pytest.raises(UsageError, match="has a key kernel, and --kernel was given"):
        tcpknee.run(f'kernel = "5.10"\n{SCENARIO}', kernel="7.2")


def test_what_is_wrong_with_a_scenario_has_its_own_line() -> None:
    with pytest.raises(ScenarioError, match=r":5: path\.rtt: got "):
        tcpknee.run(SCENARIO.replace('"20ms"', '"20"'), kernel="7.2")


@pytest.mark.parametrize(
    ("engine", "kernel", "said"),
    [
        ("kernel", "6.12", "kernel: got 6.12 with the engine kernel, whose hosts have their own"),
        ("guest", None, "kernel: got none; expected one of `knee kernel list`"),
        ("sim", "mine", "kernel: got mine with the engine sim, which has rules by release"),
    ],
)
def test_an_engine_takes_the_kernels_that_it_can_have(
    engine: str, kernel: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_kernel(tmp_path, "mine")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=said):
        tcpknee.run(SCENARIO, engine=engine, kernel=kernel)


def test_rules_say_what_differs_between_two_releases() -> None:
    found = {one.rule: (one.before, one.after) for one in rules.between("4.15", "5.3")}
    assert found["send_stamps"] == ("handover", "departure")
    assert found["pacing_timer"] == ("every-packet", "when-needed")
    assert found["bbr1.ack_aggregation"] == ("0", "1")
    assert found["bbr1.pace_headers"] == ("1", "0")
    assert "grow_skb" not in found
    assert list(rules.between("5.3", "5.3")) == []


def test_each_rule_that_is_a_key_or_a_parameter_can_be_set_alone() -> None:
    """By a scenario of one release with the rule of another."""
    hosts = "".join(f'[{side}]\ncosts = "published"\n' for side in ("sender", "receiver"))
    flow = '[[flow]]\nalgorithm = ["cubic", "bbr1"]\n'
    text = SCENARIO.partition("[[flow]]")[0].replace("4s", "1100ms").replace('"1s"', '"0s"') + hosts + flow
    run = tcpknee.run(text, kernel="3.10")
    found = {changed.rule: diff for changed, diff in rules.alone(run, "7.2", lambda: None)}  # type: ignore[arg-type,return-value]
    modelled = {rule["rule"] for rule in _core.kernel_rules() if rule["subject"] != "not modelled"}
    # These are at last as they were at first.
    assert {rule for rule, diff in found.items() if diff is not None} == modelled - {
        "tsq_limits_paced",
        "bbr1.pace_headers",
    }
    for rule, diff in found.items():
        assert diff is None or all(one.key.endswith(rule) for one in diff.differing), rule


def test_of_many_comparisons_of_rules_some_are_said_to_differ_by_chance(tmp_path: Path) -> None:
    lossy = "repeat = 3\n" + SCENARIO.replace("[path]\n", '[path]\nloss = "1%"\n')
    (tmp_path / "lossy.toml").write_text(lossy)
    said = knee("diff", "--quiet", "--kernel", "4.15,7.2", "lossy.toml", cwd=tmp_path).out
    of_rules = said.partition("each by itself")[2]
    of, by_chance = map(int, re.search(r"Of (\d+) comparisons at 95 % about (\d+) differ by chance", of_rules).groups())  # type: ignore[union-attr]
    assert of >= 20 and by_chance == round(0.05 * of)
    same = list(rules.lines(iter([]), "4.15", "7.2"))
    assert not any("by chance" in line for line in same)


def test_bbr_without_fq_keeps_a_queue_on_kernels_whose_timer_is_too_fast_for_it() -> None:
    """Linux 4.13 to 4.18: the rate counts headers, TCP's timer the payload."""
    path = '[path]\nrate = "20Mbit/s"\nrtt = "20ms"\nbuffer = "4bdp"\n'
    flow = '[sender]\npacing = ["internal", "fq"]\n[[flow]]\nalgorithm = "bbr1"\n'
    text = f'kernel = ["4.15", "4.19"]\nduration = "12s"\nwarmup = "4s"\nrepeat = 1\n{path}{flow}'
    srtt_us = tcpknee.run(text).flows["srtt_us_p50"].to_pylist()
    (old, old_with_fq), (new, new_with_fq) = srtt_us[:2], srtt_us[2:]
    assert old > 1.5 * new
    assert old_with_fq < 1.1 * new_with_fq


def test_dctcp_keeps_a_longer_queue_on_kernels_whose_reductions_do_not_catch_up() -> None:
    """Linux 5.10.262 and 6.12.117 in virtual time: 42.4 and 26.8 ms behind FQ-CoDel at 50 Mbit/s x 20 ms."""
    path = '[path]\nrate = "50Mbit/s"\nrtt = "20ms"\nqueue = "fq_codel"\nbuffer = "1000packets"\n'
    ends = '[receiver]\nalgorithm = "dctcp"\n[[flow]]\nalgorithm = "dctcp"\n'
    text = f'kernel = ["5.10", "5.15", "6.12"]\nduration = "12s"\nwarmup = "4s"\nrepeat = 1\n{path}{ends}'
    old, middle, new = tcpknee.run(text).flows["srtt_us_p50"].to_pylist()
    assert 38_000 < old < 46_000
    assert 25_000 < middle < 30_000
    assert 25_000 < new < 30_000


def test_a_rule_of_the_host_model_is_not_tried_where_hosts_have_no_costs() -> None:
    run = tcpknee.run(SCENARIO.replace("4s", "1100ms").replace('"1s"', '"0s"'), kernel="6.6")
    found = {changed.rule: diff for changed, diff in rules.alone(run, "6.12", lambda: None)}  # type: ignore[arg-type,return-value]
    assert found["fq_fast_path"] is None
    assert found["grow_skb"] is not None


def test_two_kernels_that_are_one_or_none_are_refused_before_anything_runs(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(SCENARIO)
    refused(knee("diff", "--kernel", "4.15,4.15", str(file), cwd=tmp_path), '--kernel: got "4.15" twice')
    refused(knee("diff", "--kernel", "4.15,nope", str(file), cwd=tmp_path), '--kernel: got "nope"; expected a release')
    assert not (tmp_path / "runs").exists()


def test_the_command_shows_all_rules_one_release_and_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = knee("kernel", "rules", cwd=tmp_path).out
    assert ["4.20", "departure", "ab408b6dc744"] in [line.split() for line in whole.splitlines()]
    one = knee("kernel", "rules", "4.19", cwd=tmp_path).out
    assert "handover" in one and "departure" not in one
    two = knee("kernel", "rules", "4.15", "5.3", cwd=tmp_path).out
    assert "send_stamps" in two and "grow_skb" not in two
    assert len(json.loads(knee("kernel", "rules", "--json", cwd=tmp_path).out)["rules"]) == len(_core.kernel_rules())
    of_two = json.loads(knee("kernel", "rules", "4.15", "5.3", "--json", cwd=tmp_path).out)["rules"]
    values = {rule["rule"]: tuple(rule["values"].values()) for rule in of_two}
    assert values == {one.rule: (one.before, one.after) for one in rules.between("4.15", "5.3")}
    same = knee("kernel", "rules", "5.3", "5.3", cwd=tmp_path)
    assert same.out == "5.3 and 5.3 differ in none of the rules.\n"
    monkeypatch.setenv("COLUMNS", "120")
    table, _, notes = knee("kernel", "rules", "4.15", "5.3", cwd=tmp_path).out.partition("\nCommits are")
    assert notes and all(len(line) <= 120 for line in table.splitlines())
    refused(knee("kernel", "rules", "9.9", cwd=tmp_path), 'got "9.9"; expected a release from 3.10 to 7.2')


def test_diff_of_two_kernels_names_the_rule_that_made_the_difference(tmp_path: Path) -> None:
    """Of 6.9 and 6.10 behind a policer: whether a packet takes what it lacks from the next skb."""
    file = tmp_path / "policed.toml"
    policed = SCENARIO.replace("[[flow]]", 'policer_rate = "10Mbit/s"\npolicer_burst = "30kB"\n[[flow]]')
    policed = policed.replace('rtt = "20ms"', 'rtt = "60ms"')
    file.write_text(f"repeat = 3\n{policed.replace('cubic', 'reno')}")
    found = knee("diff", "--kernel", "6.9,6.10", str(file), cwd=tmp_path)
    assert found.code == 0, found.err
    assert "Rules of 6.9, each by itself as 6.10 has it" in found.out
    assert "grow_skb: false -> true  (8ee602c63520" in found.out
    assert "The scenarios differ in kernel: 6.9 in A, 6.10 in B." in found.out
    assert "So 2 settings of the hosts differ: knee kernel rules 6.9 6.10" in found.out
    assert "Linux 6.10 beside Linux 6.9\n" in found.out


def test_rules_of_an_algorithm_are_tried_by_the_name_that_linux_gives_it(tmp_path: Path) -> None:
    file = tmp_path / "bbr.toml"
    file.write_text(f"repeat = 2\n{SCENARIO.replace('cubic', 'bbr')}")
    found = knee("diff", "--kernel", "4.15,5.3", str(file), cwd=tmp_path)
    assert found.code == 0, found.err
    assert "So 7 settings of the hosts and 2 of bbr1 differ: knee kernel rules 4.15 5.3" in found.out
    tried, _, untried = found.out.partition("not tried, as")
    assert "bbr1.pace_headers" in tried and "bbr1." not in untried
    # Of an algorithm that no flow has there is nothing to try.
    file.write_text(f"repeat = 2\n{SCENARIO}")
    found = knee("diff", "--kernel", "4.15,5.3", str(file), cwd=tmp_path)
    assert found.code == 0 and "bbr1" not in found.out


@pytest.mark.parametrize(
    ("kernels", "names"),
    [
        (("4.15", "5.3"), ("Linux 4.15", "Linux 5.3")),
        (("~/linux@HEAD~1", "~/linux@HEAD"), ("linux@HEAD~1", "linux@HEAD")),
        (("a/linux", "b/linux"), ("a/linux", "b/linux")),
    ],
)
def test_runs_are_called_as_the_user_called_their_kernels(kernels: tuple[str, str], names: tuple[str, str]) -> None:
    assert called(kernels) == names


def test_engines_are_named_once_each(tmp_path: Path) -> None:
    words = ("compare", "cubic", "--duration", "1s", "--engine")
    refused(knee(*words, "sim,sim", cwd=tmp_path), 'got "sim,sim"; expected each engine once')
    refused(knee(*words, "sim,ns3", cwd=tmp_path), 'got "ns3"; expected some of sim, kernel, guest')


def test_runs_of_several_engines_are_one_table() -> None:
    """A block per algorithm, with the kernel beside the engine."""
    text = SCENARIO.replace('"cubic"', '["cubic", "reno"]')
    runs = [tcpknee.run(text), tcpknee.run(text, kernel=["4.15", "7.2"])]
    lines = engines_text.lines(runs)
    assert lines[0].split() == ["goodput,", "Mbit/s", "srtt", "p50,", "ms", "retransmitted,", "%"]
    assert [line.split("  ")[0] or line.split("  ")[1] for line in lines[2:]] == [
        *("cubic", "sim", "sim, rules of 4.15", "sim, rules of 7.2"),
        *("reno", "sim", "sim, rules of 4.15", "sim, rules of 7.2"),
    ]
