"""A comparison as text of at most 100 columns: verdicts first."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tcpknee import human
from tcpknee.fleet.statistics import Interval
from tcpknee.say import aligned

from .effects import MetricEffect
from .metrics import QUANTILES, Metric
from .verdicts import UNKNOWN, Verdict

if TYPE_CHECKING:
    from .comparison import Comparison

WIDTH = 100


def lines(found: Comparison) -> Iterator[str]:
    """Writes the lines of a comparison."""
    yield from _wrapped(_what(found))
    for warning in found.warnings:
        yield from _wrapped(f"warning: {warning}.", indent="  ")
    for cohort in found.cohorts[1:]:
        yield ""
        yield f"{cohort} against {found.baseline}, at {_share(found.counts.adoption(cohort))} adoption of {cohort}:"
        own = [one for one in found.verdicts if one.cohort == cohort and _is_seen(found, one.metric)]
        yield from _verdicts(found, own) if own else ["  No metric to compare: none is known of both, or all are 0."]
        yield from _wrapped(_p_values(own), indent="  ")
        yield from _wrapped(_same(own), indent="  ")
        yield from _further(found, cohort)
    yield from _values(found)
    zero = [metric.label for metric in found.metrics if not _is_seen(found, metric)]
    if zero:
        yield from _wrapped(f"0 for 99 % of the connections of every cohort: {', '.join(zero)}.")
    yield from _strata(found)
    yield ""
    yield from _wrapped(_how(found))


def _what(found: Comparison) -> str:
    counts = found.counts
    compared = sum(counts.kept[name] for name in found.cohorts)
    parts = [f"{human.counted(compared, 'connection')} compared of {counts.total:,}, by {found.request.by}."]
    left = [
        (counts.unknown, f"tell no {found.request.by}"),
        (counts.too_small, f"moved less than {found.request.min_bytes / 1e6:g} MB"),
        (counts.not_triggered if found.request.triggered else 0, "never left the initial window or were app-limited"),
        (counts.without_cluster, f"are of no {found.request.cluster or 'unit'}"),
    ]
    told = [f"{_share(count / counts.total)} {why}" for count, why in left if count]
    if told:
        parts.append(f"Left out: {', '.join(told)}.")
    if counts.not_triggered and not found.request.triggered:
        parts.append(
            f"{_share(counts.not_triggered / counts.total)} never left the initial window or were app-limited, which "
            "dilutes differences: --triggered leaves them out."
        )
    return " ".join(parts)


def _verdicts(found: Comparison, listed: list[Verdict]) -> Iterator[str]:
    rows = [["", "verdict", listed[0].cohort, listed[0].baseline, "ratio or difference", _sure(found)]]
    for one in listed:
        divisor, unit = _scale(found, one.metric)
        values = [human.digits(end.value / divisor) for end in (one.value, one.base)]
        sure = _least(one, divisor) if found.request.detect is None else _clusters(one, found.request.detect)
        rows.append([f"{_name(one.metric)} {unit}".rstrip(), one.word, *values, one.apart, sure])
    for line in aligned(rows, left=[True, True, False, False, False, False]):
        yield f"  {line}"


def _sure(found: Comparison) -> str:
    """The last column: what such data would show, or how much would show what was asked for."""
    return "least" if found.request.detect is None else f"for {100 * found.request.detect:g} %"


def _clusters(one: Verdict, share: float) -> str:
    needed = one.clusters_to_detect(share)
    return "-" if needed is None else f"{needed:,}"


def _least(one: Verdict, divisor: float) -> str:
    if not one.is_relative:
        return human.digits(one.least / divisor, 2)
    return f"> {100 * _MOST_LEAST:.0f} %" if one.least >= _MOST_LEAST else f"{human.digits(100 * one.least, 2)} %"


_MOST_LEAST = 10
"""What shows no smaller difference shows none: how large it had to be is no figure."""


def _p_values(listed: list[Verdict]) -> str:
    """Of every metric, alone and corrected; "" where none has any."""
    told = [
        f"{one.metric.label} {_p(one.p_value)}, {_p(one.p_adjusted)}"
        for one in listed
        if one.p_adjusted == one.p_adjusted
    ]
    return f"  p alone, and among all comparisons: {'; '.join(told)}." if told else ""


def _same(listed: list[Verdict]) -> str:
    """Which metrics are others by another name here; "" where none is."""
    told = [f"{one.metric.label} is {one.same_as.label}" for one in listed if one.same_as is not None]
    return f"  The same in every connection, so that each pair is one comparison: {'; '.join(told)}." if told else ""


def _p(value: float) -> str:
    return "<.001" if value < 0.001 else f"{value:.3f}".lstrip("0") if value < 1 else "1"


def _scale(found: Comparison, metric: Metric) -> tuple[float, str]:
    """Divisor and unit of a metric wherever it is shown: those in which the largest cohort's value reads best."""
    values = [abs(own[metric.name][metric.middle].value) for own in found.values.values() if metric.name in own]
    return human.scale("" if metric.kind == "packets" else metric.kind, max(filter(math.isfinite, values), default=0.0))


