"""The notebook of a run, from its first cell to its last; and what holds of every notebook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import notebooks
import tcpknee
from tcpknee.datasets.table import Table
from tcpknee.pages.figure import Figure


@pytest.fixture(scope="module")
def shown() -> list[Any]:
    return notebooks.shown("run.ipynb")


@pytest.mark.parametrize("notebook", sorted(notebooks.FOLDER.glob("*.ipynb")), ids=lambda path: path.name)
def test_nothing_that_a_run_left_is_kept_in_the_notebook(notebook: Path) -> None:
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs") and cell.get("execution_count") is None


def test_a_run_a_table_and_figures_show_themselves(shown: list[Any]) -> None:
    run, flows, names, goodput, lines, paper, data, answer = shown
    assert isinstance(run, tcpknee.Run) and "bbr1" in run._repr_html_()
    assert isinstance(flows, Table) and "<small>bit/s</small>" in flows._repr_html_()
    assert {"goodput", "axes", "timeseries"} <= set(names)
    for figure in (goodput, lines):
        assert isinstance(figure, Figure)
        assert figure._repr_mimebundle_()["image/svg+xml"].startswith("<svg")
    assert paper.read_bytes().startswith(b"%PDF-")
    assert set(data[0]) >= {"series", "t", "v"}
    assert [row["algorithm"] for row in answer.to_pylist()] == ["bbr1", "cubic"]
