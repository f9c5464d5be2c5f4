"""What `knee doctor --measure` makes of pairs of runs: intervals, the model where the kernel lacks a piece, findings
that stand and findings that are demoted."""

from __future__ import annotations

import pytest

from kneepoint.doctor import measure
from kneepoint.doctor.finding import Finding
from kneepoint.doctor.measure import EXPERIMENTS, OF_RULE, Measured, experiment, judged
from kneepoint.doctor.rules import RULES
from kneepoint.errors import KernelUnsupported
from kneepoint.evidence import stats

FINDING = Finding("bbr-without-fq", "warning", "eth0", "bbr sends through pfifo_fast.", {}, "", gain="Some.")
OVER_FQ, *_ = EXPERIMENTS["pacing"]


def found(*quotients: float) -> Measured:
    ratio = stats.ratio(quotients)
    assert ratio is not None
    return Measured(OVER_FQ, "kernel", ratio)


def test_every_rule_that_is_measured_is_a_rule() -> None:
    assert set(OF_RULE) <= {rule.name for rule in RULES}
    assert set(OF_RULE.values()) == set(EXPERIMENTS)


def test_a_cost_is_told_with_its_interval_and_what_it_is_of() -> None:
    text = found(1.20, 1.23, 1.26).text()
    assert text.startswith(
        "BBR paced by TCP's own timers costs +23 % [+16, +31] CPU per request against BBR over fq, at "
    )
    assert "44-byte requests over 50 connections (3 pairs of runs on this kernel)." in text


def test_a_finding_without_a_cost_here_is_advice_and_says_why() -> None:
    [one] = judged([FINDING], {FINDING.rule: [found(1.0, 1.01, 1.02), found(0.99, 1.0, 1.01)]})
    assert one.severity == "advice"
    assert "Measured: no cost of 5 % or more here" in one.told
    assert one.gain.startswith("None to expect here.")


@pytest.mark.parametrize("quotients", [(1.2, 1.23, 1.26), (0.9, 1.0, 1.1)], ids=["a cost", "too wide to tell"])
def test_a_finding_stands_while_a_cost_is_not_ruled_out(quotients: tuple[float, ...]) -> None:
    [one] = judged([FINDING], {FINDING.rule: [found(*quotients), found(1.0, 1.0, 1.0)]})
    assert one.severity == "warning"
    assert one.told == FINDING.told
    assert one.gain.startswith("BBR paced by")


def test_findings_of_other_rules_stay_as_they_are() -> None:
    other = Finding("short-backlog", "advice", "host", "", {}, "")
    assert measure.measure([other]) == {}
    assert judged([other], {}) == [other]


def test_every_other_pair_runs_backwards_and_time_bounds_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def run(_: object, arm: experiment.Arm) -> float:
        order.append(arm.label)
        return 2.0 if arm is OVER_FQ.now else 1.0

    monkeypatch.setattr(experiment, "_kernel_ns", run)
    one = experiment.on_kernel(OVER_FQ, seconds=0)
    now, other = OVER_FQ.now.label, OVER_FQ.other.label
    assert order == [now, other, other, now, now, other]
    assert (one.ratio.mean, one.ratio.n) == (2.0, 3)
    assert experiment.on_kernel(OVER_FQ, seconds=1000).ratio.n == experiment.MOST_PAIRS


def test_what_the_kernel_lacks_is_answered_by_the_model_which_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(*_: object) -> float:
        raise KernelUnsupported("no fq")

    monkeypatch.setattr(experiment, "_kernel_ns", lacks)
    one = experiment.measured(OVER_FQ, 1)
    assert (one.engine, one.profile) == ("model", experiment.MODEL)
    assert "the host model with the costs of linux-6.18-vm, as this kernel cannot do it" in one.text()
    assert 0.9 < one.ratio.mean < 1.1
