"""The example notebook runs from its first cell to its last, and shows in each what it is for."""

from __future__ import annotations

import json
from typing import Any

import pytest

import notebooks
from tcpknee.pages.figure import Figure
from tcpknee.pages.fleet_report import FleetReport


@pytest.fixture(scope="module")
def shown() -> list[Any]:
    return notebooks.shown("fleet.ipynb")


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
