"""Files of different folders never lead to each other and back: a folder can be read, moved or tested by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from rust_uses import are_of_one_folder, circles, uses
from sources import ROOT

CRATES = sorted(path.parent.name for path in ROOT.glob("crates/*/src"))


@pytest.mark.parametrize("crate", CRATES)
def test_no_circle_between_files_of_different_folders(crate: str) -> None:
    found = [circle for circle in circles(uses(crate)) if not are_of_one_folder(circle)]
    told = [" <-> ".join(str(path.relative_to(ROOT)) for path in circle) for circle in found]
    assert not told


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
