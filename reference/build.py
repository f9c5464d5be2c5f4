"""Builds a kernel as a user-mode program from Debian's source package: build.py 6.12 [--force].

The source comes through apt (package linux-source-VERSION), or as a .deb that is put into build/reference/deb. All is
made in build/reference/VERSION; `linux` there is the kernel, `release` says which one it is.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "build" / "reference"
CONFIG = HERE / "kernel.config"


def kernel(version: str, *, force: bool = False) -> Path:
    """The folder with the kernel of that version, which is built when it is not there."""
    folder = BUILT / version
    linux = folder / "linux"
    if force:
        shutil.rmtree(folder, ignore_errors=True)
    if not linux.is_file():
        _build(folder, _source(folder, version), linux)
    _build_program(BUILT / "flow")
    return folder


def _source(folder: Path, version: str) -> Path:
    """The unpacked source."""
    source = folder / "source"
    if not (source / "Makefile").is_file():
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir(parents=True)
        unpacked = folder / "deb"
        _say(f"unpacking linux-source-{version}")
        _run(["dpkg-deb", "-x", str(_deb(version)), str(unpacked)])
        [archive] = unpacked.glob("usr/src/linux-source-*.tar.xz")
        _run(["tar", "-xJf", str(archive), "-C", str(source), "--strip-components=1"])
        shutil.rmtree(unpacked)
    _patch(source)
    return source


def _deb(version: str) -> Path:
    """Debian's package: one that is there, else the newest that apt knows."""
    folder = BUILT / "deb"
    folder.mkdir(parents=True, exist_ok=True)

    def found() -> list[Path]:
        return sorted(folder.glob(f"linux-source-{version}_*.deb"))

    if not found():
        _say(f"downloading linux-source-{version}")
        done = subprocess.run(["apt-get", "download", f"linux-source-{version}"], cwd=folder, check=False)
        if done.returncode or not found():
            sys.exit(
                f"build.py: apt has no linux-source-{version}. On Debian 12 linux-source-6.1 is in bookworm and "
                "linux-source-6.12 in bookworm-security; elsewhere put the .deb into build/reference/deb."
            )
    return found()[-1]


def _patch(source: Path) -> None:
    """Sets two numbers of user-mode Linux that no option sets: HZ, 100 there and 250 elsewhere; and the room for the
    registers of a process, which before 6.12 is too small for many processors. 6.12 has 2696 words."""
    for name, before, after in (
        ("arch/um/Kconfig", r"(config HZ\n\tint\n\tdefault) 100", r"\1 250"),
        (
            "arch/x86/um/user-offsets.c",
            r"(DEFINE_LONGS\(HOST_FP_SIZE,|DEFINE\(HOST_FP_SIZE,) sizeof\(struct _xstate\)[^)]*\);",
            r"DEFINE(HOST_FP_SIZE, 2696);",
        ),
    ):
        path = source / name
        path.write_text(re.sub(before, after, path.read_text(encoding="utf-8")), encoding="utf-8")


def _build(folder: Path, source: Path, linux: Path) -> None:
    made = folder / "build"
    made.mkdir(exist_ok=True)
    make = ["make", "-C", str(source), "ARCH=um", f"O={made}"]
    _say(f"building in {made} (a few minutes)")
    _run([*make, "defconfig"])
    with (made / ".config").open("a", encoding="utf-8") as config:
        config.write(CONFIG.read_text(encoding="utf-8"))
    _run([*make, "olddefconfig"])
    got = set((made / ".config").read_text(encoding="utf-8").splitlines())
    wanted = [line for line in CONFIG.read_text(encoding="utf-8").splitlines() if line.startswith("CONFIG_")]
    refused = [line for line in (*wanted, "CONFIG_HZ=250") if line not in got]
    if refused:
        sys.exit(f"build.py: this kernel did not take {', '.join(refused)}.")
    _run([*make, f"-j{len(os.sched_getaffinity(0))}", "linux"])
    shutil.copy2(made / "linux", linux)
    release = subprocess.run([*make, "-s", "kernelversion"], capture_output=True, text=True, check=True).stdout
    (folder / "release").write_text(release.strip() + "\n", encoding="utf-8")


def _build_program(program: Path) -> None:
    source = HERE / "guest" / "flow.c"
    if not program.is_file() or program.stat().st_mtime < source.stat().st_mtime:
        _run(["cc", "-O2", "-Wall", "-Wextra", "-o", str(program), str(source)])


def _run(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"build.py: `{' '.join(words)}` failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


def _say(text: str) -> None:
    print(f"build.py: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--force", action="store_true", help="build it anew")
    given = parser.parse_args()
    print(kernel(given.version, force=given.force))
