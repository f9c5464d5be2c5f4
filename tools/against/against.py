"""Builds a congestion control of the kernel and ours into one program and runs it: docs/against.md."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STUBS = HERE / "include"
HARNESS = ("path.c", "sender.c", "world.c", "sides.c", "offered.c", "own_cwr.c", "scenarios.c", "main.c")
C_FLAGS = ("-O2", "-g", "-std=gnu11")
OUR_FLAGS = ("-Wall", "-Wextra", "-Werror", "-Wno-override-init")


def arguments() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Further arguments go to the program: --random N --seed S --class TEXT --set NAME=VALUE.",
    )
    parser.add_argument("kernel_file", type=Path, help="the kernel's net/ipv4/tcp_NAME.c, or one like it")
    parser.add_argument("algorithm", help="ours: the NAME of cc/NAME.c")
    parser.add_argument("--build-only", action="store_true", help="print the program's path instead of running it")
    parser.add_argument("--out", type=Path, default=ROOT / "build/against", help="folder of what is built")
    return parser.parse_known_args()


def forward(includes: list[str], beside: Path, folder: Path) -> None:
    """Makes a header for each that the kernel's file includes and that is not there: it includes the stub."""
    for name in includes:
        if (beside / name).exists() or (STUBS / name).exists():
            continue
        header = folder / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text('#include "stub.h"\n', encoding="utf-8")


def build(kernel_file: Path, algorithm: str, out: Path) -> Path:
    """Compiles all of it; the path of the program."""
    text = kernel_file.read_text(encoding="utf-8", errors="replace")
    folder = out / algorithm
    forward(re.findall(r'^\s*#\s*include\s*[<"]([\w/.-]+)[>"]', text, re.M), kernel_file.parent, folder / "include")
    compiler = os.environ.get("CC", "cc")
    search = [f"-I{STUBS}", f"-I{folder / 'include'}", f"-I{ROOT / 'cc'}", f"-I{HERE}"]
    # Until Linux 6.9, and in Google's kernels, cong_control() has two arguments.
    defines = [f"-DAGAINST_ALGORITHM={algorithm}"]
    if not re.search(r"u32\s+ack\s*,\s*int\s+flag\s*,\s*const\s+struct\s+rate_sample", text):
        defines.append("-DAGAINST_CONG_CONTROL_2")
    objects = []
    sources = [(HERE / name, OUR_FLAGS) for name in HARNESS]
    sources.append((ROOT / f"cc/{algorithm}.c", OUR_FLAGS))
    # The kernel's own warnings are the kernel's.
    as_kernel = ("-w", "-fno-strict-aliasing", "-DAGAINST_KERNEL_FILE", "-include", "stub.h")
    sources.append((kernel_file.resolve(), as_kernel))
    # What it calls of another algorithm stands in that one's file, as vegas' clock of yeah does.
    for name in re.findall(r'^\s*#\s*include\s*"(tcp_\w+)\.h"', text, re.M):
        library = kernel_file.resolve().with_name(f"{name}.c")
        if library.is_file() and library != kernel_file.resolve():
            sources.append((library, (*as_kernel, "-DAGAINST_LIBRARY")))
    for source, flags in sources:
        compiled = folder / f"{source.parent.name}-{source.stem}.o"
        run([compiler, *C_FLAGS, *flags, *search, *defines, "-c", str(source), "-o", str(compiled)])
        objects.append(str(compiled))
    program = folder / "against"
    run([compiler, *objects, "-o", str(program)])
    return program


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
        sys.exit(f"against: {command[0]} failed on {command[-3]}; a kernel file may need more than {STUBS} offers")


def main() -> int:
    asked, rest = arguments()
    if not asked.kernel_file.is_file():
        sys.exit(
            f"against: no file {asked.kernel_file}; KERNEL_FILE is a kernel's net/ipv4/tcp_NAME.c (docs/against.md)"
        )
    if not (ROOT / f"cc/{asked.algorithm}.c").is_file():
        sys.exit(f"against: no file cc/{asked.algorithm}.c; ALGORITHM is a name of cc/algorithms.def")
    asked.out.joinpath(asked.algorithm).mkdir(parents=True, exist_ok=True)
    program = build(asked.kernel_file, asked.algorithm, asked.out)
    if asked.build_only:
        print(program)
        return 0
    sys.stdout.flush()
    return subprocess.run([str(program), *rest], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
