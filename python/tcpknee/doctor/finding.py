"""What a rule found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tcpknee.doctor.changes import Change

Severity = Literal["critical", "warning", "advice"]

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "advice")
"""From the worst on. Critical: traffic is lost or refused, or the kernel has a known defect that shows here. Warning:
it costs speed, latency or processor time. Advice: nothing is wrong yet, or the gain depends on the traffic."""


@dataclass(frozen=True)
class Now:
    """What two samples say of a finding: whether it goes on."""

    seconds: float
    """Between the samples."""
    per_sec: Mapping[str, float]
    """By name, the growth per second of the evidence that grew."""
    goes_on: bool


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a host."""

    rule: str
    severity: Severity
    subject: str
    """What it is about: an interface, a sysctl, an algorithm, the host."""
    told: str
    """The finding in one sentence."""
    evidence: Mapping[str, Any]
    """The values that led to it, by name, with the unit last."""
    why: str
    """Why it matters, in one or two sentences."""
    confirm: Sequence[str] = ()
    """Commands for a person, which show it on the host."""
    changes: Sequence[Change] = ()
    """What to change, in this order. Empty: no setting of this host mends it, `advice` says what does."""
    advice: str = ""
    """What to do that is no setting: another kernel, another instance type. "" where the changes are enough."""
    source: str = ""
    """The commit, documentation or page that it rests on."""
    gain: str = ""
    """What the source, or the evidence, leads to expect."""
    unpaid: str = ""
    """Why its changes are not worth it: it happened too rarely, or, measured on this host, they save nothing that
    counts. "": they pay."""
    now: Now | None = None
    """None: there was one sample, or nothing of the evidence counts."""

    @property
    def pays(self) -> bool:
        """Whether its changes are worth making."""
        return not self.unpaid
