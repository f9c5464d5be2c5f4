"""The claims of article C about millions of connections, from a synthetic fleet (gallery/fleets/edge.toml).

Connections of at least 1 MB are compared, as in the article, and all of them where it shows counters of its hosts. The
client's prefix is the unit of inference. All of these checks read one fleet, which the first of them simulates beside
the folders of the claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tcpknee import provenance
from tcpknee.evidence.expect import Outcome
from tcpknee.evidence.expressions import parse_figure

from .check import Found, Request, fact

if TYPE_CHECKING:
    from tcpknee.fleet import Comparison
    from tcpknee.fleet.cohorts.verdicts import Verdict
    from tcpknee.fleet.statistics import Interval, Tally

MIN_BYTES = 1_000_000

_PREFIXES = 4800
"""Of the mix: as many as decide nearly all that its own 240, the short form, leave open."""

_NEAR_S = 0.005
"""What Wi-Fi gathers on both ways, and a packet's own time at 8 Mbit/s, may add to a base RTT; timestamps count whole
milliseconds, and may take one off."""


def retrans(request: Request) -> Found:
    """cubic < bbr2 < bbr1, of all segments of the hosts: the article has the counters of its hosts, which know no
    connections."""
    table = _connections(request, min_bytes=0)
    outcomes = [
        _above("bbr1 / bbr2 of the retransmitted share of all segments >= 2", retransmitted(table, "bbr1", "bbr2"), 2),
        _above("bbr2 / cubic >= 1", retransmitted(table, "bbr2", "cubic"), 1),
    ]
    ours = []
    for name in ("cubic", "bbr1", "bbr2"):
        chosen = table["algorithm"] == name
        sent, again = (float(table[column][chosen].sum()) for column in ("data_segs_out", "total_retrans"))
        ours.append((name, f"{100 * again / sent:.3g} % of {sent / 1e6:.3g} million"))
    return Found(outcomes, ours)


def throughput_low(request: Request) -> Found:
    """At P25, bbr2 is like cubic."""
    found = ratio(_connections(request), "delivery_rate_bits_per_sec", 0.25, "bbr2", "cubic")
    outcome = _alike("bbr2 / cubic of the delivery rate at P25", found)
    return Found([outcome], [("bbr2 ÷ cubic, P25", _text(found))])


def throughput_high(request: Request) -> Found:
    """cubic < bbr2 < bbr1 at the median, and bbr2 like bbr1 above."""
    rate = "delivery_rate_bits_per_sec"
    outcomes, ours = [], []
    for share, name in ((0.5, "P50"), (0.75, "P75")):
        for upper, lower in (("bbr2", "cubic"), ("bbr1", "bbr2")):
            found = ratio(_connections(request), rate, share, upper, lower)
            what = f"{upper} / {lower} of the delivery rate at {name}"
            fast = (upper, name) == ("bbr1", "P75")
            outcomes.append(_alike(what, found) if fast else _above(f"{what} > 1", found, 1))
            ours.append((f"{upper} ÷ {lower}, {name}", _text(found)))
    return Found(outcomes, ours)


def inflight(request: Request) -> Found:
    """bbr1 has far more in flight than bbr2, and bbr2 no more than cubic: medians over all samples of `unacked`, as the
    article has them, so that a connection counts as often as it was seen."""
    samples = _samples(_fleet(request))
    found = {
        (upper, lower): _over(samples, "unacked", 0.5, upper, lower, None)
        for upper, lower in (("bbr1", "bbr2"), ("bbr2", "cubic"))
    }
    outcomes = [
        _above("bbr1 / bbr2 of the median in flight >= 1.5", found["bbr1", "bbr2"], 1.5),
        _below("bbr2 / cubic of the median in flight <= 1.05", found["bbr2", "cubic"], 1.05),
    ]
    ours = [(f"{upper} ÷ {lower}", _text(one)) for (upper, lower), one in found.items()]
    return Found(outcomes, [*ours, *_middles(*_verdicts(request, "inflight_pkts"))])


def inflight_vs_rtt(request: Request) -> Found:
    """What is in flight grows faster with the RTT under bbr1, as the article plots it; beside it, beyond the BDP."""
    table = _connections(request)
    slopes = inflight_slopes(table, excess=False)
    outcome = _above("slope of what is in flight on the smoothed RTT: bbr1 - bbr2 > 0", slopes[2], 0)
    ours = [
        (f"{name}{what}", f"{_text(one)} packets/ms")
        for what, found in ((", in flight", slopes), (", beyond the BDP", inflight_slopes(table, excess=True)))
        for name, one in zip(("bbr1", "bbr2"), found, strict=False)
    ]
    return Found([outcome], ours)


def inflight_slopes(table: Mapping[str, np.ndarray], *, excess: bool) -> tuple[Interval, Interval, Interval]:
    """Packets in flight per ms of the smoothed RTT, or those beyond the BDP per ms of the least: of bbr1, of bbr2, and
    the difference."""
    from tcpknee.fleet.statistics import robust

    keep = np.isin(table["algorithm"], ("bbr1", "bbr2"))
    needed = table["delivery_rate_bits_per_sec"] * table["min_rtt_us"] / 8e6 / 1448
    found = table["inflight_pkts"] - (needed if excess else 0)
    rtt_ms = table["min_rtt_us" if excess else "srtt_us"] / 1000
    keep &= np.isfinite(found) & np.isfinite(rtt_ms)
    first = table["algorithm"][keep] == "bbr1"
    x, y = rtt_ms[keep], found[keep]
    columns = np.column_stack([first, first * x, ~first, ~first * x]).astype(np.float64)
    _, prefixes = np.unique(table["remote_prefix"][keep], return_inverse=True)
    of_bbr1, of_bbr2, apart = (
        robust.contrast(columns, y, prefixes, np.array(of, dtype=np.float64))
        for of in ([0, 1, 0, 0], [0, 0, 0, 1], [0, 1, 0, -1])
    )
    return of_bbr1, of_bbr2, apart


def rtt(request: Request) -> Found:
    """bbr2 has a lower RTT than bbr1, and no lower one than cubic."""
    cubic, bbr1 = _verdicts(request, "srtt_us")
    outcomes = [
        _above("bbr1 / bbr2 of the median smoothed RTT > 1", bbr1.ratio, 1),
        _below("cubic / bbr2 of the median smoothed RTT <= 1.05", cubic.ratio, 1.05),
    ]
    return Found(outcomes, _middles(cubic, bbr1))


def rwnd_limited(request: Request) -> Found:
    """bbr2 is less limited by the receiver's window."""
    cubic, bbr1 = _verdicts(request, "rwnd_limited_pct")
    found = bbr1.ratio if bbr1.is_relative else bbr1.difference
    least = 1 if bbr1.is_relative else 0
    what = f"bbr1 {'/' if bbr1.is_relative else '-'} bbr2 of the mean share limited by the window > {least}"
    return Found([_above(what, found, least)], _middles(cubic, bbr1))


