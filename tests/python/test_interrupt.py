"""Ctrl-C, SIGTERM, kill -9 and a full disk: what is finished is kept, a resumed run is the same to the byte, and what
else a command had under way leaves nothing."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from support import SMALL, Ended, knee, run_by_one_process, spawn, tables_of
from tcpknee import interrupts
from tcpknee.algorithms import outline
from tcpknee.cli.app import app
from tcpknee.datasets.dataset import Dataset
from tcpknee.runs import api

REPEAT = 30
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
def whole(once: Callable[[str, Callable[[Path], object]], Path]) -> dict[str, bytes]:
    """Tables of a run that nothing interrupted."""
    return tables_of(once("interrupt", lambda folder: run_by_one_process(LONG, folder)) / "run")


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
    out, err = process.communicate(timeout=300)
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

    import tcpknee

    partial = tcpknee.open(run)
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
    process.communicate(timeout=300)
    assert process.returncode == 130
    begun = json.loads((tmp_path / "run" / "run.json").read_text())
    assert begun["command"].startswith("knee compare cubic reno --loss 0.1% ")
    ended = knee("run", "--resume", "--out", "run", "-q", "--json", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert all(cell["metrics"]["goodput_bits_per_sec"]["n"] == 40 for cell in json.loads(ended.out)["cells"])
    meta = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (meta["status"], meta["command"], meta["file"]) == ("complete", begun["command"], "<command line>")


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_run_of_an_algorithms_file_is_gone_on_with_by_what_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the scenario's name, as a folder decides nothing that is compiled; a comparison has no such file."""
    monkeypatch.chdir(tmp_path)
    Path("mine.c").write_text(outline.of("mine"))
    Path("mine.toml").write_text(SMALL.replace('["cubic", "bbr1"]', '"./mine.c"'))
    real = api._execute

    def interrupted(*words: Any, **more: Any) -> Any:
        real(*words, **more)
        raise KeyboardInterrupt

    def ended(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, "-q"])

    monkeypatch.setattr(api, "_execute", interrupted)
    asked = ["run", "mine.toml", "--engine", "sim", "--kernel", "6.12", "--out", "run"]
    said = re.search(r"go on with: knee (.*)\n", ended(*asked).output)
    assert said is not None and said[1] == "run mine.toml --engine sim --kernel 6.12 --resume --out run"
    compared = ended("compare", "./mine.c", "--alone", "--repeat", "1", "--out", "compared")
    assert compared.exit_code == 130 and "kept in compared; it cannot be gone on with, because" in compared.output
    again = ended(*said[1].split())
    assert again.exit_code == 130 and said[1] in again.output
    monkeypatch.setattr(api, "_execute", real)
    whole = ended(*said[1].split())
    assert whole.exit_code == 0, whole.output


def test_a_killed_run_is_taken_up_from_its_parts(tmp_path: Path, whole: dict[str, bytes]) -> None:
    process = interrupt(tmp_path, signal.SIGKILL)
    process.communicate(timeout=300)
    run = tmp_path / "run"
    assert json.loads((run / "run.json").read_text())["status"] == "interrupted"
    assert not (run / "flows.parquet").exists()
    (run / "parts" / ".c000001-r0029.flows.parquet.0123456789abcdef.tmp").write_bytes(b"half of one")
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
        [sys.executable, "-m", "tcpknee", "run", "long.toml", "--out", "run", "-q"],
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
        [sys.executable, "-m", "tcpknee", "run", small, "--out", "run", "-q"],
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
    out, err = process.communicate(timeout=300)
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
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (2, "")
    assert err == "a worker process ended before its work was done; was it killed?\n"


@pytest.mark.parametrize("how", [(), ("--csv",)])
def test_ctrl_c_ends_a_query_that_would_take_hours(tmp_path: Path, small_run: Path, how: tuple[str, ...]) -> None:
    """DuckDB looks for signals between the tasks of a query, and this query is one task."""
    sums = "a.srtt_us + b.srtt_us + c.srtt_us + d.srtt_us"
    query = f"select count(*) from samples a, samples b, samples c, samples d where {sums} = 7"
    process = spawn("sql", query, small_run, "-q", *how, cwd=tmp_path)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err.strip()) == (130, "", "")


def _cleared(error: type[Exception] | None) -> Callable[..., None]:
    """`Dataset.__init__` while Ctrl-C comes and C code clears its KeyboardInterrupt, or makes that error of it."""
    whole = Dataset.__init__

    def begin(self: Dataset, path: Path) -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        if error is not None:
            raise error("Query interrupted")
        whole(self, path)

    return begin


@pytest.mark.parametrize("error", [None, RuntimeError])
def test_ctrl_c_that_a_library_loses_ends_the_command_without_a_result(
    call: Callable[..., Ended],
    monkeypatch: pytest.MonkeyPatch,
    small_run: Path,
    tmp_path: Path,
    error: type[Exception] | None,
) -> None:
    monkeypatch.setattr(Dataset, "__init__", _cleared(error))
    for words in (("sql", "from runs", small_run), ("export", small_run, "--format", "csv", "--out", "csv")):
        ended = call(*words)
        assert (ended.code, ended.out, ended.err.strip()) == (130, "", ""), words
    assert not (tmp_path / "csv").exists()
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_command_that_ignores_ctrl_c_goes_on_ignoring_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts.noted():
            signal.raise_signal(signal.SIGINT)
            assert not interrupts.came()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_csv_files_that_find_no_room_leave_nothing_and_can_be_written_again(tmp_path: Path, small_run: Path) -> None:
    words = ["export", str(small_run), "--format", "csv", "--out", "csv"]
    ended = subprocess.run(
        [sys.executable, "-m", "tcpknee", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
    )
    assert ended.returncode == 2
    assert ended.stderr == "csv: cannot be written: File too large. Choose another place.\n"
    assert not (tmp_path / "csv").exists()
    assert knee(*words, cwd=tmp_path).code == 0
    assert len(list((tmp_path / "csv").iterdir())) == 7


@pytest.mark.parametrize(("limit", "kept"), [(10_000, []), (50_000, ["acks", "connections", "events"])])
def test_a_trace_that_finds_no_room_keeps_whole_files_or_nothing(tmp_path: Path, limit: int, kept: list[str]) -> None:
    """Of the lower limit no table can even begin."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_TRACE, tmp_path / "trace"],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "File too large" in done.stdout
    left = sorted(path.name for path in (tmp_path / "trace").glob("*"))
    assert left == [f"{name}-000001.parquet" for name in kept]


FULL_TRACE = f"""
import sys
from pathlib import Path
from types import SimpleNamespace
from tcpknee import _core
from tcpknee.errors import RunFolderError
from tcpknee.live import trace

output = _core.parse({SMALL!r}, "small.toml").run_cell(0, 0)
batch = SimpleNamespace(acks=output.samples, events=output.events, connections=output.flows)
sink = trace._Sink(Path(sys.argv[1]))
try:
    while True:
        sink.take(batch)
except RunFolderError as error:
    print(error)
    sink.leave()
"""


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
