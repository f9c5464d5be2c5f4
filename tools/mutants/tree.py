"""A scratch copy of the tree, in which the algorithms are a shared library and mutants of Rust are chosen at start.

One build of the tests of crates/cc, crates/path, crates/tcp and crates/sim serves all mutants: a mutant of C is another
shared library, one of Rust a number in the environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import clike
from mutant import Mutant
from parts import BUILD, ROOT, sources
from run import Program

TREE = BUILD / "tree"
HOST = BUILD / "host"
CRATES = ("cc", "path", "tcp", "sim")
LIBRARY = "libknee_algorithms.so"

_BUILD_RS = f"""fn main() {{
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-search=native={HOST}");
    println!("cargo::rustc-link-lib=dylib=knee_algorithms");
}}
"""

# `KNEE_MUTANT` is the number of a mutant, or a file into which each test writes the mutants that it comes upon.
CHOOSER = """
mod mutant {
    use std::cell::RefCell;
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    const UNREAD: u32 = u32::MAX;
    const TRACED: u32 = u32::MAX - 1;
    static CHOSEN: AtomicU32 = AtomicU32::new(UNREAD);
    thread_local! { static SEEN: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) }; }

    #[inline]
    pub(crate) fn is(n: u32) -> bool {
        let chosen = CHOSEN.load(Ordering::Relaxed);
        if chosen < TRACED { chosen == n } else { looked_up(n) }
    }

    #[cold]
    fn looked_up(n: u32) -> bool {
        static NAMED: OnceLock<String> = OnceLock::new();
        let named = NAMED.get_or_init(|| std::env::var("KNEE_MUTANT").unwrap_or_default());
        if CHOSEN.load(Ordering::Relaxed) == UNREAD {
            let traced = if named.is_empty() { 0 } else { TRACED };
            CHOSEN.store(named.parse().unwrap_or(traced), Ordering::Relaxed);
            return is(n);
        }
        SEEN.with_borrow_mut(|seen| {
            if seen.len() <= n as usize {
                seen.resize(n as usize + 1, false);
            }
            if !std::mem::replace(&mut seen[n as usize], true) {
                let line = format!("{}\\t{n}\\n", std::thread::current().name().unwrap_or_default());
                let mut file = std::fs::OpenOptions::new().append(true).create(true).open(named).unwrap();
                file.write_all(line.as_bytes()).unwrap();
            }
        });
        false
    }
}
"""


class BuildFailed(Exception):
    """The scratch tree does not build, for reasons other than a mutant."""


def put(path: Path, text: str) -> None:
    """Writes a file whose content changes; cargo goes by the time of writing."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def refresh(mutants: Mapping[int, Mutant], alone: Mutant | None = None) -> dict[str, list[tuple[int, int, int]]]:
    """Brings the copy up to date, with these mutants in it; says where each is (first byte, last byte, number)."""
    wanted = {f for f in sources() if f.startswith(("cc/", "crates/", "gallery/", "tests/", "docs/", "Cargo."))}
    for path in [p for p in TREE.rglob("*") if p.is_file() and str(p.relative_to(TREE)) not in wanted]:
        path.unlink()
    ranges = {}
    for file in wanted:
        target = TREE / file
        if file == "crates/cc/build.rs":
            put(target, _BUILD_RS)
        elif file.startswith(("crates/path/src/", "crates/sim/src/", "crates/tcp/src/")):
            here = {n: m for n, m in mutants.items() if m.file == file}
            source = (ROOT / file).read_text(encoding="utf-8")
            text, ranges[file] = with_choices(source, here, alone if alone and alone.file == file else None)
            put(target, text + CHOOSER * file.endswith("/src/lib.rs"))
        elif not target.exists() or target.read_bytes() != (ROOT / file).read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, target)
    for crate in CRATES:
        # Where proptest would keep a finding, so that one mutant's does not kill the next.
        put(TREE / "crates" / crate / "proptest-regressions", "")
    return ranges


