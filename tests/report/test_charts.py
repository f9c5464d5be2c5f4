"""What charts look like once drawn: grids, room at the edges, lines, order, words beside points."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

import synthetic
import tcpknee
import traces
from drawn import panels
from tcpknee.live import trace
from tcpknee.pages import export, figures, marks, palette, sources, theme, trace_page
from tcpknee.pages.figures import completion, delay_goodput, timeseries
from tcpknee.pages.run import ReportRun

layouts = pytest.mark.parametrize("layout", theme.LAYOUTS, ids=lambda layout: layout.name)
LEAST_ROOM = 4
"""Pixels: more than half of a line's width, so that it is whole and apart from the frame."""


def over_time(folder: Path, layout: theme.Layout = theme.WIDE) -> list[Any]:
    return panels(export.spec(ReportRun.open(folder), timeseries, layout=layout))


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> trace.Trace:
    return trace.read(traces.write(tmp_path_factory.mktemp("trace") / "trace", connections=2))


# --- panels above one another ------------------------------------------------


def has_one_grid(found: list[Any]) -> None:
    *upper, last = found
    assert len(upper) >= 2 and len(last.ticks) >= 4
    for panel in found:
        assert panel.grid == last.ticks


@layouts
@pytest.mark.parametrize("name", ["one", "two", "many", "transfer"])
def test_every_panel_has_its_grid_at_the_ticks_of_the_lowest(name, layout, case):
    has_one_grid(over_time(case(name), layout))


def test_every_panel_of_a_trace_has_its_grid_at_the_ticks_of_the_lowest(traced):
    found = panels(trace_page.spec(traced))
    assert len(found) == 4
    has_one_grid(found)


@pytest.mark.parametrize("beside", ["", "[[flow]]\nalgorithm = 'reno'\nhops = '2'"])
def test_the_queue_of_each_hop_is_a_line_of_its_own(beside):
    text = """
    duration = "1s"
    [[hop]]
    rate = "10Mbit/s"
    rtt = "20ms"
    [[hop]]
    rate = "12Mbit/s"
    rtt = "10ms"
    [[flow]]
    algorithm = "cubic"
    """
    run = ReportRun.open(tcpknee.run(text + beside))
    blocks = timeseries.data(run, run.conditions[0])["lines_queue"]
    assert [block.constants["series"] for block in blocks] == run.series.queue_labels
    assert all(label.startswith(f"queue of hop {n}, cubic") for n, label in enumerate(run.series.queue_labels, 1))
    assert len(blocks) == 2 and all((block.columns["t"][1:] >= block.columns["t"][:-1]).all() for block in blocks)
    assert timeseries.buffer_line(run, sources.QUEUE) == [], "each hop has its own buffer"


def test_a_constant_has_room_above_it_in_every_panel(tmp_path):
    found = over_time(synthetic.write_run(tmp_path / "run", constant=True))
    assert len(found) == len(sources.SAMPLES.panels) + 1, "one of them is the queue"
    for panel in found:
        heights = [y for line in panel.lines for _, y in line]
        assert min(heights) >= LEAST_ROOM and max(heights) <= panel.height


def test_a_constant_of_a_trace_has_room_above_it_in_every_panel(tmp_path):
    *found, turning_points = panels(
        trace_page.spec(trace.read(traces.write(tmp_path / "trace", connections=2, constant=True)))
    )
    assert len(found) == 3 and not turning_points.lines
    for panel in found:
        heights = [y for line in panel.lines for _, y in line]
        assert min(heights) >= LEAST_ROOM and max(heights) <= panel.height


def test_a_constant_round_trip_time_lies_within_its_panel(tmp_path):
    srtt = over_time(synthetic.write_run(tmp_path / "run", constant=True))[4]
    (height,) = {y for line in srtt.lines for _, y in line}
    assert 0.2 * srtt.height < height < 0.8 * srtt.height


@pytest.mark.parametrize("name", ["two", "many", "shared"])
def test_the_greatest_value_has_room_above_it(name, case):
    for panel in over_time(case(name)):
        assert min(y for line in panel.lines for _, y in line) >= LEAST_ROOM


