"""Root in a folder that another user prepared: what that user could make root write, and what root refuses.

The other user needs no process: what it could have put into its folder is there, and is its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tcpknee
from support import SMALL, Ended, refused
from tcpknee import Dataset, _core
from tcpknee.errors import RunFolderError
from tcpknee.fleet.assign.heir import Heir

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be made to write what others may not")

OTHER = 65534
"""The user nobody, whom every system has."""
SECRET = b"root:$6$secret:19000:0:99999:7:::\n" * 4_000
FOLLOWED = "--allow-foreign-folder"

Attack = Callable[[Path, Path], None]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of root's alone."""
    path = tmp_path / "shadow"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    return path


@pytest.fixture
def run_of_other(small_run: Path, tmp_path: Path) -> Path:
    """A run that the other user made."""
    return handed_over(shutil.copytree(small_run, tmp_path / "run"))


def handed_over(folder: Path) -> Path:
    """The folder and all in it is the other user's."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, OTHER, OTHER, follow_symlinks=False)
    return folder


def knee(*words: str | Path, cwd: Path, **environment: str) -> Ended:
    """`knee` in a process of its own: one that waits for a FIFO is ended, and fails the test. Who called sudo is asked
    for once in a process."""
    without_sudo = {name: value for name, value in os.environ.items() if name != "SUDO_UID"}
    process = subprocess.run(
        [sys.executable, "-m", "tcpknee", *map(str, words)],
        cwd=cwd,
        env=without_sudo | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Ended(process.returncode, process.stdout, process.stderr)


def segments_of_a_killed_writer(folder: Path) -> Path:
    """A part with complete row groups, and what tells of them."""
    output = _core.parse(SMALL, "small.toml").run_cell(0, 0)
    writer = _core.SegmentWriter(folder, "sockets", output.flows, 0)
    writer.write(output.flows)
    del writer
    part = folder / "sockets-000001.parquet.part"
    assert part.is_file() and part.with_suffix(".groups").is_file()
    return part


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_sql_reads_what_a_killed_recorder_left_and_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "rec"
    segments_of_a_killed_writer(folder)
    before = snapshot(folder)
    ended = knee("sql", "select count(*) as n from sockets", folder, "--csv", cwd=tmp_path)
    assert (ended.code, ended.out) == (0, "n\n1\n")
    assert snapshot(folder) == before


def test_a_part_that_is_a_link_to_a_file_of_root_is_neither_written_nor_read(tmp_path: Path, secret: Path) -> None:
    folder = tmp_path / "rec"
    part = segments_of_a_killed_writer(folder)
    part.unlink()
    part.symlink_to(secret)
    handed_over(folder)
    refused(knee("sql", "select count(*) from sockets", folder, cwd=tmp_path), "sockets-000001.parquet.part")
    assert secret.read_bytes() == SECRET
    for words in ((), (FOLLOWED,)):
        knee("record", "--for", "50ms", "--no-host", "--out", folder, *words, cwd=tmp_path)
        assert secret.read_bytes() == SECRET
        assert part.is_symlink()


def test_a_file_that_only_root_may_read_is_named_with_what_hands_it_over() -> None:
    """Root's log beside a user's recording: it is not damaged. Others may not enter the folder of a test."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        things, part = folder / "things-000001.parquet", folder / "parts-000001.parquet.part"
        for path in (things, part, part.with_suffix(".groups"), folder / "others-000001.parquet"):
            pq.write_table(pa.table({"x": [1]}), path)
            path.chmod(0o644 if path.name.startswith("others") else 0o600)
        query = "select x from things"
        # What it imports, root may read.
        assert tcpknee.sql(query, folder).equals(Dataset(folder).rows("things"))
        os.seteuid(OTHER)
        try:
            with pytest.raises(RunFolderError) as by_sql:
                tcpknee.sql(query, folder)
            with pytest.raises(RunFolderError) as by_arrow:
                Dataset(folder).rows("things")
            of_part = Dataset(folder).damaged["parts"]
            assert tcpknee.sql("select x from others", folder).num_rows == 1
        finally:
            os.seteuid(0)
        for said, path in ((str(by_sql.value), things), (str(by_arrow.value), things), (of_part, part)):
            assert said.startswith(f"{path}: this user may not read it")
            assert f'sudo chown -R "$USER" {folder}' in said and "damaged" not in said


