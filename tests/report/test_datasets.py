"""A run, a recording, an import and a trace: one query and one figure on each, through the same `Dataset`."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import synthetic
import traces
from tcpknee import imports, pages
from tcpknee.cli.app import app
from tcpknee.datasets.dataset import Dataset
from tcpknee.errors import UsageError
from tcpknee.pages import connections, figures, observed, overview
from tcpknee.pages.beside import Beside
from tcpknee.pages.connections import SHOWN_AT_MOST
from tcpknee.runs import api

DATA = Path(__file__).parents[2] / "crates/import/tests/data"
CAPTURE = DATA / "pcap/capture.pcapng"
DUMPS = 15
SCENARIO = """\
title = "Small"
duration = "2s"
[path]
rate = "10Mbit/s"
rtt = "20ms"
[[flow]]
algorithm = "cubic"
"""


def a_run(folder: Path) -> None:
    api.run(SCENARIO, out=folder)


def a_recording(folder: Path) -> None:
    """Of both ends of a connection over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as near, server.accept()[0] as far:
            near.sendall(b"x" * 10_000)
            assert far.recv(1)
            words = ["record", "--port", port, "--for", "300ms", "--every", "100ms", "--out", folder, "--quiet"]
            subprocess.run([sys.executable, "-m", "tcpknee", *map(str, words)], check=True, capture_output=True)


def an_import(folder: Path) -> None:
    """Of dumps of ss, in which a window grows and another host's does not; its addresses would be SQL."""
    text = "".join(
        f"Fri Aug 21 12:00:{number:02} UTC 2026\n"
        f"ESTAB 0 0 10.1.2.3:443 192.0.2.77:50123 cubic rtt:16/10 cwnd:{10 + number} bytes_acked:{number * 1000}\n"
        "ESTAB 0 0 [2001:db8::1]:443 [2001:db8::7]:50124 cubic rtt:20/10 cwnd:10\n"
        for number in range(DUMPS)
    )
    folder.with_suffix(".txt").write_text(text)
    imports.write("ss", folder.with_suffix(".txt"), folder, host="edge'1")


def a_trace(folder: Path) -> None:
    traces.write(folder, connections=2)


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "run": (a_run, "samples"),
    "recording": (a_recording, "sockets"),
    "import": (an_import, "sockets"),
    "trace": (a_trace, "acks"),
}


