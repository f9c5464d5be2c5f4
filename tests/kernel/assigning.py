"""What tests of `knee assign` share: a cgroup and a network namespace of their own, a server in them, and the log.

The cgroup is made for each test, and its only sockets are those of a server in the namespace (served.py): no socket of
the host is touched.
"""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import probes
from building import run
from leftovers import new_namespace, noted
from tcpknee import Dataset
from tcpknee.fleet.assign import cgroup, running
from waiting import PATIENCE_SEC, until

KNEE = (sys.executable, "-m", "tcpknee")
SERVED = Path(__file__).with_name("served.py")
ARMS = ("reno=50%", "cubic=50%")

Seen = list[list[Any]]
"""The server's end of each connection: client, algorithm, cookie."""


@dataclass
class Place:
    """A cgroup without processes, and a network namespace."""

    cgroup: Path
    netns: str

    @contextmanager
    def server(self, family: str = "AF_INET", address: str = "0.0.0.0") -> Iterator[Server]:
        inside = ("nsenter", f"--net=/run/netns/{self.netns}", sys.executable, SERVED, self.cgroup, family, address)
        with subprocess.Popen(inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield Server(process, int(process.stdout.readline()))
            finally:
                process.kill()

    @contextmanager
    def assigning(self, out: Path, *words: str, code: int | None = 0) -> Iterator[subprocess.Popen[str]]:
        """`knee assign`, which has begun; `code` is that with which it ends at SIGTERM, None: the test ends it."""
        command = (*KNEE, "assign", *words, "--cgroup", str(self.cgroup), "--out", str(out), "--quiet")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                until(lambda: (out / running.ABOUT).exists() or process.poll() is not None, "it has begun")
                assert process.poll() is None, process.communicate()[1]
                yield process
                if code is not None:
                    process.send_signal(signal.SIGTERM)
                    _, said = process.communicate(timeout=PATIENCE_SEC)
                    assert process.returncode == code, said
            finally:
                process.kill()

    @contextmanager
    def recording(self, out: Path) -> Iterator[None]:
        """`knee record` of the namespace, which has begun."""
        command = (*KNEE, "record", "--out", str(out), "--every", "100ms", "--netns", self.netns, "--quiet")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                until(lambda: list(out.glob("sockets-*")), "a first sample")
                # Its first dump is over, so that what begins now is recorded from its beginning.
                time.sleep(0.5)
                yield
                process.send_signal(signal.SIGTERM)
                assert process.wait(timeout=PATIENCE_SEC) == 0
            finally:
                process.kill()


@dataclass
class Server:
    process: subprocess.Popen[str]
    port: int

    def connect(self, *connections: tuple[str, str], **sending: Any) -> Seen:
        """From each client's address to one of the server's. `sending`: what the server sends (served.py)."""
        assert self.process.stdin is not None and self.process.stdout is not None
        asked = {"connections": [[*connection, None] for connection in connections], **sending}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        found: Seen = json.loads(self.process.stdout.readline())
        return found


@contextmanager
def placed() -> Iterator[Place]:
    """Meanwhile there is such a place; nothing of it stays. Skips where this machine has no cgroup v2."""
    probes.need_cgroup2()
    probes.need_programs("ip", "nsenter", "bpftool")
    netns, name = new_namespace("a"), new_namespace("a")
    folder = cgroup.folder(None) / name
    with noted("netns", netns), noted("cgroup", name):
        folder.mkdir()
        run("ip", "netns", "add", netns)
        run("ip", "-n", netns, "link", "set", "lo", "up")
        try:
            yield Place(folder, netns)
        finally:
            run("ip", "netns", "delete", netns)
            until(lambda: removed(folder), "the cgroup is empty")
    assert not programs()


def removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError as error:
        # A process that was killed is in its cgroup for a moment still.
        assert error.errno == errno.EBUSY
        return False
    return True


def programs() -> list[dict[str, Any]]:
    """Programs of ours in the kernel."""
    found = json.loads(run("bpftool", "-j", "prog", "list"))
    return [program for program in found if program.get("name") == "knee_assign"]


def logged(out: Path) -> dict[int, dict[str, Any]]:
    rows = Dataset(out).table("assignments").arrow().to_pylist()
    by_cookie = {row["cookie"]: row for row in rows}
    assert len(by_cookie) == len(rows)
    return by_cookie


def clients(count: int) -> list[tuple[str, str]]:
    """Clients of different prefixes, all to one address of the server."""
    return [(f"127.{10 + number // 250}.{number % 250}.9", "127.0.0.1") for number in range(count)]
