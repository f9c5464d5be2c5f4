"""The claims of article C about millions of connections, from a synthetic fleet (gallery/fleets/edge.toml).

Connections of at least 1 MB are compared, as in the article; the client's prefix is the unit of inference. All of these
checks read one fleet, which the first of them simulates beside the folders of the claims.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kneepoint import provenance
from kneepoint.evidence.expect import Outcome
from kneepoint.evidence.expressions import parse_figure

from .asked import Asked, Found, fact

if TYPE_CHECKING:
    from kneepoint.fleet import Comparison
    from kneepoint.fleet.cohorts.verdicts import Verdict
    from kneepoint.fleet.statistics import Interval, Tally

MIN_BYTES = 1_000_000


def retrans(asked: Asked) -> Found:
    """cubic < bbr2 < bbr1, each by a factor of 2."""
    cubic, bbr1 = _verdicts(asked, "retransmit_pct")
    outcomes = [
        _above("bbr1 / bbr2 of the mean retransmitted share >= 2", bbr1.ratio, 2),
        _above("bbr2 / cubic >= 1", cubic.ratio.inverted(), 1),
    ]
    return Found(outcomes, _middles(cubic, bbr1))


def throughput_low(asked: Asked) -> Found:
    """At P25, bbr2 is like cubic: neither is shown to be faster, or by less than 10 %."""
    found = _ratio(asked, "delivery_rate_bits_per_sec", "bbr2", "cubic", 0.25)
    same = found.low <= 1 <= found.high or (found.low > 0.9 and found.high < 1.1)
    outcome = fact("bbr2 / cubic of the delivery rate at P25 is 1, or within 10 % of it", same, _text(found))
    return Found([outcome], [("bbr2 ÷ cubic, P25", _text(found))])


def throughput_high(asked: Asked) -> Found:
    """cubic < bbr2 < bbr1 at the median, and bbr2 like bbr1 above."""
    rate = "delivery_rate_bits_per_sec"
    outcomes, ours = [], []
    for share, name in ((0.5, "P50"), (0.75, "P75")):
        for upper, lower in (("bbr2", "cubic"), ("bbr1", "bbr2")):
            found = _ratio(asked, rate, upper, lower, share)
            outcomes.append(_above(f"{upper} / {lower} of the delivery rate at {name} > 1", found, 1))
            ours.append((f"{upper} ÷ {lower}, {name}", _text(found)))
    return Found(outcomes, ours)


def inflight(asked: Asked) -> Found:
    """bbr1 has far more in flight than bbr2."""
    cubic, bbr1 = _verdicts(asked, "inflight_pkts")
    return Found([_above("bbr1 / bbr2 of the median in flight >= 1.5", bbr1.ratio, 1.5)], _middles(cubic, bbr1))


def inflight_vs_rtt(asked: Asked) -> Found:
    """What is in flight beyond the BDP grows faster with the RTT under bbr1."""
    from kneepoint.fleet.statistics import robust

    table = _connections(asked)
    keep = np.isin(table["algorithm"], ("bbr1", "bbr2"))
    needed = table["delivery_rate_bits_per_sec"] * table["min_rtt_us"] / 8e6 / 1448
    excess, rtt_ms = table["inflight_pkts"] - needed, table["min_rtt_us"] / 1000
    keep &= np.isfinite(excess) & np.isfinite(rtt_ms)
    first = table["algorithm"][keep] == "bbr1"
    x, y = rtt_ms[keep], excess[keep]
    columns = np.column_stack([first, first * x, ~first, ~first * x]).astype(np.float64)
    _, prefixes = np.unique(table["remote_prefix"][keep], return_inverse=True)
    slopes = [robust.contrast(columns, y, prefixes, np.array(of)) for of in ([0.0, 1, 0, 0], [0.0, 0, 0, 1])]
    apart = robust.contrast(columns, y, prefixes, np.array([0.0, 1, 0, -1]))
    outcome = _above("slope of the excess in flight on the least RTT: bbr1 - bbr2 > 0", apart, 0)
    ours = [(name, f"{_text(one)} packets/ms") for name, one in zip(("bbr1", "bbr2"), slopes, strict=True)]
    return Found([outcome], ours)


def rtt(asked: Asked) -> Found:
    """bbr2 has a lower RTT than bbr1."""
    cubic, bbr1 = _verdicts(asked, "srtt_us")
    return Found([_above("bbr1 / bbr2 of the median smoothed RTT > 1", bbr1.ratio, 1)], _middles(cubic, bbr1))


def rwnd_limited(asked: Asked) -> Found:
    """bbr2 is less limited by the receiver's window."""
    cubic, bbr1 = _verdicts(asked, "rwnd_limited_pct")
    found = bbr1.ratio if bbr1.is_relative else bbr1.difference
    least = 1 if bbr1.is_relative else 0
    what = f"bbr1 {'/' if bbr1.is_relative else '-'} bbr2 of the mean share limited by the window > {least}"
    return Found([_above(what, found, least)], _middles(cubic, bbr1))


