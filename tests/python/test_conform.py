"""Two engines compared: here two runs of the simulator, alike or made unlike on purpose."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from kneepoint import _core, api, conform
from kneepoint.conform import Compared, Pair
from kneepoint.doubts import Doubt
from kneepoint.report import overlay
from kneepoint.results import Table

SCENARIO = """
title    = "two algorithms, with and without loss"
duration = "4s"
warmup   = "1s"
repeat   = 2
[path]
rate = "RATE"
rtt  = "20ms"
loss = ["0%", "1%"]
[[flow]]
algorithm = ["reno", "cubic"]
"""
SHARED = """
title    = "two flows"
duration = "4s"
[path]
rate = "10Mbit/s"
rtt  = "20ms"
[[flow]]
algorithm = "ALGORITHM"
[[flow]]
algorithm = "cubic"
name      = "other"
"""


def pair(ours: str, theirs: str) -> Pair:
    return Pair("test", api.run_text(ours, "s.toml", out=None), api.run_text(theirs, "k.toml", out=None))


@pytest.fixture(scope="module")
def alike() -> Pair:
    text = SCENARIO.replace("RATE", "10Mbit/s")
    return pair(text, text)


def of(compared: list[Compared], metric: str) -> list[Compared]:
    return [found for found in compared if found.metric == metric]


def test_the_whole_matrix_has_at_least_48_cells_and_every_suite_parses() -> None:
    cells = 0
    for name in (*conform.FULL, *conform.QUICK):
        file = Path(conform.__file__).parent / "conformance" / f"{name}.toml"
        scenario = _core.parse(file.read_text(encoding="utf-8"), str(file))
        cells += len(scenario.cells) if name in conform.FULL else 0
    assert cells >= 48


def test_runs_alike_have_no_difference(alike: Pair) -> None:
    compared = conform.compare([alike])
    assert {found.metric for found in compared} == {"goodput_bits_per_sec", "srtt_us_p50", "retransmit_pct"}
    assert len(compared) == 4 * 3
    assert all(found.difference == 0 for found in compared)
    assert all(found.kernel > 0 for found in of(compared, "goodput_bits_per_sec"))
    assert all(verdict.ok for verdict in conform.verdicts([*compared]))


def test_goodput_is_judged_cell_by_cell_without_loss_and_over_all_cells_with_it() -> None:
    compared = conform.compare([pair(SCENARIO.replace("RATE", "10Mbit/s"), SCENARIO.replace("RATE", "12Mbit/s"))])
    goodput = of(compared, "goodput_bits_per_sec")
    assert [found.ok for found in goodput if "loss=0%" in found.label] == [False, False]
    assert [found.ok for found in goodput if "loss=1%" in found.label] == [None, None]
    failed = {verdict.what for verdict in conform.verdicts(compared) if not verdict.ok}
    assert {"goodput without loss, median", "goodput without loss, worst"} <= failed
    assert "goodput under loss, median" not in failed


def test_flows_that_share_a_bottleneck_are_compared_by_their_shares() -> None:
    compared = conform.compare([pair(SHARED.replace("ALGORITHM", "cubic"), SHARED.replace("ALGORITHM", "bbr1"))])
    [share] = compared
    assert share.metric == "share"
    assert 0 < share.kernel < 1
    assert share.ok == (abs(share.sim - share.kernel) <= 0.1)


def test_the_overlay_shows_both_engines_with_units(alike: Pair, tmp_path: Path) -> None:
    svg, png = overlay.write([alike], tmp_path)
    text = svg.read_text(encoding="utf-8")
    assert all(words in text for words in ("window, segments", "smoothed RTT, ms", "time, s", "sim", "kernel"))
    assert png.read_bytes().startswith(b"\x89PNG")


def test_a_repetition_whose_lab_fell_behind_is_not_compared() -> None:
    slow = pair(SCENARIO.replace("RATE", "10Mbit/s"), SCENARIO.replace("RATE", "10Mbit/s"))
    spoiled = slow.kernel.flows.arrow().to_pydict()
    spoiled["goodput_bits_per_sec"] = [
        0.0 if (cell, rep) == (0, 1) else value
        for cell, rep, value in zip(spoiled["cell"], spoiled["rep"], spoiled["goodput_bits_per_sec"], strict=True)
    ]
    slow.kernel._tables["flows"] = Table(pa.table(spoiled))
    assert max(abs(found.difference) for found in conform.compare([slow])) > 10
    slow.kernel.__dict__["doubts"] = [Doubt(0, (1,), "the link did not keep up")]
    assert max(abs(found.difference) for found in conform.compare([slow])) == 0
