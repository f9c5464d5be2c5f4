"""Every figure of the registry renders, says its units, and stands few and many flows."""

from __future__ import annotations

import itertools
import json
import re
from types import ModuleType

import altair as alt
import pytest

import synthetic
import tcpknee
from tcpknee import _core, pages
from tcpknee.errors import UsageError
from tcpknee.pages import export, over_axes, palette
from tcpknee.pages.figures import FIGURES
from tcpknee.pages.run import ReportRun

# Quantities without a unit of their own: names and counts on an axis of a matrix, labels of rows.
UNITLESS = {"RTT", "Loss", "Flow 0 connections", None}
#: A case in which each figure applies.
SHOWN_BY = {
    "axes": "matrix",
    "completion": "transfer",
    "cost-axes": "measured",
    "cpu": "hosts",
    "cpu-axes": "measured",
    "heat": "matrix",
    "host-costs": "hosts",
    "latency": "request",
    "requests": "asked",
    "shares": "shared",
    "sizes": "transfer",
}

figures = pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)


def quantitative_titles(spec: object) -> list[object]:
    """Titles of all axes on which numbers stand."""
    found: list[object] = []
    if isinstance(spec, dict):
        for channel, encoding in (spec.get("encoding") or {}).items():
            if channel in ("x", "y") and encoding.get("type") == "quantitative":
                axis = encoding.get("axis")
                title = encoding.get("title", axis.get("title", "missing") if isinstance(axis, dict) else "missing")
                found.append(title)
        for value in spec.values():
            found += quantitative_titles(value)
    elif isinstance(spec, list):
        for value in spec:
            found += quantitative_titles(value)
    return found


@figures
def test_says_what_it_is(figure: ModuleType):
    assert re.fullmatch(r"[a-z][a-z-]*", figure.name)
    assert figure.title and figure.summary.endswith(".")
    assert figure.__doc__


def test_names_are_unique():
    names = [figure.name for figure in export.EVERY]
    assert len(set(names)) == len(names)
    assert [name for name, _, _ in pages.figure_names()] == names


@figures
@pytest.mark.parametrize("name", list(synthetic.CASES))
def test_renders_wherever_it_applies(figure, name, case, tmp_path):
    run = ReportRun.open(case(name))
    if not figure.applies(run):
        with pytest.raises(UsageError, match="does not apply"):
            pages.save(run, figure.name, tmp_path / "figure.svg")
        return
    svg = pages.save(run, figure.name, tmp_path / "figure.svg").read_text()
    assert svg.startswith("<svg")
    assert "NaN" not in svg and "undefined" not in svg


@figures
def test_applies_to_some_case(figure, case):
    assert figure.applies(ReportRun.open(case(SHOWN_BY.get(figure.name, "two"))))


@figures
def test_number_axes_carry_their_unit(figure, case):
    run = ReportRun.open(case(SHOWN_BY.get(figure.name, "two")))
    spec = export.spec(run, figure, data=False)
    alt.Chart.from_dict(spec, validate=True)
    # Numbers that are shown as shades have their unit in the legend.
    titles = quantitative_titles(spec) or re.findall(r'"legend": {[^}]*"title": "([^"]*)"', json.dumps(spec))
    said = [" ".join(title) if isinstance(title, list) else title for title in titles]
    with_unit = [
        t for t in said if isinstance(t, str) and re.search(r"\((Mbit/s|thousand/s|ms|s|ns|%|kB|segments)\)$", t)
    ]
    assert with_unit
    # An axis that some layer leaves to the others is given its title by them; no axis is given one without a unit.
    assert set(said) - set(with_unit) <= {"missing", None, *UNITLESS}


@figures
def test_a_run_without_flows_has_no_figures(figure, tmp_path):
    folder = synthetic.write_run(tmp_path / "none", flows=0, sampled=False, reps=1, processors=2)
    assert not figure.applies(ReportRun.open(folder))


@figures
def test_is_drawn_the_same_twice(figure, case):
    texts = []
    for _ in range(2):
        run = ReportRun.open(case(SHOWN_BY.get(figure.name, "two")))
        texts.append(json.dumps(export.spec(run, figure), sort_keys=True))
    assert texts[0] == texts[1]


def test_png_is_written_as_svg_is(case, tmp_path):
    assert pages.save(case("two"), "goodput", tmp_path / "goodput.png").read_bytes().startswith(b"\x89PNG")


