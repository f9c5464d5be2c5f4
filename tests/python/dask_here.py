"""A scheduler and its workers on this host, as docs/cluster.md sets them up: with a key that nobody else has."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

DOC = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")


def block_of(word: str) -> str:
    """The commands of the page that have the word."""
    (found,) = (block for block in re.findall(r"```sh\n(.*?)```", DOC, re.DOTALL) if word in block)
    return found


def make_key(home: Path) -> None:
    """By the commands of the page, word for word."""
    environment = {**os.environ, "HOME": str(home)}
    subprocess.run(["sh", "-euc", block_of("openssl req")], env=environment, check=True, capture_output=True)


@contextmanager
def holding_the_key(home: Path) -> Iterator[None]:
    """This process, and those that it starts, read the configuration of that user."""
    import dask

    folder, before = str(home / ".config" / "dask"), dict(dask.config.config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DASK_CONFIG", folder)
        dask.config.refresh(paths=[folder])
        yield
    # Another may be held around this one.
    dask.config.config.clear()
    dask.config.config.update(before)


class Dask:
    """The scheduler and workers of the page, each a process of its own."""

    def __init__(self, folder: Path, *, file_bytes: int | None = None, nanny: bool = False) -> None:
        self.file = folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.has_nannies = nanny
        common = ("--host", "127.0.0.1", "--protocol", "tls", "--no-dashboard")
        self.scheduler = self._start("dask_scheduler", "--port", "0", *common)
        deadline = time.monotonic() + 600
        while not self.file.exists() or not self.file.read_text():
            assert time.monotonic() < deadline and self.scheduler.poll() is None
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]
        words = (*common, "--nthreads", "1", "--local-directory", str(folder), *(() if nanny else ("--no-nanny",)))
        self.workers = [self._start("dask_worker", *words, limit=file_bytes) for _ in range(2)]

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
        """A nanny must be asked: killed, it leaves its worker. Any other process is killed, as a worker that is asked
        first waits for a scheduler, which may be gone."""
        for process in reversed(self.processes):
            if self.has_nannies:
                process.terminate()
            else:
                process.kill()
        for process in self.processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def dask(folder: Path, *, file_bytes: int | None = None, nanny: bool = False) -> Iterator[Dask]:
    folder.mkdir()
    make_key(folder)
    with holding_the_key(folder):
        found = Dask(folder, file_bytes=file_bytes, nanny=nanny)
        try:
            yield found
        finally:
            found.end()
