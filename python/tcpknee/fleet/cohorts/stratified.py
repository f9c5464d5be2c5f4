"""Strata: verdicts within bands, whether they agree with the total, and cohorts weighted to one mix of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tcpknee import human
from tcpknee.fleet.statistics import Tally

from .metrics import Metric
from .observed import Observed, strata
from .verdicts import ALPHA, Verdict, judge


@dataclass(frozen=True)
class Stratum:
    """A band with its verdicts."""

    name: str
    """rtt, rate, prefix or a file."""
    label: str
    connections: dict[str, int]
    verdicts: list[Verdict]

    def as_json(self) -> dict[str, Any]:
        verdicts = [verdict.as_json() for verdict in self.verdicts]
        return {"by": self.name, "stratum": self.label, "connections": self.connections, "verdicts": verdicts}


@dataclass(frozen=True)
class Banded:
    """The tallies of each stratum of one kind, by label and cohort."""

    name: str
    tallies: dict[str, dict[str, dict[str, Tally]]]
    connections: dict[str, dict[str, int]]


def banded(observed: Observed, name: str, metrics: Sequence[Metric]) -> Banded:
    """Tallies per stratum."""
    own = [metric for metric in metrics if metric.table == "connections"]
    tallies, connections = {}, {}
    for label, condition in strata(observed, name):
        rows = observed.ask(f"select cohort, count(*) from observed where kept and {condition} group by cohort")
        connections[label] = {cohort: dict(rows).get(cohort, 0) for cohort in observed.cohorts}
        if any(connections[label].values()):
            tallies[label] = {cohort: observed.tallies(cohort, own, condition) for cohort in observed.cohorts}
    return Banded(name, tallies, connections)


def judged(observed: Observed, found: Banded, adoption: dict[str, float]) -> list[Stratum]:
    """Verdicts within each stratum, corrected within it."""
    request = observed.request
    return [
        Stratum(
            found.name,
            label,
            found.connections[label],
            judge(observed.metrics, tallies, adoption, margin=request.margin, seed=request.seed),
        )
        for label, tallies in found.tallies.items()
    ]


def disagreements(verdicts: Sequence[Verdict], listed: Sequence[Stratum]) -> Iterator[str]:
    """Strata in which a metric goes the other way than in total."""
    total = {(verdict.metric.name, verdict.cohort): verdict for verdict in verdicts}
    for stratum in listed:
        for verdict in stratum.verdicts:
            whole = total.get((verdict.metric.name, verdict.cohort))
            if whole is None or not _shows(verdict):
                continue
            if _sign(verdict) != _sign(whole):
                other = (
                    f"{'higher' if _sign(whole) > 0 else 'lower'} in total"
                    if _shows(whole)
                    else "no different in total"
                )
                here = "higher" if _sign(verdict) > 0 else "lower"
                yield (
                    f"strata disagree: {verdict.metric.label} of {verdict.cohort} is {here} for {stratum.name} "
                    f"{stratum.label}, and {other}: the total is a mix, so read the strata"
                )


def _shows(verdict: Verdict) -> bool:
    return verdict.p_adjusted < ALPHA


def _sign(verdict: Verdict) -> int:
    return 1 if verdict.value.value > verdict.base.value else -1


def left_out(observed: Observed, found: Banded) -> Iterator[str]:
    """What equal shares leave out, because it is of no stratum or a cohort lacks that."""
    kept = sum(observed.counts.kept[cohort] for cohort in observed.cohorts)
    outside = kept - sum(sum(each.values()) for each in found.connections.values())
    if outside > 0:
        yield (
            f"with equal shares of {found.name} {human.digits(100 * outside / kept)} % of the connections are left "
            "out: they are of no stratum"
        )
    for cohort in next(iter(found.connections.values()), ()):
        own = {label: each[cohort] for label, each in found.connections.items()}
        lone = [label for label, each in found.connections.items() if each[cohort] and not all(each.values())]
        if lone:
            share = sum(own[label] for label in lone) / observed.counts.kept[cohort]
            yield (
                f"with equal shares of {found.name} {human.digits(100 * share, 2)} % of the connections of {cohort} "
                f"are left out: another cohort has none of {found.name} {', '.join(lone)}"
            )


def reweighted(found: Banded) -> dict[str, dict[str, Tally]]:
    """The tallies of each cohort as if all had the mix of strata that they have together; strata that one of them
    lacks are left out."""
    common = {label: each for label, each in found.connections.items() if each and all(each.values())}
    whole = sum(sum(each.values()) for each in common.values())
    made: dict[str, dict[str, Tally]] = {}
    for label, each in common.items():
        share = sum(each.values()) / whole
        for cohort, tallies in found.tallies[label].items():
            own = sum(others[cohort] for others in common.values())
            factor = share / (each[cohort] / own)
            to = made.setdefault(cohort, {})
            for name, one in tallies.items():
                some = one.scaled(factor)
                to[name] = to[name] + some if name in to else some
    return made
