"""Sources of Debian's kernels: the package linux-source-VERSION, from any suite that has it.

apt of this host is asked first. Where it has none, lists of all suites are read into the cache, beside those of the
host, which stay as they are. So nothing needs root, and Debian's signatures are checked as always.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from tcpknee.errors import KernelUnsupported

from . import guest

MIRROR = "http://deb.debian.org"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITES = (
    ("debian", ("sid", "trixie", "bookworm", "bullseye")),
    ("debian-security", ("trixie-security", "bookworm-security", "bullseye-security")),
)
LISTS_LAST_SEC = 24 * 3600.0
"""Before they are read again."""


def package(version: str, into: Path) -> Path:
    """The newest package of that version's source, as a file in the folder. Raises `KernelUnsupported`."""
    if shutil.which("apt-get") is None:
        raise KernelUnsupported(
            f"kernel {version}: its source is a package of Debian, and this host has no apt-get. Give the file with "
            "--deb, or the path of a tree."
        )
    name = f"linux-source-{version}"
    into.mkdir(parents=True, exist_ok=True)
    if found := _download(name, into, []):
        return found
    options = _all_suites(into.parent / "apt")
    if found := _download(name, into, options):
        return found
    listed = _run(["apt-cache", *options, "search", "--names-only", r"^linux-source-[0-9.]+$"], into).stdout
    have = sorted({line.split()[0].removeprefix("linux-source-") for line in listed.splitlines()})
    raise KernelUnsupported(
        f"kernel {version}: no suite of Debian at {MIRROR} has {name}"
        + (f"; expected one of {', '.join(have)}." if have else ". Is there a network?")
        + " Or give the file with --deb, or the path of a tree."
    )


def _download(name: str, into: Path, options: list[str]) -> Path | None:
    sandbox = ["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []
    if _run(["apt-get", *options, *sandbox, "download", name], into).returncode:
        return None
    found = sorted(into.glob(f"{name}_*.deb"), key=lambda path: path.stat().st_mtime)
    return found[-1] if found else None


def _all_suites(folder: Path) -> list[str]:
    """apt's options for lists of its own, which are there and new enough afterwards."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    signed = f"[signed-by={KEYRING}] " if KEYRING.is_file() else ""
    sources = folder / "sources.list"
    sources.write_text(
        "".join(f"deb {signed}{MIRROR}/{area} {suite} main\n" for area, suites in SUITES for suite in suites),
        encoding="utf-8",
    )
    options = {
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Acquire::Languages": "none",
        "APT::Get::List-Cleanup": "0",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    stamp = folder / "updated"
    if not stamp.is_file() or time.time() - stamp.stat().st_mtime > LISTS_LAST_SEC:
        sandbox = ["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []
        # A suite that is gone is a warning here, and its kernel a refusal later.
        _run(["apt-get", *words, *sandbox, "update"], folder)
        stamp.touch()
    return words


def unpack(package: Path, source: Path) -> str:
    """Puts the source of a package into a folder; returns the package's name and version. Raises
    `KernelUnsupported`."""
    told = _run(["dpkg-deb", "--show", "--showformat", "${Package} ${Version}", str(package)], package.parent)
    if told.returncode:
        raise KernelUnsupported(f"{package}: got no package of Debian; expected linux-source-VERSION_….deb.")
    unpacked = source.parent / "deb"
    shutil.rmtree(unpacked, ignore_errors=True)
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    try:
        _checked(["dpkg-deb", "-x", str(package), str(unpacked)])
        archives = list(unpacked.glob("usr/src/linux-source-*.tar.*"))
        if len(archives) != 1:
            raise KernelUnsupported(f"{package}: holds no source of a kernel; expected linux-source-VERSION_….deb.")
        _checked(["tar", "-xf", str(archives[0]), "-C", str(source), "--strip-components=1"])
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)
    return told.stdout.strip()


def _run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    command = [*guest.contained(), *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _checked(words: list[str]) -> None:
    done = subprocess.run([*guest.contained(), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or ["no word"]
        raise KernelUnsupported(f"{words[0]}: {said[0]}. Is there room on the disk?")
