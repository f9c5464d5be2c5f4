"""The summary table: numbers with intervals, columns, and progress where stderr goes."""

from __future__ import annotations

import io
import sys

import pytest

from kneepoint import output, progress, written
from kneepoint.pool import Watcher
from kneepoint.stats import Estimate


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Estimate(48.123, 47.8, 48.446, 5), "48.12 ±0.33"),
        (Estimate(19.3123, 19.3122, 19.3124, 5), "19.31 ±0.01"),
        (Estimate(0.08192, 0.0814, 0.0824, 5), "0.0819 ±0.0006"),
        (Estimate(308.2, 293.0, 323.4, 5), "308 ±16"),
        (Estimate(4800.0, 4000.0, 5600.0, 5), "4800 ±800"),
        (Estimate(1.2, 0.0, 2.7, 3), "1.2 ±1.5"),
        (Estimate(48.123, None, None, 1), "48.1"),
        (Estimate(48.123, 48.123, 48.123, 5, identical=True), "48.1"),
        (Estimate(0.0, 0.0, 0.0, 5), "0"),
    ],
)
def test_a_mean_has_the_digits_that_its_interval_allows(found: Estimate, text: str) -> None:
    assert " ".join(filter(None, written.plus_minus(found))) == text


def test_columns_line_up() -> None:
    rows = [["flow", "goodput"], ["", "Mbit/s"], ["cubic", "1.07"], ["bbr1 ×2", "102.8"]]
    assert output.aligned(rows, left=[True, False], rule=2) == [
        "flow     goodput",
        "          Mbit/s",
        "-------  -------",
        "cubic       1.07",
        "bbr1 ×2    102.8",
    ]


def test_progress_is_lines_elsewhere_than_in_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = progress.watcher()
    watcher.start("Title", 3, 1)
    for rep in (1, 2):
        watcher.running((0, rep), 0.5)
        watcher.finished((0, rep))
        watcher.tick()
    watcher.stop()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == "Title: 3 repetitions, 1 kept from before"
    assert err.splitlines()[-1].startswith("3 of 3 repetitions done in ")


def test_progress_is_a_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    watcher = progress.watcher()
    watcher.start("Title [bold]", 4, 0)
    watcher.running((0, 0), 0.5)
    watcher.finished((0, 0))
    watcher.tick()
    assert "Title [bold]" in screen.getvalue()
    assert "1/4 repetitions" in screen.getvalue()
    watcher.stop()


def test_quiet_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = progress.watcher(quiet=True)
    assert type(watcher) is Watcher
    watcher.start("Title", 1, 0)
    watcher.stop()
    assert capsys.readouterr() == ("", "")
