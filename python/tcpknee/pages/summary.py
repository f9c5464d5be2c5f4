"""The words and numbers of a page: the answer, the summary table, the foot."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tcpknee import human
from tcpknee.evidence import written
from tcpknee.evidence.metrics import BY_NAME
from tcpknee.evidence.stats import Estimate
from tcpknee.evidence.verdicts import Verdict, greater_first, price
from tcpknee.runs import beside, between_text, drift, ending, hosts_text
from tcpknee.runs.summary import Group

from . import palette
from .figures.limits import WORDS
from .run import Entrant, ReportRun, algorithm_axis, axis_name, is_algorithm_axis

#: Divisor and unit of each kind of metric in the page, the same in every table and figure.
UNITS = {"rate": (1e6, "Mbit/s"), "time": (1e3, "ms"), "pct": (1.0, "%"), "share": (0.01, "%"), "per_sec": (1.0, "1/s")}

#: Columns of the summary: metrics that stand in one cell, heading, is the interval shown?
COLUMNS: tuple[tuple[tuple[str, ...], str, bool], ...] = (
    (("goodput_bits_per_sec",), "Goodput", True),
    (("completion_us_p50", "completion_us_p95"), "Completion p50 / p95", False),
    (("slowdown_p50", "slowdown_p99"), "Slowdown p50 / p99", False),
    (("latency_us_p50", "latency_us_p95", "latency_us_p99"), "Latency p50 / p95 / p99", False),
    (("requests_per_sec",), "Requests", True),
    (("retransmit_pct",), "Retransmitted", False),
    (("srtt_us_p50", "srtt_us_p95"), "srtt p50 / p95", False),
    (("queue_delay_us_p95",), "Queue delay p95", False),
)


@dataclass(frozen=True)
class Value:
    text: str
    note: str = ""


@dataclass(frozen=True)
class Row:
    condition: str
    entrant: str
    colour: str
    flows: str
    """Their number in a repetition, where it is not 1."""
    values: list[Value]


def unit_of(metric: str) -> str:
    return UNITS.get(BY_NAME[metric].kind, (1.0, ""))[1]


def _number(estimate: Estimate | None, metric: str) -> str:
    if estimate is None:
        return "–"
    return written.plus_minus(estimate, UNITS.get(BY_NAME[metric].kind, (1.0, ""))[0])[0]


def _interval(estimate: Estimate | None, metric: str) -> str:
    if estimate is None:
        return ""
    if estimate.identical:
        return "identical in every repetition"
    return written.plus_minus(estimate, UNITS.get(BY_NAME[metric].kind, (1.0, ""))[0])[1]


def table(run: ReportRun) -> tuple[list[tuple[str, str]], list[Row]]:
    """(heading, unit) of each column and the rows, one per entrant; columns that nobody has are left out."""
    metrics = [*(group.metrics for _, group in run.measured), *(one.row.metrics for one in run.beside)]
    present = [column for column in COLUMNS if any(name in found for found in metrics for name in column[0])]
    totals = {total.cell: total for total in run.stats.totals}
    used = any("utilisation" in total.metrics for total in totals.values())
    heads = [(heading, unit_of(names[0])) for names, heading, _ in present] + [("Base RTT", "ms")]
    heads += [("Link used", "%")] if used else []
    heads.append(("Limited by", ""))
    rows = []

    def told(found: Mapping[str, Estimate]) -> list[Value]:
        values = []
        for names, _, with_interval in present:
            text = " / ".join(_number(found.get(name), name) for name in names)
            values.append(Value(text, _interval(found.get(names[0]), names[0]) if with_interval else ""))
        return values

    for entrant, group in run.measured:
        values = told(group.metrics)
        values.append(Value(base_rtt(run, entrant, group)))
        if used:
            values.append(Value(_number(totals[entrant.cell].metrics.get("utilisation"), "utilisation")))
        values.append(Value(limited_by(group)))
        rows.append(
            Row(
                run.conditions[entrant.condition].label,
                entrant.label,
                palette.colour(run.slots[entrant.algorithm]),
                _flow_count(group),
                values,
            )
        )
    for one in run.beside:
        values = [*told(one.row.metrics), Value(_number(one.row.metrics.get("min_rtt_us"), "min_rtt_us"))]
        values += [Value("–")] * (len(heads) - len(values))
        rows.append(Row("a path of its own", one.label, palette.colour(run.slots[one.algorithm]), "", values))
    return heads, rows


def _flow_count(group: Group) -> str:
    least, most = (f"{count(group.values['members']):.0f}" for count in (np.min, np.max))
    return f"{least} to {most}" if least != most else most if most != "1" else ""


def base_rtt(run: ReportRun, entrant: Entrant, group: Group) -> str:
    """What was measured without load, or what the scenario says; where neither is there, the least of the flows."""
    if rtt_ms := run.base_rtts_ms.get((entrant.cell, entrant.group)):
        return human.digits(rtt_ms)
    return _number(group.metrics.get("min_rtt_us"), "min_rtt_us")


def limited_by(group: Group) -> str:
    """What held it back, as the terminal says it, in the words of the chart."""
    return ", ".join(f"{WORDS[limit]} {100 * found.mean:.0f}\u00a0%" for limit, found in group.limits) or "–"


def answer(run: ReportRun) -> tuple[list[str], list[str]]:
    """What the run says on the metric that matters most: one sentence a pair, the widest difference first; and the
    verdicts behind it where there are several conditions. Of sampled paths what holds over all of them."""
    pairs: dict[tuple[str, _Pair], list[Verdict]] = defaultdict(list)
    places: dict[_Pair, set[tuple[int, int]]] = defaultdict(set)
    for verdict in run.stats.verdicts:
        pair = _pair(verdict)
        places[pair].add(verdict.places)
        if verdict.primary:
            pairs[verdict.metric, pair].append(verdict)
    heads, details = [], []
    for (metric, pair), verdicts in sorted(pairs.items(), key=lambda entry: -max(map(_weight, entry[1]))):
        placed = [_sentence(_placed(verdict, run, _with_price(verdict, run))) for verdict in verdicts]
        if len(places[pair]) == 1:
            heads += placed
            continue
        text = f"{BY_NAME[metric].label}: {_count(verdicts, len(places[pair]))}"
        heads.append(_sentence(": ".join(filter(None, [_flows(verdicts[0], run), text]))))
        details += placed
    over = [one for one in run.stats.over_paths if one.verdict.primary]
    over.sort(key=lambda one: -_weight(one.verdict))
    heads = [_sentence(_placed(one.verdict, run, one.text)) for one in over] or heads
    return heads or _alone(run), details


_Pair: TypeAlias = tuple[str, str, bool, tuple[int, int], tuple[tuple[str, str], ...]]


def _pair(verdict: Verdict) -> _Pair:
    """What a verdict compares: the same in every condition."""
    beside = tuple((key, value) for key, value in verdict.axes.items() if is_algorithm_axis(key))
    return verdict.a, verdict.b, verdict.shared, verdict.groups, beside


def _with_price(verdict: Verdict, run: ReportRun) -> str:
    cost = price(verdict, run.stats.verdicts)
    return f"{verdict.text}; but {cost.text}" if cost else verdict.text


def _alone(run: ReportRun) -> list[str]:
    """Where there is nothing to compare: what was measured."""
    name = "goodput_bits_per_sec"
    found = [(e.label, group.metrics[name]) for e, group in run.measured if name in group.metrics]
    if not found:
        return []
    if len(found) == 1:
        [(label, only)] = found
        return [f"Goodput: {label} {_number(only, name)} Mbit/s"]
    found.sort(key=lambda entry: entry[1].mean)
    return [f"Goodput: {_number(found[0][1], name)} to {_number(found[-1][1], name)} Mbit/s"]


def _weight(verdict: Verdict) -> float:
    """How much a verdict says: nothing unless it decides, then by its ratio either way."""
    if verdict.decision not in ("more", "less"):
        return 0.0
    return abs(math.log(verdict.found.mean)) if verdict.scale == "ratio" else math.inf


def _count(verdicts: list[Verdict], total: int) -> str:
    """ "bbr1 is above cubic in 6 of 9 conditions (1.2× to 3.1×); no difference shown in 2 of 9 conditions; not known in
    1 of 9 conditions"."""
    a, b = verdicts[0].a, verdicts[0].b
    words = {
        "more": f"{b} is above {a}",
        "less": f"{a} is above {b}",
        "same": "identical",
        "none shown": "no difference shown",
        "single": "one repetition, so no verdict,",
    }
    parts = []
    for decision in sorted(words, key=lambda word: -sum(verdict.decision == word for verdict in verdicts)):
        found = [verdict for verdict in verdicts if verdict.decision == decision]
        if not found:
            continue
        where = f"in all {total} conditions" if len(found) == total else f"in {len(found)} of {total} conditions"
        ratios = sorted((verdict for verdict in found if verdict.scale == "ratio"), key=_weight)
        spread = ""
        if decision in ("more", "less") and ratios:
            low, high = (greater_first(verdict)[2] for verdict in (ratios[0], ratios[-1]))
            spread = f" ({low})" if low == high else f" ({low} to {high})"
        parts.append(f"{words[decision]} {where}{spread}")
    if unknown := total - len(verdicts):
        parts.append(f"not known in {unknown} of {total} conditions")
    return "; ".join(parts)


