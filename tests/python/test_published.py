"""Figures that others printed: shown beside ours with their ratio, never judged; refused before anything runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import tcpknee
from support import SMALL, Ended, cell, compared, flow, flows
from tcpknee.evidence import published
from tcpknee.evidence.published import Beside, Published
from tcpknee.runs import api, output, scenarios
from tcpknee.runs.summary import summarise
from tcpknee.runs.terms import OfCells

RATES = {"cubic": [2.0e6, 2.1e6, 1.9e6], "bbr1": [42e6, 44.3e6, 39.8e6]}
TABLE = '[[published]]\nvalue = "{}"\nfigure = "{}"\nsource = "article D, 10 Gbit/s"\n'
BESIDE = SMALL + TABLE.format("cubic.goodput", "10.50Mbit/s") + TABLE.format("bbr1.goodput / cubic.goodput", "31.7")


def found(value: str, figure: str, values: dict[str, list[float]] = RATES) -> Beside:
    table, cells = compared(values)
    entries = [Published(value, figure, "article D", 9)]
    assert published.mistakes(entries, OfCells(cells)) == []
    [one] = published.beside(entries, OfCells(cells, summarise(table, None, cells)))
    return one


def test_a_figure_stands_beside_ours_in_its_own_unit_with_the_digits_it_was_printed_with() -> None:
    one = found("cubic.goodput", "10.50Mbit/s")
    assert one.published_text == "10.50 Mbit/s"
    assert one.ours_text == "2.00 Mbit/s [1.75, 2.25]"
    assert one.ratio_text == "0.190× [0.167, 0.214]"
    assert (one.unit, one.published) == ("bit/s", 10.5e6)
    assert one.ours is not None and one.ours.mean == pytest.approx(2.0e6)
    assert found("cubic.goodput", "4Gbit/s").ours_text.startswith("0.00200 Gbit/s")


def test_a_ratio_stands_beside_a_ratio_and_pairs_its_repetitions() -> None:
    one = found("bbr1.goodput / cubic.goodput", "31.7")
    assert one.unit == "" and one.published_text == "31.7"
    assert one.ours is not None and one.ours.mean == pytest.approx(21.0, abs=0.1)
    assert one.ours.low is not None and one.ours.low > 20.5, "paired, it is known better than either goodput"


@pytest.mark.parametrize(
    ("value", "figure", "unit", "base"),
    [
        ("cubic.srtt_us_p50", "57ms", "us", 57_000.0),
        ("cubic.retransmit_pct", "6%", "%", 6.0),
        ("cubic.limited_by.sndbuf", "98.20%", "%", 98.2),
        ("cubic.limited_by.sndbuf", "0.5", "", 0.5),
        ("cubic.requests_per_sec", "140000/s", "1/s", 140_000.0),
        ("cubic.goodput * 1s", "80kB", "B", 80_000.0),
        ("cubic.goodput", "0.01Tbit/s", "bit/s", 1e10),
        ("cubic.srtt_us_p50", "0.1h", "us", 3.6e8),
    ],
)
def test_every_unit_is_the_base_unit_of_the_tables_in_json(value: str, figure: str, unit: str, base: float) -> None:
    rows = [flow(0, rep, 1e6, sndbuf_limited_us=4_500_000, srtt_us_p50=2e4, requests_per_sec=7e4) for rep in range(2)]
    cells = [cell(0, [], "cubic")]
    entries = [Published(value, figure, "article D", 9)]
    assert published.mistakes(entries, OfCells(cells)) == []
    [one] = published.beside(entries, OfCells(cells, summarise(flows(rows), None, cells)))
    assert (one.unit, one.published) == (unit, pytest.approx(base))
    assert one.ours is not None and one.ratio is not None
    assert one.ratio.mean == pytest.approx(one.ours.mean / base)


def test_what_has_no_value_is_a_dash() -> None:
    one = found("a.goodput / b.goodput", "2", {"a": [3e6, 3e6], "b": [0.0, 0.0]})
    assert (one.ours_text, one.ratio_text, one.json()["ours"], one.json()["ratio"]) == ("-", "-", None, None)
    assert found("cubic.goodput", "0bit/s").ratio_text == "-"
    assert found("cubic.goodput", "2Mbit/s", {"cubic": [3e6]}).ours_text == "3.00 Mbit/s", "one repetition: no interval"


@pytest.mark.parametrize(
    ("value", "figure", "message"),
    [
        ("cubci.goodput", "1Mbit/s", 'got "cubci"; expected a flow or an algorithm: bbr1, cubic, total. Did you mean'),
        ("cubic.godput", "1Mbit/s", 'Did you mean "goodput"?'),
        ('cubic[path.loss="1%"].goodput', "1Mbit/s", 'got the axis "path.loss"; expected an axis of this scenario'),
        ("total.goodput", "1Mbit/s", "has a value at each flow.0.algorithm; expected one value, as a published figure"),
        ("cubic.goodput > 1Mbit/s", "1Mbit/s", "expected an arithmetic sign (+ - * /) or the end"),
        ("1Mbit/s", "1Mbit/s", "names no flow"),
        ("cubic.goodput", "57ms", 'got a rate beside the figure "57ms", which is a time; expected both of one kind'),
        ("cubic.goodput", "611", 'got a rate beside the figure "611", which is a bare number'),
        ("cubic.retransmit_pct", "6", 'got a percentage beside the figure "6", which is a bare number'),
        ("", "1Mbit/s", "got the end"),
    ],
)
def test_refusals_name_the_place_and_the_way_out(value: str, figure: str, message: str) -> None:
    _, cells = compared(RATES)
    entries = [Published("cubic.goodput", "1bit/s", "s", 3), Published(value, figure, "s", 12)]
    [(line, key, said)] = published.mistakes(entries, OfCells(cells))
    assert (line, key) == (12, "published.1.value")
    assert message in said


def test_an_axis_that_a_flow_does_not_have_need_not_be_picked() -> None:
    axis = "flow.0.bbr1.cwnd_gain"
    cells = [
        *(cell(i, [("flow.0.algorithm", "bbr1"), (axis, gain)], "bbr1") for i, gain in enumerate(("512", "600"))),
        cell(2, [("flow.0.algorithm", "cubic")], "cubic"),
    ]
    assert published.mistakes([Published("cubic.goodput", "1Mbit/s", "s", 3)], OfCells(cells)) == []
    ratio = f'bbr1[{axis}="600"].goodput / cubic.goodput'
    assert published.mistakes([Published(ratio, "2", "s", 3)], OfCells(cells)) == []
    [(_, _, said)] = published.mistakes([Published("bbr1.goodput", "1Mbit/s", "s", 3)], OfCells(cells))
    assert f"has a value at each {axis}" in said


def test_text_json_and_run_json_have_the_figures_and_no_exit_code_depends_on_them(
    call: Callable[..., Ended], tmp_path: Path
) -> None:
    (tmp_path / "p.toml").write_text(BESIDE)
    ended = call("run", "p.toml", "--out", "r", "--quiet")
    assert ended.code == 0
    section = ended.out.split("Published, beside ours\n")[1]
    heads, _, rate, ratio, source, note = section.splitlines()[:6]
    assert heads.split("  ")[1] == "value" and "ours / published" in heads
    assert "10.50 Mbit/s" in rate and "31.7" in ratio
    assert source.strip() == "Source: article D, 10 Gbit/s" and note.strip() == published.NOTE
    kept = json.loads((tmp_path / "r" / "run.json").read_text())["published"]
    assert kept[0] == {
        "value": "cubic.goodput",
        "figure": "10.50Mbit/s",
        "source": "article D, 10 Gbit/s",
        "line": BESIDE.splitlines().index('value = "cubic.goodput"') + 1,
    }
    printed = json.loads(call("run", "p.toml", "--out", "r2", "--quiet", "--json").out)["published"]
    run = tcpknee.open(tmp_path / "r")
    assert printed == [{"scenario": "p.toml", "engine": "sim", **one.json()} for one in run.published]
    assert printed[0]["ours"] == run.summary.groups[0].metrics["goodput_bits_per_sec"].json()


def test_sources_that_differ_stand_in_a_column() -> None:
    run = tcpknee.run(BESIDE.replace("article D", "article E", 1))
    section = "\n".join(output.lines(run)).split("Published, beside ours\n")[1].splitlines()
    assert section[0].endswith("source")
    assert section[2].endswith("article E, 10 Gbit/s") and section[3].endswith("article D, 10 Gbit/s")


def test_a_run_without_them_says_nothing_of_them() -> None:
    run = tcpknee.run(SMALL)
    assert run.json()["published"] == [] and "Published" not in "\n".join(output.lines(run))


def test_a_value_that_the_scenario_has_not_stops_the_run_before_it_begins(
    call: Callable[..., Ended], tmp_path: Path
) -> None:
    (tmp_path / "p.toml").write_text(SMALL + TABLE.format("reno.goodput", "1Mbit/s"))
    ended = call("run", "p.toml", "--out", "r")
    assert ended.code == 2 and ended.err.startswith('p.toml:13: published.0.value: got "reno"; expected a flow')
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("name", "figures"),
    [("distance-100ms", ["611Mbit/s", "609Mbit/s"]), ("loss-1.5", ["10.5Mbit/s", "333Mbit/s"])],
)
def test_the_gallery_has_what_the_article_printed(name: str, figures: list[str]) -> None:
    entries = api.parse(*api.read_scenario(scenarios.path(name))).published
    assert [figure for _, figure, _, _ in entries] == figures
