"""Can the cohorts be compared? Each check says what it found in a sentence, or nothing."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tcpknee import human
from tcpknee.datasets.sql import literal
from tcpknee.errors import RunFolderError
from tcpknee.fleet.connections import Fleet
from tcpknee.fleet.connections.clusters import NETWORK
from tcpknee.fleet.statistics import FEW, Tally, mismatch, ratio

from .metrics import Metric
from .observed import MAIN_SHARE, Observed

SHARED_AT_MOST = 0.05
"""Share of connections behind networks that the other cohort uses too, above which cohorts influence each other."""

UNLIKE = 0.1
"""Relative difference of medians above which cohorts are not of one population."""

HOURS_APART = 0.2
"""Share of connections that would have to move to other hours for cohorts to have the same."""

WRONG_AT_MOST = 0.01
"""Share of connections that may contradict the assignment log: those that were open while it changed."""

ROUNDED_PCT = 0.5
"""What shares of arms may lack of 100 % by rounding."""

_LACKING = "an arm of which there is none"
_YEAR_2001, _DAY = 978_307_200_000_000_000, 86_400_000_000_000
_PERCENT = ("retransmit_pct", "loss_pct", "rwnd_limited_pct", "sndbuf_limited_pct", "ce_pct", "busy_pct")
UNIT_FACTOR = 6.0
"""By how much hosts' rates may differ from what they delivered before a unit is doubted: bytes for bits are 8."""


def refusals(observed: Observed) -> Iterator[str]:
    """What makes figures wrong, so that nothing is said of them unless partial results were asked for."""
    fleet, cohorts = observed.fleet, observed.cohorts
    yield from _units(fleet)
    yield from _clocks(observed)
    yield from _log_disagrees(observed)
    rows = observed.ask(
        "select cohort, count(*), count(*) filter (where triggered is not false) from observed where kept group by 1"
    )
    for cohort, count, affected in rows:
        if cohort in cohorts and not affected:
            yield (
                f"all {count:,} connections of {cohort} are limited by the application or never left their initial "
                "window: no algorithm could show in them"
            )


def check_data(observed: Observed, *, partial: bool) -> None:
    """Raises RunFolderError with the first refusal; `partial` notes them all."""
    for why in refusals(observed):
        sentence = why if why.endswith("?") else f"{why}."
        if not partial:
            raise RunFolderError(f"DATA: {sentence} --partial compares all the same, and says so.")
        observed.fleet.notes.append(f"not to be relied on: {sentence}")


