"""The table `connections`: one row per connection of recordings, imports, runs and ready tables."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import Ended
from tcpknee.datasets.partitions import Damage
from tcpknee.errors import RunFolderError, UsageError
from tcpknee.fleet import connections
from tcpknee.fleet.connections import opening
from tcpknee.fleet.connections.folders import find

Call = Callable[..., Ended]

SECOND = 1_000_000_000
NOON = 1_787_313_600 * SECOND
TYPES = {
    **dict.fromkeys(("host_id", "unit", "arm"), pa.string()),
    **dict.fromkeys(("host", "boot_id", "netns", "state", "remote_addr", "local_addr", "algorithm"), pa.string()),
    **dict.fromkeys(("final", "delivery_rate_app_limited"), pa.bool_()),
    "cookie": pa.uint64(),
}


def sample(at: int, cookie: int | None = 1, **more: Any) -> dict[str, Any]:
    """A row of `sockets`, `at` seconds after the recording began."""
    row = {
        "t_unix_ns": NOON + at * SECOND,
        "t_mono_ns": (5 + at) * SECOND,
        "sample": at,
        "boot_id": "boot1",
        "host": "edge1",
        "netns": None,
        "final": False,
        "state": "ESTAB",
        "cookie": cookie,
        "algorithm": "cubic",
        "local_addr": "10.0.0.1",
        "local_port": 443,
        "remote_addr": "192.0.2.77",
        "remote_port": 5000,
        "bytes_acked": 1000 * (at + 1),
        "data_segs_out": 10 * (at + 1),
        "total_retrans": at,
        "busy_us": 100_000 * (at + 1),
        "srtt_us": 20_000,
        "min_rtt_us": 15_000,
        "inflight": 10,
        "unacked": 10,
        "snd_cwnd": 20,
        "delivery_rate_bits_per_sec": 1_000_000,
        "delivery_rate_app_limited": False,
    }
    return {**row, **more}


def recording(folder: Path, rows: list[dict[str, Any]], name: str = "sockets-000001") -> Path:
    """A folder with `sockets` of these rows."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([(key, TYPES.get(key, pa.int64())) for key in rows[0]])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / f"{name}.parquet")
    return folder


