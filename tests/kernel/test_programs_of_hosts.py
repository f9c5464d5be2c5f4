"""Programs of a scenario at two hosts that ssh leads to: run where that is asked for, watched, and gone afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import probes
import tcpknee
from building import run
from test_between_hosts import RATE_BITS_PER_SEC, Servers, helpers, servers  # noqa: F401
from test_far_settings import all_settings
from waiting import PATIENCE_SEC, until

PORT = 6399
SCENARIO = f"""
title = "Programs between two hosts"
duration = "20s"
repeat = 1
[path]
rate = "50Mbit/s"
rtt = "10ms"
[sender]
initcwnd = 23
[[flow]]
algorithm = ["reno", "cubic"]
workload = "programs"
server = "redis-server --port {PORT} --bind {{server}} --save '' --protected-mode no"
client = "redis-benchmark -h {{server}} -p {PORT} -c 5 -n 3000 -d 1000 -t get,set --csv"
"""
# A server that leaves a child behind in its group, which nobody waits for.
LASTING = f"""
title = "Programs that go on"
duration = "60s"
repeat = 1
[path]
rate = "50Mbit/s"
rtt = "10ms"
[[flow]]
algorithm = "DEFAULT"
workload = "programs"
server = "sh -c 'sleep 7777 & exec {sys.executable} -m http.server {PORT} --bind {{server}} --directory FOLDER'"
client = "curl -s -o /dev/null http://{{server}}:{PORT}/large"
"""
HOSTS = ("--engine", "hosts", "--sender", "a", "--receiver", "b", "-q")


def default_congestion() -> str:
    return Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text(encoding="utf-8").strip()


def written(folder: Path, text: str) -> Path:
    # A network namespace begins with what its maker's has.
    ours = "bbr1" if default_congestion() == "bbr" else default_congestion()
    text = text.replace("DEFAULT", ours).replace("FOLDER", str(folder))
    (folder / "programs.toml").write_text(text, encoding="utf-8")
    return folder / "programs.toml"


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ((), "expected --allow-programs as well, by which they run on both hosts"),
        (("--allow-programs",), "sender a: this run comes there as root, and so would programs"),
        (("--allow-programs", "--programs-as-root"), "is what sender a gives them. With --allow-host-settings"),
    ],
)
def test_nothing_runs_that_was_not_asked_for(
    servers: Servers,  # noqa: F811
    tmp_path: Path,
    allowed: tuple[str, ...],
    expected: str,
) -> None:
    done = servers.knee(written(tmp_path, SCENARIO), *HOSTS, *allowed, "--out", tmp_path / "run")
    assert done.returncode == 2
    assert expected in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow("two repetitions with a route that root sets over ssh for each")
def test_redis_runs_there_with_the_congestion_control_of_each_cell(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    probes.need_programs("redis-server", "redis-benchmark")
    before = all_settings(servers.lab)
    words = (*HOSTS, "--allow-programs", "--programs-as-root", "--allow-host-settings", "--out", tmp_path / "run")
    done = servers.knee(written(tmp_path, SCENARIO), *words)
    assert done.returncode == 0, done.stderr
    found = tcpknee.open(tmp_path / "run")
    flows = found.flows.arrow().to_pylist()
    for cell, algorithm in enumerate(("reno", "cubic")):
        # The benchmark has five connections for each of its two commands.
        of_cell = [row for row in flows if row["cell"] == cell]
        assert 5 <= len(of_cell) <= 12
        assert {row["algorithm"] for row in of_cell} == {algorithm}
        # 3000 answers of a kilobyte to GET, and some bytes to SET.
        assert sum(row["bytes_acked"] for row in of_cell) == pytest.approx(3_100_000, rel=0.1)
        assert sum(row["data_segs_out"] for row in of_cell) > 2_000
    programs = found.programs.arrow().to_pylist()
    assert [(row["cell"], row["role"], row["exit_code"]) for row in programs if row["role"] == "client"] == [
        (0, "client", 0),
        (1, "client", 0),
    ]
    for row in programs:
        text = (tmp_path / "run" / row["output"]).read_text(encoding="utf-8")
        assert ("Ready to accept connections" if row["role"] == "server" else '"GET"') in text
    rates = [row["requests_per_sec"] for row in programs if row["role"] == "client"]
    assert all(rate > 100 for rate in rates)
    # What a sample tells of the receiving socket is of the same connection.
    samples = found.samples.arrow().to_pylist()
    assert {row["rcvbuf_bytes"] is None for row in samples[len(samples) // 2 :]} == {False}
    told = json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))["sessions"][0]["hosts"]
    assert told["sender"]["as_before"] is True
    routes = {one["is"] for one in told["sender"]["of_cells"]}
    given = {name: "" if name == default_congestion() else f" and congctl {name}" for name in ("reno", "cubic")}
    assert routes == {f"a route of its own with initcwnd 23{one}" for one in given.values()}
    assert all_settings(servers.lab) == before
    until(lambda: not left(servers), "no program is left")


@pytest.mark.timed
@pytest.mark.slow("a download goes on until its helper is killed")
def test_programs_and_their_children_end_with_a_helper_that_is_killed(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    probes.need_programs("curl")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 30)
    words = servers.words(written(tmp_path, LASTING), *HOSTS, "--allow-programs", "--programs-as-root")
    front = subprocess.Popen([*words, "--out", str(tmp_path / "run")], stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: is_sending(servers), "the server sends")
        assert {"http.server", "sleep", "curl"} <= left(servers)
        guarded = [pid for pid in helpers(servers.lab) if b"guard" not in Path(f"/proc/{pid}/cmdline").read_bytes()]
        assert len(guarded) == 2
        for pid in guarded:
            os.kill(pid, signal.SIGKILL)
        _, stderr = front.communicate(timeout=PATIENCE_SEC)
        assert front.returncode == 2
        assert "Traceback" not in stderr
        until(lambda: not left(servers), "no program is left")
    finally:
        front.kill()
        front.wait()


def left(servers: Servers) -> set[str]:  # noqa: F811
    """Programs of the scenario that run on the hosts, and their guards."""
    found = set()
    for name in (servers.lab.sender, servers.lab.receiver):
        for pid in run("ip", "netns", "pids", name).split():
            try:
                comm = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            found |= {comm} & {"curl", "sleep", "redis-server", "redis-benchmark"}
            found |= {word.decode() for word in words} & {"http.server", "guard"}
    return found


def is_sending(servers: Servers) -> bool:  # noqa: F811
    told = run("ip", "netns", "exec", servers.lab.receiver, "ss", "-tinH", f"dport = :{PORT}")
    return any(int(count) > RATE_BITS_PER_SEC / 50 for count in re.findall(r"bytes_received:(\d+)", told))
