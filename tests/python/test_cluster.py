"""Runs on a Dask cluster: the same tables to the byte, whoever dies meanwhile, and each refusal in one paragraph."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dask_here import Dask, block_of, dask, make_key
from support import SMALL, Ended, knee, run_by_one_process, spawn, tables_of
from tcpknee import _core
from tcpknee.errors import ClusterError, RunFolderError, TcpkneeError, UsageError
from tcpknee.runs import api, cluster, engines, phase, pool, store, tables, units
from tcpknee.runs.job import Job
from test_isolated import BAD, PATH

LONG = """\
title = "Long enough for somebody to die"
duration = "90s"
repeat = 24
[path]
rate = "20Mbit/s"
rtt = "20ms"
loss = "0.1%"
[[flow]]
algorithm = ["cubic", "reno"]
"""
UNITS = 48

PLACE = "tcpknee-0123456789ab"
"""Of a session's parts."""

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
def whole(once: Callable[[str, Callable[[Path], object]], Path]) -> dict[str, bytes]:
    """Tables of LONG by one process."""
    return tables_of(once("cluster", lambda folder: run_by_one_process(LONG, folder)) / "run")


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    """One that no test kills."""
    with dask(tmp_path_factory.mktemp("dask") / "here") as found:
        yield found


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


def test_a_sweep_on_workers_is_byte_equal_to_one_process(tmp_path: Path, on: Dask) -> None:
    (tmp_path / "sweep.toml").write_text(TWO_FLOWS)
    shared = tmp_path / "shared"
    one = knee("run", "sweep.toml", "--out", "one", "-q", cwd=tmp_path)
    many = knee(
        "run", "sweep.toml", "--out", "many", "--cluster", on.address, "--parts", f"file://{shared}", "-q", cwd=tmp_path
    )
    assert (one.code, many.code) == (0, 0), many.err
    assert one.out.replace("folder: one", "folder: many") == many.out
    assert tables_of(tmp_path / "one") == tables_of(tmp_path / "many")
    metas = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("one", "many")]
    (session,) = metas[1].pop("sessions")
    metas[0].pop("sessions")
    assert metas[0] == metas[1]
    assert (session["cluster"], session["workers"], session["repetitions"]) == (on.address, 2, 6)
    assert session["parts"].startswith(f"file://{shared}/tcpknee-")
    assert not list(shared.iterdir())
    assert not (tmp_path / "many" / "parts").exists()


def test_units_with_late_hosts_are_run_there_too(tmp_path: Path, on: Dask) -> None:
    scenario = api.parse(TWO_FLOWS, "two.toml")
    job, meta = Job(scenario, TWO_FLOWS, "two.toml"), {"scenario_sha256": "", "sessions": []}
    keys = [(0, 0), (1, 0)]
    with cluster.connected(on.address, pool.Watcher()) as found:
        found.open(job, meta, tmp_path, None)
        there = found.run_late(keys)
    here = phase.pooled(job, 2)(keys)
    assert all(there[key].equals(here[key]) for key in keys)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_an_algorithms_file_that_fails_ends_its_own_repetitions_alone(tmp_path: Path, on: Dask) -> None:
    (tmp_path / "bad.c").write_text(BAD.replace("DO_IT", "*(volatile u32 *)8 = 1"))
    (tmp_path / "s.toml").write_text(PATH + "bad.after = [0, 40]\n")
    one = knee("run", "s.toml", "--out", "one", "-q", cwd=tmp_path)
    many = knee("run", "s.toml", "--out", "many", "--cluster", on.address, "-q", cwd=tmp_path)
    assert (one.code, many.code) == (1, 1), many.err
    assert "--call many/calls/2-0.json" in many.err
    failed = [json.loads((tmp_path / name / "run.json").read_text())["failed"] for name in ("one", "many")]
    assert failed[0] == failed[1] and [(entry["cell"], entry["rep"]) for entry in failed[1]] == [(2, 0), (2, 1)]
    calls = [(tmp_path / name / "calls" / "2-0.json").read_bytes() for name in ("one", "many")]
    assert calls[0] == calls[1]
    assert tables_of(tmp_path / "one") == tables_of(tmp_path / "many")
    assert not list((tmp_path / "many" / "parts").glob("tcpknee-*"))


