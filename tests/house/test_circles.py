"""Files of different folders never lead to each other and back: a folder can be read, moved or tested by itself.
Neither do siblings, so that each file can be read before those that use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rust_uses import are_of_one_folder, circles, uses, without_holders
from sources import ROOT

CRATES = sorted(path.parent.name for path in ROOT.glob("crates/*/src"))
LISTS = {"crates/import/src/programs.rs"}
"""Files that list what stands beside them, and have what those share."""


@pytest.mark.parametrize("crate", CRATES)
def test_no_circle_between_files_of_different_folders(crate: str) -> None:
    found = [circle for circle in circles(uses(crate)) if not are_of_one_folder(circle)]
    told = [" <-> ".join(str(path.relative_to(ROOT)) for path in circle) for circle in found]
    assert not told


@pytest.mark.parametrize("crate", CRATES)
def test_no_circle_between_siblings(crate: str) -> None:
    known = {file: others for file, others in uses(crate).items() if str(file.relative_to(ROOT)) not in LISTS}
    apart = without_holders({file: others & known.keys() for file, others in known.items()})
    assert not [" <-> ".join(str(path.relative_to(ROOT)) for path in circle) for circle in circles(apart)]


def test_uses_are_found() -> None:
    """By `use` with braces, by names written out, and by names that another file shows."""
    source = ROOT / "crates/path/src"
    used = {
        str(file.relative_to(source)): {str(one.relative_to(source)) for one in more}
        for file, more in uses("path").items()
    }
    assert {"packet.rs", "queue/codel.rs", "queue/flows.rs"} <= used["queue/fq_codel.rs"]
    assert "queue/fifo.rs" in used["queue/mod.rs"]
    assert "queue/tail.rs" in used["departures.rs"], "shown by queue/mod.rs"


def test_circle_of_two_folders_is_found_and_one_within_a_folder_is_none() -> None:
    a, b, c = Path("x/a.rs"), Path("x/b.rs"), Path("x/b/c.rs")
    apart = {a: {c}, b: set(), c: {a}}
    assert list(circles(apart)) == [[a, c]]
    assert not are_of_one_folder([a, c])
    within = {a: {b}, b: {a, c}, c: {b}}
    assert list(circles(within)) == [[a, c, b]]
    assert are_of_one_folder([a, b])
    assert are_of_one_folder([b, c])


def test_circle_of_siblings_is_found_and_one_with_what_holds_a_file_is_none() -> None:
    lib, a, b, c = Path("x/lib.rs"), Path("x/a.rs"), Path("x/a/b.rs"), Path("x/c.rs")
    assert not list(circles(without_holders({lib: {a, b}, a: {b, lib}, b: {a}, c: {a, lib}})))
    assert list(circles(without_holders({lib: set(), a: {b, c}, b: {a}, c: {a}}))) == [[a, c]]
