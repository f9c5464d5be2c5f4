"""The files of reference/, and the simulator's results beside them (docs/validation/against-linux.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tcpknee.runs.pool import Key, Watcher
from tcpknee.validation.references import beside, reference
from tcpknee.validation.references.reference import Cell

FOLDER = Path(__file__).parents[2] / "reference"
FILES = sorted(path.name for path in FOLDER.glob("*.csv"))


def test_there_are_results_of_single_flows_and_of_two() -> None:
    assert {"linux-6.12.csv", "linux-6.12-two-flows.csv"} <= set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_every_repetition_of_every_cell_is_kept(name: str) -> None:
    cells = reference.read(FOLDER / name).cells()
    kept = beside.kept(cells, reference.read(FOLDER / "simulated" / name))
    assert sorted(kept) == beside.every_repetition(cells), "run `make reference-tables`"


def one_of_each(cells: Sequence[Cell]) -> list[Key]:
    """A repetition of each cell, another one from cell to cell."""
    return [(i, i % beside.repetitions(cell)) for i, cell in enumerate(cells)]


@pytest.mark.slow("every cell that was measured is simulated")
@pytest.mark.parametrize("chosen", [one_of_each, pytest.param(beside.every_repetition, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", FILES)
def test_what_is_kept_is_what_the_simulator_gives(name: str, chosen: Callable[[Sequence[Cell]], list[Key]]) -> None:
    measured = reference.read(FOLDER / name)
    cells = measured.cells()
    kept = beside.kept(cells, reference.read(FOLDER / "simulated" / name))
    keys = chosen(cells)
    given = beside.simulate(measured, cells, keys, workers=2, watcher=Watcher())
    # As the file writes them.
    again = beside.kept(cells, reference.parse(reference.text_of(beside.to_keep(measured, cells, given)), name))
    assert again == {key: kept[key] for key in keys}, "run `make reference-tables`, and say in CHANGELOG.md why"


@pytest.mark.parametrize("name", FILES)
def test_every_value_can_be_compared(name: str) -> None:
    cells = reference.read(FOLDER / name).cells()
    compared = beside.compare(cells, beside.kept(cells, reference.read(FOLDER / "simulated" / name)))
    assert compared
    assert all(entry.difference is not None for entry in compared)
