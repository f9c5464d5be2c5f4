"""Congestion controls of users' own files as modules of a kernel that was built: such a source is compiled as it is,
against that kernel's own headers, and loaded into each guest that runs it.

Of what the kernel was built from, these stay: the headers, and the programs that make a module.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tcpknee import provenance, say, writing
from tcpknee.algorithms import compiler, kernel_source
from tcpknee.errors import KernelUnsupported

from . import cache
from .cache import Kernel

if TYPE_CHECKING:
    from tcpknee.algorithms.building import Built

_BUILT = "built.json"
"""Beside the build: the kernel that it is of."""

_RENAMES = Path(__file__).parent / "knee_module.c"
_ABSENT = re.compile(r'modpost: "(\w+)" \[\S+\] undefined')
_OF_ALL = re.compile(r"ERROR: modpost: (.*?)(?: in \S+)?$", re.MULTILINE)

_KEPT = re.compile(
    r"(?:include|scripts)/.*|arch/(?:um|x86)/(?:.*/)?(?:Makefile[^/]*|[^/]*\.h)|net/ipv4/[^/]*\.h|"
    r"(?:Makefile|Kbuild|Module\.symvers|\.config)"
)
"""What a module needs of a source and of its build."""


_OTHER = {"contract": "an algorithm for the contract of cc.h", "prototype": "a prototype in Python"}
_ELSEWHERE = {"contract": ", or in this host's kernel with --engine kernel"}


def forget(work: Path) -> None:
    """A build begins: what is in its folder is of no kernel."""
    (work / _BUILT).unlink(missing_ok=True)


def note(work: Path, kernel: Kernel) -> None:
    """The build is that kernel's."""
    (work / _BUILT).write_text(json.dumps(_marks(kernel)), encoding="utf-8")


def _marks(kernel: Kernel) -> dict[str, str]:
    return {"digest": kernel.digest, "config": kernel.config, "release": kernel.release}


