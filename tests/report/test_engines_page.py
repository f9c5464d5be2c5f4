"""The page of one scenario by several engines: all of them in one table, and in each figure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tcpknee
from tcpknee import pages
from tcpknee.pages.joined import Joined
from tcpknee.runs import engines_text
from tcpknee.runs.results import Run

SCENARIO = """
title = "By </script> several"
duration = "1s"
repeat = 2
[path]
rate = "10Mbit/s"
rtt = ["20ms", "40ms"]
[[flow]]
algorithm = ["cubic", "reno"]
"""


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    """The simulator by its own rules, and by those of two releases."""
    return [tcpknee.run(SCENARIO), tcpknee.run(SCENARIO, kernel=["4.15", "7.2"]), tcpknee.run(SCENARIO, kernel="5.10")]


def test_cells_that_differ_in_the_kernel_alone_stand_together(runs: list[Run]) -> None:
    joined = Joined.of_engines(runs)
    assert [condition.label for condition in joined.conditions] == ["RTT 20ms", "RTT 40ms"]
    who = ["sim", "sim, rules of 4.15", "sim, rules of 7.2", "sim, rules of 5.10"]
    expected = [(at, f"{algorithm}, {one}") for at in (0, 1) for algorithm in ("cubic", "reno") for one in who]
    assert [(entrant.condition, entrant.label) for entrant in joined.entrants] == expected
    assert len({joined.slots[entrant.algorithm] for entrant in joined.entrants}) == 8
    # Each has the figures of its own run.
    (shift,) = {shift for _, shift, _ in joined.parts} - {0, 4}
    assert shift == 12
    of_last = joined.table("flows", cell=shift + 3)
    assert of_last["goodput_bits_per_sec"].equals(runs[2].rows("flows", cell=3)["goodput_bits_per_sec"])
    assert len(joined.table("flows")) == sum(len(run.flows) for run in runs)
    of_group = {(group.cell, group.group): group for group in joined.stats.groups}
    assert of_group[shift, 0].metrics == runs[2].summary.groups[0].metrics


def test_the_page_has_the_table_and_the_figures_of_all(runs: list[Run], tmp_path: Path) -> None:
    text = pages.write(list(runs), tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h1>By &lt;/script&gt; several</h1>" in text
    (table,) = re.findall(r"<tbody>(.*?)</tbody>", text, re.DOTALL)
    assert (
        re.findall(r"<td>([^<]*)</td>", table)
        == ["sim", "sim, rules of 4.15", "sim, rules of 7.2", "sim, rules of 5.10"] * 4
    )
    heads = [head for head in re.findall(r'<th scope="row">([^<]*)</th>', table) if head]
    assert heads == [f"rtt {rtt}, {algorithm}" for rtt in ("20ms", "40ms") for algorithm in ("cubic", "reno")]
    assert {"figure-goodput", "figure-timeseries"} <= set(re.findall(r'<section id="([^"]+)"', text))
    assert "cubic, sim, rules of 4.15" in text


def test_what_an_engine_does_not_do_stands_on_the_page_once(tmp_path: Path) -> None:
    asked = SCENARIO.replace("[[flow]]", "[receiver]\nthreaded_napi = true\n[[flow]]")
    found = [tcpknee.run(asked), tcpknee.run(asked, kernel="7.2")]
    said = "sim: receiver.threaded_napi has no effect in the simulator."
    assert engines_text.warnings(found).count(said) == 1
    assert pages.write(found, tmp_path / "report.html").read_text(encoding="utf-8").count(said) == 1
