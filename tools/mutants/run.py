"""Runs tests against one mutant, and says who killed it."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

KILLED, SURVIVED, SAME, UNBUILT = "killed", "survived", "same code", "does not build"

# A mutant that takes so many times as long as no mutant, of the processor, hangs.
HANGS_AT_FACTOR = 3
GRACE_SECONDS = 5
# A test that takes longer without a mutant, by the clock, is not one of the quick ones.
QUICK_SECONDS = 15.0
# By the clock, for one that waits for ever.
PATIENCE_SECONDS = 900.0
TOO_LONG = "takes too long"
# Tests quicker than this run in one process, slower ones each in their own, so that the quickest of all come first.
TOGETHER_SECONDS = 0.3


@dataclass(frozen=True)
class Result:
    """What became of a mutant, and by which test."""

    outcome: str
    by: str = ""


@dataclass
class Program:
    """A test program, and how long each of its tests takes."""

    package: str
    target: str
    path: Path
    seconds: dict[str, float] = field(default_factory=dict)

    def quick(self) -> list[str]:
        """The tests that mutants are tried on."""
        return [test for test, seconds in self.seconds.items() if seconds <= QUICK_SECONDS]


def first_failure(
    command: Sequence[str], environment: Mapping[str, str], cwd: Path, limit_seconds: int, sign: str
) -> str | None:
    """The first line with `sign` in it, at which the command is ended; None if it succeeds.

    The limit is of the processor's time: a busy machine kills no mutant.
    """
    process = subprocess.Popen(
        command, cwd=cwd, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (limit_seconds, limit_seconds + 1))
    deadline = time.monotonic() + PATIENCE_SECONDS
    said = b""
    try:
        while True:
            ended = process.poll() is not None
            said += process.stdout.read() or b""
            for line in said.decode(errors="replace").splitlines():
                if sign in line:
                    return line.strip()
            if ended:
                late = process.returncode in {-signal.SIGXCPU, -signal.SIGKILL}
                return None if process.returncode == 0 else TOO_LONG if late else f"exit status {process.returncode}"
            if time.monotonic() > deadline:
                return TOO_LONG
            said = said[said.rfind(b"\n") + 1 :]
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def judge(programs: Iterable[tuple[Program, Iterable[str]]], environment: Mapping[str, str], cwd: Path) -> Result:
    """Runs the tests named of each program, the quickest first, until one fails."""
    batches: list[tuple[float, Program, list[str]]] = []
    for program, tests in programs:
        quick = [test for test in tests if program.seconds[test] <= TOGETHER_SECONDS]
        slow = [test for test in tests if program.seconds[test] > TOGETHER_SECONDS]
        for batch in [quick] * bool(quick) + [[test] for test in slow]:
            batches.append((sum(program.seconds[test] for test in batch), program, batch))
    for seconds, program, batch in sorted(batches, key=lambda batch: batch[0]):
        command = [str(program.path), "--test-threads=1", "--exact", *batch]
        limit = math.ceil(HANGS_AT_FACTOR * seconds) + GRACE_SECONDS
        failed = first_failure(command, environment, cwd / "crates" / program.package, limit, "... FAILED")
        if failed is not None:
            test = failed.removeprefix("test ").removesuffix(" ... FAILED")
            return Result(KILLED, f"{program.package}/{program.target}: {test}")
    return Result(SURVIVED)
