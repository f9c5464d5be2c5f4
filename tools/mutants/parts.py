"""What is mutated, in parts, and the stable draw."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import clike
import pylike
from mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "mutants"

# The two shells of the algorithms and the registry of the host: what the kernel's tests and the compiler hold.
_SHELLS = {"cc/cc_bpf.h", "cc/cc_bpf_kernel.h", "cc/cc_native.c", "cc/cc_native.h"}
_STATISTICS = (
    "runs/doubts",
    "evidence/expect",
    "evidence/expressions",
    "runs/groups",
    "runs/summary",
    "evidence/metrics",
    "evidence/stats",
    "evidence/verdicts",
)


@dataclass(frozen=True)
class Part:
    """Source files that the same tests hold."""

    name: str
    title: str
    globs: tuple[str, ...]
    find: Callable[[str, str], list[Mutant]]

    def files(self) -> list[str]:
        found = {str(path.relative_to(ROOT)) for glob in self.globs for path in ROOT.glob(glob)}
        return sorted(f for f in found if f not in _SHELLS and Path(f).stem not in {"tests", "testing"})

    def mutants(self) -> list[Mutant]:
        """All there are, in the order of the files."""
        return [m for file in self.files() for m in self.find(file, (ROOT / file).read_text(encoding="utf-8"))]


PARTS = (
    Part("cc", "algorithms in C", ("cc/*.[ch]",), clike.in_c),
    Part("sim", "simulator and its TCP", ("crates/sim/src/**/*.rs", "crates/tcp/src/**/*.rs"), clike.in_rust),
    Part("queue", "queues", ("crates/path/src/queue/**/*.rs",), clike.in_rust),
    Part("stats", "statistics", tuple(f"python/tcpknee/{name}.py" for name in _STATISTICS), pylike.in_python),
)


def drawn(count: int, seed: int) -> dict[str, list[Mutant]]:
    """About `count` mutants by part, as many of each part as it has of all, and at most one of each place.

    Which they are follows from the seed and what each says of itself: a change of one line changes the draw there only.
    """
    found = {part.name: part.mutants() for part in PARTS}
    total = sum(map(len, found.values()))
    return {name: _draw(mutants, round(count * len(mutants) / total), seed) for name, mutants in found.items()}


def _draw(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    ranked = sorted(mutants, key=lambda m: hashlib.sha256(f"{seed} {m.name}".encode()).digest())
    taken: dict[tuple[str, int, int], Mutant] = {}
    for mutant in ranked:
        if len(taken) == count:
            break
        taken.setdefault((mutant.file, mutant.start, mutant.end), mutant)
    return sorted(taken.values(), key=lambda m: (m.file, m.start, m.end))


def sources() -> list[str]:
    """The files of the tree, as the scratch copy needs them."""
    said = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return [line for line in said.stdout.splitlines() if (ROOT / line).is_file()]


def fingerprint() -> str:
    """Of all that decides a result: the sources, their tests, this tool."""
    kept = (f for f in sources() if f.startswith(("cc/", "crates/", "python/", "tests/", "tools/mutants/", "Cargo.")))
    digest = hashlib.sha256()
    for file in kept:
        if not file.endswith(".md") and file != "tests/mutants/equivalent.toml":
            digest.update(f"{file} {hashlib.sha256((ROOT / file).read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
