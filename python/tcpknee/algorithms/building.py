"""Algorithms of users' own files: what stands in a scenario as `algorithm = "./mine.c"`.

    built = build("./mine.c")

The file is compiled by the system's C compiler against the headers of the package, into a shared object that needs no
library, and kept in the user's cache by the digest of all that it was made of. `kind` says what it is written for:
"contract", that of `cc/cc.h`, "kernel", Linux as its own congestion controls are, or "prototype", a class in Python. A
shared object of whatever kind exports `cc_file_algorithm` and `cc_file_abi` (`cc/cc_file.h`).

Whoever compiles a file runs it. So root compiles none that somebody else owns or may write.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tcpknee import _core, human, reading, say
from tcpknee.errors import UsageError
from tcpknee.reading import ReadFile

from . import compiler, kernel_source, prototype, text

MOST_BYTES = 1 << 20
"""Of a file with all that it includes. The longest known one has 0.1 MiB."""

_MOST_FILES = 64

HEADERS = compiler.HEADERS


@dataclass(frozen=True)
class Built:
    """An algorithm of a file, compiled.

    `state_bytes` is what it keeps of a connection; of a source of the kernel, what it asks of the kernel for that.

    `path` is as the user wrote it, and `name` what the algorithm calls itself. `sources` holds the text of the file and
    of those of its folder that it includes, by their names there, itself first; `digest` is theirs. `may_be_quoted`:
    errors may.
    """

    path: str
    name: str
    kind: str
    digest: str
    sources: Mapping[str, str]
    so_path: Path
    state_bytes: int
    may_be_quoted: bool = True


def build(
    path: str, *, read: ReadFile = reading.program, at: str | None = None, in_guests_alone: bool = False
) -> Built:
    """The algorithm of a file, from the cache where it is there. `at`: where the file is, if not at `path`.
    `in_guests_alone`: one of the kernel may use what the simulator does not have. Raises `UsageError`, whose text has
    the compiler's words on the user's own lines."""
    sources, may_be_quoted = gather(path, at or path, read)
    return of_sources(path, sources, may_be_quoted=may_be_quoted, in_guests_alone=in_guests_alone)


def of_sources(
    path: str, sources: Mapping[str, str], *, may_be_quoted: bool = True, in_guests_alone: bool = False
) -> Built:
    """The same of texts that are known."""
    for name in sources:
        text.refuse_name(path, name, may_be_quoted)
    kind = "prototype" if prototype.is_one(path) else _kind(path, sources)
    digest = _digest(f"{name}\0{content}" for name, content in sources.items())
    in_c = sources
    if kind == "prototype":
        in_c = {"prototype.c": prototype.shim(path, next(iter(sources.values())), digest)}
    else:
        text.refuse_assembly(path, in_c, may_be_quoted)
    if kind == "contract":
        text.refuse_floats(path, sources, may_be_quoted)
    compile_it = kernel_source.shared_object if kind == "kernel" else compiler.shared_object
    try:
        so_path = compile_it(path, in_c, digest, HEADERS, may_be_quoted=may_be_quoted)
    except UsageError:
        # The guest's kernel says what is wrong with it.
        other = kernel_source.stand_in(sources) if kind == "kernel" and in_guests_alone else None
        if other is None:
            raise
        own = _digest(["stand-in", digest])
        so_path = compile_it(path, {"stand_in.c": other}, own, HEADERS, may_be_quoted=may_be_quoted)
    try:
        about = _core.load_algorithm(so_path, digest)
    except UsageError as error:
        if kind == "kernel":
            raise kernel_source.is_none(error, path) from None
        raise UsageError(f"{path}: {error}. `knee new algorithm NAME` writes an outline.") from None
    if (about["private_bytes"] or 0) > kernel_source.LINUX_STATE_BYTES:
        say.warn(
            f"Note: {path} keeps more of a connection than the {kernel_source.LINUX_STATE_BYTES} bytes that Linux "
            "gives (ICSK_CA_PRIV_SIZE): stock kernels cannot have it."
        )
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,31}", about["name"]):
        got = f'"{say.printable(about["name"])}"' if may_be_quoted else "another one"
        raise UsageError(f"{path}: CC_ALGORITHM: the name: got {got}; expected 32 letters, digits and _ at most.")
    state_bytes = about["private_bytes"] or about["state_bytes"]
    return Built(path, about["name"], kind, digest, dict(sources), so_path, state_bytes, may_be_quoted)


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}\0{part}".encode())
    return digest.hexdigest()


def _kind(path: str, sources: Mapping[str, str]) -> str:
    bare = [text.without_comments(content) for content in sources.values()]
    if not any(re.search(r"\bCC_ALGORITHM\s*\(", content) for content in bare):
        if kernel_source.is_one("\n".join(bare)):
            return "kernel"
        headers = {name for content in sources.values() for name in text.includes(content)}
        if not any("CC_ALGORITHM(" in _header(name) for name in headers):
            raise UsageError(
                f"{path}: got no CC_ALGORITHM(…); expected it at the file's end: it says the algorithm's name, "
                "parameters and ops. `knee new algorithm NAME` writes an outline."
            )
    return "contract"


def _header(name: str) -> str:
    """The text of a header of the package; empty where there is none of that name, and for those that define the
    contract itself."""
    is_further = _is_ours(name) and not name.startswith("cc_")
    return (HEADERS / name).read_text(encoding="utf-8") if is_further else ""


def _is_ours(name: str) -> bool:
    return "/" not in name and "\0" not in name and (HEADERS / name).is_file()


def _is_of_contract(name: str) -> bool:
    """What tcpknee and an algorithm must have alike is never of the algorithm's folder."""
    return _is_ours(name) and (name == "cc.h" or name.startswith("cc_"))


