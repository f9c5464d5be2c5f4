"""Live connections and queues, as `knee trace` sees them, against what the sockets and the qdisc say of themselves."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import probes
import tcpknee
from building import ROOT, run
from lab import Lab, laid_out
from loaded import programs, programs_of
from seen import whole
from tcpknee.cli import report
from tcpknee.errors import KernelUnsupported, RunFolderError, UsageError
from tcpknee.live import qdiscs, trace, which
from tcpknee.pages import trace_text
from waiting import PATIENCE_SEC, until

TRACED = ROOT / "tests/kernel/traced.py"
PORT, OTHER_PORT = 5301, 5302
SENT_BYTES = 3_000_000
RATE_BITS_PER_SEC = 20_000_000
BUFFER_BYTES = 60_000
KNEE = (sys.executable, "-m", "tcpknee", "trace")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A router with a tbf between two hosts. TCP hands single packets down, which the tbf would split otherwise."""
    probes.need_tracepoint("tcp_probe")
    probes.need_tracepoint("qdisc_enqueue")
    with laid_out(RATE_BITS_PER_SEC, BUFFER_BYTES) as found:
        run("ip", "-n", found.sender, "link", "set", "veth0", "gso_max_segs", 1)
        yield found


def within(namespace: str, *words: object) -> list[str]:
    return ["ip", "netns", "exec", namespace, sys.executable, str(TRACED), *map(str, words)]


