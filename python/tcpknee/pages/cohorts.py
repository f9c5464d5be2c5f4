"""A fleet as its figures see it, beside `ReportRun` for a run: connections in cohorts, and what their hosts counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from . import binned, palette
from .quantities import Quantity
from .run import Condition

if TYPE_CHECKING:
    import pyarrow as pa

    from tcpknee.fleet.cohorts import Comparison, Verdict
    from tcpknee.fleet.cohorts.observed import Observed
    from tcpknee.fleet.statistics import Interval, Tally

    from .binned import Density

MOMENTS = 120
"""Points of a line over time: 7 pixels from one to the next."""
BANDS, CONNECTIONS_AT_LEAST = 60, 5
"""Moments of percentiles over time, and connections of which they are drawn."""


@dataclass
class Cohorts:
    """`ask` answers SQL over `connections`, a relation with the columns of the table of that name (docs/fleet.md) and
    `cohort`, over `hosts`, and over the tables named in `tables`."""

    ask: Callable[[str], pa.Table]
    tallies: Mapping[str, Mapping[str, Tally]]
    """By cohort and column."""
    values: Mapping[str, Mapping[str, Mapping[str, Interval]]]
    """By cohort, column and statistic, such as P50."""
    counts: Mapping[str, int]
    """Connections of each cohort."""
    by: str
    """What tells cohorts apart, in words."""
    connections: str = "connections"
    hosts: str = "hosts"
    """A relation of `boot_id` and `cohort`: hosts that serve one cohort alone, or nearly so."""
    tables: frozenset[str] = frozenset()
    verdicts: Sequence[Verdict] = ()
    warnings: Sequence[str] = ()
    text: str = ""
    """The comparison as the command prints it."""
    conditions: Sequence[Condition] = field(default_factory=lambda: [Condition(0, (), ())])
    _over_time: dict[tuple[str, str, bool], list[dict[str, Any]]] = field(default_factory=dict)
    _densities: dict[tuple[Quantity, Quantity], Density | None] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{', '.join(self.names)}: a fleet by {self.by}" if self.names else f"A fleet by {self.by}"

    @cached_property
    def columns(self) -> frozenset[str]:
        """Of `connections`."""
        return frozenset(self.ask(f"select * from {self.connections} limit 0").column_names)

    @cached_property
    def slots(self) -> dict[str, int]:
        """Each cohort and its place in the palette."""
        return palette.slots(cohort for cohort, count in self.counts.items() if count)

    @property
    def names(self) -> list[str]:
        """The cohorts in the order of figures."""
        return list(self.slots)

    def has(self, quantity: Quantity) -> bool:
        """Is it known, and of some connection not 0? Of zeros there is nothing to draw."""
        return any(self.values[cohort][quantity.column]["mean"].value for cohort in self.tallies_of(quantity))

    def tallies_of(self, quantity: Quantity) -> dict[str, Tally]:
        """By cohort, in the unit of the column; without those that know nothing of it."""
        found = {cohort: self.tallies[cohort].get(quantity.column) for cohort in self.names}
        return {cohort: tally for cohort, tally in found.items() if tally is not None and tally.rows}

    def clusters(self, cohort: str) -> int:
        """Clusters of a cohort's connections."""
        return max((one.clusters for one in self.tallies[cohort].values()), default=0)

    def density(self, x: Quantity, y: Quantity) -> Density | None:
        """Counts of connections by cohort in cells of two quantities; None: no connection has both."""
        if (x, y) not in self._densities:
            self._densities[x, y] = binned.density(self, x, y)
        return self._densities[x, y]

    def percentiles(self, quantity: Quantity, names: Sequence[str]) -> list[dict[str, Any]]:
        """Rows of what, cohort, v, low, high: percentiles over connections with their intervals over clusters."""
        found = [
            _row(name, cohort, self.values[cohort][quantity.column][name], quantity.scale)
            for name in names
            for cohort in self.names
            if quantity.column in self.values[cohort]
        ]
        return [row for row in found if not math.isnan(row["v"])]

    def shares(self, quantity: Quantity, least: int) -> list[dict[str, Any]]:
        """The same of the share of connections, in percent, with `least` and more of a quantity that counts."""
        from tcpknee.fleet.statistics import share_below

        found = []
        for cohort, tally in self.tallies_of(quantity).items():
            below = share_below(tally, least - 0.5)
            above = replace(below, value=1 - below.value, low=1 - below.high, high=1 - below.low)
            found.append(_row(f"{least} and more", cohort, above, 100.0))
        return [row for row in found if not math.isnan(row["v"])]

    def shares_where(self, conditions: Mapping[str, str]) -> list[dict[str, Any]]:
        """The share of connections for which each condition (SQL) holds, in percent, of those that tell: rows of what,
        cohort, v, low, high, n, clusters. Intervals are over clusters, by the linearised ratio."""
        cluster = "cluster" if "cluster" in self.columns else "remote_prefix"
        found = []
        for what, condition in conditions.items():
            rows = self.ask(
                f"""
                select cohort, sum(n)::double as n, sum(s)::double as s, count(*)::double as clusters,
                       sum(s * s)::double as ss, sum(s * n)::double as sn, sum(n * n)::double as nn
                from (
                    select cohort, {cluster}, count({condition}) as n, count(*) filter (where {condition}) as s
                    from {self.connections} group by all having n > 0
                )
                group by cohort
                """
            ).to_pylist()
            by_cohort = {row["cohort"]: row for row in rows}
            found += [_share_row(what, name, by_cohort[name]) for name in self.names if name in by_cohort]
        return found

    def quantiles_over_time(self, quantity: Quantity) -> list[dict[str, Any]]:
        """Percentiles of a quantity over connections by when they began: rows of cohort, t (ms since 1970), p25, p50,
        p75, p95 and n; none where it is not known."""
        if not self.names or not {quantity.column, "begin_unix_ns"} <= self.columns:
            return []
        value = f"quantile_cont({quantity.column} * {quantity.scale!r}, [0.25, 0.5, 0.75, 0.95])"
        rows = self.ask(
            f"""
            with known as (
                select cohort, begin_unix_ns, {quantity.column} from {self.connections}
                where {quantity.column} is not null and begin_unix_ns is not null
            ),
            ends as (
                select min(begin_unix_ns) as first, greatest(max(begin_unix_ns) - min(begin_unix_ns), 1) as length
                from known
            )
            select cohort, (avg(begin_unix_ns / 1e6))::bigint as t, {value} as percentiles, count(*) as n
            from known, ends
            group by cohort, least((begin_unix_ns - first) * {BANDS} // length, {BANDS - 1})
            having n >= {CONNECTIONS_AT_LEAST} order by cohort, t
            """
        ).to_pylist()
        names = ("p25", "p50", "p75", "p95")
        return [{**row, **dict(zip(names, row.pop("percentiles"), strict=True))} for row in rows]

    def over_time(self, table: str, source: str, value: str, *, by_host: bool = False) -> list[dict[str, Any]]:
        """`value`, an aggregate in SQL over what counters of hosts grew by, over time: rows of cohort, t (ms since
        1970), v, and with `by_host` one for each host; none without that table.

        `source` is a query of rows with `boot_id`, `host`, `t_unix_ns` and what each counter grew by since the row
        before.
        """
        if table not in self.tables or not self.names:
            return []
        key = (source, value, by_host)
        host = "host, " if by_host else ""
        if key not in self._over_time:
            self._over_time[key] = self.ask(
                f"""
                with grown as ({source}),
                ends as (
                    select min(t_unix_ns) as first, greatest(max(t_unix_ns) - min(t_unix_ns), 1) as length from grown
                ),
                hosts as (
                    select boots.boot_id, coalesce(own.cohort, '{SEVERAL}') as cohort
                    from (select distinct boot_id from {self.connections}) as boots
                    left join {self.hosts} as own using (boot_id)
                ),
                placed as (
                    select *, least((t_unix_ns - first) * {MOMENTS} // length, {MOMENTS - 1}) as moment
                    from grown join hosts using (boot_id), ends
                )
                select cohort, {host}(avg(t_unix_ns / 1e6))::bigint as t, {value} as v
                from placed group by cohort, {host}moment having v is not null order by cohort, {host}moment
                """
            ).to_pylist()
        return self._over_time[key]


