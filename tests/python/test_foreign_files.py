"""What a data file says is obeyed neither for writing nor for removing nor for connecting, and what lies in a folder in
the place of a file hangs no command and takes no memory.

Each verb that takes a folder is walked: on a folder whose files name others, and on one with a FIFO, a device without
end, a file of a TiB and JSON without end in the place of a file.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import SMALL, Ended, refused
from tcpknee import _core, writing
from tcpknee.cli.app import VERBS
from tcpknee.datasets import manifest, partitions
from tcpknee.doctor.journal import Journal, open_journal
from tcpknee.doctor.snapshot import Snapshot
from tcpknee.errors import EngineError, RunFolderError, TcpkneeError
from tcpknee.fleet.assign import running
from tcpknee.runs import engines, parquet, store
from tcpknee.runs.folder import RunFolder

Call = Callable[..., Ended]

MOST_SEC = 120
"""Of a command, on a machine that is busy. One that waits for a FIFO waits for ever."""

OF_FOLDERS: dict[str, list[tuple[str, ...]]] = {
    "diff": [("diff", "F", "F")],
    "doctor": [("doctor", "--fleet", "F"), ("doctor", "--undo", "--journal", "F")],
    "export": [("export", "F", "--format", "csv", "--out", "csv")],
    "fleet": [("fleet", "compare", "F"), ("fleet", "connections", "F", "--out", "connections")],
    "recommend": [("recommend", "--snapshot", "F/run.json")],
    "report": [("report", "F", "--out", "page.html")],
    "run": [("run", "--resume", "--out", "F", "-q")],
    "sql": [("sql", "select 1", "F")],
    "whatif": [("whatif", "F", "--algorithms", "reno", "--paths", "1", "--adoption", "100", "-q")],
}
"""Commands of each verb that reads a folder F."""

OF_NO_FOLDER = {
    "against": "reads files that are named",
    "assign": "reads assign-stop.json alone, which has a test of its own",
    "calibrate": "reads no folder",
    "check": "reads files that are named",
    "score": "reads files that are named",
    "suite": "reads files that are named",
    "compare": "reads no folder",
    "conform": "reads files that are named",
    "gate": "reads files that are named",
    "gallery": "reads results of its own form alone, by the reader that is tested",
    "completion": "reads no folder",
    "help": "reads no folder",
    "kernel": "reads its own cache alone",
    "import": "reads files that are named",
    "list": "reads no folder",
    "load": "reads no folder",
    "new": "reads no folder",
    "profile": "writes into a free folder",
    "record": "reads segments alone (test_foreign_folders.py)",
    "redteam": "reads files that are named",
    "shell": "reads no folder",
    "snapshot": "reads no folder",
    "trace": "writes into a free folder",
    "unload": "reads no folder",
    "watch": "reads no folder",
}

NAMES = ("run.json", "trace.json", "profile.json", "assign.json", "import-flows-000001.json", "journal.json", "x.json")
"""What commands look for in a folder."""


def test_each_verb_is_walked_or_says_why_not() -> None:
    assert OF_FOLDERS.keys() | OF_NO_FOLDER.keys() == VERBS.keys() and not OF_FOLDERS.keys() & OF_NO_FOLDER.keys()


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def of_a_tib(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def nested(path: Path) -> None:
    path.write_text("[" * 1_000_000)


@contextmanager
def ending() -> Iterator[None]:
    """Ends what waits for ever, and fails the test."""

    def late(*_: object) -> None:
        raise AssertionError(f"it has not ended after {MOST_SEC} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(MOST_SEC)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def in_order(ended: Ended) -> None:
    """It ended with an exit code of ours; errors are a line each."""
    assert ended.code in (0, 1, 2), ended
    assert "Traceback" not in ended.err and "defect" not in ended.err and "not enough memory" not in ended.err, ended


def known(folder: Path, but: Path) -> dict[Path, tuple[int, bytes]]:
    """All files of a folder but those below another."""
    return {
        path: (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
        if but not in (path, *path.parents)
    }


@pytest.mark.parametrize("put", [fifo, device, of_a_tib, nested])
@pytest.mark.parametrize("verb", OF_FOLDERS)
def test_what_lies_in_the_place_of_a_file_hangs_no_verb(
    verb: str, put: Callable[[Path], None], call: Call, small_run: Path, tmp_path: Path
) -> None:
    for words in OF_FOLDERS[verb]:
        folder = shutil.copytree(small_run, tmp_path / "F", dirs_exist_ok=True)
        for name in NAMES:
            (folder / name).unlink(missing_ok=True)
            put(folder / name)
        (folder / "flows.parquet").rename(folder / "flows-000001.parquet")
        with ending():
            in_order(call(*(word.replace("F", str(folder), 1) if word.startswith("F") else word for word in words)))
        shutil.rmtree(folder)


def texts(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all texts in JSON; of a list the first item stands for all."""
    if isinstance(found, str):
        yield path
    elif isinstance(found, dict):
        for name, value in found.items():
            yield from texts(value, (*path, name))
    elif isinstance(found, list) and found:
        yield from texts(found[0], (*path, 0))


