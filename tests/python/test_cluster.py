"""Runs on a Dask cluster: the same tables to the byte, whoever dies meanwhile, and each refusal in one paragraph."""

from __future__ import annotations

import json
import math
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import SMALL, knee, spawn, tables_by_one_process, tables_of
from tcpknee import _core
from tcpknee.errors import ClusterError, RunFolderError, TcpkneeError, UsageError
from tcpknee.runs import api, cluster, engines, phase, pool, store, tables, units

LONG = """\
title = "Long enough for somebody to die"
duration = "30s"
repeat = 40
[path]
rate = "20Mbit/s"
rtt = "20ms"
loss = "0.1%"
[[flow]]
algorithm = ["cubic", "reno"]
"""
UNITS = 80

TWO_FLOWS = """\
title = "Two flows behind drop-tail"
duration = "2s"
repeat = 3
[path]
rate = "10Mbit/s"
rtt = "40ms"
buffer = "1bdp"
[[flow]]
algorithm = ["cubic", "bbr1"]
[[flow]]
algorithm = "reno"
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Tables of LONG by one process."""
    return tables_by_one_process(LONG, tmp_path_factory.mktemp("whole"))


class Dask:
    """A scheduler and its workers, each a process of its own."""

    def __init__(self, folder: Path, *, file_bytes: int | None = None) -> None:
        self.file, self.file_bytes = folder / "scheduler.json", file_bytes
        self.processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        deadline = time.monotonic() + 600
        while not self.file.exists() or not self.file.read_text():
            assert time.monotonic() < deadline and self.scheduler.poll() is None
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]
        limit = file_bytes
        self.workers = [
            self._start("dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", limit=limit) for _ in range(2)
        ]

    def _start(self, what: str, *words: str, limit: int | None = None) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{what}", *words, "--scheduler-file", str(self.file)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.file.parent,
            preexec_fn=lambda: limit and resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )
        self.processes.append(process)
        return process

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@contextmanager
def dask(folder: Path, *, file_bytes: int | None = None) -> Iterator[Dask]:
    folder.mkdir()
    found = Dask(folder, file_bytes=file_bytes)
    try:
        yield found
    finally:
        found.end()


def begun(folder: Path, *words: str) -> subprocess.Popen[str]:
    """LONG on a cluster, when some units are finished."""
    (folder / "long.toml").write_text(LONG)
    process = spawn("run", "long.toml", "--out", "run", "-q", *words, cwd=folder)
    parts = folder / "run" / "parts"
    deadline = time.monotonic() + 600
    while len(list(parts.glob("c*.flows.parquet"))) < 4:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


def sessions(run: Path) -> list[dict[str, object]]:
    found = json.loads((run / "run.json").read_text())["sessions"]
    assert isinstance(found, list)
    return found


def test_a_sweep_on_local_processes_is_byte_equal_to_one_process(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(TWO_FLOWS)
    shared = tmp_path / "shared"
    one = knee("run", "sweep.toml", "--out", "one", "-q", cwd=tmp_path)
    many = knee(
        "run", "sweep.toml", "--out", "many", "--cluster", "local:2", "--parts", f"file://{shared}", "-q", cwd=tmp_path
    )
    assert (one.code, many.code) == (0, 0), many.err
    assert one.out.replace("folder: one", "folder: many") == many.out
    assert tables_of(tmp_path / "one") == tables_of(tmp_path / "many")
    metas = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("one", "many")]
    (session,) = metas[1].pop("sessions")
    metas[0].pop("sessions")
    assert metas[0] == metas[1]
    assert (session["cluster"], session["workers"], session["repetitions"]) == ("local:2", 2, 6)
    assert session["parts"].startswith(f"file://{shared}/tcpknee-")
    assert not list(shared.iterdir())
    assert not (tmp_path / "many" / "parts").exists()


def test_units_with_late_hosts_are_run_there_too(tmp_path: Path) -> None:
    scenario = api.parse(TWO_FLOWS, "two.toml")
    job, meta = engines.Job(scenario, TWO_FLOWS, "two.toml"), {"scenario_sha256": "", "sessions": []}
    keys = [(0, 0), (1, 0)]
    with cluster.connected("local:1", pool.Watcher()) as found:
        found.open(job, meta, tmp_path, None)
        there = found.run_late(keys)
    here = phase.pooled(scenario, 2)(keys)
    assert all(there[key].equals(here[key]) for key in keys)


