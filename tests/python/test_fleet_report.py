"""`knee fleet report`: the page of a comparison, one figure of it, and what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from drawn_fleets import fleet, written
from support import Ended
from tcpknee import fleet_report

Call = Callable[..., Ended]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("drawn") / "edge", fleet(1500))


def test_the_page_is_written_where_it_is_asked_for(call: Call, drawn: Path, tmp_path: Path) -> None:
    ended = call("fleet", "report", drawn, "-q", "--out", "there/edge.html")
    assert (ended.code, ended.out) == (0, "Report: there/edge.html\n")
    page = (tmp_path / "there/edge.html").read_text(encoding="utf-8")
    assert "bbr1 against cubic, at " in page and 'data-figure="distance"' in page


def test_one_figure_is_written_as_its_format_says(call: Call, drawn: Path, tmp_path: Path) -> None:
    ended = call("fleet", "report", drawn, "-q", "--figure", "forest", "--format", "png", "--json")
    told = json.loads(ended.out)
    assert ended.code == 0 and told["file"] == "forest.png"
    assert {"forest", "cdf", "inflight"} <= set(told["figures"]) and "nginx" not in told["figures"]
    assert (tmp_path / "forest.png").read_bytes().startswith(b"\x89PNG")


def test_options_are_those_of_the_comparison(drawn: Path) -> None:
    report = fleet_report(drawn, min_bytes="3MB", triggered=True)
    kept = report.comparison.counts.kept
    drawn_of = report.inflight().altair().to_dict()["datasets"]["inflight"]
    cells = [row for row in drawn_of if "log_n" in row]
    assert {row["cohort"] for row in cells} == set(kept)
    assert sum(round(math.exp(row["log_n"])) for row in cells) == sum(kept.values()) < 1000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--figure", "forrest"), 'figure: got "forrest"; expected one of forest, throughput, cdf'),
        (("--figure", "nginx"), '"nginx" does not apply to this fleet: Throughput of requests needs data it has not'),
        (("--figure", "cdf", "--out", "cdf.gif"), "expected .pdf, .svg or .png"),
        (("--out", "edge.svg"), "got the ending '.svg'; expected .html"),
        (("--format", "png"), "--format: got png without --figure NAME"),
        (("--by", "kernel"), "no connection has kernel"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    words: tuple[str, ...], said: str, call: Call, drawn: Path, tmp_path: Path
) -> None:
    ended = call("fleet", "report", drawn, "-q", *words)
    assert ended.code == 2 and said in ended.err and not ended.out
    assert not list(tmp_path.glob("*.svg")) and not list(tmp_path.glob("*.html"))