def put_at(found: Any, path: tuple[Any, ...], value: object) -> None:
    for step in path[:-1]:
        found = found[step]
    found[path[-1]] = value


@pytest.mark.parametrize(
    # It simulates for half a minute, whatever it is asked.
    "verb",
    [pytest.param(verb, marks=pytest.mark.long) if verb == "whatif" else verb for verb in OF_FOLDERS],
)
def test_no_verb_obeys_a_place_that_a_run_json_names(verb: str, call: Call, small_run: Path, tmp_path: Path) -> None:
    """Each text of it is a folder of somebody's, and a URL, in turn; for verbs that only read, all that may be are."""
    (tmp_path / "F").symlink_to("run")
    victim = tmp_path / "victim"
    (victim / "flows").mkdir(parents=True)
    (victim / "flows" / "c000000-r0000-0123456789abcdef.parquet").write_text("precious")
    about = json.loads((small_run / "run.json").read_text())
    about["sessions"][0]["parts"] = "x"
    places = [path for path in texts(about) if path[-1] not in ("schema", "started")]
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        urls = (str(victim), f"http://127.0.0.1:{server.getsockname()[1]}/tcpknee-0123456789ab")
        # A whole run is the same whatever its title is: a sample of its texts in turn, and each that names a place.
        chosen = [("sessions", 0, "parts"), ("file",), ("command",), *random.Random(1).sample(places, 3)]
        for path in chosen if verb == "run" else chosen[:2]:
            for url in urls:
                folder = shutil.copytree(small_run, tmp_path / "run")
                changed = json.loads(json.dumps(about))
                put_at(changed, path, url)
                if verb == "run":
                    changed["status"] = "interrupted"
                    for table in folder.glob("*.parquet"):
                        table.unlink()
                (folder / "run.json").write_text(json.dumps(changed))
                before = known(victim, folder)
                for words in OF_FOLDERS[verb]:
                    with ending():
                        in_order(call(*words))
                assert known(victim, folder) == before, path
                shutil.rmtree(folder)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_manifest_that_is_no_file_or_too_large_is_named(call: Call, small_run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(small_run, tmp_path / "run")
    for put, said in ((fifo, "is a FIFO; expected a regular file"), (of_a_tib, "has 1,048,576.0 MiB; expected 256")):
        file = folder / "import-flows-000001.json"
        put(file)
        with ending():
            refused(call("report", folder), f"import-flows-000001.json: {said}")
        file.unlink()


def test_of_a_fleet_each_snapshot_that_cannot_be_read_is_named(call: Call, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    for name, put in (("a", fifo), ("b", of_a_tib), ("c", device)):
        put(fleet / f"{name}.json")
    assert call("snapshot", "--out", fleet / "d.json").code == 0
    with ending():
        ended = call("doctor", "--fleet", fleet)
    said = ended.out + ended.err
    assert all(f"{name}.json: " in said for name in "abc"), ended


@pytest.mark.parametrize("put", [fifo, device, of_a_tib, nested])
def test_no_stop_file_keeps_an_experiment_from_ending(put: Callable[[Path], None], tmp_path: Path) -> None:
    put(tmp_path / running.STOP)
    with ending():
        assert running.stopped(tmp_path, "2026-01-01T00:00:00+00:00") is None


def test_a_trace_that_a_scenario_names_makes_nobody_wait(call: Call, tmp_path: Path) -> None:
    fifo(tmp_path / "link.up")
    text = SMALL.replace('rate = "10Mbit/s"', 'rate = "trace link.up"')
    (tmp_path / "s.toml").write_text(text)
    with ending():
        refused(call("run", "s.toml", "--dry-run"), "link.up: cannot be read: it is a FIFO; expected a regular file")


# What the system refuses.


def limited(kind: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (most, most))


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (limited(resource.RLIMIT_NOFILE, 12), "Too many open files"),
        (limited(resource.RLIMIT_AS, 1 << 30), "thread"),
    ],
)
def test_a_limit_of_the_process_is_said_in_one_line(tmp_path: Path, limit: Callable[[], None], said: str) -> None:
    """It meets the command wherever it may: what matters is that no lines of Python are shown."""
    (tmp_path / "small.toml").write_text(SMALL)
    process = subprocess.run(
        [sys.executable, "-m", "tcpknee", "run", "small.toml", "--out", "run", "-q"],
        cwd=tmp_path,
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=MOST_SEC,
    )
    assert process.returncode in (0, 2), process
    assert "defect" not in process.stderr, (said, process.stderr)