@pytest.fixture(scope="module", params=KINDS)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A dataset of each kind."""
    folder = tmp_path_factory.mktemp(request.param) / request.param
    KINDS[request.param][0](folder)
    dataset = Dataset(folder)
    assert dataset.kind == request.param
    return dataset


def sets_of(dataset: Dataset) -> dict[str, list[dict[str, Any]]]:
    """Rows of each data set of the figure over time."""
    spec = pages.chart(dataset, "timeseries").to_dict()
    return {name: rows for name, rows in spec["datasets"].items() if name.startswith("lines_")}


def test_one_query_on_each_kind(found: Dataset) -> None:
    table = KINDS[found.kind][1]
    query = f"select count(*) as n, max(snd_cwnd) as most from {table}"
    [told] = found.sql(query).to_pylist()
    assert told["n"] == len(found.table(table)) > 0
    assert told["most"] == max(found.table(table)["snd_cwnd"].to_pylist())


def test_one_figure_on_each_kind(found: Dataset, tmp_path: Path) -> None:
    drawn = sets_of(found)
    assert {"lines_cwnd", "lines_srtt"} <= set(drawn)
    most = found.sql(f"select max(snd_cwnd) as most from {KINDS[found.kind][1]}")["most"][0].as_py()
    assert max(row["v"] for row in drawn["lines_cwnd"]) == pytest.approx(most, rel=1e-4)
    assert min(row["t"] for rows in drawn.values() for row in rows) >= 0
    assert pages.save(found, "timeseries", tmp_path / "it.svg").read_text().startswith("<svg")


def test_one_report_on_each_kind(found: Dataset, tmp_path: Path) -> None:
    text = pages.write(found.path, tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"tcpknee {'' if found.kind == 'run' else found.kind}" in text
    assert 'data-figure="timeseries"' in text
    for column in found.schema(KINDS[found.kind][1])[:5] if found.kind != "run" else ():
        assert column.doc and column.name in text
    for _, value in found.provenance.facts() if found.kind != "run" else ():
        assert value.replace("'", "&#39;") in text


def test_a_page_begins_with_what_the_rows_come_to(tmp_path: Path) -> None:
    an_import(tmp_path / "in")
    text = pages.write(tmp_path / "in", tmp_path / "page.html").read_text(encoding="utf-8")
    # Of a counter what it grew by while it was watched: 14 kB, and not the value that it had.
    sentence = "2 connections had 13.7 KiB acknowledged in 14 s, 8.00 kbit/s together."
    assert f'<p class="answer">{sentence}</p>' in text
    assert text.index(sentence) < text.index('<section id="summary">') < text.index('<section id="figure-timeseries">')
    row = re.findall(r"<tbody>(.*?)</tbody>", text, re.DOTALL)[0]
    cells = re.findall(r"<t[hd][^>]*>([^<]*)<", row)
    assert cells == ["cubic", "2", "0.0140", "0.00800", "18.0"]


def test_a_connection_that_comes_later_counts_with_all_that_it_did(tmp_path: Path) -> None:
    """A download between two dumps is there once, with counters that began while nobody looked."""
    old = "ESTAB 0 0 10.1.2.3:443 192.0.2.77:50123 cubic rtt:16/10 bytes_sent:{0} bytes_acked:{0}\n"
    once = "ESTAB 0 0 10.1.2.3:443 192.0.2.78:50001 cubic rtt:16/10 bytes_sent:5 bytes_acked:5\n"
    new = "ESTAB 0 0 10.1.2.3:443 192.0.2.79:{1} bbr bytes_sent:2000000 bytes_acked:1500000 bytes_retrans:500000\n"
    text = "".join(
        f"Fri Aug 21 12:00:0{dump} UTC 2026\n{old}{new if dump else once}".format(1000 * dump, 40000 + dump)
        for dump in range(4)
    )
    (tmp_path / "dump.txt").write_text(text)
    imports.write("ss", tmp_path / "dump.txt", tmp_path / "in", host="edge")
    found = overview.of(observed.Observed(Dataset(tmp_path / "in")))
    assert found.sentence == (
        "5 connections had 4.29 MiB acknowledged in 3 s, 12.0 Mbit/s together; 25.0 % of what they sent was sent "
        "again. Nothing is known of 1, which only the first rows have."
    )
    assert [row[:3] for row in found.rows] == [("bbr", "3", "4.50"), ("cubic", "2", "0.00300")]


def test_connections_of_a_recording_that_began_without_any_count_with_all_that_they_did(tmp_path: Path) -> None:
    line = "ESTAB 0 0 10.1.2.3:443 192.0.2.77:50123 cubic rtt:16/10 bytes_sent:{0} bytes_acked:{0}\n"
    text = "".join(f"Fri Aug 21 12:00:0{dump} UTC 2026\n{line}".format(1000 * dump) for dump in (3, 4, 5))
    (tmp_path / "dump.txt").write_text(text)
    imports.write("ss", tmp_path / "dump.txt", tmp_path / "rec", host="edge")
    file = tmp_path / "rec/sockets-000001.parquet"
    rows = pq.read_table(file)
    for first, place, told in ((6, 1, "0.00500"), (0, 1, "0.00200"), (6, 2, "0.00200")):
        samples = pa.array(range(first, first + rows.num_rows), pa.int64())
        at = rows.schema.get_field_index("sample")
        file.unlink()
        # Without the first segment nobody knows what was before.
        file = tmp_path / f"rec/sockets-00000{place}.parquet"
        pq.write_table(rows.set_column(at, rows.schema.field(at), samples), file)
        [row] = overview.of(observed.Observed(Dataset(tmp_path / "rec"))).rows
        assert row[:3] == ("cubic", "1", told), (first, place)


def test_directions_of_a_capture_count_from_its_begin_whatever_its_rows_are(tmp_path: Path) -> None:
    """Their counters begin at 0, so the first row, of an ACK or an interval, tells what it had acknowledged."""
    for every, told in (
        ("", "0.0504 s, 1.43 Mbit/s"),
        ("20ms", "0.0546 s, 1.32 Mbit/s"),
        ("1000s", "0.11 s, 655 kbit/s"),
    ):
        folder = tmp_path / f"in{every}"
        imports.write("pcap", CAPTURE, folder, **({"every": every} if every else {}))
        found = overview.of(observed.Observed(Dataset(folder)))
        assert found.sentence.startswith(f"2 directions had 8.79 KiB acknowledged in {told} together"), every
        assert found.rows[0][:3] == ("all", "2", "0.00900")


def test_a_single_dump_is_one_moment(tmp_path: Path) -> None:
    lines = "".join(f"ESTAB 0 0 10.1.2.3:443 192.0.2.7{k}:50123 cubic rtt:16/10 bytes_acked:1000\n" for k in (1, 2))
    (tmp_path / "dump.txt").write_text(f"Fri Aug 21 12:00:00 UTC 2026\n{lines}")
    imports.write("ss", tmp_path / "dump.txt", tmp_path / "in", host="edge")
    found = overview.of(observed.Observed(Dataset(tmp_path / "in")))
    assert found.sentence == "2 connections at one moment: nothing was seen to be acknowledged."
    assert ("goodput", "Mbit/s") not in found.heads


def test_a_page_of_rows_without_connections_says_what_it_holds(tmp_path: Path) -> None:
    imports.write("nginx", DATA / "nginx/combined.log", tmp_path / "in")
    dataset = Dataset(tmp_path / "in")
    told = overview.of(observed.Observed(dataset))
    assert told.sentence == f"{len(dataset.table('requests'))} rows of requests."
    assert not told.rows


def test_a_window_is_drawn_as_the_rows_have_it(tmp_path: Path) -> None:
    an_import(tmp_path / "in")
    rows = sets_of(Dataset(tmp_path / "in"))["lines_cwnd"]
    # The second connection sent nothing.
    assert {row["series"] for row in rows} == {"10.1.2.3:443 to 192.0.2.77:50123"}
    assert [row["t"] for row in rows] == pytest.approx([*range(DUMPS), DUMPS - 1], abs=1e-3)
    assert [row["v"] for row in rows] == pytest.approx([*range(10, 10 + DUMPS), 9 + DUMPS], abs=1e-3)


def test_a_capture_has_its_rate_by_what_was_acknowledged(tmp_path: Path) -> None:
    imports.write("pcap", CAPTURE, tmp_path / "in")
    dataset = Dataset(tmp_path / "in")
    assert dataset.kind == "import"
    drawn = sets_of(dataset)
    assert set(drawn) == {"lines_inflight", "lines_delivery", "lines_acked", "lines_rtt"}
    series = observed.Observed(dataset).series
    for block in series.lines()["delivery"]:
        t, v = block.columns["t"], block.columns["v"]
        label = block.constants["series"]
        [key] = [one.key for one in series.shown if one.label == label]
        where = " and ".join(f"{name} = '{value}'" for name, value in zip(series.source.key, key, strict=True))
        told = dataset.sql(f"select max(delivered_bytes) - min(delivered_bytes) as n from capture_acks where {where}")
        assert np.sum(np.diff(t) * v[:-1]) * 1e6 / 8 == pytest.approx(told["n"][0].as_py(), rel=1e-6)


def test_iperf3_has_its_rates_over_each_interval_and_windows_at_its_end(tmp_path: Path) -> None:
    imports.write("iperf3", DATA / "iperf3/v3.12-bidir.json", tmp_path / "in")
    dataset = Dataset(tmp_path / "in")
    drawn = sets_of(dataset)
    assert set(drawn) == {"lines_goodput", "lines_written", "lines_cwnd", "lines_srtt"}
    rows = dataset.table("iperf3_intervals").to_pandas()
    for name, column, scale, at in (
        ("goodput", "goodput_bits_per_sec", 1e-6, "start_ns"),
        ("written", "written_bits_per_sec", 1e-6, "start_ns"),
        ("srtt", "srtt_us", 1e-3, "end_ns"),
    ):
        # One stream sends and the other receives: each panel has one line, which holds up to the last interval's end.
        known = rows[rows[column].notna()].sort_values("end_ns")
        times = [*(known[at] * 1e-9), known["end_ns"].iloc[-1] * 1e-9]
        values = [*(known[column] * scale), known[column].iloc[-1] * scale]
        assert [row["t"] for row in drawn[f"lines_{name}"]] == pytest.approx(times, rel=1e-3, abs=1e-3)
        assert [row["v"] for row in drawn[f"lines_{name}"]] == pytest.approx(values, rel=1e-3)
        [stream] = {int(number) for number in known["stream"]}
        [label] = {row["series"] for row in drawn[f"lines_{name}"]}
        assert label.endswith(f"v3.12-bidir.json, test 0, stream {stream}")


def test_what_iperf3_omits_is_not_drawn_and_those_that_sent_most_come_first(tmp_path: Path) -> None:
    imports.write("iperf3", DATA / "iperf3/v3.12-omit.json", tmp_path / "in")
    dataset = Dataset(tmp_path / "in")
    assert dataset.sql("select count(*) as n from iperf3_intervals where start_ns < 0")["n"][0].as_py() > 0
    assert min(row["t"] for rows in sets_of(dataset).values() for row in rows) >= 0
    imports.write("iperf3", DATA / "iperf3/v3.18-stream.json", tmp_path / "in")
    both = Dataset(tmp_path / "in")
    query = "select file, test, stream, sum(bytes) as sent from iperf3_intervals group by all"
    sent = {(row["file"], row["test"], row["stream"]): row["sent"] for row in both.sql(query).to_pylist()}
    shown = [one.key for one in observed.Observed(both).series.shown]
    assert set(shown) == set(sent)
    assert [sent[key] for key in shown] == sorted(sent.values(), reverse=True)


def test_flent_has_rates_over_the_time_that_they_are_means_of_and_latencies(tmp_path: Path) -> None:
    begun = 1_787_313_600
    samples = {
        "TCP upload": [{"t": begun + 0.5, "val": 8.0, "dur": 0.25}, {"t": begun + 0.75, "val": 9.5, "dur": 0.25}],
        "Ping (ms) ICMP": [{"t": begun + t, "val": 40 + t} for t in (0.25, 0.5)],
        "qdisc_stats": [{"t": begun + t, "dropped": 3.0} for t in (0.1, 0.2, 0.3)],
    }
    units = {"TCP upload": {"UNITS": "Mbits/s"}, "Ping (ms) ICMP": {"UNITS": "ms"}}
    metadata = {"NAME": "tcp_1up", "T0": "2026-08-21T12:00:00.000000Z", "SERIES_META": units}
    document = {"version": 4, "metadata": metadata, "x_values": [], "results": {}, "raw_values": samples}
    file = tmp_path / "a.flent"
    file.write_text(json.dumps(document))
    imports.write("flent", file, tmp_path / "in")
    drawn = sets_of(Dataset(tmp_path / "in"))
    found = {
        name: [(row["series"], round(row["t"], 3), round(row["v"], 3)) for row in rows]
        for name, rows in drawn.items()
        if rows
    }
    upload, ping = (f"file {file}, series {name}" for name in units)
    assert found == {
        "lines_goodput": [(upload, 0.25, 8.0), (upload, 0.5, 9.5), (upload, 0.75, 9.5)],
        "lines_rtt": [(ping, 0.25, 40.25), (ping, 0.5, 40.5), (ping, 0.5, 40.5)],
    }


def test_connections_of_one_name_are_two_lines_and_the_first_twelve_are_shown(tmp_path: Path) -> None:
    traces.write(tmp_path / "many", connections=30)
    series = observed.Observed(Dataset(tmp_path / "many")).series
    assert (len(series.shown), series.total) == (SHOWN_AT_MOST, 30)
    assert [one.key for one in series.shown[:3]] == [(7,), (8,), (9,)]
    import pyarrow.parquet as pq

    file = tmp_path / "many" / "connections.parquet"
    rows = pq.read_table(file)
    same = rows.set_column(rows.column_names.index("source_port"), "source_port", [[40_000] * 30])
    same = same.set_column(rows.column_names.index("destination"), "destination", [["192.0.2.1"] * 30])
    pq.write_table(same, file)
    again = observed.Observed(Dataset(tmp_path / "many")).series
    assert [one.label for one in again.shown[:2]] == [
        "192.0.2.7:40000 to 192.0.2.1:443",
        "192.0.2.7:40000 to 192.0.2.1:443 (2)",
    ]


def test_a_figure_of_runs_is_refused_and_so_is_a_dataset_without_series(tmp_path: Path) -> None:
    traces.write(tmp_path / "trace")
    with pytest.raises(UsageError, match=r'"goodput" is of runs, and .* is a trace; expected timeseries'):
        pages.save(Dataset(tmp_path / "trace"), "goodput", tmp_path / "it.svg")
    run = synthetic.write_run(tmp_path / "run", **synthetic.CASES["empty"])
    with pytest.raises(UsageError, match='"timeseries" does not apply to this run'):
        pages.save(Dataset(run), "timeseries", tmp_path / "it.svg")
    imports.write("nginx", DATA / "nginx/combined.log", tmp_path / "in")
    with pytest.raises(UsageError, match='"timeseries" does not apply to this import'):
        pages.save(Dataset(tmp_path / "in"), "timeseries", tmp_path / "it.svg")
    assert figures.timeseries in figures.OF_DATASETS
    assert "data-figure" not in pages.write(tmp_path / "in", tmp_path / "in.html").read_text().split("<script")[0]


def test_series_of_a_capture_are_called_directions_and_one_row_is_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`knee import` counts connections, each of which has two series here."""
    monkeypatch.setattr(connections, "SHOWN_AT_MOST", 1)
    imports.write("pcap", CAPTURE, tmp_path / "in")
    dataset = Dataset(tmp_path / "in")
    html = pages.write(dataset, tmp_path / "page.html").read_text()
    total = observed.Observed(dataset).series.total
    assert f"1 direction of {total}, those that sent most" in html
    (tmp_path / "ss.txt").write_text("ESTAB 0 0 10.1.2.3:443 192.0.2.77:50123 cubic rtt:16/10 cwnd:10\n")
    imports.write("ss", tmp_path / "ss.txt", tmp_path / "one")
    html = pages.write(Dataset(tmp_path / "one"), tmp_path / "page.html").read_text()
    assert "<summary>sockets: 1 row</summary>" in html


