"""`knee import`, end to end, on texts made by hand and logs that nginx wrote."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tcpknee
from support import Ended, refused
from tcpknee import imports

Call = Callable[..., Ended]

OLD = (
    "\t ts sack bbr rto:220 rtt:16.139/10.041 ato:40 mss:1448 cwnd:106 ssthresh:52 bytes_acked:9067087 "
    "bytes_received:5775 segs_out:6327 segs_in:551 send 76.1Mbps lastsnd:14536 lastrcv:15584 lastack:14504 "
    "pacing_rate 98.5Mbps retrans:0/5 rcv_rtt:16.125 rcv_space:14400"
)
NEWER = (
    "\t ts sack bbr rto:220 rtt:16.139/10.041 ato:40 mss:1448 pmtu:1500 rcvmss:1269 advmss:1428 cwnd:106 ssthresh:52 "
    "bytes_sent:9070462 bytes_retrans:3375 bytes_acked:9067087 bytes_received:5775 segs_out:6327 segs_in:551 "
    "data_segs_out:6315 data_segs_in:12 bbr:(bw:99.5Mbps,mrtt:1.912,pacing_gain:1,cwnd_gain:2) send 76.1Mbps "
    "lastsnd:9896 lastrcv:10944 lastack:9864 pacing_rate 98.5Mbps delivery_rate 27.9Mbps delivered:6316 busy:3020ms "
    "rwnd_limited:2072ms(68.6%) retrans:0/5 dsack_dups:5 rcv_rtt:16.125 rcv_space:14400 rcv_ssthresh:65535 minrtt:1.907"
)
LOGS = Path(__file__).parents[2] / "crates/import/tests/data/nginx"
HEAD = "State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n"
DUMP = (
    f"Fri Aug 21 12:00:00 UTC 2026\n{HEAD}"
    f"ESTAB 0 36 10.1.2.3:443 192.0.2.77:50123\n{OLD}\n"
    "Fri Aug 21 12:01:00 UTC 2026\n"
    f"ESTAB 0 0 10.1.2.3:443 192.0.2.77:50123 {NEWER.strip()}\n"
    "ESTAB 0 0 [2001:db8::1]:443 [2001:db8:1:2::7]:50124 cubic cwnd:10\n"
)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    file = tmp_path / "dump.txt"
    file.write_text(DUMP)
    return file


def parts_of(folder: Path) -> list[str]:
    """Its segments; each import has besides its manifest, and nothing else is there."""
    names = sorted(path.name for path in folder.iterdir())
    assert all(name.endswith(".parquet") or name.startswith("import-") for name in names)
    return [name for name in names if name.endswith(".parquet")]


def test_a_dump_becomes_segments_that_sql_can_ask(call: Call, dump: Path) -> None:
    ended = call("import", "ss", dump, "--out", "in", "--host", "edge1")
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[0] == "3 rows of 2 dumps from 7 lines"
    assert ended.err == ""
    assert parts_of(dump.parent / "in") == ["sockets-000001.parquet"]
    query = (
        "select host, algorithm, max(bytes_acked) as acked, max(t_unix_ns) as t from sockets group by all order by 2"
    )
    found = json.loads(call("sql", query, "in", "--json").out)
    assert found["rows"] == [
        {"host": "edge1", "algorithm": "bbr", "acked": 9067087, "t": 1787313660 * 10**9},
        {"host": "edge1", "algorithm": "cubic", "acked": None, "t": 1787313660 * 10**9},
    ]


def test_an_import_goes_beside_what_the_folder_holds(call: Call, dump: Path) -> None:
    for _ in range(2):
        assert call("import", "ss", dump, "--out", "in").code == 0
    assert parts_of(dump.parent / "in") == ["sockets-000001.parquet", "sockets-000002.parquet"]
    assert call("sql", "select count(*) as n from sockets", "in", "--csv").out == "n\n6\n"


def test_lines_of_details_alone_are_rows_of_an_old_and_a_newer_iproute2(call: Call, tmp_path: Path) -> None:
    (tmp_path / "samples.txt").write_text(f"# Two lines of ss -tie\n# old\n{OLD}\n# newer\n{NEWER}\n")
    table = tcpknee.import_ss(tmp_path / "samples.txt")
    assert table["bytes_acked"].to_pylist() == [9067087, 9067087]
    assert table["delivery_rate_bits_per_sec"].to_pylist() == [None, 27_900_000]
    assert table["algorithm"].to_pylist() == ["bbr", "bbr"]
    report = json.loads(table.schema.metadata[b"import"])
    assert (report["lines_not_understood"], report["unknown_words"]) == (0, {})
    ended = call("import", "ss", "samples.txt", "--out", "in")
    assert ended.code == 0 and "2 rows have no time" in ended.err


def test_compressed_dumps_are_read_and_their_names_tell_the_time(tmp_path: Path) -> None:
    file = tmp_path / "ss-20260821T120000.txt.gz"
    file.write_bytes(gzip.compress(f"{HEAD}ESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n".encode()))
    assert tcpknee.import_ss([file])["t_unix_ns"].to_pylist() == [1787313600 * 10**9]
    assert tcpknee.import_ss([file], zone="+02:00")["t_unix_ns"].to_pylist() == [1787306400 * 10**9]
    with pytest.raises(tcpknee.UsageError, match=r"got \"CEST\"; expected an offset"):
        tcpknee.import_ss([file], zone="CEST")


def test_lines_not_understood_are_counted_and_shown(call: Call, tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text(f"{DUMP}nonsense here\nESTAB 0 0 10.0.0.1:1 10.0.0.2:2 cwnd:7 newword:8\n")
    ended = call("import", "ss", "dump.txt", "--out", "in", "--json")
    report = json.loads(ended.out)
    assert (ended.code, report["rows"], report["lines_not_understood"]) == (0, 4, 1)
    assert report["first_not_understood"] == [["dump.txt", 8, "nonsense here"]]
    assert report["unknown_words"] == {"newword": 1}
    assert "dump.txt:8: nonsense here" in ended.err and "newword (1)" in ended.err


def test_strict_imports_nothing_when_a_line_is_not_understood(call: Call, tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text(f"{DUMP}nonsense here\n")
    ended = call("import", "ss", "dump.txt", "--out", "in", "--strict")
    assert (ended.code, ended.out) == (1, "")
    assert "dump.txt:8: nonsense here" in ended.err and "nothing was imported" in ended.err
    assert not (tmp_path / "in").exists()
    with pytest.raises(imports.NotUnderstood, match=r"dump.txt:8: nonsense here: 1 of 8 lines"):
        tcpknee.import_ss("dump.txt", strict=True)
    (tmp_path / "dump.txt").write_text(DUMP)
    assert call("import", "ss", "dump.txt", "--out", "in", "--strict").code == 0


def test_a_dry_run_reports_and_writes_nothing(call: Call, dump: Path) -> None:
    dump.write_text(f"{DUMP}nonsense here\n")
    ended = call("import", "ss", dump, "--out", "in", "--dry-run")
    assert (ended.code, ended.out) == (0, "3 rows of 2 dumps from 8 lines\nnothing written: --dry-run\n")
    assert "nonsense here" in ended.err and not (dump.parent / "in").exists()
    report = json.loads(call("import", "ss", dump, "--out", "in", "--dry-run", "--json").out)
    assert (report["imported"], report["rows"], report["files"]) == (False, 3, [])
    assert json.loads(call("import", "ss", dump, "--out", "in", "--json").out)["imported"] is True


@pytest.mark.parametrize("how", ["truncate", "hash", "hash:a secret of ours"])
def test_anonymised_addresses_stand_in_no_file(call: Call, dump: Path, how: str) -> None:
    dump.write_text(f"{DUMP}nonsense about 192.0.2.77\n")
    ended = call("import", "ss", dump, "--out", "in", "--anonymize", how, "--json")
    assert ended.code == 0
    written = b"".join(path.read_bytes() for path in (dump.parent / "in").iterdir()) + (ended.out + ended.err).encode()
    for secret in (b"192.0.2.77", b"10.1.2.3", b"2001:db8:1:2::7", b"a secret of ours", bytes([192, 0, 2, 77])):
        assert secret not in written
    remote = pq.read_table(dump.parent / "in" / "sockets-000001.parquet")["remote_addr"].to_pylist()
    assert remote[0] == remote[1] != remote[2]
    assert remote[0] == "192.0.2.0" if how == "truncate" else re.fullmatch("h[0-9a-f]{16}", remote[0])


def test_what_cannot_be_read_is_named_before_anything_is_written(call: Call, dump: Path) -> None:
    (dump.parent / "empty").touch()
    (dump.parent / "text").write_text("no socket\nin here\n")
    refused(call("import", "ss", dump, "gone", "--out", "in"), "gone: cannot be read", "No such file")
    refused(call("import", "ss", dump.parent, "--out", "in"), "Is a directory")
    refused(call("import", "ss", "empty", "--out", "in"), "empty: empty", "ss -tinem")
    refused(call("import", "ss", "text", "--out", "in"), "no TCP socket", "text:1: no socket")
    refused(call("import", "ss", "--out", "in"), "FILE")
    refused(call("import", "ss", dump, "--out", "in", "--anonymize", "secret-typed-wrong"), "truncate:V4BITS/V6BITS")
    refused(call("import", "ss", dump, "--out", dump), "dump.txt")
    assert not (dump.parent / "in").exists()


def test_a_file_that_is_named_twice_is_refused_before_its_rows_count_twice(call: Call, dump: Path) -> None:
    (link := dump.with_name("other.txt")).symlink_to(dump)
    for again, same in ((dump, "is named twice"), (link, f"is the same file as {dump}")):
        words = f"{again}: {same}; expected each file once"
        refused(call("import", "ss", dump, again, "--out", dump.parent / "rec"), words)
    assert not (dump.parent / "rec").exists()


def test_a_folder_that_cannot_be_written_is_named(call: Call, dump: Path) -> None:
    refused(call("import", "ss", dump, "--out", "/proc/import"), "/proc/import", "cannot make the folder")


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "tcpknee", "import", "ss", str(pipe), "--out", str(tmp_path / "in")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    with pipe.open("w"):  # what asks whether it can be opened
        pass
    feed = os.open(pipe, os.O_WRONLY)
    begun = time.monotonic()
    while not (tmp_path / "in").exists():
        assert time.monotonic() - begun < 20 and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    with suppress(BrokenPipeError):
        while process.poll() is None:
            assert time.monotonic() - begun < 30
            os.write(feed, DUMP.encode() * 100)
    os.close(feed)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130 and b"Traceback" not in said
    assert not (tmp_path / "in").exists()


def test_what_a_killed_import_left_goes_with_the_next_one(call: Call, dump: Path) -> None:
    left = dump.parent / "in" / ".importing"
    left.mkdir(parents=True)
    (left / "sockets-000001.parquet.part").write_bytes(b"PAR1 half")
    assert call("import", "ss", dump, "--out", "in").code == 0
    assert parts_of(dump.parent / "in") == ["sockets-000001.parquet"]


def test_an_access_log_becomes_requests_by_a_format_of_the_configuration(call: Call, tmp_path: Path) -> None:
    conf = LOGS / "nginx.conf"
    ended = call("import", "nginx", LOGS / "transport.log", "--conf", conf, "--format", "transport", "--out", "in")
    assert (ended.code, ended.err) == (0, ""), ended.err
    lines = (LOGS / "transport.log").read_text().splitlines()
    assert ended.out.splitlines()[0] == f"{len(lines)} rows from {len(lines)} lines"
    assert parts_of(tmp_path / "in") == ["requests-000001.parquet"]
    found = pq.read_table(tmp_path / "in" / "requests-000001.parquet").to_pylist()
    assert [row["srtt_us"] for row in found] == [int(line.split()[5]) for line in lines]
    assert [row["t_unix_ns"] // 10**6 for row in found] == [int(line.split()[0].replace(".", "")) for line in lines]
    asked = "select count(*) as n from requests where status = 200 and snd_cwnd is not null"
    assert json.loads(call("sql", asked, "in", "--json").out)["rows"][0]["n"] > 0


def test_a_log_format_is_given_as_text_and_combined_is_known(tmp_path: Path) -> None:
    combined = tcpknee.import_nginx(LOGS / "combined.log", strict=True)
    assert "http_user_agent" in combined.column_names
    (tmp_path / "own.log").write_text("0.250 16 10.0.0.1\n-\n1.000 20 10.0.0.2\n")
    own = tcpknee.import_nginx(
        tmp_path / "own.log", format="$request_time $tcpinfo_rtt $remote_addr", anonymize="truncate"
    )
    assert own.to_pydict() == {
        "request_time_us": [250_000, 1_000_000],
        "srtt_us": [16, 20],
        "remote_addr": ["10.0.0.0", "10.0.0.0"],
    }
    assert json.loads(own.schema.metadata[b"import"])["lines_not_understood"] == 1


def test_a_format_that_cannot_be_read_back_is_refused(call: Call, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("1 2\n")

    def refuse(*options: object, says: str) -> None:
        refused(call("import", "nginx", log, "--out", "in", *options), says)

    refuse("--format", "$status$bytes_sent", says="log_format")
    refuse("--format", "$status", "--escape", "xml", says="expected default, json or none")
    refuse("--format", "nope", "--conf", LOGS / "nginx.conf", says="nginx.conf")
    refuse("--conf", tmp_path / "gone", "--format", "x", says="gone: cannot be read")
    refuse("--format", "[$status]", says="no request in it: 1 of 1 lines are not understood, as")
    assert not (tmp_path / "in").exists()
