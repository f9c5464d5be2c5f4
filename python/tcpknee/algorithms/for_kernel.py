"""Algorithms of files for the running kernel: the same text, compiled by clang as BPF struct_ops."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tcpknee import _core, say, writing
from tcpknee.errors import UsageError

from . import compiler, naming
from .building import HEADERS

_COMPILERS = (
    "clang-16",
    "clang",
    *(f"clang-{version}" for version in (22, 21, 20, 19, 18, 17, 15, 14)),
)
"""Looked for, best first, as where the package is built; BPF_CLANG names another."""

_ARCHITECTURES = {"x86_64": "x86", "aarch64": "arm64"}

_FLAGS = (
    "-target",
    "bpf",
    "-mcpu=v3",
    "-fno-jump-tables",
    "-O2",
    "-g",
    "-std=gnu11",
    "-fno-color-diagnostics",
    "-fno-caret-diagnostics",
    "-Wno-initializer-overrides",
    "-Werror=implicit-function-declaration",
)

_SYSTEM = (Path("/usr/include"), Path("/usr/lib"))
"""Headers of the host's that ours include."""

_REPLAY_SECONDS = 60
"""For all of it, which takes a second."""


def names(what: str, words: Sequence[str], *, to_load: bool = True) -> tuple[str, ...]:
    """The algorithms that a user named, by name or by path, those of files known to the loader. Raises `UsageError`,
    which begins with `what` where no such algorithm is."""
    found, of_files = naming.chosen(what, words)
    for one in of_files:
        add(one, compiled=to_load)
    return found


def kernel_name(one: naming.Named) -> str:
    """What the kernel calls it once it is loaded. Raises `UsageError` where it cannot be."""
    if one.built.kind == "prototype":
        raise UsageError(
            f"{one.built.path}: got a prototype in Python; expected an algorithm in C, which goes into a kernel. "
            "`knee new algorithm NAME` writes an outline, and `knee against` compares the two."
        )
    if one.built.kind != "contract":
        raise UsageError(
            f"{one.built.path}: got a source of the Linux kernel; expected one for the contract of cc.h, which goes "
            "into a running kernel as BPF. A guest runs it: --engine guest --kernel 6.12 (docs/kernels.md)."
        )
    own = str(_about(one)["kernel_name"])
    is_own = one.name == one.built.name and len(own) <= naming.MOST_KERNEL_NAME
    return own if is_own else f"knee_{one.name}"[: naming.MOST_KERNEL_NAME]


def _about(one: naming.Named) -> dict[str, Any]:
    return _core.load_algorithm(one.built.so_path, one.built.digest, one.name)


def add(one: naming.Named, *, compiled: bool = True) -> None:
    """Gives the loader the builds of an algorithm; not `compiled`: only what the kernel calls it. Raises
    `UsageError`."""
    called, about = kernel_name(one), _about(one)
    defines = [] if called == str(about["kernel_name"]) else [f"-DCC_KERNEL_NAME={called}"]
    both = (_object(one, [*defines, *further]) if compiled else b"" for further in ([], ["-DCC_BPF_CONG_CONTROL_2"]))
    _core.add_object(one.name, called, [param["name"] for param in about["params"]], *both)


def replayed(one: naming.Named, sequences: int) -> tuple[bool | None, str]:
    """Whether its bytecode does in this kernel what it does on the host, in so many drawn sequences of ops, and what
    they showed; None: it cannot be asked. Needs root. Raises `UsageError` where it is no BPF."""
    built, words = one.built, compiler.command(one.built.path)
    with writing.spill_folder() as folder:
        with writing.replacing(folder / "object") as file:
            file.write(_object(one, ["-DCC_BPF_REPLAY"]))
        flags = ["-O2", "-std=gnu11", "-DCC_FILE", "-DCC_FILE_HAS_LIBC", f"-I{HEADERS}", "-o", "program"]
        sources = [str(HEADERS / "cc_replay.c"), str(built.so_path)]
        if failure := compiler.run([*words, *flags, *sources, "-lbpf"], folder):
            return None, say.printable(
                f"because its program does not compile (apt install libbpf-dev): {failure[:200]}"
            )
        # Of what libbpf says of a program that is refused, the end tells.
        ended = './program "$@" >said 2>&1; code=$?; tail -n 5 said; echo "code $code"'
        words = ["/bin/sh", "-c", ended, "sh", one.built.name, "object", str(sequences)]
        said = compiler.run(words, folder, of_compiler=False, seconds=_REPLAY_SECONDS) or ""
    return answer(said)


_DIFFER, _IDLE = 1, 3
"""Exit codes of cc_replay.c."""


def answer(said: str) -> tuple[bool | None, str]:
    """What follows of the last lines of cc_replay.c, and its exit code behind them."""
    ended = re.search(r"^code (\d+)\n$", said, re.MULTILINE)
    code = ended[1] if ended else ""
    line = say.printable(said[: ended.start() if ended else None].strip().rpartition("\n")[2][:200])
    found = re.search(r": (\d+) sequences equal, (\d+) ops, (\d+) of them changed", line)
    if code == "0" and found:
        return True, f"{int(found[2]):,} calls of {int(found[1]):,} drawn sequences"
    if code == str(_DIFFER):
        return False, line
    if code == str(_IDLE) and found:
        return None, f"because {int(found[3]):,} of {int(found[2]):,} drawn calls changed something: too few to tell"
    return None, f"because it could not be run: {line or 'it said nothing'}"


def _object(one: naming.Named, defines: Sequence[str]) -> bytes:
    built = one.built
    clang = next(filter(None, map(shutil.which, (os.environ.get("BPF_CLANG", ""), *_COMPILERS))), None)
    if clang is None:
        raise UsageError(
            f"{built.path}: got no clang; expected one of version 14 or later, which compiles it for the kernel. "
            "Install it (Debian, Ubuntu: apt install clang libbpf-dev), or name it in BPF_CLANG."
        )
    machine = platform.machine()
    flags = [
        *_FLAGS,
        f"-D__TARGET_ARCH_{_ARCHITECTURES.get(machine, machine)}",
        *("-idirafter", f"/usr/include/{machine}-linux-gnu"),
        *defines,
    ]

    def compile_in(folder: Path) -> None:
        failure = compiler.compiled(
            built.path,
            [clang, *flags, f"-I{HEADERS}"],
            compiler.in_folder(next(iter(built.sources))),
            ("-c", "-o", "object"),
            folder,
            may_include=_SYSTEM,
            may_be_quoted=built.may_be_quoted,
        )
        if failure is not None:
            expected = "C that clang makes BPF of"
            raise UsageError(compiler.said(built.path, built.sources, failure, built.may_be_quoted, expected))

    made_of = (built.digest, compiler.headers_digest(HEADERS), *flags)
    return compiler.cached(built.sources, [clang], made_of, compile_in).read_bytes()
