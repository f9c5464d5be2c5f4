"""Covariates of the period before an experiment: clusters that were slow already then are no evidence (CUPED)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tcpknee.datasets.sql import literal
from tcpknee.errors import UsageError
from tcpknee.fleet.connections import opened
from tcpknee.fleet.connections.boots import in_both
from tcpknee.fleet.statistics import Interval, covariate_adjusted

from .metrics import Metric
from .observed import Observed, mean
from .verdicts import interval_json, more


@dataclass(frozen=True)
class Adjusted:
    """The difference of the means of a metric, less what the clusters' own past explains."""

    metric: Metric
    cohort: str
    difference: Interval
    known: float
    """Share of the clusters that were there before."""

    @property
    def told(self) -> str:
        return (
            f"{self.metric.label} (mean): {more(self.metric.kind, self.difference)}, with the period "
            f"before taken out ({100 * self.known:.0f} % of the clusters were there then)"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "metric": self.metric.name,
            "cohort": self.cohort,
            "difference": interval_json(self.difference),
            "known": self.known,
            "told": self.told,
        }


def adjusted(observed: Observed, *, memory: str) -> list[Adjusted]:
    """Per cohort and metric, with the folders of `--before`; what is left out of those is noted.

    Raises UsageError (one of them is of a time that DATA has too), and as `opened` and `Fleet.gather`.
    """
    request = observed.request
    if not request.before:
        return []
    own = [metric for metric in observed.metrics if metric.table == "connections"]
    means = ", ".join(f"{mean(metric.name)} as {metric.name}" for metric in own)
    units = observed.fleet.database.sql("select distinct host_id, unit from observed where unit is not null")
    folders = [Path(folder) for folder in request.before]
    with opened(folders, partial=request.partial, memory=memory, units=units.to_arrow_table()) as past:
        if twin := in_both(past.boots, observed.fleet.boots):
            raise UsageError(
                f"before: has boot {twin.boot_id} of {twin.host or twin.host_id} over a time that DATA has too; "
                "expected the period before the experiment alone. Leave out of --before, or of DATA, what is of both."
            )
        cluster = f"cast('0x' || left(md5({request.cluster_of}), 16) as ubigint) as cluster"
        size = f"coalesce(bytes_acked, 0) >= {request.min_bytes}"
        past.gather("past", ", ".join([cluster, *(metric.name for metric in own)]), request.where, besides=size)
        rows = past.database.sql(f"select cluster, {means} from past group by cluster").to_arrow_table()
        observed.fleet.notes += [f"--before: {note}" for note in past.notes]
    observed.fleet.database.register("past", rows)
    found = []
    for cohort in observed.cohorts[1:]:
        for metric in own:
            both = f"({literal(cohort)}, {literal(observed.baseline)})"
            got = observed.fleet.database.sql(f"""
                select dense_rank() over (order by cluster) - 1 as number,
                       {mean(f"observed.{metric.name}")} as outcome, any_value(past.{metric.name}) as before,
                       cohort = {literal(cohort)} as treated, count(*) as n
                from observed left join past using (cluster)
                where kept and cohort in {both} and observed.{metric.name} is not null group by cluster, cohort
                order by cluster, treated
            """).to_arrow_table()
            columns = {name: got[name].to_numpy() for name in got.column_names}
            before = np.asarray(columns["before"], float)
            if len(before) < 4 or np.isnan(before).all():
                continue
            treated = np.asarray(columns["treated"], bool)
            weights = np.asarray(columns["n"], float)
            outcome, clusters = np.asarray(columns["outcome"], float), np.asarray(columns["number"], np.intp)
            difference = covariate_adjusted(outcome, before, treated, weights, clusters)
            found.append(Adjusted(metric, cohort, difference, float(1 - np.isnan(before).mean())))
    if not found:
        observed.fleet.notes.append(
            f"--before: none of the clusters ({observed.clusters}) was there before, so that nothing is taken out."
        )
    return found