def _further(found: Comparison, cohort: str) -> Iterator[str]:
    again = [one for one in found.reweighted if one.cohort == cohort]
    if again:
        yield f"  with equal shares of {found.request.reweight}:"
        yield from _verdicts(found, again)
    yield from _effects([one for one in found.effects if one.arm == cohort and _is_seen(found, one.metric)])
    for one in found.adjusted:
        if one.cohort == cohort:
            yield from _wrapped(one.told, indent="  ")


def _effects(listed: list[MetricEffect]) -> Iterator[str]:
    """What the design tells beyond the comparison."""
    told = [one for one in listed if one.is_known]
    if told:
        rows = [[f"by design {told[0].effect.design}, of the mean", "total effect", "spillover"]]
        rows += [[one.metric.label, one.total, one.spillover] for one in told]
        for line in aligned(rows, left=[True, False, False]):
            yield f"  {line}"
    elif listed:
        yield f"  The design {listed[0].effect.design} has too few units to tell the total effect."


def _values(found: Comparison) -> Iterator[str]:
    """Quantiles; behind each half the width of its interval."""
    rows = [["", "", *QUANTILES, "n"]]
    for metric in filter(lambda metric: _is_seen(found, metric), found.metrics):
        own = {
            cohort: found.values[cohort][metric.name] for cohort in found.cohorts if metric.name in found.values[cohort]
        }
        divisor, unit = _scale(found, metric)
        name = f"{metric.label} {unit}".rstrip()
        for cohort, values in own.items():
            cells = [_cell(values[one], divisor) for one in QUANTILES]
            rows.append([name, cohort, *cells, f"{values['P50'].n:,}"])
            name = ""
    if len(rows) > 1:
        yield ""
        yield from aligned(rows, left=[True, True, *(False for _ in QUANTILES), False])


def _is_seen(found: Comparison, metric: Metric) -> bool:
    """Has it another value than 0 for one of a hundred somewhere, or is something shown of it?"""
    told = any(one.word in _SHOWN for one in found.verdicts if one.metric == metric)
    return told or any(own[metric.name]["P99"].value for own in found.values.values() if metric.name in own)


def _cell(found: Interval, divisor: float) -> str:
    value = human.digits(found.value / divisor)
    if not math.isfinite(found.high - found.low) or not found.value:
        return value
    half = 100 * (found.high - found.low) / 2 / abs(found.value)
    return f"{value} ±{human.digits(half, 1)}%"


def _strata(found: Comparison) -> Iterator[str]:
    """One line per stratum and cohort, with what it shows."""
    if not found.strata:
        return
    yield ""
    rows = [["stratum", "cohort", "n", "shows"]]
    for stratum in found.strata:
        for cohort in found.cohorts[1:]:
            own = [one for one in stratum.verdicts if one.cohort == cohort]
            words = [f"{one.metric.label} {one.word}" for one in own if one.word in _SHOWN]
            count = f"{stratum.connections.get(cohort, 0):,}"
            head = [f"{stratum.name} {stratum.label}", cohort, count]
            known = any(one.word != UNKNOWN for one in own)
            nothing = "no difference shown" if known else UNKNOWN if own else "no connection of one of the two"
            for line in textwrap.wrap(", ".join(words) or nothing, 52):
                rows.append([*head, line])
                head = ["", "", ""]
    yield from aligned(rows, left=[True, True, False, True])


_SHOWN = ("better", "worse", "higher", "lower")


def _how(found: Comparison) -> str:
    sure = (
        "the smallest increase that such data would show four times of five; a decrease by the same factor shows as "
        "often"
        if found.request.detect is None
        else "how many clusters of each cohort would show that difference four times of five; more connections of the "
        "same clusters help little"
    )
    count = sum(one.counts for one in found.verdicts)
    return (
        f"Unit of inference: {found.clusters}. Intervals are 95 %, of a bootstrap over clusters; verdicts are "
        f"corrected for {human.counted(count, 'comparison')} (Benjamini-Hochberg, 5 %). {_sure(found)}: "
        f"{sure}. ±: half of an interval's width."
    )


def _name(metric: Metric) -> str:
    return f"{metric.label} {metric.middle}"


def _share(share: float) -> str:
    return f"{human.digits(100 * share, 2)} %"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent)
