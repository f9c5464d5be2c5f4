"""The native module: tables without copies, runs that can be watched and stopped, errors of the front's classes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from tcpknee import _core
from tcpknee.errors import Cancelled, EngineError, ScenarioError

SHORT = """
title = "short"
duration = "2s"
repeat = 2
[path]
rate = "20Mbit/s"
rtt = "40ms"
[[flow]]
algorithm = ["reno", "cubic"]
[[expect]]
assert = "cubic.goodput > 1Mbit/s"
"""

# Enough work that it cannot end before the test has acted on it.
LONG = SHORT.replace('"2s"', '"3600s"').replace("20Mbit/s", "1Gbit/s")


@pytest.fixture(scope="module")
def scenario() -> _core.Scenario:
    return _core.parse(SHORT, "short.toml")


@pytest.fixture(scope="module")
def output(scenario: _core.Scenario) -> _core.Output:
    return scenario.run_cell(0, 0)


def addresses(table: pa.RecordBatch, column: str) -> int:
    return table.column(column).buffers()[1].address


@pytest.mark.parametrize("name", ["flows", "samples", "queue", "events"])
def test_a_table_has_the_columns_it_declares(output: _core.Output, name: str) -> None:
    batch = pa.record_batch(getattr(output, name))
    declared = _core.tables("run")[name]
    assert batch.num_rows == len(getattr(output, name)) > 0
    assert batch.schema.names == [column["name"] for column in declared]
    for column in declared:
        metadata = batch.schema.field(column["name"]).metadata
        assert {key.decode(): value.decode() for key, value in metadata.items()} == {
            key: column[key] for key in ("unit", "doc", "source")
        }
    batch.validate(full=True)


def test_every_way_into_arrow_shows_the_same_memory(output: _core.Output) -> None:
    as_batch = pa.record_batch(output.samples)
    as_table = pa.table(output.samples).to_batches()[0]
    again = pa.record_batch(output.samples)
    for column in ("cell", "t_ns", "snd_cwnd"):
        assert addresses(as_batch, column) == addresses(as_table, column) == addresses(again, column)


def test_a_table_outlives_the_run_that_made_it(scenario: _core.Scenario) -> None:
    batch = pa.record_batch(scenario.run_cell(0, 0).queue)
    times = batch.column("t_ns").to_pylist()
    assert times == sorted(times)
    assert 0 < times[-1] <= 2_000_000_000


def test_pandas_and_polars_read_the_same_numbers(output: _core.Output) -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    batch = pa.record_batch(output.samples)
    cwnd = batch.column("snd_cwnd").to_pylist()
    assert polars.DataFrame(output.samples)["snd_cwnd"].to_list() == cwnd
    assert pandas.DataFrame(batch.to_pandas())["snd_cwnd"].tolist() == cwnd


def test_what_never_is_null_says_so(output: _core.Output) -> None:
    schema = pa.record_batch(output.flows).schema
    assert not schema.field("bytes_read").nullable
    assert schema.field("completion_us").nullable
    assert pa.record_batch(output.flows).column("completion_us").to_pylist() == [None]


def test_the_same_repetition_twice_gives_the_same_tables(scenario: _core.Scenario) -> None:
    for name in ("flows", "samples", "queue", "events"):
        first, second = (pa.record_batch(getattr(scenario.run_cell(1, 1), name)) for _ in range(2))
        assert first.equals(second)


def test_a_scenario_tells_its_cells_and_expectations(scenario: _core.Scenario) -> None:
    assert (scenario.title, scenario.repeat, scenario.claim) == ("short", 2, None)
    assert scenario.expects == [("cubic.goodput > 1Mbit/s", 11)]
    reno, cubic = scenario.cells
    assert reno["axes"] == [("flow.0.algorithm", "reno")]
    assert cubic["flows"] == [{"group": 0, "name": "cubic", "algorithm": "cubic", "workload": "bulk", "count": 1}]
    assert (cubic["rate_bits_per_sec"], cubic["rtt_ns"], cubic["bdp_bytes"]) == (20_000_000, 40_000_000, 100_000)
    assert (cubic["buffer_bytes"], cubic["buffer_pkts"]) == (100_000, None)


def test_a_cell_says_what_its_settings_are_warned_of(scenario: _core.Scenario) -> None:
    assert [cell["cautions"] for cell in scenario.cells] == [[], []]
    slow = SHORT.replace('rate = "20Mbit/s"', 'rate = "10Mbit/s"\nqueue = "dualpi2"')
    (caution,) = _core.parse(slow, "slow.toml").cells[0]["cautions"]
    assert "takes 1200us at 10Mbit/s, longer than dualpi2.step = 1ms" in caution
    saved = slow.replace('"dualpi2"', '"dualpi2"\ndualpi2.min_qlen_step = 1')
    assert _core.parse(saved, "slow.toml").cells[0]["cautions"] == []


def test_a_scenario_that_cannot_be_read_is_refused_with_its_line() -> None:
    with pytest.raises(ScenarioError, match=r"^bad\.toml:5: path\.rate: "):
        _core.parse(SHORT.replace('"20Mbit/s"', "20").replace("repeat = 2\n", ""), "bad.toml")


def test_a_cell_out_of_range_is_refused(scenario: _core.Scenario) -> None:
    with pytest.raises(IndexError, match="cell 2 of a scenario with 2 cells"):
        scenario.run_cell(2, 0)


def test_cancel_stops_a_repetition() -> None:
    cancel = _core.Cancel()
    threading.Timer(0.2, cancel.cancel).start()
    begin = time.monotonic()
    with pytest.raises(Cancelled):
        _core.parse(LONG, "long.toml").run_cell(0, 0, cancel=cancel)
    assert cancel.cancelled
    assert time.monotonic() - begin < 5


def test_progress_is_told_and_what_it_raises_ends_the_run() -> None:
    told: list[int] = []

    def watch(t_ns: int) -> None:
        told.append(t_ns)
        if len(told) == 3:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        _core.parse(LONG, "long.toml").run_cell(0, 0, progress=watch)
    assert 0 < told[0] < told[1] < told[2]


def test_a_running_repetition_leaves_the_interpreter_free() -> None:
    """Were the GIL held, this thread could do nothing until the run is cancelled, which only it does."""
    cancel = _core.Cancel()
    ended = threading.Event()

    def run() -> None:
        with pytest.raises(Cancelled):
            _core.parse(LONG, "long.toml").run_cell(0, 0, cancel=cancel)
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert not ended.wait(0.1)
    cancel.cancel()
    thread.join(timeout=5)
    assert ended.is_set()


LOOK = f"""
import gc, sys, threading, time
from tcpknee import _core

