"""Plays the same acknowledgements to two algorithms, and says where they first part: `knee against`.

The program is that of `cc/against`, compiled here; both algorithms are shared objects of `building`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import IO

from tcpknee import say, writing
from tcpknee.algorithms import building, compiler, naming, ours, prototype
from tcpknee.errors import UsageError

_SOURCES = ("path.c", "sender.c", "world.c", "sides.c", "own_cwr.c", "scenarios.c", "failed.c", "main.c")

# The last words of the program (failed.c).
_FAILED = re.compile(r"^failed (?P<side>[01]) (?P<op>\w+) (?P<seed>\d+) (?P<scenario>.*)\n", re.MULTILINE)
_ERROR = re.compile(r"^knee against: .*", re.MULTILINE | re.DOTALL)
_MOST_WORDS = 20_000


def play(first: str, second: str, words: Sequence[str], tell: Callable[[str], object]) -> int:
    """Tells each line of what the program prints; its exit code: 0 all was equal, 1 not. `first` and `second` are
    paths, or names of ours; `words` are the program's. Raises `UsageError`, also where an algorithm fails."""
    both = [building.build(_file(name)) for name in (first, second)]
    objects = [str(built.so_path) for built in both]
    command = compiler.command("knee against")
    sources = [str(building.HEADERS / "against" / name) for name in _SOURCES]
    with ExitStack() as stack:
        folder = stack.enter_context(writing.spill_folder())
        stderr, told = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        flags = ["-O2", "-std=gnu11", f"-I{building.HEADERS}", "-o", "program", *sources, "-ldl"]
        failure = compiler.run([*command, *flags], folder)
        if failure is not None:
            raise UsageError(f"knee against: its program does not compile: {failure[:300]}")
        ends: list[int] = []
        for built in both:
            if built.kind == "prototype":
                asked = prototype.serve(built.path, next(iter(built.sources.values())), built.digest, printed=told)
                stack.callback(prototype.end, asked)
                ends += prototype.ends(asked)
        with subprocess.Popen(
            [folder / "program", *words, *objects], stdout=subprocess.PIPE, stderr=stderr, text=True, pass_fds=ends
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                tell(line.rstrip("\n"))
        stderr.seek(0)
        printed = stderr.read(_MOST_WORDS).decode(errors="replace")
        of_prototypes = _of_prototypes(told)
    code = process.returncode
    found = _FAILED.search(printed) if code < 0 else _ERROR.search(printed)
    # What prototypes print, and sources of the kernel.
    for line in (of_prototypes + printed[: found.start() if found else None]).splitlines():
        if line and not line.startswith(prototype.FAILED):
            say.warn(say.printable(line))
    if code in (0, 1):
        return code
    if code > 0 and found:
        raise UsageError(found[0].rstrip())
    raise UsageError(_failure((first, second), code, found, of_prototypes))


def _of_prototypes(told: IO[bytes]) -> str:
    """What they printed: its begin, and its end, where it is said what went wrong."""
    size = told.seek(0, os.SEEK_END)
    told.seek(0)
    begin = told.read(_MOST_WORDS)
    told.seek(max(size - _MOST_WORDS, len(begin)))
    return b"\n".join(filter(None, (begin, told.read()))).decode(errors="replace")


def _failure(algorithms: tuple[str, str], code: int, found: re.Match[str] | None, of_prototypes: str) -> str:
    """What ended the program by a signal, or without a word."""
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    if found is None:
        return (
            f"knee against: its program was ended ({name}) while neither {algorithms[0]} nor {algorithms[1]} was "
            "called; expected it to end by itself. Look for what ends processes here (`dmesg`), and run it again."
        )
    algorithm = algorithms[int(found["side"])]
    if prototype.is_one(algorithm):
        did, check = prototype.did(of_prototypes), ""
    else:
        did = "does not end" if name == "SIGPROF" else compiler.DID.get(name, f"is ended by {name}")
        check = f" `knee check {algorithm}` names the line." if naming.is_path(algorithm) else ""
    return (
        f'knee against: {algorithm} {did} in {found["op"]}, in the class "{found["scenario"]}", seed {found["seed"]}; '
        f"expected an algorithm that bears any call.{check}"
    )


def _file(name: str) -> str:
    if naming.is_path(name):
        return name
    file = building.HEADERS / f"{ours(name)}.c"
    if not name.isidentifier() or not file.is_file():
        raise UsageError(f'knee against: got "{name}"; expected an algorithm of `knee list algorithms`, or a path.')
    return str(file)