@contextmanager
def server(lab: Lab, port: int) -> Iterator[None]:
    process = subprocess.Popen(within(lab.receiver, "server", port), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.kill()
        process.communicate()


def send(lab: Lab, port: int, sent_bytes: int = SENT_BYTES) -> dict[str, Any]:
    """Sends, and returns what the sending socket said."""
    said: dict[str, Any] = json.loads(run(*within(lab.sender, "client", lab.address, port, sent_bytes)))
    return said


@contextmanager
def until_done() -> Iterator[tuple[threading.Event, threading.Event]]:
    """(attached, stop): set by the trace and for the trace."""
    attached, stop = threading.Event(), threading.Event()
    try:
        yield attached, stop
    finally:
        stop.set()


@pytest.fixture(scope="module")
def traced(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> tuple[trace.Trace, dict[str, Any], dict[str, Any]]:
    """A trace of the connections to PORT while others go on, and what the two senders said of themselves.

    Of the first and last events none is missed; others may be, which the trace counts.
    """
    return whole(lambda: trace_of_two(lab, tmp_path_factory.mktemp("trace") / "trace"), missed_ends)


def missed_ends(taken: tuple[trace.Trace, dict[str, Any], dict[str, Any]]) -> int:
    found, ours, _ = taken
    words = [row["event"] for row in found.table("events").to_pylist() if row["cookie"] == ours["cookie"]]
    last_is_there = [row["bytes_acked"] for row in rows_of(found, ours["cookie"])][-1:] == [SENT_BYTES + 1]
    return len({"open", "established", "fin_wait1"} - set(words)) + (not last_is_there)


def trace_of_two(lab: Lab, folder: Path) -> tuple[trace.Trace, dict[str, Any], dict[str, Any]]:
    taken: list[Any] = []
    with server(lab, PORT), server(lab, OTHER_PORT), until_done() as (attached, stop):

        def tracing() -> None:
            try:
                taken.append(trace.connections(folder, port=PORT, stop=stop, progress=lambda *_: attached.set()))
            except BaseException as error:
                taken.append(error)
                attached.set()

        thread = threading.Thread(target=tracing)
        thread.start()
        assert attached.wait(PATIENCE_SEC)
        assert not taken, taken[0]
        other = send(lab, OTHER_PORT, 200_000)
        ours = send(lab, PORT)
        stop.set()
        thread.join(PATIENCE_SEC)
    if isinstance(taken[0], BaseException):
        raise taken[0]
    return taken[0], ours, other


def rows_of(found: trace.Trace, cookie: int) -> list[dict[str, Any]]:
    return [row for row in found.table("acks").to_pylist() if row["cookie"] == cookie]


def test_every_ack_has_a_row_or_its_absence_is_counted(traced: Any) -> None:
    """A row holds what the rows before it acknowledged and no more: an ACK without a row leaves a step."""
    found, _, _ = traced
    assert found.about["lost"] == 0
    steps = 0
    for cookie in {row["cookie"] for row in found.table("connections").to_pylist()}:
        for row, following in pairwise(rows_of(found, cookie)):
            new = (row["ack_seq"] - row["snd_una"]) % (1 << 32)
            advanced = new if new < 1 << 31 else 0
            steps += following["snd_una"] != (row["snd_una"] + advanced) % (1 << 32)
    assert steps == found.about["gaps"]
    # A machine that is busy with other things makes some.
    assert steps <= 0.02 * found.about["rows"]["acks"]


def test_a_sender_has_a_row_for_each_segment_it_was_sent(traced: Any) -> None:
    found, ours, _ = traced
    rows = rows_of(found, ours["cookie"])
    # tcpi_segs_in counts the SYN-ACK too, and segments that were put into others while the socket was busy. How many
    # ACKs a receiver sends is its own business: a busy one sends few.
    there = ours["segments_in"] - 1
    assert there / 2 <= len(rows) <= there
    times = [row["t_ns"] for row in rows]
    assert times == sorted(times)


def test_an_ack_finds_the_connection_as_its_socket_had_it(traced: Any) -> None:
    found, ours, _ = traced
    last = rows_of(found, ours["cookie"])[-1]
    assert {name: last[name] for name in ours["noted"] if name != "unacked"} == {
        name: value for name, value in ours["noted"].items() if name != "unacked"
    }
    # The byte that was sent after it was noted.
    assert last["unacked"] == 1
    assert last["snd_nxt"] == (last["snd_una"] + 1) % (1 << 32)
    assert last["ack_seq"] == last["snd_nxt"]


def test_what_is_acknowledged_only_grows_up_to_all_that_was_sent(traced: Any) -> None:
    found, ours, _ = traced
    rows = rows_of(found, ours["cookie"])
    acked = [row["bytes_acked"] for row in rows]
    assert acked == sorted(acked)
    # The SYN counts as one.
    assert acked[-1] == SENT_BYTES + 1
    first = rows[0]["snd_una"]
    assert (rows[-1]["snd_una"] - first) % (1 << 32) == acked[-1] - acked[0]


def test_connections_to_another_port_leave_no_row(traced: Any) -> None:
    found, ours, other = traced
    connections = {row["cookie"]: row for row in found.table("connections").to_pylist()}
    assert other["cookie"] not in connections
    # The two ends are on one host, and each is a connection.
    assert len(connections) == 2
    mine = connections[ours["cookie"]]
    assert (mine["source"], mine["source_port"]) == ("10.77.1.2", ours["port"])
    assert (mine["destination"], mine["destination_port"]) == ("10.77.2.2", PORT)
    assert {row["cookie"] for row in found.table("acks", ["cookie"]).to_pylist()} == set(connections)


def test_events_tell_of_opening_recovery_and_retransmissions_in_the_words_of_a_run(traced: Any) -> None:
    found, ours, _ = traced
    events = [row for row in found.table("events").to_pylist() if row["cookie"] == ours["cookie"]]
    words = [row["event"] for row in events]
    assert words[:2] == ["open", "established"]
    assert "fin_wait1" in words
    # 60 kB of buffer do not hold what slow start sends.
    resent = [row for row in events if row["event"] == "retransmit"]
    assert ours["noted"]["total_retrans"] >= len(resent) > 0
    assert all(row["payload_bytes"] > 0 for row in resent)
    assert ("recovery" in words) or ("loss" in words)


def test_the_cost_of_each_program_is_stated(traced: Any) -> None:
    found, ours, _ = traced
    cost = found.about["cost"]
    assert cost["not_measured"] is None
    probe = next(one for one in cost["programs"] if one["tracepoint"] == "tcp_probe")
    assert probe["runs"] >= len(rows_of(found, ours["cookie"]))
    # Some hundred ns on an idle machine; a thousand times more is no reading of a clock.
    assert 0 < probe["run_time_ns"] / probe["runs"] < 1_000_000


def test_what_the_qdisc_dropped_meanwhile_is_told_apart_from_what_the_path_lost(traced: Any, lab: Lab) -> None:
    """The whole of it is this host's own: the tbf of the router, whose buffer is short."""
    found, ours, _ = traced
    (one,) = found.about["qdisc_drops"]
    assert (one["netns"], one["device"], one["kind"]) == (lab.router, "to-b", "tbf")
    # It dropped what was sent again, but for a few spurious retransmissions, and segments of the other connection.
    assert one["packets"] >= 0.9 * ours["noted"]["total_retrans"] > 0
    (line,) = trace_text.drops(found)
    assert line.startswith(f"Dropped by the local qdisc tbf of to-b in {lab.router}: {one['packets']} packets, of all")


def test_the_report_of_a_trace_is_its_figure_with_a_line_per_sender(traced: Any, tmp_path: Path) -> None:
    found, _, _ = traced
    picture = tmp_path / "trace.svg"
    report.write(found.folder, picture)
    drawn = picture.read_text()
    for words in ("10.77.2.2:5301", "Smoothed RTT", "(segments)", "(ms)", "Time (s)", "recovery"):
        assert words in drawn
    with pytest.raises(UsageError, match="is a trace"):
        report.write(found.folder, figure="goodput")


def test_nothing_of_a_trace_outlives_its_process_however_it_ends(lab: Lab, tmp_path: Path) -> None:
    probes.need_programs("bpftool")
    out = tmp_path / "killed"
    process = subprocess.Popen([*KNEE, "--port", "1", "--out", out, "-q"])
    try:
        ours = until(lambda: programs_of(process.pid), "it traces")
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_SEC)
        until(lambda: not ours.keys() & programs().keys(), "its programs are gone")
    finally:
        process.kill()
        process.wait()


def closed_connections(out: Path) -> int:
    """As they are in the tables so far, of which there may be none yet."""
    with contextlib.suppress(RunFolderError, UsageError):
        return int(tcpknee.sql("from connections where closed", out).num_rows)
    return 0


def test_what_a_killed_trace_had_seen_two_seconds_before_can_be_asked_for(lab: Lab, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    process = subprocess.Popen([*KNEE, f"{lab.address}:{PORT}", "--out", out, "-q"])
    try:
        until(out.is_dir, "it traces")
        with server(lab, PORT):
            sent = send(lab, PORT, 300_000)
        # It is read while it is written.
        until(lambda: closed_connections(out), "a connection that closed")
    finally:
        process.kill()
        process.wait()
    assert not (out / "trace.json").exists()
    asked = "select cookie, count(*) as acks, max(bytes_acked) as acked from acks group by all"
    (row,) = tcpknee.sql(asked, out).to_pylist()
    assert row["cookie"] == sent["cookie"]
    # The SYN counts as one.
    assert row["acked"] == 300_001
    (connection,) = tcpknee.sql("select acks, closed from connections", out).to_pylist()
    assert connection == {"acks": row["acks"], "closed": True}
    assert {path.name for path in out.glob("*.part")} == {f"{table}-000001.parquet.part" for table in trace.TABLES}
    assert not list(out.glob("*.parquet")), "reading changes nothing"


def test_ctrl_c_ends_a_trace_with_what_was_seen_so_far(lab: Lab, tmp_path: Path) -> None:
    out = tmp_path / "stopped"
    process = subprocess.Popen(
        [*KNEE, f"{lab.address}:{PORT}", "--out", out, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(out.is_dir, "it traces")
        with server(lab, PORT):
            send(lab, PORT, 50_000)
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=PATIENCE_SEC)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, complained
    told = json.loads(said)
    # Of the two ends only the one whose far end it is.
    assert [(row["destination"], row["destination_port"]) for row in told["connections"]] == [(lab.address, PORT)]
    assert sorted(path.name for path in out.iterdir()) == [
        "acks.parquet",
        "connections.parquet",
        "events.parquet",
        "trace.html",
        "trace.json",
    ]
    assert 'src="http' not in (out / "trace.html").read_text()


def test_an_ordinary_user_is_told_which_capabilities_it_takes_and_nothing_is_left(tmp_path: Path) -> None:
    probes.need_root("giving up capabilities")
    probes.need_programs("setpriv")
    out = tmp_path / "refused"
    words = ["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin", *KNEE, "--port", "80", "--out", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "CAP_PERFMON, CAP_BPF" in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()


def test_a_device_that_is_not_there_is_refused_at_once_with_those_there_are() -> None:
    probes.need_root("looking into every network namespace")
    done = subprocess.run(
        [*KNEE, "--qdisc", "--device", "nope", "--for", "100s"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SEC,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert '--device: got "nope"' in line
    assert "lo" in line.split("expected one of ")[1].rstrip(".").split(", ")


def test_a_device_of_another_namespace_is_found_without_naming_it(lab: Lab) -> None:
    router = lab.router
    which.check_device("to-b", None)
    which.check_device("to-b", router)
    with pytest.raises(
        UsageError, match=f'network namespace {router}; expected one of lo, .*to-b.*Did you mean "to-b"'
    ):
        which.check_device("to-bb", router)
    with pytest.raises(UsageError, match=f"network namespace {lab.sender}"):
        which.check_device("to-b", lab.sender)


def test_a_device_that_goes_during_a_trace_is_said_to_be_gone(lab: Lab) -> None:
    run("ip", "-n", lab.sender, "link", "add", "gone0", "type", "veth", "peer", "name", "gone1")
    process = subprocess.Popen(
        [*KNEE, "--qdisc", "--device", "gone0", "--netns", lab.sender, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        until(lambda: programs_of(process.pid), "it traces")
        time.sleep(0.5)
        run("ip", "-n", lab.sender, "link", "del", "gone0")
        # It is said while the trace goes on.
        assert "the device gone0 is gone" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=PATIENCE_SEC)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, complained
    assert json.loads(said)["gone_after_sec"] > 0


@pytest.mark.timed
def test_waits_in_a_tbf_are_what_its_rate_and_its_limit_allow(lab: Lab) -> None:
    found = []
    with server(lab, PORT), until_done() as (attached, stop):

        def measuring() -> None:
            try:
                watched = {"device": "to-b", "netns": lab.router, "stop": stop}
                found.append(qdiscs.qdiscs(**watched, progress=lambda _: attached.set()))
            except KernelUnsupported as error:
                found.append(error)
                attached.set()

        thread = threading.Thread(target=measuring)
        thread.start()
        assert attached.wait(PATIENCE_SEC)
        assert not found, found[0]
        send(lab, PORT)
        stop.set()
        thread.join(PATIENCE_SEC)
    (one,) = found[0].latencies
    assert (one.device, one.kind) == ("to-b", "tbf")
    assert sum(count for _, _, count in one.buckets) == one.measured
    # Most of what it took in is seen to leave; a few leave a busy machine under another address than they came by.
    assert one.taken_in >= 0.95 * SENT_BYTES / 1448
    assert one.measured >= 0.95 * one.taken_in
    assert one.unknown <= 0.05 * one.taken_in
    # A full buffer takes this long to leave. Reno fills it, and packets that find it empty leave at once; a timer may
    # be late on a busy machine.
    full_ns = BUFFER_BYTES * 8e9 / RATE_BITS_PER_SEC
    median_ns, p95_ns = one.quantile_ns(0.5), one.quantile_ns(0.95)
    assert median_ns is not None
    assert p95_ns is not None
    assert one.buckets[0][0] < median_ns < full_ns
    assert full_ns / 2 < p95_ns <= one.max_ns < full_ns + 50e6
    # Runs that the kernel left out, which it counts itself, are not what found no room.
    assert found[0].lost == 0


@pytest.mark.parametrize("what", [("--address", "0.0.0.0/0", "--out", "tr"), ("--qdisc", "--device", "lo")], ids=str)
def test_a_trace_ends_as_any_where_the_process_that_named_the_namespace_has_gone(
    what: tuple[str, ...], tmp_path: Path
) -> None:
    """The namespace stays as long as it is looked at; its file in /proc does not."""
    probes.need_tracepoint("qdisc_enqueue")
    held = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    words = [*KNEE, *what, "--netns", str(held.pid), "--for", "3s", "--json"]
    try:
        until(lambda: Path(f"/proc/{held.pid}/comm").read_text(encoding="utf-8") == "sleep\n", "it is there")
        process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            until(lambda: programs_of(process.pid), "it traces")
            time.sleep(0.5)
            held.kill()
            held.wait()
            said, complained = process.communicate(timeout=PATIENCE_SEC)
        finally:
            process.kill()
            process.wait()
    finally:
        held.kill()
        held.wait()
    assert process.returncode == 0, complained
    found = json.loads(said)
    assert found["seconds"] >= 3 and found.get("gone_after_sec") is None and found.get("qdisc_drops", []) == []
    assert "--qdisc" in what or (tmp_path / "tr" / "trace.json").is_file()
