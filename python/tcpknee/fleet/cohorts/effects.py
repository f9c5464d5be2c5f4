"""What an experiment's design tells beyond the naive comparison: total effect and spillover."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcpknee.datasets.sql import literal
from tcpknee.errors import UsageError
from tcpknee.fleet.statistics import Effect, Interval, by_cluster, paired_link, ramp, switchback

from .metrics import Metric
from .observed import Observed, mean
from .verdicts import interval_json, interval_of, more

CARRY_OVER_US = 60_000_000
"""Of a switchback: what began sooner after a switch is left out, because the period before still acts on it."""

MINUTE_NS = 60_000_000_000
"""Of paired links the least time that is a unit; an hour is where a day or more was recorded."""


@dataclass(frozen=True)
class MetricEffect:
    """The effect of an arm on the mean of a metric."""

    metric: Metric
    arm: str
    effect: Effect
    is_relative: bool

    @property
    def is_known(self) -> bool:
        """Does the design tell one of the two?"""
        return self.total != "-" or self.spillover != "-"

    @property
    def total(self) -> str:
        """All treated against none: as a ratio, or in the metric's unit."""
        return self._shown(self.effect.total)

    @property
    def spillover(self) -> str:
        """What the treated do to the others."""
        return self._shown(self.effect.spillover)

    def _shown(self, found: Interval | None) -> str:
        if found is None or np.isnan(found.low):
            return "-"
        return f"{interval_of('', found)} ×" if self.is_relative else more(self.metric.kind, found)

    def as_json(self) -> dict[str, Any]:
        def told(found: Interval | None) -> dict[str, Any] | None:
            return None if found is None else interval_json(found)

        return {
            "metric": self.metric.name,
            "arm": self.arm,
            "design": self.effect.design,
            "allocation": None if np.isnan(self.effect.allocation) else self.effect.allocation,
            "relative": self.is_relative,
            "total": told(self.effect.total),
            "direct": told(self.effect.direct),
            "spillover": told(self.effect.spillover),
        }


def estimate(observed: Observed, notes: list[str]) -> list[MetricEffect]:
    """Effects of each arm but the baseline's, where cohorts are arms of a design that can tell them."""
    if observed.request.by != "arm":
        return []
    designs = [row[0] for row in observed.ask("select distinct design from observed where kept and design is not null")]
    if len(designs) != 1 or designs[0] not in _DESIGNS:
        return []
    found = []
    for arm in observed.cohorts[1:]:
        for metric in observed.metrics:
            if metric.table != "connections":
                continue
            try:
                made = _DESIGNS[designs[0]](observed, metric, arm)
            except UsageError as error:
                notes.append(f"{metric.label}: no total effect: {error}")
                continue
            if made is not None:
                found.append(made)
    return found


def _units(observed: Observed, metric: Metric, arm: str, units: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    """The mean of a metric over each unit and arm, with whether the arm is the treated one."""
    keys = ", ".join(units)
    both = f"({literal(arm)}, {literal(observed.baseline)})"
    query = f"""
        select {keys}, cohort = {literal(arm)} as treated, {mean(metric.name)} as outcome,
               any_value(allocation_pct) as allocation_pct, min(begin_unix_ns) as begin_unix_ns
        from observed where kept and cohort in {both} and {metric.name} is not null group by all order by all
    """
    found: dict[str, np.ndarray[Any, Any]] = observed.fleet.database.sql(query).fetchnumpy()
    return found


def _relative(outcome: np.ndarray[Any, Any]) -> bool:
    return bool(len(outcome)) and bool((outcome > 0).all())


def _cluster(observed: Observed, metric: Metric, arm: str) -> MetricEffect | None:
    rows = _units(observed, metric, arm, ["cluster"])
    outcome = np.asarray(rows["outcome"], float)
    if not len(outcome):
        return None
    relative = _relative(outcome)
    return MetricEffect(
        metric, arm, by_cluster(outcome, np.asarray(rows["treated"], bool), relative=relative), relative
    )


def _switchback(observed: Observed, metric: Metric, arm: str) -> MetricEffect | None:
    both = f"({literal(arm)}, {literal(observed.baseline)})"
    log = "select host_id, period, t_unix_ns from assignments where period is not null"
    seen = "select host_id, period, begin_unix_ns as t_unix_ns from observed where period is not null"
    rows = observed.fleet.database.sql(f"""
        with starts as (
            select host_id, period, min(t_unix_ns) as t_unix_ns
            from ({log if observed.fleet.log is not None else seen}) as known group by host_id, period
        )
        select {metric.name} as value, period, cohort = {literal(arm)} as treated,
               (begin_unix_ns - starts.t_unix_ns) // 1000 as since
        from observed join starts using (host_id, period)
        where kept and cohort in {both} and {metric.name} is not null order by all
    """).fetchnumpy()
    values = np.asarray(rows["value"], float)
    if not len(values):
        return None
    relative = _relative(values)
    effect = switchback(
        values,
        np.asarray(rows["period"], np.int64),
        np.asarray(rows["treated"], bool),
        np.asarray(rows["since"], np.int64),
        carry_over_us=CARRY_OVER_US,
        relative=relative,
    )
    return MetricEffect(metric, arm, effect, relative)


def _paired_link(observed: Observed, metric: Metric, arm: str) -> MetricEffect | None:
    [(span,)] = observed.ask("select max(begin_unix_ns) - min(begin_unix_ns) from observed where kept")
    slot = max(MINUTE_NS, min(60 * MINUTE_NS, (span or 0) // 24))
    rows = _units(observed, metric, arm, [f"begin_unix_ns // {slot} as slot", "link"])
    outcome, treated = np.asarray(rows["outcome"], float), np.asarray(rows["treated"], bool)
    if not len(outcome):
        return None
    shares = np.asarray(rows["allocation_pct"], float) / 100
    # What is intended for the treated arm on that link, whichever arm the row is of.
    of_treated = np.where(treated, shares, 1 - shares)
    relative = _relative(outcome)
    effect = paired_link(
        outcome,
        np.asarray(rows["slot"], np.int64),
        of_treated > 0.5,
        treated,
        allocation=float(np.nanmax(of_treated)),
        relative=relative,
    )
    return MetricEffect(metric, arm, effect, relative)


def _ramp(observed: Observed, metric: Metric, arm: str) -> MetricEffect | None:
    rows = _units(observed, metric, arm, ["coalesce(unit, host_id) as unit", "allocation_pct as step"])
    outcome, treated = np.asarray(rows["outcome"], float), np.asarray(rows["treated"], bool)
    if not len(outcome):
        return None
    shares = np.asarray(rows["step"], float) / 100
    _, units = np.unique(np.asarray(rows["unit"], str), return_inverse=True)
    relative = _relative(outcome)
    effect = ramp(outcome, np.where(treated, shares, 1 - shares), treated, units, relative=relative)
    return MetricEffect(metric, arm, effect, relative)


_DESIGNS: dict[str, Callable[[Observed, Metric, str], MetricEffect | None]] = {
    "cluster": _cluster,
    "switchback": _switchback,
    "paired-link": _paired_link,
    "ramp": _ramp,
}
