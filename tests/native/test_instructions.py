"""The engine's instructions beside the last commit's: tools/instructions.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import instructions

BEFORE = {"one-flow": 2900.0, "hundred-flows": 3900.0}


@pytest.mark.slow("it builds the engine of this tree and of the last commit for speed")
def test_the_engine_takes_at_most_5_pct_more_instructions_than_in_the_last_commit() -> None:
    try:
        found = instructions.counts()
        # What has not changed takes what it took.
        lines, refused = instructions.compared(*found) if found else ([], "")
    except instructions.NothingToCompareError as why:
        pytest.skip(str(why))
    print(*lines, sep="\n")
    assert not refused


def test_a_slower_engine_is_refused_by_the_name_of_the_cell() -> None:
    lines, refused = instructions.compared({**BEFORE, "one-flow": 3050.0}, BEFORE)
    assert lines[0] == "one-flow: 3050 instructions per data packet, 2900 in the last commit (+5.2 %)"
    assert lines[0] in refused and lines[1] not in refused


def test_a_faster_engine_and_one_slower_by_less_than_5_pct_pass() -> None:
    lines, refused = instructions.compared({"one-flow": 3040.0, "hundred-flows": 1000.0}, BEFORE)
    assert not refused
    assert [line.partition("(")[2] for line in lines] == ["+4.8 %)", "-74.4 %)"]


def test_cells_that_only_one_of_both_has_are_not_compared() -> None:
    lines, refused = instructions.compared({"one-flow": 2900.0, "new": 9e9}, BEFORE)
    assert (len(lines), refused) == (1, "")
    with pytest.raises(instructions.NothingToCompareError):
        instructions.compared({"new": 1.0}, BEFORE)