def prune(source: Path, build: Path) -> None:
    """Takes away what no module needs: a twentieth stays."""
    for root in (source, build):
        for path in sorted(root.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                if not any(path.iterdir()):
                    path.rmdir()
            elif not _KEPT.fullmatch(path.relative_to(root).as_posix()):
                path.unlink()


def can_build(kernel: Kernel) -> bool:
    """Is there what a module of it takes?"""
    try:
        return bool(kernel.work) and json.loads((kernel.built_in / _BUILT).read_text("utf-8")) == _marks(kernel)
    except (OSError, ValueError):
        return False


def module(kernel: Kernel, built: Built) -> Path:
    """The module of a file for a kernel; from the cache where it is there. Raises `KernelUnsupported`, `UsageError`."""
    where = f"{built.path}: the guest kernel {kernel.name}"
    if built.kind != "kernel":
        raise KernelUnsupported(
            f"{where}: got {_OTHER[built.kind]}; expected a source of the Linux kernel (a tcp_x.c), which is built as "
            f"its module, since a guest has no BPF. Run it with --engine sim{_ELSEWHERE.get(built.kind, '')}."
        )
    if not can_build(kernel):
        raise KernelUnsupported(
            f"{where} has nothing left that a module could be built with: it was built by an older version, or its "
            f"tree was built at another revision since. Build it again: {_add_again(kernel)}"
        )
    cache.check_own(kernel.built_in, kernel.built_in.parent, cache.home())
    gcc = shutil.which("gcc")
    if gcc is None or shutil.which("make") is None:
        raise KernelUnsupported(f"{where}: a module needs gcc and make. Install: apt-get install gcc make")
    renames = _RENAMES.read_bytes()
    ours = hashlib.sha256(renames + Path(__file__).read_bytes()).hexdigest()
    made_of = (built.digest, *_marks(kernel).values(), ours)

    def compile_in(folder: Path) -> None:
        _compile(kernel, built, folder, renames, where)

    return compiler.cached(built.sources, [gcc], made_of, compile_in)


def _add_again(kernel: Kernel) -> str:
    """The command that builds it."""
    is_tree = "/" in kernel.origin
    return provenance.command_line(
        "knee", "kernel", "add", kernel.origin.rpartition(" (")[0] if is_tree else kernel.name
    )


def _compile(kernel: Kernel, built: Built, folder: Path, renames: bytes, where: str) -> None:
    """Leaves the module in `folder`."""
    # No module of the kernel's own, and none of another file, is called so.
    name = f"knee_{built.digest[:12]}"
    first, *others = kernel_source.units(built.sources)
    # What it calls of another algorithm the kernel has.
    theirs = kernel_source.libraries(built.sources)
    names = [first, *(unit for unit in others if unit not in theirs)]
    units = [compiler.in_folder(unit).removeprefix("./") for unit in names]
    objects = " ".join(f"{unit.removesuffix('.c')}.o" for unit in units)
    kbuild = [
        f"obj-m := {name}.o",
        f"{name}-y := {objects} knee_module.o",
        # Its name is given to it, and what it exports the kernel exports too.
        "ccflags-y := -D__DISABLE_EXPORTS -fno-diagnostics-color -fmax-errors=20 -ftrack-macro-expansion=0 "
        "-I$(srctree)/net/ipv4",
        *(f"CFLAGS_{unit.removesuffix('.c')}.o := -Dtcp_register_congestion_control=knee_register" for unit in units),
    ]
    for file_name, content in (("Kbuild", "\n".join(kbuild).encode() + b"\n"), ("knee_module.c", renames)):
        with writing.replacing(folder / file_name) as file:
            file.write(content)
    source, build = (shlex.quote(str(kernel.built_in / part)) for part in ("source", "build"))
    make = (
        f'unset MAKEFLAGS MFLAGS MAKELEVEL CFLAGS LDFLAGS; exec make -C {source} ARCH=um O={build} M="$PWD" W= modules'
    )
    failure = compiler.run(["/bin/sh", "-c", make], folder)
    if failure is not None:
        raise KernelUnsupported(_refusal(kernel, built, failure, where, folder))
    _check_taken_in(kernel, built, folder, units)
    (folder / f"{name}.ko").rename(folder / "object")


def _check_taken_in(kernel: Kernel, built: Built, folder: Path, units: Sequence[str]) -> None:
    """Raises `UsageError` where a unit took in what is neither the file's nor the kernel's, as kbuild noted: else who
    has the module in the cache would have what was there once."""
    source, build = kernel.built_in / "source", kernel.built_in / "build"
    # Kernels before 5.16 take headers of the compiler's own.
    of_compiler = compiler.run(["gcc", "-print-file-name=include"], folder, of_compiler=False) or ""
    roots = [folder, source, build, *([Path(of_compiler.strip())] if of_compiler.startswith("/") else [])]
    for unit in units:
        path = folder / unit
        noted = path.parent / f".{path.stem}.o.cmd"
        text = noted.read_text(encoding="utf-8", errors="surrogateescape") if noted.is_file() else ""
        rule = re.search(r"^deps_\S+ := \\\n((?:.*\\\n)*.*)$", text, re.MULTILINE)
        if rule is None:
            raise KernelUnsupported(f"{built.path}: the build of Linux {kernel.name} does not note what it takes in.")
        needs = re.sub(r"\$\(wildcard [^)]*\)", "", rule[1])
        # It runs in the folder of the module, or up to 6.12 in that of the build.
        compiler.refuse_outside(built.path, needs, [folder, build], roots, may_be_quoted=built.may_be_quoted)


def _refusal(kernel: Kernel, built: Built, failure: str, where: str, folder: Path) -> str:
    if absent := dict.fromkeys(_ABSENT.findall(failure)):
        return f"{where} does not let modules use {', '.join(f'{name}()' for name in absent)}."
    if found := _OF_ALL.search(failure):
        return f"{where} takes no module that is so: {say.printable(found[1][:200])}."
    for ours in (folder, kernel.built_in / "source", kernel.built_in / "build"):
        failure = failure.replace(f"{ours}/", "")
    lines = failure.splitlines()
    errors = [line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)]
    expected = f"what the guest kernel {where.rpartition(' ')[2]} compiles as a module"
    return compiler.said(built.path, built.sources, "\n".join(errors), built.may_be_quoted, expected)
