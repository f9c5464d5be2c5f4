"""Plays the same acknowledgements to two algorithms, and says where they first part: `knee against`.

The program is that of `cc/against`, compiled here; both algorithms are shared objects of `building`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

from tcpknee import writing
from tcpknee.algorithms import building, compiler, naming, ours
from tcpknee.errors import UsageError

_SOURCES = ("path.c", "sender.c", "world.c", "sides.c", "own_cwr.c", "scenarios.c", "main.c")


def play(first: str, second: str, words: Sequence[str], tell: Callable[[str], object]) -> int:
    """Tells each line of what the program prints; its exit code: 0 all was equal, 1 not, 2 it could not play. `first`
    and `second` are paths, or names of ours; `words` are the program's. Raises `UsageError`."""
    objects = [str(building.build(_file(name)).so_path) for name in (first, second)]
    command = compiler.command("knee against")
    sources = [str(building.HEADERS / "against" / name) for name in _SOURCES]
    with writing.spill_folder() as folder:
        flags = ["-O2", "-std=gnu11", f"-I{building.HEADERS}", "-o", "program", *sources, "-ldl"]
        failure = compiler.run([*command, *flags], folder)
        if failure is not None:
            raise UsageError(f"knee against: its program does not compile: {failure[:300]}")
        with subprocess.Popen([folder / "program", *words, *objects], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                tell(line.rstrip("\n"))
        return process.returncode if process.returncode in (0, 1) else 2


def _file(name: str) -> str:
    if naming.is_path(name):
        return name
    file = building.HEADERS / f"{ours(name)}.c"
    if not name.isidentifier() or not file.is_file():
        raise UsageError(f'knee against: got "{name}"; expected an algorithm of `knee list algorithms`, or a path.')
    return str(file)