def rows_of(*data: Path, **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = connections.read(data, **more).to_pylist()
    return sorted(found, key=lambda row: (row["boot_id"], row["cookie"]))


def chosen(row: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def test_counters_of_a_connection_older_than_the_recording_are_differences_and_of_others_whole(tmp_path: Path) -> None:
    rows = [sample(at) for at in range(3)] + [sample(at, cookie=2) for at in (1, 2)]
    old, new = rows_of(recording(tmp_path / "rec", rows))
    assert chosen(old, "bytes_acked", "data_segs_out", "total_retrans", "samples") == (2000, 20, 2, 3)
    assert chosen(new, "bytes_acked", "data_segs_out", "total_retrans", "samples") == (3000, 30, 2, 2)
    assert old["retransmit_pct"] == pytest.approx(10) and new["retransmit_pct"] == pytest.approx(100 * 2 / 30)


@pytest.mark.parametrize(("name", "acked"), [("sockets-000001", 4000), ("sockets-000002", 1000)])
def test_counters_are_whole_where_the_first_dumps_of_a_whole_recording_had_no_connection(
    tmp_path: Path, name: str, acked: int
) -> None:
    """Where its first segment is gone, nobody knows what was before."""
    [found] = rows_of(recording(tmp_path / "rec", [sample(2), sample(3)], name))
    assert found["bytes_acked"] == acked


def test_retransmissions_of_a_fin_make_no_share_above_100(tmp_path: Path) -> None:
    """They are in total_retrans and not in data_segs_out, of Linux as of the simulator."""
    more = {"data_segs_out": 13, "total_retrans": 4, "bytes_acked": 1001}
    rows = [sample(0, dsack_dups=0), sample(1, dsack_dups=0, **more)]
    [found] = rows_of(recording(tmp_path / "rec", rows))
    assert chosen(found, "data_segs_out", "total_retrans") == (3, 4)
    assert chosen(found, "retransmit_pct", "loss_pct") == (100, 100)


def test_a_connection_seen_only_when_it_ended_counts_whole_and_has_no_samples(tmp_path: Path) -> None:
    rows = [sample(0), sample(3, cookie=9, final=True, sample=None, algorithm=None)]
    _, ended = rows_of(recording(tmp_path / "rec", rows))
    assert chosen(ended, "samples", "final", "bytes_acked", "algorithm") == (0, True, 4000, None)


def test_medians_leave_out_what_the_application_limited_and_samples_without_data(tmp_path: Path) -> None:
    rows = [
        sample(0),
        sample(1, delivery_rate_bits_per_sec=3_000_000, inflight=30),
        sample(2, delivery_rate_bits_per_sec=9, delivery_rate_app_limited=True, inflight=0, unacked=0, srtt_us=0),
    ]
    [found] = rows_of(recording(tmp_path / "rec", rows))
    assert chosen(found, "delivery_rate_bits_per_sec", "inflight_pkts", "srtt_us") == (2_000_000, 20, 20_000)
    assert found["app_limited_pct"] == pytest.approx(100 / 3)
    assert chosen(found, "queue_delay_us", "triggered") == (5000, True)


def test_what_bbr_knew_last_and_whether_ecn_was_agreed_on_are_of_the_samples_that_tell(tmp_path: Path) -> None:
    known = {"options": 8 | 2, "bbr_bw_bits_per_sec": 7_000_000, "bbr_min_rtt_us": 12_000}
    rows = [
        sample(0, options=8, bbr_bw_bits_per_sec=5_000_000, bbr_min_rtt_us=15_000),
        sample(1, **known),
        sample(2, options=8 | 16, bbr_bw_bits_per_sec=0, bbr_min_rtt_us=None),
        sample(0, cookie=9, options=2, bbr_bw_bits_per_sec=None, bbr_min_rtt_us=None),
        sample(0, cookie=10, options=None, bbr_bw_bits_per_sec=None, bbr_min_rtt_us=None),
    ]
    found, plain, untold = rows_of(recording(tmp_path / "rec", rows))
    names = ("ecn", "ecn_seen", "bbr_bw_bits_per_sec", "bbr_min_rtt_us")
    assert chosen(found, *names) == (True, True, 7_000_000, 12_000)
    assert chosen(plain, *names) == (False, False, None, None)
    assert chosen(untold, *names) == (None, None, None, None)
    assert chosen(rows_of(recording(tmp_path / "old", [sample(0)]))[0], *names) == (None, None, None, None)


def test_a_connection_that_never_left_its_initial_window_is_not_triggered(tmp_path: Path) -> None:
    calm = {"snd_cwnd": 10, "total_retrans": 0}
    [found] = rows_of(recording(tmp_path / "rec", [sample(at, **calm) for at in range(3)]))
    assert chosen(found, "left_initial_window", "triggered") == (False, False)


def test_equal_cookies_of_two_boots_are_two_connections(tmp_path: Path) -> None:
    first = recording(tmp_path / "one", [sample(0), sample(1)])
    second = recording(tmp_path / "two", [sample(0, boot_id="boot2"), sample(1, boot_id="boot2")])
    assert [row["boot_id"] for row in rows_of(first, second)] == ["boot1", "boot2"]


def test_a_connection_that_goes_on_in_the_next_folder_is_one(tmp_path: Path) -> None:
    first = recording(tmp_path / "one", [sample(at) for at in (0, 1)])
    second = recording(tmp_path / "two", [sample(at) for at in (2, 3)])
    [found] = rows_of(second, first)
    assert chosen(found, "samples", "bytes_acked") == (4, 3000)


def test_the_same_recording_twice_is_refused_and_left_out_once_when_asked(call: Call, tmp_path: Path) -> None:
    rows = [sample(0), sample(1)]
    data = [recording(tmp_path / name, rows) for name in ("one", "two")]
    ended = call("fleet", "connections", *map(str, data), "--out", "out")
    assert ended.code == 2 and "two: has boot boot1 of edge1 over a time that" in ended.err
    ended = call("fleet", "connections", *map(str, data), "--out", "out", "--partial", "--force")
    assert ended.code == 0 and ended.out.startswith("1 connection of 1 host") and "left out:" in ended.err


def test_folders_of_one_name_are_hosts_of_their_own(tmp_path: Path, small_run: Path) -> None:
    runs = [shutil.copytree(small_run, tmp_path / day / "run") for day in ("monday", "tuesday")]
    found = rows_of(*runs, small_run)
    assert len({row["host_id"] for row in found}) == len(found) == 18
    assert {row["host"] for row in found} == {"monday/run", "tuesday/run", f"{small_run.parent.name}/run"}
    assert {row["host"] for row in rows_of(runs[0])} == {"run"}
    unnamed = [sample(at, boot_id=None, host=None) for at in (0, 1)]
    imports = [recording(tmp_path / name, unnamed) for name in ("x/edge", "y/edge", "y/far")]
    assert [row["host_id"] for row in rows_of(*imports)] == ["far", "x/edge", "y/edge"]


def test_a_folder_by_two_spellings_is_read_once(tmp_path: Path) -> None:
    data = recording(tmp_path / "rec", [sample(at, boot_id=None, host=None) for at in (0, 1)])
    (tmp_path / "link").symlink_to(data)
    with connections.opened([data, tmp_path / "link", tmp_path / "rec" / ".." / "rec"]) as fleet:
        assert len(fleet.arrow()) == 1
        assert len([note for note in fleet.notes if note.endswith("was given twice, and is read once.")]) == 2


def test_a_corrupt_file_among_good_ones_is_refused_and_left_out_when_asked(call: Call, tmp_path: Path) -> None:
    data = recording(tmp_path / "rec", [sample(0), sample(1)])
    (data / "sockets-000002.parquet").write_bytes(b"PAR1 no table")
    ended = call("fleet", "connections", str(data), "--out", "out")
    assert ended.code == 2 and "sockets-000002.parquet: is damaged" in ended.err and "--partial" in ended.err
    ended = call("fleet", "connections", str(data), "--out", "out", "--partial", "--force", "--json")
    assert ended.code == 0 and json.loads(ended.out)["connections"] == 1 and "sockets-000002" in ended.out


def test_a_damaged_file_is_known_by_its_path_whatever_the_error_says(tmp_path: Path) -> None:
    data = recording(tmp_path / "rec", [sample(0), sample(1)])
    notes: list[str] = []
    [folder] = find([data], [], partial=True, notes=notes)
    table = folder.table("sockets", partial=True, notes=notes)
    assert table is not None
    folder.read.append(table)
    [path] = table.whole
    assert not folder.leave_out(Damage(tmp_path / "other.parquet", f"{path}: says so"), notes)
    assert folder.leave_out(Damage(path, "no word of the path"), notes)
    assert not table.whole and notes == ["left out: no word of the path"]


@pytest.mark.parametrize(
    ("address", "prefix"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("::ffff:192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2::9", "2001:db8:1::/48"),
        ("2001:db8::9", "2001:db8::/48"),
        ("h1f0c33", "h1f0c33"),
    ],
)
def test_a_client_is_known_by_its_network_or_by_the_hash_of_its_address(
    address: str, prefix: str, tmp_path: Path
) -> None:
    [found] = rows_of(recording(tmp_path / "rec", [sample(0, remote_addr=address)]))
    assert found["remote_prefix"] == prefix


def test_what_is_written_is_data_in_turn(call: Call, tmp_path: Path) -> None:
    rows = [sample(at, cookie=cookie) for at in range(3) for cookie in (1, 2)]
    data = recording(tmp_path / "rec", rows)
    assert call("fleet", "connections", str(data), "--out", str(tmp_path / "out")).code == 0
    assert rows_of(tmp_path / "out") == rows_of(data)


def test_a_log_that_was_written_before_does_not_stay_beside_other_connections(call: Call, tmp_path: Path) -> None:
    data, out = recording(tmp_path / "rec", [sample(0), sample(1)]), tmp_path / "out"
    log = recording(
        tmp_path / "log", [{"t_unix_ns": NOON, "host_id": "edge1", "unit": "edge1", "arm": "a"}], "assignments"
    )
    assert call("fleet", "connections", data, log, "--out", out).code == 0
    assert [row["arm"] for row in rows_of(out)] == ["a"]
    assert call("fleet", "connections", data, "--out", out).code == 2
    assert (out / "assignments.parquet").exists()
    assert call("fleet", "connections", data, "--out", out, "--force").code == 0
    assert [row["arm"] for row in rows_of(out)] == [None] and not (out / "assignments.parquet").exists()


def test_a_run_has_a_row_per_flow_and_its_axes_as_tags(small_run: Path) -> None:
    found = rows_of(small_run)
    assert len(found) == 6 and {row["algorithm"] for row in found} == {"cubic", "bbr1"}
    assert len({row["host_id"] for row in found}) == 6
    assert all("algorithm" in row["tags"] and row["loss_pct"] > 0 and row["bytes_acked"] > 0 for row in found)


def test_requests_are_matched_by_address_port_and_time(tmp_path: Path) -> None:
    data = recording(tmp_path / "rec", [sample(at, cookie=c, remote_port=5000 + c) for at in range(3) for c in (1, 2)])
    request = {"remote_addr": "192.0.2.77", "remote_port": 5001, "bytes_sent": 50_000, "request_time_us": 100_000}
    log = [{**request, "t_unix_ns": NOON + SECOND}, {**request, "t_unix_ns": NOON + 3600 * SECOND, "bytes_sent": 1}]
    pq.write_table(pa.Table.from_pylist(log), data / "requests-000001.parquet")
    matched, other = rows_of(data)
    assert matched["app_throughput_bits_per_sec"] == pytest.approx(4e6)
    assert other["app_throughput_bits_per_sec"] is None
    alone = tmp_path / "log"
    alone.mkdir()
    (data / "requests-000001.parquet").rename(alone / "requests-000001.parquet")
    with pytest.raises(RunFolderError, match=r"log: holds requests alone; .* into the folder of the host's recording"):
        find([data, alone], [], partial=False, notes=[])


def test_arms_come_from_the_log_by_connection_else_by_prefix_else_by_host(tmp_path: Path) -> None:
    rows = [sample(at, cookie=c, remote_addr=f"192.0.{c}.7") for at in (0, 1) for c in (1, 2, 3)]
    data = recording(tmp_path / "rec", rows)
    plain = {"t_unix_ns": NOON - SECOND, "host_id": "edge1", "boot_id": "boot1", "cookie": None, "design": "cluster"}
    log = [
        {**plain, "cookie": 1, "unit": "connection", "arm": "a"},
        {**plain, "unit": "192.0.2.0/24", "arm": "b"},
        {**plain, "unit": "192.0.2.0/24", "arm": "later", "t_unix_ns": NOON + SECOND},
        {**plain, "unit": "edge1", "arm": "c"},
    ]
    pq.write_table(pa.Table.from_pylist(log), data / "assignments.parquet")
    assert [row["arm"] for row in rows_of(data)] == ["a", "b", "c"]


def test_a_large_folder_gives_the_same_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = recording(tmp_path / "rec", [sample(at, cookie=c) for at in range(4) for c in range(50)])
    whole = rows_of(data)
    monkeypatch.setattr(opening, "ROWS_AT_ONCE", 30)
    assert len(whole) == 50 and rows_of(data) == whole


def test_rows_without_a_monotonic_time_are_read_by_their_wall_time(tmp_path: Path) -> None:
    """As of an import joined to a recording: one clock cannot be asked of all rows."""
    first = {**sample(0, cookie=1), "boot_id": "boot2", "t_mono_ns": None}
    rows = [first, {**first, **sample(3, cookie=1, boot_id="boot2", t_mono_ns=None)}]
    plain = [sample(at, cookie=c) for at in range(3) for c in (1, 2)]
    told = [chosen(row, "bytes_acked", "samples") for row in rows_of(recording(tmp_path / "rec", [*plain, *rows]))]
    assert told == [(2000, 3), (2000, 3), (3000, 2)]


def test_the_wall_clock_that_was_set_meanwhile_is_told(tmp_path: Path) -> None:
    late = NOON + 3600 * SECOND
    data = recording(tmp_path / "rec", [sample(0), sample(1, t_unix_ns=late)])
    with connections.opened([data]) as fleet:
        assert [note for note in fleet.notes if "the wall clock of edge1 was moved by 59 min 59 s" in note]


def test_tags_are_words_about_a_folder_and_a_wrong_folder_is_refused(tmp_path: Path) -> None:
    data = recording(tmp_path / "rec", [sample(0), sample(1)])
    assert rows_of(data, tags=[f"{data}:site=tokyo"])[0]["tags"] == '{"site": "tokyo"}'
    with pytest.raises(UsageError, match="no folder of DATA"):
        connections.read([data], tags=["elsewhere:site=tokyo"])
    with pytest.raises(UsageError, match="expected DIR:NAME=VALUE"):
        connections.read([data], tags=["site"])


def test_a_folder_without_connections_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(RunFolderError, match="expected sockets of a recording or an import"):
        connections.read([tmp_path])


def test_a_filter_that_is_no_sql_is_refused_with_the_columns(call: Call, tmp_path: Path) -> None:
    data = recording(tmp_path / "rec", [sample(0), sample(1)])
    ended = call("fleet", "connections", str(data), "--out", "out", "--where", "algorith = 1")
    assert ended.code == 2 and "--where" in ended.err and "retransmit_pct" in ended.err
