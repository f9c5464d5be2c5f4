"""What findings cost on this very host: experiments by rule, and findings judged by what they showed.

found = measure(findings, seconds=50)
for finding in judged(findings, found): ...
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kneepoint.doctor.finding import Finding
from kneepoint.evidence.stats import MINIMAL_EFFECT

from .experiment import Arm, Experiment, Measured, measured

SECONDS = 50.0
"""For all experiments of a finding."""

_PACED = Arm("BBR paced by TCP's own timers", "bbr1")
_FQ = {"pacing": "fq"}
_OVER_FQ = Arm("BBR over fq", "bbr1", sender=_FQ, receiver=_FQ)
_UNPACED = Arm("CUBIC, which paces nothing", "cubic")
_REQUESTS = {
    "workload": "request-response",
    "request": "44B",
    "response": "5B",
    "depth": 4,
    "connections": 50,
}
_STREAM = {"workload": "bulk", "write": "16KiB"}

PACING = (
    Experiment("44-byte requests over 50 connections", _REQUESTS, "request", _PACED, _OVER_FQ),
    Experiment("44-byte requests over 50 connections", _REQUESTS, "request", _PACED, _UNPACED),
    Experiment("a stream in writes of 16 KiB", _STREAM, "byte", _PACED, _UNPACED),
)

EXPERIMENTS: Mapping[str, tuple[Experiment, ...]] = {"pacing": PACING}
"""Each compares the host as it is with another way."""

OF_RULE: Mapping[str, str] = {"bbr-without-fq": "pacing", "mq-leaf-without-fq": "pacing"}
"""Rules whose findings have a cost that experiments can show."""


def measure(
    findings: Sequence[Finding], *, seconds: float = SECONDS, tell: Callable[[str], object] | None = None
) -> dict[str, list[Measured]]:
    """What was measured, by rule: of the findings' rules those that have experiments. Raises EngineError."""
    rules = [rule for rule in dict.fromkeys(finding.rule for finding in findings) if rule in OF_RULE]
    found = {name: _of(EXPERIMENTS[name], seconds, tell) for name in dict.fromkeys(OF_RULE[rule] for rule in rules)}
    return {rule: found[OF_RULE[rule]] for rule in rules}


def _of(experiments: Sequence[Experiment], seconds: float, tell: Callable[[str], object] | None) -> list[Measured]:
    """Each has its part of the time that those before it left."""
    end = time.monotonic() + seconds
    return [
        measured(one, (end - time.monotonic()) / (len(experiments) - number), tell=tell)
        for number, one in enumerate(experiments)
    ]


def judged(findings: Sequence[Finding], found: Mapping[str, Sequence[Measured]]) -> list[Finding]:
    """The findings with what was measured as their gain; where there is none to be had, they are advice and say so."""
    return [_judged(finding, found[finding.rule]) if finding.rule in found else finding for finding in findings]


def _judged(finding: Finding, found: Sequence[Measured]) -> Finding:
    said = " ".join(one.text() for one in found)
    if all(is_none(one) for one in found):
        percent = round(MINIMAL_EFFECT * 100)
        told = f"{finding.told} Measured: no cost of {percent} % or more here, so this is advice only."
        return replace(finding, severity="advice", told=told, gain=f"None to expect here. {said}")
    return replace(finding, gain=said)


def is_none(one: Measured) -> bool:
    """Whether a cost worth a change is ruled out: the whole interval lies below 5 %."""
    high = one.ratio.high if one.ratio.high is not None else one.ratio.mean
    return high < 1 + MINIMAL_EFFECT


__all__ = ["EXPERIMENTS", "OF_RULE", "Arm", "Experiment", "Measured", "is_none", "judged", "measure"]