def test_acks_of_a_capture_are_counted_by_the_segments_that_they_acknowledge(tmp_path: Path) -> None:
    folder = tmp_path / "cap"
    folder.mkdir()
    acked = [0, 2896, 5792, 5792, 7240, 152_040]
    rows = {
        "connection": [0] * 6,
        "host": [None] * 6,
        "local_addr": ["10.0.0.1"] * 6,
        "local_port": [1] * 6,
        "t_unix_ns": range(6),
        "bytes_acked": acked,
    }
    pq.write_table(pa.table(rows), folder / "capture_acks-000001.parquet")
    pq.write_table(pa.table({"connection": [0], "mss_bytes": [1448]}), folder / "capture_connections-000001.parquet")
    found = {row["segments"]: row["n"] for row in figures.acks._rows(observed.Observed(Dataset(folder)))}
    assert found == {1: 1, 2: 2, figures.acks.SEGMENTS_AT_MOST: 1}


def test_two_captures_are_laid_over_each_other_from_their_beginnings(tmp_path: Path) -> None:
    for name in ("guest", "host"):
        imports.write("pcap", CAPTURE, tmp_path / name)
    both = Beside(Dataset(tmp_path / "host"), Dataset(tmp_path / "guest"))
    names = {block.constants["series"] for block in both.series.lines()["inflight"]}
    assert {name.partition(":")[0] for name in names} == {"guest", "host"}
    looks = list(both.series.looks())
    assert len({(ink, place) for _, ink, place in looks}) == len(looks)
    assert {row["side"] for row in figures.acks._rows(both)} == {"guest", "host"}
    words = ["report", str(tmp_path / "host"), "--against", str(tmp_path / "guest"), "-q"]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    page = (tmp_path / "host" / "report.html").read_text()
    assert "guest and host" in page and 'data-figure="acks"' in page and 'data-figure="timeseries"' in page


