"""What happens when a lab goes wrong: a clear message, an exit code, no traceback, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import marked
import probes
import tcpknee
from waiting import PATIENCE_SEC, until

SHORT = """\
title = "short"
duration = "DURATION"
[path]
rate = "20Mbit/s"
rtt = "20ms"
[[flow]]
algorithm = "cubic"
"""
HANDSHAKE_SEGMENTS = 4
PROGRAMS = """\
title = "programs"
duration = "4s"
[path]
rate = "20Mbit/s"
rtt = "20ms"
[[flow]]
algorithm = "cubic"
workload = "programs"
"""


def traces() -> dict[str, list[str]]:
    """What a lab that loads no algorithm could leave: namespaces, devices, BPF pins, processes."""
    netns = Path("/run/netns")
    pins = Path("/sys/fs/bpf")
    return {
        "namespaces": sorted(entry.name for entry in netns.iterdir()) if netns.is_dir() else [],
        "devices": sorted(entry.name for entry in Path("/sys/class/net").iterdir()),
        "pins": sorted(entry.name for entry in pins.iterdir()) if pins.is_dir() else [],
        "processes": sorted(process.name for process in marked.processes()),
    }


def children(pid: int) -> list[int]:
    """Every process below this one."""
    try:
        direct = [
            int(word)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for word in (task / "children").read_text().split()
        ]
    except OSError:
        return []
    return direct + [below for child in direct for below in children(child)]


def lives(pid: int) -> bool:
    """Dead is also who waits for an init that does not collect its dead, as in many containers."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def role(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    probes.need_root("looking at all processes and namespaces")
    probes.need_lab()
    before = traces()
    yield
    until(lambda: traces() == before, "nothing is left")


def command(folder: Path, text: str, *words: str) -> list[str]:
    (folder / "s.toml").write_text(text)
    return [sys.executable, "-m", "tcpknee", "run", "s.toml", "--engine", "kernel", "--out", "run", "--quiet", *words]


