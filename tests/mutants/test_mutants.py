"""The tool that mutates the sources (tools/mutants), on toys: what it finds, that the draw is stable, who is killed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "mutants"))

import clike  # noqa: E402
import parts  # noqa: E402
import pylike  # noqa: E402
import run  # noqa: E402
import tree  # noqa: E402
from equivalent import Equivalents  # noqa: E402

C = """\
/* 7 < 8 in a comment */
#if 1 > 0
#define LEAST 4u
_Static_assert(sizeof(int) == 4, "4 bytes");
static u32 toy(u32 a)
{
	if (a < LEAST && a)
		return a - 0x10; // 9
	return *p;
}
"""
RUST = """\
const LEAST: u32 = 4;
/// Twice 7, or 8.
fn toy(a: u32) -> u32 {
    debug_assert!(a < 99, "{} < 99", a);
    let pair: Option<(u32, Vec<u32>)> = None;
    if a >= 10 { a + 1 } else if let Some(p) = pair { p.0 } else { 0 }
}
#[cfg(test)]
mod tests {
    #[test]
    fn five_stays_small() { assert_eq!(super::toy(5), 0); }
    #[test]
    fn ten_grows() { assert!(super::toy(10) > 10); }
}
"""
PYTHON = '''\
def toy(a: Literal[3], b):
    """At most 5."""
    if a < 2 and b:
        raise ValueError(f"{a} < {9}")
    return a - 1
'''


def changes(found: list[clike.Mutant]) -> set[tuple[str, str]]:
    return {(m.original, m.replacement) for m in found}


def test_of_c_no_comment_condition_of_the_preprocessor_or_static_assertion_is_mutated() -> None:
    found = clike.in_c("toy.c", C)
    condition = "a < LEAST && a"
    assert changes(found) == {
        ("4u", "5u"), ("4u", "3u"), ("4u", "8u"),
        (condition, f"!({condition})"), (condition, "1"), (condition, "0"), ("<", "<="), ("&&", "||"),
        ("-", "+"), ("0x10", "0x11"), ("0x10", "0xf"), ("0x10", "0x20"),
    }  # fmt: skip
    assert {m.function for m in found} == {"", "toy"}
    mended = next(m for m in found if m.original == "&&").applied(C)
    assert mended == C.replace("&&", "||")


def test_of_rust_no_type_assertion_or_test_is_mutated() -> None:
    found = clike.in_rust("toy.rs", RUST)
    assert changes(found) == {
        ("4", "5"), ("4", "3"), ("4", "8"),
        ("a >= 10", "!(a >= 10)"), ("a >= 10", "true"), ("a >= 10", "false"), (">=", ">"),
        ("10", "11"), ("10", "9"), ("10", "20"), ("+", "-"), ("1", "2"), ("1", "0"), ("0", "1"),
    }  # fmt: skip
    # A constant is known while compiling.
    assert {m.original for m in found if not m.chosen_at_start} == {"4"}


def test_of_python_no_annotation_or_message_is_mutated() -> None:
    condition = "a < 2 and b"
    assert changes(pylike.in_python("toy.py", PYTHON)) == {
        (condition, f"(not ({condition}))"), (condition, "True"), (condition, "False"), ("<", "<="), ("and", "or"),
        ("2", "3"), ("2", "1"), ("2", "4"), ("-", "+"), ("1", "2"), ("1", "0"),
    }  # fmt: skip


def test_the_draw_follows_from_the_seed_and_takes_of_each_part_as_much_as_there_is() -> None:
    draw = parts.drawn(650, 1)
    assert draw == parts.drawn(650, 1)
    assert draw != parts.drawn(650, 2)
    of_all = {part.name: len(part.mutants()) for part in parts.PARTS}
    for name, mutants in draw.items():
        assert len(mutants) / 650 == pytest.approx(of_all[name] / sum(of_all.values()), abs=0.01)
        names = [m.name for m in mutants]
        assert len(names) == len(set(names))


def test_a_line_before_it_changes_neither_the_name_of_a_mutant_nor_the_draw() -> None:
    found = clike.in_c("toy.c", C)
    moved = clike.in_c("toy.c", "\n" + C)
    assert [m.name for m in found] == [m.name for m in moved]
    assert [replace(m, line=0, start=0, end=0) for m in found] == [replace(m, line=0, start=0, end=0) for m in moved]


def test_one_build_has_a_mutant_that_is_killed_and_one_that_survives(tmp_path: Path) -> None:
    numbered = dict(enumerate(clike.in_rust("toy.rs", RUST), 1))
    numbered = {n: m for n, m in numbered.items() if m.chosen_at_start}
    text, ranges = tree.with_choices(RUST, numbered, None)
    assert len(ranges) == len(numbered)
    (tmp_path / "crates" / "toy").mkdir(parents=True)
    source, program = tmp_path / "toy.rs", tmp_path / "toy"
    source.write_text(text.replace("fn toy", "pub fn toy") + tree.CHOOSER)
    subprocess.run(["rustc", "--test", "-Awarnings", "-o", program, source], check=True, capture_output=True)
    toy = run.Program("toy", "lib", program, {"tests::five_stays_small": 0.0, "tests::ten_grows": 0.0})
    results = {
        (m.original, m.replacement): run.judge([(toy, toy.seconds)], {"KNEE_MUTANT": str(n)}, tmp_path)
        for n, m in numbered.items()
    }
    assert results[">=", ">"] == run.Result(run.KILLED, "toy/lib: tests::ten_grows")
    # Nothing is tried between 5 and 10.
    assert results["10", "9"] == run.Result(run.SURVIVED)


def test_a_test_that_hangs_kills(tmp_path: Path) -> None:
    hangs = ["sh", "-c", "echo 'test a ... ok'; while :; do :; done"]
    assert run.first_failure(hangs, {}, tmp_path, 1, "... FAILED") == run.TOO_LONG
    assert run.first_failure(["sh", "-c", "echo 'test a ... ok'"], {}, tmp_path, 60, "... FAILED") is None


def test_an_equivalent_without_its_reason_is_refused(tmp_path: Path) -> None:
    listed = tmp_path / "equivalent.toml"
    listed.write_text('[[equivalent]]\nfile = "a.c"\nfunction = "f"\ntext = "x"\nchange = "1 -> 2"\n')
    with pytest.raises(SystemExit, match="entry 1: expected the texts"):
        Equivalents(listed)


def test_every_listed_equivalent_is_a_mutant_of_the_sources() -> None:
    listed = Equivalents(ROOT / "tests" / "mutants" / "equivalent.toml").listed()
    there = {m.key for part in parts.PARTS for m in part.mutants()}
    assert listed <= there, "these lines have changed: judge their mutants anew"


def test_a_mutant_in_a_room_is_what_python_imports(tmp_path: Path) -> None:
    [stats] = [part for part in parts.PARTS if part.name == "stats"]
    mutant = next(mutant for mutant in stats.mutants() if mutant.file.endswith("evidence/stats.py"))
    package = tree.package_with(mutant, tmp_path)
    words = [sys.executable, "-c", "import tcpknee.runs.summary, tcpknee.evidence.stats as m; print(m.__file__)"]
    environment = {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    imported = Path(done.stdout.strip())
    assert imported == package / "evidence" / "stats.py"
    assert imported.read_text() == mutant.applied((ROOT / mutant.file).read_text())