def with_choices(
    source: str, mutants: Mapping[int, Mutant], alone: Mutant | None
) -> tuple[str, list[tuple[int, int, int]]]:
    """A function with mutants in it holds its body once for each, and then as it is."""
    out, at, ranges = "", 0, []
    splices: list[tuple[int, int, list[tuple[int, str]], str]] = []
    for body in clike.bodies(source):
        here = [(n, m) for n, m in mutants.items() if body.start <= m.start < body.end]
        if here:
            rest = source[body.start : body.end]
            cases = [
                (n, m.applied(source)[body.start : len(m.replacement) - len(m.original) + body.end]) for n, m in here
            ]
            splices.append((body.start, body.end, cases, rest))
    if alone is not None:
        splices.append((alone.start, alone.end, [], alone.replacement))
    for start, end, cases, rest in sorted(splices):
        out += source[at:start]
        for number, text in cases:
            out += f" if crate::mutant::is({number}) {{"
            first = len(out.encode())
            out += text
            ranges.append((first, len(out.encode()), number))
            out += "} else"
        out += f" {{{rest}}}" if cases else rest
        at = end
    return out + source[at:], ranges


def cargo(ranges: Mapping[str, list[tuple[int, int, int]]], *which: str) -> tuple[list[Program], set[int]]:
    """Builds test programs; without mutants that do not compile, which it names instead of programs."""
    command = ["cargo", "test", "--no-run", "--locked", "--offline"]
    command += ["--message-format=json", "--target-dir", str(BUILD / "target"), *which]
    environment = os.environ | {"LD_LIBRARY_PATH": str(HOST)}
    built = subprocess.run(command, cwd=TREE, env=environment, capture_output=True, text=True, check=False)
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    if built.returncode:
        told = [m["message"] for m in messages if m.get("reason") == "compiler-message"]
        told = [m for m in told if m["level"] == "error"]
        numbers = {
            number
            for message in told
            for span in message["spans"]
            for first, last, number in ranges.get(span["file_name"], [])
            if span["is_primary"] and first <= span["byte_start"] < last
        }
        if not numbers:
            raise BuildFailed("\n".join(m["rendered"] for m in told[:3]) or built.stderr[-3000:])
        return [], numbers
    programs = []
    for m in messages:
        if m.get("reason") == "compiler-artifact" and m.get("executable") and m["profile"]["test"]:
            package = Path(m["manifest_path"]).parent.name
            target = "lib" if "lib" in m["target"]["kind"] else m["target"]["name"]
            programs.append(Program(package, target, Path(m["executable"])))
    return programs, set()


ENVIRONMENT = {"PROPTEST_RNG_SEED": "1", "PROPTEST_MAX_SHRINK_ITERS": "0", "LD_LIBRARY_PATH": str(HOST)}


# Golden rows are asked for only of the algorithms that a mutant is in: most often one, so that is timed.
ONE_ALGORITHM = "bbr3"


def traced(programs: list[Program]) -> dict[int, set[tuple[str, str, str]]]:
    """Runs each program without a mutant: its tests, its time, and which tests come upon which mutant."""
    reached: dict[int, set[tuple[str, str, str]]] = {}
    trace = BUILD / "trace"
    for program in programs:
        trace.unlink(missing_ok=True)
        cwd = TREE / "crates" / program.package
        environment = os.environ | ENVIRONMENT | {"KNEE_MUTANT": str(trace), "KNEE_ALGORITHMS": ONE_ALGORITHM}
        command = [str(program.path), "--test-threads=2"]
        # Two threads: with one, libtest runs the tests on the main thread, which has no test's name.
        with subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True) as ran:
            assert ran.stdout is not None
            program.seconds = _durations(ran.stdout)
        if ran.returncode:
            raise BuildFailed(f"{program.path} fails without a mutant")
        for line in trace.read_text(encoding="utf-8").splitlines() if trace.exists() else []:
            test, number = line.split("\t")
            reached.setdefault(int(number), set()).add((program.package, program.target, test))
    return reached


