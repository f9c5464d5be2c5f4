"""What the hosts of a lab spent, from its tables; and which instruments may be asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from tcpknee.cli.app import app
from tcpknee.errors import UsageError
from tcpknee.runs import api, hosts, measuring
from tcpknee.runs.groups import Part

CELLS = {0: {"index": 0, "warmup_ns": 1_000_000_000, "duration_ns": 3_000_000_000}}


def part(group: int, **values: float) -> Part:
    return Part(0, group, "a", "cubic", "bulk", np.array([0]), {name: np.array([one]) for name, one in values.items()})


def cpu(rows: list[tuple[float, str, int, int | None, int | None, int | None]]) -> pa.Table:
    names = ("run_us", "user_us", "system_us", "softirq_us")
    return pa.Table.from_pylist(
        [
            {"cell": 0, "rep": 0, "t_ns": int(t * 1e9), "name": name, **dict(zip(names, spent, strict=True))}
            for t, name, *spent in rows
        ]
    )


def counted(**counters: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"cell": 0, "rep": 0, "host": host, "counter": name, "value": value}
            for host, name, value in [
                *(("sender", name, value) for name, value in counters.items()),
                ("receiver", "acks_sent", 40),
                ("receiver", "data_skbs_sent", 0),
                ("machine", "data_skbs_sent", 10**9),
            ]
        ]
    )


def added(
    cpu: pa.Table | None, costs: pa.Table | None, requests: float = np.nan, answered: float = np.nan
) -> dict[str, Any]:
    totals = [part(-1, delivered_bytes=2e6, answered=answered)]
    (found,) = hosts.added(totals, [part(0, requests_per_sec=requests)], CELLS, cpu, costs)
    return {name: float(values[0]) for name, values in found.values.items()}


ROWS = [
    # Within the warm-up: nothing of it counts.
    (0.5, "sender/main", 0, None, None, None),
    (0.5, "cpu0", 0, 0, 0, 0),
    (1.0, "sender/main", 900_000, None, None, None),
    (1.0, "link/data", 0, None, None, None),
    (1.0, "cpu0", 0, 100, 1_000, 10_000),
    (1.0, "cpu1", 0, 100, 1_000, 10_000),
    (2.0, "sender/main", 950_000, None, None, None),
    (3.0, "sender/main", 1_000_000, None, None, None),
    (3.0, "link/data", 2_000_000, None, None, None),
    (3.0, "cpu0", 0, 200_100, 401_000, 50_000),
    (3.0, "cpu1", 0, 200_100, 1_000, 10_000),
    (3.0, "cpu_of_mine/main", 60_000, None, None, None),
]


def test_time_per_byte_is_of_the_hosts_threads_and_of_interrupts_after_the_warm_up() -> None:
    found = added(cpu(ROWS), None)
    # 100 ms of the sender and 40 ms in interrupts, in 2 s in which 2 MB were delivered.
    assert found["cpu_ns_per_byte"] == pytest.approx(140e6 / 2e6)
    assert found["cpu_user_share"] == pytest.approx(0.1)
    assert found["cpu_system_share"] == pytest.approx(0.1)
    assert found["cpu_softirq_share"] == pytest.approx(0.01)
    assert np.isnan(found["cpu_ns_per_request"])


def test_time_per_request_is_of_those_answered_meanwhile() -> None:
    # What programs print is a rate: of the 2 s.
    assert added(cpu(ROWS), None, requests=1_000.0)["cpu_ns_per_request"] == pytest.approx(140e6 / 2_000)
    # Flows that were done after 0.1 s know how many there were.
    assert added(cpu(ROWS), None, requests=1_000.0, answered=100)["cpu_ns_per_request"] == pytest.approx(140e6 / 100)


def test_other_work_on_processors_of_the_model_is_not_the_hosts() -> None:
    found = added(cpu(ROWS), counted(cpu_ns=1_000_000, data_skbs_sent=1, acks_sent=0))
    assert found["cpu_ns_per_byte"] == pytest.approx(0.5)


def test_a_repetition_that_ended_within_its_warm_up_has_no_share() -> None:
    found = added(cpu(ROWS[:2]), None)
    assert np.isnan(found["cpu_user_share"]) and np.isnan(found["cpu_ns_per_byte"])


def test_timers_of_tcp_count_per_data_skb_of_both_hosts_and_the_qdiscs_do_not() -> None:
    costs = counted(pacing_timer_fires=30, qdisc_timer_fires=20, data_skbs_sent=100, acks_sent=1)
    found = added(None, costs)
    assert found["timer_fires_per_data_skb"] == pytest.approx(0.3)
    assert (found["data_skbs"], found["acks_sent"]) == (100, 41)


def test_without_the_instrument_of_timers_there_are_none_per_data_skb() -> None:
    found = added(None, counted(data_skbs_sent=100, acks_sent=1))
    assert np.isnan(found["timer_fires_per_data_skb"]) and found["data_skbs"] == 100
    assert all(np.isnan(added(None, None)[name]) for name in hosts.METRICS)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"measure": ["timer"], "engine": "kernel"}, 'measure: got "timer"; .*timers'),
        ({"measure": ["timers"], "engine": "sim"}, "measure: got it with the engine sim"),
        ({"measure": ["timers"], "engine": "kernel", "workers": 2}, "measure: got it with 2 workers; expected one"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_runs(given: dict[str, Any], said: str) -> None:
    text = 'duration = "1s"\n[path]\nrate = "10Mbit/s"\nrtt = "40ms"\n[[flow]]\nalgorithm = "cubic"\n'
    with pytest.raises(UsageError, match=said):
        api.run(text, **given)


def test_the_help_of_measure_names_every_instrument() -> None:
    text = " ".join(CliRunner().invoke(app, ["run", "--help"]).output.split())
    assert ", ".join(measuring.names()) in text
