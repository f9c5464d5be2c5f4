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
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from tcpknee import say, writing
from tcpknee.errors import UsageError

from . import text

_SECONDS = 60
_MOST_OUTPUT_BYTES = 256 << 10
MOST_LINES = 20

FLAGS = (
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

DID = {
    "SIGFPE": "divides by zero",
    "SIGILL": "does what C leaves undefined (SIGILL)",
    "SIGTRAP": "does what C leaves undefined (SIGTRAP)",
    "SIGSEGV": "uses memory that is not its own (SIGSEGV)",
    "SIGBUS": "uses memory that is not its own (SIGBUS)",
}
"""What an algorithm did that was compiled, by the signal that it got."""

_GCC = ("-ftrack-macro-expansion=0", "-fno-diagnostics-show-caret", "-fmax-errors=20")
_CLANG = ("-fno-caret-diagnostics", "-ferror-limit=20", "-Wno-unused-command-line-argument")

ERROR = re.compile(r"(?P<file>[^\n:]+):(?P<line>\d+)(?::\d+)?: (?:fatal )?error: (?P<said>.*)")
_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:) [`']?(?P<name>\w+)")


def shared_object(path: str, sources: Mapping[str, str], digest: str, headers: Path, *, may_be_quoted: bool) -> Path:
    """The shared object of sources, of which the first is compiled; from the cache where it is there."""
    words = command(path)

    def compile_in(folder: Path) -> None:
        flags = [*FLAGS, *of_kind(words), f"-I{headers}", "-o", "object", next(iter(sources))]
        failure = run([*words, *flags], folder)
        if failure is not None:
            raise UsageError(said(path, sources, failure, may_be_quoted, "C for the contract of cc.h"))

    return cached(sources, words, (digest, headers_digest(headers), *FLAGS), compile_in)


def cached(
    sources: Mapping[str, str], words: Sequence[str], made_of: Sequence[str], compile_in: Callable[[Path], None]
) -> Path:
    """What a compiler makes of sources, from the cache where it is there; else `compile_in` leaves it in the folder
    that it is given, where they are, under the name `object`."""
    key = repr((*made_of, *words, _identity(words[0])))
    target = writing.user_cache() / "algorithms" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.so"
    if not _is_own(target):
        with writing.spill_folder() as folder:
            _put(sources, folder)
            compile_in(folder)
            with writing.replacing(target, make=True) as file:
                file.write((folder / "object").read_bytes())
    return target


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
def headers_digest(folder: Path) -> str:
    """Of the headers of the package."""
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


def sanitized(path: str, sources: Mapping[str, str], headers: Path, seconds: int) -> tuple[bool | None, str]:
    """Whether an algorithm is total, as far as drawn calls of so many seconds show, and what they showed; None: no
    sanitizers are there."""
    words = command(path)
    with writing.spill_folder() as folder:
        first = next(iter(sources))
        _put(sources, folder)
        flags = [flag for flag in FLAGS if flag.startswith(("-std", "-ff", "-nostdinc", "-Werror", "-fno-d"))]
        flags += ["-O1", "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all", "-DCC_FILE"]
        flags += ["-DCC_FILE_HAS_LIBC", "-w", f"-I{headers}", "-o", "total", first, str(headers / "cc_total.c")]
        if failure := run([*words, *flags], folder):
            return None, say.printable(failure.strip().splitlines()[-1][:200])
        said = run(["./total", str(seconds)], folder, always=True) or ""
    if found := re.search(r"^calls (\d+)$", said, re.MULTILINE):
        return True, f"{int(found[1]):,} drawn calls"
    if found := re.search(r"^(endless|window) (\w+)$", said, re.MULTILINE):
        return False, f"{found[2]} {'does not end' if found[1] == 'endless' else 'leaves a window of 0 segments'}"
    if found := re.search(r"([^\n/:]+):(\d+):\d+: runtime error: ([^\n]*)", said):
        return False, say.printable(f"{text.beside(path, found[1])}:{found[2]}: {found[3]}")
    place = re.search(rf"{re.escape(first)}:(\d+)", said)
    what = re.search(r"AddressSanitizer:? ([\w-]+)", said)
    where = f"{path}:{place[1]}: " if place else ""
    return False, say.printable(f"{where}{what[1] if what else said[-200:].strip() or 'it ended'}")


def _put(sources: Mapping[str, str], folder: Path) -> None:
    for name, content in sources.items():
        with writing.replacing(folder / name, make=True) as file:
            file.write(content.encode())


@cache
def _version(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=20).stdout


def of_kind(words: Sequence[str]) -> tuple[str, ...]:
    """The flags that this compiler has its own words for."""
    return _CLANG if "clang" in _version(words[0]) else _GCC


def run(words: Sequence[str], folder: Path, *, always: bool = False) -> str | None:
    """What a program said that failed, as a compiler; None: it did not fail, unless that is `always` wanted."""
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
        printed = output.read(_MOST_OUTPUT_BYTES).decode(errors="replace")
    return None if done.returncode == 0 and not always else printed or f"ended with {done.returncode}"


def said(path: str, sources: Mapping[str, str], output: str, may_be_quoted: bool, expected: str) -> str:
    """What is wrong with the user's lines, one a line."""
    if not may_be_quoted:
        return (
            f"{path}: does not compile, and what the compiler says is not shown here, as the file lies outside of the "
            "scenario's folder. Compile it from there."
        )
    lines: list[str] = []
    others: list[str] = []
    for line in output.splitlines():
        found = ERROR.match(line)
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
    errors = list(dict.fromkeys(lines or others or [say.printable(f"{path}: {output[:300]}")]))
    shown = [line[:500] for line in errors[:MOST_LINES]]
    more = [f"and {len(errors) - len(shown)} errors more"] if len(errors) > len(shown) else []
    return "\n".join([f"{path}: does not compile; expected {expected}:", *shown, *more])
