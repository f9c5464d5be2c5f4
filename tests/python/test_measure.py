"""What `knee doctor --measure` makes of pairs of runs: intervals, the model where the kernel lacks a piece, findings
that stand and findings that are demoted. tests/kernel/test_measure_findings.py makes the experiments on a kernel."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "doctor"))

from made import snapshot
from rule_cases import CASES

from support import Ended
from tcpknee.calibration import own
from tcpknee.doctor import judge, measure, render
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.fix import planned
from tcpknee.doctor.measure import PLANS, UNMEASURED, Costs, Experiment, Measured, experiment, judged
from tcpknee.doctor.measure.pacing import OVER_FQ
from tcpknee.doctor.rules import RULES
from tcpknee.errors import EngineError, KernelUnsupported
from tcpknee.evidence import stats
from tcpknee.runs import api

Call = Callable[..., Ended]

FINDING = Finding("bbr-without-fq", "warning", "eth0", "bbr sends through pfifo_fast.", {}, "", gain="Some.")


def found(*quotients: float) -> Measured:
    ratio = stats.ratio(quotients)
    assert ratio is not None
    return Measured(OVER_FQ, "kernel", ratio)


OFF = {"losses-found-by-timeout": {"sysctls": {"net.ipv4.tcp_recovery": "0", "net.ipv4.tcp_early_retrans": "0"}}}
"""What else is wrong with a host, so that a setting mends the finding."""


def findings(rule: str) -> list[Finding]:
    """Of a rule, on the host on which it fires."""
    [asked] = [one for one in RULES if one.name == rule]
    return list(asked.check(snapshot({**CASES[rule].fires, **OFF.get(rule, {})})))


def experiments() -> Iterator[Experiment]:
    for rule in PLANS:
        for finding in findings(rule):
            yield from PLANS[rule].make(finding)


def test_every_rule_is_measured_or_says_why_not() -> None:
    assert PLANS.keys() | UNMEASURED.keys() == {rule.name for rule in RULES}
    assert not PLANS.keys() & UNMEASURED.keys()


@pytest.mark.parametrize("rule", PLANS)
def test_the_finding_of_each_measured_rule_has_experiments_of_two_ways(rule: str) -> None:
    made = [one for finding in findings(rule) for one in PLANS[rule].make(finding)]
    assert made
    for one in made:
        texts = [experiment.scenario(one, arm, "none", 1) for arm in (one.now, one.other)]
        assert one.now.label != one.other.label and texts[0] != texts[1]
        assert one.where


def test_every_experiment_is_a_scenario_and_ends_in_time() -> None:
    for one in experiments():
        for arm in (one.now, one.other):
            api.parse(experiment.scenario(one, arm, "linux-6.18-vm" if one.where[0] == "model" else "none", 1), "")
        if one.where[0] == "kernel" and one.workload.get("workload") != "programs":
            assert 2 * experiment.LEAST_PAIRS * one.duration_ms <= 1000 * measure.SECONDS


def test_rounds_end_early_where_their_budget_is_measured_and_less_often_with_the_larger_one() -> None:
    [finding] = findings("softnet-squeezed")
    [one] = PLANS["softnet-squeezed"].make(finding)
    squeezes = []
    for arm in (one.now, one.other):
        run = api.run_text(experiment.scenario(one, arm, "linux-6.18-vm", 1), "", out=None)
        counted = {(row["host"], row["counter"]): row["value"] for row in run.host_costs.arrow().to_pylist()}
        squeezes.append(counted["receiver", "backlog_squeezes"])
    assert 0 < squeezes[1] < squeezes[0]


def test_a_cost_is_told_with_its_interval_and_what_it_is_of() -> None:
    text = found(1.20, 1.23, 1.26).text()
    assert text.startswith(
        "CPU per request is 23 % higher [+16, +31] with BBR paced by TCP's own timers than with BBR over fq: a change "
        "would save that. At "
    )
    assert "44-byte requests over 50 connections (3 pairs of runs on this kernel)." in text


def test_what_is_lower_now_or_not_decided_is_said_in_words() -> None:
    lower, wide = found(0.98, 0.99, 1.0).text(), found(0.8, 1.0, 1.3).text()
    assert lower.startswith("CPU per request is 1 % lower [") and "BBR over fq: a change gains nothing. At " in lower
    assert "BBR over fq: these runs do not decide it. At " in wide


def test_a_finding_without_a_cost_here_is_advice_and_says_why() -> None:
    [one] = judged([FINDING], [Costs([found(1.0, 1.01, 1.02), found(0.99, 1.0, 1.01)])])
    assert one.severity == "advice"
    assert "Measured: no cost of 5 % or more here" in one.told
    assert one.gain.startswith("None to expect here.")


@pytest.mark.parametrize("quotients", [(1.2, 1.23, 1.26), (0.9, 1.0, 1.1)], ids=["a cost", "too wide to tell"])
def test_a_finding_stands_while_a_cost_is_not_ruled_out(quotients: tuple[float, ...]) -> None:
    [one] = judged([FINDING], [Costs([found(*quotients), found(1.0, 1.0, 1.0)])])
    assert one.severity == "warning"
    assert one.told == FINDING.told
    assert one.gain.startswith("CPU per request is ")


def test_what_is_lost_on_the_host_itself_stays_critical_whatever_a_lab_shows() -> None:
    [one] = judged([replace(FINDING, severity="critical")], [Costs([found(1.0, 1.0, 1.0)])])
    assert (one.severity, one.told) == ("critical", FINDING.told)


SOMAXCONN = Path("/proc/sys/net/core/somaxconn")


@pytest.fixture
def unpaid() -> Finding:
    """A finding whose change gains nothing by what was measured."""
    change = Sysctl("net.core.somaxconn", str(int(SOMAXCONN.read_text()) - 1))
    return judged([replace(FINDING, changes=[change])], [Costs([found(1.0, 1.0, 1.0)])])[0]


def test_a_change_without_a_gain_is_left_out_of_the_plan_unless_its_rule_is_named(unpaid: Finding) -> None:
    steps, [left] = planned([unpaid])
    assert (steps, left.outcome, left.change) == ([], "unpaid", *unpaid.changes)
    assert left.said.startswith("Gain: None to expect here. CPU per request is the same")
    assert left.said.endswith("Name the rule to make it nevertheless.")
    [step], others = planned([unpaid], named=True)
    assert (step.change, others) == (*unpaid.changes, [])


def test_a_change_for_what_is_rare_is_left_out_for_that_reason_and_no_gain_told(unpaid: Finding) -> None:
    [rule] = [one for one in RULES if one.name == "softnet-squeezed"]
    rare = rule.found("warning", "host", "", {}, changes=unpaid.changes, gain="10 % more.", events=3)
    for finding in (rare, judged([rare], [Costs([found(1.2, 1.23, 1.26)])])[0]):
        steps, [left] = planned([finding])
        said = "It happened too rarely to matter. Name the rule to make it nevertheless."
        assert (steps, left.outcome, left.said) == ([], "unpaid", said)


def test_a_change_that_another_finding_pays_for_is_made(unpaid: Finding) -> None:
    [step], others = planned([unpaid, replace(FINDING, rule="short-backlog", changes=unpaid.changes)])
    assert (step.rule, step.change, others) == ("short-backlog", *unpaid.changes, [])


def test_what_gains_nothing_is_not_the_first_thing_to_do(unpaid: Finding) -> None:
    other = replace(unpaid, rule="short-backlog", unpaid="")
    lines = render.report(snapshot(), judge.Judgement([unpaid, other], []))
    assert [line for line in lines if line.startswith("Do first")] == ["Do first, for short-backlog (eth0):"]


@pytest.mark.parametrize(("named", "is_planned"), [((), False), (("bbr-without-fq",), True)])
def test_fix_goes_by_what_was_measured(
    call: Call, monkeypatch: pytest.MonkeyPatch, unpaid: Finding, named: Sequence[str], is_planned: bool
) -> None:
    asked = replace(FINDING, changes=unpaid.changes)
    monkeypatch.setattr(judge, "judge", lambda *_: judge.Judgement([asked], []))
    monkeypatch.setattr(measure, "measure", lambda *_, **__: [Costs([found(1.0, 1.0, 1.0)])])
    ended = call("doctor", *named, "--fix", "--measure", "--dry-run", "-q")
    assert (ended.code, ended.out.startswith("bbr-without-fq:\n    sysctl -w net.core.somaxconn")) == (0, is_planned)
    assert (
        "net.core.somaxconn: LEFT: Gain: None to expect here. CPU per request is the same" in ended.out
    ) is not is_planned


def test_fix_lists_at_the_end_what_could_not_be_measured(
    call: Call, monkeypatch: pytest.MonkeyPatch, unpaid: Finding
) -> None:
    asked = replace(FINDING, changes=unpaid.changes)
    monkeypatch.setattr(judge, "judge", lambda *_: judge.Judgement([asked], []))
    monkeypatch.setattr(measure, "measure", lambda *_, **__: [Costs(failed=["No lab here."])])
    words = ("doctor", "--fix", "--measure", "--dry-run", "-q")
    assert call(*words).out.endswith("\nNot measured:\n  bbr-without-fq: No lab here.\n")
    assert json.loads(call(*words, "--json").out)["measured"][0]["failed"] == ["No lab here."]


def test_findings_of_which_nothing_can_be_measured_stay_and_say_why() -> None:
    other = Finding("conntrack-full", "warning", "host", "", {}, "")
    [costs] = measure.measure([other])
    assert (costs.measured, costs.failed) == ([], [f"What is found {UNMEASURED[other.rule]}."])
    assert judged([other], [costs]) == [other]


def test_an_experiment_that_fails_is_told_and_the_others_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(one: Experiment, *_: object, **__: object) -> Measured:
        if one is OVER_FQ:
            raise EngineError("no lab here")
        return found(1.2, 1.2, 1.2)

    monkeypatch.setattr(measure, "measured", half)
    [costs] = measure.measure([FINDING])
    assert [len(costs.measured), costs.failed] == [2, ["44-byte requests over 50 connections: no lab here"]]


def test_what_two_findings_share_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Experiment] = []

    def noted(one: Experiment, *_: object, **__: object) -> Measured:
        asked.append(one)
        return found(1.2, 1.2, 1.2)

    monkeypatch.setattr(measure, "measured", noted)
    one, two = measure.measure([FINDING, replace(FINDING, rule="mq-leaf-without-fq")])
    assert len(one.measured) == len(two.measured) == len(asked) == 3


class Clock:
    """Runs that take `sec` each, the present way twice as long by what is measured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, sec: float) -> None:
        self.sec, self.now, self.order = sec, 0.0, list[str]()
        monkeypatch.setattr(experiment, "_on_kernel", self._run)
        monkeypatch.setattr(experiment.time, "monotonic", lambda: self.now)

    def _run(self, _: object, arm: experiment.Arm) -> float:
        self.order.append(arm.label)
        self.now += self.sec
        return 2.0 if arm is OVER_FQ.now else 1.0


