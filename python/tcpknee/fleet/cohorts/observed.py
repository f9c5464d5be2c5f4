"""Observations: the connections that count, each with its cohort, cluster and strata, as a table of the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tcpknee import human
from tcpknee.datasets import sql
from tcpknee.errors import UsageError
from tcpknee.fleet.connections import assignment, clusters
from tcpknee.fleet.statistics import Clusters, Tally, tally

from . import request as requests
from .metrics import METRICS, Metric
from .request import Request

if TYPE_CHECKING:
    import pyarrow as pa

    from tcpknee.fleet.connections import Fleet

MOST_COHORTS = 8
"""Of more, the baseline that was asked for and the largest are compared."""

LEAST = 10
"""Connections below which a cohort is none."""

AT_ONCE = 1_000_000
"""Rows that are in memory while they are tallied."""

MAIN_SHARE = 0.9
"""A host's own figures are those of the cohort that has this share of its bytes."""

_KEPT = ("remote_prefix", "host_id", "boot_id", "cookie", "begin_unix_ns", "end_unix_ns", "bytes_acked", "algorithm")
_DRAWN = ("ecn", "ecn_seen", "bbr_bw_bits_per_sec", "bbr_min_rtt_us")
"""Of figures alone."""
_OF_ARMS = ("arm", "design", "allocation_pct", "period", "link", "unit")
_OWN = [metric for metric in METRICS if metric.table == "connections"]


@dataclass(frozen=True)
class Counts:
    """How many connections there are, and what left some out."""

    total: int
    """Of all cohorts, before anything but --where was left out."""
    of_cohorts: dict[str, int]
    """Likewise, per cohort; the share of one is its adoption."""
    kept: dict[str, int]
    unknown: int
    """That tell no cohort."""
    too_small: int
    """Of those that tell their cohort."""
    not_triggered: int
    """Of those that are large enough."""
    without_cluster: int
    """Of those that nothing else left out."""
    bytes_acked: int

    def adoption(self, cohort: str) -> float:
        """The share of the connections that are of the cohort."""
        return self.of_cohorts[cohort] / max(sum(self.of_cohorts.values()), 1)