def _units(fleet: Fleet) -> Iterator[str]:
    """Values that cannot be in the units that their names say."""
    limits = [f"max({name}) > 100.001 or min({name}) < 0" for name in _PERCENT]
    rows = fleet.database.execute(
        f"""
        select host_id, {", ".join(limits)}, median(min_rtt_us), median(srtt_us),
               median(delivery_rate_bits_per_sec / goodput_bits_per_sec), count(delivery_rate_bits_per_sec)
        from observed group by host_id
        """
    ).fetchall()
    ratios = sorted(row[-2] for row in rows if row[-2] is not None)
    usual = ratios[len(ratios) // 2] if ratios else None
    for host, *told in rows:
        wrong = [name for name, is_wrong in zip(_PERCENT, told, strict=False) if is_wrong]
        least, smoothed, rate, known = told[len(_PERCENT) :]
        if wrong:
            yield f"{host}: {wrong[0]} is outside 0 to 100: are its units mixed?"
        if least is not None and smoothed is not None and (smoothed < least / 2 or not 1 <= least <= 6e7):
            yield (
                f"{host}: median srtt_us {smoothed:g} with median min_rtt_us {least:g}: they cannot both be in us; are "
                "units mixed?"
            )
        if rate is not None and usual and known >= 20 and not 1 / UNIT_FACTOR < rate / usual < UNIT_FACTOR:
            yield (
                f"{host}: its delivery rates are {human.digits(rate)} times its goodput, on other hosts "
                f"{human.digits(usual)} times: is one of them in other units than bit/s?"
            )


def _clocks(observed: Observed) -> Iterator[str]:
    rows = observed.ask(
        "select host_id, min(begin_unix_ns), max(end_unix_ns) from observed group by host_id order by host_id"
    )
    future = time.time_ns() + _DAY
    for host, begin, end in rows:
        # Runs count from their own beginning.
        if begin is not None and begin > 0 and (end > future or 1e15 < begin < _YEAR_2001):
            times = f"{_when(begin)} to {_when(end)}"
            yield f"{host}: its rows are of {times}: its clock is wrong, or t_unix_ns is not in ns"


def _when(t_ns: int) -> str:
    from datetime import datetime, timedelta, timezone

    try:
        return (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=t_ns // 1000)).isoformat(
            sep=" ", timespec="minutes"
        )
    except OverflowError:
        return f"{t_ns} ns"


def _log_disagrees(observed: Observed) -> Iterator[str]:
    """Connections whose algorithm is not that of their arm, and such as the log assigned after they ended."""
    if observed.fleet.log is None:
        return
    arms = dict(
        observed.ask("select arm, any_value(algorithm) from assignments where algorithm is not null group by arm")
    )
    if arms:
        cases = " ".join(f"when {literal(arm)} then {literal(algorithm)}" for arm, algorithm in arms.items())
        [(known, wrong)] = observed.ask(
            f"select count(*), count(*) filter (where algorithm <> case arm {cases} end) from observed "
            "where arm is not null and algorithm is not null"
        )
        if wrong > WRONG_AT_MOST * max(known, 1):
            yield (
                f"the assignment log disagrees with the data: {wrong:,} of {known:,} connections have another "
                "algorithm than that of their arm"
            )
    [(known, late)] = observed.ask(
        "select count(*), count(*) filter (where log.t_unix_ns > observed.end_unix_ns + 1000000000) from observed "
        "join (select boot_id, cookie, min(t_unix_ns) as t_unix_ns from assignments where cookie is not null "
        "group by 1, 2) as log using (boot_id, cookie)"
    )
    if late > WRONG_AT_MOST * max(known, 1):
        yield (
            f"the assignment log disagrees with the data: {late:,} of {known:,} connections ended before they were "
            "assigned; do the clocks of the hosts differ?"
        )


def warnings(observed: Observed, tallies: dict[str, dict[str, Tally]], adoption: dict[str, float]) -> Iterator[str]:
    """What to know before a verdict is believed."""
    yield from _hosts_of_one_cohort(observed)
    yield from _mismatch(observed)
    yield from _sharing(observed, adoption)
    yield from _mix(observed, tallies)
    yield from _hours(observed)
    yield from _hosts_apart(observed)
    for cohort in observed.cohorts:
        yield from _few_clusters(cohort, [found for found in tallies[cohort].values() if found.rows])


def _few_clusters(cohort: str, known: Sequence[Tally]) -> Iterator[str]:
    """Metrics of one cluster have no interval, those of a few one that is too uncertain."""
    if any(found.clusters < 2 for found in known):
        of = "" if all(found.clusters < 2 for found in known) else " of some metrics"
        yield (
            f"{cohort} has 1 cluster{of}: its values are known and not how sure they are, so that they stand without "
            "interval and verdict. Another --cluster, such as host, day or period, may divide it into more"
        )
    least = min((found for found in known if found.clusters > 1), key=lambda one: one.effective, default=None)
    if least is not None and least.effective < FEW:
        of = "" if all(found.effective < FEW for found in known) else " of some metrics"
        yield (
            f"{cohort} has {human.counted(least.clusters, 'cluster')}{of} that know as much as "
            f"{human.digits(least.effective, 2)} equal ones: with fewer than {FEW} intervals are not to be trusted"
        )


def _mismatch(observed: Observed) -> Iterator[str]:
    """Shares of arms observed and intended, of each design, link and step; units that were drawn are counted."""
    # Arms of a switchback have whole periods, as many as were intended. A table without units tells prefixes.
    rows = observed.ask("""
        select design, link, period, arm, any_value(allocation_pct), count(*),
               count(distinct case when design = 'cluster' then coalesce(unit, remote_prefix) else unit end)
        from observed where arm is not null and allocation_pct is not null and design <> 'switchback'
        group by design, link, period, arm order by design, link, period, arm
    """)
    for part in dict.fromkeys(row[:3] for row in rows):
        design, own = part[0], [row[3:] for row in rows if row[:3] == part]
        has_units = all(row[3] for row in own)
        unit = 3 if has_units else 2
        observed_counts = {row[0]: int(row[unit]) for row in own}
        intended = {row[0]: float(row[1]) for row in own if row[1]}
        lacking = 100 - sum(intended.values())
        # What was asked for may have left an arm out; where nothing was, its connections are missing.
        if lacking > ROUNDED_PCT and not observed.request.where:
            observed_counts[_LACKING], intended[_LACKING] = 0, lacking
        if len(observed_counts) < 2 or set(intended) != set(observed_counts) or not sum(observed_counts.values()):
            continue
        found = mismatch(observed_counts, intended)
        if found.suspicious:
            what = "units" if has_units else "connections"
            told = ", ".join(
                f"{arm} {count:,} {what} where {100 * found.intended[arm]:.3g} % were intended"
                for arm, count in observed_counts.items()
            )
            yield (
                f"sample-ratio mismatch in design {design} (p {found.p_value:.1g}): {told}. Assignment or recording "
                "favours an arm; believe no metric before it is known why"
            )


def _hosts_of_one_cohort(observed: Observed) -> Iterator[str]:
    """Where whole hosts are of a cohort, hosts that differ are taken for cohorts that do."""
    request = observed.request
    if request.by in ("host", "host_id") or (request.by == "arm" and observed.fleet.log is not None):
        return
    rows = observed.ask("""
        with parts as (
            select host_id, cohort, count(*) as n from observed where kept and host_id is not null group by all
        )
        select arg_max(cohort, n), max(n) / sum(n) from parts group by host_id
    """)
    hosts = Counter(cohort for cohort, _ in rows)
    if len(hosts) < 2 or min(share for _, share in rows) < MAIN_SHARE:
        return
    told = ", ".join(f"{cohort} {human.counted(hosts[cohort], 'host')}" for cohort in observed.cohorts)
    unaware = "" if request.cluster == "host" else ", of which the intervals know nothing: --cluster host counts hosts"
    yield (
        f"each host has one cohort ({told}): whatever else differs between these hosts, as their users and links, is "
        f"taken for the cohorts' difference{unaware}. `knee assign` gives every host both, and --before takes out what "
        "differed earlier"
    )


def _sharing(observed: Observed, adoption: dict[str, float]) -> Iterator[str]:
    """Do cohorts share bottlenecks? Two that are behind one network in the same hour may."""
    rows = observed.ask(f"""
        with seen as (
            select cohort, {NETWORK} as network, coalesce(period, begin_unix_ns // 3600000000000) as time, count(*) as n
            from observed where kept and network is not null group by all
        ),
        met as (select network, time, count(*) as cohorts from seen group by all)
        select sum(n) filter (where cohorts > 1 and cohort <> {literal(observed.baseline)}) as shared,
               sum(n) filter (where cohort <> {literal(observed.baseline)})
        from seen join met using (network, time)
    """)
    [(shared, known)] = rows
    if not known:
        yield (
            "no client prefix is known, so nothing says whether cohorts share bottlenecks: if they do, this compares "
            "one against the other, not what happens when all use it"
        )
    elif (shared or 0) / known > SHARED_AT_MOST:
        most = max(adoption[name] for name in observed.cohorts[1:])
        yield (
            f"interference: {100 * shared / known:.0f} % of the connections that are not {observed.baseline} are "
            "behind prefixes that another cohort uses in the same hour. Where they share bottlenecks this says who "
            f"wins against the other at {100 * most:.2g} % adoption, not what happens when all use it; even the sign "
            "may differ. `knee assign --design cluster`, `switchback` or `paired-link` estimate that"
        )


def _mix(observed: Observed, tallies: dict[str, dict[str, Tally]]) -> Iterator[str]:
    """Paths and sizes that differ between cohorts."""
    sizes = Metric("bytes_acked", "bytes moved", "bytes", 0, "P50")
    moved = {cohort: observed.tallies(cohort, [sizes])["bytes_acked"] for cohort in observed.cohorts}
    for cohort in observed.cohorts[1:]:
        for name, label in (("min_rtt_us", "least RTT"), ("bytes_acked", "size")):
            a, b = (
                moved[one] if name == "bytes_acked" else tallies[one].get(name) for one in (cohort, observed.baseline)
            )
            if a is None or b is None or not a.rows or not b.rows:
                continue
            found = ratio(a, b, 0.5, seed=observed.request.seed)
            if math.isnan(found.low):
                continue
            if max(found.value, 1 / found.value) > 1 + UNLIKE and not found.low <= 1 <= found.high:
                advice = _of_rtts(observed) if name == "min_rtt_us" else ""
                yield (
                    f"not alike: the median {label} of {cohort} is {human.digits(found.value)} times that of "
                    f"{observed.baseline}{'; ' + advice if advice else ''}"
                )


def _of_rtts(observed: Observed) -> str:
    """What to do about least RTTs that differ: an algorithm that keeps queues full raises them itself."""
    if observed.fleet.log is not None:
        return "as arms were drawn, this comes of chance or of the queues that they keep; do not weight by it"
    return (
        "--strata rtt compares like with like, and with --reweight rtt as well its bands count alike. Where one of "
        "them keeps queues full, that is part of its least RTT, and bands hide it"
    )


def _hours(observed: Observed) -> Iterator[str]:
    """Hours of the day that differ between cohorts."""
    rows = observed.ask("""
        select cohort, begin_unix_ns // 3600000000000 % 24 as hour, count(*) as n
        from observed where kept and begin_unix_ns > 1000000000000000 group by 1, 2
    """)
    shares: dict[str, dict[int, float]] = {}
    for cohort, hour, count in rows:
        shares.setdefault(cohort, {})[hour] = count
    for own in shares.values():
        total = sum(own.values())
        own.update({hour: count / total for hour, count in own.items()})
    base = shares.get(observed.baseline)
    for cohort in observed.cohorts[1:]:
        mine = shares.get(cohort)
        if base is None or mine is None:
            continue
        apart = sum(abs(mine.get(hour, 0) - base.get(hour, 0)) for hour in range(24)) / 2
        # Of few connections shares differ by chance.
        if apart > HOURS_APART and min(observed.counts.kept[cohort], observed.counts.kept[observed.baseline]) >= 1000:
            yield (
                f"not alike: {100 * apart:.0f} % of the connections of {cohort} are of other hours of the day than "
                f"those of {observed.baseline}; networks are busier at some"
            )


def _hosts_apart(observed: Observed) -> Iterator[str]:
    """Hosts that were recorded at quite different times."""
    rows = observed.ask(
        "select host_id, min(begin_unix_ns) as b, max(end_unix_ns) as e from observed "
        "where begin_unix_ns > 1000000000000000 group by host_id order by b"
    )
    for (first, _, end), (then, begin, _) in pairwise(rows):
        if begin - end > _DAY:
            yield (
                f"{then} begins {human.duration(begin - end)} after {first} ends: the hosts were recorded on different "
                "days, or a clock is wrong"
            )
