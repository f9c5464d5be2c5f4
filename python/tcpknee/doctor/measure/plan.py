"""How the findings of a rule are measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tcpknee.doctor.changes import Change, Sysctl
from tcpknee.doctor.finding import Finding

from .experiment import Experiment

_C = TypeVar("_C", bound=Change)


@dataclass(frozen=True)
class Plan:
    """`what`: the work and what is compared, for the page. `make`: the experiments for one finding; none where it says
    too little."""

    what: str
    make: Callable[[Finding], Sequence[Experiment]]


def always(what: str, *experiments: Experiment) -> Plan:
    """The same for each finding."""
    return Plan(what, lambda _: experiments)


def number(finding: Finding, name: str) -> int | None:
    """A number of the evidence; None: it is not known, or 0."""
    value = finding.evidence.get(name)
    return int(value) if isinstance(value, int | float) and value > 0 else None


def of_kind(finding: Finding, kind: type[_C]) -> _C | None:
    """The finding's first change of that kind."""
    return next((change for change in finding.changes if isinstance(change, kind)), None)


def goal(finding: Finding, name: str) -> list[int]:
    """The numbers to which a change of the finding sets the sysctl; none: no change does."""
    change = next((one for one in finding.changes if isinstance(one, Sysctl) and one.name == name), None)
    return [] if change is None else [int(word) for word in change.value.split()]
