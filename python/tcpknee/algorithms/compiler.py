"""Calls the system's C compiler on an algorithm's file, and says what it has against it in the user's own lines."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from tcpknee import _core, say, writing
from tcpknee.errors import UsageError

from . import text

HEADERS = Path(__file__).parents[1] / "cc"

_SECONDS = 60
_MOST_OUTPUT_BYTES = 256 << 10
_MOST_FILE_BYTES = 64 << 20
_MOST_MEMORY_BYTES = 2 << 30
MOST_LINES = 20

_SOURCES = "s"
"""The folder of the sources in that where they are compiled: none has the name of what stands beside it."""

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
        flags = [*FLAGS, *of_kind(words), f"-I{headers}"]
        first, further = in_folder(next(iter(sources))), ("-o", "object")
        failure = compiled(path, [*words, *flags], first, further, folder, may_be_quoted=may_be_quoted)
        if failure is not None:
            raise UsageError(said(path, sources, failure, may_be_quoted, "C for the contract of cc.h"))

    return cached(sources, words, (digest, headers_digest(headers), *FLAGS), compile_in)


def cached(
    sources: Mapping[str, str], words: Sequence[str], made_of: Sequence[str], compile_in: Callable[[Path], None]
) -> Path:
    """What a compiler makes of sources, from the cache where it is there; else `compile_in` leaves it in the folder
    that it is given, under the name `object`; there they are as `in_folder` says."""
    key = repr((*made_of, *words, _identity(words[0])))
    target = writing.user_cache() / "algorithms" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.so"
    is_there = _is_own(target.parent)
    if not (is_there and _is_own(target)):
        try:
            _core.Folder(target.parent, make=True)
            if not is_there:
                target.parent.chmod(0o700)
        except OSError as error:
            raise writing.cannot_write(target, error) from None
        _is_own(target.parent)
        with writing.spill_folder() as folder:
            _put(sources, folder)
            compile_in(folder)
            try:
                made = (folder / "object").read_bytes()
            except OSError:
                raise UsageError(f"{words[0]}: left no object; expected a C compiler. Name one in CC.") from None
            with writing.replacing(target) as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(made)
        _is_own(target)
    return target


def in_folder(name: str) -> str:
    """A source as compilers are given it: no name of a file is an option to them."""
    return f"./{_SOURCES}/{name}"


def source_of(file: str) -> str:
    """The name of a source, of the file that a compiler names; of another one its path."""
    return os.path.normpath(file).removeprefix(f"{_SOURCES}/")


def compiled(
    path: str,
    words: Sequence[str],
    source: str,
    further: Sequence[str],
    folder: Path,
    *,
    may_include: Sequence[Path] = (),
    may_be_quoted: bool = True,
) -> str | None:
    """What the compiler has against a source, after `run`. Nothing is compiled that includes a file of another folder.
    Raises `UsageError`."""
    failure = run([*words, "-M", "-MF", "deps", "-x", "c", source], folder)
    if failure is not None:
        return failure
    try:
        needs = os.fsdecode((folder / "deps").read_bytes())
    except OSError:
        raise UsageError(f"{words[0]}: did not say what {path} includes; expected gcc or clang in CC.") from None
    refuse_outside(
        path, needs.partition(":")[2], [folder], [folder, HEADERS, *may_include], may_be_quoted=may_be_quoted
    )
    return run([*words, *further, "-x", "c", source], folder)


def refuse_outside(
    path: str, needs: str, at: Sequence[Path], roots: Sequence[Path], *, may_be_quoted: bool = True
) -> None:
    """Raises `UsageError` for the first file of a rule of make's that is below none of these folders. The compiler ran
    in one of `at`."""
    below = [os.path.realpath(root) for root in roots]
    for each in re.split(r"(?<!\\)\s+", needs.replace("\\\n", " ").strip()):
        name = re.sub(r"\\([ #:])", r"\1", each).replace("$$", "$")
        real = [os.path.realpath(place / name) for place in at]
        if not all(any(one.startswith(f"{root}/") for root in below) for one in real):
            what = say.printable(name) if may_be_quoted else "a file"
            raise UsageError(
                f"{path}: includes {what}, which lies outside of its folder; expected files of its folder, and headers "
                "of the package. Put it beside the algorithm."
            )


def command(path: str) -> list[str]:
    """The words that call the C compiler, its path first. Raises `UsageError`, in which `path` stands."""
    try:
        words = shlex.split(os.environ.get("CC") or "cc")
    except ValueError as error:
        raise UsageError(
            f"{path}: CC: {error}; expected a C compiler and its options, as a shell reads them."
        ) from None
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise UsageError(
            f"{path}: got no C compiler ({words[0] if words else 'CC is blank'}); expected one to compile it with. "
            "Install one (Debian, Ubuntu: apt install gcc; Fedora: dnf install gcc), or name it in CC."
        )
    return [str(Path(program).absolute()), *words[1:]]


def _identity(program: str) -> tuple[str, int, int]:
    real = os.path.realpath(program)
    about = Path(real).stat()
    return real, about.st_size, about.st_mtime_ns


@cache
def headers_digest(folder: Path, *further: Path) -> str:
    """Of the headers of the package, and of these files."""
    digest = hashlib.sha256()
    for file in sorted([*folder.glob("*.h"), *further]):
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _is_own(place: Path) -> bool:
    """Is it there, a file or a folder? Raises `UsageError` where somebody else can have written it."""
    try:
        about = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o022:
        raise UsageError(
            f"{place}: belongs to another user, or others may write it; expected a cache of your own. Remove it, or "
            "set XDG_CACHE_HOME to another folder."
        )
    return stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode)


def sanitized(path: str, sources: Mapping[str, str], headers: Path, seconds: int) -> tuple[bool | None, str]:
    """Whether an algorithm is total, as far as drawn calls of so many seconds show, and what they showed; None: no
    sanitizers are there."""
    words = command(path)
    with writing.spill_folder() as folder:
        first = next(iter(sources))
        _put(sources, folder)
        flags = [flag for flag in FLAGS if flag.startswith(("-std", "-ff", "-nostdinc", "-Werror", "-fno-d"))]
        flags += ["-O1", "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all", "-DCC_FILE"]
        flags += ["-DCC_FILE_HAS_LIBC", "-w", f"-I{headers}"]
        further = ("-o", "total", "-x", "c", str(headers / "cc_total.c"))
        if failure := compiled(path, [*words, *flags], in_folder(first), further, folder):
            return None, say.printable(failure.strip().splitlines()[-1][:200])
        said = run(["./total", str(seconds)], folder, of_compiler=False, seconds=seconds + _SECONDS) or ""
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
        with writing.replacing(folder / in_folder(name), make=True) as file:
            file.write(content.encode())


@cache
def _version(program: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return run([program, "--version"], Path(folder), of_compiler=False) or ""


def of_kind(words: Sequence[str]) -> tuple[str, ...]:
    """The flags that this compiler has its own words for."""
    return _CLANG if "clang" in _version(words[0]) else _GCC


_LIMITED = """\
ulimit -c 0
for limit in $1; do ulimit -${limit%%=*} ${limit#*=} 2>/dev/null; done
shift
exec "$@"
"""
"""A shell's: what is started has these limits, and all that it starts."""


def run(words: Sequence[str], folder: Path, *, of_compiler: bool = True, seconds: int = _SECONDS) -> str | None:
    """What a compiler said that failed; None: it did not fail. Of another program all that it said. It ends, with all
    that it started, after so many seconds."""
    # In kB of memory, blocks of 512 bytes of a file. Sanitizers reserve memory without end.
    limits = f"f={_MOST_FILE_BYTES // 512} t={seconds}" + (f" v={_MOST_MEMORY_BYTES >> 10}" if of_compiler else "")
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _LIMITED, "sh", limits, *words],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return f"cannot be started: {error}"
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"took more than {seconds} s"
        finally:
            # What it left behind of its session too.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        printed = output.read(_MOST_OUTPUT_BYTES).decode(errors="replace")
    return None if code == 0 and of_compiler else printed or f"ended with {code}"


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
        name = source_of(found["file"]) if found else ""
        if found and name in sources:
            where = path if name == next(iter(sources)) else text.beside(path, name)
            lines.append(say.printable(f"{where}:{found['line']}: {found['said']}"))
        elif found and _is_ours(name):
            others.append(say.printable(f"{path}: {found['said']} ({name}:{found['line']})"))
        elif found := _UNDEFINED.search(line):
            others.append(
                say.printable(f"{path}: calls {found['name']}, which is not there; expected functions of its own.")
            )
    if not (lines or others):
        # What stands at a line of somebody else's file is not shown.
        plain = [line for line in output.splitlines() if not re.search(r":\d+[:,]", line)]
        others.append(say.printable(f"{path}: {' '.join(plain)[:300] or 'the compiler does not name a line of it'}"))
    errors = list(dict.fromkeys(lines or others))
    shown = [line[:500] for line in errors[:MOST_LINES]]
    more = [f"and {len(errors) - len(shown)} errors more"] if len(errors) > len(shown) else []
    return "\n".join([f"{path}: does not compile; expected {expected}:", *shown, *more])


def _is_ours(name: str) -> bool:
    """Is a file that a compiler names of the package, or of the folder where it runs?"""
    return not name.startswith(("/", "..")) or name.startswith(os.path.normpath(HEADERS) + "/")