def test_every_other_pair_runs_backwards_and_time_bounds_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 1)
    one = experiment.on_kernel(OVER_FQ, seconds=7)
    now, other = OVER_FQ.now.label, OVER_FQ.other.label
    assert clock.order == [now, other, other, now, now, other]
    assert (one.ratio.mean, one.ratio.n) == (2.0, 3)
    assert experiment.on_kernel(OVER_FQ, seconds=1000).ratio.n == experiment.MOST_PAIRS


def test_a_machine_too_busy_for_three_pairs_is_told_so_instead_of_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 10)
    with pytest.raises(EngineError, match=r"got 1 of 3 pairs of runs in 20 s, and had 16 s\. The machine is too busy"):
        experiment.on_kernel(OVER_FQ, seconds=16)
    assert clock.now == 20


def lacks(*_: object, **__: object) -> float:
    raise KernelUnsupported("no fq")


def test_what_the_kernel_lacks_is_answered_by_the_model_which_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "_on_kernel", lacks)
    one = experiment.measured(OVER_FQ, 1)
    assert (one.where, one.profile.split(";")[0]) == ("model", own.SHIPPED)
    assert "the host model with the costs of linux-6.18-vm" in one.text()
    assert "as this kernel cannot do it" in one.text()
    assert 0.9 < one.ratio.mean < 1.1