def test_calls_of_a_function_return_in_order_and_their_errors_say_whose_they_are(
    monkeypatch: pytest.MonkeyPatch, on: Dask
) -> None:
    real = store.build()
    with cluster.connected(on.address, pool.Watcher()) as found:
        assert found.map(math.sqrt, [16.0, 9.0, 4.0]) == [4.0, 3.0, 2.0]
        with pytest.raises(ClusterError, match="a worker failed: ValueError"):
            found.map(math.sqrt, [1.0, -1.0])
        monkeypatch.setattr(store, "build", lambda: {**real, "tcpknee": "9.9.9"})
        with pytest.raises(ClusterError, match=rf"worker tls://\S+: got tcpknee {_core.version()}; expected 9.9.9"):
            found.map(math.sqrt, [1.0])


@pytest.mark.slow("a scheduler, two workers and a front each import dask")
def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path, whole: dict[str, bytes]) -> None:
    with dask(tmp_path / "dask") as found:
        process = begun(tmp_path, "--cluster", found.address)
        found.workers[0].kill()
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
    assert tables_of(tmp_path / "run") == whole
    assert [session["repetitions"] for session in sessions(tmp_path / "run")] == [UNITS]


@pytest.mark.slow("a scheduler, two workers and a front each import dask")
def test_a_scheduler_that_is_killed_is_said_and_the_run_goes_on_with_another(
    tmp_path: Path, whole: dict[str, bytes], on: Dask
) -> None:
    with dask(tmp_path / "dask") as found:
        process = begun(tmp_path, "--cluster", found.address)
        found.scheduler.kill()
        _, err = process.communicate(timeout=600)
    assert process.returncode == 2
    assert err.count("\n") == 1 and f"--cluster {found.address}: the scheduler is gone" in err
    kept = int(str(sessions(tmp_path / "run")[0]["repetitions"]))
    assert 4 <= kept < UNITS
    ended = knee("run", "--resume", "--out", "run", "--cluster", on.address, "-q", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert tables_of(tmp_path / "run") == whole
    first, second = (int(str(session["repetitions"])) for session in sessions(tmp_path / "run"))
    assert first == kept and first + second <= UNITS
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == sorted(
        ["run.json", *(f"{name}.parquet" for name in whole)]
    )


@pytest.mark.slow("a scheduler, two workers and a front each import dask")
def test_ctrl_c_keeps_what_is_finished_and_one_process_can_go_on(
    tmp_path: Path, whole: dict[str, bytes], on: Dask
) -> None:
    process = begun(tmp_path, "--cluster", on.address)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert err == (
        "Interrupted. What was finished is kept in run; go on with: "
        f"knee run --cluster {on.address} --resume --out run\n"
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
    assert "worker tls://" in ended.err and "cannot be written: File too large. Choose another place" in ended.err


def test_a_place_that_is_not_shared_is_refused_before_the_first_unit(tmp_path: Path, on: Dask) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    ended = knee(
        "run", "small.toml", "--out", "run", "--cluster", on.address, "--parts", "memory://parts", "-q", cwd=tmp_path
    )
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert "worker tls://" in ended.err and "none of it is visible here" in ended.err
    assert not (tmp_path / "run").exists()


def test_a_run_is_replaced_once_the_workers_are_found_good(tmp_path: Path, on: Dask) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    words = ("run", "small.toml", "--out", "run", "-q")
    assert knee(*words, cwd=tmp_path).code == 0
    before = {file: file.read_bytes() for file in (tmp_path / "run").iterdir()}
    words = (*words, "--force", "--cluster", on.address)
    assert knee(*words, "--parts", "memory://parts", cwd=tmp_path).code == 2
    assert {file: file.read_bytes() for file in (tmp_path / "run").iterdir()} == before
    assert knee(*words, cwd=tmp_path).code == 0
    assert sessions(tmp_path / "run")[0]["cluster"] == on.address
    assert sorted((tmp_path / "run").iterdir()) == sorted(before)


def test_workers_of_another_version_or_without_tcpknee_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: Dask
) -> None:
    """The worker's build is the real one; the client's is made another."""
    real = store.build()
    scenario = api.parse(SMALL, "small.toml")
    job = Job(scenario, SMALL, "small.toml")
    meta = {"scenario_sha256": "", "sessions": []}
    with cluster.connected(on.address, pool.Watcher()) as found:
        monkeypatch.setattr(store, "build", lambda: {**real, "tcpknee": "9.9.9"})
        with pytest.raises(ClusterError, match=rf"worker tls://\S+: got tcpknee {_core.version()}; expected 9.9.9"):
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
        (("--cluster", "local:4"), "no cluster is needed: leave it out, or give --workers 4."),
        (("--cluster", "local:many"), '--cluster: got "local:many"; expected the address of a'),
        (("--cluster", "somewhere"), '--cluster: got "somewhere"; expected the address of a Dask scheduler'),
        (("--cluster", "gopher://127.0.0.1:1"), '--cluster: got "gopher://127.0.0.1:1"; expected the address of a'),
        (
            ("--cluster", "tls://10.0.0.5:8786", "--engine", "kernel"),
            "--cluster: got it with the engine kernel; expected the engine sim. The engine kernel measures this host's",
        ),
        (
            ("--cluster", "tls://10.0.0.5:8786", "--engine", "guest"),
            "expected the engine sim. The engine guest boots kernels that were built on this host, which workers",
        ),
        (
            ("--cluster", "tls://10.0.0.5:8786", "--engine", "hosts", "--sender", "local", "--receiver", "b"),
            "expected the engine sim. The engine hosts measures between two hosts of yours in real time",
        ),
        (
            ("--cluster", "tls://10.0.0.5:8786", "--workers", "2"),
            "--workers: got it with cluster; expected one of them",
        ),
        (("--parts", "x"), "--parts: got it without cluster"),
        (
            ("--cluster", "tls://10.0.0.5:8786", "--parts", "sftp://me:secret@host/x"),
            "--parts: got a URL with a password",
        ),
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
    import dask

    monkeypatch.setattr(cluster, "CONNECT_SEC", 1.0)
    with (
        # The key of the cluster that other tests here hold asks for more.
        dask.config.set({"distributed.comm.require-encryption": None}),
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
        cluster.connected("tls://10.0.0.5:8786", pool.Watcher()),
    ):
        pass


# Who may speak to it.


def listening(process: int) -> set[int]:
    """TCP ports of a process and of those that it started."""
    started = {process}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[1]) in started:
            started.add(int(stat.parent.name))
    inodes = set()
    for one in started:
        for file in Path(f"/proc/{one}/fd").iterdir():
            try:
                inodes.update(re.findall(r"socket:\[(\d+)\]", str(file.readlink())))
            except OSError:
                continue
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].partition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in inodes}


