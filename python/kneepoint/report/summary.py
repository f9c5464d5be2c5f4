"""The words and numbers of a page: the answer, the summary table, the foot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kneepoint import human
from kneepoint.metrics import BY_NAME
from kneepoint.report import palette
from kneepoint.report.figures.limits import WORDS
from kneepoint.report.run import Entrant, ReportRun
from kneepoint.stats import Estimate, Group

#: Divisor and unit of each kind of metric in the page, the same in every table and figure.
UNITS = {"rate": (1e6, "Mbit/s"), "time": (1e3, "ms"), "pct": (1.0, "%"), "share": (0.01, "%"), "per_sec": (1.0, "1/s")}

#: Columns of the summary: metrics that stand in one cell, heading, is the interval shown?
COLUMNS: tuple[tuple[tuple[str, ...], str, bool], ...] = (
    (("goodput_bits_per_sec",), "Goodput", True),
    (("completion_us_p50", "completion_us_p95"), "Completion p50 / p95", False),
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
    flows: int
    values: list[Value]


def unit_of(metric: str) -> str:
    return UNITS.get(BY_NAME[metric].kind, (1.0, ""))[1]


def _number(estimate: Estimate | None, metric: str) -> str:
    if estimate is None:
        return "–"
    return human.digits(estimate.mean / UNITS.get(BY_NAME[metric].kind, (1.0, ""))[0])


def _interval(estimate: Estimate | None, metric: str) -> str:
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    if estimate.identical:
        return "identical in every repetition"
    divisor = UNITS.get(BY_NAME[metric].kind, (1.0, ""))[0]
    return human.interval(estimate.low / divisor, estimate.high / divisor)


def table(run: ReportRun) -> tuple[list[tuple[str, str]], list[Row]]:
    """(heading, unit) of each column and the rows, one per entrant; columns that nobody has are left out."""
    present = [
        column for column in COLUMNS if any(name in group.metrics for _, group in run.measured for name in column[0])
    ]
    totals = {total.cell: total for total in run.stats.totals}
    used = any("utilisation" in total.metrics for total in totals.values())
    heads = [(heading, unit_of(names[0])) for names, heading, _ in present] + [("Base RTT", "ms"), ("Limited by", "")]
    heads += [("Link used", "%")] if used else []
    rows = []
    for entrant, group in run.measured:
        values = []
        for names, _, with_interval in present:
            text = " / ".join(_number(group.metrics.get(name), name) for name in names)
            values.append(Value(text, _interval(group.metrics.get(names[0]), names[0]) if with_interval else ""))
        values.append(Value(base_rtt(run, entrant, group)))
        values.append(Value(limited_by(group)))
        if used:
            values.append(Value(_number(totals[entrant.cell].metrics.get("utilisation"), "utilisation")))
        rows.append(
            Row(
                run.conditions[entrant.condition].label,
                entrant.label,
                palette.colour(run.slots[entrant.algorithm]),
                len(entrant.flows),
                values,
            )
        )
    return heads, rows


def base_rtt(run: ReportRun, entrant: Entrant, group: Group) -> str:
    """What the scenario says; where it does not say, the least that was measured."""
    cell: Mapping[str, Any] = next((c for c in run.meta.get("cells", ()) if c["index"] == entrant.cell), {})
    specs = [flow for flow in cell.get("flows", ()) if flow.get("group") == entrant.group]
    rtt_ns = (specs[0].get("rtt_ns") if specs else None) or cell.get("rtt_ns")
    if rtt_ns:
        return human.digits(rtt_ns / 1e6)
    return _number(group.metrics.get("min_rtt_us"), "min_rtt_us")


def limited_by(group: Group) -> str:
    """The greatest share, and the second where it is near."""
    shares = sorted(((e.mean, limit) for limit, e in group.limited_by.items()), reverse=True)
    shown = [pair for k, pair in enumerate(shares) if pair[0] >= 0.05 and (k == 0 or pair[0] >= shares[0][0] / 2)]
    return ", ".join(f"{WORDS[limit]} {100 * share:.0f} %" for share, limit in shown[:2]) or "–"


def answer(run: ReportRun) -> list[str]:
    """Verdicts on what matters most, one sentence each."""
    primary = [verdict for verdict in run.stats.verdicts if verdict.primary]
    sentences = []
    for verdict in primary:
        where = ", ".join(f"{key} {value}" for key, value in _named(verdict.axes.items(), run))
        sentences.append(f"{where}: {verdict.text}" if where else verdict.text)
    return sentences


def others(run: ReportRun) -> list[str]:
    """The remaining verdicts."""
    sentences = []
    for verdict in run.stats.verdicts:
        if not verdict.primary:
            where = ", ".join(f"{key} {value}" for key, value in _named(verdict.axes.items(), run))
            sentences.append(f"{where}: {verdict.text}" if where else verdict.text)
    return sentences


def _named(axes: Iterable[tuple[str, str]], run: ReportRun) -> list[tuple[str, str]]:
    from kneepoint.report.run import axis_name, is_algorithm_axis

    return [(axis_name(key), value) for key, value in axes if not is_algorithm_axis(key)]


def outcomes(run: ReportRun) -> list[Any]:
    """Each [[expect]] of the scenario with its outcome."""
    from kneepoint import expect

    expects = [(str(assertion), int(line)) for assertion, line in run.meta.get("expects") or ()]
    return expect.evaluate(expects, run.stats, list(run.meta["cells"])) if expects else []


def warnings(run: ReportRun) -> list[str]:
    found = list(run.stats.warnings)
    if run.meta.get("status") not in (None, "complete"):
        found.insert(0, f"This run is {run.meta['status']}: what stands here is of the repetitions that were finished.")
    return found


#: Columns explained at the foot, by table.
EXPLAINED = {
    "flows": (
        "goodput_bits_per_sec", "retransmit_pct", "srtt_us_p50", "srtt_us_p95", "min_rtt_us", "queue_delay_us_p95",
        "completion_us", "requests_per_sec", "latency_us_p50", "latency_us_p95", "latency_us_p99",
        "cwnd_limited_us", "rwnd_limited_us", "sndbuf_limited_us", "pacing_limited_us", "app_limited_us",
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


def described(run: ReportRun) -> tuple[list[str], list[tuple[str, list[str], str]]]:
    """Condition labels and rows (key, value per condition, doc): what alike cells share is said once."""
    columns = [run.cells[condition.cells[0]].describe for condition in run.conditions]
    keys = list(dict.fromkeys(key for rows in columns for key, _, _ in rows))
    found = [{key: (value, doc) for key, value, doc in rows} for rows in columns]
    table = []
    for key in keys:
        values = [part.get(key, ("–", ""))[0] for part in found]
        doc = next((part[key][1] for part in found if key in part), "")
        table.append((key, values[:1] if len(set(values)) == 1 else values, doc))
    return [condition.label for condition in run.conditions], table


def facts(run: ReportRun) -> list[tuple[str, str]]:
    """Seed, versions, host: all that a second run needs to know."""
    meta = run.meta
    rows = [("engine", str(meta.get("engine", ""))), ("seed", str(meta.get("seed", "")))]
    rows.append(("repetitions", str(run.repetitions)))
    for group in ("versions", "host"):
        content = meta.get(group) or {}
        rows += [(f"{group} {key}".replace("_", " "), str(value)) for key, value in content.items()]
    return [(key, value) for key, value in rows if value]
