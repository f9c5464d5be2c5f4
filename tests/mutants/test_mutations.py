"""The rules that `make mutations` breaks (tests/mutations): each still applies, and says what it breaks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import mutations  # noqa: E402

PATCHES = mutations.patches()


def test_there_are_many() -> None:
    assert len(PATCHES) >= 20


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.stem)
def test_each_still_applies_to_the_product_alone_and_says_what_it_breaks(patch: Path) -> None:
    checked = subprocess.run(["git", "apply", "--check", str(patch)], cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, f"make it anew: {checked.stderr}"
    changed = [line[6:] for line in patch.read_text().splitlines() if line.startswith("+++ b/")]
    assert changed and all(name.startswith(("crates/", "cc/")) for name in changed)
    assert mutations.rule(patch).endswith(".") and not mutations.rule(patch).startswith("diff")


def test_cheap_questions_come_first_and_kept_results_last() -> None:
    r = "reproduced"
    answers = {"kept a": ("1", 0.0), "claim slow": (r, 99.0), "claim a": (r, 5.0), "kernel a": ("y", 2.0)}
    answers["claim b"] = ("undecided", 1.0)
    assert mutations.in_order(answers) == ["kernel a", "claim a", "kept a", "claim slow"]