def test_what_the_system_refuses_is_no_defect_and_what_is_ours_is(
    call: Call, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tcpknee.runs import api

    for error, said in (
        (OSError(24, "Too many open files", "x"), "knee: x: Too many open files. Look at the limits"),
        (MemoryError(), "knee: there is not enough memory. Look at"),
        (RuntimeError("can't start new thread"), "knee: no further thread can be started. Look at"),
        (RuntimeError("something else"), "a defect of tcpknee"),
        (OSError("no number: not of the system"), "a defect of tcpknee"),
    ):

        def fail(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        monkeypatch.setattr(api, "run_text", fail)
        ended = call("run", small, "-q")
        assert ended.code == 2 and said in ended.err


def test_a_folder_that_cannot_be_made_is_said_by_the_experiment_and_the_journal(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="cannot be written: Not a directory"):
        running.assign(None, tmp_path / "file" / "x", cgroup=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(RunFolderError, match="cannot be written: Not a directory"), open_journal(tmp_path / "file"):
        pass


# What a killed process leaves in the folder for temporary files.


def test_what_a_killed_query_spilled_goes_with_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import os, sys, time\nfrom tcpknee.writing import spill_folder\n"
        "with spill_folder() as path:\n"
        "    (path / 'duckdb_temp_storage-0.tmp').write_text('much')\n"
        "    print(path, flush=True)\n"
        "    time.sleep(600)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    held = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        killed, living = (Path(process.stdout.readline().strip()) for process in held if process.stdout)
        held[0].kill()
        held[0].wait()
        theirs = tmp_path / "tcpknee-spill-theirs"
        (theirs / "sub").mkdir(parents=True)
        victim = tmp_path / "victim"
        victim.mkdir()
        (victim / "file").touch()
        (tmp_path / "tcpknee-spill-link").symlink_to(victim)
        assert killed.is_dir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        with writing.spill_folder() as own:
            assert own.is_dir() and not killed.exists() and (living / "duckdb_temp_storage-0.tmp").exists()
        assert not own.exists() and (theirs / "sub").is_dir() and (victim / "file").exists()
    finally:
        for process in held:
            process.kill()
            process.wait()


def test_a_folder_for_what_is_spilled_stays_while_others_come_and_go(tmp_path: Path) -> None:
    """One that sweeps could have the lock of a new folder, take both away and leave its owner a lock of nothing: 34 of
    2,400 folders of six processes."""
    program = (
        "from tcpknee.writing import spill_folder\n"
        "for _ in range(150):\n"
        "    with spill_folder() as path:\n"
        "        (path / 'part').touch()\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    held = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in range(6)]
    assert [process.wait() for process in held] == [0] * 6
    assert list(tmp_path.iterdir()) == []


# Files of any content: a reader answers, or says in one of our errors why not.

LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("/etc/passwd")
ANYTHING = st.recursive(
    LEAF, lambda of: st.lists(of, max_size=3) | st.dictionaries(st.text(max_size=8), of, max_size=3), max_leaves=8
)


def places(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places in JSON; of a list the first items."""
    items = found.items() if isinstance(found, dict) else enumerate(found[:3]) if isinstance(found, list) else ()
    for step, value in items:
        yield (*path, step)
        yield from places(value, (*path, step))


ENTRY = {
    "change": {"kind": "ring", "interface": "eth0", "rx": 512, "tx": None, "netns": None},
    "rule": "small-ring",
    "before": {"rx": 256},
    "goal": {"rx": 512},
    "boot_id": "x",
    "netns_inode": 1,
    "state": "made",
    "after": None,
    "persists": False,
    "beside": [{"change": {"kind": "sysctl", "name": "net.core.somaxconn", "value": "1"}, "before": "1"}],
    "t_unix_ns": 1,
}
JOURNAL = {
    "format": "tcpknee-journal",
    "version": 1,
    "entries": [ENTRY],
    "files": [{"path": "/x", "texts": ["", None]}],
}
SNAPSHOT = {
    "format": "tcpknee-snapshot",
    "version": 1,
    "taken_unix_ns": 1,
    "tables": {"host": [{"host": "a"}], "sysctls": [{"name": "a", "value": "b"}]},
    "missing": [{"what": "x", "why": "y", "needs": ""}],
}


def of_journal(folder: Path) -> None:
    (folder / "journal.json").chmod(0o600)
    for entry in Journal(folder).entries:
        assert entry.subject.target


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "run": ("run.json", lambda folder: RunFolder.open(folder).read_json()),
    "import": ("import-a-000001.json", lambda folder: list(manifest.imports(folder))),
    "journal": ("journal.json", of_journal),
    "snapshot": ("a.json", lambda folder: Snapshot.of_folder(folder / "a.json")),
    "stop": (running.STOP, lambda folder: running.stopped(folder, "x")),
    "parts": ("session.json", lambda folder: store.Store(str(folder), "x").is_ours()),
}


@pytest.fixture(scope="module")
def whole(small_run: Path) -> dict[str, Any]:
    """What is in each of these files where all is well."""
    return {
        "run": json.loads((small_run / "run.json").read_text()),
        "import": {"schema": 1, "files": ["a-000001.parquet"]},
        "journal": JOURNAL,
        "snapshot": SNAPSHOT,
        "stop": {"schema": 1, "began": "x", "why": "losses"},
        "parts": {"format": "tcpknee-parts", "scenario_sha256": "x", "session": "tcpknee-0123456789ab"},
    }


@pytest.mark.parametrize("examples", [60, pytest.param(20_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("reader", READERS)
def test_whatever_a_file_holds_its_reader_answers_or_says_why_not(
    reader: str, examples: int, whole: dict[str, Any], tmp_path: Path
) -> None:
    name, read = READERS[reader]
    folder = tmp_path / "tcpknee-0123456789ab"
    folder.mkdir()
    (folder / name).write_text(json.dumps(whole[reader]))
    read(folder)

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def tried(data: st.DataObject) -> None:
        found = json.loads(json.dumps(whole[reader]))
        for _ in range(data.draw(st.integers(1, 3))):
            all_places = list(places(found))
            if all_places:
                put_at(found, data.draw(st.sampled_from(all_places)), data.draw(ANYTHING))
        text = json.dumps(found).encode()
        if data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(text)))
            text = text[:at] + data.draw(st.binary(max_size=4)) + text[at + data.draw(st.integers(0, 4)) :]
        (folder / name).write_bytes(text)
        try:
            read(folder)
        except TcpkneeError as error:
            assert str(error)

    tried()


Foreign = tuple[Path, Callable[[], object]]
"""A file that somebody else may have written, and what reads it."""


def simulated() -> dict[str, pa.Table]:
    return engines.Simulator(_core.parse(SMALL, "small.toml")).run_cell(0, 0)


def a_part_of_a_cluster(folder: Path) -> Foreign:
    sent_by = store.Store(str(folder / "tcpknee-0123456789ab"), "x")
    sent_by.begin()
    part = sent_by.write({(0, 0): simulated()})
    return folder / "tcpknee-0123456789ab" / "flows" / f"{part}.parquet", lambda: list(sent_by.read(part))


def a_repetition_that_was_kept(folder: Path) -> Foreign:
    run = RunFolder.create(folder / "run")
    run.write_part((0, 0), simulated())
    [file] = (path for path in (folder / "run").rglob("*.parquet") if "flows" in str(path.relative_to(folder)))
    return file, lambda: run.read_part((0, 0), ["flows"])


def a_table_of_a_folder(folder: Path) -> Foreign:
    pq.write_table(simulated()["flows"], folder / "flows.parquet")

    def read() -> None:
        tables, _, _ = partitions.find(folder)
        for table in tables.values():
            table.read()
            table.read(equals={"cell": 0})
            list(table.batches(["cell"]))

    return folder / "flows.parquet", read


def a_table_of_paths(folder: Path) -> Foreign:
    file = folder / "paths.parquet"
    pq.write_table(pa.table({"flow": ["flow", "b"], "rtt_ms": [1.5, 2.0]}), file)
    return file, lambda: parquet.as_csv(file.read_bytes(), most_bytes=1 << 20)


PARQUET = [a_part_of_a_cluster, a_repetition_that_was_kept, a_table_of_a_folder, a_table_of_paths]


@pytest.mark.parametrize("made", PARQUET)
def test_parquet_whose_names_are_no_utf8_is_refused(made: Callable[[Path], Foreign], tmp_path: Path) -> None:
    file, read = made(tmp_path)
    read()
    file.write_bytes(file.read_bytes().replace(b"flow", b"\xfflow"))
    with pytest.raises((TcpkneeError, OSError), match=r"(?i)utf|0xff"):
        read()


@pytest.mark.parametrize("examples", [30, pytest.param(3_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("made", PARQUET)
def test_whatever_a_parquet_file_holds_it_is_read_or_refused(
    made: Callable[[Path], Foreign], examples: int, tmp_path: Path
) -> None:
    file, read = made(tmp_path)
    content = file.read_bytes()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def tried(data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(content)))
        changed = content[:at] + data.draw(st.binary(max_size=8)) + content[at + data.draw(st.integers(0, 8)) :]
        file.write_bytes(changed)
        try:
            read()
        except (TcpkneeError, OSError) as error:
            assert str(error)

    tried()


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("change", "netns"), 5, "netns: got 5"),
        (("change", "interface"), ["eth0"], "interface: got"),
        (("change", "rx"), True, "rx: got True"),
        (("state",), "done", "state: got 'done'"),
        (("persists",), 1, "persists: got 1"),
        (("netns_inode",), "1", "netns_inode: got '1'"),
        (("beside",), [5], "got 5"),
        (("change",), 5, "change: got 5"),
    ],
)
def test_a_journal_of_another_shape_is_refused_by_its_key(
    tmp_path: Path, place: tuple[str, ...], value: object, said: str
) -> None:
    changed = json.loads(json.dumps(JOURNAL))
    put_at(changed["entries"][0], place, value)
    (tmp_path / "journal.json").write_text(json.dumps(changed))
    (tmp_path / "journal.json").chmod(0o600)
    with pytest.raises(EngineError, match="an entry is damaged") as refusal:
        Journal(tmp_path)
    assert said in str(refusal.value)
