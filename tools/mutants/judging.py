"""Judges drawn mutants, several at a time, and writes each result down as soon as it is known."""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import tree
from mutant import Mutant
from parts import BUILD, ROOT
from run import KILLED, SAME, SURVIVED, UNBUILT, Program, Result, first_failure, judge

# Of crates/sim, what is built and run first for a mutant that needs a build of its own.
_QUICK_OF_SIM = {("sim", "lib")}
_PYTHON_TESTS = ("test_stats", "test_expect", "test_verdicts", "test_compose", "test_programs", "test_published")


class Journal:
    """Results by the name of the mutant, kept while nothing changes that decides them."""

    def __init__(self, fingerprint: str) -> None:
        self.path = BUILD / "results.jsonl"
        self.results: dict[str, Result] = {}
        self._lock = threading.Lock()
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        if lines and json.loads(lines[0]) == {"fingerprint": fingerprint}:
            for line in lines[1:]:
                entry = json.loads(line)
                self.results[entry["name"]] = Result(entry["outcome"], entry["by"])
        else:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps({"fingerprint": fingerprint}) + "\n", encoding="utf-8")

    def add(self, mutant: Mutant, result: Result) -> None:
        with self._lock:
            self.results[mutant.name] = result
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"name": mutant.name, **asdict(result)}) + "\n")


class Judge:
    """Has what every mutant needs: a build, a library, folders of the workers."""

    def __init__(self, journal: Journal, workers: int) -> None:
        self.journal = journal
        self.workers = workers
        self.total = self.done = 0
        self._folders: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for n in range(workers):
            self._folders.put(BUILD / f"worker-{n}")

    def all(self, drawn: Mapping[str, list[Mutant]]) -> None:
        """Judges what has no result yet."""
        left = {name: [m for m in found if m.name not in self.journal.results] for name, found in drawn.items()}
        self.total = sum(map(len, left.values()))
        print(f"{self.total} mutants to judge, {self.workers} at a time", flush=True)
        if left.get("stats"):
            self._each(left["stats"], self._python)
        rust = [m for name in ("sim", "queue") for m in left.get(name, [])]
        if rust or left.get("cc"):
            self._compiled(left.get("cc", []), rust)

    def _each(self, mutants: list[Mutant], judged: Callable[[Mutant, Path], Result]) -> None:
        def one(mutant: Mutant) -> None:
            folder = self._folders.get()
            try:
                self._say(mutant, judged(mutant, folder))
            finally:
                self._folders.put(folder)

        with ThreadPoolExecutor(self.workers) as pool:
            for _ in pool.map(one, mutants):
                pass

    def _say(self, mutant: Mutant, result: Result) -> None:
        self.journal.add(mutant, result)
        self.done += 1
        print(
            f"{time.strftime('%H:%M:%S')} {self.done:>4}/{self.total} {result.outcome:<9} {mutant.place}: "
            f"{mutant.change}{f'   ({result.by})' if result.by else ''}",
            flush=True,
        )

    def _python(self, mutant: Mutant, folder: Path) -> Result:
        """A package of links to ours, with one file changed, before ours on the path."""
        package = tree.package_with(mutant, folder / "python")
        tests = [str(ROOT / "tests" / "python" / f"{name}.py") for name in _PYTHON_TESTS]
        environment = {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        failed = first_failure(command, environment, ROOT, 300, "FAILED ")
        return Result(SURVIVED) if failed is None else Result(KILLED, failed.removeprefix("FAILED ").split(" - ")[0])

    def _compiled(self, of_c: list[Mutant], of_rust: list[Mutant]) -> None:
        library = tree.Library()
        numbered = dict(enumerate((m for m in of_rust if m.chosen_at_start), 1))
        programs: list[Program] = []
        while not programs:
            print("building the tests", flush=True)
            ranges = tree.refresh(numbered)
            crates = ["cc"] * bool(of_c) + ["path", "tcp", "sim"] * bool(of_rust)
            programs, broken = tree.cargo(ranges, *(word for crate in crates for word in ("-p", f"knee-{crate}")))
            for number in broken:
                self._say(numbered.pop(number), Result(UNBUILT))
        print("running them without a mutant", flush=True)
        reached = tree.traced(programs)

        def c(mutant: Mutant, folder: Path) -> Result:
            differs = library.with_mutant(mutant, folder)
            if not differs:
                return Result(UNBUILT if differs is None else SAME)
            held = " ".join(library.units_of(mutant))
            environment = tree.ENVIRONMENT | {"LD_LIBRARY_PATH": str(folder), "KNEE_ALGORITHMS": held}
            return judge([(p, p.quick()) for p in programs if p.package == "cc"], environment, tree.TREE)

        numbers = {m.name: n for n, m in numbered.items()}

        def rust(mutant: Mutant, _: Path) -> Result:
            number = numbers[mutant.name]
            which = _reaching(programs, reached.get(number, set()))
            return judge(which, tree.ENVIRONMENT | {"KNEE_MUTANT": str(number)}, tree.TREE)

        self._each(list(numbered.values()), rust)
        self._each(of_c, c)
        self._alone([m for m in of_rust if not m.chosen_at_start], numbered, programs, reached)

    def _alone(
        self,
        mutants: list[Mutant],
        numbered: Mapping[int, Mutant],
        programs: list[Program],
        reached: Mapping[int, set[tuple[str, str, str]]],
    ) -> None:
        """Mutants that need a build of their own, of the tests that come upon their file, the path's first."""
        for mutant in mutants:
            ranges = tree.refresh(numbered, mutant)
            same_file = [reached.get(n, set()) for n, m in numbered.items() if m.file == mutant.file]
            cases = set().union(*same_file)
            known = {(p.package, p.target): p for p in programs}
            targets = {(package, target) for package, target, _ in cases} or set(known)
            of_sim = {program for program in known if program[0] == "sim"}
            stages = [
                {program for program in known if program[0] == "path"},
                {program for program in known if program[0] == "tcp"},
                _QUICK_OF_SIM,
                of_sim - _QUICK_OF_SIM,
            ]
            result = Result(SURVIVED)
            for stage in (stage & targets for stage in stages):
                if not stage:
                    continue
                try:
                    built, _ = tree.cargo(ranges, *_words(stage))
                except tree.BuildFailed:
                    result = Result(UNBUILT)
                    break
                for program in built:
                    program.seconds = known[program.package, program.target].seconds
                which = _reaching(built, cases) if cases else [(p, p.quick()) for p in built]
                result = judge(which, tree.ENVIRONMENT, tree.TREE)
                if result.outcome == KILLED:
                    break
            self._say(mutant, result)


def _words(stage: set[tuple[str, str]]) -> list[str]:
    """Arguments that make cargo build these programs, which belong to one package."""
    words = [word for package in {package for package, _ in stage} for word in ("-p", f"knee-{package}")]
    for _, target in sorted(stage):
        words += ["--lib"] if target == "lib" else ["--test", target]
    return words


def _reaching(programs: list[Program], cases: set[tuple[str, str, str]]) -> list[tuple[Program, list[str]]]:
    """The programs with those of their tests that are among the cases."""
    chosen = [(p, [t for t in p.quick() if (p.package, p.target, t) in cases]) for p in programs]
    return [(p, tests) for p, tests in chosen if tests]