def reordering(asked: Asked) -> Found:
    """Fewer reordering events with bbr2, or no difference shown."""
    cubic, bbr1 = _verdicts(asked, "reord_seen")
    outcome = fact("bbr2 has fewer events than bbr1, or no difference is shown", bbr1.word != "better", bbr1.told)
    return Found([outcome], _middles(cubic, bbr1))


def minrtt_vs_bw(asked: Asked) -> Found:
    """The bands of access rates are found again in min_rtt against bandwidth."""
    bands = _true_rates(asked)
    rates = np.unique(list(bands.values()))
    table = _connections(asked)
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
    outcome = fact(what, share >= 0.9, f"{right} of {total} prefixes with 5 connections or more")
    return Found([outcome], [("prefixes in their band", f"{100 * share:.1f} % of {total}")])


def _above(what: str, found: Interval, least: float) -> Outcome:
    """Whether the whole interval is above it; across it is undecided."""
    verdict = "holds" if found.low >= least else "fails" if found.high < least else "undecided"
    return Outcome(what, 0, verdict, _text(found))


def _text(found: Interval) -> str:
    from kneepoint.fleet.cohorts.verdicts import interval_of

    return f"{interval_of('', found)} ({found.clusters} clusters)"


def _middles(*verdicts: Verdict) -> list[tuple[str, str]]:
    """Each cohort's value, and that of bbr2, which is the baseline."""
    from kneepoint.fleet.cohorts.verdicts import interval_of

    kind = verdicts[0].metric.kind
    found = [(one.cohort, interval_of(kind, one.value)) for one in verdicts]
    return [*found, ("bbr2", interval_of(kind, verdicts[0].base))]


def _verdicts(asked: Asked, metric: str) -> tuple[Verdict, Verdict]:
    """Those about cubic and bbr1, each against bbr2."""
    found = _compared(_fleet(asked))
    return found.verdict(metric, "cubic"), found.verdict(metric, "bbr1")


@cache
def _compared(folder: Path) -> Comparison:
    from kneepoint import fleet

    return fleet.compare(folder, by="algorithm", baseline="bbr2", min_bytes=MIN_BYTES)


def _ratio(asked: Asked, metric: str, upper: str, lower: str, share: float) -> Interval:
    """Of a percentile that a verdict is not about."""
    from kneepoint.fleet import statistics

    table = _connections(asked)

    def tally(name: str) -> Tally:
        chosen = table["algorithm"] == name
        clusters = statistics.cluster_hashes(list(table["remote_prefix"][chosen]))
        return statistics.tally(table[metric][chosen], clusters)

    return statistics.ratio(tally(upper), tally(lower), share, seed=asked.seed)


def _connections(asked: Asked) -> dict[str, np.ndarray]:
    return _read(_fleet(asked))


@cache
def _read(folder: Path) -> dict[str, np.ndarray]:
    from kneepoint.fleet import connections

    columns = ("algorithm", "remote_prefix", "delivery_rate_bits_per_sec", "min_rtt_us", "inflight_pkts")
    table = connections.read([folder], columns, where=f"bytes_acked >= {MIN_BYTES}")
    return {name: table[name].to_numpy() for name in columns}


def _true_rates(asked: Asked) -> dict[str, float]:
    """The access rate of each prefix, from what the fleet was made of."""
    import csv

    with (_fleet(asked) / "paths.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["prefix"]: float(parse_figure(row["path.rate"]).quantity.values[0]) for row in rows}


_MADE: dict[int, Path] = {}
"""Fleets that this process has made or found, by their seed."""


def _fleet(asked: Asked) -> Path:
    """The fleet that all these claims share, simulated where it is not there yet. It has no short form: paths differ so
    much that fewer of them tell nothing."""
    from kneepoint.fleet import synthetic

    folder = _MADE.get(asked.seed, asked.folder)
    if not (folder / "fleet.json").is_file():
        folder = asked.folder.parent / f"fleet-seed-{asked.seed}-{provenance.engine_version()}"
    if not (folder / "fleet.json").is_file():
        synthetic.write(synthetic.read("edge").changed(seed=asked.seed), folder)
    _MADE[asked.seed] = folder
    return folder
