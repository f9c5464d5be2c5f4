"""Where softirqs ran: the share of the busiest processor, in the steady part of a repetition."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from support import cell, flow, flows
from tcpknee.runs.summary import summarise

SHARE = "softirq_share_of_busiest_cpu"
OTHERS = dict.fromkeys(("run_us", "user_us", "system_us"), 0)


def of_run(softirq_us: Mapping[str, list[int | None]], warmup_ns: int) -> float | None:
    """The share in a run whose processors had these counters after 1, 2, 3 … s."""
    rows = [
        {"cell": 0, "rep": 0, "t_ns": (n + 1) * 10**9, "name": name, **OTHERS, "softirq_us": us}
        for name, values in softirq_us.items()
        for n, us in enumerate(values)
    ]
    spec = {**cell(0, ()), "warmup_ns": warmup_ns}
    [total] = summarise(flows([flow(0, 0, 1e6)]), None, [spec], cpu=pa.Table.from_pylist(rows)).totals
    found = total.metrics.get(SHARE)
    return found.mean if found else None


def test_counters_of_the_warm_up_do_not_count() -> None:
    counters: dict[str, list[int | None]] = {"cpu0": [900, 910, 920], "cpu1": [0, 20, 60]}
    assert of_run(counters, warmup_ns=10**9) == pytest.approx(60 / 80)
    assert of_run(counters, warmup_ns=2 * 10**9) == pytest.approx(40 / 50)


def test_the_steady_part_begins_with_its_first_sample() -> None:
    """As for every other share of the processors' time: what a counter held then, it held before."""
    assert of_run({"cpu0": [900, 910], "cpu1": [0, 30]}, warmup_ns=0) == pytest.approx(30 / 40)
    assert of_run({"cpu0": [900], "cpu1": [100]}, warmup_ns=0) is None


def test_threads_have_no_softirqs_and_a_run_without_any_no_share() -> None:
    assert of_run({"cpu0": [0, 30], "cpu1": [0, 10], "link/main": [None, None]}, 0) == pytest.approx(0.75)
    assert of_run({"cpu0": [5, 5], "cpu1": [5, 5]}, 0) is None