def reordering(request: Request) -> Found:
    """Fewer reordering events with bbr2, or no difference shown, where there are any."""
    cubic, bbr1 = _verdicts(request, "reord_seen")
    seen = [verdict.value.low > 0 for verdict in (cubic, bbr1)]
    outcomes = [
        fact("paths reorder: cubic and bbr1 have seen events", all(seen), bbr1.told),
        fact("bbr2 has fewer events than bbr1, or no difference is shown", bbr1.word != "better", bbr1.told),
    ]
    return Found(outcomes, _middles(cubic, bbr1))


def minrtt_vs_bw(request: Request) -> Found:
    """The bands of access rates are found again in min_rtt against bandwidth."""
    bands = _true(request, "path.rate")
    rates = np.unique(list(bands.values()))
    table = _connections(request)
    known = np.isfinite(table["delivery_rate_bits_per_sec"])
    right = total = 0
    for prefix in np.unique(table["remote_prefix"][known]):
        chosen = table["delivery_rate_bits_per_sec"][known & (table["remote_prefix"] == prefix)]
        if len(chosen) >= 5:
            highest = np.quantile(chosen, 0.95)
            nearest = rates[np.argmin(np.abs(np.log(rates / highest)))]
            right, total = right + int(nearest == bands[prefix]), total + 1
    share = right / max(total, 1)
    what = "the P95 of a prefix's delivery rates is nearest to its own band, for at least 90 % of prefixes"
    outcomes = [
        fact(what, share >= 0.9, f"{right} of {total} prefixes with 5 connections or more"),
        _distances(_true(request, "path.rtt"), table),
    ]
    return Found(
        outcomes,
        [
            ("prefixes in their band", f"{100 * share:.1f} % of {total}"),
            ("prefixes at their distance", outcomes[1].detail),
        ],
    )


