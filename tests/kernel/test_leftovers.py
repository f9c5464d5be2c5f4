"""A run ended by kill -9 cleans up nothing; the next one must not stumble over it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import leftovers
from lab import available, registered_as, registered_maps
from leftovers import NAMESPACES, NOTES, noted, sweep
from waiting import until

NAME = "knee_reno"
# A run in the midst of a flow: registered, laid out, a server waiting.
RUN = """
import subprocess, sys, time
from lab import FLOW, laid_out, registered_as
with registered_as(sys.argv[1], sys.argv[2]), laid_out(10_000_000, 65536) as lab:
    enter = ["ip", "netns", "exec", lab.receiver]
    server = subprocess.Popen([*enter, sys.executable, FLOW, "server", "5201", "reno"], stdout=subprocess.DEVNULL)
    print(server.pid, lab.sender, lab.router, lab.receiver, flush=True)
    time.sleep(600)
"""


@contextmanager
def running(bpf_objects: Path) -> Iterator[tuple[subprocess.Popen[str], list[Path], int]]:
    """A run under way: its process, its namespaces, and the process in one of them. Killed at the end, and swept."""
    command = [sys.executable, "-c", RUN, NAME, str(bpf_objects / "reno.bpf.o")]
    process = subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said, "the run did not come up"
        server, *names = said.split()
        yield process, [NAMESPACES / name for name in names], int(server)
    finally:
        process.kill()
        process.communicate()
        sweep()


def test_what_a_killed_run_left_is_removed_when_the_next_begins(kernel: None, bpf_objects: Path) -> None:
    with running(bpf_objects) as (process, namespaces, server):
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert NAME in registered_maps()
        assert all(namespace.exists() for namespace in namespaces)

        swept = sweep()
        assert set(swept) == {NAME, *(namespace.name for namespace in namespaces)}
        assert NAME not in available()
        assert NAME not in registered_maps()
        assert not any(namespace.exists() for namespace in namespaces)
        until(lambda: not runs(server), "the process in a namespace has ended")
        with registered_as(NAME, bpf_objects / "reno.bpf.o"):
            assert NAME in available()


def test_a_living_run_is_left_alone(kernel: None, bpf_objects: Path) -> None:
    with running(bpf_objects) as (_, namespaces, _):
        assert sweep() == []
        assert NAME in available()
        assert all(namespace.exists() for namespace in namespaces)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def note(text: str) -> Path:
    """As a process that died has left it: without a lock."""
    written = leftovers.folder() / "0123456789abcdef"
    written.write_text(text)
    return written


def test_a_note_of_something_that_is_gone_is_removed(kernel: None) -> None:
    left = note("struct_ops knee_none\n")
    assert sweep() == ["knee_none"]
    assert not left.exists()


def test_a_note_without_its_end_names_nothing(kernel: None) -> None:
    left = note("netns knee-0123")
    assert sweep() == []
    assert not left.exists()


@pytest.mark.parametrize(
    "named", ["netns host", "netns ../../etc", "netns knee-01234567-a; id", "struct_ops --all", "pid 1", ""]
)
def test_what_no_test_makes_is_never_removed(kernel: None, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "remove", lambda kind, name: pytest.fail(f"{kind} {name}"))
    note(named + "\n")
    assert sweep() == []


def test_a_note_is_root_s_alone_and_locked_while_its_process_lives(kernel: None) -> None:
    with noted("struct_ops", "knee_none"):
        assert NOTES.stat().st_uid == 0 and NOTES.stat().st_mode & 0o777 == 0o700
        assert sweep() == []
    assert sweep() == []


def test_a_folder_that_another_user_made_is_not_trusted(
    kernel: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "notes"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    link = tmp_path / "link"
    link.symlink_to(NOTES)
    for place in (theirs, link):
        monkeypatch.setattr(leftovers, "NOTES", place)
        with pytest.raises(AssertionError, match="not a folder of root's"):
            sweep()
