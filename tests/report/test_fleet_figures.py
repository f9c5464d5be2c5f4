"""Figures of a fleet: each renders, says its units, stands no row and one, and counts every connection."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import altair as alt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fleet_data
from tcpknee.errors import RunFolderError, UsageError
from tcpknee.pages import binned, distributions, export, theme
from tcpknee.pages.cohorts import SEVERAL, Cohorts
from tcpknee.pages.figures.fleet import FIGURES, boxes, distance, ecn, forest, idle, of, retransmitted
from tcpknee.pages.quantities import INFLIGHT, MIN_RTT, NGINX, REORDERING, RETRANSMITTED, SRTT, THROUGHPUT
from test_figures import quantitative_titles

figures = pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
layouts = pytest.mark.parametrize("layout", theme.LAYOUTS, ids=lambda layout: layout.name)
ROWS = 4000
HOSTILE = "</script><b>\u202e'\" $x"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fleet_data.write(tmp_path_factory.mktemp("fleet") / "edge", ROWS)


@pytest.fixture(scope="module")
def fleet(folder: Path) -> Iterator[Cohorts]:
    with fleet_data.compared(folder) as found:
        yield found


@figures
def test_says_what_it_is(figure: ModuleType) -> None:
    assert re.fullmatch(r"[a-z][a-z-]*", figure.name)
    assert figure.title and figure.summary.endswith(".") and figure.__doc__
    assert [one.name for one in FIGURES].count(figure.name) == 1


@figures
@layouts
def test_number_axes_carry_their_unit(figure: ModuleType, layout: theme.Layout, fleet: Cohorts) -> None:
    spec = export.spec(fleet, figure, data=False, layout=layout)
    alt.Chart.from_dict(spec, validate=True)
    titles = quantitative_titles(spec)
    assert titles
    assert all(isinstance(title, str) and re.search(r"\((Mbit/s|ms|%|packets|×)\)$", title) for title in titles), titles


def saved(found: Cohorts, figure: ModuleType, path: Path) -> Path:
    return export.save_figure(lambda layout: export.spec(found, figure, layout=layout), path)


@figures
@pytest.mark.parametrize("ending", ["svg", "png"])
def test_renders(figure: ModuleType, ending: str, fleet: Cohorts, tmp_path: Path) -> None:
    content = saved(fleet, figure, tmp_path / f"figure.{ending}").read_bytes()
    if ending == "png":
        assert content.startswith(b"\x89PNG")
    else:
        assert content.startswith(b"<svg") and b"NaN" not in content and b"undefined" not in content


@pytest.mark.parametrize("rows", [0, 1])
def test_no_connection_has_no_figure_and_one_has_some(rows: int, tmp_path: Path) -> None:
    found = fleet_data.alone(fleet_data.connections(rows))
    for figure in FIGURES:
        if figure.applies(found):
            assert rows == 1
            text = saved(found, figure, tmp_path / f"{figure.name}.svg").read_text()
            assert "NaN" not in text and "undefined" not in text
        else:
            with pytest.raises(UsageError, match="does not apply to this fleet"):
                export.spec(found, figure)
    assert rows == 0 or {"cdf", "boxes"} <= {one.name for one in of(found)}


def test_a_table_without_a_column_leaves_every_figure_out() -> None:
    found = fleet_data.alone(fleet_data.connections(50).select(["boot_id", "algorithm", "remote_prefix"]))
    assert not [figure.name for figure in FIGURES if figure.applies(found)]


def test_every_figure_is_drawn_the_same_twice(fleet: Cohorts, folder: Path) -> None:
    with fleet_data.compared(folder) as again:
        for figure in FIGURES:
            assert json.dumps(export.spec(fleet, figure)) == json.dumps(export.spec(again, figure)), figure.name


def test_hostile_names_of_cohorts_are_drawn_as_words(tmp_path: Path) -> None:
    folder = fleet_data.write(tmp_path / "edge", 500, algorithms=(HOSTILE, "cubic"))
    with fleet_data.compared(folder) as found:
        assert of(found) == list(FIGURES)
        for figure in FIGURES:
            text = saved(found, figure, tmp_path / "figure.svg").read_text()
            assert "<script" not in text and "<b>" not in text
            assert "$x" in text or figure.name in {"idle"}


# --- what is drawn -----------------------------------------------------------


def test_a_density_counts_every_connection_that_has_both(fleet: Cohorts) -> None:
    table = fleet_data.connections(ROWS)
    for x, y in ((SRTT, INFLIGHT), (MIN_RTT, THROUGHPUT)):
        density = fleet.density(x, y)
        assert density
        known = table[x.column].is_valid().to_numpy() & table[y.column].is_valid().to_numpy()
        for block in density.cells:
            of_cohort = np.array(table["algorithm"].to_pylist()) == block.constants["cohort"]
            assert round(np.exp(block.columns["log_n"]).sum()) == (known & of_cohort).sum() > 0
        assert density.points == known.sum() and density.left_out == (~known).sum()


def test_a_point_is_in_the_cell_whose_edges_hold_it() -> None:
    table = fleet_data.connections(1)
    found = fleet_data.alone(table)
    density = found.density(SRTT, INFLIGHT)
    assert density
    [block] = density.cells
    for span, cell, quantity in ((density.x, "i", SRTT), (density.y, "j", INFLIGHT)):
        value, at = table[quantity.column][0].as_py() * quantity.scale, block.columns[cell][0]
        assert span.low * span.step**at <= value * (1 + 1e-9) and value < span.low * span.step ** (at + 1)


def test_one_connection_far_away_does_not_make_the_others_a_speck() -> None:
    table = fleet_data.connections(5000)
    far = table.slice(0, 1).set_column(table.column_names.index("srtt_us"), "srtt_us", pa.array([1e12]))
    found = fleet_data.alone(pa.concat_tables([table, far]))
    density = found.density(SRTT, INFLIGHT)
    assert density and density.x.high < 1e5
    assert max(block.columns["i"].max() for block in density.cells) == density.x.cells - 1
    assert sum(round(np.exp(block.columns["log_n"]).sum()) for block in density.cells) == 5001


def test_the_line_through_a_density_is_the_median() -> None:
    rows = 400
    table = pa.table(
        {
            "boot_id": ["b"] * rows,
            "algorithm": ["cubic"] * rows,
            "remote_prefix": ["p"] * rows,
            "srtt_us": [20_000.0] * rows,
            "inflight_pkts": [10.0] * 150 + [100.0] * 250,
        }
    )
    found = fleet_data.alone(table)
    density = found.density(SRTT, INFLIGHT)
    assert density
    [row] = density.medians[0].columns["m"]
    assert density.y.low * density.y.step**row <= 100 < density.y.low * density.y.step ** (row + 1)


def test_curves_are_the_shares_of_connections(fleet: Cohorts) -> None:
    table = fleet_data.connections(ROWS)
    names = np.array(table["algorithm"].to_pylist())
    for quantity in (SRTT, RETRANSMITTED):
        for cohort, (values, shares) in distributions.steps(fleet, quantity).items():
            own = table[quantity.column].to_numpy()[names == cohort] * quantity.scale
            at = values[:: max(len(values) // 50, 1)]
            exact = [(own < value).mean() if value > 0 else (own == 0).mean() for value in at]
            assert np.interp(at, values, shares) == pytest.approx(exact, abs=1e-9 if quantity is SRTT else 0.02)
            assert shares[-1] == 1


def test_a_box_is_the_middle_half(fleet: Cohorts) -> None:
    table = fleet_data.connections(ROWS)
    names = np.array(table["algorithm"].to_pylist())
    linear, logarithmic = distributions.axes(fleet, SRTT)
    for axis in (linear, logarithmic):
        for row in boxes.rows(fleet, SRTT, axis):
            own = table["srtt_us"].to_numpy()[names == row["cohort"]] * 1e-3
            below = [(own < row[f"p{percent}"]).mean() for percent in (5, 25, 50, 75, 95)]
            assert below == pytest.approx([0.05, 0.25, 0.5, 0.75, 0.95], abs=0.005)
    assert logarithmic.is_logarithmic and not linear.is_logarithmic and linear.low == 0


def test_percentiles_and_shares_have_intervals_that_hold_them(fleet: Cohorts) -> None:
    table = fleet_data.connections(ROWS)
    reordered = table["reord_seen"].to_numpy() >= 1
    names = np.array(table["algorithm"].to_pylist())
    for row in fleet.shares(REORDERING, 1):
        assert row["v"] == pytest.approx(100 * reordered[names == row["cohort"]].mean(), abs=1e-6)
        assert row["low"] < row["v"] < row["high"] and row["clusters"] > 30
    [one, *_] = fleet.percentiles(THROUGHPUT, ["P50"])
    assert one["what"] == "P50" and one["low"] < one["v"] < one["high"] < 1000, "in Mbit/s"


def test_each_host_has_a_line_of_its_own(fleet: Cohorts) -> None:
    rows = fleet.over_time("counters", retransmitted.SOURCE, retransmitted.PCT, by_host=True)
    means = {host: np.mean([row["v"] for row in rows if row["host"] == host]) for host in {row["host"] for row in rows}}
    expected = {f"edge{host}": pytest.approx(0.1 * (1 + host % 3), rel=0.1) for host in range(6)}
    assert means == expected


def test_percentiles_over_time_are_those_of_the_connections_that_began_then(fleet: Cohorts) -> None:
    table = fleet_data.connections(ROWS)
    rows = fleet.quantiles_over_time(NGINX)
    assert {row["cohort"] for row in rows} == {"cubic", "bbr1", "bbr2"}
    assert sum(row["n"] for row in rows) > 0.95 * ROWS
    own = table["app_throughput_bits_per_sec"].to_numpy()[np.array(table["algorithm"].to_pylist()) == "cubic"] * 1e-6
    middle = np.median([row["p50"] for row in rows if row["cohort"] == "cubic"])
    assert middle == pytest.approx(np.median(own), rel=0.25)
    assert all(row["p25"] <= row["p50"] <= row["p75"] <= row["p95"] for row in rows)


def test_the_curve_of_a_window_goes_through_those_that_it_limits() -> None:
    rtt_us = np.array([10e3, 20e3, 40e3, 80e3] * 10)
    table = pa.table(
        {
            "boot_id": ["b"] * 40,
            "algorithm": ["cubic"] * 40,
            "remote_prefix": ["192.0.2.0/24"] * 40,
            "min_rtt_us": rtt_us,
            "delivery_rate_bits_per_sec": 8e6 * 65_536 / rtt_us,
            "rwnd_limited_pct": [90.0] * 40,
        }
    )
    found = fleet_data.alone(table)
    ceiling = distance._ceiling(found)
    # At 10 ms a window of 64 KiB lets 52.4 Mbit/s through.
    assert ceiling and ceiling.product / 10 == pytest.approx(52.4288)
    words = distance.words(found)
    assert "limited 40 connections (100 %)" in words and "64.0 KiB" in words
    assert "192.0.2.0/24 (30.0 ms)" in words
    free = fleet_data.alone(table.drop(["rwnd_limited_pct"]))
    assert distance._ceiling(free) is None and "receive window limited" not in distance.words(free)


def test_shares_of_ecn_are_those_of_the_connections_that_agreed(fleet: Cohorts) -> None:
    rows = {(row["what"], row["cohort"]): row for row in ecn._rows(fleet)}
    table = fleet_data.connections(ROWS)
    own = np.array(table["algorithm"].to_pylist()) == "cubic"
    agreed, seen = (table[name].to_numpy(zero_copy_only=False)[own] for name in ("ecn", "ecn_seen"))
    marked = table["ce_pct"].to_numpy()[own] > 0
    expected = [agreed.mean(), seen[agreed].mean(), marked[agreed].mean()]
    found = [rows[what, "cubic"] for what in ecn.CONDITIONS]
    assert [row["v"] for row in found] == pytest.approx([100 * share for share in expected])
    assert all(row["low"] < row["v"] < row["high"] < row["v"] + 10 and row["clusters"] > 100 for row in found)


def test_distances_that_many_share_are_named(fleet: Cohorts) -> None:
    near = [float(word) for word in re.findall(r"([\d.]+) ms \(\d", distance.words(fleet).partition("farthest")[0])]
    assert near == [pytest.approx(ms, rel=0.15) for ms in (3, 18, 45, 150)]


def test_quantities_of_hosts_over_time_are_those_of_their_counters(fleet: Cohorts) -> None:
    rows = fleet.over_time("cpu", idle.SOURCE, idle.PCT)
    assert {row["cohort"] for row in rows} == {"cubic", "bbr1", "bbr2"}
    assert [row["v"] for row in rows] == pytest.approx([75.0] * len(rows))
    # Hosts of the first cohort send 1 in 1,000 again, those of the next 2 and 3.
    again = fleet.over_time("counters", retransmitted.SOURCE, retransmitted.PCT)
    means = {name: np.mean([row["v"] for row in again if row["cohort"] == name]) for name in fleet.names}
    assert means == {
        "cubic": pytest.approx(0.1, rel=0.1),
        "bbr1": pytest.approx(0.2, rel=0.1),
        "bbr2": pytest.approx(0.3, rel=0.1),
    }
    begin, end = fleet_data.BEGIN_NS / 1e6, (fleet_data.BEGIN_NS + fleet_data.HOUR_NS) / 1e6
    times = sorted({row["t"] for row in again})
    assert all(begin <= t <= end for t in times) and len(times) > 50


def test_counters_begin_anew_with_each_boot(tmp_path: Path) -> None:
    """A boot whose counters begin below where those of the one before ended is no negative growth."""
    folder = fleet_data.write(tmp_path / "edge", 600)
    rows = fleet_data.counters(6, moments=30).to_pylist()
    later = [
        {**row, "boot_id": "boot0", "value": row["value"] - 10**6 + 1} for row in rows if row["boot_id"] == "boot3"
    ]
    for row in later:
        row["t_unix_ns"] += fleet_data.HOUR_NS
    table = pa.Table.from_pylist([*rows, *later], schema=pa.schema(fleet_data.COUNTERS))
    pq.write_table(table, folder / "counters.parquet")
    with fleet_data.compared(folder) as found:
        drawn = found.over_time("counters", retransmitted.SOURCE, retransmitted.PCT)
        assert len(drawn) > 60 and all(row["v"] >= 0 for row in drawn)


def test_a_table_that_lacks_a_column_is_refused_by_its_name(tmp_path: Path) -> None:
    folder = fleet_data.write(tmp_path / "edge", 600)
    pq.write_table(fleet_data.counters(6).drop_columns("netns"), folder / "counters.parquet")
    with fleet_data.compared(folder) as found, pytest.raises(RunFolderError, match=r"edge: .*netns"):
        export.spec(found, retransmitted)


def test_hosts_that_serve_several_cohorts_have_a_line_of_their_own(tmp_path: Path) -> None:
    # One host serves cubic alone, four serve two algorithms.
    folder = fleet_data.write(tmp_path / "edge", 2000, hosts=5)
    table = fleet_data.connections(2000, hosts=5)
    draw = np.random.default_rng(7).choice(["cubic", "bbr1"], 2000)
    algorithm = np.where(np.array(table["host"].to_pylist()) == "edge0", "cubic", draw)
    table = table.set_column(table.column_names.index("algorithm"), "algorithm", pa.array(algorithm))
    pq.write_table(table, folder / "connections.parquet")
    with fleet_data.compared(folder) as found:
        rows = found.over_time("cpu", idle.SOURCE, idle.PCT)
        assert {row["cohort"] for row in rows} == {"cubic", SEVERAL}
        spec = export.spec(found, idle)
        assert spec["encoding"]["color"]["scale"]["domain"] == ["cubic", SEVERAL]


def test_the_forest_has_every_ratio_with_its_interval(fleet: Cohorts) -> None:
    rows = forest.rows(fleet)
    assert {row["pair"] for row in rows} == {"bbr1 / cubic", "bbr2 / cubic"}
    assert len(rows) == sum(one.is_relative for one in fleet.verdicts) > 10
    [rate] = [row for row in rows if (row["metric"], row["cohort"]) == ("delivery rate P50", "bbr1")]
    assert 1 < rate["low"] < rate["ratio"] < rate["high"] < 3 and rate["shown"]
    [least] = [row for row in rows if (row["metric"], row["cohort"]) == ("least RTT P50", "bbr1")]
    assert least["low"] < 1 < least["high"] and not least["shown"]


@pytest.mark.parametrize("ends", [(1e-6, 1e6), (0.0, float("inf"))])
def test_an_interval_far_too_wide_ends_at_the_edge_and_does_not_squeeze_the_others(
    ends: tuple[float, float], fleet: Cohorts, tmp_path: Path
) -> None:
    first, *others = fleet.verdicts
    wide = dataclasses.replace(first, ratio=dataclasses.replace(first.ratio, value=1.1, low=ends[0], high=ends[1]))
    spec = export.spec(dataclasses.replace(fleet, verdicts=[wide, *others]), forest)
    [low, high] = json.loads(re.search(r'"domain": (\[[\d., e-]+\])', json.dumps(spec))[1])
    assert 0.05 < low < 1 < high < 30
    [rows] = spec["datasets"].values()
    assert all(low * 0.999 <= row["from"] <= row["to"] <= high * 1.001 for row in rows)
    assert "NaN" not in export.save_figure(lambda layout: spec, tmp_path / "forest.svg").read_text()


def test_cells_are_few_enough_for_a_small_file() -> None:
    assert 3 * binned.ACROSS * binned.UP < 20_000 and binned.ACROSS_ONE * binned.UP < 20_000