def test_calls_of_a_function_return_in_order_and_their_errors_say_whose_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = store.build()
    with cluster.connected("local:2", pool.Watcher()) as found:
        assert found.map(math.sqrt, [16.0, 9.0, 4.0]) == [4.0, 3.0, 2.0]
        with pytest.raises(ClusterError, match="a worker failed: ValueError"):
            found.map(math.sqrt, [1.0, -1.0])
        monkeypatch.setattr(store, "build", lambda: {**real, "tcpknee": "9.9.9"})
        with pytest.raises(ClusterError, match=rf"worker tcp://\S+: got tcpknee {_core.version()}; expected 9.9.9"):
            found.map(math.sqrt, [1.0])


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path, whole: dict[str, bytes]) -> None:
    with dask(tmp_path / "dask") as found:
        process = begun(tmp_path, "--cluster", found.address)
        found.workers[0].kill()
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
    assert tables_of(tmp_path / "run") == whole
    assert [session["repetitions"] for session in sessions(tmp_path / "run")] == [UNITS]


def test_a_scheduler_that_is_killed_is_said_and_the_run_goes_on_with_another(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    with dask(tmp_path / "dask") as found:
        process = begun(tmp_path, "--cluster", found.address)
        found.scheduler.kill()
        _, err = process.communicate(timeout=600)
    assert process.returncode == 2
    assert err.count("\n") == 1 and f"--cluster {found.address}: the scheduler is gone" in err
    kept = int(str(sessions(tmp_path / "run")[0]["repetitions"]))
    assert 4 <= kept < UNITS
    ended = knee("run", "--resume", "--out", "run", "--cluster", "local:2", "-q", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert tables_of(tmp_path / "run") == whole
    first, second = (int(str(session["repetitions"])) for session in sessions(tmp_path / "run"))
    assert first == kept and first + second <= UNITS
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == sorted(
        ["run.json", *(f"{name}.parquet" for name in whole)]
    )


def test_ctrl_c_keeps_what_is_finished_and_one_process_can_go_on(tmp_path: Path, whole: dict[str, bytes]) -> None:
    process = begun(tmp_path, "--cluster", "local:2")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert err == (
        "Interrupted. What was finished is kept in run; go on with: knee run --cluster local:2 --resume --out run\n"
    )
    ended = knee("run", "--resume", "--out", "run", "-q", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert tables_of(tmp_path / "run") == whole


def test_a_full_disk_at_a_worker_is_said_with_its_address(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk."""
    (tmp_path / "long.toml").write_text(LONG)
    with dask(tmp_path / "dask", file_bytes=4096) as found:
        ended = knee("run", "long.toml", "--out", "run", "--cluster", found.address, "-q", cwd=tmp_path)
    assert ended.code == 2
    assert ended.err.count("\n") == 1, ended.err
    assert "worker tcp://" in ended.err and "cannot be written: File too large. Choose another place" in ended.err


def test_a_place_that_is_not_shared_is_refused_before_the_first_unit(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    ended = knee(
        "run", "small.toml", "--out", "run", "--cluster", "local:1", "--parts", "memory://parts", "-q", cwd=tmp_path
    )
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert "worker tcp://" in ended.err and "none of it is visible here" in ended.err
    assert not (tmp_path / "run").exists()


def test_workers_of_another_version_or_without_tcpknee_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker's build is the real one; the client's is made another."""
    real = store.build()
    scenario = api.parse(SMALL, "small.toml")
    job = engines.Job(scenario, SMALL, "small.toml")
    meta = {"scenario_sha256": "", "sessions": []}
    with cluster.connected("local:1", pool.Watcher()) as found:
        monkeypatch.setattr(store, "build", lambda: {**real, "tcpknee": "9.9.9"})
        with pytest.raises(ClusterError, match=rf"worker tcp://\S+: got tcpknee {_core.version()}; expected 9.9.9"):
            found.open(job, meta, tmp_path, None)
        monkeypatch.setattr(store, "build", lambda: {**real, "core": "0" * 64})
        with pytest.raises(ClusterError, match=r"another build of tcpknee .* Install the same wheel"):
            found.open(job, meta, tmp_path, None)
        monkeypatch.undo()
        monkeypatch.setattr(units, "greet", of_the_client_alone(tmp_path, monkeypatch))
        with pytest.raises(ClusterError, match=r"cannot run tcpknee: ModuleNotFoundError.*'only_here'"):
            found.open(job, meta, tmp_path, None)


def of_the_client_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """A function of a module that no worker has."""
    (folder / "only_here.py").write_text("def greet(parts):\n    return {}, ''\n")
    monkeypatch.syspath_prepend(folder)
    import only_here  # type: ignore[import-not-found]

    return only_here.greet


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cluster", "local:0"), '--cluster: got "local:0"; expected local:N with a number of processes'),
        (("--cluster", "local:many"), '--cluster: got "local:many"; expected local:N'),
        (("--cluster", "somewhere"), '--cluster: got "somewhere"; expected the address of a Dask scheduler'),
        (("--cluster", "gopher://127.0.0.1:1"), '--cluster: got "gopher://127.0.0.1:1"; expected the address of a'),
        (("--cluster", "local:1", "--engine", "kernel"), "--cluster: got it with the engine kernel; expected the engi"),
        (("--cluster", "local:1", "--workers", "2"), "--workers: got it with cluster; expected one of them"),
        (("--parts", "x"), "--parts: got it without cluster"),
        (("--cluster", "local:1", "--parts", "sftp://me:secret@host/x"), "--parts: got a URL with a password"),
    ],
)
def test_what_no_cluster_can_be_asked_is_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    ended = knee("run", "small.toml", "--out", "run", *words, cwd=tmp_path)
    assert ended.code == 2
    assert said in ended.err and ended.err.count("\n") == 1, ended.err
    assert "secret" not in ended.err
    assert not (tmp_path / "run").exists()


def test_a_scheduler_that_does_not_answer_is_refused_after_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SEC", 1.0)
    with (
        pytest.raises(UsageError, match=r"cluster: no Dask scheduler answers at tcp://127\.0\.0\.1:9 within 1 s"),
        cluster.connected("tcp://127.0.0.1:9", pool.Watcher()),
    ):
        pass


def test_a_scheduler_without_workers_is_refused_after_a_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "WORKERS_SEC", 0.5)
    with dask(tmp_path / "dask") as found:
        for worker in found.workers:
            worker.kill()
            worker.wait()
        with (
            pytest.raises(UsageError, match=r"got no worker within 0 s"),
            cluster.connected(found.address, pool.Watcher()),
        ):
            pass


def test_without_the_extra_the_way_to_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(UsageError, match=r"pip install '\.\[cluster\]'"),
        cluster.connected("local:1", pool.Watcher()),
    ):
        pass


