"""The kernel engine as the front sees it: a process per repetition, which makes a lab, runs the cell and ends.

The process is told what to run on its standard input and answers in lines of JSON on its standard output (see
`labworker`); tables come through a file. However this process ends, the kernel ends the lab with it.
"""

from __future__ import annotations

import json
import math
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from tcpknee import children, errors
from tcpknee.algorithms import naming
from tcpknee.errors import Cancelled, EngineError, TcpkneeError

from . import folder, host_settings, manifest
from .job import Job, algorithms
from .measuring import Measuring

_POLL_SEC = 0.1
"""How often a waiting thread looks whether the run was cancelled."""

_GRACE_SEC = 2.0
"""What a lab gets between SIGTERM and SIGKILL."""

_LINES_SHOWN = 5
"""Lines of a broken worker's last words that stand in the error."""

WORKER = children.command("tcpknee.runs.labworker")
"""The command of a worker."""


class Kernel:
    """Runs repetitions of a scenario in labs. `names`: what the kernel calls each algorithm of the scenario;
    `host_settings`: what was set for the whole machine."""

    def __init__(self, job: Job, names: Mapping[str, str], host_settings: Mapping[str, Any] | None = None) -> None:
        self.job, self.names = job, dict(names)
        self.host_settings = dict(host_settings or {})
        self.cells = job.scenario.cells

    def request(self, index: int) -> dict[str, Any]:
        """The part of a worker's request that the engine decides, for a cell."""
        return {"algorithms": self.names, "kernels": {}, "host_settings": self.host_settings}

    def command(self, index: int) -> tuple[str, ...]:
        """The command of the worker of a cell."""
        return WORKER

    def run_cell(
        self, index: int, rep: int, *, cancel: Any = None, progress: Callable[[int], object] | None = None
    ) -> dict[str, pa.Table]:
        """The tables of one repetition. Raises `EngineError`, `KernelUnsupported`, `Cancelled`."""
        request = {
            "scenario": self.job.text,
            "file": self.job.file,
            "files": self.job.scenario.files,
            "algorithm_files": [one.request() for one in naming.used_by(self.job.scenario)],
            "cell": index,
            "rep": rep,
            "seed": manifest.seed_of({"seed": self.job.scenario.seed}, self.cells[index]),
            "capture_bytes": self.job.capture_bytes,
            "parent": os.getpid(),
            **self.request(index),
        }
        with ExitStack() as stack:
            measuring = stack.enter_context(closing(Measuring(self.job.measure, index, rep)))
            # Files without a name: nothing is left of them, however this process ends.
            part = stack.enter_context(tempfile.TemporaryFile())
            stderr = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace"))
            output = self.job.output or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tcpknee-")))
            request |= {"part": part.fileno(), "output": str(output.absolute())}
            if self.job.user is not None:
                request |= {"run_as": stack.enter_context(self.job.user.place()), "user": self.job.user.note}
            self._converse(request, stderr, cancel, progress, measuring)
            with pa.OSFile(f"/proc/self/fd/{part.fileno()}", "rb") as source:
                return measuring.added(folder.read_streams(source))

    def _converse(
        self,
        request: Mapping[str, Any],
        stderr: IO[str],
        cancel: Any,
        progress: Callable[[int], object] | None,
        measuring: Measuring,
    ) -> None:
        """Starts a worker and hears it out; returns when it has done what was asked."""
        where = f"{request['file']}: cell {request['cell']}, repetition {request['rep']}"
        # A session of its own: Ctrl-C in a terminal reaches this process only, which then ends its labs in order.
        process = subprocess.Popen(
            self.command(request["cell"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            pass_fds=(request["part"],),
            env=children.environment(),
            start_new_session=True,
        )
        assert process.stdin is not None and process.stdout is not None
        refused: TcpkneeError | None = None
        done = False
        try:
            _send(process.stdin, request)
            for line in lines(process.stdout, cancel):
                said = _understood(line)
                measuring.hear(said)
                if "t_ns" in said and progress is not None:
                    progress(said["t_ns"])
                elif "error" in said:
                    refused = told_error(said["error"], f"{where}: {said['message']}")
                elif "done" in said:
                    done = True
            code = process.wait()
        finally:
            _end(process)
        if refused is not None:
            raise refused
        if code != 0 or not done:
            raise EngineError(f"{where}: {_death(code)}{_last_words(stderr)}")


@contextmanager
def engine(job: Job) -> Iterator[Kernel]:
    """The engine for a job; algorithms that the kernel lacks are loaded until the end, and settings of the whole
    machine are as the scenario has them.

    Raises `KernelUnsupported` or `EngineError` where that cannot be.
    """
    try:
        wanted = job.scenario.check_lab()
    except EngineError as error:
        raise type(error)(f"{job.file}: {error}") from None
    with (
        host_settings.held(wanted, job.file, children.environment(), allowed=job.allow_host_settings) as settings,
        algorithms(job.scenario, job.file, bpf=job.bpf) as names,
    ):
        yield Kernel(job, names, host_settings=settings)


def _send(pipe: IO[bytes], request: Mapping[str, Any]) -> None:
    try:
        with pipe:
            pipe.write(json.dumps(request).encode())
    except BrokenPipeError:
        pass  # It died before it listened; how, its end will tell.


def lines(pipe: IO[bytes], cancel: Any = None, patience_sec: float = math.inf) -> Iterator[bytes]:
    """Lines as they come, until the last writer has closed the pipe. Raises `Cancelled`, and `TimeoutError` when
    nothing came for so long."""
    rest, heard = b"", time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if cancel is not None and cancel.cancelled:
                raise Cancelled("the repetition was cancelled before its end")
            if not selector.select(_POLL_SEC):
                if time.monotonic() - heard > patience_sec:
                    raise TimeoutError
                continue
            heard = time.monotonic()
            read = os.read(pipe.fileno(), 1 << 16)
            if not read:
                return
            *whole, rest = (rest + read).split(b"\n")
            yield from whole


def _understood(line: bytes) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise EngineError(f"the lab said {line[:200]!r}, which is no line of its protocol; this is a defect.")
    return said


def told_error(name: str, message: str) -> TcpkneeError:
    """The error that a worker told by its class."""
    known = getattr(errors, name, None)
    if isinstance(known, type) and issubclass(known, TcpkneeError):
        return known(message)
    return EngineError(message)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leaves no process behind; one that still runs is asked first."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_GRACE_SEC)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _death(code: int) -> str:
    if code < 0:
        return f"the lab was ended by {signal.Signals(-code).name}; nothing of this repetition is kept."
    return f"the lab ended with exit code {code} before it was done."


def _last_words(stderr: IO[str]) -> str:
    stderr.seek(0)
    lines = [line.strip() for line in stderr.read().splitlines() if line.strip()]
    return f" It last said: {' / '.join(lines[-_LINES_SHOWN:])}" if lines else ""
