"""Recordings by the command, of connections whose ends this test knows."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import probes
import tcpknee
from ends import exchange, listening
from waiting import PATIENCE_SEC, until

COMMAND = [sys.executable, "-m", "tcpknee", "record"]
UNIT = Path(__file__).parents[2] / "packaging/systemd/knee-record.service"


def rows(folder: Path) -> list[dict[str, Any]]:
    """Every row of `sockets`, in the order of the files."""
    return [row for path in sorted(folder.glob("sockets-*.parquet")) for row in pq.read_table(path).to_pylist()]


@contextmanager
def recording(folder: Path, *options: str, before: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[bytes]]:
    """`knee record` under way, its first sample in the files."""
    command = [*before, *COMMAND, "--out", str(folder), "--json", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        until(lambda: list(folder.glob("cpu-*")) or process.poll() is not None, "a first sample")
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[bytes], by: int) -> dict[str, Any]:
    process.send_signal(by)
    said, complaints = process.communicate(timeout=PATIENCE_SEC)
    assert process.returncode == 0, complaints.decode()
    report: dict[str, Any] = json.loads(said)
    return report


def test_every_short_connection_has_its_final_row(tmp_path: Path) -> None:
    with listening() as (listener, port), recording(tmp_path, "--port", str(port)) as process:
        sizes = {}
        for number in range(2_000):
            near, far = exchange(listener, 1 + number)
            sizes[near.getsockname()[1], number] = 1 + number
            near.close()
            far.close()
        report = ended(process, signal.SIGTERM)
    final = [row for row in rows(tmp_path) if row["final"]]
    sent = sorted(row["bytes_sent"] for row in final if row["remote_port"] == port)
    assert report["events_lost"] == 0
    assert sent == sorted(sizes.values())
    assert len({row["cookie"] for row in final}) == len(final)


def test_final_row_knows_the_algorithm_and_the_owner_that_samples_told(tmp_path: Path) -> None:
    options = ("--every", "300ms", "--processes")
    with listening() as (listener, port), recording(tmp_path, "--port", str(port), *options) as process:
        near, far = exchange(listener, 5)
        time.sleep(1)
        near.close()
        far.close()
        time.sleep(0.3)
        ended(process, signal.SIGINT)
    found = rows(tmp_path)
    [last] = [row for row in found if row["final"] and row["remote_port"] == port]
    samples = [row for row in found if row["cookie"] == last["cookie"] and not row["final"] and row["uid"] is not None]
    for name in ("algorithm", "uid", "inode", "cgroup_id"):
        assert last[name] == samples[-1][name] is not None, name
    # On a host with very many descriptors the bounded walk has not come to us yet.
    assert {row["pid"] for row in [*samples, last]} <= {None, os.getpid()}
    times = [row["t_mono_ns"] for row in samples]
    assert times == sorted(times)
    assert [row["sample"] for row in samples] == list(range(samples[0]["sample"], samples[-1]["sample"] + 1))


@pytest.mark.timed
def test_kill_9_costs_one_interval_at_most(tmp_path: Path) -> None:
    from tcpknee import _core

    every = 0.2
    with listening() as (listener, port):
        near, far = exchange(listener, 5)
        with recording(tmp_path, "--port", str(port), "--every", "200ms") as process:
            time.sleep(3 * every)
            killed_ns = time.monotonic_ns()
            process.kill()
            process.wait()
        _core.record(json.dumps({"out": str(tmp_path), "every": "1s", "for": "1ms", "host": False}), 0, None)
        near.close()
        far.close()
    times = [row["t_mono_ns"] for row in rows(tmp_path) if row["local_port"] == port and row["t_mono_ns"] < killed_ns]
    assert times
    # A busy machine takes its samples late; what was taken an interval before the end is there.
    assert killed_ns - max(times) < 3 * every * 1e9
    assert not list(tmp_path.glob("*.part"))


def test_host_s_counters_are_in_tables_of_their_own(tmp_path: Path) -> None:
    subprocess.run([*COMMAND, "--out", str(tmp_path), "--for", "250ms", "--every", "100ms"], check=True)
    counters = pq.read_table(next(tmp_path.glob("counters-*.parquet"))).to_pylist()
    names = {(row["source"], row["name"]) for row in counters}
    assert {("snmp", "Tcp.RetransSegs"), ("netstat", "TcpExt.TCPTimeouts"), ("sockstat", "TCP.inuse")} <= names
    assert any(row["source"] == "softnet_stat" and row["cpu"] == 0 for row in counters)
    cpus = pq.read_table(next(tmp_path.glob("cpu-*.parquet"))).to_pylist()
    assert {row["cpu"] for row in cpus} == set(range(len({row["cpu"] for row in cpus})))
    nics = pq.read_table(next(tmp_path.glob("nic-*.parquet"))).to_pylist()
    loopback = [row["rx_bytes"] for row in nics if row["interface"] == "lo"]
    assert loopback == sorted(loopback) and len(loopback) >= 2


def test_addresses_that_were_anonymised_are_in_no_file(tmp_path: Path) -> None:
    with listening() as (listener, port):
        near, far = exchange(listener, 5)
        options = ("--for", "150ms", "--every", "100ms", "--anonymize", "hash", "--port", str(port))
        subprocess.run([*COMMAND, "--out", str(tmp_path), *options], check=True)
        near.close()
        far.close()
    assert rows(tmp_path)
    for path in tmp_path.iterdir():
        found = path.read_bytes()
        assert b"127.0.0.1" not in found and bytes((127, 0, 0, 1)) not in found, path


def test_full_disk_ends_the_recording_with_what_it_had(tmp_path: Path) -> None:
    probes.need_root("mounting a small disk")
    kept = Path(f"{tmp_path}.kept")
    kept.mkdir()
    with listening() as (listener, port):
        ends = [exchange(listener, 5) for _ in range(30)]
        script = (
            f"mount -t tmpfs -o size=512k none {tmp_path} && "
            f"{' '.join(COMMAND)} --out {tmp_path} --every 10ms --for 60s --port {port}; "
            f"echo $? && cp {tmp_path}/*.parquet {kept}"
        )
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True)
        for near, far in ends:
            near.close()
            far.close()
    code = done.stdout.strip().rpartition("\n")[2]
    assert code == "2", done.stdout + done.stderr
    assert "no space" in done.stderr
    # The service does not try again every five seconds.
    assert f"RestartPreventExitStatus={code}" in UNIT.read_text().split()
    assert sum(pq.read_table(path).num_rows for path in kept.glob("*.parquet")) > 0


def test_ordinary_user_gets_what_can_be_read_and_is_told_what_cannot(tmp_path: Path) -> None:
    nobody = probes.as_nobody()
    folder = probes.folder_of_nobody(tmp_path) / "recorded"
    with listening() as (listener, port):
        near, far = exchange(listener, 5)
        command = [*nobody, *COMMAND[1:], "--out", str(folder), "--for", "1s", "--processes", "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True)
        near.close()
        far.close()
    assert done.returncode == 0, done.stderr
    assert "CAP_NET_ADMIN" in done.stderr and "CAP_SYS_PTRACE" in done.stderr
    assert {row["uid"] for row in rows(folder)} == {0}


@pytest.mark.parametrize("command", ["record --for 1s --out rec", "watch --once"])
def test_filter_for_marks_that_the_kernel_does_not_tell_is_refused(tmp_path: Path, command: str) -> None:
    probes.need_root("giving up capabilities")
    probes.need_programs("setpriv")
    without = ["setpriv", "--bounding-set=-net_admin", *COMMAND[:-1], *command.split(), "--mark", "7"]
    done = subprocess.run(without, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "CAP_NET_ADMIN" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_one_dump_agrees_with_the_socket_s_own_tcp_info() -> None:
    with listening() as (listener, port):
        near, far = exchange(listener, 70_000)
        table = tcpknee.sockets(ports=[port], processes=True)
        found = {row["local_port"]: row for row in table.to_pylist()}
        own = near.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 280)
        row = found[near.getsockname()[1]]
        near.close()
        far.close()
    word = [int.from_bytes(own[at : at + 4], sys.byteorder) for at in range(0, 104, 4)]
    assert (row["state"], row["pid"], row["cookie"] > 0) == ("ESTAB", os.getpid(), True)
    assert (row["snd_mss_bytes"], row["srtt_us"], row["snd_cwnd"]) == (word[4], word[17], word[20])
    assert row["bytes_acked"] in (70_000, 70_001)
    assert table.schema.field("srtt_us").metadata[b"unit"] == b"us"


SS_WORDS = {
    "cwnd": "snd_cwnd",
    "ssthresh": "snd_ssthresh",
    "mss": "snd_mss_bytes",
    "rcvmss": "rcv_mss_bytes",
    "advmss": "advmss_bytes",
    "pmtu": "pmtu_bytes",
    "bytes_sent": "bytes_sent",
    "bytes_acked": "bytes_acked",
    "bytes_received": "bytes_received",
    "segs_out": "segs_out",
    "segs_in": "segs_in",
    "data_segs_out": "data_segs_out",
    "data_segs_in": "data_segs_in",
    "delivered": "delivered",
    "rcv_space": "rcv_space_bytes",
    "rcv_ssthresh": "rcv_ssthresh_bytes",
    "snd_wnd": "snd_wnd_bytes",
    "ino": "inode",
}
"""Words of ss that are whole numbers, and the columns that they are."""
SS_MEMORY = {
    "r": "mem_rmem_bytes",
    "rb": "rcvbuf_bytes",
    "t": "mem_wmem_bytes",
    "tb": "sndbuf_bytes",
    "f": "mem_forward_alloc_bytes",
    "w": "mem_wmem_queued_bytes",
    "o": "mem_optmem_bytes",
    "bl": "mem_backlog_bytes",
    "d": "mem_drops",
}


def test_every_number_that_ss_prints_is_that_of_our_dump() -> None:
    probes.need_programs("ss")
    with listening() as (listener, port):
        held = [exchange(listener, size) for size in (1, 1_000, 300_000)]
        time.sleep(0.3)  # delayed ACKs go out
        found = {row["cookie"]: row for row in tcpknee.sockets(ports=[port]).to_pylist()}
        printed = subprocess.run(
            ["ss", "-tinemH", f"sport = :{port} or dport = :{port}"], capture_output=True, text=True, check=True
        ).stdout
        for near, far in held:
            near.close()
            far.close()
    lines = printed.replace("\n\t", " ").splitlines()
    assert len(lines) == len(found) == 6
    compared = 0
    for line in lines:
        words = dict(word.split(":", 1) for word in line.split()[5:] if ":" in word)
        row = found[int(words["sk"], 16)]
        expected = {column: int(words[word]) for word, column in SS_WORDS.items() if word in words}
        memory = re.findall("([a-z]+)([0-9]+)", words["skmem"])
        expected |= {SS_MEMORY[word]: int(number) for word, number in memory}
        srtt, rttvar = words["rtt"].split("/")
        expected |= {"srtt_us": round(1e3 * float(srtt)), "rttvar_us": round(1e3 * float(rttvar))}
        expected |= {"min_rtt_us": round(1e3 * float(words["minrtt"])), "rto_us": 1_000 * int(words["rto"])}
        snd_wscale, rcv_wscale = words["wscale"].split(",")
        expected |= {"snd_wscale": int(snd_wscale), "rcv_wscale": int(rcv_wscale)}
        assert {column: row[column] for column in expected} == expected
        compared += len(expected)
    assert compared > 6 * 25


def test_nothing_recorded_says_what_each_filter_left_out(tmp_path: Path) -> None:
    with listening() as (listener, port):
        near, far = exchange(listener, 5)
        filters = ["--port", str(port), "--address", "192.0.2.0/24", "--min-bytes", "1GB"]
        asked = [*COMMAND, "--out", str(tmp_path), "--for", "150ms", "--every", "100ms", "--no-host"]
        said = subprocess.run([*asked, *filters], capture_output=True, text=True, check=True).stdout
        told = json.loads(subprocess.run([*asked, *filters, "--json"], capture_output=True, check=True).stdout)
        found = json.loads(
            subprocess.run([*asked, "--port", str(port), "--json"], capture_output=True, check=True).stdout
        )
        near.close()
        far.close()
    first = said.splitlines()[0]
    # The listener and both ends are there, and whatever else this host has.
    assert re.match(r"0 sockets: of the [\d,]+ TCP sockets that are here now, ", first), first
    assert "--address 192.0.2.0/24 leaves out all" in first
    assert "--state connected (the default) leaves out" in first
    left = told["left_out"]
    assert left["sockets"] >= 3
    assert left["by"]["address"] == left["sockets"]
    assert left["by"].get("port", 0) <= left["sockets"] - 3
    assert left["by"]["min-bytes"] >= 3
    # Nothing is told where there were rows.
    assert found["rows"] > 0 and found["left_out"] is None


@pytest.mark.parametrize("json_", [False, True])
def test_one_interval_without_a_socket_says_what_the_filters_left_out(json_: bool) -> None:
    with listening() as (_, port):
        command = [*COMMAND[:-1], "watch", "--once", "--every", "100ms", "--port", str(port)]
        done = subprocess.run([*command, *(["--json"] if json_ else [])], capture_output=True, text=True, check=True)
    if json_:
        left = json.loads(done.stdout)["left_out"]
        # The listener is left out by its state alone.
        assert left["by"].get("port", 0) == left["sockets"] - 1
        assert left["by"]["state"] >= 1
    else:
        assert "--state connected (the default) leaves out" in done.stdout.splitlines()[-1]


def test_option_that_cannot_be_meant_is_refused_with_what_is_expected(tmp_path: Path) -> None:
    for option, value, expected in [
        ("--port", "http", "8000-8100"),
        ("--every", "1", "100ms"),
        ("--netns", "no-such", "ip netns"),
        ("--keep", "much", "KiB"),
        ("--keep", "1MB", "10MB"),
    ]:
        done = subprocess.run(
            [*COMMAND, "--out", str(tmp_path / "none"), option, value], capture_output=True, text=True
        )
        assert done.returncode == 2
        assert expected in done.stderr and "Traceback" not in done.stderr
        assert not (tmp_path / "none").exists()
