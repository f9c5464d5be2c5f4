"""Instructions per data packet of two of the benchmark's cells, in this tree beside the last commit: instructions.py

Times on shared machines do not repeat; instructions do, to a few thousand of a thousand million (hash maps that read a
scenario). Both trees are built for speed here, with the same tools, as counts of different compilers say nothing of
each other. valgrind counts. More than `MOST` times as many as before is refused (exit code 1), without valgrind or a
last commit to compare with nothing is (exit code 0, and a line that says so). What was counted is kept in
build/instructions, by what it was built of: the next commit need not build this one again.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "instructions"
COUNTS = KEPT / "counts.json"
CELLS = tuple(ROOT / "crates/sim/benches/cells" / f"{name}.toml" for name in ("one-flow", "hundred-flows"))
# The first second is slow start; with the second one most of what is counted is a full link.
SECONDS = 2
MOST = 1.05
PROGRAM = "crates/engine/examples/packets.rs"

Counts = Mapping[str, float]
"""Instructions per data packet of each cell."""


class NothingToCompareError(Exception):
    """Why no count can be compared here; it is no fault of the engine."""


def main() -> None:
    try:
        found = counts()
        if found is None:
            print("instructions: the engine is that of the last commit")
            return
        lines, refused = compared(*found)
    except NothingToCompareError as why:
        print(f"instructions: nothing compared: {why}")
        return
    print(*lines, sep="\n")
    if refused:
        sys.exit(refused)


def counts() -> tuple[Counts, Counts] | None:
    """Of this tree and of the last commit; None: both have the same engine. Raises NothingToCompareError."""
    if shutil.which("valgrind") is None:
        raise NothingToCompareError("not installed: valgrind")
    if subprocess.run(["git", "rev-parse"], cwd=ROOT, stderr=subprocess.DEVNULL, check=False).returncode:
        raise NothingToCompareError("git knows no history of these sources")
    sources = _sources()
    is_changed = bool(_said("git", "status", "--porcelain", "--", *sources))
    if is_changed:
        before = _of_commit("HEAD", sources)
        return _measured(ROOT), before
    if subprocess.run(["git", "cat-file", "-e", "HEAD~1"], cwd=ROOT, stderr=subprocess.DEVNULL, check=False).returncode:
        raise NothingToCompareError("HEAD has no parent here; a shallow clone needs a depth of 2")
    if not _said("git", "diff", "--name-only", "HEAD~1", "HEAD", "--", *sources):
        return None
    before = _of_commit("HEAD~1", sources)
    return _of_commit("HEAD", sources), before


def compared(after: Counts, before: Counts) -> tuple[list[str], str]:
    """A line for each cell that both have, and what is to be said of those that take too many; empty: none does."""
    known = [name for name in after if name in before]
    if not known:
        raise NothingToCompareError("the last commit has other cells")
    lines, worse = [], []
    for name in known:
        text = f"{name}: {after[name]:.0f} instructions per data packet, {before[name]:.0f} in the last commit"
        lines.append(f"{text} ({100 * (after[name] / before[name] - 1):+.1f} %)")
        if after[name] > MOST * before[name]:
            worse.append(lines[-1])
    if not worse:
        return lines, ""
    return lines, (
        f"The engine takes more than {100 * (MOST - 1):.0f} % more instructions than in the last commit: "
        f"{'; '.join(worse)}. `valgrind --tool=callgrind target/release/examples/packets CELL {SECONDS}` shows where."
    )


def _sources() -> list[str]:
    """What the program is built of. Benchmarks and tests among it cost a build that was not needed, and no more."""
    tree = _said("cargo", "tree", "--locked", "-p", "knee-engine", "-e", "normal,build", "--prefix", "none")
    crates = re.findall(rf"\({re.escape(str(ROOT))}/(crates/[\w-]+)\)", tree)
    return ["Cargo.toml", "Cargo.lock", "cc", *sorted(set(crates))]


def _of_commit(commit: str, sources: Sequence[str]) -> Counts:
    """As kept, else built from its files."""
    trees = [_said("git", "ls-tree", commit, "--", *sources), *(cell.read_text(encoding="utf-8") for cell in CELLS)]
    compilers = [_said("rustc", "-vV"), _said("cc", "--version"), _said("valgrind", "--version")]
    key = hashlib.sha256(json.dumps([SECONDS, *trees, *compilers]).encode()).hexdigest()
    kept: dict[str, dict[str, float]] = json.loads(COUNTS.read_text(encoding="utf-8")) if COUNTS.exists() else {}
    if key not in kept:
        if not _said("git", "ls-tree", commit, "--", PROGRAM):
            raise NothingToCompareError(f"{commit} has no {PROGRAM}")
        tree = KEPT / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        # With the time of now (-m): by an older one cargo would take another commit's build for this one's.
        subprocess.run(["tar", "-xm", "-C", tree], input=archive, check=True)
        kept[key] = dict(_measured(tree))
        shutil.rmtree(tree)
        COUNTS.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    return kept[key]


def _measured(tree: Path) -> Counts:
    """Builds a tree's program and counts."""
    # The crates of others are built once for both trees.
    command = "cargo build --quiet --release --locked -p knee-engine --example packets"
    built = subprocess.run(
        [*command.split(), "--target-dir", ROOT / "target"], cwd=tree, stderr=subprocess.PIPE, text=True, check=False
    )
    if built.returncode:
        if tree == ROOT:
            sys.exit(f"{built.stderr}\ninstructions: {command}: failed in this tree.")
        raise NothingToCompareError(f"the last commit cannot be built: {built.stderr.strip().splitlines()[-1]}")
    program = ROOT / "target/release/examples/packets"
    return {cell.stem: _instructions_per_packet(program, cell) for cell in CELLS}


def _instructions_per_packet(program: Path, cell: Path) -> float:
    # Without a model of caches cachegrind is the quickest of valgrind's tools that count.
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    ended = subprocess.run([*tool, program, cell, str(SECONDS)], capture_output=True, text=True, check=False)
    found = re.search(r"I\s+refs:\s+([\d,]+)", ended.stderr)
    if ended.returncode or found is None:
        sys.exit(f"instructions: {' '.join(tool)} {program} {cell} {SECONDS}: failed:\n{ended.stderr}")
    return int(found[1].replace(",", "")) / int(ended.stdout)


def _said(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    main()
