"""Built kernels, in the user's cache: a folder each, with the program `linux` and what it was made of.

A folder gets its name last, so that one is whole or is not there. Nobody's program but the user's own is run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tcpknee import _core, reading, writing
from tcpknee.errors import KernelUnsupported, RunFolderError, UsageError
from tcpknee.human import suggest

SCHEMA = 1
_FACTS = "kernel.json"
_PROGRAM = "linux"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WORK = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]*)?")
VERSION = re.compile(r"\d+\.\d+")
"""The name of a release."""


@dataclass(frozen=True)
class Kernel:
    """A kernel that was built.

    `name` is what the user calls it and `release` what it calls itself. `origin` is the package or the tree, `digest`
    that of the tree's files and `config` that of its configuration. `compiler` built it on `built` (UTC).
    `is_repeatable`: its random numbers come from the scenario's seed. `algorithms`: its congestion controls. `work`
    names the folder where it was built; empty where that was before modules could be. `recipe`: the digest of what the
    build made of the source (`building.recipe`); empty where nobody noted it.
    """

    name: str
    release: str
    origin: str
    digest: str
    config: str
    compiler: str
    built: str
    is_repeatable: bool
    algorithms: tuple[str, ...]
    folder: Path = field(compare=False)
    work: str = ""
    recipe: str = ""

    @property
    def program(self) -> Path:
        """The kernel, an ordinary program of this host."""
        return self.folder / _PROGRAM

    def facts(self) -> dict[str, Any]:
        """What `kernel.json` holds, and a run's manifest of it."""
        plain = {name: value for name, value in asdict(self).items() if name != "folder"}
        return {**plain, "algorithms": list(self.algorithms)}

    @property
    def built_in(self) -> Path:
        """Where it was built: what modules of it need is there."""
        return home() / ".work" / self.work


def home() -> Path:
    """The folder of all kernels."""
    return writing.user_cache() / "kernels"


def kernels() -> Iterator[Kernel]:
    """All that are there, by name."""
    try:
        names = sorted(entry.name for entry in os.scandir(home()) if NAME.fullmatch(entry.name))
    except FileNotFoundError:
        return
    for name in sorted(names, key=_by_number):
        if (home() / name / _FACTS).is_file():
            yield _read(home() / name)


def _by_number(name: str) -> list[tuple[bool, int, str]]:
    """5.10 before 6.1, and 6.1 before 6.12."""
    parts = re.split(r"(\d+)", name)
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts if part]


def releases() -> dict[str, str]:
    """What each kernel calls itself, by its name."""
    return {kernel.name: kernel.release for kernel in kernels()}


def find(name: str) -> Kernel:
    """The kernel of that name. Raises `KernelUnsupported` where there is none, or its program may not be trusted."""
    if _is_there(name):
        found = _read(home() / name)
        check_own(found.program, found.folder, home())
        return found
    raise _absent(name, "expected the kernels", f" Build it: knee kernel add {name}")


def _is_there(name: str) -> bool:
    return bool(NAME.fullmatch(name)) and (home() / name / _FACTS).is_file()


def _absent(name: str, expected: str, next_step: str = "") -> KernelUnsupported:
    known = [kernel.name for kernel in kernels()]
    said = suggest(name, known, expected) if known else "none was built yet."
    return KernelUnsupported(f'kernel: got "{name}"; {said}{next_step}')


def _read(folder: Path) -> Kernel:
    path = folder / _FACTS
    try:
        found = reading.json_of(path, most_bytes=1 << 20)
        if found.pop("schema") != SCHEMA:
            raise ValueError("another schema")
        if not _WORK.fullmatch(found.get("work", "")):
            raise ValueError("`work` is no name of a folder")
        return Kernel(**{**found, "algorithms": tuple(found["algorithms"])}, folder=folder)
    except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
        raise RunFolderError(
            f"{path}: cannot be read ({error}); expected what `knee kernel add` wrote. Build it anew: "
            f"knee kernel add {folder.name}; or remove {folder}."
        ) from None


def check_own(*paths: Path) -> None:
    """Refuses to run what others could have put there. Raises `KernelUnsupported`."""
    for path in paths:
        found = path.lstat()
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022 or stat.S_ISLNK(found.st_mode):
            raise KernelUnsupported(
                f"{path}: belongs to another user, or others may write it; expected a kernel of your own. "
                "Remove it, and build one: knee kernel add"
            )


def new(name: str) -> Path:
    """An empty folder beside the others for a kernel of that name, which `keep` gives its name. Raises `UsageError`,
    `RunFolderError` where the folder of all belongs to somebody else."""
    if not NAME.fullmatch(name):
        raise UsageError(f'kernel: got the name "{name}"; expected letters, digits, and . _ - between them.')
    _core.Folder(home())
    _clear()
    folder = home() / f".{name}.{os.getpid()}"
    folder.mkdir(parents=True, mode=0o700)
    return folder


def _clear() -> None:
    """Takes away what processes left that were killed in `new` and `keep`."""
    for entry in list(home().iterdir()):
        left = re.fullmatch(rf"\.({NAME.pattern})(~?)\.(\d+)", entry.name)
        if left is None or (Path("/proc", left[3]).exists() and int(left[3]) != os.getpid()):
            continue
        if left[2] and not (home() / left[1]).exists():
            entry.rename(home() / left[1])
        else:
            shutil.rmtree(entry, ignore_errors=True)


def keep(folder: Path, program: Path, facts: dict[str, Any]) -> Kernel:
    """Puts a program and its facts into a folder made by `new`, in the place of what had that name."""
    name = facts["name"]
    shutil.copyfile(program, folder / _PROGRAM)
    (folder / _PROGRAM).chmod(0o700)
    (folder / _FACTS).write_text(json.dumps({"schema": SCHEMA, **facts}, indent=1) + "\n", encoding="utf-8")
    place, old = home() / name, home() / f".{name}~.{os.getpid()}"
    if place.exists():
        place.rename(old)
    folder.rename(place)
    shutil.rmtree(old, ignore_errors=True)
    return _read(place)


def remove(name: str) -> None:
    """Removes a kernel, and where it alone was built. Raises `KernelUnsupported` where there is none."""
    if not _is_there(name):
        raise _absent(name, "expected one of")
    gone = find(name)
    shutil.rmtree(gone.folder)
    if gone.work and gone.work not in (kernel.work for kernel in kernels()):
        shutil.rmtree(gone.built_in, ignore_errors=True)
