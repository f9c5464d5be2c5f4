"""Verdicts over the paths of a sample."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from support import Ended
from tcpknee.evidence.verdicts import Pair, Side
from tcpknee.pages import summary
from tcpknee.pages.run import ReportRun
from tcpknee.runs import api
from tcpknee.runs.sampled import over_paths

Call = Callable[..., Ended]

SAMPLED = """
title = "Sampled"
duration = "2s"
[path]
loss = ["0.1%", "1%"]
buffer = "50ms"
[[sample]]
count = 6
path.rate = "loguniform 5Mbit/s to 20Mbit/s"
path.rtt = "uniform 10ms to 40ms"
[[flow]]
algorithm = ["cubic", "bbr3"]
"""


def pair(a: float | list[float], b: float | list[float], axes: Mapping[str, str], *, shared: bool = False) -> Pair:
    """Two groups with these goodputs in their repetitions."""
    sides = []
    for label, values in (("cubic", a), ("bbr3", b)):
        found = np.atleast_1d(np.asarray(values, dtype=float))
        held = {"goodput_bits_per_sec": found, "members": np.full(len(found), 2.0)}
        sides.append(Side(label, np.arange(len(found)), held))
    return Pair(sides[0], sides[1], ("goodput_bits_per_sec",), shared, (0, 1), axes)


def row(number: int, **more: str) -> dict[str, str]:
    return {"sample.0.row": str(number), "path.rate": f"{number}Mbit/s", **more}


def test_a_path_counts_once_however_often_it_was_repeated() -> None:
    ratios = [2.0, 4.0, 0.5, 3.0]
    once = over_paths([pair(1.0, each, row(at)) for at, each in enumerate(ratios)])
    often = over_paths([pair([0.9, 1.1], [each - 0.1, each + 0.1], row(at)) for at, each in enumerate(ratios)])
    assert len(once) == len(often) == 1
    (one,), (other,) = once, often
    assert one.verdict.value == pytest.approx(np.prod(ratios) ** 0.25) == other.verdict.value
    assert (one.verdict.n, one.greater, one.verdict.axes) == (4, 3, {})
    # Student's t of the logarithms of four paths.
    assert one.verdict.low is not None and one.verdict.low == pytest.approx(other.verdict.low)
    assert np.log(one.verdict.value / one.verdict.low) == pytest.approx(
        3.182 * np.std(np.log(ratios), ddof=1) / 2, 1e-3
    )


def test_paths_on_which_one_has_no_value_are_told() -> None:
    """Those are the worst ones: where the transfer was not complete."""
    pairs = [pair(a, 2.0, row(at)) for at, a in enumerate([1.0, np.nan, 1.1, 0.9, np.nan])]
    (found,) = over_paths(pairs)
    assert (found.verdict.n, found.paths, found.lacking) == (3, 5, {"cubic": 2})
    assert found.text.endswith("; of 3 of 5 paths, as there is no value of cubic on 2")


def test_other_axes_have_an_answer_each_and_values_of_the_table_none() -> None:
    pairs = [pair(1.0, 2.0 + loss, row(at, **{"path.loss": f"{loss}%"})) for at in range(3) for loss in (0, 1)]
    found = over_paths(pairs)
    assert [dict(one.verdict.axes) for one in found] == [{"path.loss": "0%"}, {"path.loss": "1%"}]
    assert [one.verdict.value for one in found] == pytest.approx([2.0, 3.0])


def test_flows_that_share_their_path_are_compared_per_member() -> None:
    (found,) = over_paths([pair(4.0, each, row(at), shared=True) for at, each in enumerate((8.0, 16.0))])
    assert found.verdict.shared and found.verdict.value == pytest.approx(np.sqrt(8.0))
    assert "goodput per flow" in found.text


def test_without_a_sample_or_with_one_path_there_is_none() -> None:
    assert over_paths([pair(1.0, 2.0, {"path.rate": "1Mbit/s"}), pair(1.0, 2.0, {"path.rate": "2Mbit/s"})]) == []
    assert over_paths([pair(1.0, 2.0, row(1))]) == []


def test_a_run_answers_over_its_paths_and_asks_for_no_repetitions(call: Call, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SAMPLED)
    said = call("run", "s.toml", "-q").out
    assert "Over the sampled paths, which all have one seed" in said
    assert "(loss 1%)" in said and " of 6 paths" in said
    assert "One repetition" not in said and "\nVerdicts" not in said
    found = json.loads(call("run", "s.toml", "-q", "--json").out)
    first = found["over_paths"][0]
    assert (first["metric"], first["a"], first["b"]) == ("goodput_bits_per_sec", "cubic", "bbr3")
    assert first["axes"] == {"path.loss": "0.1%"} and first["ratio"]["n"] == 6
    assert {one["axes"]["sample.0.row"] for one in found["verdicts"]} == {"1", "2", "3", "4", "5", "6"}


def test_a_report_begins_with_what_holds_over_the_paths(tmp_path: Path) -> None:
    api.run(SAMPLED, out=tmp_path / "run")
    run = ReportRun.open(tmp_path / "run")
    heads, details = summary.answer(run)
    assert len(heads) == 2 and all(" of 6 paths" in head or "no difference shown" in head for head in heads)
    assert len(details) == 12