def test_what_has_other_series_or_is_a_run_is_laid_over_nothing(tmp_path: Path) -> None:
    imports.write("pcap", CAPTURE, tmp_path / "cap")
    traces.write(tmp_path / "trace")
    with pytest.raises(UsageError, match=r"has series of acks, and .* of capture_acks; expected two of one kind"):
        Beside(Dataset(tmp_path / "cap"), Dataset(tmp_path / "trace"))
    run = synthetic.write_run(tmp_path / "run", **synthetic.CASES["one"])
    found = CliRunner().invoke(app, ["report", str(tmp_path / "cap"), "--against", str(run), "-q"])
    assert isinstance(found.exception, UsageError) and "knee diff RUN RUN --report" in str(found.exception)


def test_processors_of_mpstat_are_drawn_each_with_its_shares(tmp_path: Path) -> None:
    imports.write("mpstat", DATA / "mpstat/text-12.6.txt", tmp_path / "in")
    found = observed.Observed(Dataset(tmp_path / "in"))
    series = figures.processors._series(found)
    assert list(series) == ["cpu0", "cpu1"]
    # The first interval: 7.14 % in programs and 50 % in those of lowered priority.
    assert series["cpu0"]["user"][0] == pytest.approx(57.14, abs=0.01)
    assert pages.save(Dataset(tmp_path / "in"), "processors", tmp_path / "it.svg").read_text().startswith("<svg")
    imports.write("nginx", DATA / "nginx/combined.log", tmp_path / "none")
    with pytest.raises(UsageError, match='"processors" does not apply to this import'):
        pages.save(Dataset(tmp_path / "none"), "processors", tmp_path / "it.svg")


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"x": [1]}, ""),
        ({"t_unix_ns": [1]}, ""),
        ({"t_unix_ns": [1], "cookie": [1]}, ""),
        ({"cookie": [1], "snd_cwnd": [1]}, ""),
        ({"t_unix_ns": [1, 2], "cookie": [1, 1], "snd_cwnd": [1, 2]}, "sockets"),
    ],
)
def test_a_table_without_the_columns_of_a_series_has_a_report_without_one(
    columns: dict[str, list[int]], says: str, tmp_path: Path
) -> None:
    folder = tmp_path / "rec"
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / "sockets-000001.parquet")
    found = observed.Observed(Dataset(folder))
    assert found.has_series == bool(says)
    page = tmp_path / "page.html"
    words = ["report", folder, "--out", page, "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "tcpknee", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert next(iter(columns)) in page.read_text()
