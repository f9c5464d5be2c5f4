"""`knee export --format flent`: what flent's loader and plots demand, and values equal to the run's tables."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcpknee
from support import SMALL, Ended
from tcpknee.datasets.dataset import Dataset
from tcpknee.runs import flent

Call = Callable[..., Ended]

MIXED = """\
title = "Some stay, some come and go"
duration = "3s"
warmup = "500ms"
seed = 3
[path]
rate = "20Mbit/s"
rtt = "20ms"
[[flow]]
algorithm = "bbr1"
start = "450ms"
[[flow]]
algorithm = "cubic"
name = "web"
workload = "web"
arrivals = "20/s"
"""


@pytest.fixture(scope="module")
def mixed() -> tcpknee.Run:
    return tcpknee.run(MIXED)


def read(path: Path) -> dict[str, Any]:
    """The object, as strict JSON: neither NaN nor Infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(word)

    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    found: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return found


def test_a_run_is_what_the_loader_of_flent_demands(call: Call, small_run: Path, tmp_path: Path) -> None:
    """As `ResultSet.unserialise` of flent 2.3 and its test `tcp_nup` read them."""
    ended = call("export", small_run, "--format", "flent", "--out", "a.flent.gz", "--cell", "1", "--rep", "2")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("flent: a.flent.gz (cell 1, repetition 2; 1 flow, 10 steps of 0.2 s)")
    found = read(tmp_path / "a.flent.gz")
    metadata = found["metadata"]
    assert (found["version"], metadata["NAME"], metadata["DATA_FILENAME"]) == (4, "tcp_nup", "a.flent.gz")
    assert metadata["TEST_PARAMETERS"] == {
        "upload_streams": "1",
        "cc_algos": "bbr1",
        "qdisc_stats_hosts": "hop0",
        "qdisc_stats_interfaces": "fifo",
    }
    for name in ("TIME", "T0"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", metadata[name])
    assert (metadata["LENGTH"], metadata["TOTAL_LENGTH"], metadata["STEP_SIZE"]) == (2, 2, 0.2)
    assert found["x_values"] == [pytest.approx(0.2 * k) for k in range(1, 11)]
    assert {len(values) for values in found["results"].values()} == {10}
    assert {"TCP upload sum", "TCP upload avg", "TCP upload fairness", "TCP upload::1"} <= set(found["results"])
    for key in ("tcp_cwnd", "tcp_rtt", "tcp_rtt_var", "tcp_pacing_rate", "tcp_delivery_rate", "tcp_bbr_bw"):
        assert found["results"][f"TCP upload::1::{key}"][-1] > 0
    for series in found["raw_values"].values():
        times = [sample["t"] for sample in series]
        assert times == sorted(times) and len(times) == 10
    assert found["raw_values"]["qdisc_stats_hop0"][-1]["backlog_bytes"] >= 0


def test_import_reads_back_equal_values(call: Call, small_run: Path, tmp_path: Path) -> None:
    assert call("export", small_run, "--format", "flent", "--out", "a.flent.gz", "--step", "100ms").code == 0
    tests, points, samples = tcpknee.import_flent(tmp_path / "a.flent.gz", strict=True)
    [test] = tests.to_pylist()
    assert (test["name"], test["duration_ns"], test["step_ns"]) == ("tcp_nup", 2 * 10**9, 10**8)
    run = tcpknee.open(small_run)
    rows = {row["t_ns"]: row for row in run.rows("samples", cell=0, rep=0).to_pylist()}
    times = sorted(rows)
    held = {t: rows[max(time for time in times if time <= t)] for t in range(10**8, 2 * 10**9 + 1, 10**8)}
    own = [row for row in samples.to_pylist() if row["series"] == "TCP upload::1"]
    assert len(own) == 20
    for row, (t_ns, sample) in zip(own, held.items(), strict=True):
        assert row["t_ns"] == pytest.approx(t_ns, abs=500)
        for name in ("snd_cwnd", "srtt_us", "rttvar_us", "delivery_rate_bits_per_sec", "pacing_rate_bits_per_sec"):
            assert row[name] == sample[name]
    read_bytes = [0, *(sample["bytes_read"] for sample in held.values())]
    goodput = [row["value"] for row in points.to_pylist() if row["series"] == "TCP upload::1"]
    assert goodput == pytest.approx(np.diff(read_bytes) * 8 / 0.1 / 1e6)
    assert [row["value"] for row in own] == goodput
    queue = {row["t_ns"]: row for row in run.rows("queue", cell=0, rep=0).to_pylist()}
    told = {row["t_ns"]: row["value"] for row in points.to_pylist() if row["series"] == "qdisc_stats_hop0::delay"}
    assert told == {t_ns: queue[t_ns]["queue_delay_us"] / 1e3 for t_ns in held}


def test_steps_add_up_to_the_bytes_of_the_flows_and_the_drops_of_the_queue(mixed: tcpknee.Run) -> None:
    """Also of transfers that live between two steps; nothing is told of a flow that is not there."""
    found = flent.document(mixed, 0, 0)
    results, flows = found["results"], mixed.flows.arrow().to_pylist()
    assert len(flows) > 30
    for row in flows:
        rates = results[f"TCP upload::{row['flow'] + 1}"]
        assert sum(rate for rate in rates if rate is not None) * 0.2e6 / 8 == pytest.approx(row["bytes_read"])
        end_ns = row["end_ns"] or 3 * 10**9
        there = [x * 1e9 > row["start_ns"] and (x - 0.2) * 1e9 < end_ns - 1 for x in found["x_values"]]
        assert [rate is not None for rate in rates] == there
    total = sum(rate for rate in results["TCP upload sum"] if rate is not None) * 0.2e6 / 8
    assert total == pytest.approx(sum(row["bytes_read"] for row in flows))
    assert all(index is None or 0 < index <= 1 for index in results["TCP upload fairness"])
    dropped = max(mixed.queue["dropped_pkts"].to_pylist())
    assert sum(results["qdisc_stats_hop0::dropped"]) == dropped


def test_a_counter_without_rows_stands_still_until_the_interval_before_the_next() -> None:
    t_ns, counter = np.array([0.0, 10, 20, 100, 110]), np.array([0.0, 5, 10, 30, 40])
    found = flent._counted(t_ns, counter, 10, np.array([5, 20, 60, 90, 95, 100, 110, 500]))
    assert found.tolist() == [2.5, 10, 10, 10, 20, 30, 40, 40]


def test_the_same_run_gives_the_same_bytes(call: Call, small_run: Path, tmp_path: Path) -> None:
    for name in ("a/r.flent.gz", "b/r.flent.gz", "r.flent"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        assert call("export", small_run, "--format", "flent", "--out", name).code == 0
    first, second = (tmp_path / name / "r.flent.gz" for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    plain = read(tmp_path / "r.flent")
    assert plain["results"] == read(first)["results"]


def test_what_cannot_be_told_is_refused_and_nothing_is_written(
    call: Call, small_run: Path, tmp_path: Path, mixed: tcpknee.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words, says in (
        (["--out", "a.json"], "a.json: got another ending; expected .flent or .flent.gz"),
        (["--out", "a.flent", "--step", "5ms"], 'step: got "5ms"; expected from 10ms'),
        (["--out", "a.flent", "--step", "3s"], "to 2000ms, the length of the run"),
        (["--out", "a.flent", "--step", "5"], "step"),
        (["--out", "a.flent", "--cell", "2"], "--cell: got 2; expected 0 to 1"),
    ):
        ended = call("export", small_run, "--format", "flent", *words)
        assert (ended.code, ended.out) == (2, "") and says in ended.err and "Traceback" not in ended.err
    ended = call("export", small_run, "--format", "csv", "--out", "csv", "--step", "1s")
    assert ended.code == 2 and "--step is for --format flent" in ended.err
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(flent, "MOST_VALUES", 1000)
    with pytest.raises(tcpknee.UsageError, match=r"expected at most 1,000 values.*longer --step"):
        flent.document(mixed, 0, 0)


def test_the_file_names_the_axes_and_that_it_is_simulated(call: Call, small_run: Path, tmp_path: Path) -> None:
    assert call("export", small_run, "--format", "flent", "--out", "a.flent", "--cell", "1").code == 0
    metadata = read(tmp_path / "a.flent")["metadata"]
    assert metadata["TITLE"] == "Small, flow.0.algorithm bbr1, repetition 0"
    assert metadata["NOTE"].startswith("Simulated by tcpknee") and "seed 7" in metadata["NOTE"]
    assert metadata["KERNEL_RELEASE"] is None and "seed = 7" in SMALL


def test_the_kernel_is_the_one_that_carried_the_flows(call: Call, small_run: Path, tmp_path: Path) -> None:
    shutil.copytree(small_run, tmp_path / "run")
    file = tmp_path / "run" / "run.json"
    meta = json.loads(file.read_text())
    cells = [{**cell, "kernel": "6.12"} for cell in meta["cells"]]
    guests = [{"name": name, "release": f"{name}.9", "built": "today"} for name in ("6.6", "6.12")]
    ends = {role: {"kernel": "6.1.0", "host": role[0], "boot": role} for role in ("sender", "receiver")}
    pair = {"sender": "a", "receiver": "b", "address": None, "port": 0, "netem": False, "programs": False}
    for change, how, release, kernels, hosts in (
        (
            {"engine": "guest", "guests": guests, "cells": cells, "labs": []},
            "Run in a lab by",
            "6.12.9",
            ("Linux 6.12.9", "Linux 6.6.9"),
            (meta["host"]["name"],),
        ),
        (
            {"engine": "hosts", "hosts": pair, "labs": [ends]},
            "Run between two hosts by",
            "6.1.0",
            ("Linux 6.1.0",),
            ("r", "s"),
        ),
    ):
        file.write_text(json.dumps({**meta, "repetitions": [], **change}))
        ended = call("export", "run", "--format", "flent", "--out", "a.flent", "--force")
        assert ended.code == 0, ended.err
        told = read(tmp_path / "a.flent")["metadata"]
        assert told["NOTE"].startswith(how) and told["KERNEL_RELEASE"] == release
        found = Dataset(tmp_path / "run").provenance
        assert (found.kernels, found.hosts) == (kernels, hosts)