def others(run: ReportRun) -> list[str]:
    """The remaining verdicts."""
    over = [one for one in run.stats.over_paths if not one.verdict.primary]
    rest = [_sentence(_placed(verdict, run)) for verdict in run.stats.verdicts if not verdict.primary]
    return [_sentence(_placed(one.verdict, run, one.text)) for one in over] + rest


def _placed(verdict: Verdict, run: ReportRun, text: str = "") -> str:
    """The verdict's text, or another of it, with the flows and the condition that it holds of."""
    varied = {key for condition in run.conditions for key, _ in condition.axes}
    where = ", ".join(f"{axis_name(key)} {value}" for key, value in verdict.axes.items() if key in varied)
    return ": ".join(filter(None, [_flows(verdict, run), where, text or verdict.text]))


def _flows(verdict: Verdict, run: ReportRun) -> str:
    """Which flow is compared and what the others run, where the text leaves it open: "up, with down (cubic)"."""

    def name(axis: str) -> str:
        group = int(axis.split(".")[1])
        return run.names.get(group, f"flow {group}")

    own = algorithm_axis(verdict.groups[0])
    is_open = len(run.algorithm_axes) > 1 and own in run.algorithm_axes and own not in verdict.axes
    # A flow without a name of its own is called as its algorithm.
    told = {algorithm_axis(group) for group in verdict.groups if group not in run.names}
    others = [
        f"{name(key)} ({value})" for key, value in verdict.axes.items() if is_algorithm_axis(key) and key not in told
    ]
    beside = f"with {' + '.join(others)}" if others else ""
    return ", ".join(filter(None, [name(own) if is_open else "", beside]))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def warnings(run: ReportRun) -> list[str]:
    of_hosts = (
        [*between_text.path(run.meta), *between_text.warnings(run.meta)] if run.meta.get("engine") == "hosts" else []
    )
    found = [*of_hosts, *beside.lines(run.run), *filter(None, [ending.text(run.meta)]), *drift.lines(run.run)]
    found += (line.strip() for line in hosts_text.lines(run.meta)[1:])
    found += [*(doubt.line for doubt in run.run.doubts), *run.stats.warnings]
    if run.meta.get("status") not in (None, "complete"):
        found.insert(
            0,
            f"This run is {run.meta['status']}: what stands here is of the repetitions that were finished. "
            "`knee run --resume` goes on with the others.",
        )
    return found


