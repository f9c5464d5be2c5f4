"""The summary table: numbers with intervals, columns, and progress where stderr goes."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pytest

import tcpknee
from tcpknee import say
from tcpknee.evidence import written
from tcpknee.evidence.stats import Estimate
from tcpknee.runs import output, progress


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Estimate(48.123, 47.8, 48.446, 5), "48.12 ±0.33"),
        (Estimate(19.3123, 19.3122, 19.3124, 5), "19.31 ±0.01"),
        (Estimate(0.08192, 0.0814, 0.0824, 5), "0.0819 ±0.0006"),
        (Estimate(308.2, 293.0, 323.4, 5), "308 ±16"),
        (Estimate(4800.0, 4000.0, 5600.0, 5), "4800 ±800"),
        (Estimate(1.2, 0.0, 2.7, 3), "1.2 ±1.5"),
        (Estimate(0.98, 0.93, 1.0, 3), "0.980 [0.930, 1.000]"),
        (Estimate(48.123, None, None, 1), "48.1"),
        (Estimate(48.123, 48.123, 48.123, 5, identical=True), "48.1"),
        (Estimate(0.0, 0.0, 0.0, 5), "0"),
    ],
)
def test_a_mean_has_the_digits_that_its_interval_allows(found: Estimate, text: str) -> None:
    assert " ".join(filter(None, written.plus_minus(found))) == text


def test_columns_line_up() -> None:
    rows = [["flow", "goodput"], ["", "Mbit/s"], ["cubic", "1.07"], ["bbr1 ×2", "102.8"]]
    assert say.aligned(rows, left=[True, False], rule=2) == [
        "flow     goodput",
        "          Mbit/s",
        "-------  -------",
        "cubic       1.07",
        "bbr1 ×2    102.8",
    ]


def test_of_several_hops_the_figures_are_said_to_be_of_the_narrowest() -> None:
    hops = [{"rate": "20Mbit/s", "rtt": "5ms"}, {"rate": "10Mbit/s", "rtt": "15ms"}]
    run = tcpknee.run(duration="1s", hop=hops, flow=[{"algorithm": "cubic"}])
    lines = output.lines(run)
    assert lines[1].startswith("2 hops · narrowest rate 10.0 Mbit/s · rtt 20.0 ms · BDP 24.4 KiB · ")
    assert any("Link used is of the narrowest hop." in line for line in lines)
    one = output.lines(tcpknee.run(duration="1s", path=hops[0], flow=[{"algorithm": "cubic"}]))
    assert one[1].startswith("rate 20.0 Mbit/s · ") and not any("hop" in line for line in one)


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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Stands in for a terminal; what takes a twentieth of a second is long.

    Not a fixture: pytest puts its own stderr back between a fixture and its test.
    """
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setattr(progress, "_SILENCE_SEC", 0.05)
    return found


def long() -> None:
    time.sleep(0.2)


def test_a_phase_that_takes_long_says_so_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with progress.Phase("Drawing the report"):
        long()
    assert "Drawing the report, 0 s" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_a_short_phase_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setattr(progress, "_SILENCE_SEC", 60.0)
    with progress.Phase("Drawing the report"):
        pass
    assert screen.getvalue() == ""


def test_a_phase_can_begin_within_its_block_and_end_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    loading, writing = progress.Phase("Loading"), progress.Phase("Writing", later=True)
    with loading, writing:
        loading.end()
        long()
        assert screen.getvalue() == ""
        writing.begin()
        writing.begin()
        long()
    assert "Loading" not in screen.getvalue()
    assert "Writing" in screen.getvalue()


def test_a_phase_that_fails_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with pytest.raises(ValueError, match="broken"), progress.Phase("Drawing"):
        raise ValueError("broken")
    before = screen.getvalue()
    long()
    assert screen.getvalue() == before


def test_a_phase_is_quiet_when_asked_to_be_and_elsewhere_than_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with progress.Phase("Drawing", quiet=True):
        long()
    assert screen.getvalue() == ""
    elsewhere = io.StringIO()
    monkeypatch.setattr(sys, "stderr", elsewhere)
    with progress.Phase("Drawing"):
        long()
    assert elsewhere.getvalue() == ""


def test_phases_of_a_run_are_lines_elsewhere_than_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = io.StringIO()
    monkeypatch.setattr(sys, "stderr", elsewhere)
    monkeypatch.setattr(progress, "_SILENCE_SEC", 0.05)
    with progress.watcher().phase("Loading the algorithms"):
        long()
    assert elsewhere.getvalue() == "Loading the algorithms, 0 s\n"
    with progress.watcher(quiet=True).phase("Loading the algorithms"):
        long()
    assert elsewhere.getvalue().count("\n") == 1


def test_commands_say_what_takes_long(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Their work is replaced by a pause."""
    screen = terminal(monkeypatch)
    from tcpknee import _core, pages
    from tcpknee.cli import load, report
    from tcpknee.runs import api

    monkeypatch.setattr(api, "open", lambda run: None)
    for name in ("write", "save"):
        monkeypatch.setattr(pages, name, lambda *_, **__: long())
    monkeypatch.setattr(_core, "load", lambda *_, **__: long() or ("knee_cubic", False))
    loaded = load.command.callback
    assert loaded is not None
    for act, words in (
        (lambda quiet: report.write(tmp_path, quiet=quiet), "Writing the report"),
        (lambda quiet: report.write(tmp_path, figure="cwnd", quiet=quiet), "Drawing the figure"),
        (
            lambda quiet: load.command.callback(("cubic",), None, json=False, quiet=quiet),
            "Loading cubic into the kernel",
        ),
    ):
        act(True)
        assert words not in screen.getvalue()
        act(False)
        assert words in screen.getvalue()


def test_progress_is_a_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_run_that_is_over_before_the_first_tick_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    watcher = progress.watcher()
    watcher.start("Title", 1, 0)
    watcher.finished((0, 0))
    watcher.stop()
    assert screen.getvalue() == "Title\n"


def test_quiet_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = progress.watcher(quiet=True)
    watcher.start("Title", 1, 0)
    with watcher.phase("Phase"):
        watcher.finished((0, 0))
    watcher.stop()
    assert capsys.readouterr() == ("", "")
    # What a user has to know is said all the same.
    watcher.caution("nobody protects this scheduler")
    assert capsys.readouterr() == ("", "nobody protects this scheduler\n")
