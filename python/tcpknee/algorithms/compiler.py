"""Calls the system's C compiler on an algorithm's file, and says what it has against it in the user's own lines."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from tcpknee import say, writing
from tcpknee.errors import UsageError

from . import text

_SECONDS = 60
_MOST_OUTPUT_BYTES = 256 << 10
_MOST_LINES = 20

_FLAGS = (
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-shared",
    "-ffreestanding",
    "-nostdinc",
    "-nodefaultlibs",
    "-nostartfiles",
    "-fvisibility=hidden",
    "-fno-strict-aliasing",
    "-fno-diagnostics-color",
    "-Werror=implicit-function-declaration",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
    "-Wl,-z,defs",
    "-DCC_FILE",
)
_GCC = ("-ftrack-macro-expansion=0", "-fno-diagnostics-show-caret", "-fmax-errors=20")
_CLANG = ("-fno-caret-diagnostics", "-ferror-limit=20", "-Wno-unused-command-line-argument")

_ERROR = re.compile(r"(?P<file>[^\n:]+):(?P<line>\d+)(?::\d+)?: (?:fatal )?error: (?P<said>.*)")
_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:) [`']?(?P<name>\w+)")


def shared_object(path: str, sources: Mapping[str, str], digest: str, headers: Path, *, may_be_quoted: bool) -> Path:
    """The shared object of sources, of which the first is compiled; from the cache where it is there."""
    words = command(path)
    made_of = (digest, _headers(headers), *words, _identity(words[0]), *_FLAGS)
    name = f"{hashlib.sha256(repr(made_of).encode()).hexdigest()[:32]}.so"
    folder = writing.user_cache() / "algorithms"
    if not _is_own(folder / name):
        _compile(path, sources, words, headers, folder / name, may_be_quoted)
    return folder / name


def command(path: str) -> list[str]:
    """The words that call the C compiler, its path first. Raises `UsageError`, in which `path` stands."""
    words = shlex.split(os.environ.get("CC") or "cc")
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise UsageError(
            f"{path}: got no C compiler ({words[0] if words else 'CC is blank'}); expected one to compile it with. "
            "Install one (Debian, Ubuntu: apt install gcc; Fedora: dnf install gcc), or name it in CC."
        )
    return [program, *words[1:]]


def _identity(program: str) -> tuple[str, int, int]:
    real = os.path.realpath(program)
    about = Path(real).stat()
    return real, about.st_size, about.st_mtime_ns


@cache
def _headers(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.h")):
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _is_own(file: Path) -> bool:
    """Is it there, and can nobody else have written it?"""
    try:
        found = [place.lstat() for place in (file, file.parent)]
    except FileNotFoundError:
        return False
    if any(about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o022 for about in found):
        raise UsageError(
            f"{file}: belongs to another user, or others may write it; expected a cache of your own. Remove "
            f"{file.parent}, or set XDG_CACHE_HOME to another folder."
        )
    return stat.S_ISREG(found[0].st_mode)


def _compile(
    path: str, sources: Mapping[str, str], words: Sequence[str], headers: Path, target: Path, may_be_quoted: bool
) -> None:
    with writing.spill_folder() as folder:
        for name, content in sources.items():
            with writing.replacing(folder / name, make=True) as file:
                file.write(content.encode())
        first = next(iter(sources))
        of_kind = _CLANG if _is_clang(words) else _GCC
        flags = [*_FLAGS, *of_kind, f"-I{headers}", "-o", "object", first]
        failure = run([*words, *flags], folder)
        if failure is not None:
            raise UsageError(_said(path, sources, failure, may_be_quoted))
        with writing.replacing(target, make=True) as file:
            file.write((folder / "object").read_bytes())


@cache
def _version(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=20).stdout


def _is_clang(words: Sequence[str]) -> bool:
    return "clang" in _version(words[0])


def run(words: Sequence[str], folder: Path) -> str | None:
    """What a compiler said that failed; None: it did not."""
    with tempfile.TemporaryFile() as output:
        try:
            done = subprocess.run(
                words,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "LC_ALL": "C"},
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"took more than {_SECONDS} s"
        output.seek(0)
        said = output.read(_MOST_OUTPUT_BYTES).decode(errors="replace")
    return None if done.returncode == 0 else said or f"ended with {done.returncode}"


def _said(path: str, sources: Mapping[str, str], output: str, may_be_quoted: bool) -> str:
    """What is wrong with the user's lines, one a line."""
    if not may_be_quoted:
        return (
            f"{path}: does not compile, and what the compiler says is not shown here, as the file lies outside of the "
            "scenario's folder. Compile it from there."
        )
    lines: list[str] = []
    others: list[str] = []
    for line in output.splitlines():
        found = _ERROR.match(line)
        name = os.path.normpath(found["file"]) if found else ""
        if found and name in sources:
            where = path if name == next(iter(sources)) else text.beside(path, name)
            lines.append(say.printable(f"{where}:{found['line']}: {found['said']}"))
        elif found:
            others.append(say.printable(f"{path}: {found['said']} ({Path(found['file']).name}:{found['line']})"))
        elif found := _UNDEFINED.search(line):
            others.append(
                say.printable(f"{path}: calls {found['name']}, which is not there; expected functions of its own.")
            )
    said = list(dict.fromkeys(lines or others or [say.printable(f"{path}: {output[:300]}")]))
    shown = [line[:500] for line in said[:_MOST_LINES]]
    more = [f"and {len(said) - len(shown)} errors more"] if len(said) > len(shown) else []
    return "\n".join([f"{path}: does not compile; expected C for the contract of cc.h:", *shown, *more])
