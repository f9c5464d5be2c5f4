"""`knee import iperf3` and `knee import flent`, end to end: output that iperf3 wrote, and a file as flent writes it."""

from __future__ import annotations

import copy
import gzip
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcpknee
from support import Ended, refused
from tcpknee import imports

Call = Callable[..., Ended]
Importer = Callable[[Path], Any]

IPERF3 = Path(__file__).parents[2] / "crates/import/tests/data/iperf3"
FLENT: dict[str, Any] = {
    "version": 4,
    "metadata": {
        "NAME": "tcp_1up",
        "TITLE": "to 192.0.2.77",
        "T0": "2026-08-21T12:00:00.500000Z",
        "HOST": "192.0.2.77",
        "LOCAL_HOST": "bench-7",
        "LENGTH": 1,
        "TOTAL_LENGTH": 1.4,
        "STEP_SIZE": 0.2,
        "IP_VERSION": 4,
        "FLENT_VERSION": "2.2.0",
        "BATCH_NAME": None,
        "IP_ADDRS": {"eth0": ["192.0.2.77", "2001:db8:1:2::7"]},
        "SERIES_META": {"TCP upload": {"UNITS": "Mbits/s"}, "Ping (ms) UDP": {"UNITS": "ms"}},
    },
    "x_values": [0.0, 0.2, 0.4],
    "results": {"TCP upload": [None, 9.5, 9.25], "TCP upload::tcp_rtt": [None, 20.5, 21.25]},
    "raw_values": {
        "TCP upload": [
            {"t": 1787313600.75, "val": 9.5, "dur": 0.2},
            {"t": 1787313601.0, "tcp_cwnd": 106, "tcp_rtt": 20.5, "tcp_rtt_var": 1.125, "tcp_pacing_rate": 12.5},
        ],
        "Ping (ms) UDP": [{"t": 1787313600.5, "val": 40.0, "dur": 0.2, "seq": 3}],
        "qdisc_stats": [{"t": 1787313600.5, "dropped": 3.0, "stations": {"02:00:00:00:00:01": {"tx": 1}}}],
        "TCP upload::tcp_rtt": [],
    },
}


def written(tmp_path: Path, document: object, name: str = "a.flent.gz") -> Path:
    path = tmp_path / name
    text = json.dumps(document).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def test_tests_of_iperf3_become_intervals_and_streams_that_sql_joins(call: Call, tmp_path: Path) -> None:
    ended = call("import", "iperf3", IPERF3 / "v3.12-bidir.json", IPERF3 / "v3.18-stream.json", "--out", "in")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[0] == "12 rows from 2 documents"
    query = (
        "select file[-9:] as file, stream, sender, algorithm, count(*) as n, sum(bytes) as bytes, "
        "any_value(bytes_written) as total, count(srtt_us) as rtts "
        "from iperf3_intervals join iperf3_streams using (file, test, stream, sender) "
        "group by all order by all"
    )
    rows = json.loads(call("sql", query, "in", "--json").out)["rows"]
    assert [tuple(row.values()) for row in rows] == [
        ("idir.json", 5, True, "cubic", 2, 2621440, 2621440, 2),
        ("idir.json", 7, False, "cubic", 2, 2621440, 2621440, 0),
        ("ream.json", 5, True, "reno", 2, 5111808, 5111808, 2),
        ("ream.json", 7, True, "reno", 2, 5111808, 5111808, 2),
    ]


def test_iperf3_figures_have_the_units_of_their_columns() -> None:
    """Against the document itself, which tells seconds, bytes and microseconds."""
    intervals, streams = tcpknee.import_iperf3(IPERF3 / "v3.12-omit.json", strict=True)
    document = json.loads((IPERF3 / "v3.12-omit.json").read_text())
    told = [stream for interval in document["intervals"] for stream in interval["streams"]]
    found = intervals.to_pylist()
    assert [row["snd_cwnd_bytes"] for row in found] == [one["snd_cwnd"] for one in told]
    assert [row["srtt_us"] for row in found] == [one["rtt"] for one in told]
    assert [row["written_bits_per_sec"] for row in found] == pytest.approx([one["bits_per_second"] for one in told])
    begun_ns = document["start"]["timestamp"]["timesecs"] * 10**9
    late = [one for one in found if not one["omitted"]]
    assert [row["t_unix_ns"] - row["end_ns"] - begun_ns for row in late] == [10**9] * len(late)
    sums = [stream["sender"] for stream in document["end"]["streams"]]
    assert streams["srtt_us_mean"].to_pylist() == [one["mean_rtt"] for one in sums]
    assert streams["duration_ns"].to_pylist() == [round(one["seconds"] * 1e9) for one in sums]
    assert streams["omit_ns"].to_pylist() == [10**9] * 2
    assert set(streams["algorithm"].to_pylist()) == {"bbr"}