def of_comparison(observed: Observed, found: Comparison) -> Cohorts:
    """From a comparison whose tables are still there."""
    database = observed.fleet.database
    tables = set()
    for name in ("counters", "cpu"):
        views = [folder.views[name] for folder in observed.fleet.folders if name in folder.views]
        if views:
            query = " union all by name ".join(f"from {view}" for view in views)
            database.execute(f"create or replace temp view {name} as {query}")
            tables.add(name)

    def ask(query: str) -> pa.Table:
        with observed.fleet.telling():
            return database.sql(query).to_arrow_table()

    return Cohorts(
        ask,
        found.tallies,
        found.values,
        {cohort: observed.counts.kept[cohort] for cohort in observed.cohorts},
        found.request.by,
        connections="(from observed where kept)",
        hosts="(select distinct boot_id, cohort from of_hosts)",
        tables=frozenset(tables),
        verdicts=found.verdicts,
        warnings=found.warnings,
        text=str(found),
    )


SEVERAL = "hosts of several cohorts"


Z95 = 1.96


def _share_row(what: str, cohort: str, row: Mapping[str, float]) -> dict[str, Any]:
    share = row["s"] / row["n"]
    squares = max(row["ss"] - 2 * share * row["sn"] + share * share * row["nn"], 0.0)
    clusters = row["clusters"]
    half = Z95 * math.sqrt(squares * clusters / (clusters - 1)) / row["n"] if clusters > 1 else 0.0
    ends = {"low": 100 * max(share - half, 0.0), "high": 100 * min(share + half, 1.0)}
    return {"what": what, "cohort": cohort, "v": 100 * share, **ends, "n": int(row["n"]), "clusters": int(clusters)}


def _row(what: str, cohort: str, found: Interval, scale: float) -> dict[str, Any]:
    ends = {"low": found.low * scale, "high": found.high * scale}
    value = found.value * scale
    # An end that is not known, as of too few clusters, has no line.
    known = {name: end if math.isfinite(end) else value for name, end in ends.items()}
    return {"what": what, "cohort": cohort, "v": value, **known, "n": found.n, "clusters": found.clusters}
