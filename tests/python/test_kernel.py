"""The front of the kernel engine, against a stand-in for the lab's worker: what is said, kept, marked and refused."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tcpknee
from support import SMALL, Ended, refused
from tcpknee import children, pages
from tcpknee.errors import EngineError, KernelUnsupported, MissingTable, RunFolderError, UsageError
from tcpknee.pages.figures import limits
from tcpknee.pages.run import ReportRun
from tcpknee.runs import engines, kernel, output
from tcpknee.runs.job import Job
from tcpknee.runs.pool import Key, Watcher
from tcpknee.runs.results import Run

Use = Callable[[str], None]


def stand_in(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """The kernel engine starts the stand-in in this mode; nothing is loaded into a kernel."""

    @contextmanager
    def engine(job: Job) -> Iterator[kernel.Kernel]:
        standin = Path(__file__).with_name("standin.py")
        found = kernel.Kernel(job, {"bbr1": "bbr", "cubic": "cubic"})
        monkeypatch.setattr(found, "command", lambda cell: (sys.executable, str(standin), mode))
        yield found

    monkeypatch.setattr(kernel, "engine", engine)


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Chooses the mode of the stand-in."""
    return lambda mode: stand_in(monkeypatch, mode)


def logged(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """A file that gets a line per worker: its pid, cell, repetition and the names of algorithms."""
    monkeypatch.setenv("STANDIN_LOG", str(folder / "log"))
    return folder / "log"


# A worker is a process of its own for each repetition, so tests that only read share a run.
@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run without trouble, in a folder that has the log beside it."""
    folder = tmp_path_factory.mktemp("good")
    with pytest.MonkeyPatch.context() as patched:
        stand_in(patched, "good")
        logged(patched, folder)
        return tcpknee.run(SMALL, engine="kernel", out=folder / "run")


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose second cell had a link that did not keep up."""
    with pytest.MonkeyPatch.context() as patched:
        stand_in(patched, "doubtful")
        return tcpknee.run(SMALL, engine="kernel", out=tmp_path_factory.mktemp("doubtful") / "run")


def folder_of(run: Run) -> Path:
    assert run.folder is not None
    return run.folder


def test_a_kernel_run_has_its_own_tables_and_says_what_its_labs_were(good: Run) -> None:
    run, folder = good, folder_of(good)
    assert run.complete
    assert set(run.runs["engine"].to_pylist()) == {"kernel"}
    assert run.runs["data_packets"].to_pylist() == [7] * 6
    assert run.links["backend"].to_pylist() == ["user"] * 6
    assert len(run.cpu_time) == 6
    assert run.programs["requests_per_sec"].to_pylist() == [1000.0] * 6
    assert run.meta["labs"] == [{"kernel": "6.18", "mtu": 1500}, {"kernel": "6.18", "mtu": 1501}]
    assert [(entry["cell"], entry["lab"]) for entry in run.meta["repetitions"]] == [(0, 0)] * 3 + [(1, 1)] * 3
    assert all((folder / file).is_file() for file in run.programs["output"].to_pylist())
    assert not (folder / "parts").exists()
    log = (folder.parent / "log").read_text()
    assert json.loads(log.split(maxsplit=3)[3].splitlines()[0]) == {"bbr1": "bbr", "cubic": "cubic"}


def test_a_run_in_memory_is_the_same(use: Use, good: Run) -> None:
    use("good")
    here, there = tcpknee.run(SMALL, engine="kernel"), good
    for name in ("runs", "flows", "samples", "queue", "events", "cpu_time", "links", "programs"):
        assert here.table(name).arrow().equals(there.table(name).arrow()), name
    assert here.meta["repetitions"] == there.meta["repetitions"]


def test_repetitions_run_one_at_a_time_unless_asked_otherwise(use: Use) -> None:
    class Told(Exception):
        """Ends a run before it begins: what is expected of it has been said."""

    class Listening(Watcher):
        def start(self, title: str, asked: int, done: int, expectation: str = "") -> None:
            raise Told(expectation)

    def told(**options: Any) -> str:
        with pytest.raises(Told) as raised:
            tcpknee.run(SMALL, watcher=Listening(), **options)
        return str(raised.value)

    use("good")
    assert engines.default_workers("kernel") == 1
    # 6 repetitions of 2 s, and what a lab needs beside them.
    assert told(engine="kernel") == "in real time, about 21 s"
    assert "2 labs at once share the processors and may disturb each other" in told(engine="kernel", workers=2)
    assert told() == ""


def test_what_a_kernel_does_not_tell_is_absent_and_the_rest_is_not_told(good: Run) -> None:
    run = good
    for group in run.summary.groups:
        assert set(group.limited_by) == {"rwnd", "sndbuf", "app", "other"}
        assert sum(share.mean for share in group.limited_by.values()) == pytest.approx(1.0)
        assert "rto_count" not in group.metrics and "tlp_count" not in group.metrics
    assert "not told 100 %" in "\n".join(output.lines(run))
    assert run.json()["cells"][0]["metrics"]["limited_by"]["other"] > 0.9


def test_a_worker_that_was_killed_is_told_with_its_signal_and_its_place(use: Use) -> None:
    use("killed")
    with pytest.raises(EngineError, match=r"<text>: cell [01], repetition 0: the lab was ended by SIGKILL"):
        tcpknee.run(SMALL, engine="kernel")


def test_errors_of_a_lab_come_back_as_what_they_are(use: Use) -> None:
    use("refused")
    with pytest.raises(KernelUnsupported, match=r"cell [01], repetition 0: no such thing here; try another"):
        tcpknee.run(SMALL, engine="kernel")


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("broken", "the lab ended with exit code 3 before it was done. It last said: Traceback: it fell over"),
        ("babbling", "the lab said b'hello', which is no line of its protocol"),
    ],
)
def test_a_worker_that_breaks_leaves_its_last_words(use: Use, mode: str, said: str) -> None:
    use(mode)
    with pytest.raises(EngineError) as raised:
        tcpknee.run(SMALL, engine="kernel")
    assert said in str(raised.value)


