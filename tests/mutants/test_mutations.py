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


ANSWERS = {"claim a": ("reproduced", 1.0), "claim b": ("reproduced", 1.0)}
ORDER = ["claim a", "claim b"]


def outcome(*asked: tuple[str, str]) -> tuple[str, str]:
    row = mutations.judged(ORDER, ANSWERS, [(name, result, 0.0) for name, result in asked], 0.0)
    return row.outcome, row.by


def test_only_another_answer_is_noticed_and_an_error_is_none() -> None:
    a, b, failed = (("claim a", "reproduced"), ("claim b", "reproduced"), ("claim a", "no answer: PanicException"))
    assert outcome(a, ("claim b", "partly")) == ("noticed", "claim b: partly")
    assert outcome(a, b) == ("survived", "**nothing**")
    assert outcome(a) == ("undecided", "no answer: 1 not asked")
    assert outcome(a, ("the tool", "no answer: it ended with 1"))[0] == "undecided"
    assert outcome(failed, b) == ("undecided", "claim a: no answer: PanicException")
    assert outcome(failed, ("claim b", "partly")) == ("noticed", "claim b: partly")


def test_a_tree_that_answers_nothing_is_refused() -> None:
    mutations.refuse_errors([("claim a", "partly", 1.0)])
    with pytest.raises(SystemExit, match="claim b: no answer: ValueError"):
        mutations.refuse_errors([("claim a", "partly", 1.0), ("claim b", "no answer: ValueError", 1.0)])


def test_a_row_that_is_decided_is_kept_until_tree_or_patch_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutations, "ROWS", tmp_path / "rows.json")
    patches = [tmp_path / "a.patch", tmp_path / "b.patch"]
    for patch in patches:
        patch.write_text(patch.stem)
    made: list[str] = []

    def tried(patch: Path, answers: object) -> mutations.Row:
        made.append(patch.stem)
        return mutations.Row("noticed" if patch.stem == "a" else "undecided", "", 1.0)

    monkeypatch.setattr(mutations, "tried", tried)
    for digest in ("one", "one", "two"):
        assert [row.outcome for _, row in mutations.rows(patches, digest, {})] == ["noticed", "undecided"]
    patches[0].write_text("changed")
    assert len([*mutations.rows(patches, "two", {})]) == 2
    assert made == ["a", "b", "b", "a", "b", "a", "b"]