def test_an_axis_from_zero_ends_beyond_the_greatest_value():
    assert marks.from_zero([3.0, None, 50.0]).to_dict()["domain"] == [0, pytest.approx(50 * (1 + marks.HEADROOM))]
    assert marks.from_zero([0.0]).to_dict()["domain"] == [0, 1.0]
    assert marks.from_zero([]).to_dict()["domain"] == [0, 1.0]


def test_all_transfers_complete_is_below_the_edge(case):
    spec = export.spec(ReportRun.open(case("transfer")), export.find("completion"))
    y = spec["layer"][0]["encoding"]["y"]
    assert y["scale"]["domain"][1] > 100 == y["axis"]["values"][-1]


def test_of_many_transfers_the_slow_ones_have_room(tmp_path):
    spec = export.spec(ReportRun.open(synthetic.write_run(tmp_path, flows=60, workload="transfer")), completion)
    line, points = spec["layer"]
    y = line["encoding"]["y"]
    assert y["field"] == "open" and y["scale"]["type"] == "log", "60 transfers in five repetitions are 300"
    assert y["axis"]["values"][:4] == [100, 50, 10, 5], "p0, the median, p90, p95"
    assert points["transform"] == [{"filter": "datum.mark"}]
    assert "percentiles" in completion.words(ReportRun.open(tmp_path))


def test_percentiles_of_completion_are_marked_where_they_were_reached():
    times = [float(k) for k in range(1, 1001)]
    rows = completion._tail(times, 1000)
    assert {row["ms"]: row["open"] for row in rows if row["mark"]} == pytest.approx(
        {500: 50.1, 900: 10.1, 950: 5.1, 990: 1.1, 999: 0.2}
    )
    assert len(rows) <= completion.POINTS_AT_MOST + 5
    assert sum(row["ms"] >= 990 for row in rows) == 11, "each of the slowest"
    unfinished = completion._tail(times[:980], 1000)
    assert [row["ms"] for row in unfinished if row["mark"]] == [500, 900, 950], "p99 was not reached"
    assert unfinished[-1]["open"] == pytest.approx(2.1) and completion._tail([], 5) == []


# --- lines ------------------------------------------------------------------


def test_dense_lines_are_solid_in_every_panel_and_in_the_legend(case):
    for name in ("two", "shared", "many"):
        _, _, dashes = timeseries.labels(ReportRun.open(case(name)))
        assert {tuple(dash) for dash in dashes} == {(1, 0)}
        assert {dash for panel in over_time(case(name)) for dash in panel.dashes} <= {"1,0", None}


def test_sparse_lines_of_several_algorithms_keep_their_dashes(tmp_path):
    run = ReportRun.open(synthetic.write_run(tmp_path / "run", interval_ms=1000, seconds=20))
    names, _, dashes = timeseries.labels(run)
    assert names == ["cubic", "bbr1"] and len({tuple(dash) for dash in dashes}) == 2
    spec = export.spec(run, timeseries)
    # What the legend shows is what the lines are: both are of one scale.
    scales = {tuple(map(tuple, scale["range"])) for scale in dash_scales(spec)}
    assert scales == {tuple(map(tuple, dashes))}


def dash_scales(spec: Any) -> list[Any]:
    if isinstance(spec, list):
        return [scale for part in spec for scale in dash_scales(part)]
    if not isinstance(spec, dict):
        return []
    here = [spec["strokeDash"]["scale"]] if isinstance(spec.get("strokeDash"), dict) else []
    return here + [scale for value in spec.values() for scale in dash_scales(value)]


def test_solid_lines_of_one_algorithm_differ_in_how_light_they_are(case):
    names, inks, _ = timeseries.labels(ReportRun.open(case("shared")))
    of_flows = dict(zip(names, inks, strict=True))
    assert of_flows["cubic #1"] == palette.colour(0) and of_flows["bbr1 #1"] == palette.colour(1)
    assert len({of_flows[f"{name} #{number}"] for name in ("cubic", "bbr1") for number in (1, 2)}) == 4


@pytest.mark.parametrize("paper", ["#FFFFFF", "#15181C"])
def test_every_line_stands_out_from_either_paper(paper):
    for ink, turn in itertools.product(palette.COLOURS, range(3)):
        one, other = sorted((luminance(palette.tint(ink, turn)), luminance(paper)))
        assert (other + 0.05) / (one + 0.05) >= 1.4, (ink, turn)