def test_a_path_that_a_busy_machine_cannot_emulate_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object) -> float:
        raise experiment.LinkWasLate("late")

    monkeypatch.setattr(experiment, "_on_kernel", late)
    [finding] = findings("slow-start-after-idle")
    [idle] = PLANS[finding.rule].make(finding)
    one = experiment.measured(idle, 1)
    assert (one.where, one.profile) == ("simulator", "")
    assert "the simulator, 5 seeds, as this machine is too busy for the lab's link" in one.text()
    assert one.ratio.mean > 1.05


def test_what_only_a_kernel_can_do_and_this_one_cannot_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "_on_kernel", lacks)
    with pytest.raises(KernelUnsupported, match="no fq"):
        experiment.measured(replace(OVER_FQ, where=("kernel",)), 1)


PROFILE = """title = "a"\nkernel = "{}"\nmachine = "{}"\n"""


def test_the_host_s_own_costs_are_preferred_while_they_are_of_its_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(own, "MACHINE", tmp_path / "machine.toml")
    assert own.best() == own.Costs(own.SHIPPED, own.SHIPPED)
    file = tmp_path / "tcpknee/this-host.toml"
    file.parent.mkdir()
    file.write_text(PROFILE.format("2.6.32", own.machine()))
    old = own.best()
    assert (old.key, "is of Linux 2.6.32" in old.told) == (own.SHIPPED, True)
    (tmp_path / "machine.toml").write_text(PROFILE.format(platform.release(), own.machine()))
    assert own.best().key == f"file {tmp_path / 'machine.toml'}"
    file.write_text(PROFILE.format(platform.release(), own.machine()))
    mine = own.best()
    assert (mine.key, mine.told) == (f"file {file}", f"this host, {file}")
    file.write_text("{")
    assert own.best().key == f"file {tmp_path / 'machine.toml'}"


def test_the_model_takes_the_costs_of_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shipped = (Path(__file__).parents[2] / "hosts/linux-6.18-vm.toml").read_text().splitlines()
    ours = [line for line in shipped if not line.startswith(("kernel =", "machine ="))]
    file = tmp_path / "tcpknee/this-host.toml"
    file.parent.mkdir()
    file.write_text("\n".join([f'kernel = "{platform.release()}"', f'machine = "{own.machine()}"', *ours]))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    one = experiment.in_model(OVER_FQ)
    assert one.profile == f"this host, {file}"