ANOTHER = """\
import os, sys
from concurrent.futures import ThreadPoolExecutor
from distributed import Client, Security
from distributed.core import rpc
os.setgid(65534), os.setuid(65534)

def tried(address, **options):
    try:
        with Client(address, timeout=5, set_as_default=False, **options) as client:
            return client.run_on_scheduler(os.getuid)
    except OSError:
        return None

def asked(address):
    async def identity():
        async with rpc(address, timeout=5) as peer:
            return await peer.identity()
    import asyncio
    try:
        return asyncio.run(asyncio.wait_for(identity(), 10))
    except (OSError, asyncio.TimeoutError):
        return None

def shown(port):
    from urllib.request import urlopen
    for page in ("info/main/workers.html", "json/counts.json", "metrics", "status"):
        try:
            return page, urlopen(f"http://127.0.0.1:{port}/{page}", timeout=10).status
        except OSError:
            pass

own, key = sys.argv[1:3]
forged = Security(tls_ca_file=own, tls_client_cert=own, tls_client_key=key, require_encryption=True)
def all_three(port):
    return port, tried(f"tls://127.0.0.1:{port}", security=forged), asked(f"tcp://127.0.0.1:{port}"), shown(port)

# Each waits for what does not answer.
for told in ThreadPoolExecutor(8).map(all_three, sys.argv[3:]):
    print(*told)
"""
"""Another user, with a key of its own, at each port: what it was told."""


