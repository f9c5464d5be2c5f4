"""Two engines compared: here two runs of the simulator, alike or made unlike on purpose."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support import Ended
from tcpknee import _core
from tcpknee.cli import conform as verb
from tcpknee.runs import api
from tcpknee.runs.doubts import Doubt
from tcpknee.runs.results import Run, Table
from tcpknee.validation.conformance import conform, overlay
from tcpknee.validation.conformance.conform import Compared, Pair

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
        file = Path(conform.__file__).parent / f"{name}.toml"
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


def test_goodput_is_judged_in_each_cell_and_over_all_of_them_with_loss_and_without() -> None:
    compared = conform.compare([pair(SCENARIO.replace("RATE", "10Mbit/s"), SCENARIO.replace("RATE", "12Mbit/s"))])
    goodput = of(compared, "goodput_bits_per_sec")
    assert [found.ok for found in goodput if not found.lossy] == [False, False]
    assert [found.lossy for found in goodput] == ["loss=1%" in found.label for found in goodput]
    judged = {verdict.what: verdict for verdict in conform.verdicts(compared)}
    for what, lossy in (("goodput without loss", False), ("goodput under loss", True)):
        apart = [abs(found.difference or 0) for found in goodput if found.lossy == lossy]
        assert (judged[f"{what}, median"].value, judged[f"{what}, worst"].value) == (sum(apart) / 2, max(apart))
    assert not judged["goodput without loss, median"].ok
    assert not judged["goodput without loss, worst"].ok


@pytest.mark.parametrize("loss", ["0%", "1%"])
@pytest.mark.parametrize(
    ("apart", "cells", "over"),
    [
        ((2.9, 2.9, 9.9), (True, True, True), set()),
        ((3.1, -3.1, 9.9), (True, True, True), {"median"}),
        ((0.0, 0.0, -10.1), (True, True, False), {"worst"}),
    ],
)
def test_goodput_may_be_3_per_cent_off_in_the_median_and_10_at_worst(
    loss: str, apart: tuple[float, ...], cells: tuple[bool, ...], over: set[str]
) -> None:
    compared = [
        conform._judge("s", {"index": i, "axes": [("path.loss", loss)]}, "goodput_bits_per_sec", 100 + off, 100.0)
        for i, off in enumerate(apart)
    ]
    assert tuple(found.ok for found in compared) == cells
    assert {verdict.what.split(", ")[1] for verdict in conform.verdicts(compared) if not verdict.ok} == over


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


def with_columns(found: Run, table: str, **columns: Callable[[dict[str, Any]], Any]) -> None:
    """Puts other values into a run's table: each is made of its row."""
    was = found.table(table).arrow()
    rows = was.to_pylist()
    for name, make in columns.items():
        values = pa.array([make(row) for row in rows], was.schema.field(name).type)
        was = was.set_column(was.schema.get_field_index(name), name, values)
    found._tables[table] = Table(was)


def in_cell_0(column: str, value: float | None) -> Callable[[dict[str, Any]], Any]:
    return lambda row: value if row["cell"] == 0 else row[column]


@pytest.mark.parametrize("side", ["sim", "kernel", "both"])
@pytest.mark.parametrize(
    ("table", "column", "value", "metrics"),
    [
        ("flows", "goodput_bits_per_sec", 0.0, {"goodput_bits_per_sec"}),
        ("flows", "goodput_bits_per_sec", None, {"goodput_bits_per_sec"}),
        ("samples", "srtt_us", 0, {"srtt_us_p50"}),
        ("flows", "data_segs_out", 0, {"retransmit_pct"}),
        ("flows", "total_retrans", None, {"retransmit_pct"}),
    ],
)
def test_a_value_that_is_zero_or_missing_on_either_side_is_a_disagreement(
    side: str, table: str, column: str, value: float | None, metrics: set[str]
) -> None:
    text = SCENARIO.replace("RATE", "10Mbit/s")
    spoiled = pair(text, text)
    for found in (spoiled.sim, spoiled.kernel) if side == "both" else (getattr(spoiled, side),):
        with_columns(found, table, **{column: in_cell_0(column, value)})
    compared = conform.compare([spoiled])
    assert len(compared) == 4 * 3
    outside = {(found.cell, found.metric) for found in compared if not found.ok}
    assert outside == {(0, metric) for metric in metrics}
    assert all(found.difference is None for found in compared if not found.ok)
    assert not agreed(compared)