def test_what_iperf3_calls_an_error_is_told_and_its_intervals_are_kept(call: Call, tmp_path: Path) -> None:
    files = [IPERF3 / "v3.12-interrupted.json", IPERF3 / "v3.18-error.json", IPERF3 / "v3.12-server.json"]
    ended = call("import", "iperf3", *files, "--out", "in", "--json")
    report = json.loads(ended.out)
    assert (ended.code, report["documents"], report["documents_not_understood"]) == (0, 5, 3)
    assert "v3.12-interrupted.json: iperf3 says: interrupt - the client has terminated" in ended.err
    assert "iperf3 says: unable to connect to server" in ended.err
    asked = "select any_value(error) as error, count(*) as n from iperf3_streams where error is not null"
    (row,) = json.loads(call("sql", asked, "in", "--json").out)["rows"]
    assert row == {"error": "interrupt - the client has terminated", "n": 1}
    ended = call("import", "iperf3", *files, "--out", "strict", "--strict")
    assert (ended.code, ended.out) == (1, "") and "nothing was imported" in ended.err
    assert not (tmp_path / "strict").exists()
    with pytest.raises(imports.NotUnderstood, match="3 of 5 documents are not understood"):
        tcpknee.import_iperf3(files, strict=True)


def test_a_stopped_stream_is_told_of_and_a_dry_run_writes_nothing(call: Call, tmp_path: Path) -> None:
    ended = call("import", "iperf3", IPERF3 / "v3.18-killed.json", "--out", "in", "--dry-run")
    assert (ended.code, ended.out) == (0, "3 rows from 1 document\nnothing written: --dry-run\n")
    assert "1 test has no end" in ended.err and not (tmp_path / "in").exists()


