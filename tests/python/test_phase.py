"""Cells whose shares depend on the phase of their flows are said to; the others are not repeated."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

import tcpknee
from tcpknee.errors import AlgorithmFailed
from tcpknee.runs import differences_text, doubts, phase
from tcpknee.runs.pool import Watcher

TWO = """\
duration = "20s"
warmup = "5s"
repeat = 3
[path]
rate = "10Mbit/s"
rtt = "40ms"
buffer = "1bdp"
[[flow]]
algorithm = "cubic"
[[flow]]
algorithm = "reno"
"""


class Phases(Watcher):
    """Notes what it hears of."""

    def __init__(self) -> None:
        self.titles: list[str] = []

    def phase(self, title: str) -> AbstractContextManager[object]:
        self.titles.append(title)
        return super().phase(title)


def usual(*shares: float) -> phase.Shares:
    """The first flow's share in each repetition, of two."""
    return np.array([[share, 1 - share] for share in shares])


@pytest.mark.parametrize(
    ("shares", "late", "moved"),
    [
        # Alike in every repetition: 0.05 more are something, 0.04 are not.
        ((0.7, 0.7, 0.7), 0.64, True),
        ((0.7, 0.7, 0.7), 0.66, False),
        # A further repetition lies within 0.7 +- 4.303 * 0.02 * sqrt(1 + 1 / 3) = 0.099.
        ((0.68, 0.7, 0.72), 0.61, False),
        ((0.68, 0.7, 0.72), 0.59, True),
    ],
)
def test_a_share_outside_of_what_repetitions_say_depends_on_the_phase(
    shares: tuple[float, ...], late: float, moved: bool
) -> None:
    text = phase._judge(usual(*shares), usual(late)[0], ["cubic", "reno"], 600_000)
    assert bool(text) == moved
    if moved:
        assert f"has 0.70 of the goodput, and {late:.2f} where hosts are late by 0.600 ms" in text, text


def test_a_cell_that_may_have_a_phase_is_repeated_once_with_late_hosts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        phase, "_judge", lambda usual, late, names, noise_ns: f"looked at {len(usual)} of {names}, {noise_ns}"
    )
    watcher = Phases()
    run = tcpknee.run(TWO, watcher=watcher, out=tmp_path / "run")
    assert "Repeating cells with late hosts" in watcher.titles
    said = "looked at 3 of ['cubic', 'reno'], 600000"
    assert run.meta["cells"][0]["cautions"] == [said]
    assert doubts.of_settings(tcpknee.open(tmp_path / "run").meta["cells"]) == [f"{said}."]
    assert f"{said}." in run.summary.warnings
    assert tcpknee.run(TWO).meta["cells"][0]["cautions"] == [said]
    # A comparison of two runs says it too: once of both, else of which.
    late = tcpknee.run(TWO.replace("[[flow]]", '[sender]\nnoise = "20us"\n[[flow]]', 1), out=tmp_path / "late")
    assert list(differences_text.doubted(tcpknee.diff(run, run))) == [f"{said}."]
    beside = tcpknee.diff(run, late, ["sender.noise"])
    assert list(differences_text.doubted(beside)) == [f"{beside.names[0]}: {said}."]


def test_an_algorithm_that_fails_with_late_hosts_alone_costs_no_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise AlgorithmFailed("two.toml: cell 0, repetition 0 (seed 1): mine divides by zero in undo_cwnd, at 1 s")

    monkeypatch.setattr(phase.Late, "run_cell", fails)
    run = tcpknee.run(TWO, out=tmp_path / "run")
    assert run.meta["status"] == "complete" and "failed" not in run.meta
    assert run.meta["cells"][0]["cautions"] == [
        "whether the shares depend on the phase is not known: where hosts are late by 0.600 ms in the mean, half a "
        "packet's time, mine divides by zero in undo_cwnd, at 1 s"
    ]


@pytest.mark.parametrize(
    "text",
    [
        TWO.replace("repeat = 3", "repeat = 1"),
        TWO.replace('"1bdp"', '"1bdp"\nloss = "0.1%"'),
        TWO.replace('"1bdp"', '"1bdp"\nqueue = "codel"'),
        TWO.replace("[[flow]]", '[sender]\nnoise = "20us"\n[[flow]]', 1),
        TWO.replace('[[flow]]\nalgorithm = "reno"\n', ""),
    ],
)
def test_other_cells_are_not_repeated(text: str) -> None:
    watcher = Phases()
    run = tcpknee.run(text, watcher=watcher)
    assert "Repeating cells with late hosts" not in watcher.titles
    assert run.meta["cells"][0]["cautions"] == []


def test_looking_at_the_phase_changes_no_table() -> None:
    with_check = tcpknee.run(TWO)
    without = tcpknee.run(TWO.replace("repeat = 3", "repeat = 1"))
    first = [row for row in with_check.flows.arrow().to_pylist() if row["rep"] == 0]
    assert first == without.flows.arrow().to_pylist()