def _durations(lines: Iterable[str]) -> dict[str, float]:
    """How long each test took, from when its line was printed: a test begins when one of two threads is free."""
    ended: list[tuple[str, float]] = []
    free = [time.monotonic()] * 2
    for line in lines:
        if line.startswith("test ") and " ... " in line:
            ended.append((line.removeprefix("test ").split(" ... ")[0], time.monotonic()))
    durations = {}
    begins = dict(zip(sorted(name for name, _ in ended), free + [at for _, at in ended], strict=False))
    for name, at in ended:
        durations[name] = at - begins[name]
    return durations


class Library:
    """The algorithms as a shared library, unchanged and with one mutant."""

    def __init__(self) -> None:
        listed = [line for line in (ROOT / "cc/algorithms.def").read_text().splitlines() if line.startswith("CC_ALG")]
        self.units = ["cc_native", *(line[line.index("(") + 1 : line.index(")")] for line in listed)]
        self.objects = HOST / "objects"
        shutil.rmtree(HOST, ignore_errors=True)
        self.objects.mkdir(parents=True)
        self.needs: dict[str, set[str]] = {}
        for unit in self.units:
            command = ["cc", "-MM", f"{unit}.c"]
            said = subprocess.run(command, cwd=ROOT / "cc", check=True, capture_output=True, text=True)
            self.needs[unit] = set(said.stdout.replace("\\\n", " ").split()[1:])
            assert _compile(ROOT / "cc", unit, self.objects)
        _link([self.objects / f"{unit}.o" for unit in self.units], HOST / LIBRARY)

    def units_of(self, mutant: Mutant) -> list[str]:
        """The algorithms that this file is part of."""
        return [unit for unit, needs in self.needs.items() if Path(mutant.file).name in needs]

    def with_mutant(self, mutant: Mutant, folder: Path) -> bool | None:
        """Makes the library in the folder; None if it does not build, False if the machine code is the same."""
        shutil.rmtree(folder, ignore_errors=True)
        # Links, so that a header includes what is beside it here.
        _linked(ROOT / "cc", folder / "cc", (Path(mutant.file).name,), mutant)
        objects, differs = [], False
        for unit in self.units:
            objects.append(self.objects / f"{unit}.o")
            if unit in self.units_of(mutant):
                if not _compile(folder / "cc", unit, folder):
                    return None
                if (folder / f"{unit}.o").read_bytes() != objects[-1].read_bytes():
                    objects[-1], differs = folder / f"{unit}.o", True
        if differs:
            _link(objects, folder / LIBRARY)
        return differs


def _compile(folder: Path, unit: str, into: Path) -> bool:
    """As crates/cc/build.rs does, except that a mutant may deserve a warning."""
    command = ["cc", "-std=gnu11", "-O2", "-fPIC", "-w", "-c", f"{unit}.c", "-o", str(into / f"{unit}.o")]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def _link(objects: list[Path], into: Path) -> None:
    subprocess.run(["cc", "-shared", "-o", into, *objects], check=True)


def package_with(mutant: Mutant, into: Path) -> Path:
    """Our Python package, anew: links to each file, but for the one that the mutant changes."""
    package = into / "tcpknee"
    shutil.rmtree(package, ignore_errors=True)
    ours = ROOT / "python" / "tcpknee"
    _linked(ours, package, Path(mutant.file).relative_to("python/tcpknee").parts, mutant)
    return package


def _linked(ours: Path, copy: Path, changed: tuple[str, ...], mutant: Mutant) -> None:
    """A folder of links to ours, but for the file below it that the mutant changes."""
    copy.mkdir(parents=True)
    for path in ours.iterdir():
        if path.name != changed[0]:
            (copy / path.name).symlink_to(path)
        elif path.is_dir():
            _linked(path, copy / path.name, changed[1:], mutant)
        else:
            text = mutant.applied(path.read_text(encoding="utf-8"))
            (copy / path.name).write_text(text, encoding="utf-8")