def run(folder: Path, text: str, *words: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """`knee run` to its end; `before` are words that a command line puts before it."""
    ended = subprocess.run(
        [*before, *command(folder, text, *words)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SEC,
        check=False,
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended


def short(duration: str = "2s") -> str:
    return SHORT.replace("DURATION", duration)


def until_up(process: subprocess.Popen[str]) -> None:
    """Until the lab of a run has its sender."""

    def is_up() -> bool:
        if process.poll() is not None:
            pytest.fail(f"the run ended: {process.communicate()[1].strip()}")
        return "sender" in map(role, children(process.pid))

    until(is_up, "the lab is up")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run whose lab is up; the traffic flows."""
    process = subprocess.Popen(
        command(tmp_path, short("60s")), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until_up(process)
    time.sleep(0.3)
    yield process
    process.kill()
    process.wait()


@pytest.mark.timed
@pytest.mark.parametrize("victim", ["link", "sender", "receiver"])
def test_a_process_of_the_lab_that_is_killed_is_named(running: subprocess.Popen[str], victim: str) -> None:
    [pid] = [pid for pid in children(running.pid) if role(pid) == victim]
    os.kill(pid, signal.SIGKILL)
    killed = time.monotonic()
    _, stderr = running.communicate(timeout=PATIENCE_SEC)
    assert time.monotonic() - killed < 5
    assert running.returncode == 2
    assert f"the lab's {victim} was ended by SIGKILL" in stderr
    assert "Traceback" not in stderr


def test_a_worker_that_is_killed_is_told_with_its_repetition(running: subprocess.Popen[str]) -> None:
    [worker, *_] = children(running.pid)
    os.kill(worker, signal.SIGKILL)
    _, stderr = running.communicate(timeout=PATIENCE_SEC)
    assert running.returncode == 2
    assert "cell 0, repetition 0" in stderr
    assert "SIGKILL" in stderr


def test_nothing_outlives_a_front_that_is_killed(running: subprocess.Popen[str]) -> None:
    below = children(running.pid)
    assert len(below) >= 4
    running.kill()
    running.wait()
    until(lambda: not any(map(lives, below)), "all below it are gone")


def test_two_labs_at_once_do_not_see_each_other(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
    both = [
        subprocess.Popen(command(folder, short("3s")), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for folder in folders
    ]
    for process in both:
        _, stderr = process.communicate(timeout=PATIENCE_SEC)
        assert process.returncode == 0, stderr
    for folder in folders:
        found = tcpknee.open(folder / "run")
        [flow] = found.flows.arrow().to_pylist()
        data, _ = found.links.arrow().to_pylist()
        # Each link carried its own flow, whose packets have 52 bytes of headers, and nothing of the other's.
        assert flow["bytes_read"] > 1e6
        most = flow["bytes_sent"] + 52 * (flow["data_segs_out"] + HANDSHAKE_SEGMENTS)
        assert flow["bytes_read"] < data["forwarded_bytes"] <= most


def test_a_device_that_cannot_be_opened_is_named_with_the_remedy(tmp_path: Path) -> None:
    hide = 'mount --bind /dev/null /dev/net/tun && exec "$@"'
    ended = run(tmp_path, short(), before=("unshare", "--mount", "sh", "-c", hide, "sh"))
    assert ended.returncode == 2
    assert "/dev/net/tun" in ended.stderr
    assert "modprobe tun" in ended.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("limit", ["max_net_namespaces", "max_pid_namespaces"])
def test_a_limit_of_namespaces_is_named(tmp_path: Path, limit: str) -> None:
    """The limit is set in a user namespace of the test's own."""
    probes.need_user_namespaces()
    lower = f'echo 0 > /proc/sys/user/{limit} && exec "$@"'
    ended = run(tmp_path, short(), before=("unshare", "--user", "--map-root-user", "sh", "-c", lower, "sh"))
    assert ended.returncode == 2
    assert f"/proc/sys/user/{limit}, is 0" in ended.stderr


def test_a_full_disk_keeps_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    small = (
        'mount -t tmpfs -o size=64k tmpfs small && dd if=/dev/zero of=small/fill bs=1k count=60 2>/dev/null; exec "$@"'
    )
    words = command(tmp_path, short())
    words[words.index("run", 5)] = "small/run"
    ended = subprocess.run(
        ["unshare", "--mount", "sh", "-c", small, "sh", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SEC,
        check=False,
    )
    assert ended.returncode == 2
    assert "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_client_that_fails_marks_the_repetition_and_the_run(tmp_path: Path) -> None:
    ended = run(tmp_path, PROGRAMS + "client = \"sh -c 'echo no luck >&2; exit 3'\"\n")
    assert ended.returncode == 1
    assert "exit code 3" in ended.stdout
    assert "no luck" in ended.stdout


@pytest.mark.parametrize(
    ("server", "words"),
    [
        pytest.param(
            "sh -c 'echo thinking; sleep 60'",
            "has not begun to listen",
            marks=pytest.mark.slow("a server has ten seconds to begin to listen"),
        ),
        ("sh -c 'echo bad port; exit 1'", "ended with exit code 1 before it listened"),
        ("no-such-program --port 1", "is not installed"),
    ],
)
def test_a_server_that_does_not_serve_is_named_with_its_last_words(tmp_path: Path, server: str, words: str) -> None:
    ended = run(tmp_path, PROGRAMS + f'server = "{server}"\nclient = "true"\n')
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "flow.0.server" in ended.stderr
    if "echo" in server:
        assert "it last printed" in ended.stderr


def test_a_rate_that_this_machine_cannot_carry_marks_the_run(tmp_path: Path) -> None:
    fast = short("3s").replace("20Mbit/s", "100Gbit/s").replace("20ms", "2ms")
    ended = run(tmp_path, fast, "--json")
    assert ended.returncode == 0, ended.stderr
    warnings = json.dumps(json.loads(ended.stdout)["warnings"])
    said = ("did not keep up", "the processors were busy", "the link used")
    assert any(words in warnings for words in said), warnings


def test_a_qdisc_that_the_kernel_lacks_is_named(tmp_path: Path) -> None:
    probes.need_no_qdisc("fq_pie")
    ended = run(tmp_path, short() + '[sender]\nqdisc = "fq_pie"\n')
    assert ended.returncode == 2
    assert "fq_pie" in ended.stderr
    assert "CONFIG_NET_SCH_FQ_PIE" in ended.stderr


def test_the_simulator_refuses_what_only_a_lab_has(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(PROGRAMS + 'client = "true"\n')
    words = [sys.executable, "-m", "tcpknee", "run", "p.toml", "--out", "run"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False)
    assert ended.returncode == 2
    assert "--engine kernel" in ended.stderr
    assert not (tmp_path / "run").exists()