def _distances(rtts_s: Mapping[str, float], table: Mapping[str, np.ndarray]) -> Outcome:
    """A band of min_rtt is a distance: the least of a prefix is its base RTT."""
    known = np.isfinite(table["min_rtt_us"])
    apart_s = [
        table["min_rtt_us"][known & (table["remote_prefix"] == prefix)].min() / 1e6 - rtts_s[prefix]
        for prefix in np.unique(table["remote_prefix"][known])
    ]
    right = sum(abs(apart) <= _NEAR_S for apart in apart_s)
    what = "the least min_rtt of a prefix is within 5 ms of its base RTT, for at least 90 % of prefixes"
    return fact(what, right >= 0.9 * len(apart_s), f"{right} of {len(apart_s)} prefixes")


def _alike(what: str, found: Interval) -> Outcome:
    """Whether the whole interval is within 10 % of 1; across that is undecided."""
    what = f"{what} is within 10 % of 1"
    ends = (_above(what, found, 0.9), _below(what, found, 1.1))
    return max(ends, key=lambda end: (("holds", "undecided", "fails").index(end.verdict), end.needed or 0))


def _above(what: str, found: Interval, least: float) -> Outcome:
    """Whether the whole interval is above it; across it is undecided."""
    verdict = "holds" if found.low >= least else "fails" if found.high < least else "undecided"
    return Outcome(what, 0, verdict, _text(found), _needed(found, least) if verdict == "undecided" else None)


def _below(what: str, found: Interval, most: float) -> Outcome:
    """Whether the whole interval is below it; across it is undecided."""
    verdict = "holds" if found.high <= most else "fails" if found.low > most else "undecided"
    return Outcome(what, 0, verdict, _text(found), _needed(found, most) if verdict == "undecided" else None)


def _needed(found: Interval, limit: float) -> int | None:
    """So many prefixes would decide, if the value stays: an interval narrows with the root of their number."""
    apart = abs(found.value - limit)
    half = found.high - found.value if limit > found.value else found.value - found.low
    return int(np.ceil(found.clusters * (half / apart) ** 2)) if apart > 0 and np.isfinite(half) else None


def _text(found: Interval) -> str:
    from tcpknee.fleet.cohorts.verdicts import interval_of

    return f"{interval_of('', found)} ({found.clusters} clusters)"


def _middles(*verdicts: Verdict) -> list[tuple[str, str]]:
    """Each cohort's value, and that of bbr2, which is the baseline."""
    from tcpknee.fleet.cohorts.verdicts import interval_of

    kind = verdicts[0].metric.kind
    found = [(one.cohort, interval_of(kind, one.value)) for one in verdicts]
    return [*found, ("bbr2", interval_of(kind, verdicts[0].base))]


def _verdicts(request: Request, metric: str) -> tuple[Verdict, Verdict]:
    """Those about cubic and bbr1, each against bbr2."""
    found = _compared(_fleet(request))
    return found.verdict(metric, "cubic"), found.verdict(metric, "bbr1")