def test_an_error_leaves_nothing_behind(use: Use, tmp_path: Path) -> None:
    use("killed")
    with pytest.raises(EngineError):
        tcpknee.run(SMALL, engine="kernel", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_interruption_ends_the_lab_keeps_what_is_done_and_is_resumed(
    use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient(Watcher):
        def __init__(self) -> None:
            self.hung = False

        def running(self, key: Key, share: float) -> None:
            self.hung = self.hung or (key == (0, 1) and share > 0)

        def tick(self) -> None:
            if self.hung:
                raise KeyboardInterrupt

    class Looking(Watcher):
        seen: dict[str, Any]

        def start(self, *given: object) -> None:
            self.seen = tcpknee.open(tmp_path / "run").meta

    log = logged(monkeypatch, tmp_path)
    use("hanging")
    with pytest.raises(KeyboardInterrupt):
        tcpknee.run(SMALL, engine="kernel", out=tmp_path / "run", watcher=Impatient())
    for line in log.read_text().splitlines():
        assert not Path(f"/proc/{line.split()[0]}").exists(), "a worker outlived its run"
    begun = tcpknee.open(tmp_path / "run")
    assert begun.meta["status"] == "interrupted"
    assert [(entry["cell"], entry["rep"]) for entry in begun.meta["repetitions"]] == [(0, 0), (1, 0)]
    use("good")
    with pytest.raises(RunFolderError, match="got --engine sim; this run was begun with --engine kernel"):
        tcpknee.run(out=tmp_path / "run", resume=True, engine="sim")
    told = {"beside": [], "failed": [{"cell": 1, "rep": 2, "words": "it ended"}]}
    (tmp_path / "run" / "run.json").write_text(json.dumps(begun.meta | told))
    watcher = Looking()
    run = tcpknee.run(out=tmp_path / "run", resume=True, watcher=watcher)
    kept = ("labs", "repetitions")
    assert {name: watcher.seen.get(name) for name in (*kept, *told)} == {name: begun.meta[name] for name in kept} | told
    assert run.complete and len(run.meta["repetitions"]) == 6
    assert run.meta["beside"] == [] and "failed" not in run.meta
    assert [session["repetitions"] for session in run.meta["sessions"]] == [2, 4]


def test_a_scenario_that_is_named_again_goes_on_as_its_run_was_begun(
    use: Use, call: Callable[..., Ended], small: Path, tmp_path: Path
) -> None:
    use("good")
    began = call("run", small, "--engine", "kernel", "--bpf", "--capture", "1MB", "--out", "run", "-q")
    assert began.code == 0, began.err
    again = call("run", small, "--resume", "--out", "run", "-q")
    assert (again.code, again.out) == (0, began.out)
    refused(call("run", small, "--resume", "--out", "run", "--engine", "sim"), "--engine sim; this run was begun with")


def test_doubtful_repetitions_are_marked_in_text_and_json(doubtful: Run) -> None:
    run = doubtful
    lines = output.lines(run)
    assert any(line.startswith("bbr1*") for line in lines)
    assert any(line.startswith("cubic ") for line in lines)
    assert "* cell 1, repetitions 0, 1 and 2: the link reached 4.10 of 10 Gbit/s" in lines
    found = run.json()
    assert "cell 1, repetitions 0, 1 and 2: the link reached 4.10 of 10 Gbit/s" in found["warnings"]
    assert found["runs"][0]["failed"] is False


def test_a_client_that_fails_marks_its_repetition_and_fails_the_run(
    use: Use, call: Callable[..., Ended], small: Path
) -> None:
    use("failing")
    ended = call("run", small, "--engine", "kernel", "--out", "run")
    assert ended.code == 1
    assert "* cell 0, repetition 1: failed: the client `redis-benchmark` ended with exit code 3." in ended.out
    assert "last words" in ended.out
    small.write_text(SMALL.replace("repeat = 3", "repeat = 2").replace('["cubic", "bbr1"]', '"cubic"'))
    ended = call("run", small, "--engine", "kernel", "--out", "again", "--json")
    assert ended.code == 1
    assert json.loads(ended.out)["runs"][0]["failed"] is True


def test_the_command_that_runs_it_again_names_the_engine(use: Use, call: Callable[..., Ended], small: Path) -> None:
    use("good")
    assert call("run", small, "--engine", "kernel", "--bpf", "--out", "run").code == 0
    meta = json.loads(Path("run/run.json").read_text())
    assert meta["command"] == f"knee run {small} --engine kernel --bpf"
    assert (meta["engine"], meta["bpf"]) == ("kernel", True)


def test_packets_of_a_kernel_run_that_captured_none_cannot_be_had_again(good: Run, call: Callable[..., Ended]) -> None:
    ended = call("export", folder_of(good), "--format", "pcapng", "--out", "x.pcapng")
    assert ended.code == 2 and "and without --capture, so that it kept no packets" in ended.err
    assert call("export", folder_of(good), "--format", "csv", "--out", "csv").code == 0
    assert {file.stem for file in Path("csv").iterdir()} >= {"cpu_time", "links", "programs"}


def test_tables_of_the_other_engine_are_missing_with_the_reason(small_run: Path) -> None:
    with pytest.raises(MissingTable, match="only runs with --engine kernel or guest have it"):
        _ = tcpknee.open(small_run).links
    with pytest.raises(MissingTable, match="got the table 'links'"):
        _ = tcpknee.run(SMALL).links


def test_engines_that_are_none_are_refused() -> None:
    with pytest.raises(UsageError, match='got "netem"; expected one of sim, kernel'):
        tcpknee.run(SMALL, engine="netem")
    with pytest.raises(UsageError, match="expected the engine kernel"):
        tcpknee.run(SMALL, bpf=True)


def test_a_worker_finds_this_package_wherever_it_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `json.py` in the user's folder must not come before Python's own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    found = children.environment()
    first = found["PYTHONPATH"].split(os.pathsep)[0]
    assert (Path(first) / "tcpknee" / "runs" / "labworker.py").is_file()
    assert found["PYTHONSAFEPATH"] == "1"


def test_the_report_tells_what_the_kernel_tells_and_what_is_doubtful(doubtful: Run, tmp_path: Path) -> None:
    run = doubtful
    page = pages.write(run, tmp_path / "report.html").read_text()
    assert "the link reached 4.10 of 10 Gbit/s" in page
    assert "not told 100" in page
    rows = limits.shares(ReportRun.open(run))
    assert {row["limit"] for row in rows} == {"receive window", "send buffer", "application", "not told"}


def test_a_scenario_of_the_gallery_that_only_a_lab_can_run_is_refused(call: Callable[..., Ended]) -> None:
    ended = call("gallery", "redis")
    assert ended.code == 2
    assert "run it with `--engine kernel`" in ended.err


def test_beside_each_other_what_engines_say_has_their_names(
    use: Use, call: Callable[..., Ended], tmp_path: Path
) -> None:
    use("good")
    (tmp_path / "e.toml").write_text(f'{SMALL}[[expect]]\nassert = "cubic.goodput > 1Gbit/s"\n')
    words = ("run", "e.toml", "--engine", "sim,kernel", "--report", "-q")
    ended = call(*words, "--out", "text")
    assert ended.code == 1
    for name in ("sim", "kernel"):
        assert f"\n\nExpectations, {name}\n  fails: cubic.goodput > 1Gbit/s  (left is " in ended.out
    ended = call(*words, "--out", "json", "--json")
    found = json.loads(ended.out)
    for part in ("cells", "verdicts", "expectations"):
        assert list(dict.fromkeys(entry["engine"] for entry in found[part])) == ["sim", "kernel"], part
    assert ended.err.count("Report: ") == 1 and "Report: json/report.html" in ended.err
    reports = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("report.html"))
    assert reports == ["json/report.html", "text/report.html"]
