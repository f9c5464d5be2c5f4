"""What findings cost on this very host: experiments by rule, and findings judged by what they showed.

costs = measure(findings, seconds=50)
for finding in judged(findings, costs): ...
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tcpknee.doctor.finding import Finding
from tcpknee.errors import EngineError
from tcpknee.evidence.stats import MINIMAL_EFFECT

from . import algorithms, buffers, limits, pacing, receiving
from .experiment import Arm, Experiment, Measured, measured
from .plan import Plan

SECONDS = 50.0
"""For all experiments of a finding."""

PLANS: Mapping[str, Plan] = {
    **pacing.PLANS,
    **algorithms.PLANS,
    **buffers.PLANS,
    **limits.PLANS,
    **receiving.PLANS,
}
"""Rules whose findings have a cost that experiments can show."""

TRAFFIC = "depends on this host's traffic or its far ends, which a lab does not have"
DEVICE = "is in the device, the firmware or the hypervisor, which a lab does not have"
DEFECT = "is a defect of this kernel, which both ways of a comparison would have"
LIMIT = "is a limit that this host has reached, and no speed"
MODEL = "is not in the host model (docs/host.md), and a lab's veth pair does not have it"
STATE = "says how the host is set up, and costs nothing by itself"

UNMEASURED: Mapping[str, str] = {
    "fq-horizon-drops": TRAFFIC,
    "fq-flow-limit": TRAFFIC,
    "receive-buffer-shrinks": DEFECT,
    "fq-fast-path-reorders": DEFECT,
    "bbr-is-another-version": STATE,
    "settings-without-effect": "does nothing on this kernel",
    "fq-where-forwarded": TRAFFIC,
    "pod-departure-times": DEFECT,
    "departure-times-in-one-fifo": TRAFFIC,
    "netem-on-sender": STATE,
    "qdisc-drops": TRAFFIC,
    "dctcp-outside": TRAFFIC,
    "far-end-window-limits": TRAFFIC,
    "buffer-trap": "is a value that the kernel does not use as it is written",
    "metrics-cache": TRAFFIC,
    "options-stripped": TRAFFIC,
    "conntrack-full": LIMIT,
    "neighbour-table-full": LIMIT,
    "few-ports": LIMIT,
    "time-wait-overflow": LIMIT,
    "tw-recycle": "refuses connections, and no kernel since 4.12 has it",
    "tcp-memory-pressure": LIMIT,
    "receive-queue-pruned": TRAFFIC,
    "spurious-retransmissions": TRAFFIC,
    "host-out-of-memory": LIMIT,
    "irqs-on-far-node": MODEL,
    "queues-on-siblings": MODEL,
    "irqbalance-beside-fast-nic": MODEL,
    "flow-limit-off": TRAFFIC,
    "lro-where-forwarded": DEVICE,
    "pcie-too-narrow": DEVICE,
    "iommu-translates": DEVICE,
    "cpu-frequency-low": DEVICE,
    "deep-sleep": DEVICE,
    "slow-clock": DEVICE,
    "cpu-stolen": DEVICE,
    "link-errors": DEVICE,
    "ena-allowance": DEVICE,
    "ena-header-size": DEVICE,
    "ena-single-flow": DEVICE,
    "bond-uses-one-link": DEVICE,
    "bond-reorders": DEVICE,
    "vlan-without-segmentation": DEVICE,
    "mtu-mismatch": TRAFFIC,
    "path-mtu-black-hole": TRAFFIC,
    "setting-drift": STATE,
    "two-owners": STATE,
    "tuner-overrides": STATE,
}
"""The other rules, and why they are not measured: each reason ends the sentence `What is found …`."""


def comparison(rule: str) -> str:
    """What is compared for the findings of a rule, or why nothing is: a part of a sentence."""
    plan = PLANS.get(rule)
    return f"nothing, since what it finds {UNMEASURED[rule]}" if plan is None else plan.what


@dataclass
class Costs:
    """What was measured for one finding, and why the rest could not be."""

    measured: list[Measured] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        return {"measured": [one.json() for one in self.measured], "failed": self.failed}


def measure(
    findings: Sequence[Finding], *, seconds: float = SECONDS, tell: Callable[[str], object] | None = None
) -> list[Costs]:
    """What was measured for each of the findings. An experiment that findings share is made once."""
    known: list[tuple[Experiment, Measured | str]] = []
    return [_costs(finding, known, seconds, tell) for finding in findings]


def _costs(
    finding: Finding,
    known: list[tuple[Experiment, Measured | str]],
    seconds: float,
    tell: Callable[[str], object] | None,
) -> Costs:
    plan = PLANS.get(finding.rule)
    if plan is None:
        return Costs(failed=[f"What is found {UNMEASURED[finding.rule]}."])
    costs = Costs()
    experiments = plan.make(finding)
    if not experiments:
        costs.failed.append("The finding has no setting that a lab could have in two ways.")
    end = time.monotonic() + seconds
    for number, experiment in enumerate(experiments):
        found = next((result for one, result in known if one == experiment), None)
        if found is None:
            # The time that is left is shared by the experiments that are left.
            found = _made(experiment, (end - time.monotonic()) / (len(experiments) - number), tell)
            known.append((experiment, found))
        if isinstance(found, Measured):
            costs.measured.append(found)
        else:
            costs.failed.append(found)
    return costs


def _made(experiment: Experiment, seconds: float, tell: Callable[[str], object] | None) -> Measured | str:
    """The result, or why there is none."""
    try:
        return measured(experiment, seconds, tell=tell)
    except EngineError as error:
        return f"{experiment.work}: {error}"


def judged(findings: Sequence[Finding], costs: Sequence[Costs]) -> list[Finding]:
    """The findings with the measured gain of each. One without a gain becomes advice, says so, and does not pay."""
    return [
        _judged(finding, one.measured) if one.measured else finding
        for finding, one in zip(findings, costs, strict=True)
    ]


def _judged(finding: Finding, found: Sequence[Measured]) -> Finding:
    said = " ".join(one.text() for one in found)
    if finding.severity == "critical" or not all(one.is_none for one in found):
        # Traffic that is lost or refused on the host itself outweighs what a lab shows.
        return replace(finding, gain=said)
    percent = round(MINIMAL_EFFECT * 100)
    told = f"{finding.told} Measured: no cost of {percent} % or more here, so this is advice only."
    gain = f"None to expect here. {said}"
    return replace(finding, severity="advice", told=told, gain=gain, unpaid=f"Gain: {gain}")


__all__ = ["PLANS", "UNMEASURED", "Arm", "Costs", "Experiment", "Measured", "Plan", "judged", "measure"]
