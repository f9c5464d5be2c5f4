"""The scripts of reference/, as far as they go without a kernel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "reference"))

import matrices
import measure
from tcpknee.runs import api
from tcpknee.validation.references import reference

EVERY = [cell for suite in matrices.SUITES.values() for cell in suite()]


def test_every_algorithm_has_nine_cells_and_no_cell_is_there_twice() -> None:
    assert len(set(matrices.ALGORITHMS)) == 17
    assert [cell.group for cell in matrices.algorithms()].count("cubic") == 9
    keys = [reference.key_of(cell.suite, cell.settings, cell.flows) for cell in EVERY]
    assert len(set(keys)) == len(keys)


def test_every_cell_of_every_suite_is_a_scenario_of_its_kernel() -> None:
    for cell in EVERY:
        found = measure.scenario(cell, measure.hosts("7.2"))
        [parsed] = api.parse(found, "cell").cells
        assert parsed["kernel"] == "7.2"
        assert [flow["algorithm"] for flow in parsed["flows"]] == [flow["flow.algorithm"] for flow in cell.flows]


def test_runs_that_the_file_holds_are_kept_and_rows_stand_as_the_matrices_have_them(tmp_path: Path) -> None:
    first, second = EVERY[0], EVERY[1]
    facts = {"kernel": "6.12.1", "hz": "250", "clock": "virtual"}
    metrics = {"goodput_bits_per_sec": 1.0, "srtt_us_p50": 2.0, "retransmit_pct": 0.0}
    store = measure.Store(tmp_path / "r.csv", facts, matrices.HOSTS)
    for cell in (second, first):
        assert not store.has(cell, 1)
        store.put(cell, 1, [metrics])
    again = measure.Store(tmp_path / "r.csv", facts, matrices.HOSTS)
    assert again.has(first, 1)
    assert again.has(second, 1)
    assert not again.has(first, 2)
    read = reference.read(tmp_path / "r.csv")
    assert [cell.settings for cell in read.cells()] == [first.settings, second.settings]
    with pytest.raises(SystemExit, match="choose another --output"):
        measure.Store(tmp_path / "r.csv", {**facts, "kernel": "6.1.1"}, matrices.HOSTS)
