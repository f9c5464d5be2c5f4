"""What the hosts spent, as the report shows it: per byte or request, by class, and of each processor over time."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

import synthetic
import tcpknee
from tcpknee.pages import export, page
from tcpknee.pages.figures import cpu, host_costs
from tcpknee.pages.joined import Joined
from tcpknee.pages.run import ReportRun


def test_time_of_the_model_is_per_byte_delivered_after_the_warm_up(case):
    run = ReportRun.open(case("hosts"))
    totals = {total.cell: total for total in run.stats.totals}
    for bar, cell in zip(host_costs.bars(run), run.cells, strict=True):
        steady_seconds = 20 * 5 / 6
        delivered = totals[cell].values["goodput_bits_per_sec"] / 8 * steady_seconds
        charged_ns = synthetic.RATE_BITS_PER_SEC / 8 * 20
        assert bar["spent"]["data copy"] == pytest.approx(np.mean(charged_ns / delivered))
        assert bar["spent"]["TCP/IP"] == pytest.approx(2 * bar["spent"]["data copy"])
        assert bar["spent"]["timer"] == 0


def test_measured_time_is_that_of_the_hosts_samples_and_of_interrupts_beside_them(case):
    run = ReportRun.open(case("measured"))
    totals = {total.cell: total for total in run.stats.totals}
    found = host_costs.bars(run)
    assert len(found) == 4
    for bar, cell in zip(found, run.cells, strict=True):
        seconds = 20 * 5 / 6
        delivered = totals[cell].values["goodput_bits_per_sec"] / 8 * seconds
        one_ns = np.mean(1e9 / 499 / delivered)
        # Neither the link's samples nor those of other programs; no time is counted twice.
        expected = dict.fromkeys(host_costs.CLASSES, 0.0) | {"TCP/IP": 100 * one_ns, "syscall": 20 * one_ns}
        assert bar["spent"] == pytest.approx(expected)


def test_where_every_flow_asks_the_time_is_per_request(tmp_path):
    about = {"workload": "request-response", "processors": 1, "reps": 2, "algorithms": ("cubic",)}
    run = ReportRun.open(synthetic.write_run(tmp_path / "run", **about))
    (bar,) = host_costs.bars(run)
    # 50 requests a second for five sixths of 20 s, in whole ones.
    assert bar["spent"]["data copy"] == pytest.approx(synthetic.RATE_BITS_PER_SEC / 8 * 20 / 833)
    titles = json.dumps(export.spec(run, host_costs))
    assert "Processor time per request (ns)" in titles and "per byte (ns)" not in titles


def test_pieces_of_a_bar_lie_behind_one_another_and_the_last_has_the_total(case):
    run = ReportRun.open(case("hosts"))
    rows = [row for row in host_costs.pieces(host_costs.bars(run)) if row["row"] == "cubic"]
    assert [row["class"] for row in rows] == ["data copy", "TCP/IP", "netdev", "skb", "scheduler"]
    assert rows[0]["from"] == 0
    assert all(row["to"] == after["from"] for row, after in itertools.pairwise(rows))
    assert [row["total"] for row in rows[:-1]] == [None] * 4
    assert rows[-1]["total"] == pytest.approx(rows[-1]["to"])
    assert sum(row["pct"] for row in rows) == pytest.approx(100)


def test_each_class_has_a_colour_of_its_own():
    assert len({host_costs.ink(word) for word in host_costs.CLASSES}) == len(host_costs.CLASSES) == 10


def test_the_caption_says_what_the_bars_do(case):
    words = page.caption(ReportRun.open(case("hosts")), host_costs)
    assert re.search(r"Here: cubic [0-9.]+ ns per byte, 33\.3 % of it on scheduler; bbr1 [0-9.]+ ns per byte", words)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same scenario by either engine."""
    folder = tmp_path_factory.mktemp("both")
    made = (synthetic.write_run(folder / name, engine=name, processors=2, reps=2) for name in ("sim", "kernel"))
    sim, kernel = made
    return sim, kernel


