"""Registries in one form, wherever their parts come from: for `knee list` and for the pages of docs/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Column = Mapping[str, str]
Tables = Mapping[str, Sequence[Column]]

HOW = {
    "sum": "sum over the flows",
    "mean": "mean over the flows",
    "min": "least of the flows",
    "percentile": "percentile of the transfers; those that are not complete are later than all that are",
    "count": "number of flows that have it",
    "pooled": "over all flows together",
}
"""How the flows of a repetition make one value."""

_UNITS = {
    "rate": "bit/s",
    "time": "us",
    "pct": "%",
    "share": "share of 1",
    "per_sec": "1/s",
    "segments": "segments",
    "ns": "ns",
}


def tables() -> dict[str, Tables]:
    """The columns of every table, by the verb that writes it: `run` first."""
    from tcpknee import _core
    from tcpknee.datasets.dataset import OF_TRACES
    from tcpknee.imports import IMPORTERS
    from tcpknee.runs import columns

    traced = _core.tables("trace")
    imported = [table for kind in IMPORTERS.values() for table in kind.tables if not table.recorded]
    return {
        "run": columns.of_tables(),
        "record": _core.tables("recording"),
        "import": {table.name: list(table.columns) for table in imported},
        "trace": {name: traced[columns] for name, columns in OF_TRACES.items()},
        "profile": _core.tables("profile"),
        "fleet": _core.tables("fleet"),
        "snapshot": _core.tables("snapshot"),
    }


def metrics() -> list[dict[str, str]]:
    """Every metric of a group of flows and of a cell. The last are endings, of metrics of transfers of one size."""
    from tcpknee.evidence.metrics import METRICS, SIZES, TOTALS

    found = [
        {
            "name": prefix + metric.name,
            "unit": _UNITS.get(metric.kind, ""),
            "summary": f"{HOW[metric.how]}, of `{metric.column}`",
        }
        for prefix, listed in (("", METRICS), ("total.", TOTALS))
        for metric in listed
        if not metric.sizes
    ]
    return found + [
        {"name": f"*_{one.name}", "unit": "", "summary": f"the metric of transfers, of those of {one.label} alone"}
        for one in SIZES
    ]


def prometheus() -> list[dict[str, Any]]:
    """Every metric of `knee export --prometheus`."""
    from tcpknee.live.prometheus import catalogue

    parts: tuple[tuple[str, list[str], Sequence[catalogue.Metric]], ...] = (
        ("counter", ["algorithm"], (*catalogue.TCP_COUNTERS, catalogue.TCP_CLOSED)),
        ("counter", ["algorithm", "limit"], (catalogue.TCP_LIMITED,)),
        ("gauge", ["algorithm"], (catalogue.TCP_CONNECTIONS,)),
        ("histogram", ["algorithm"], catalogue.TCP_HISTOGRAMS),
        ("counter", [], catalogue.HOST_COUNTERS),
        ("gauge", [], catalogue.HOST_GAUGES),
        ("counter", ["device", "kind"], catalogue.QDISC_COUNTERS),
        ("gauge", ["device", "kind"], catalogue.QDISC_GAUGES),
        ("counter", [], catalogue.SAMPLING_COUNTERS),
        ("gauge", [], catalogue.SAMPLING_GAUGES),
        ("counter", ["mode"], (catalogue.SAMPLING_CPU,)),
        ("gauge", ["version", "kernel"], (catalogue.BUILD_INFO,)),
    )
    return [
        {
            "name": metric.name + ("_total" if kind == "counter" else ""),
            "type": kind,
            "labels": labels,
            "summary": metric.help,
        }
        for kind, labels, listed in parts
        for metric in listed
    ]


def counters() -> list[dict[str, str]]:
    """Every counter of `knee profile` and `--measure`: the columns of the table `host_costs` by their names."""
    from tcpknee import _core

    return [
        {"name": one["name"], "unit": one["unit"], "summary": one["doc"]}
        for one in _core.profile_registry()["counters"]
    ]


def claims() -> list[dict[str, Any]]:
    """Every published claim: what must hold for it, what the article has, and what came of it here."""
    from tcpknee.validation.claims import verdicts
    from tcpknee.validation.claims.catalogue import ARTICLES, CLAIMS

    results = verdicts.results()
    return [
        {
            "name": claim.id,
            "summary": claim.claim,
            "article": f"{claim.article} ({ARTICLES[claim.article]})",
            "must_hold": claim.shape,
            "figure": claim.figure,
            "engines": list(claim.engines),
            "ours": [f"{label} {value}" for label, value in results[claim.id][0]["ours"]] if results[claim.id] else [],
            "verdict": [f"{verdict} ({forms})" for verdict, forms in verdicts.by_verdict(results[claim.id]).items()],
            "limits": dict(claim.limits),
        }
        for claim in CLAIMS
    ]
