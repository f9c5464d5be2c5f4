"""What was measured elsewhere beside a run: read, with the path that it saw, and shown in its text, pages and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tcpknee
from support import knee
from tcpknee import pages
from tcpknee.errors import UsageError
from tcpknee.measured import reading, simulated, streams
from tcpknee.measured.put import put
from tcpknee.pages.run import ReportRun
from tcpknee.runs import beside, engines_text, output

DATA = Path(__file__).parents[2] / "crates/import/tests/data"
TRUTH = {"rate": "20Mbit/s", "rtt": "30ms", "buffer": "1bdp"}


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> tcpknee.Run:
    """A connection on a path that is known."""
    return tcpknee.run(
        out=tmp_path_factory.mktemp("beside") / "truth",
        duration="12s",
        sample_interval="100ms",
        repeat=3,
        path={**TRUTH, "loss": "0.05%"},
        flow=[{"algorithm": "cubic"}],
    )


@pytest.fixture
def run(tmp_path: Path) -> tcpknee.Run:
    """What the others stand beside."""
    flows = [{"algorithm": ["cubic", "bbr1"]}]
    return tcpknee.run(out=tmp_path / "run", duration="4s", repeat=2, path=TRUTH, flow=flows)


def test_a_file_of_iperf3_bounds_its_path() -> None:
    """Its RTTs are smoothed and seldom told, and a fit to them would be wrong by factors where losses hide the rate."""
    entry = reading.read(str(DATA / "iperf3/v3.12-omit.json"))
    [row] = entry.rows
    assert (entry.kind, row.algorithm, row.unit) == ("iperf3", "bbr1", "test")
    assert row.metrics["goodput_bits_per_sec"].mean == pytest.approx(2 * 19_898_001.85)
    assert entry.path == {
        "fitted": False,
        "rtt_us": {"low": None, "high": 106.0},
        "rate_bits_per_sec": {"low": row.metrics["goodput_bits_per_sec"].mean, "high": None},
        "loss_pct": {"low": None, "high": 0.0},
        "words": "base RTT at most 0.106 ms, rate at least 39.8 Mbit/s, loss at most 0 %, its share of "
        "retransmissions. These are bounds: iperf3 tells no least RTT, and how a stream goes on too seldom, for a path "
        "to be fitted.",
    }


def test_from_python_data_is_set_beside_a_run_as_by_its_option(run: tcpknee.Run) -> None:
    assert tcpknee.beside(run, DATA / "iperf3/v3.12-omit.json") is run
    assert run.folder is not None
    [entry] = tcpknee.open(run.folder).meta["beside"]
    assert (entry["label"], entry["kind"]) == ("v3.12-omit.json", "iperf3")
    with pytest.raises(UsageError, match="nothing was measured of its path; expected a run that measures it"):
        tcpknee.beside(run, "sim")


def test_a_recorded_path_is_fitted_and_drawn(truth: tcpknee.Run, run: tcpknee.Run) -> None:
    assert truth.folder is not None and run.folder is not None
    entry = reading.read(str(truth.folder))
    assert entry.kind == "run, sim" and entry.path is not None and entry.path["fitted"]
    assert entry.path["rate_bits_per_sec"]["low"] == pytest.approx(20e6, rel=0.1)
    put(run, [entry])
    again = tcpknee.open(run.folder)
    assert beside.of_run(again.meta)[0].rows[0].metrics == entry.rows[0].metrics
    told = "\n".join(output.lines(again))
    assert "\ntruth (cubic) " in told
    assert "truth: measured (run, sim), and not simulated, over 3 repetitions." in told
    assert "Path that it saw: base RTT" in told
    page = pages.write(again, run.folder / "report.html").read_text()
    assert "truth (cubic, measured)" in page and "a path of its own" in page and "and not simulated" in page
    report = ReportRun.open(again)
    lines = report.series.lines(report.conditions[0])
    for panel in ("srtt", "delivery", "cwnd"):
        [own] = [block for block in lines[panel] if block.constants["series"] == "truth (cubic, measured)"]
        assert len(own.columns["t"]) > 20
    # The same again takes the place of what stands there.
    put(again, [entry])
    assert len(tcpknee.open(run.folder).meta["beside"]) == 1


def test_results_of_other_tools_are_rows_of_the_table(tmp_path: Path) -> None:
    words = [word for name in ("iperf3/v3.12-omit.json", "test.flent") for word in ("--beside", str(DATA / name))]
    asked = ("compare", "cubic", "--duration", "2s", "--repeat", "2", *words, "--out", str(tmp_path / "run"))
    ended = knee(*asked, cwd=tmp_path)
    assert ended.code == 0, ended.err
    for line in (
        "v3.12-omit.json (bbr1)  ",
        "test.flent, TCP upload  ",
        "v3.12-omit.json: measured (iperf3), and not simulated, over 1 test.",
        "test.flent: measured (flent), and not simulated, over 1 test.",
        "  Path that it saw: base RTT at most 20.1 ms, rate at least 1.50 Mbit/s.",
    ):
        assert line in ended.out, ended.out
    told = json.loads(knee(*asked, "--json", "--force", cwd=tmp_path).out)["beside"]
    assert [one["label"] for one in told] == ["v3.12-omit.json", "test.flent"]
    assert told[0]["rows"][0]["metrics"]["goodput_bits_per_sec"]["mean"] == pytest.approx(39.8e6, rel=0.01)


def test_flents_rrul_is_two_rows(tmp_path: Path) -> None:
    """Its series have no number but a class, and what flent reckons of them stands beside them."""
    rates = {"upload BE": 1, "upload BK": 2, "upload avg": 1.5, "upload sum": 3, "totals": 15}
    rates |= {"download BE": 3, "download Torrent::1": 4, "download Torrent::2": 5, "download Torrent sum": 9}
    results = {f"TCP {name}": [rate, rate] for name, rate in rates.items()}
    units = {name: {"UNITS": "Mbits/s"} for name in (*results, "TCP upload BE::tcp_pacing_rate")}
    results["TCP upload BE::tcp_pacing_rate"] = [100.0, 100.0]
    results |= {"Ping (ms) UDP BE": [20.0, 20.0], "Ping (ms) ICMP": [30.0, 30.0], "Ping (ms) avg": [5.0, 5.0]}
    metadata = {"NAME": "rrul", "T0": "2026-08-21T12:00:00.5Z", "SERIES_META": units, "STEP_SIZE": 0.2, "LENGTH": 1}
    told = {"metadata": metadata, "raw_values": {}, "results": results, "version": 4, "x_values": [0.0, 0.2]}
    file = tmp_path / "rrul.flent"
    file.write_text(json.dumps(told), encoding="utf-8")
    entry = reading.read(str(file))
    found = {row.name: row.metrics["goodput_bits_per_sec"].mean for row in entry.rows}
    assert found == {"rrul.flent, TCP upload": pytest.approx(3e6), "rrul.flent, TCP download": pytest.approx(12e6)}
    assert entry.path is not None and entry.path["rtt_us"]["high"] == pytest.approx(20e3)


def test_cells_of_a_run_are_told_apart_and_what_is_cut_is_said(tmp_path: Path) -> None:
    """Each row has its cell, and the line of that cell."""
    rates = ["2Mbit/s", "4Mbit/s", "8Mbit/s"]
    flows = [{"algorithm": ["cubic", "reno"]}]
    path = {"rate": rates, "rtt": "20ms"}
    many = tcpknee.run(out=tmp_path / "many", duration="2s", sample_interval="100ms", path=path, flow=flows)
    assert many.folder is not None
    entry = reading.read(str(many.folder))
    assert [(row.name, row.algorithm) for row in entry.rows] == [
        (f"many, path.rate {rate}", algorithm) for rate in rates[:2] for algorithm in ("cubic", "reno")
    ]
    assert "Of 6 rows of its table, the first 4." in entry.notes
    ends = [max(value for _, value in row.lines["delivery_rate_bits_per_sec"]) for row in entry.rows]
    assert ends[0] < 3e6 < ends[2], "the line of another cell"


def test_it_is_set_beside_a_run_that_is_complete(run: tcpknee.Run, tmp_path: Path) -> None:
    assert run.folder is not None
    ended = knee("run", "--resume", "--out", run.folder, "--beside", DATA / "test.flent", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert "test.flent, TCP upload" in ended.out
    assert [one["label"] for one in tcpknee.open(run.folder).meta["beside"]] == ["test.flent"]


def test_it_stands_beside_several_engines_too(run: tcpknee.Run) -> None:
    put(run, [reading.read(str(DATA / "test.flent"))])
    told = engines_text.lines([run, run])
    assert told[-2].startswith("beside, each on a path of its own")
    assert told[-1].startswith("  test.flent, TCP upload") and "1.50" in told[-1]


def test_each_stream_of_iperf3_is_told_once() -> None:
    """Both ways, and with the server's output in the client's file: then the sender's RTT stands with what arrived."""
    both = reading.read(str(DATA / "iperf3/v3.12-bidir.json"))
    assert [row.name for row in both.rows] == ["v3.12-bidir.json, out", "v3.12-bidir.json, back"]
    [back] = reading.read(str(DATA / "iperf3/v3.12-reverse-omit.json")).rows
    assert back.algorithm == "reno"
    assert back.metrics["srtt_us_p50"].mean == pytest.approx(112, abs=2)
    assert back.metrics["goodput_bits_per_sec"].mean == pytest.approx(19_923_422, rel=1e-6)
    written = reading.read(str(DATA / "iperf3/v3.12-interrupted.json"))
    assert "what the sender wrote" in written.notes[0]
    assert written.path is not None and written.path["rate_bits_per_sec"]["low"] is None, "it may not have arrived"