def test_the_model_stands_beside_the_measurement_whichever_comes_first(both):
    for runs in (both, both[::-1]):
        rows = [bar["row"] for bar in host_costs.bars(Joined.of_diff(tcpknee.diff(*runs)))]
        names = [run.name for run in runs]
        assert rows == [f"{algorithm}, {name}" for algorithm in ("cubic", "bbr1") for name in names]
    (model, measured, *_) = host_costs.bars(Joined.of_diff(tcpknee.diff(*both)))
    assert model["spent"] == host_costs.bars(ReportRun.open(both[0]))[0]["spent"]
    assert measured["spent"] == host_costs.bars(ReportRun.open(both[1]))[0]["spent"]


def test_the_caption_has_the_error_of_each_class(both):
    for runs in (both, both[::-1]):
        run = Joined.of_diff(tcpknee.diff(*runs))
        found, words = host_costs.bars(run), host_costs.words(run)
        model = next(bar["spent"] for bar in found if bar["row"] == "cubic, sim")
        measured = next(bar["spent"] for bar in found if bar["row"] == "cubic, kernel")
        off = 100 * (model["TCP/IP"] - measured["TCP/IP"]) / sum(measured.values())
        (said,) = re.findall(r"By class, model and measurement of cubic \([^)]+\) in ns: (.*?)\. ", words + " ")
        assert f"({off:+.0f} % of all)" in next(word for word in said.split(", ") if word.startswith("TCP/IP"))
        assert "By class, model and measurement of bbr1" in words
    assert "By class" not in host_costs.words(ReportRun.open(both[0]))


def test_shares_are_of_the_time_since_the_row_before():
    t_ns = np.array([1e9, 2e9, 4e9])
    used_us = np.array([[5e5, 5e5, 1.5e6], [0, 1e6, 1e6], [0, 0, 0], [0, 0, 2e5]])
    found = cpu.shares(t_ns, used_us)
    # A step reaches back: the first row says of the beginning what the second says of the first second.
    assert found["t"].tolist() == [0, 1, 2, 4]
    assert found["user"].tolist() == pytest.approx([50, 50, 0, 50])
    assert found["system"].tolist() == pytest.approx([0, 0, 100, 0])
    assert found["steal"].tolist() == pytest.approx([0, 0, 0, 10])


def test_rows_left_out_lose_no_time():
    t_ns = np.arange(1, 1001) * 1e8
    used_us = np.cumsum(np.tile(np.random.default_rng(1).uniform(0, 1e5, 1000), (4, 1)), axis=1)
    found = cpu.shares(t_ns, used_us)
    assert len(found["t"]) == cpu.POINTS_AT_MOST + 1
    assert np.sum(found["user"][1:] / 100 * np.diff(found["t"])) == pytest.approx(used_us[0, -1] * 1e-6)


def test_of_many_processors_the_busiest_are_shown_in_the_order_of_their_numbers(case):
    run = ReportRun.open(case("measured"))
    names = [block.constants["processor"] for block in cpu.data(run, run.conditions[0])["cpu"]]
    # Of 20, each less busy than the one before it; of threads nothing.
    assert names == [f"{who}: cpu{number}" for who in ("cubic", "bbr1") for number in range(16)]
    assert "Of 20 processors the 16 busiest are shown." in page.caption(run, cpu)
    assert "busiest" not in page.caption(ReportRun.open(case("hosts")), cpu)


def test_a_page_has_the_processors_of_each_condition_beside_its_series(case, pages):
    text = pages("measured")
    shown = re.findall(r'<section id="figure-([a-z-]+)"', text)
    assert shown[-4:] == ["host-costs", "timeseries", "cpu", "flame"]
    sets = page.payload(ReportRun.open(case("measured")), [export.find("timeseries"), cpu])["conditions"]
    assert [one["label"] for one in sets] == ["RTT 20ms", "RTT 100ms"]
    assert all("cpu" in one["sets"] and "lines_cwnd" in one["sets"] for one in sets)
    assert text.count('id="controls"') == 1


def test_a_run_whose_hosts_cost_nothing_has_neither_figure(pages):
    assert "figure-cpu" not in pages("two") and "figure-host-costs" not in pages("two")
