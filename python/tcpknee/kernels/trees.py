"""Trees of the user's: their files, as they are or as a revision has them, in a copy of ours.

The tree itself is neither changed nor built in. The copy keeps files that have not changed, so that `make` builds what
depends on the others only.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tcpknee.errors import KernelUnsupported

_HELD = "files.json"
"""Beside the copy: what each of its files was copied from."""


@dataclass(frozen=True)
class Tree:
    """A tree of the user's, as a path with or without a git revision behind an @ names it."""

    path: Path
    revision: str | None

    @property
    def key(self) -> str:
        """What its copy is called: a copy serves all revisions."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", self.path.name).strip("-._") or "tree"
        return f"{plain[:32]}-{hashlib.sha256(os.fsencode(self.path)).hexdigest()[:8]}"

    def __str__(self) -> str:
        return f"{self.path}@{self.revision}" if self.revision else str(self.path)


def named(text: str) -> Tree | None:
    """The tree that a text names; None where it is no path. Raises `KernelUnsupported`."""
    if "/" not in text and not text.startswith(("~", ".")):
        return None
    place, _, revision = text.partition("@")
    path = Path(place).expanduser().resolve()
    if not (path / "Makefile").is_file() or not (path / "arch/um").is_dir():
        got = "is no source of Linux" if path.exists() else "is not there"
        raise KernelUnsupported(f"kernel {text}: {path} {got}; expected a folder with Makefile and arch/um.")
    if revision and shutil.which("git") is None:
        raise KernelUnsupported(
            f"kernel {text}: git is not installed, which knows revisions. Install: apt-get install git"
        )
    if revision and _git(path, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}") is None:
        raise KernelUnsupported(f'kernel {text}: git knows no revision "{revision}" in {path}.')
    return Tree(path, revision or None)


def copy(tree: Tree, source: Path, keep: Sequence[str]) -> str:
    """Makes the folder `source` equal to the tree, but for the files in `keep`, which a patch of ours changes: those
    are written by who patches. Returns a digest of the files. Raises `KernelUnsupported`."""
    marks = _revision_marks(tree) if tree.revision else _file_marks(tree.path)
    held_at = source.parent / _HELD
    held: dict[str, str] = json.loads(held_at.read_text("utf-8")) if held_at.is_file() and source.is_dir() else {}
    held_at.unlink(missing_ok=True)
    changed = [name for name, mark in marks.items() if held.get(name) != mark and name not in keep]
    for name in held.keys() - marks.keys():
        (source / name).unlink(missing_ok=True)
    if tree.revision:
        _write_blobs(tree, {name: marks[name] for name in changed}, source)
    else:
        for name in changed:
            _put(tree.path / name, source / name)
    held_at.write_text(json.dumps(marks), encoding="utf-8")
    return hashlib.sha256(json.dumps(sorted(marks.items())).encode()).hexdigest()


def text_of(tree: Tree, name: str) -> str | None:
    """A file of the tree; None where it has none."""
    if tree.revision:
        return _git(tree.path, "show", f"{tree.revision}:{name}")
    path = tree.path / name
    return path.read_text(encoding="utf-8", errors="surrogateescape") if path.is_file() else None


def _revision_marks(tree: Tree) -> dict[str, str]:
    """Of each file of a revision: mode and hash."""
    listed = _git(tree.path, "ls-tree", "-r", "-z", str(tree.revision))
    if listed is None:
        raise KernelUnsupported(f"kernel {tree}: git cannot list its files.")
    marks = {}
    for line in filter(None, listed.split("\0")):
        facts, _, name = line.partition("\t")
        mode, kind, blob = facts.split()
        if kind == "blob":
            marks[name] = f"{mode} {blob}"
    return marks


def _file_marks(path: Path) -> dict[str, str]:
    """Of each file of a tree that belongs to its source: size and time of change."""
    listed = _git(path, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = filter(None, listed.split("\0")) if listed else _walk(path)
    marks = {}
    for name in names:
        try:
            found = os.lstat(path / name)
        except FileNotFoundError:
            continue  # Deleted, and git was not told.
        if stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
            marks[name] = f"{found.st_mode:o} {found.st_size} {found.st_mtime_ns}"
    return marks


_BUILT = (".o", ".a", ".ko", ".cmd", ".mod", ".order", ".symvers")
_LINKED = re.compile(r"vmlinux(\.(lds|map|objs|relocs|unstripped|stripped|export\.c|bin.*))?")
"""Names of what a build links, and of nothing in the source, which has `vmlinux.lds.S` and `vmlinux.lds.h`."""


def _walk(path: Path) -> list[str]:
    """Files of a tree without git, without what a build leaves in it."""
    names = []
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if name not in {".git", "generated"}]
        relative = os.path.relpath(folder, path)
        if relative == "include":
            folders[:] = [name for name in folders if name != "config"]
        names += [
            os.path.normpath(f"{relative}/{name}")
            for name in files
            if not name.endswith(_BUILT) and not name.startswith(".config") and not _LINKED.fullmatch(name)
        ]
    return names


def _put(file: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    if file.is_symlink():
        place.symlink_to(file.readlink())
    else:
        shutil.copy2(file, place)


def _write_blobs(tree: Tree, marks: Mapping[str, str], source: Path) -> None:
    """Writes files of a revision."""
    if not marks:
        return
    names = list(marks)
    wanted = "".join(f"{marks[name].split()[1]}\n" for name in names)
    with subprocess.Popen(
        ["git", "-C", str(tree.path), "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        # git answers while it reads: who writes all first would wait for it, and it for him.
        stdin = process.stdin

        def ask() -> None:
            with stdin:
                stdin.write(wanted.encode())

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        for name in names:
            size = int(process.stdout.readline().split()[2])
            content = process.stdout.read(size)
            process.stdout.read(1)
            place, mode = source / name, marks[name].split()[0]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            if mode == "120000":
                place.symlink_to(os.fsdecode(content))
            else:
                place.write_bytes(content)
                place.chmod(0o755 if mode == "100755" else 0o644)
        asking.join()


def _git(path: Path, *words: str) -> str | None:
    """What git says; None where it refuses, or the tree is none of its."""
    try:
        done = subprocess.run(
            ["git", "-c", "core.quotePath=false", "-C", str(path), *words], capture_output=True, check=False
        )
    except FileNotFoundError:
        return None
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None


def described(tree: Tree) -> str:
    """The tree in a line: its revision, and whether it was changed since."""
    revision = _git(tree.path, "describe", "--always", "--tags", tree.revision or "HEAD")
    if revision is None:
        return str(tree)
    is_dirty = not tree.revision and bool(_git(tree.path, "status", "--porcelain", "--untracked-files=no"))
    return f"{tree} ({revision.strip()}{', changed since' if is_dirty else ''})"