def test_unknown_figures_are_refused_with_a_suggestion(case, tmp_path):
    with pytest.raises(UsageError, match=r'got "godput".*Did you mean "goodput"'):
        pages.save(case("two"), "godput", tmp_path / "x.svg")


def test_unknown_endings_are_refused(case, tmp_path):
    with pytest.raises(UsageError, match=r"expected \.pdf, \.svg or \.png"):
        pages.save(case("two"), "goodput", tmp_path / "x.gif")


def test_a_condition_that_is_not_there_is_refused(case, tmp_path):
    with pytest.raises(UsageError, match="condition: got 9; expected 0 to 8: 0 is RTT 20ms, loss 0%, 1 is "):
        pages.save(case("matrix"), "timeseries", tmp_path / "x.svg", condition=9)
    for condition in (9, -1):
        with pytest.raises(UsageError, match=f"condition: got {condition}; expected 0 to 8: 0 is RTT 20ms"):
            tcpknee.figure(case("matrix"), "timeseries", condition=condition)


def test_a_condition_of_a_figure_that_shows_all_is_refused(case, tmp_path):
    with pytest.raises(UsageError, match='condition: got 1 for the figure "goodput", which shows every condition'):
        pages.save(case("matrix"), "goodput", tmp_path / "x.svg", condition=1)


def test_an_algorithm_looks_the_same_in_every_run():
    alone, beside = palette.slots(["bbr1"]), palette.slots(["cubic", "bbr1", "vegas"])
    assert alone["bbr1"] == beside["bbr1"]
    looks = {(palette.colour(k), palette.shape(k)) for k in range(len(palette.COLOURS) * 2)}
    assert len(looks) == len(palette.COLOURS) * 2


def test_every_algorithm_has_the_colour_of_its_family_and_a_look_of_its_own():
    names = [one["name"] for one in _core.algorithms()]
    assert sorted(names) == sorted(itertools.chain(*palette.FAMILIES.values()))
    slots = palette.slots(names)
    inks = {family: {palette.base(slots[name]) for name in members} for family, members in palette.FAMILIES.items()}
    assert all(len(found) == 1 for found in inks.values()) and len(set.union(*inks.values())) == len(inks)
    assert len({(palette.colour(slot), palette.shape(slot)) for slot in slots.values()}) == len(names)


def test_a_file_of_ones_own_has_no_place_of_an_algorithm_beside_it():
    """Linux' bbr is bbr1, unless both are there."""
    for others in (["vegas", "cubic"], ["bbr", "dctcp"], []):
        slots = palette.slots([*others, "mine", "theirs"])
        assert len({palette.colour(slot) for slot in slots.values()}) == len(slots)
    assert palette.slots(["bbr"])["bbr"] == palette.slots(["bbr1"])["bbr1"]
    assert len(set(palette.slots(["bbr", "bbr1"]).values())) == 2


def test_limits_add_up_to_the_whole_steady_part(case):
    from tcpknee.pages.figures import limits

    for name in ("two", "many", "transfer"):
        sums: dict[tuple[object, object], float] = {}
        for row in limits.shares(ReportRun.open(case(name))):
            key = row["condition"], row["row"]
            sums[key] = sums.get(key, 0.0) + float(str(row["pct"]))
        assert sums and all(abs(total - 100) < 1e-6 for total in sums.values())


def test_time_series_show_the_repetition_of_median_goodput(case):
    run = ReportRun.open(case("two"))
    for cell, rep in run.median_rep.items():
        totals = sorted(
            (sum(r["goodput_bits_per_sec"] for r in run.flows if (r["cell"], r["rep"]) == (cell, k)), k)
            for k in range(5)
        )
        assert totals[2][1] == rep


def test_repetitions_of_transfers_that_come_and_go_lie_about_their_mean(case):
    run = ReportRun.open(case("web"))
    [points] = export.spec(run, export.find("goodput"))["datasets"].values()
    for entrant, group in run.measured:
        of = [point for point in points if point["entrant"] == entrant.label]
        mean = next(point["goodput"] for point in of if point["kind"] == "mean")
        singles = {point["rep"]: point["goodput"] for point in of if point["kind"] == "repetition"}
        assert sum(singles.values()) / len(singles) == pytest.approx(mean, rel=1e-3)
        shown = [singles[rep] * 1e6 for rep in group.reps.tolist()]
        assert shown == pytest.approx(group.values["goodput_bits_per_sec"].tolist(), rel=1e-3)