def agreed(compared: list[Compared]) -> bool:
    """What the exit code says."""
    return all(verdict.ok for verdict in conform.verdicts(compared))


@pytest.mark.parametrize("side", ["sim", "kernel"])
@pytest.mark.parametrize("reps", [{0, 1}, {1}], ids=["cell", "repetition"])
def test_a_cell_or_a_repetition_that_one_engine_lacks_is_a_disagreement(side: str, reps: set[int]) -> None:
    text = SCENARIO.replace("RATE", "10Mbit/s")
    lacking = pair(text, text)
    flows = getattr(lacking, side).flows.arrow()
    kept = [not (row["cell"] == 2 and row["rep"] in reps) for row in flows.select(["cell", "rep"]).to_pylist()]
    getattr(lacking, side)._tables["flows"] = Table(flows.filter(pa.array(kept)))
    compared = conform.compare([lacking])
    assert len(compared) == 4 * 3
    assert {found.cell for found in compared if not found.ok} == {2}
    assert len([found for found in compared if found.cell == 2 and found.difference is None]) == 3
    assert not agreed(compared)


def test_a_cell_that_only_the_simulator_was_asked_for_is_a_disagreement(alike: Pair) -> None:
    kernel = Run({**alike.kernel.meta, "cells": alike.kernel.meta["cells"][:3]}, None)
    kernel._tables.update({name: alike.kernel.table(name) for name in ("flows", "samples")})
    compared = conform.compare([Pair("test", alike.sim, kernel)])
    assert {found.cell for found in compared if not found.ok} == {3}
    assert not agreed(compared)


def test_nothing_compared_is_no_agreement() -> None:
    assert not agreed([])
    none = api.run_text(SCENARIO.replace("RATE", "10Mbit/s"), "s.toml", out=None)
    none.meta["repeat"] = 0
    assert not agreed(conform.compare([Pair("test", none, none)]))


def test_a_flow_that_got_nothing_has_no_share_to_compare() -> None:
    text = SHARED.replace("ALGORITHM", "cubic")
    starved = pair(text, text)
    assert agreed(conform.compare([starved]))
    for found in (starved.sim, starved.kernel):
        with_columns(
            found, "flows", goodput_bits_per_sec=lambda row: 0.0 if row["group"] == 1 else row["goodput_bits_per_sec"]
        )
    [share] = conform.compare([starved])
    assert (share.sim, share.kernel, share.ok) == (None, None, False)