#: Columns explained at the foot, by table.
EXPLAINED = {
    "flows": (
        "goodput_bits_per_sec", "retransmit_pct", "srtt_us_p50", "srtt_us_p95", "min_rtt_us", "queue_delay_us_p95",
        "completion_us", "slowdown", "requests_per_sec", "latency_us_p50", "latency_us_p95", "latency_us_p99",
        "cwnd_limited_us", "rwnd_limited_us", "sndbuf_limited_us", "pacing_limited_us", "app_limited_us",
        "cpu_limited_us",
    ),
    "samples": ("snd_cwnd", "inflight", "pacing_rate_bits_per_sec", "delivery_rate_bits_per_sec", "srtt_us"),
    "queue": ("queue_bytes", "queue_bytes_max"),
}  # fmt: skip


def definitions(run: ReportRun) -> list[tuple[str, str, str, str]]:
    """(table.column, unit, meaning, source), from the columns' own metadata."""
    rows = []
    for name, columns in EXPLAINED.items():
        docs = run.field_docs.get(name, {})
        for column in columns:
            if column in docs:
                doc = docs[column]
                rows.append((f"{name}.{column}", doc.get("unit", ""), doc.get("doc", ""), doc.get("source", "")))
    return rows


Setting = tuple[str, list[str], str]


def described(run: ReportRun) -> tuple[list[Setting], list[Setting]]:
    """Rows (key, value per condition, doc): first the path and what differs, then every other setting.

    A value that all conditions share is given once.
    """
    columns = [
        {key: (value, doc) for key, value, doc in run.cells[condition.cells[0]].describe}
        for condition in run.conditions
    ]
    first: list[Setting] = []
    rest: list[Setting] = []
    for key in dict.fromkeys(key for column in columns for key in column):
        values = [column.get(key, ("–", ""))[0] for column in columns]
        doc = next(column[key][1] for column in columns if key in column)
        alike = len(set(values)) == 1
        row = key, values[:1] if alike else values, doc
        (first if key.startswith("path.") or not alike else rest).append(row)
    return first, rest


def facts(run: ReportRun) -> list[tuple[str, str]]:
    """Seed, versions, host: all that a second run needs to know."""
    meta = run.meta
    rows = [("engine", f"{meta.get('engine', '')} {meta.get('engine_version', '')}".strip())]
    rows += [("seed", str(meta.get("seed", ""))), ("repetitions", str(run.repetitions))]
    for group in ("versions", "host"):
        content = meta.get(group) or {}
        rows += [(f"{group}: {key}" if group == "host" else key, str(value)) for key, value in content.items()]
    return [(key, value) for key, value in rows if value]