def test_a_capture_bounds_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = str(DATA / "pcap/capture.pcapng")
    with pytest.raises(UsageError, match="got no connection that carried 100 kB"):
        reading.read(capture)
    monkeypatch.setattr(reading, "_LEAST_BYTES", 5_000)
    entry = reading.read(capture)
    [row] = entry.rows
    assert (entry.kind, row.name) == ("capture", "capture.pcapng #1")
    assert entry.path is not None and not entry.path["fitted"]
    assert entry.path["rtt_us"] == {"low": None, "high": row.metrics["min_rtt_us"].mean}
    assert entry.path["rate_bits_per_sec"]["low"] == row.metrics["goodput_bits_per_sec"].mean


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("nothere.json", "cannot be read"),
        (str(DATA / "tcp_info.jsonl"), "is of tcp-info; expected a file of iperf3, flent, pcap, or a folder"),
        (str(DATA / "iperf3/v3.1-reverse-udp.json"), "got no finished TCP stream of iperf3"),
    ],
)
def test_what_is_no_result_is_refused_before_anything_runs(word: str, words: str, tmp_path: Path) -> None:
    ended = knee("compare", "cubic", "--beside", word, "--out", "run", cwd=tmp_path)
    assert ended.code == 2 and words in ended.err and not (tmp_path / "run").exists()