# What a task does, in this process.


def parcel(text: str, file: str, parts: str) -> units.Parcel:
    scenario = _core.parse(text, file)
    return units.Parcel(text, file, tuple(scenario.files.items()), "abc", parts, tuple(store.build().items()))


def test_files_that_a_scenario_names_travel_with_it(tmp_path: Path) -> None:
    trace = tmp_path / "link.up"
    trace.write_text("1\n3\n4\n")
    text = SMALL.replace('rate = "10Mbit/s"', 'rate = "trace link.up"')
    sent = parcel(text, str(tmp_path / "small.toml"), f"{tmp_path}/parts")
    assert dict(sent.files) == {str(trace): "1\n3\n4\n"}
    here = tables.of_simulator(_core.parse(text, sent.file).run_cell(1, 2))
    trace.unlink()
    parts = sent.store()
    parts.place.prepare(tables.FROM_ENGINE["sim"])
    done = units.work(sent, [(1, 2)], 60.0)
    ((key, found),) = parts.read(done.part)
    assert key == (1, 2)
    assert all(found[name].equals(here[name], check_metadata=True) for name in here)


@pytest.mark.parametrize("where", ["folder", "memory://units-return"])
def test_units_return_from_a_part_as_the_engine_gave_them(tmp_path: Path, where: str) -> None:
    url = str(tmp_path / "parts") if where == "folder" else where
    sent = parcel(SMALL, "small.toml", url)
    parts = sent.store()
    parts.place.prepare(tables.FROM_ENGINE["sim"])
    keys = pool.order(2, 3)
    done = units.work(sent, keys, 60.0)
    assert (done.units, done.left, parts.parts()) == (keys, [], [done.part])
    simulator = engines.Simulator(_core.parse(SMALL, "small.toml"))
    for key, found in parts.read(done.part):
        for name, table in simulator.run_cell(*key).items():
            assert found[name].schema.equals(table.schema, check_metadata=True)
            assert found[name].equals(table)
            for column, same in zip(found[name].columns, table.columns, strict=True):
                assert column.combine_chunks().equals(same.combine_chunks())
    parts.place.remove()
    assert parts.parts() == []