def test_no_retransmission_on_either_side_is_agreement() -> None:
    text = SCENARIO.replace("RATE", "10Mbit/s")
    clean = pair(text, text)
    for found in (clean.sim, clean.kernel):
        with_columns(found, "flows", total_retrans=lambda row: 0)
    compared = conform.compare([clean])
    assert [found.ok for found in of(compared, "retransmit_pct")] == [True] * 4
    with_columns(clean.sim, "flows", total_retrans=lambda row: row["data_segs_out"] // 100)
    assert not any(found.ok for found in of(conform.compare([clean]), "retransmit_pct"))


def test_what_cannot_be_compared_is_shown_as_such_and_is_valid_json(alike: Pair) -> None:
    entry = replace(conform.compare([alike])[0], kernel=None, difference=None, ok=False)
    [_, _, row] = verb._table([entry])
    assert row.split()[-5:] == ["none", "-", "±10", "%", "OUTSIDE"]
    assert json.dumps([asdict(verdict) for verdict in conform.verdicts([entry])], allow_nan=False)


@pytest.fixture
def two_suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two small suites, the simulator in the place of labs; returns which runs were made."""
    suites = tmp_path / "suites"
    suites.mkdir()
    text = SCENARIO.replace("RATE", "10Mbit/s").replace('["0%", "1%"]', '"1%"')
    for name, duration in (("first", "4s"), ("second", "8s")):
        (suites / f"{name}.toml").write_text(text.replace('"4s"', f'"{duration}"'))
    (suites / "short.toml").write_text(text)
    monkeypatch.setattr(conform, "_FOLDER", suites)
    monkeypatch.setattr(conform, "FULL", ("first", "second"))
    monkeypatch.setattr(conform, "QUICK", ("short",))
    made: list[str] = []
    real = api.run_text

    def run_text(text: str, file: str, **how: Any) -> Run:
        made.append(f"{how['out'].name}{' resumed' if how['resume'] else ''}")
        return real(text, file, **{**how, "engine": "sim"})

    monkeypatch.setattr(conform.api, "run_text", run_text)
    return made


Call = Callable[..., Ended]


def test_the_estimate_is_of_all_suites_and_only_of_what_is_missing(call: Call, two_suites: list[str]) -> None:
    whole = call("conform", "--out", "out")
    assert whole.code == 0, whole.err
    # Four labs of 4 s and four of 8 s, 1.5 s more each.
    assert whole.err.splitlines()[0] == (
        "2 suites, 4 cells: 8 repetitions in labs, in real time, about 60 s, and as many in the simulator"
    )
    assert two_suites == ["first-kernel", "first-sim", "second-kernel", "second-sim"]
    for folder in ("second-kernel", "second-sim"):
        shutil.rmtree(Path("out") / folder)
    two_suites.clear()
    rest = call("conform", "--resume", "--out", "out")
    assert rest.err.splitlines()[0] == (
        "2 suites, 4 cells: 4 repetitions in labs, in real time, about 38 s, and as many in the simulator"
    )
    assert two_suites == ["first-kernel resumed", "first-sim resumed", "second-kernel", "second-sim"]
    assert call("conform", "--resume", "--out", "out").err.startswith(
        "2 suites, 4 cells: every lab is kept from before"
    )
    assert json.loads(call("conform", "--resume", "--out", "out", "--json").out)["folder"] == "out"


def test_a_folder_that_holds_nothing_to_go_on_with_is_refused(call: Call, two_suites: list[str]) -> None:
    missing = call("conform", "--resume", "--out", "nosuch")
    assert (missing.code, missing.err) == (
        2,
        "nosuch: got no folder; expected runs of first, second, as `knee conform` writes them. "
        "Give the folder of an earlier `knee conform`, or leave out --resume.\n",
    )
    assert not Path("nosuch").exists()
    assert call("conform", "--quick", "--out", "short").code == 0
    other = call("conform", "--resume", "--out", "short")
    assert (other.code, other.err) == (
        2,
        "short: got runs of the suites short; expected runs of first, second, as `knee conform` writes them. "
        "Go on with --quick.\n",
    )


def test_runs_of_an_earlier_conform_are_not_replaced(call: Call, two_suites: list[str]) -> None:
    assert call("conform", "--quick", "--out", "out").code == 0
    before = (Path("out") / "short-sim" / "run.json").read_bytes()
    again = call("conform", "--quick", "--out", "out")
    assert (again.code, again.err) == (
        2, "out: is not empty; expected a new folder. Finish what is in it with --resume, or choose another --out.\n",
    )  # fmt: skip
    assert (Path("out") / "short-sim" / "run.json").read_bytes() == before


def test_a_repetition_whose_lab_fell_behind_is_not_compared() -> None:
    slow = pair(SCENARIO.replace("RATE", "10Mbit/s"), SCENARIO.replace("RATE", "10Mbit/s"))
    with_columns(
        slow.kernel,
        "flows",
        goodput_bits_per_sec=lambda row: (
            row["goodput_bits_per_sec"] / (2 if (row["cell"], row["rep"]) == (0, 1) else 1)
        ),
    )
    assert max(abs(found.difference or 0) for found in conform.compare([slow])) > 10
    slow.kernel.__dict__["doubts"] = [Doubt(0, (1,), "the link did not keep up")]
    assert max(abs(found.difference or 0) for found in conform.compare([slow])) == 0