ended, in_the_middle = [], threading.Event()

class Knot:
    def __init__(self):
        self.me = self

    def __del__(self):
        ended.append(1)
        if len(ended) == 40:
            in_the_middle.set()
            time.sleep(0.5)
        if len(ended) < 60:
            Knot()

def look():
    in_the_middle.wait()
    scenario.cells[0]

scenario = _core.parse({SHORT!r}, "short.toml")
thread = threading.Thread(target=look)
thread.start()
# Of those that Python has ready none is allocated, so that nothing is collected.
kept = [(at, at, at) for at in range(10_000)]
Knot()
gc.set_threshold(1)
scenario.cells[0]
gc.set_threshold(0)
# From 3.12 on Python collects between its own instructions alone.
assert len(ended) >= 40 or sys.version_info >= (3, 12)
in_the_middle.set()
thread.join()
"""


def test_two_threads_may_look_at_cells_while_garbage_is_collected() -> None:
    """What ends with the garbage lets the other thread go on; the first must hold nothing then that this one needs."""
    subprocess.run([sys.executable, "-c", LOOK], check=True, timeout=60)


def test_a_capture_that_was_not_asked_for_is_an_error(output: _core.Output, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="capture=True"):
        output.write_pcapng(str(tmp_path / "x.pcapng"))
    assert not list(tmp_path.iterdir())


def test_a_capture_for_a_folder_that_is_not_there_names_the_folder(scenario: _core.Scenario, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "x.pcapng"
    with pytest.raises(FileNotFoundError) as raised:
        scenario.run_cell(0, 0, capture=True).write_pcapng(str(path))
    assert raised.value.filename == str(path.parent)
