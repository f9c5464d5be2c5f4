"""The flame graphs of a run, as its report shows them."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import browser
from tcpknee.pages import flames, page
from tcpknee.pages.run import ReportRun

PROBE = """
const boxes = () => [...document.querySelectorAll('#flame g')];
const said = () => boxes().map((g) => g.getAttribute('aria-label'));
const form = document.getElementById('search');
const pick = (name, value) => {
  form.elements[name].value = value;
  form.dispatchEvent(new Event('input', { bubbles: true }));
};
const told = { beside: said(), legend: document.getElementById('legend').children.length };
pick('beside', '');
told.alone = said();
told.named = document.getElementById('legend').textContent;
pick('graph', '3');
told.other = said();
const out = document.createElement('pre');
out.id = 'probe';
out.textContent = JSON.stringify(told);
document.body.append(out);
"""


def test_each_cell_has_a_graph_of_its_mean_repetition(case):
    found = flames.of(ReportRun.open(case("measured")))
    assert found is not None
    labels = [graph["label"] for graph in found["graphs"]]
    assert len(labels) == len(set(labels)) == 4
    # 60 samples of it in each of two repetitions.
    assert ("sender;tcp_ack_[k]", 60.0, "TCP/IP") in found["graphs"][0]["stacks"]


def test_it_stands_beside_the_other_algorithm_under_the_same_condition(case):
    found = flames.of(ReportRun.open(case("measured")))
    assert found is not None and found["beside"] is not None
    first, beside = (found["graphs"][place]["label"] for place in (0, found["beside"]))
    assert {first.partition(",")[0], beside.partition(",")[0]} == {"cubic", "bbr1"}
    assert first.partition(",")[2] == beside.partition(",")[2]


def test_without_samples_of_stacks_there_is_none(case):
    run = ReportRun.open(case("hosts"))
    assert flames.of(run) is None
    assert 'id="figure-flame"' not in page.render(run)


def test_the_functions_of_both_algorithms_stand_beside_each_other(case):
    found = flames.of(ReportRun.open(case("measured")))
    table = flames.shown(found)["flame_functions"]
    assert re.fullmatch(r"Functions of cubic.* \(before\) and bbr1.* \(now\)", table["title"])
    assert "tcp_ack [k]" in {row[0] for row in table["rows"]}
    alone = flames.shown({**found, "beside": None})["flame_functions"]
    assert alone["heads"][1] == "itself %" and sum(float(row[1]) for row in alone["rows"] if row[1] != "-") <= 100.1
    assert 'id="functions"' in page.render(ReportRun.open(case("measured")))


def test_of_too_many_stacks_those_with_most_samples_are_held():
    stacks = [(f"f{number}", float(number), "other") for number in range(50)]
    assert flames.largest(stacks, 2) == [("f49", 49.0, "other"), ("f48", 48.0, "other")]


@browser.needed
def test_a_reader_chooses_which_graph_is_shown_and_what_stands_beside_it(case, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(browser.probed(page.render(ReportRun.open(case("measured"))), PROBE))
    document, console, output = browser.opened(file, seconds=5)
    assert not console, console
    found = re.search(r'<pre id="probe">(.*?)</pre>', document, re.DOTALL)
    assert found, output
    told = json.loads(html.unescape(found[1]))
    assert told["legend"] == 0 and all("the other" in label for label in told["beside"])
    assert not any("the other" in label for label in told["alone"])
    assert "TCP/IP" in told["named"] and len(told["other"]) == len(told["alone"]) == 14
