"""A fleet as its figures see it, beside `ReportRun` for a run: connections in cohorts, and what their hosts counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from . import binned, palette
from .quantities import QUANTITIES, Quantity, literal
from .run import Condition

if TYPE_CHECKING:
    import pyarrow as pa

    from kneepoint.fleet.statistics import Interval, Tally

    from .binned import Density

COHORTS_AT_MOST = 8
"""Of more, figures show those with most connections: as many colours and shapes can be told apart."""
MOMENTS = 120
"""Points of a line over time: 7 pixels from one to the next."""


@dataclass(frozen=True)
class Verdict:
    """A comparison of `cohort` with `base` in one metric, in numbers and in words."""

    metric: str
    """As it is called on an axis: "delivery rate P50"."""
    cohort: str
    base: str
    ratio: tuple[float, float, float] | None
    """Of the cohort over the base, with the ends of its 95 % interval; None where there is none."""
    is_shown: bool
    """Does a difference stand after the correction for many metrics?"""
    words: str


@dataclass
class Cohorts:
    """`ask` answers SQL over `connections`, a relation with the columns of the table of that name (docs/fleet.md) and
    two more: `cohort`, text, and `cluster`, a 64-bit hash. Beside it stand the tables in `tables`."""

    ask: Callable[[str], pa.Table]
    by: str
    """What tells cohorts apart, in words."""
    connections: str = "connections"
    tables: frozenset[str] = frozenset()
    verdicts: Sequence[Verdict] = ()
    title: str = "A fleet"
    facts: Sequence[tuple[str, str]] = ()
    warnings: Sequence[str] = ()
    conditions: Sequence[Condition] = field(default_factory=lambda: [Condition(0, (), ())])

    _over_time: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    _densities: dict[tuple[Quantity, Quantity], Density | None] = field(default_factory=dict)

    @cached_property
    def columns(self) -> frozenset[str]:
        """Of `connections`."""
        return frozenset(self.ask(f"select * from {self.connections} limit 0").column_names)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Connections of every cohort, most first."""
        found = self.ask(
            f"select cohort, count(*) as n from {self.connections} where cohort is not null group by 1 order by 2 desc, 1"
        )
        return {row["cohort"]: row["n"] for row in found.to_pylist()}

    @cached_property
    def slots(self) -> dict[str, int]:
        """Each cohort that is shown and its place in the palette."""
        return palette.slots(list(self.counts)[:COHORTS_AT_MOST])

    @property
    def names(self) -> list[str]:
        """The cohorts that are shown, in the order of figures."""
        return list(self.slots)

    @property
    def left_out(self) -> str:
        """What figures do not show; nothing where they show all."""
        if len(self.counts) <= COHORTS_AT_MOST:
            return ""
        return f"Of {len(self.counts):,} cohorts the {COHORTS_AT_MOST} with most connections are shown."

    def has(self, quantity: Quantity) -> bool:
        """Is it known of any connection?"""
        return any(one.rows for one in self.tallies.get(quantity.name, {}).values())

    @cached_property
    def tallies(self) -> Mapping[str, Mapping[str, Tally]]:
        """Of each quantity that the table has a column for, by cohort: one pass over its connections."""
        import numpy as np

        from kneepoint.fleet.statistics import Clusters, tally

        known = [one for one in QUANTITIES if one.column in self.columns]
        found: dict[str, dict[str, Tally]] = {one.name: {} for one in known}
        chosen = ", ".join(f"{one.column}::double as {one.name}" for one in known)
        for cohort in self.names:
            rows = self.ask(f"select cluster, {chosen} from {self.connections} where cohort = {literal(cohort)}")
            clusters = Clusters.of(rows["cluster"].to_numpy())
            for one in known:
                values = np.asarray(rows[one.name].to_numpy(), dtype=np.float64) * one.scale
                found[one.name][cohort] = tally(values, clusters)
        return found

    def density(self, x: Quantity, y: Quantity) -> Density | None:
        """Counts of connections by cohort in cells of two quantities; None: no connection has both."""
        if (x, y) not in self._densities:
            self._densities[x, y] = binned.density(self, x, y)
        return self._densities[x, y]

    def percentiles(self, quantity: Quantity, percents: Sequence[int]) -> list[dict[str, Any]]:
        """Rows of what, cohort, v, low, high: percentiles over connections with their intervals over clusters."""
        from kneepoint.fleet.statistics import quantile

        return [
            _row(f"P{percent}", cohort, quantile(tally, percent / 100))
            for percent in percents
            for cohort, tally in self.tallies[quantity.name].items()
            if tally.rows
        ]

    def shares(self, quantity: Quantity, least: int) -> list[dict[str, Any]]:
        """The same of the share of connections, in percent, with `least` and more of a quantity that counts."""
        from kneepoint.fleet.statistics import share_below

        found = [
            (cohort, share_below(tally, least - 0.5))
            for cohort, tally in self.tallies[quantity.name].items()
            if tally.rows
        ]
        return [
            _row(
                f"{least} and more",
                cohort,
                replace(one, value=1 - one.value, low=1 - one.high, high=1 - one.low),
                100.0,
            )
            for cohort, one in found
        ]

    def over_time(self, table: str, source: str, value: str) -> list[dict[str, Any]]:
        """`value`, an aggregate in SQL over what counters of hosts grew by, over time: rows of cohort, t (ms since
        1970), v; none without that table.

        `source` is a query of rows with `boot_id`, `t_unix_ns` and what each counter grew by since the row before.
        """
        if table not in self.tables or not self.names:
            return []
        key = (source, value)
        if key not in self._over_time:
            self._over_time[key] = self.ask(
                f"""
                with grown as ({source}),
                ends as (
                    select min(t_unix_ns) as first, greatest(max(t_unix_ns) - min(t_unix_ns), 1) as length from grown
                ),
                hosts as (
                    select boot_id, case when count(distinct cohort) = 1 then min(cohort) else '{SEVERAL}' end as cohort
                    from {self.connections} where cohort is not null group by 1
                ),
                placed as (
                    select *, least((t_unix_ns - first) * {MOMENTS} // length, {MOMENTS - 1}) as moment
                    from grown join hosts using (boot_id), ends
                    where cohort in ({", ".join(map(literal, [*self.names, SEVERAL]))})
                )
                select cohort, (avg(t_unix_ns / 1e6))::bigint as t, {value} as v
                from placed group by cohort, moment having v is not null order by cohort, moment
                """
            ).to_pylist()
        return self._over_time[key]


SEVERAL = "hosts of several cohorts"


def _row(what: str, cohort: str, found: Interval, scale: float = 1.0) -> dict[str, Any]:
    ends = {name: getattr(found, name) * scale for name in ("low", "high")}
    value = found.value * scale
    # Of too few clusters there is no interval: the line has no length.
    known = {name: value if math.isnan(end) else end for name, end in ends.items()}
    return {"what": what, "cohort": cohort, "v": value, **known, "n": found.n, "clusters": found.clusters}
