"""A run ended by kill -9 cleans up nothing; the next one must not stumble over it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab import available, registered_as, registered_maps
from leftovers import NAMESPACES, NOTES, started, sweep

pytestmark = pytest.mark.xdist_group("registry")

NAME = "knee_reno"
# A run in the midst of a flow: registered, laid out, a server waiting.
RUN = """
import subprocess, sys, time
from lab import FLOW, laid_out, registered_as
with registered_as(sys.argv[1], sys.argv[2]), laid_out(10_000_000, 65536) as lab:
    enter = ["ip", "netns", "exec", lab.receiver]
    server = subprocess.Popen([*enter, sys.executable, FLOW, "server", "5201", "reno"], stdout=subprocess.DEVNULL)
    print(server.pid, flush=True)
    time.sleep(600)
"""


@contextmanager
def running(bpf_objects: Path) -> Iterator[tuple[subprocess.Popen[str], list[Path], int]]:
    """A run under way: its process, its namespaces, and the process in one of them. Killed at the end, and swept."""
    command = [sys.executable, "-c", RUN, NAME, str(bpf_objects / "reno.bpf.o")]
    process = subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        server = process.stdout.readline()
        assert server, "the run did not come up"
        yield process, [NAMESPACES / f"knee-{process.pid}-{role}" for role in "arb"], int(server)
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
        deadline = time.monotonic() + 5
        while started(server) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert started(server) is None, "the process in a namespace still runs"
        with registered_as(NAME, bpf_objects / "reno.bpf.o"):
            assert NAME in available()


def test_a_living_run_is_left_alone(kernel: None, bpf_objects: Path) -> None:
    with running(bpf_objects) as (_, namespaces, _):
        assert sweep() == []
        assert NAME in available()
        assert all(namespace.exists() for namespace in namespaces)


def test_a_note_of_a_process_whose_pid_is_used_again_is_swept(kernel: None) -> None:
    """The name is of nothing registered: only the note is to go."""
    NOTES.mkdir(exist_ok=True)
    note = NOTES / "knee_none"
    note.write_text(f"{os.getpid()} 1\n")
    assert sweep() == ["knee_none"]
    assert not note.exists()