def test_only_a_measured_path_is_simulated(run: tcpknee.Run, tmp_path: Path) -> None:
    ended = knee("compare", "cubic", "--beside", "sim", "--out", "other", cwd=tmp_path)
    assert ended.code == 2 and "--beside sim: got it with --engine sim; expected hosts" in ended.err
    with pytest.raises(UsageError, match="nothing was measured of its path"):
        simulated.answer(run)
    found = {"rtt": 1e4}
    with pytest.raises(UsageError, match=r"path\.rtt is an axis"):
        simulated.with_path('[path]\nrtt = ["10ms", "20ms"]\nrate = "5Mbit/s"\n', "s.toml", found, 3)
    with pytest.raises(UsageError, match=r"has \[\[hop\]\]"):
        simulated.with_path('[[hop]]\nrtt = "10ms"\n', "s.toml", found, 3)


def test_the_measured_path_is_simulated_beside(truth: tcpknee.Run) -> None:
    """A scenario that expects another path than there is: what was measured of it is simulated."""
    found = {"rtt_us": 30e3, "rate_bits_per_sec": 20e6 * 1448 / 1500, "bytes": 1000}
    every = [{"block": block, "loss_pct": loss, **found} for block, loss in enumerate((0.0, 0.04, 0.02))]
    expected = truth.meta["scenario"].replace("20Mbit/s", "50Mbit/s").replace("30ms", "10ms")
    assert expected != truth.meta["scenario"]
    folder = truth.folder
    measured = tcpknee.Run({**truth.meta, "scenario": expected, "path_measured": every}, folder)
    entry = simulated.answer(measured)
    assert entry.kind == beside.SIMULATED
    assert (
        entry.path is not None
        and "base RTT 30.0 ms, rate 20.0 Mbit/s, loss at most 0.040 %, those of a full" in entry.path["words"]
    )
    assert "over 3 blocks" in entry.path["words"]
    [row] = entry.rows
    [group] = truth.summary.groups
    assert row.metrics["goodput_bits_per_sec"].mean == pytest.approx(
        group.metrics["goodput_bits_per_sec"].mean, rel=0.1
    )
    assert entry.notes[0].startswith("cubic, measured beside simulated: goodput ")
    assert "points" in entry.notes[0]
    # What was not measured is as the scenario says.
    lone = tcpknee.Run({**measured.meta, "path_measured": [{"block": 0, "rtt_us": 30e3, "loss_pct": 0.0}]}, folder)
    assert simulated.answer(lone).path == {
        "fitted": False,
        "rtt_us": {"low": 30e3, "high": 30e3},
        "rate_bits_per_sec": {"low": None, "high": None},
        "loss_pct": {"low": 0.0, "high": 0.0},
        "words": "base RTT 30.0 ms, rate not measured, so as the scenario says, no loss; over 1 block. Its buffer, its "
        "queue and the hosts are as the scenario says, since nothing measured them.",
    }


