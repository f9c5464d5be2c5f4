"""No file and no crate grows past what can be read in one go. Tests do not count."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from sources import code, program

FILE_LINES_MAX = 500
CRATE_LINES_MAX = 7_000

# What may be longer, each with its reason.
LONG_FILES: dict[str, str] = {"python/tcpknee/_core.pyi": "the types of one native module, which has one stub"}
LARGE_CRATES: dict[str, str] = {}


def lines() -> dict[Path, int]:
    """How long the program in each file of code is; what is styled or laid out by hand is none."""
    of_tests = {path for path in code() if "tests" in path.parts or path.stem in {"tests", "testing"}}
    programs = [path for path in code() if path not in of_tests and path.suffix not in {".css", ".html"}]
    return {path: len(program(path)) for path in programs}


def test_no_file_is_longer_than_500_lines() -> None:
    long = {str(path): count for path, count in lines().items() if count > FILE_LINES_MAX}
    assert long.keys() == LONG_FILES.keys(), f"look for the noun hiding in the file: {long}"


def test_no_crate_is_larger_than_7000_lines() -> None:
    crates: Counter[str] = Counter()
    for path, count in lines().items():
        if path.parts[0] == "crates" and path.parts[2] == "src" and path.suffix == ".rs":
            crates[path.parts[1]] += count
    large = {crate: count for crate, count in crates.items() if count > CRATE_LINES_MAX}
    assert large.keys() == LARGE_CRATES.keys(), f"cut it at its noun: {large}"


def test_programs_of_every_language_are_counted_and_tests_are_not() -> None:
    counted = lines()
    for path in ("cc/bbr1.c", "cc/cc_math.h", "python/tcpknee/say.py", "crates/units/src/rng.rs", "Makefile"):
        assert counted[Path(path)] > 50, path
    assert not [path for path in counted if {"tests", "testing"} & {*path.parts, path.stem}]
    with_tests = Path("crates/units/src/parse/measure.rs")
    assert not [line for line in program(with_tests) if "#[test]" in line]