@dataclass(frozen=True)
class Observed:
    """The tables `observed` (a row per connection, `kept` or not) and `of_hosts`, and what they hold."""

    fleet: Fleet
    request: Request
    counts: Counts
    cohorts: tuple[str, ...]
    """The baseline first, then the largest first."""
    has_hosts: bool
    clusters: str
    """What a cluster is, in words."""
    metrics: tuple[Metric, ...]
    """Those of which some connection of each of two cohorts knows the value."""

    @property
    def baseline(self) -> str:
        return self.cohorts[0]

    def tallies(self, cohort: str, metrics: Sequence[Metric], stratum: str = "true") -> dict[str, Tally]:
        """The tally of each metric, over the cohort's connections for which `stratum` (SQL) holds."""
        found: dict[str, Tally] = {}
        for table in ("connections", "hosts"):
            chosen = [metric.name for metric in metrics if metric.table == table]
            source = "observed" if table == "connections" else "of_hosts"
            for rows in self._rows(source, chosen, cohort, stratum) if chosen else ():
                clusters = Clusters.of(rows["cluster"])
                for name in chosen:
                    some = tally(rows[name], clusters)
                    found[name] = found[name] + some if name in found else some
        return found

    def _rows(
        self, source: str, columns: Sequence[str], cohort: str, stratum: str
    ) -> Iterator[dict[str, npt.NDArray[Any]]]:
        names = ["cluster", *columns]
        # Always in the same order, as sums of floats have other last digits in another.
        query = (
            f"select {', '.join(names)} from {source} where kept and cohort = {sql.literal(cohort)} and {stratum} "
            "order by all"
        )
        for batch in self.fleet.database.sql(query).to_arrow_reader(AT_ONCE):
            yield {name: _numbers(batch.column(name), float_=name != "cluster") for name in names}

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Rows of a query over the tables."""
        return self.fleet.database.execute(query).fetchall()


def mean(column: str) -> str:
    """The mean of a column as an expression, to the last digit whatever the order of the rows."""
    return f"avg({column} order by {column})"


def _numbers(column: Any, *, float_: bool) -> npt.NDArray[Any]:
    values = column.to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float64) if float_ else values


def observe(fleet: Fleet, request: Request) -> Observed:
    """Gathers what is asked for. Raises UsageError: there are not two cohorts with connections."""
    database = fleet.database
    is_kept = " and ".join(
        [
            f"coalesce(bytes_acked, 0) >= {request.min_bytes}" if request.min_bytes else "true",
            "coalesce(triggered, false)" if request.triggered else "true",
        ]
    )
    columns = [
        f"cast({request.cohort} as varchar) as cohort",
        f"cast('0x' || left(md5({request.cluster_of}), 16) as ubigint) as cluster",
        *_KEPT,
        *_DRAWN,
        *_OF_ARMS,
        "triggered",
        f"{is_kept} and {request.cluster_of} is not null as kept",
        *(metric.name for metric in _OWN),
    ]
    fleet.gather("observed", ", ".join(columns), request.where)
    counts = _counts(fleet, request)
    unjoined = assignment.unjoined(database, "observed", is_filtered=bool(request.where)) if fleet.log else None
    if unjoined is not None and request.by in assignment.ARMS:
        raise UsageError(f"by: {unjoined}.")
    if unjoined is not None:
        fleet.notes.append(f"{unjoined}.")
    cohorts = _cohorts(fleet, request, counts)
    listed = ", ".join(map(sql.literal, cohorts))
    database.execute(f"update observed set kept = false where kept and (cohort is null or cohort not in ({listed}))")
    has_hosts = fleet.make_hosts()
    if has_hosts:
        _attribute_hosts(fleet, cohorts)
    known = _known(fleet, has_hosts)
    words = request.cluster or "unit"
    if words == "unit":
        words = clusters.units_told(database, "observed where kept")
    return Observed(fleet, request, counts, cohorts, has_hosts, words, known)


def _counts(fleet: Fleet, request: Request) -> Counts:
    idle = "triggered is not true" if request.triggered else "triggered is false"
    small = f"coalesce(bytes_acked, 0) < {request.min_bytes}" if request.min_bytes else "false"
    rows = fleet.database.execute(
        f"select cohort, count(*), count(*) filter (where kept), count(*) filter (where {small}), "
        f"count(*) filter (where not ({small}) and {idle}), coalesce(sum(bytes_acked), 0) "
        "from observed group by cohort order by count(*) desc, cohort"
    ).fetchall()
    told = [row for row in rows if row[0] is not None]
    too_small, not_triggered = (sum(row[place] for row in told) for place in (3, 4))
    left = sum(row[1] - row[2] for row in told) - too_small - (not_triggered if request.triggered else 0)
    return Counts(
        total=sum(row[1] for row in rows),
        of_cohorts={row[0]: row[1] for row in told},
        kept={row[0]: row[2] for row in told},
        unknown=sum(row[1] for row in rows if row[0] is None),
        too_small=too_small,
        not_triggered=not_triggered,
        without_cluster=left,
        bytes_acked=int(sum(row[5] for row in rows)),
    )


def _cohorts(fleet: Fleet, request: Request, counts: Counts) -> tuple[str, ...]:
    """The baseline, then the largest others. Raises UsageError."""
    if not counts.total:
        raise UsageError(f'where: "{request.where}": holds for no connection of DATA.' if request.where else _NOTHING)
    if not counts.of_cohorts:
        raise UsageError(f"by: no connection has {request.by}; expected a column or tag that tells cohorts apart.")
    if len(counts.of_cohorts) == 1:
        [only] = counts.of_cohorts
        raise UsageError(
            f"by: all {counts.of_cohorts[only]:,} connections have {request.by} {only}, so that there is nothing to "
            "compare it with; expected two cohorts. Give DATA of another one, or another --by."
        )
    if request.baseline is not None and request.baseline not in counts.of_cohorts:
        expected = human.suggest(request.baseline, list(counts.of_cohorts), "expected")
        raise UsageError(f'baseline: got "{request.baseline}"; {expected}')
    # The largest first, but for the baseline.
    ranked = sorted(counts.of_cohorts, key=lambda name: name != request.baseline)
    listed, rest = ranked[:MOST_COHORTS], ranked[MOST_COHORTS:]
    if rest:
        share = sum(counts.of_cohorts[name] for name in rest) / counts.total
        fleet.notes.append(
            f"left out: {human.counted(len(rest), 'further cohort')} with {100 * share:.2g} % of the connections; "
            f"{'the baseline and ' if request.baseline else ''}the largest are compared, {MOST_COHORTS} in all."
        )
    for name in [name for name in listed if counts.kept[name] < LEAST]:
        why = (
            f"{request.by} {name} has {human.counted(counts.kept[name], 'connection')} to compare, of "
            f"{counts.of_cohorts[name]:,} in DATA{_because(request)}; expected {LEAST} at least"
        )
        if not request.partial:
            raise UsageError(f"by: {why}. Give more DATA, or leave fewer out. --partial compares what there is.")
        fleet.notes.append(f"not to be relied on: {why}.")
    listed = [name for name in listed if counts.kept[name]]
    if len(listed) < 2:
        raise UsageError(f"by: fewer than two of {request.by} have a connection to compare{_because(request)}.")
    first = request.baseline or next((name for name in ("control", "cubic") if name in listed), listed[0])
    if first not in listed:
        raise UsageError(f"baseline: {first} has no connection to compare with; expected one of {', '.join(listed)}.")
    return (first, *(name for name in listed if name != first))


_NOTHING = "DATA: holds no connection; expected some that sent data."


def _because(request: Request) -> str:
    words = [
        f"at least {request.min_bytes / 1e6:g} MB" if request.min_bytes else "",
        "triggered" if request.triggered else "",
    ]
    told = " and ".join(filter(None, words))
    return f" ({told})" if told else ""


def _attribute_hosts(fleet: Fleet, cohorts: Sequence[str]) -> None:
    """The table `of_hosts`: hours of hosts that serve one cohort nearly alone."""
    # The struct keeps the null of connections that tell no cohort, which arg_max alone passes over.
    fleet.database.execute(f"""
        create table of_hosts as
        with bytes as (
            select boot_id, cohort, coalesce(sum(bytes_acked), 0) as n from observed group by boot_id, cohort
        ),
        main as (
            select boot_id, arg_max({{'of': cohort}}, n).of as cohort, max(n) / nullif(sum(n), 0) as share
            from bytes group by boot_id
        )
        select main.cohort, cast('0x' || left(md5(hosts.host_id), 16) as ubigint) as cluster, true as kept, hosts.*
        from hosts join main using (boot_id)
        where main.share >= {MAIN_SHARE} and main.cohort in ({", ".join(map(sql.literal, cohorts))})
    """)
    shared = fleet.database.execute(
        "select count(distinct boot_id) from hosts where boot_id not in (select boot_id from of_hosts)"
    ).fetchall()[0][0]
    if shared:
        fleet.notes.append(
            human.agreeing(
                f"{shared:,} hosts have connections of several cohorts, or of none: their CPU and RetransSegs belong "
                "to none of them alone, and are left out."
            )
        )


def _known(fleet: Fleet, has_hosts: bool) -> tuple[Metric, ...]:
    """Metrics of which two cohorts know something."""
    found = []
    for metric in METRICS:
        if metric.table == "hosts" and not has_hosts:
            continue
        source = "observed" if metric.table == "connections" else "of_hosts"
        rows = fleet.database.execute(
            f"select count(distinct cohort) from {source} where kept and {metric.name} is not null"
        ).fetchall()
        if rows[0][0] >= 2:
            found.append(metric)
    return tuple(found)


def strata(observed: Observed, name: str) -> list[tuple[str, str]]:
    """(label, condition) of each stratum, which the table `observed` gets a column for."""
    database = observed.fleet.database
    if name == "rate":
        # Of the client's prefix, over all cohorts: a connection's own rate is what an algorithm changes.
        database.execute("alter table observed add column if not exists access_rate_bits_per_sec double")
        client = clusters.OF["prefix"]
        database.execute(f"""
            update observed set access_rate_bits_per_sec = access.rate
            from (
                select {client} as client, max(delivery_rate_bits_per_sec) as rate from observed group by client
            ) as access
            where {client} = access.client
        """)
    if name in requests.LIMITS:
        return [(label, f"{requests.band(name)} = {sql.literal(label)}") for label in requests.bands(name)]
    if name == "prefix":
        rows = observed.ask(
            "select remote_prefix from observed where kept and remote_prefix is not null group by 1 "
            f"order by count(*) desc, 1 limit {requests.MOST_PREFIXES}"
        )
        return [(prefix, f"remote_prefix = {sql.literal(prefix)}") for (prefix,) in rows]
    return _of_table(observed, name)


def _of_table(observed: Observed, file: str) -> list[tuple[str, str]]:
    """Strata of a file with remote_prefix and another column, as of countries."""
    database = observed.fleet.database
    database.register("strata_rows", _strata_of(file))
    database.execute("create or replace temp table strata_table as from strata_rows")
    of = "remote_prefix in (select remote_prefix from strata_table where stratum = {})"
    rows = database.execute(
        "select stratum from strata_table join observed using (remote_prefix) "
        "where kept and stratum is not null group by 1 order by count(*) desc, 1 "
        f"limit {requests.MOST_VALUES}"
    ).fetchall()
    if not rows:
        raise UsageError(
            f"strata: {file}: none of its prefixes has a connection; expected networks as in the column remote_prefix, "
            "such as 192.0.2.0/24."
        )
    return [(value, of.format(sql.literal(value))) for (value,) in rows]


def _strata_of(file: str) -> pa.Table:
    """The file's remote_prefix and stratum, read by a database of its own: that of DATA opens nothing else."""
    import duckdb

    path = Path(file).absolute()
    with duckdb.connect() as database:
        sql.confine(database, [path])
        try:
            names = [row[0] for row in database.execute(f"describe from {sql.literal(str(path))}").fetchall()]
            others = [name for name in names if name != "remote_prefix"]
            if "remote_prefix" not in names or not others:
                raise UsageError(f"strata: {file}: got columns {', '.join(names)}; expected remote_prefix and another.")
            # The file's owner chose the name.
            column = sql.identifier(others[0])
            query = f"select remote_prefix, cast({column} as varchar) as stratum from {sql.literal(str(path))}"
            return database.sql(query).to_arrow_table()
        except duckdb.Error as error:
            said = sql.first_said(error).partition("\n")[0].rstrip(". ")
            raise UsageError(f"strata: {file}: {said}; expected CSV or Parquet.") from None