def test_assign_leaves_nothing_but_its_own_files_to_the_user_who_called_sudo(
    tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    monkeypatch.setenv("SUDO_GID", str(OTHER))
    theirs, of_root = tmp_path / "theirs", tmp_path / "root"
    for folder in (theirs, of_root):
        folder.mkdir()
        (folder / "assignments-000001.parquet").touch()
        (folder / "other").touch()
    os.chown(theirs, OTHER, OTHER)
    (theirs / "assignments-000002.parquet").symlink_to(secret)
    (theirs / "assignments-000003.parquet").hardlink_to(secret)
    for folder in (theirs, of_root):
        Heir(_core.Folder(folder)).take("assignments-*")
    given = {path for folder in (theirs, of_root) for path in folder.iterdir() if path.stat().st_uid == OTHER}
    assert given == {theirs / "assignments-000001.parquet"} and secret.stat().st_uid == 0


def test_a_folder_that_is_swapped_meanwhile_gives_nothing_of_root_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    monkeypatch.setenv("SUDO_GID", str(OTHER))
    theirs, etc = tmp_path / "theirs", tmp_path / "etc"
    (etc / "cron.d").mkdir(parents=True)
    (etc / "cron.d" / "assignments-000001.parquet").touch()
    theirs.mkdir()
    os.chown(theirs, OTHER, OTHER)
    folder = _core.Folder(theirs / "cron.d")
    (theirs / "cron.d" / "assignments-000001.parquet").touch()
    theirs.rename(tmp_path / "moved")
    theirs.symlink_to(etc)
    Heir(folder).take("assignments-*")
    assert {path.stat().st_uid for path in (etc, *etc.rglob("*"))} == {0}
    assert {path.stat().st_uid for path in (tmp_path / "moved").rglob("*")} == {OTHER}


def test_a_part_that_is_a_hard_link_to_a_file_of_root_is_left_alone(tmp_path: Path, secret: Path) -> None:
    folder = tmp_path / "rec"
    part = segments_of_a_killed_writer(folder)
    part.unlink()
    part.hardlink_to(secret)
    os.chown(folder, OTHER, OTHER)
    ended = knee("record", "--for", "50ms", "--no-host", "--out", folder, FOLLOWED, cwd=tmp_path)
    assert ended.code == 0 and "several names" in ended.err
    assert secret.read_bytes() == SECRET and part.is_file()


def test_root_refuses_the_folder_of_another_user_and_says_what_allows_it(
    call: Callable[..., Ended], tmp_path: Path, run_of_other: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    handed_over(other)
    for words in (
        ("record", "--for", "50ms", "--out", other),
        ("export", run_of_other, "--format", "csv", "--out", other),
        ("export", run_of_other, "--format", "flent", "--out", other / "a.flent"),
        ("export", run_of_other, "--format", "pcapng", "--out", other / "a.pcapng"),
        ("export", "--grafana", other / "a.json"),
        ("report", run_of_other),
        ("run", tmp_path / "small.toml", "--out", other),
    ):
        (tmp_path / "small.toml").write_text(SMALL)
        refused(call(*words), "belongs to another user (uid 65534)", "--allow-foreign-folder")
        assert list(other.iterdir()) == []
    assert call("report", run_of_other, FOLLOWED).code == 0
    assert (run_of_other / "report.html").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow("a run as another user, and two reports in processes of their own")
def test_the_folder_of_who_called_sudo_is_as_roots_own(tmp_path: Path, run_of_other: Path) -> None:
    refused(knee("report", run_of_other, cwd=tmp_path, SUDO_UID="1000"), "belongs to another user")
    assert knee("report", run_of_other, cwd=tmp_path, SUDO_UID=str(OTHER)).code == 0


def test_a_new_folder_in_a_folder_of_another_user_is_roots_alone(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    handed_over(other)
    (tmp_path / "small.toml").write_text(SMALL)
    assert knee("run", tmp_path / "small.toml", "--out", other / "run", "--quiet", cwd=tmp_path).code == 0
    made = [other / "run", *(other / "run").iterdir()]
    assert {(path.stat().st_uid, path.stat().st_mode & 0o077) for path in made} == {(0, 0)}


def test_a_path_through_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "link").symlink_to(tmp_path)
    handed_over(other)
    (tmp_path / "small.toml").write_text(SMALL)
    for out in (other / "link", other / "link" / "run"):
        ended = knee("run", tmp_path / "small.toml", "--out", out, "--quiet", cwd=tmp_path)
        assert ended.code == 2, ended
    refused(ended, 'symbolic link "link" of another user')
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", [".report.html.part", ".report.html.tmp", "report.html"])
def test_a_link_where_the_report_or_its_temporary_file_is_to_be_is_not_followed(
    name: str, call: Callable[..., Ended], run_of_other: Path, secret: Path
) -> None:
    (run_of_other / name).symlink_to(secret)
    ended = call("report", run_of_other, FOLLOWED)
    assert secret.read_bytes() == SECRET
    if name == "report.html":
        refused(ended, "report.html: is a symbolic link")
    else:
        assert ended.code == 0 and (run_of_other / "report.html").is_file()


@pytest.mark.parametrize("name", [".lock", ".flows.parquet.tmp", "parts"])
def test_a_link_where_resuming_a_run_writes_is_not_followed(
    name: str, tmp_path: Path, run_of_other: Path, secret: Path
) -> None:
    about = (run_of_other / "run.json").read_text().replace('"complete"', '"interrupted"')
    (run_of_other / "run.json").write_text(about)
    (run_of_other / name).symlink_to(secret.parent if name == "parts" else secret)
    before = {path.name for path in secret.parent.iterdir()}
    knee("run", "--resume", "--out", run_of_other, FOLLOWED, "--quiet", cwd=tmp_path)
    assert secret.read_bytes() == SECRET
    assert {path.name for path in secret.parent.iterdir()} == before


def test_a_reserve_that_is_a_link_is_not_appended_to(tmp_path: Path, secret: Path) -> None:
    folder = tmp_path / "rec"
    folder.mkdir()
    for number in range(1, 4):
        (folder / f"counters-{number:06}.parquet.reserve").symlink_to(secret)
    handed_over(folder)
    knee("record", "--for", "50ms", "--out", folder, FOLLOWED, cwd=tmp_path)
    assert secret.read_bytes() == SECRET


def test_a_fifo_in_a_files_place_makes_nobody_wait(tmp_path: Path, run_of_other: Path) -> None:
    os.mkfifo(run_of_other / ".lock")
    ended = knee("run", "--resume", "--out", run_of_other, FOLLOWED, "--quiet", cwd=tmp_path)
    refused(ended, ".lock: is a FIFO")
    folder = tmp_path / "rec"
    segments_of_a_killed_writer(folder).unlink()
    os.mkfifo(folder / "sockets-000001.parquet.part")
    os.mkfifo(folder / "cpu-000001.parquet")
    for table in ("sockets", "cpu"):
        refused(knee("sql", f"from {table}", folder, cwd=tmp_path), f"{table}-000001.parquet")


def test_a_whole_segment_that_is_a_link_of_another_user_is_not_read(tmp_path: Path, small_run: Path) -> None:
    folder = tmp_path / "rec"
    folder.mkdir()
    (folder / "flows.parquet").symlink_to(small_run / "flows.parquet")
    assert knee("sql", "from flows", folder, cwd=tmp_path).code == 0
    handed_over(folder)
    refused(knee("sql", "from flows", folder, cwd=tmp_path), "symbolic link", "of another user")


def test_names_of_temporary_files_differ_each_time_and_none_is_left(tmp_path: Path) -> None:
    folder = _core.Folder(tmp_path / "out")
    names = set()
    for _ in range(10):
        name, descriptor = folder.temporary("run.json", False)
        os.close(descriptor)
        names.add(name)
    assert len(names) == 10
    folder.sweep()
    assert list((tmp_path / "out").iterdir()) == []


def test_a_device_is_not_replaced(tmp_path: Path) -> None:
    os.mknod(tmp_path / "null", 0o20666, os.makedev(1, 3))
    with pytest.raises(RunFolderError, match="is a device"):
        _core.Folder(tmp_path).temporary("null", False)


def by_nobody(journal: Path) -> None:
    os.chown(journal, OTHER, OTHER)


def by_a_group(journal: Path) -> None:
    journal.chmod(0o620)


def by_a_link(journal: Path) -> None:
    journal.symlink_to(journal.rename(journal.with_suffix(".real")))


def by_another_name(journal: Path) -> None:
    journal.with_suffix(".too").hardlink_to(journal)


@pytest.mark.parametrize(
    ("open_it", "said"),
    [
        (by_nobody, "is a file of another user"),
        (by_a_group, "is a file that other users may write"),
        (by_a_link, "is a symbolic link"),
        (by_another_name, "is a file of several names"),
    ],
)
def test_undo_obeys_no_journal_that_another_user_may_have_written(
    open_it: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    folder = tmp_path / "anybodys"
    folder.mkdir()
    folder.chmod(0o1777)
    victim = tmp_path / "victim"
    victim.write_text("victim\n")
    files = [{"path": str(victim), "texts": ["victim\n"]}]
    text = json.dumps({"format": "tcpknee-journal", "version": 1, "entries": [], "files": files})
    (folder / "journal.json").write_text(text)
    open_it(folder / "journal.json")
    refused(knee("doctor", "--undo", "--journal", folder, cwd=tmp_path), f"journal.json: {said}")
    assert victim.read_text() == "victim\n"


def within_an_empty_var_lib(program: str, *, cwd: Path) -> Ended:
    """Runs a program in a mount namespace whose /var/lib is empty."""
    begins = "import os, subprocess\nsubprocess.run(['mount', '-t', 'tmpfs', 'none', '/var/lib'], check=True)\n"
    command = ["unshare", "-m", "--propagation", "private", sys.executable, "-c", begins + program]
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


STATE_DIRECTORY = """
os.makedirs('/var/lib/private/{name}')
os.chown('/var/lib/private/{name}', 61184, 61184)
os.symlink('private/{name}', '/var/lib/{name}')
"""
"""What systemd makes for a StateDirectory= with DynamicUser=."""

USE = """
from tcpknee.calibration import own, profile
from tcpknee.doctor import journal
with journal.open_journal() as found:
    found.write()
profile.keep(own.place(), 'kernel = "x"')
assert journal.FOLDER.stat().st_uid == own.MACHINE.stat().st_uid == 0
"""
"""What `knee doctor --fix` and `knee calibrate` keep."""


def test_no_service_owns_a_folder_on_the_way_to_what_root_obeys(tmp_path: Path) -> None:
    units = [file.read_text() for file in (Path(tcpknee.__file__).parent / "packaging/systemd").glob("*.service")]
    names = [line.split("=")[1] for unit in units for line in unit.splitlines() if line.startswith("StateDirectory=")]
    assert names == ["knee-record"]
    ended = within_an_empty_var_lib(STATE_DIRECTORY.format(name=names[0]) + USE, cwd=tmp_path)
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    "prepared",
    [
        STATE_DIRECTORY.format(name="tcpknee"),
        "os.mkdir('/var/lib/tcpknee', 0o755)\nos.chown('/var/lib/tcpknee', 61184, 61184)\n",
        "os.mkdir('/var/lib/tcpknee')\nos.chmod('/var/lib/tcpknee', 0o775)\n",
        "os.chown('/var/lib', 61184, 61184)\n",
        "os.mkdir('/var/lib/real')\nos.symlink('real', '/var/lib/tcpknee')\n"
        "os.lchown('/var/lib/tcpknee', 61184, 61184)\n",
    ],
)
@pytest.mark.parametrize("allowed", ["", "import tcpknee; tcpknee.allow_foreign_folders()\n"])
def test_the_journal_is_not_kept_below_a_folder_of_another(prepared: str, allowed: str, tmp_path: Path) -> None:
    refusal = """
from tcpknee.doctor import journal
from tcpknee.errors import RunFolderError
try:
    with journal.open_journal():
        pass
except RunFolderError as error:
    print(error)
print(os.listdir('/var/lib/tcpknee') if os.path.exists('/var/lib/tcpknee') else [])
"""
    ended = within_an_empty_var_lib(prepared + allowed + refusal, cwd=tmp_path)
    said, there = ended.out.splitlines()
    assert said.startswith("/var/lib/tcpknee/doctor: ") and "--" not in said
    assert there == "[]"
