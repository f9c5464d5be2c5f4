"""Breaks one rule of the product at a time, and says what notices: `make mutations` (docs/ci.md).

Each file of tests/mutations is a sentence, and a patch that breaks what it names. The patch is applied to a copy of the
tree, the module is built there, and what is asked of the whole product is asked anew: the short form of each claim, the
results of real kernels within their tolerances, and the kept results of the simulator to the last digit. The first that
gives another answer than the tree as it is ends it. What notices before the last says what the rule is good for, the
last only that something changed. A question that ends in an error, a build that fails and a process that ends early are
no answers. Rows are kept until the tree or the patch changes, so that what was ended goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATCHES = ROOT / "tests" / "mutations"
BUILD = ROOT / "build" / "mutations"
TREE, TARGET = BUILD / "tree", BUILD / "target"
CHEAP_SECONDS = 10.0
"""What takes longer is asked after all that does not."""

ROWS = BUILD / "rows.json"
ANSWERS_FROM = ("crates/", "cc/", "python/", "gallery/", "reference/", "hosts/", "suites/", "Cargo.toml", "Cargo.lock")
"""Where what the product answers comes from."""
NO_ANSWER = "no answer: "
"""How what proves nothing begins."""

Answer = tuple[str, str, float]
"""What was asked, what came of it, and the seconds that it took."""
NOTICED, SURVIVED, UNDECIDED = "noticed", "survived", "undecided"


@dataclass(frozen=True)
class Row:
    """What came of a patch. `by`: what noticed it first, or why it is not known whether anything does."""

    outcome: str
    by: str
    seconds: float


def patches() -> list[Path]:
    return sorted(PATCHES.glob("*.patch"))


def rule(patch: Path) -> str:
    """The sentence at its head: what is broken."""
    return patch.read_text(encoding="utf-8").partition("\n\n")[0].replace("\n", " ")


def copy_tree() -> str:
    """Makes the copy what the tree is, touching only files that differ; returns a digest of what shapes the answers."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    digest = hashlib.sha256()
    for name in filter(None, listed.split("\0")):
        source, copy = ROOT / name, TREE / name
        if not source.exists() and not source.is_symlink():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            if not copy.is_symlink():
                copy.symlink_to(source.readlink())
            continue
        content = source.read_bytes()
        if name.startswith(ANSWERS_FROM):
            digest.update(name.encode() + b"\0" + content)
        if not copy.exists() or copy.read_bytes() != content:
            shutil.copy(source, copy)
    return digest.hexdigest()


def apply(patch: Path, *, reverse: bool = False) -> None:
    # Outside of the repository for git, so that names are those below the copy.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(TREE.parent)}
    subprocess.run(["git", "apply", *(["-R"] if reverse else []), str(patch)], cwd=TREE, env=environment, check=True)


def build() -> None:
    environment = {"CARGO_BUILD_JOBS": "2", "CARGO_TARGET_DIR": str(TARGET), "CARGO_INCREMENTAL": "1"}
    command = ["cargo", "build", "--quiet", "--locked", "-p", "knee-py", "--lib"]
    subprocess.run(command, cwd=TREE, env={**environment, **os.environ, "CARGO_TARGET_DIR": str(TARGET)}, check=True)
    shutil.copy(TARGET / "debug" / "lib_core.so", TREE / "python" / "tcpknee" / "_core.abi3.so")


