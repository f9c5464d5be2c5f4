"""A sample's numbers as metric families of `prometheus_client`."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from tcpknee import provenance
from tcpknee.say import printable

from . import catalogue
from .catalogue import Metric

Snapshot = dict[str, Any]
"""What `_core.export` publishes."""


class Families(Collector):
    """Everything as of one sample. Ordinary users name devices and cgroups, and terminals and pages show the answer: a
    harmful character stands in a label as an escape."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Family]:
        """The families, in the order of the catalogue."""
        yield from self._tcp()
        yield from self._host()
        yield from self._queues()
        yield from self._sampling()
        yield from ProcessCollector(registry=None).collect()

    def _tcp(self) -> Iterator[Family]:
        groups = self._snapshot["groups"]
        names = ["algorithm", *([self._snapshot["by"]] if self._snapshot["by"] else [])]
        values = [
            [printable(group[name]) for name in ("algorithm", "by") if group[name] is not None] for group in groups
        ]
        labelled = list(zip(values, groups, strict=True))
        connections = _gauge(catalogue.TCP_CONNECTIONS, names)
        closed = _counter(catalogue.TCP_CLOSED, names)
        limited = _counter(catalogue.TCP_LIMITED, [*names, "limit"])
        for labels, group in labelled:
            connections.add_metric(labels, group["connections"])
            closed.add_metric(labels, group["closed"])
            for limit, spent_us in group["limited_us"].items():
                limited.add_metric([*labels, limit], spent_us * catalogue.TCP_LIMITED.factor)
        yield from (connections, closed)
        for metric in catalogue.TCP_COUNTERS:
            counter = _counter(metric, names)
            for labels, group in labelled:
                counter.add_metric(labels, group["counters"][metric.key] * metric.factor)
            yield counter
        yield limited
        for metric in catalogue.TCP_HISTOGRAMS:
            histogram = HistogramMetricFamily(metric.name, metric.help, labels=names, unit=metric.unit)
            for labels, group in labelled:
                histogram.add_metric(labels, *_buckets(group["histograms"][metric.key], metric.factor))
            yield histogram

    def _host(self) -> Iterator[Family]:
        host = self._snapshot["host"]
        for metric in catalogue.HOST_COUNTERS:
            if metric.key in host:
                counter = _counter(metric, [])
                counter.add_metric([], host[metric.key])
                yield counter
        page_bytes = os.sysconf("SC_PAGESIZE")
        for metric in catalogue.HOST_GAUGES:
            if metric.key in host:
                gauge = _gauge(metric, [])
                # The kernel counts buffers in pages.
                gauge.add_metric([], host[metric.key] * (page_bytes if metric.unit == "bytes" else 1))
                yield gauge

    def _queues(self) -> Iterator[Family]:
        names = ["device", "kind"]
        for make, metrics in ((_counter, catalogue.QDISC_COUNTERS), (_gauge, catalogue.QDISC_GAUGES)):
            for metric in metrics:
                family = make(metric, names)
                for queue in self._snapshot["queues"]:
                    family.add_metric([printable(queue[name]) for name in names], queue[metric.key])
                yield family

    def _sampling(self) -> Iterator[Family]:
        sampling = self._snapshot["sampling"]
        for make, metrics in ((_counter, catalogue.SAMPLING_COUNTERS), (_gauge, catalogue.SAMPLING_GAUGES)):
            for metric in metrics:
                family = make(metric, [])
                family.add_metric([], sampling[metric.key] * metric.factor)
                yield family
        spent = _counter(catalogue.SAMPLING_CPU, ["mode"])
        for mode in ("user", "system"):
            spent.add_metric([mode], sampling["cpu"][f"{mode}_us"] * catalogue.SAMPLING_CPU.factor)
        yield spent
        build = _gauge(catalogue.BUILD_INFO, ["version", "kernel"])
        build.add_metric([provenance.engine_version(), platform.release()], 1)
        yield build


def _counter(metric: Metric, labels: list[str]) -> CounterMetricFamily:
    return CounterMetricFamily(metric.name, metric.help, labels=labels, unit=metric.unit)


def _gauge(metric: Metric, labels: list[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(metric.name, metric.help, labels=labels, unit=metric.unit)


def _buckets(histogram: dict[str, Any], factor: float) -> tuple[list[tuple[str, float]], float]:
    """Each edge with what is at most as much, and the sum of all values.

    An edge is the same text in each sample: 0.00005 and 50 times a millionth differ in their last bit.
    """
    total, buckets = 0, []
    edges = [floatToGoString(round(edge * factor, 12)) for edge in histogram["le"]]  # type: ignore[no-untyped-call]
    for edge, count in zip([*edges, "+Inf"], histogram["counts"], strict=True):
        total += count
        buckets.append((edge, float(total)))
    return buckets, histogram["sum"] * factor
