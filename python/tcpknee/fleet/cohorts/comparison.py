"""`compare`: DATA to cohorts, checks and verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcpknee import human
from tcpknee.errors import UsageError
from tcpknee.fleet.connections import Lake, opened
from tcpknee.fleet.connections.gather import MEMORY
from tcpknee.fleet.statistics import Interval, Tally
from tcpknee.writing import replacing

from . import before, checks, effects, stratified
from .before import Adjusted
from .effects import MetricEffect
from .metrics import Metric
from .observed import Counts, Observed, observe
from .request import Request, checked
from .stratified import Stratum
from .verdicts import Verdict, interval_json, judge, spread


@dataclass(frozen=True)
class Comparison:
    """Cohorts of connections, compared. `str()` is the text of `knee fleet compare`, `as_json()` its `--json`."""

    request: Request
    counts: Counts
    cohorts: tuple[str, ...]
    """The baseline first."""
    clusters: str
    metrics: tuple[Metric, ...]
    verdicts: list[Verdict]
    values: dict[str, dict[str, dict[str, Interval]]]
    """By cohort, metric and statistic: mean, P25, P50, P75, P95, P99."""
    tallies: Mapping[str, Mapping[str, Tally]]
    """By cohort and metric: what the values were computed from."""
    warnings: list[str]
    notes: list[str]
    strata: list[Stratum] = field(default_factory=list)
    reweighted: list[Verdict] = field(default_factory=list)
    effects: list[MetricEffect] = field(default_factory=list)
    adjusted: list[Adjusted] = field(default_factory=list)

    @property
    def baseline(self) -> str:
        return self.cohorts[0]

    def verdict(self, metric: str, cohort: str | None = None) -> Verdict:
        """The verdict about a metric of a cohort; by default of the first that is not the baseline.

        Raises UsageError: there is none, as of the baseline.
        """
        others = self.cohorts[1:]
        cohort = cohort or others[0]
        if cohort not in others:
            raise UsageError(f'cohort: got "{cohort}"; {human.suggest(cohort, others, "expected")}')
        found = {one.metric.name: one for one in self.verdicts if one.cohort == cohort}
        if metric not in found:
            expected = human.suggest(metric, list(found), "expected one that is known of both cohorts:")
            raise UsageError(f'metric: got "{metric}"; {expected}')
        return found[metric]

    def as_json(self) -> dict[str, Any]:
        """All of it, as JSON has it: null where there is no number."""
        counts = self.counts
        return {
            "schema": 1,
            "by": self.request.by,
            "baseline": self.baseline,
            "clusters": self.clusters,
            "connections": {
                "total": counts.total,
                "unknown_cohort": counts.unknown,
                "below_min_bytes": counts.too_small,
                "not_triggered": counts.not_triggered,
                "without_cluster": counts.without_cluster,
                "cohorts": {
                    name: {
                        "total": counts.of_cohorts[name],
                        "kept": counts.kept[name],
                        "adoption": counts.adoption(name),
                    }
                    for name in self.cohorts
                },
            },
            "warnings": self.warnings,
            "notes": self.notes,
            "verdicts": [verdict.as_json(self.request.detect) for verdict in self.verdicts],
            "reweighted": [verdict.as_json() for verdict in self.reweighted],
            "effects": [effect.as_json() for effect in self.effects],
            "adjusted": [one.as_json() for one in self.adjusted],
            "strata": [stratum.as_json() for stratum in self.strata],
            "values": {
                cohort: {
                    metric: {name: interval_json(value) for name, value in statistics.items()}
                    for metric, statistics in own.items()
                }
                for cohort, own in self.values.items()
            },
        }

    def write(self, folder: Path | str) -> Path:
        """Writes it as `comparison.json` into a folder. Raises RunFolderError."""
        path = Path(folder) / "comparison.json"
        with replacing(path, make=True) as file:
            file.write((json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n").encode())
        return path

    def __str__(self) -> str:
        from .text import lines

        return "\n".join(lines(self))


def compare(*data: Path | str | Lake, **options: Any) -> Comparison:
    """Compares cohorts of the connections in DATA, as `knee fleet compare` does. Options and errors are those of
    `comparing`."""
    with comparing(*data, **options) as (_, found):
        return found


@contextmanager
def comparing(
    *data: Path | str | Lake,
    by: str = "algorithm",
    baseline: str | None = None,
    where: str = "",
    min_bytes: str | int = 0,
    cluster: str | None = None,
    triggered: bool = False,
    strata: Sequence[str] = (),
    reweight: str | None = None,
    before: Sequence[str] = (),
    margin: str | float = "2%",
    detect: str | None = None,
    tags: Sequence[str] = (),
    partial: bool = False,
    memory: str = MEMORY,
    seed: int = 1,
) -> Iterator[tuple[Observed, Comparison]]:
    """The same while the tables that were compared are there to be asked, which figures are drawn of.

    Raises UsageError (an option; there are not two cohorts), RunFolderError (DATA cannot be read or contradicts itself,
    unless `partial`).
    """
    request = checked(
        by,
        min_bytes=min_bytes,
        margin=margin,
        detect=detect,
        cluster=cluster,
        strata=strata,
        reweight=reweight,
        baseline=baseline,
        where=where,
        triggered=triggered,
        before=tuple(before),
        partial=partial,
        seed=seed,
    )
    with opened(data, tags=tags, partial=partial, memory=memory) as fleet, fleet.telling():
        observed = observe(fleet, request)
        yield observed, _compared(observed, request, memory)


def _compared(observed: Observed, request: Request, memory: str) -> Comparison:
    checks.check_data(observed, partial=request.partial)
    adjusted = before.adjusted(observed, memory=memory)
    adoption = {cohort: observed.counts.adoption(cohort) for cohort in observed.cohorts}
    tallies = {cohort: observed.tallies(cohort, observed.metrics) for cohort in observed.cohorts}
    verdicts = judge(observed.metrics, tallies, adoption, margin=request.margin, seed=request.seed)
    warnings = list(checks.warnings(observed, tallies, adoption))
    bands = {name: stratified.banded(observed, name, observed.metrics) for name in request.strata}
    listed = [one for found in bands.values() for one in stratified.judged(observed, found, adoption)]
    warnings += stratified.disagreements(verdicts, listed)
    again = []
    if request.reweight is not None:
        weighted = stratified.reweighted(bands[request.reweight])
        warnings += stratified.left_out(observed, bands[request.reweight])
        if weighted:
            again = judge(observed.metrics, weighted, adoption, margin=request.margin, seed=request.seed)
    values = {
        cohort: {
            metric.name: spread(metric, own[metric.name], seed=request.seed)
            for metric in observed.metrics
            if metric.name in own and own[metric.name].rows
        }
        for cohort, own in tallies.items()
    }
    notes = observed.fleet.notes
    return Comparison(
        request,
        observed.counts,
        observed.cohorts,
        observed.clusters,
        observed.metrics,
        verdicts,
        values,
        tallies,
        warnings,
        notes,
        listed,
        again,
        effects.estimate(observed, notes),
        adjusted,
    )