@cache
def _compared(folder: Path) -> Comparison:
    from tcpknee import fleet

    return fleet.compare(folder, by="algorithm", baseline="bbr2", min_bytes=MIN_BYTES, cluster="prefix")


def ratio(table: Mapping[str, np.ndarray], column: str, share: float, upper: str, lower: str) -> Interval:
    """A percentile of one algorithm's connections over the other's."""
    return _over(table, column, share, upper, lower, None)


def retransmitted(table: Mapping[str, np.ndarray], upper: str, lower: str) -> Interval:
    """Retransmissions among all segments of one algorithm, over the other's: a connection weighs as much as it sent."""
    return _over(table, "retransmit_pct", None, upper, lower, "data_segs_out")


def _over(
    table: Mapping[str, np.ndarray], column: str, share: float | None, upper: str, lower: str, weights: str | None
) -> Interval:
    from tcpknee.fleet import statistics

    def tally(name: str) -> Tally:
        chosen = table["algorithm"] == name
        clusters = statistics.cluster_hashes(list(table["remote_prefix"][chosen]))
        weight = None if weights is None else table[weights][chosen].astype(np.float64)
        return statistics.tally(table[column][chosen], clusters, weights=weight)

    return statistics.ratio(tally(upper), tally(lower), share, seed=1)


def _connections(request: Request, *, min_bytes: int = MIN_BYTES) -> dict[str, np.ndarray]:
    return read(_fleet(request), min_bytes)


@cache
def read(folder: Path, min_bytes: int = MIN_BYTES) -> dict[str, np.ndarray]:
    """Connections of a fleet that moved as much, with the columns that are judged."""
    from tcpknee.fleet import connections

    columns = (
        "algorithm",
        "remote_prefix",
        "delivery_rate_bits_per_sec",
        "min_rtt_us",
        "srtt_us",
        "inflight_pkts",
        "data_segs_out",
        "total_retrans",
        "retransmit_pct",
    )
    table = connections.read([folder], columns, where=f"bytes_acked >= {min_bytes}")
    return {name: table[name].to_numpy() for name in columns}


@cache
def _samples(folder: Path) -> dict[str, np.ndarray]:
    """Each sample of a connection that has moved as much by then and waits for ACKs."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    columns = ["algorithm", "remote_addr", "unacked"]
    files = sorted(folder.glob("host-*/sockets-*.parquet"))
    chosen = (pc.field("bytes_acked") >= MIN_BYTES) & (pc.field("unacked") > 0)
    table = ds.dataset(files).to_table(columns, filter=chosen)
    found = {name: table[name].to_numpy(zero_copy_only=False) for name in columns}
    prefixes = [f"{address.rpartition('.')[0]}.0/24" for address in found.pop("remote_addr")]
    return found | {"remote_prefix": np.array(prefixes, dtype=object)}


def _true(request: Request, key: str) -> dict[str, float]:
    """A value of each prefix' path, from what the fleet was made of."""
    import csv

    with (_fleet(request) / "paths.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["prefix"]: float(parse_figure(row[key]).quantity.values[0]) for row in rows}


_MADE: dict[tuple[int, int], Path] = {}
"""Fleets that this process has made or found, by their seed and prefixes."""


def _fleet(request: Request) -> Path:
    """The fleet that all these claims share, simulated where it is not there yet."""
    from tcpknee.fleet import synthetic

    mix = synthetic.read("edge").changed(seed=request.seed)
    if not request.quick:
        mix = mix.changed(prefixes=_PREFIXES)
    key = (mix.seed, mix.prefixes)
    folder = _MADE.get(key, request.folder)
    if not (folder / "fleet.json").is_file():
        folder = request.folder.parent / f"fleet-{mix.prefixes}-seed-{mix.seed}-{provenance.engine_version()}"
    if not (folder / "fleet.json").is_file():
        synthetic.write(mix, folder, workers=request.workers, watcher=request.watcher)
    _MADE[key] = folder
    return folder