@pytest.mark.slow("what does not answer another user is waited for, port by port")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_another_user_of_the_host_is_refused_by_scheduler_nanny_and_worker(tmp_path: Path) -> None:
    with dask(tmp_path / "dask", nanny=True) as found:
        with cluster.connected(found.address, pool.Watcher()) as here:
            assert here.map(math.sqrt, [4.0]) == [2.0], "who holds the key is served"
        deadline = time.monotonic() + 60
        while len(ports := {port for process in found.processes for port in listening(process.pid)}) < 5:
            assert time.monotonic() < deadline, ports
            time.sleep(0.1)
        make_key(tmp_path)
        key, certificate = (tmp_path / "dask-tls" / name for name in ("key.pem", "cert.pem"))
        for path in (key, certificate, key.parent, tmp_path, *list(tmp_path.parents)[:3]):
            path.chmod(path.stat().st_mode | 0o055)
        other = subprocess.run(
            [sys.executable, "-c", ANOTHER, certificate, key, *map(str, ports)],
            env={name: value for name, value in os.environ.items() if name != "DASK_CONFIG"},
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert other.returncode == 0, other.stderr
    assert sorted(other.stdout.splitlines()) == sorted(f"{port} None None None" for port in ports)


def test_a_run_on_this_hosts_processors_opens_no_port(tmp_path: Path) -> None:
    process = begun(tmp_path, "--workers", "2")
    try:
        assert listening(process.pid) == set()
    finally:
        process.terminate()
        process.communicate(timeout=300)


def test_a_cluster_that_nothing_protects_is_said_to_be_one(
    call: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SEC", 0.5)
    (tmp_path / "small.toml").write_text(SMALL)
    for address, is_said in (("tcp://127.0.0.1:9", True), ("127.0.0.1:9", True), ("tls://127.0.0.1:9", False)):
        ended = call("run", "small.toml", "--out", "run", "-q", "--cluster", address)
        assert ended.code == 2
        assert (f"--cluster {address}: nothing protects it." in ended.err) == is_said, ended.err
        assert "IO loop" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.slow("a scheduler, a worker and a front each import dask, and end when they are asked")
def test_the_commands_of_the_page_make_a_cluster(tmp_path: Path) -> None:
    """Word for word, but for the host, the port and the end of the output."""
    scheduler, worker = (shlex.split(line) for line in block_of("dask scheduler").strip().splitlines())
    assert [scheduler[0], worker[0]] == ["dask", "dask"]
    beside = Path(sys.executable).parent
    make_key(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = {"8786": port, "tls://10.0.0.5:8786": f"tls://127.0.0.1:{port}", "~/dask-tls": str(tmp_path / "dask-tls")}
    environment = {**os.environ, "HOME": str(tmp_path)}
    environment.pop("DASK_CONFIG", None)
    processes = [
        subprocess.Popen(
            [beside / "dask", *(words.get(word, word) for word in line[1:])],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for line in (scheduler, worker)
    ]
    try:
        (tmp_path / "sweep.toml").write_text(SMALL)
        line = next(line for line in block_of("knee run sweep.toml").splitlines() if "--resume" not in line)
        asked = [words.get(word, word) for word in shlex.split(line)[1:]]
        asked[asked.index("s3://bucket/sweeps")] = str(tmp_path / "shared")
        ended = subprocess.run(
            [sys.executable, "-m", "tcpknee", *asked, "--out", "run"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ended.returncode == 0 and "nothing protects it" not in ended.stderr, ended.stderr
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=300)


# What a run.json says, and what is removed.


@pytest.fixture
def left(tmp_path: Path, small: Path) -> Path:
    """A run of which workers of an earlier session left two repetitions in a place beside its folder."""
    run, place = tmp_path / "run", tmp_path / "shared" / PLACE
    assert knee("run", "small.toml", "--out", "run", "-q", cwd=tmp_path).code == 0
    for file in run.glob("*.parquet"):
        file.unlink()
    about = json.loads((run / "run.json").read_text())
    about["status"] = "interrupted"
    about["sessions"][0]["parts"] = str(place)
    (run / "run.json").write_text(json.dumps(about))
    scenario = _core.parse(SMALL, "small.toml")
    sent = units.Parcel(
        SMALL,
        "small.toml",
        tuple(scenario.files.items()),
        about["scenario_sha256"],
        str(place),
        tuple(store.build().items()),
    )
    sent.store().begin()
    units.work(sent, [(0, 0), (1, 0)], 60.0)
    return run


def test_a_place_that_only_run_json_names_is_named_and_left(left: Path) -> None:
    place = left.parent / "shared" / PLACE
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    ended = knee("run", "--resume", "--out", "run", "-q", cwd=left.parent)
    assert ended.code == 0
    assert f"left finished repetitions in {place}. It is left as it is" in ended.err
    assert f"--parts {place.parent} does" in ended.err
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before
    assert [session["repetitions"] for session in sessions(left)] == [6, 6]


def test_a_place_that_parts_names_again_is_taken_up_and_removed(left: Path) -> None:
    shared = left.parent / "shared"
    (shared / PLACE / "notes").mkdir()
    (shared / "flows").mkdir()
    ended = knee("run", "--resume", "--out", "run", "--parts", "shared", "-q", cwd=left.parent)
    assert (ended.code, ended.err) == (0, "")
    assert [session["repetitions"] for session in sessions(left)] == [6, 4]
    assert sorted(path.relative_to(shared).as_posix() for path in shared.rglob("*")) == [
        "flows",
        PLACE,
        f"{PLACE}/notes",
    ], "what is not ours stays"


@pytest.mark.parametrize("parts", [None, "."])
@pytest.mark.parametrize("named", ["precious", f"precious/{PLACE}", "../precious", PLACE])
def test_no_folder_is_removed_because_a_run_json_names_it(left: Path, named: str, parts: str | None) -> None:
    """Nor where its name is one of ours, but nothing in it says that this run's session made it."""
    folder = left.parent
    about = json.loads((left / "run.json").read_text())
    url = str(folder / named)
    for victim in (folder / "precious", folder / "precious" / PLACE, folder / PLACE):
        for kept in ("sub", "flows"):
            (victim / kept).mkdir(parents=True)
            (victim / kept / "c000000-r0000-0123456789abcdef.parquet").write_text("precious")
    (folder / PLACE / "session.json").write_text(
        json.dumps({"format": "tcpknee-parts", "scenario_sha256": "another", "session": PLACE})
    )
    about["sessions"][0]["parts"] = url
    (left / "run.json").write_text(json.dumps(about))
    before = sorted(folder.rglob("*"))
    words = ("--parts", parts) if parts else ()
    ended = knee("run", "--resume", "--out", "run", *words, "-q", cwd=folder)
    assert ended.code == 0, ended.err
    assert [path for path in before if not path.exists()] == []


def test_no_url_of_a_run_json_is_opened(left: Path) -> None:
    about = json.loads((left / "run.json").read_text())
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x/{PLACE}"
        about["sessions"][0]["parts"] = url
        (left / "run.json").write_text(json.dumps(about))
        ended = knee("run", "--resume", "--out", "run", "-q", cwd=left.parent)
        assert ended.code == 0 and f"left finished repetitions in {url}" in ended.err
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("where", ["place", "flows"])
def test_a_link_in_a_run_folder_leads_to_no_place(left: Path, where: str) -> None:
    """Whoever made the folder can put it there."""
    place = left.parent / "shared" / PLACE
    inside = left / "parts" / PLACE
    inside.parent.mkdir()
    if where == "place":
        inside.symlink_to(place)
    else:
        inside.mkdir()
        shutil.copy(place / "session.json", inside)
        (inside / "flows").symlink_to(place / "flows")
    before = sorted(place.rglob("*"))
    assert knee("run", "--resume", "--out", "run", "-q", cwd=left.parent).code == 0
    assert sorted(place.rglob("*")) == before
    assert [session["repetitions"] for session in sessions(left)] == [6, 6]


# What a task does, in this process.


def parcel(text: str, file: str, parts: str, files: dict[str, str] | None = None) -> units.Parcel:
    scenario = _core.parse(text, file, files)
    return units.Parcel(text, file, tuple(scenario.files.items()), "abc", parts, tuple(store.build().items()))


def test_files_that_a_scenario_names_travel_with_it(tmp_path: Path) -> None:
    trace = tmp_path / "link.up"
    trace.write_text("1\n3\n4\n")
    text = SMALL.replace('rate = "10Mbit/s"', 'rate = "trace link.up"')
    named = {str(trace): trace.read_text()}
    sent = parcel(text, str(tmp_path / "small.toml"), f"{tmp_path}/{PLACE}", named)
    assert dict(sent.files) == named
    here = tables.of_simulator(_core.parse(text, sent.file, named).run_cell(1, 2))
    trace.unlink()
    parts = sent.store()
    parts.begin()
    done = units.work(sent, [(1, 2)], 60.0)
    ((key, found),) = parts.read(done.part)
    assert key == (1, 2)
    assert all(found[name].equals(here[name], check_metadata=True) for name in here)


@pytest.mark.parametrize("where", ["folder", f"memory://units-return/{PLACE}"])
def test_units_return_from_a_part_as_the_engine_gave_them(tmp_path: Path, where: str) -> None:
    url = str(tmp_path / PLACE) if where == "folder" else where
    sent = parcel(SMALL, "small.toml", url)
    parts = sent.store()
    parts.begin()
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
    parts.remove()
    assert parts.parts() == [] and not parts.is_ours()


def test_a_task_leaves_what_its_time_does_not_allow(tmp_path: Path) -> None:
    sent = parcel(SMALL, "small.toml", str(tmp_path / PLACE))
    sent.store().begin()
    done = units.work(sent, [(0, 0), (1, 0), (0, 1)], 0.0)
    assert (done.units, done.left) == ([(0, 0)], [(1, 0), (0, 1)])
    assert done.part.startswith("c000000-r0000-")


def test_a_task_keeps_what_it_finished_before_a_unit_failed(tmp_path: Path) -> None:
    sent = parcel(SMALL, "small.toml", str(tmp_path / PLACE))
    sent.store().begin()
    with pytest.raises(IndexError):
        units.work(sent, [(0, 0), (1, 0), (2, 0)], 60.0)
    parts = sent.store()
    assert [key for part in parts.parts() for key, _ in parts.read(part)] == [(0, 0), (1, 0)]


def test_a_part_of_another_version_scenario_or_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = parcel(SMALL, "small.toml", str(tmp_path / PLACE))
    parts = sent.store()
    parts.begin()
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
    file = tmp_path / PLACE / "flows" / f"{part}.parquet"
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
