"""Builds a congestion control of the kernel and ours, and plays both through the same ACKs: docs/against.md."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tcpknee.algorithms import building
from tcpknee.errors import UsageError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HARNESS = ("path.c", "sender.c", "world.c", "sides.c", "own_cwr.c", "scenarios.c", "main.c")
FLAGS = ("-O2", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-override-init")


def arguments() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Further arguments go to the program: --random N --seed S --class TEXT --only SEED, and "
        "--first NAME=VALUE, --second NAME=VALUE for parameters of the kernel's file and of ours.",
    )
    parser.add_argument("kernel_file", type=Path, help="the kernel's net/ipv4/tcp_NAME.c, or one like it")
    parser.add_argument("algorithm", help="ours: the NAME of cc/NAME.c")
    parser.add_argument("--out", type=Path, default=ROOT / "build/against", help="folder of what is built")
    return parser.parse_known_args()


def harness(out: Path) -> Path:
    """Compiles what plays them; the path of the program."""
    out.mkdir(parents=True, exist_ok=True)
    program = out / "against"
    sources = [str(HERE / name) for name in HARNESS]
    done = subprocess.run(
        [os.environ.get("CC", "cc"), *FLAGS, f"-I{ROOT / 'cc'}", f"-I{HERE}", *sources, "-o", str(program), "-ldl"],
        check=False,
    )
    if done.returncode:
        sys.exit("against: the harness does not compile")
    return program


def main() -> int:
    asked, rest = arguments()
    ours = ROOT / f"cc/{asked.algorithm}.c"
    if not ours.is_file():
        sys.exit(f"against: no file cc/{asked.algorithm}.c; ALGORITHM is a name of cc/algorithms.def")
    if not asked.kernel_file.is_file():
        sys.exit(
            f"against: no file {asked.kernel_file}; KERNEL_FILE is a kernel's net/ipv4/tcp_NAME.c (docs/against.md)"
        )
    try:
        objects = [str(building.build(str(file.resolve())).so_path) for file in (asked.kernel_file, ours)]
    except UsageError as error:
        sys.exit(f"against: {error}")
    program = harness(asked.out)
    sys.stdout.flush()
    return subprocess.run([str(program), *rest, *objects], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
