"""Ctrl-C, SIGTERM, kill -9 and a full disk: what is finished is kept, and a resumed run is the same to the byte."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import knee, spawn, tables_by_one_process, tables_of

REPEAT = 60
LONG = f"""\
title = "Long enough to be interrupted"
duration = "10s"
repeat = {REPEAT}
[path]
rate = "20Mbit/s"
rtt = "20ms"
loss = "0.1%"
[[flow]]
algorithm = ["cubic", "reno"]
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Tables of a run that nothing interrupted."""
    return tables_by_one_process(LONG, tmp_path_factory.mktemp("whole"))


def interrupt(folder: Path, number: int) -> subprocess.Popen[str]:
    """Starts the run and sends the signal when some repetitions are finished."""
    (folder / "long.toml").write_text(LONG)
    # Two workers, whatever the machine has: with many the run would be over before the signal arrives.
    process = spawn("run", "long.toml", "--out", "run", "-q", "--workers", "2", cwd=folder)
    parts = folder / "run" / "parts"
    deadline = time.monotonic() + 60
    while not parts.is_dir() or len(list(parts.glob("c*.flows.parquet"))) < 4:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(number)
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_keeps_what_is_finished_and_resumes_to_the_same_bytes(
    tmp_path: Path, whole: dict[str, bytes], number: int, code: int
) -> None:
    process = interrupt(tmp_path, number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert out == ""
    assert "Traceback" not in err
    assert "Interrupted. What was finished is kept in run; go on with: knee run --resume --out run" in err
    run = tmp_path / "run"
    meta = json.loads((run / "run.json").read_text())
    kept = len(list((run / "parts").glob("c*.flows.parquet")))
    assert meta["status"] == "interrupted"
    assert 4 <= kept < 2 * REPEAT
    assert meta["sessions"][0]["repetitions"] == kept

    import kneepoint

    partial = kneepoint.open(run)
    assert len(partial.runs) == kept
    assert not partial.complete
    assert partial.summary.groups

    ended = knee("run", "--resume", "--out", "run", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert f"{kept} kept from before" in ended.err
    assert tables_of(run) == whole
    meta = json.loads((run / "run.json").read_text())
    assert meta["status"] == "complete"
    assert [session["repetitions"] for session in meta["sessions"]] == [kept, 2 * REPEAT - kept]
    assert sorted(file.name for file in run.iterdir()) == sorted(["run.json", *(f"{name}.parquet" for name in whole)])


def test_an_interrupted_comparison_resumes_from_its_folder_alone(tmp_path: Path) -> None:
    words = [
        "compare",
        "cubic",
        "reno",
        "--loss",
        "0.1%",
        "--duration",
        "20s",
        "--repeat",
        "40",
        "--workers",
        "2",
        "-q",
    ]
    process = spawn(*words, "--out", "run", cwd=tmp_path)
    parts = tmp_path / "run" / "parts"
    while not parts.is_dir() or not any(parts.glob("c*.flows.parquet")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    begun = json.loads((tmp_path / "run" / "run.json").read_text())
    assert begun["command"].startswith("knee compare cubic reno --loss 0.1% ")
    ended = knee("run", "--resume", "--out", "run", "-q", "--json", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert all(cell["metrics"]["goodput_bits_per_sec"]["n"] == 40 for cell in json.loads(ended.out)["cells"])
    meta = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (meta["status"], meta["command"], meta["file"]) == ("complete", begun["command"], "<command line>")


def test_a_killed_run_is_taken_up_from_its_parts(tmp_path: Path, whole: dict[str, bytes]) -> None:
    process = interrupt(tmp_path, signal.SIGKILL)
    process.communicate(timeout=60)
    run = tmp_path / "run"
    assert json.loads((run / "run.json").read_text())["status"] == "interrupted"
    assert not (run / "flows.parquet").exists()
    (run / "parts" / ".c000001-r0059.flows.parquet.0123456789abcdef.tmp").write_bytes(b"half of one")
    ended = knee("run", "long.toml", "--resume", "--out", "run", "-q", "--workers", "1", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert tables_of(run) == whole
    assert not (run / "parts").exists()


def test_a_full_disk_is_said_in_one_paragraph_and_leaves_nothing_half_written(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    """A limit on the size of files stands for the disk: parts fit, the merged `samples` does not."""
    (tmp_path / "long.toml").write_text(LONG)
    limit = len(whole["samples"]) // 2
    ended = subprocess.run(
        [sys.executable, "-m", "kneepoint", "run", "long.toml", "--out", "run", "-q"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert "run: cannot be written: " in ended.stderr
    assert ended.stderr.count("\n") == 1
    run = tmp_path / "run"
    assert not list(run.glob("*.parquet")) and not list(run.rglob("*.tmp"))
    ended = knee("run", "--resume", "--out", "run", "-q", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert tables_of(run) == whole


def test_a_disk_with_no_room_at_all_leaves_no_folder(tmp_path: Path, small: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "kneepoint", "run", small, "--out", "run", "-q"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16)),
    )
    assert ended.returncode == 2
    assert "run.json: cannot be written: File too large" in ended.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15)])
def test_an_interrupted_prediction_ends_at_once_with_its_processes_and_without_a_word(
    tmp_path: Path, number: int, code: int
) -> None:
    (tmp_path / "pair.toml").write_text(LONG.replace(f"repeat = {REPEAT}", "repeat = 4"))
    assert knee("run", "pair.toml", "--out", "run", "-q", cwd=tmp_path).code == 0
    process = spawn("whatif", "run", "--algorithms", "bbr1", "-q", "--workers", "2", cwd=tmp_path)
    deadline = time.monotonic() + 60
    # Two workers, and what multiprocessing starts beside them.
    while len(children := _children(process.pid)) < 3:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(2)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    # After the ^C that a terminal shows, a line ends.
    assert (process.returncode, out, err.strip()) == (code, "", "")
    while left := [child for child in children if Path(f"/proc/{child}").exists()]:
        assert time.monotonic() < deadline + 60, left
        time.sleep(0.01)


def test_a_prediction_whose_worker_is_killed_says_so(tmp_path: Path) -> None:
    (tmp_path / "pair.toml").write_text(LONG.replace(f"repeat = {REPEAT}", "repeat = 4"))
    assert knee("run", "pair.toml", "--out", "run", "-q", cwd=tmp_path).code == 0
    process = spawn("whatif", "run", "--algorithms", "bbr1", "-q", "--workers", "2", cwd=tmp_path)
    deadline = time.monotonic() + 60
    while len(children := _children(process.pid)) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(children[-1], signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert err == "a worker process ended before its work was done; was it killed?\n"


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
