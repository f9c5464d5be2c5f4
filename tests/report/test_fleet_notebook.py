"""The example notebook runs from its first cell to its last, and shows in each what it is for."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from tcpknee.pages.fleet_report import Figure, FleetReport

NOTEBOOK = Path(__file__).parents[2] / "docs/notebooks/fleet.ipynb"


@pytest.fixture(scope="module")
def shown() -> list[Any]:
    """What the last expression of each cell gave, in one process and without the machinery of Jupyter."""
    names: dict[str, Any] = {}
    values = []
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop()
            exec(compile(tree, cell["id"], "exec"), names)
            assert isinstance(last, ast.Expr), f"{cell['id']} shows nothing"
            values.append(eval(compile(ast.Expression(last.value), cell["id"], "eval"), names))
    return values


def test_nothing_that_a_run_left_is_kept_in_the_notebook() -> None:
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs") and cell.get("execution_count") is None


def test_every_figure_shows_itself_without_a_network(shown: list[Any]) -> None:
    figures = [value for value in shown if isinstance(value, Figure)]
    assert len(figures) == 3
    for figure in figures:
        bundle = figure._repr_mimebundle_()
        assert bundle["image/svg+xml"].startswith("<svg") and "http" not in bundle["text/plain"]
        [drawn] = [value for kind, value in bundle.items() if kind.startswith("application/vnd.vegalite.v")]
        assert "mark" in json.dumps(drawn)


def test_the_report_shows_verdicts_and_lists_its_figures(shown: list[Any]) -> None:
    [report] = [value for value in shown if isinstance(value, FleetReport)]
    html = report._repr_html_()
    assert "delivery rate P50" in html and "bbr1" in html and "<script" not in html
    assert str(report.comparison) == repr(report)
    assert {name.replace("-", "_") for name in report.figures} <= set(dir(report))
    with pytest.raises(AttributeError, match=r"has no attribute 'cfd'; its figures are forest, throughput, cdf"):
        report.cfd  # noqa: B018