def wrong_files() -> Iterator[tuple[str, bytes, str]]:
    whole = (IPERF3 / "v3.12-omit.json").read_bytes()
    yield "empty", b"", "empty; expected"
    yield "blank", b" \n\n", "empty; expected"
    yield "pcap", bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"), "1: not JSON"
    yield "ss.txt", b"State Recv-Q Send-Q Local Address:Port\nESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n", "ss.txt:1: not JSON"
    yield "half", whole[: len(whole) // 2], "not JSON: EOF"
    yield "list", b"[1, 2]", "list"
    yield "other", b'{"a": {"b": 1}}', "other"
    yield "deep", b'{"start":' + b"[" * 100_000, "recursion limit"
    yield "half.gz", gzip.compress(whole)[:200], "half.gz: cannot be read"


WRONG = list(wrong_files())


@pytest.mark.parametrize(("name", "text", "says"), WRONG, ids=[name for name, _, _ in WRONG])
def test_what_is_no_output_of_them_is_refused_in_one_paragraph(
    call: Call, tmp_path: Path, name: str, text: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(text)
    for tool, expected in (("iperf3", "iperf3 -J"), ("flent", ".flent")):
        ended = call("import", tool, name, "--out", "in")
        refused(ended, says)
        assert expected in ended.err or "cannot be read" in ended.err
    assert not (tmp_path / "in").exists()


def test_one_wrong_file_among_others_is_counted_and_told(call: Call, tmp_path: Path) -> None:
    (tmp_path / "half.json").write_bytes((IPERF3 / "v3.1-tcp.json").read_bytes()[:700])
    ended = call("import", "iperf3", "half.json", IPERF3 / "v3.1-tcp.json", "--out", "in")
    assert (ended.code, ended.out.splitlines()[0]) == (0, "3 rows from 2 documents")
    assert "1 of 2 documents are not understood" in ended.err and "half.json:" in ended.err


def test_a_value_of_another_kind_is_named_by_its_place(tmp_path: Path) -> None:
    document = json.loads((IPERF3 / "v3.12-omit.json").read_text())
    document["intervals"][1]["streams"][0]["rtt"] = "fast"
    path = written(tmp_path, document, "odd.json")
    intervals, _ = tcpknee.import_iperf3(path)
    assert intervals["srtt_us"].null_count == 1
    report = json.loads(intervals.schema.metadata[b"import"])
    (first,) = report["first_not_understood"]
    assert first == [str(path), None, 'intervals[1].streams[0].rtt: got "fast"; expected a number, 0 or more']


def test_a_file_of_flent_becomes_tests_points_and_samples(call: Call, tmp_path: Path) -> None:
    path = written(tmp_path, FLENT)
    ended = call("import", "flent", path, "--out", "in")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[0] == "9 rows from 1 document"
    tests, points, samples = tcpknee.import_flent(path, strict=True)
    (test,) = tests.to_pylist()
    assert (test["name"], test["t_unix_ns"], test["duration_ns"]) == ("tcp_1up", 1787313600_500000000, 1_400_000_000)
    assert (test["points"], test["samples"], test["step_ns"]) == (4, 4, 200_000_000)
    assert json.loads(test["metadata"]) == FLENT["metadata"]
    assert points.select(["series", "units", "t_ns", "value"]).to_pylist()[:2] == [
        {"series": "TCP upload", "units": "Mbits/s", "t_ns": 200_000_000, "value": 9.5},
        {"series": "TCP upload", "units": "Mbits/s", "t_ns": 400_000_000, "value": 9.25},
    ]
    rows = {(row["series"], row["t_ns"]): row for row in samples.to_pylist()}
    tcp_info = rows["TCP upload", 500_000_000]
    columns = ("value", "snd_cwnd", "srtt_us", "rttvar_us", "pacing_rate_bits_per_sec")
    assert [tcp_info[name] for name in columns] == [None, 106, 20_500, 1_125, 12_500_000]
    assert rows["TCP upload", 250_000_000]["duration_us"] == pytest.approx(200_000)
    assert json.loads(rows["qdisc_stats", 0]["more"])["dropped"] == 3


def test_samples_of_old_files_get_the_units_and_the_zone_of_new_ones(tmp_path: Path) -> None:
    """Before format 4 UDP_RR was in transactions per second, before 3 times were local."""
    old = copy.deepcopy(FLENT) | {"version": 2}
    old["metadata"]["T0"] = "2026-08-21T14:00:00.5"
    tests, _, samples = tcpknee.import_flent(written(tmp_path, old))
    values = {row["series"]: row["value"] for row in samples.to_pylist() if row["seq"] == 3}
    assert values == {"Ping (ms) UDP": 25.0}
    assert tests["t_unix_ns"].to_pylist() == [1787313600_500000000]


def test_what_python_writes_for_no_number_is_null(tmp_path: Path) -> None:
    odd = copy.deepcopy(FLENT)
    odd["results"]["TCP upload"] = [float("nan"), float("inf"), 9.25]
    odd["metadata"]["NOTE"] = 'NaN "Infinity"'
    tests, points, _ = tcpknee.import_flent(written(tmp_path, odd), strict=True)
    assert tests["note"].to_pylist() == ['NaN "Infinity"']
    assert [row["value"] for row in points.to_pylist() if row["series"] == "TCP upload"] == [9.25]


def test_a_format_of_the_future_is_refused(call: Call, tmp_path: Path) -> None:
    path = written(tmp_path, FLENT | {"version": 5})
    refused(call("import", "flent", path, "--out", "in"), "format version 5; known are 1 to 4")


@pytest.mark.parametrize("how", ["truncate", "hash"])
def test_anonymised_addresses_and_names_of_hosts_stand_in_no_file(call: Call, tmp_path: Path, how: str) -> None:
    document = json.loads((IPERF3 / "v3.12-bidir.json").read_text())
    document["start"]["connecting_to"]["host"] = "bench-7"
    document["intervals"][0]["streams"][0]["rtt"] = "10.9.0.1"
    (iperf3, flent) = written(tmp_path, document, "a.json"), written(tmp_path, FLENT)
    said = ""
    for tool, path in (("iperf3", iperf3), ("flent", flent)):
        ended = call("import", tool, path, "--out", "in", "--anonymize", how)
        assert ended.code == 0
        said += ended.out + ended.err
    assert "intervals[0].streams[0].rtt: got a text; expected a number" in said
    files = sorted((tmp_path / "in").iterdir())
    assert len([file for file in files if file.suffix == ".parquet"]) == 5
    found = b"".join(file.read_bytes() for file in files) + said.encode()
    for secret in (b"192.0.2.77", b"10.9.0.1", b"2001:db8:1:2", b"bench-7", b"02:00:00:00", b"Linux host"):
        assert secret not in found


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Ways to every part of a document."""
    yield at
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*at, key))


def with_part(document: Any, at: tuple[Any, ...], value: Any) -> Any:
    if not at:
        return value
    changed = copy.deepcopy(document)
    within = changed
    for key in at[:-1]:
        within = within[key]
    within[at[-1]] = value
    return changed


def documents() -> Iterator[tuple[Importer, Any]]:
    for name in ("v3.12-reverse-omit.json", "v3.1-reverse-udp.json"):
        yield tcpknee.import_iperf3, json.loads((IPERF3 / name).read_text())
    yield tcpknee.import_flent, FLENT


DOCUMENTS = [(importer, document, list(places(document))) for importer, document in documents()]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_value_in_place_of_any_part_is_read_or_refused_in_one_sentence(data: st.DataObject) -> None:
    importer, document, ways = data.draw(st.sampled_from(DOCUMENTS))
    changed = with_part(document, data.draw(st.sampled_from(ways)), data.draw(VALUES))
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), changed, "a.json")
        try:
            tables = importer(path)
        except tcpknee.UsageError as error:
            assert "\n" not in str(error)
        else:
            assert sum(table.num_rows for table in tables) > 0


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_value_in_place_of_a_part_of_an_event_loses_no_other_event(data: st.DataObject) -> None:
    events = [json.loads(line) for line in (IPERF3 / "v3.18-stream.json").read_text().splitlines()]
    changed = with_part(events[1], data.draw(st.sampled_from(list(places(events[1])))), data.draw(VALUES))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        path.write_text("\n".join(json.dumps(event) for event in (events[0], changed, *events[2:])))
        intervals, streams = tcpknee.import_iperf3(path)
    assert intervals.num_rows >= 2 and streams.num_rows >= 2