def ask(order: list[str]) -> Iterator[Answer]:
    """What the built copy answers, in this order; of an empty one everything. A process of its own imports the copy."""
    environment = {**os.environ, "PYTHONPATH": str(TREE / "python")}
    command = [sys.executable, __file__, "--answer", *order]
    process = subprocess.Popen(command, cwd=TREE, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            name, result, seconds = json.loads(line)
            yield name, result, seconds
        if process.wait() != 0:
            yield "the tool", f"{NO_ANSWER}it ended with {process.returncode}", 0.0
    finally:
        process.kill()
        process.wait()


def answer(order: list[str]) -> None:
    """In the process that imports the copy: a line of JSON for each answer."""
    asked = order or [*claims(), *(f"{kind} {name}" for kind in ("kernel", "kept") for name in references())]
    simulated: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in asked:
            begun = time.monotonic()
            kind, _, what = name.partition(" ")
            try:
                result = _claim(what, Path(folder)) if kind == "claim" else _reference(kind, what, simulated)
            except Exception as error:
                result = f"{NO_ANSWER}{type(error).__name__}"
            print(json.dumps([name, result, time.monotonic() - begun]), flush=True)


def claims() -> list[str]:
    """Those that the simulator can judge."""
    from tcpknee.validation.claims import catalogue

    return [f"claim {name}" for name, claim in catalogue.by_id().items() if "sim" in claim.engines]


def references() -> list[str]:
    return sorted(path.name for path in (TREE / "reference").glob("*.csv"))


def _claim(name: str, folder: Path) -> str:
    from tcpknee.runs.progress import watcher
    from tcpknee.validation.claims import catalogue, judging

    form = judging.Form(quick=True)
    found = judging.judge(
        catalogue.by_id()[name], form, folder, resume=False, workers=None, watcher=watcher(quiet=True)
    )
    return found.verdict


def _reference(kind: str, name: str, simulated: dict[str, object]) -> str:
    """`kernel`: which figures are within their tolerances. `kept`: a digest of all."""
    from tcpknee.runs.pool import Watcher
    from tcpknee.validation.references import beside, reference

    measured = reference.read(TREE / "reference" / name)
    cells = measured.cells()
    if name not in simulated:
        keys = beside.every_repetition(cells)
        simulated[name] = beside.simulate(measured, cells, keys, workers=2, watcher=Watcher())
    found = simulated[name]
    if kind == "kept":
        text = reference.text_of(beside.to_keep(measured, cells, found))  # type: ignore[arg-type]
        return hashlib.sha256(text.encode()).hexdigest()
    verdicts = beside.verdicts(beside.compare(cells, found))  # type: ignore[arg-type]
    return json.dumps([verdict.ok for verdict in verdicts])


def unbroken(digest: str) -> dict[str, tuple[str, float]]:
    """What the tree as it is answers, kept until it changes."""
    path = BUILD / "unbroken.json"
    if path.exists() and (known := json.loads(path.read_text()))["digest"] == digest:
        return {name: (result, seconds) for name, result, seconds in known["answers"]}
    build()
    answers = list(ask([]))
    refuse_errors(answers)
    path.write_text(json.dumps({"digest": digest, "answers": answers}))
    return {name: (result, seconds) for name, result, seconds in answers}


def refuse_errors(answers: list[Answer]) -> None:
    """Nothing can be told from the tree as it is, where that answers nothing."""
    if failed := [f"{name}: {result}" for name, result, _ in answers if result.startswith(NO_ANSWER)]:
        sys.exit("The tree as it is: " + "; ".join(failed) + ". Mend that first: nothing was kept.")


def in_order(answers: dict[str, tuple[str, float]]) -> list[str]:
    """The cheapest first; of what is cheap and of what is dear the kept results, which any change of behaviour changes,
    last. A claim that is not reproduced as it is cannot turn red."""

    def place(name: str) -> tuple[bool, bool, float]:
        kind, _, file = name.partition(" ")
        seconds = answers[f"kernel {file}" if kind == "kept" else name][1]
        return seconds > CHEAP_SECONDS, kind == "kept", seconds

    asked = (name for name, (result, _) in answers.items() if not name.startswith("claim") or result == "reproduced")
    return sorted(asked, key=place)


def tried(patch: Path, answers: dict[str, tuple[str, float]]) -> Row:
    """Builds the copy with the patch, and asks it until it is noticed."""
    apply(patch)
    begun = time.monotonic()
    try:
        build()
        begun = time.monotonic()
        order = in_order(answers)
        return judged(order, answers, ask(order), begun)
    except subprocess.CalledProcessError:
        return Row(UNDECIDED, "it does not build", time.monotonic() - begun)
    finally:
        apply(patch, reverse=True)


def judged(order: list[str], answers: dict[str, tuple[str, float]], asked: Iterable[Answer], begun: float) -> Row:
    left, failed = list(order), ""
    for name, result, _ in asked:
        if result.startswith(NO_ANSWER):
            failed = failed or f"{name}: {result}"
            continue
        if result != answers[name][0]:
            by = name if name.startswith("kept") else f"{name}: {result}"
            return Row(NOTICED, by, time.monotonic() - begun)
        left.remove(name)
    if left:
        return Row(UNDECIDED, failed or f"{NO_ANSWER}{len(left)} not asked", time.monotonic() - begun)
    return Row(SURVIVED, "**nothing**", time.monotonic() - begun)


def rows(chosen: list[Path], digest: str, answers: dict[str, tuple[str, float]]) -> Iterator[tuple[Path, Row]]:
    """Of each patch. What is known of this tree and this patch is not tried again."""
    known = json.loads(ROWS.read_text()) if ROWS.exists() else {}
    for patch in chosen:
        key = hashlib.sha256(digest.encode() + patch.read_bytes()).hexdigest()
        if known.get(patch.stem, {}).get("key") != key:
            row = tried(patch, answers)
            if row.outcome == UNDECIDED:
                yield patch, row
                continue
            known[patch.stem] = {"key": key, "row": asdict(row)}
            ROWS.write_text(json.dumps(known, indent=1))
        yield patch, Row(**known[patch.stem]["row"])


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--answer", nargs="*", help=argparse.SUPPRESS)
    arguments.add_argument("--only", nargs="*", metavar="NAME", help="names of patches, without .patch")
    given = arguments.parse_args()
    if given.answer is not None:
        answer(given.answer)
        return 0
    chosen = [patch for patch in patches() if not given.only or patch.stem in given.only]
    digest = copy_tree()
    answers = unbroken(digest)
    print("| broken | noticed by | s |\n|---|---|---:|", flush=True)
    outcomes = []
    for patch, row in rows(chosen, digest, answers):
        outcomes.append(row.outcome)
        print(f"| `{patch.stem}`: {rule(patch)} | {row.by} | {row.seconds:.0f} |", flush=True)
    count = {outcome: outcomes.count(outcome) for outcome in (NOTICED, SURVIVED, UNDECIDED)}
    print(f"\nOf {len(chosen)}: " + ", ".join(f"{many} {outcome}" for outcome, many in count.items()) + ".")
    return 0 if count[NOTICED] == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
