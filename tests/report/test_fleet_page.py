"""The page of a fleet: verdicts first, complete, offline, small, and safe with hostile words."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fleet_data
from tcpknee.pages import fleet_page, page
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.figures import fleet as figures
from test_page import FETCHING, HOSTILE, data_of, read


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cohorts]:
    with fleet_data.compared(fleet_data.write(tmp_path_factory.mktemp("fleet") / "edge", 4000)) as found:
        yield found


@pytest.fixture(scope="module")
def html(fleet: Cohorts) -> str:
    return fleet_page.render(fleet)


def test_verdicts_come_first_then_cohorts_then_every_figure(fleet: Cohorts, html: str) -> None:
    words = " ".join(read(html).words)
    places = [words.index(sentence) for sentence in fleet_page.answer(fleet)]
    assert len(places) == 2 and places == sorted(places)
    assert places[-1] < words.index("Verdicts") < words.index("Cohorts") < words.index(figures.of(fleet)[0].title)
    assert fleet.text in "".join(read(html).words)
    shown = re.findall(r'<section id="figure-([a-z-]+)"', html)
    assert shown == [figure.name for figure in figures.FIGURES]
    for cohort, count in fleet.counts.items():
        assert cohort in words and f"{count:,}" in words


def test_the_head_says_every_difference_that_is_shown_and_no_other(fleet: Cohorts) -> None:
    for sentence, cohort in zip(fleet_page.answer(fleet), ("bbr2", "bbr1"), strict=True):
        assert sentence.startswith(f"{cohort} against cubic, at 3")
        for one in fleet.verdicts:
            if one.cohort == cohort:
                is_shown = one.word in ("better", "worse", "higher", "lower")
                assert (f"{one.metric.label} {one.metric.middle} " in sentence) == is_shown
    little = [dataclasses.replace(one, no_worse="no worse") for one in fleet.verdicts]
    assert (
        "; worse, by less than 2 %: retransmitted mean "
        in fleet_page.answer(dataclasses.replace(fleet, verdicts=little))[0]
    )
    none = dataclasses.replace(fleet, verdicts=[one for one in fleet.verdicts if not one.p_adjusted < 0.05])
    assert all(sentence.endswith(": no difference is shown") for sentence in fleet_page.answer(none))


def test_a_page_fetches_nothing(html: str) -> None:
    elements = read(html)
    for tag, attributes in elements.elements:
        assert not FETCHING & set(attributes), (tag, attributes)
    assert len(html.encode()) <= page.BYTES_AT_MOST
    policy = next(a["content"] for _, a in elements.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy and policy.startswith("default-src 'none'") and "http" not in policy


def test_every_chart_says_what_it_is_to_who_does_not_see_it(html: str) -> None:
    charts = [a for _, a in read(html).elements if a.get("class") == "chart"]
    assert len(charts) == len(figures.FIGURES)
    for chart in charts:
        assert chart["role"] == "img" and len(chart["aria-label"] or "") > 40


def test_hostile_words_stay_words(tmp_path: Path) -> None:
    folder = fleet_data.write(tmp_path / "edge", 300, algorithms=(HOSTILE, "cubic"))
    with fleet_data.compared(folder) as found:
        pages = (
            fleet_page.render(dataclasses.replace(found, by=HOSTILE, warnings=[HOSTILE])),
            fleet_page.notebook(found),
        )
    for html in pages:
        elements = read(html)
        tags = [tag for tag, _ in elements.elements]
        assert tags.count("script") == (3 if "<html" in html else 0) and not {"img", "b", "i"} & set(tags)
        assert not any(name.startswith("on") for _, attributes in elements.elements for name in attributes)
        assert "".join(elements.words).count(HOSTILE) >= 6
    data_of(read(pages[0]))


@pytest.mark.parametrize("rows", [0, 1])
def test_no_connection_and_one_have_a_page(rows: int) -> None:
    words = " ".join(read(fleet_page.render(fleet_data.alone(fleet_data.connections(rows)))).words)
    assert f"{rows} connection" in words
    assert "No cohorts were compared." in words


def test_the_same_fleet_gives_the_same_page(fleet: Cohorts, html: str) -> None:
    assert fleet_page.render(dataclasses.replace(fleet)) == html


def test_each_data_set_stands_once(html: str) -> None:
    data = data_of(read(html))
    for entry in data["specs"]:
        assert not [name for name, spec in entry["specs"].items() if "datasets" in spec]
    assert len(data["conditions"]) == 1
    assert {"inflight", "distance", "curves_srtt_linear"} <= set(data["conditions"][0]["sets"])


def test_one_cluster_cannot_be_told_and_zeros_are_not_drawn(tmp_path: Path) -> None:
    table = fleet_data.connections(600, algorithms=("cubic", "bbr1"))
    same = {"remote_prefix": ["192.0.2.0/24"] * 600, **dict.fromkeys(("rwnd_limited_pct", "reord_seen"), [0.0] * 600)}
    for name, values in same.items():
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
    (tmp_path / "one").mkdir()
    pq.write_table(table, tmp_path / "one" / "connections.parquet")
    with fleet_data.compared(tmp_path / "one") as found:
        [sentence] = fleet_page.answer(found)
        text = " ".join(read(fleet_page.render(found)).words)
        drawn = {figure.name for figure in figures.of(found)}
    assert sentence.endswith(": whether it differs cannot be told: there are too few clusters for an interval")
    assert "no difference is shown" not in text and "[no interval] %" not in text
    assert "no difference [no interval]" in text
    assert not {"rwnd-limited", "reordering"} & drawn and "throughput" in drawn
