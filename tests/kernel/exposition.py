"""Prometheus' rules for names and values, as `promtool check metrics` has them, and some that it has not.

Source: prometheus.io/docs/practices/naming, prometheus.io/docs/instrumenting/exposition_formats.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

TYPES = ("counter", "gauge", "histogram", "summary", "untyped")
# What stands for what in a name: base units alone are right.
NOT_BASE = {
    *("milliseconds", "microseconds", "nanoseconds", "minutes", "hours", "days", "percent", "bits", "kilobytes"),
    *("megabytes", "ms", "us", "ns", "sec", "s", "b", "kb", "mb", "pct", "usec", "msec"),
}


def sample_names(text: str) -> set[str]:
    """Every name that a query could ask for, also of families that have no sample yet."""
    names = set(re.findall(r"^([a-zA-Z_:][\w:]*)(?:\{| )", text, re.M))
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M):
        names |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"} if kind == "histogram" else {name}
    return names


def problems(text: str) -> list[str]:
    """What is wrong with an exposition in the text format 0.0.4."""
    return [*_lines(text), *_names(text), *_histograms(text_string_to_metric_families(text))]


def _lines(text: str) -> Iterator[str]:
    if not text.endswith("\n"):
        yield "the last line has no end"
    for kind in ("HELP", "TYPE"):
        for name, times in Counter(re.findall(rf"^# {kind} (\S+)", text, re.M)).items():
            if times > 1:
                yield f"{name}: {times} lines of {kind}"
    series = Counter(line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#"))
    yield from (f"{name}: told {times} times" for name, times in series.items() if times > 1)


def _names(text: str) -> Iterator[str]:
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.M))
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M):
        words = name.split("_")
        if not helps.get(name, "").strip():
            yield f"{name}: no help"
        if kind not in TYPES:
            yield f"{name}: is a {kind}"
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            yield f"{name}: is not in snake_case"
        if (kind == "counter") != name.endswith("_total"):
            yield f"{name}: is a {kind}, and _total is for counters"
        if kind != "histogram" and name.endswith(("_bucket", "_count", "_sum")):
            yield f"{name}: ends as a histogram's parts do"
        if found := NOT_BASE & set(words):
            yield f"{name}: {found} is no base unit"
        if found := {"counter", "gauge", "histogram", "summary"} & set(words):
            yield f"{name}: {found} is its type"


def _histograms(families: Iterable[Metric]) -> Iterator[str]:
    for family in families:
        if family.type != "histogram":
            continue
        buckets: dict[frozenset[tuple[str, str]], list[tuple[float, float]]] = {}
        counts, sums = {}, {}
        for sample in family.samples:
            labels = frozenset((name, value) for name, value in sample.labels.items() if name != "le")
            if sample.name.endswith("_bucket"):
                buckets.setdefault(labels, []).append((float(sample.labels["le"]), sample.value))
            else:
                (counts if sample.name.endswith("_count") else sums)[labels] = sample.value
        if not buckets.keys() == counts.keys() == sums.keys():
            yield f"{family.name}: buckets, count and sum are of different labels"
        for labels, found in buckets.items():
            if [edge for edge, _ in found] != sorted({edge for edge, _ in found}) or not math.isinf(found[-1][0]):
                yield f"{family.name}: edges do not rise to +Inf"
            if [count for _, count in found] != sorted(count for _, count in found):
                yield f"{family.name}: a bucket has less than the one below it"
            if found[-1][1] != counts.get(labels):
                yield f"{family.name}: the count is not that of the last bucket"