def test_a_buffer_in_bdps_that_holds_no_packet_of_the_measured_path_is_that_of_the_expected_one(
    truth: tcpknee.Run,
) -> None:
    """Between hosts in one rack, where the scenario expects 30 ms."""
    found = {"block": 0, "rtt_us": 20.5, "rate_bits_per_sec": 20e6, "loss_pct": 9.7, "bytes": 1000}
    entry = simulated.answer(tcpknee.Run({**truth.meta, "path_measured": [found]}, truth.folder))
    assert entry.path is not None
    assert "Its buffer is of 73.2 KiB, as on the path that is expected, since" in entry.path["words"]
    assert entry.rows[0].metrics["goodput_bits_per_sec"].mean == pytest.approx(20e6, rel=0.1)


def test_a_path_that_cannot_be_simulated_costs_no_result(run: tcpknee.Run, tmp_path: Path) -> None:
    assert run.folder is not None
    ended = knee(
        "run", "--resume", "--out", run.folder, "--beside", "sim", "--beside", DATA / "test.flent", cwd=tmp_path
    )
    assert ended.code == 0, ended.err
    assert "bbr1" in ended.out and "test.flent, TCP upload" in ended.out
    assert "Warning: --beside sim: the measured path cannot be simulated: " in ended.err
    assert "nothing was measured of its path" in ended.err


def test_long_lines_are_thinned() -> None:
    points = [(float(place), float(place % 7)) for place in range(10_000)]
    points[5000] = (5000.0, 99.0)
    thin = streams.thinned(points)
    assert len(thin) <= 600 and (5000.0, 99.0) in thin
    assert thin == sorted(thin)