def test_a_task_leaves_what_its_time_does_not_allow(tmp_path: Path) -> None:
    sent = parcel(SMALL, "small.toml", str(tmp_path / "parts"))
    sent.store().place.prepare(tables.FROM_ENGINE["sim"])
    done = units.work(sent, [(0, 0), (1, 0), (0, 1)], 0.0)
    assert (done.units, done.left) == ([(0, 0)], [(1, 0), (0, 1)])
    assert done.part.startswith("c000000-r0000-")


def test_a_task_keeps_what_it_finished_before_a_unit_failed(tmp_path: Path) -> None:
    sent = parcel(SMALL, "small.toml", str(tmp_path / "parts"))
    sent.store().place.prepare(tables.FROM_ENGINE["sim"])
    with pytest.raises(IndexError):
        units.work(sent, [(0, 0), (1, 0), (2, 0)], 60.0)
    parts = sent.store()
    assert [key for part in parts.parts() for key, _ in parts.read(part)] == [(0, 0), (1, 0)]


def test_a_part_of_another_version_scenario_or_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = parcel(SMALL, "small.toml", str(tmp_path / "parts"))
    parts = sent.store()
    parts.place.prepare(tables.FROM_ENGINE["sim"])
    part = units.work(sent, [(0, 0)], 60.0).part
    real = store.build()

    def refusal(of: store.Store) -> str:
        with pytest.raises(RunFolderError) as refused:
            list(of.read(part))
        return str(refused.value)

    assert "belongs to another scenario" in refusal(store.Store(parts.url, "def"))
    with monkeypatch.context() as patch:
        patch.setattr(store, "build", lambda: {**real, "tcpknee": "9.9.9"})
        assert f"written by tcpknee {real['tcpknee']}; this is tcpknee 9.9.9" in refusal(sent.store())
        patch.setattr(store, "build", lambda: {**real, "core": ""})
        assert "written by another build of tcpknee" in refusal(sent.store())
    file = tmp_path / "parts" / "flows" / f"{part}.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    assert "cannot be read as a part of a run" in refusal(parts)


def test_a_client_of_another_version_is_refused_by_a_task(tmp_path: Path) -> None:
    """A worker that came after the check meets it here first."""
    sent = parcel(SMALL, "small.toml", str(tmp_path))
    other = units.Parcel(sent.text, sent.file, sent.files, "abc", sent.parts, (("core", ""), ("tcpknee", "9.9.9")))
    with pytest.raises(ClusterError, match=r"got tcpknee \S+; expected 9\.9\.9"):
        units._work(other, [(0, 0)], 1.0)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://bucket/parts", "s3://bucket/parts: cannot be opened: .*Install the package of that store"),
        ("nowhere://x", "nowhere://x: cannot be opened: ValueError: Protocol not known: nowhere"),
        ("/proc/version/parts", "/proc/version/parts.*: cannot be written: Not a directory"),
    ],
)
def test_a_store_that_refuses_is_said_in_one_line(url: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(RunFolderError, match=said) as refused:
        store.place(url).prepare(["flows"])
    assert "\n" not in str(refused.value)


def test_an_error_of_ours_crosses_dask_with_its_text() -> None:
    import pickle

    for kind in (ClusterError, RunFolderError, TcpkneeError):
        error = pickle.loads(pickle.dumps(kind("a text")))
        assert (type(error), str(error)) == (kind, "a text")