def gather(path: str, at: str, read: ReadFile) -> tuple[dict[str, str], bool]:
    """The file and what it includes of its own folder, and whether errors may quote it."""
    folder, name = at[: at.rfind("/") + 1], at[at.rfind("/") + 1 :]
    sources: dict[str, str] = {}
    quotable, size, waiting = True, 0, [name]
    if "\0" in at:
        raise UsageError(f"{say.printable(path)}: got a NUL in a path; expected the path of an algorithm in C.")
    while waiting:
        name = waiting.pop(0)
        if name in sources:
            continue
        text.refuse_name(path, name, quotable)
        try:
            content, may_be_quoted = read(f"{folder}{name}")
        except OSError as error:
            if sources and (_is_ours(name) or kernel_source.is_optional(name, sources, HEADERS)):
                continue
            included = f'#include "{name}"' if quotable else "a file that it includes"
            what = f"{path}: {included}" if sources else path
            raise UsageError(
                f"{what}: cannot be read: {error.strerror or error}. Expected an algorithm in C."
            ) from None
        quotable &= may_be_quoted
        size += len(content.encode())
        if size > MOST_BYTES or len(sources) >= _MOST_FILES:
            got = f"{size / (1 << 20):.1f} MiB in {human.counted(len(sources) + 1, 'file')}"
            raise UsageError(
                f"{path}: got {got}; expected {MOST_BYTES >> 20} MiB in {_MOST_FILES} files at most. "
                "An algorithm is some kB of C."
            )
        sources[name] = content
        if prototype.is_one(name):
            break
        for other in text.includes(content):
            # As a compiler does, it takes a file of the folder before ours of that name.
            if not _is_of_contract(other):
                waiting.append(os.path.normpath(PurePosixPath(name).parent / other))
                if waiting[-1].startswith(("/", "../")):
                    what = f'#include "{say.printable(other)}"' if quotable else "a file that it includes"
                    raise UsageError(
                        f"{path}: {what}: lies outside of the algorithm's folder; expected a file of that folder. Put "
                        "it there."
                    )
        waiting += kernel_source.libraries(sources)
    return sources, quotable