@pytest.mark.parametrize("ink", palette.COLOURS)
def test_lines_of_one_colour_differ_in_luminance_which_every_eye_sees(ink):
    """At least 1.3 : 1 between any two of a panel's first three lines of one colour."""
    lights = sorted(luminance(palette.tint(ink, turn)) for turn in range(3))
    assert all((b + 0.05) / (a + 0.05) >= 1.3 for a, b in itertools.pairwise(lights))


def luminance(ink: str) -> float:
    """WCAG 2.1, relative luminance."""
    levels = [int(ink[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [level / 12.92 if level <= 0.04045 else ((level + 0.055) / 1.055) ** 2.4 for level in levels]
    return sum(part * level for part, level in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


# --- order and words ----------------------------------------------------------


@pytest.mark.parametrize("name", list(synthetic.CASES))
def test_delay_against_goodput_is_the_second_figure(name, case, pages):
    names = [one.name for one in figures.of(ReportRun.open(case(name)))]
    assert names[0] == ("axes" if "axes" in synthetic.CASES[name] else "goodput")
    assert names[1] == "delay-goodput"
    assert "goodput" in names and len(set(names)) == len(names)
    # Where call stacks were sampled, a flame graph follows what is drawn as a chart.
    sampled = ["flame"] if name == "measured" else []
    assert re.findall(r'<section id="figure-([a-z-]+)"', pages(name)) == names + sampled


@layouts
@pytest.mark.parametrize("name", ["one", "two", "request", "shared", "transfer", "many"])
def test_each_point_has_its_algorithm_beside_it(name, layout, case):
    run = ReportRun.open(case(name))
    rows = delay_goodput.points(run)
    placed = delay_goodput.labels(rows, delay_goodput.Frame.of(rows, 100.0, layout))
    assert sorted(row["label"] for row in placed) == sorted(entrant.label for entrant in run.entrants)


@layouts
def test_points_of_a_matrix_say_algorithm_and_setting_where_there_is_room(layout, case):
    rows = delay_goodput.points(ReportRun.open(case("matrix")))
    placed = delay_goodput.labels(rows, delay_goodput.Frame.of(rows, 100.0, layout))
    words = [row["label"] for row in placed]
    assert len(words) > len(rows) / 2
    assert all(word in row["words"] for word, row in zip(words, placed, strict=True))
    for algorithm in ("cubic", "bbr1"):
        assert any(word.startswith(f"{algorithm}, ") for word in words)


def test_points_at_one_place_are_both_named():
    rows = [{**row_at(100.0, 10.0), "entrant": name, "words": [name]} for name in ("cubic", "reno")]
    rows.append({**row_at(120.0, 20.0), "entrant": "bbr1", "words": ["bbr1"]})
    frame = delay_goodput.Frame.of(rows, None, theme.NARROW)
    assert {row["label"] for row in delay_goodput.labels(rows, frame)} == {"cubic", "reno", "bbr1"}


def test_a_point_among_many_has_no_words_rather_than_words_over_others():
    rows = [{**row_at(100.0 + k / 1e6, 10.0), "entrant": f"flow {k}", "words": [f"flow {k}"]} for k in range(50)]
    rows.append({**row_at(200.0, 20.0), "entrant": "other", "words": ["other"]})
    placed = delay_goodput.labels(rows, delay_goodput.Frame.of(rows, None, theme.WIDE))
    assert 0 < len(placed) < 20
    assert "other" in {row["label"] for row in placed}


def row_at(delay: float, goodput: float) -> dict[str, Any]:
    ends = {
        f"{name}_{end}": value for name, value in (("delay", delay), ("goodput", goodput)) for end in ("low", "high")
    }
    return {"delay": delay, "goodput": goodput, **ends}


def test_rows_of_charts_have_the_order_of_the_summary(case):
    run = ReportRun.open(case("request"))
    assert marks.entrants(run) == ["cubic", "bbr1", "reno"] == [entrant.label for entrant in run.entrants]


@layouts
def test_a_legend_is_no_wider_than_the_drawing(layout):
    for names in (["cubic", "bbr1"], list(palette.LIMITS), [f"connection {k}" * 3 for k in range(12)], ["x" * 200]):
        columns = layout.legend_columns(names)
        widths = [max(map(len, names[k::columns])) * theme.LETTER + theme.LEGEND_SYMBOL for k in range(columns)]
        assert columns == 1 or sum(widths) <= layout.least