@pytest.mark.parametrize("late", [False, True])
def test_the_median_repetition_is_that_of_the_cells_goodput(case, late):
    text = """
    duration = "2s"
    warmup = "500ms"
    repeat = 5
    path = { rate = "10Mbit/s", rtt = "20ms", loss = "0.5%" }
    flow = [{ algorithm = "cubic" }, { algorithm = "reno", start = "1300ms" }]
    """
    run = ReportRun.open(tcpknee.run(text) if late else case("web"))
    for total in run.stats.totals:
        ordered = sorted(zip(total.values["goodput_bits_per_sec"].tolist(), total.reps.tolist(), strict=True))
        assert run.median_rep[total.cell] == ordered[2][1]


def test_no_spike_of_a_flow_is_lost_on_the_way_to_the_page(case):
    run = ReportRun.open(case("many"))
    condition = run.conditions[0]
    rep = run.median_rep[0]
    samples = run.table("samples", ["flow", "srtt_us"], cell=0, rep=rep).to_pylist()
    greatest = {}
    for row in samples:
        greatest[row["flow"]] = max(greatest.get(row["flow"], 0), row["srtt_us"])
    blocks = {block.constants["series"]: block for block in run.series.lines(condition)["srtt"]}
    assert len(blocks) == len(greatest) == 50
    for entrant in run.entrants:
        for flow in entrant.flows:
            drawn = max(row["v"] for row in blocks[run.series.labels(entrant)[flow]].rows())
            assert drawn == pytest.approx(greatest[flow] * 1e-3, rel=1e-6)
    band = {block.constants["entrant"]: block for block in run.series.bands(condition)["srtt"]}
    for entrant in run.entrants:
        top = max(row["high"] for row in band[entrant.label].rows())
        assert top == pytest.approx(max(greatest[flow] for flow in entrant.flows) * 1e-3, rel=1e-6)


@pytest.mark.parametrize("name", ["axes", "completion"])
def test_each_small_chart_has_its_axes_and_no_axes_stand_without_one(name, tmp_path):
    """Five conditions in rows of four: a facet would draw the axes of three more."""
    more = {"workload": "transfer"} if name == "completion" else {}
    losses = ("0%", "0.1%", "0.5%", "1%", "2%")
    axes = {"path.loss": losses, **({"path.rtt": ("20ms", "40ms")} if name == "axes" else {})}
    run = ReportRun.open(synthetic.write_run(tmp_path / "run", axes=axes, reps=2, seconds=2.0, **more))
    spec = export.spec(run, export.find(name))
    grid = next(one for one in spec["vconcat"] if len(one["concat"]) == 5) if name == "axes" else spec
    assert len(grid["concat"]) == 5 and grid["columns"] == 3
    assert "facet" not in json.dumps(grid["concat"])
    title = "RTT" if name == "axes" else "Completion time (ms)"
    assert all(f'"title": "{title}"' in json.dumps(panel) for panel in grid["concat"])
    assert name != "axes" or '"title": "Loss (%)"' in json.dumps(spec), "titles of axes begin with a capital"
    pages.save(run, name, tmp_path / "figure.svg")


def test_a_matrix_of_three_axes_is_a_full_grid_and_says_what_it_leaves_out(tmp_path, monkeypatch):
    axes = {
        "path.rtt": ("10ms", "20ms", "40ms", "80ms", "160ms"),
        "path.loss": ("0%", "0.1%", "1%"),
        "path.buffer": ("0.5bdp", "1bdp", "2bdp", "4bdp", "8bdp"),
    }
    run = ReportRun.open(synthetic.write_run(tmp_path / "run", axes=axes, reps=1, seconds=1.0, sampled=False))
    figure = export.find("axes")
    shapes = [(len(one["concat"]), one["columns"]) for one in export.spec(run, figure)["vconcat"]]
    assert shapes == [(15, 5), (25, 5), (15, 3)], "a column per value of the last axis besides its own"
    assert figure.words(run) == "" and export.find("heat").words(run) == "" and export.find("goodput").words(run)
    monkeypatch.setattr(over_axes, "PANELS_AT_MOST", 20)
    assert figure.words(run) == "Over loss the first 20 of 25 small charts are shown."
    assert len(export.spec(run, figure)["vconcat"][1]["concat"]) == 20
