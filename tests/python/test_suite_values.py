"""Published values beside ours: what is told of each, and that what is stored is of the suites as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import knee
from tcpknee.errors import ScenarioError
from tcpknee.gate import suite, values

SUITE = """
[suite]
name   = "mine"
title  = "One row"
source = "a test"
date   = "2026-11-27"

[[row]]
name     = "one"
question = "What does a link carry?"
scenario = '''
duration = "2s"
warmup   = "1s"
repeat   = 2
[path]
rate = "10Mbit/s"
rtt  = "10ms"
[[flow]]
algorithm = "reno"
'''
"""


def published(folder: Path, figure: str, value: str = "reno.goodput") -> suite.Suite:
    entry = f'[[row.published]]\nvalue = "{value}"\nfigure = {figure}\nsource = "a test"\n'
    path = folder / "mine.toml"
    path.write_text(SUITE + entry, encoding="utf-8")
    return suite.load(path)


@pytest.mark.parametrize(
    ("figure", "verdict", "text"),
    [
        ('"10Mbit/s"', values.INSIDE, "10 Mbit/s"),
        ('"8Mbit/s"', values.OUTSIDE, "8 Mbit/s"),
        ('["9Mbit/s", "10Mbit/s"]', values.INSIDE, "9 to 10 Mbit/s"),
        ('["8Mbit/s", "9Mbit/s"]', values.OUTSIDE, "8 to 9 Mbit/s"),
    ],
)
def test_a_value_is_inside_or_not(tmp_path: Path, figure: str, verdict: str, text: str) -> None:
    mine = published(tmp_path, figure)
    [found] = values.run(mine, mine.rows[0], workers=1)
    assert (found.verdict, found.figure, bool(found.ratio)) == (verdict, text, "[" not in figure)
    assert found.ours.startswith("9.34") and found.ours.endswith(" Mbit/s")


def test_a_range_the_wrong_way_round_and_a_tolerance_of_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ScenarioError, match=r'mine.toml:\d+: figure: got \["9Mbit/s", "8Mbit/s"\]; expected the lower one'
    ):
        published(tmp_path, '["9Mbit/s", "8Mbit/s"]')
    with pytest.raises(ScenarioError, match="tolerance: got it beside two figures"):
        published(tmp_path, '["8Mbit/s", "9Mbit/s"]\ntolerance = "5%"')


def test_a_table_shows_each_tolerance_and_is_whole_however_narrow_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    published(tmp_path, '"10Mbit/s"\ntolerance = "20%"')
    found = knee("suite", "mine.toml", "-q", cwd=tmp_path)
    assert found.code == 0, found.err
    assert "inside  10 Mbit/s ±20%  9.34" in found.out and "within ± of a single figure" in found.out
    found = knee("suite", "mine.toml", "-q", "--row", "", cwd=tmp_path)
    assert found.code == 2 and '--row: got ""' in found.err
    found = knee("suite", "--row", "one", cwd=tmp_path)
    assert found.code == 2 and "got it without a suite" in found.err


def test_a_value_that_the_scenario_has_not_is_told_with_its_line(tmp_path: Path) -> None:
    mine = published(tmp_path, '"10Mbit/s"', "cubic.goodput")
    with pytest.raises(ScenarioError, match=r'mine.toml:22: value: got "cubic"'):
        values.check(mine, mine.rows[0])


def test_the_command_tells_values_with_source_and_reason(tmp_path: Path) -> None:
    published(tmp_path, '"8Mbit/s"')
    text = knee("suite", "mine.toml", "--quiet", cwd=tmp_path).out
    assert "outside 8 Mbit/s ±10% 9.34 Mbit/s" in " ".join(text.split())
    assert "Source: a test" in text and "Unexplained." in text
    told = json.loads(knee("suite", "mine.toml", "--quiet", "--json", cwd=tmp_path).out)
    [one] = told["rows"][0]["values"]
    assert (one["verdict"], one["unit"], one["published"], one["tolerance_pct"]) == ("outside", "bit/s", [8e6], 10)
    assert 9.3e6 < one["ours"]["low"] <= one["ours"]["mean"] <= one["ours"]["high"] < 9.4e6
    assert one["ratio"]["mean"] == pytest.approx(one["ours"]["mean"] / 8e6)
    assert "one (2 repetitions): What" in text and told["rows"][0]["repetitions"] == 2


@pytest.mark.parametrize(("repeat", "said"), [("1", "(one repetition"), ("2", "(the same in each repetition")])
def test_a_value_without_an_interval_says_so(tmp_path: Path, repeat: str, said: str) -> None:
    published(tmp_path, '"8Mbit/s"')
    path = tmp_path / "mine.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("repeat   = 2", f"repeat   = {repeat}"), encoding="utf-8")
    assert f"{said}: no interval)" in knee("suite", "mine.toml", "--quiet", cwd=tmp_path).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["landmark"], 'suite: got "landmark"'),
        (["landmarks", "--row", "dctcp-queu"], '--row: got "dctcp-queu"'),
        (["tcpeval"], "tcpeval has no row with published values"),
    ],
)
def test_what_there_is_not_is_refused(words: list[str], said: str, tmp_path: Path) -> None:
    ended = knee("suite", *words, cwd=tmp_path)
    assert ended.code == 2 and said in ended.err


@pytest.mark.parametrize("name", suite.names())
def test_every_published_value_is_one_of_its_scenario(name: str) -> None:
    found = suite.find(name)
    for row in values.rows_of(found):
        values.check(found, row)


@pytest.mark.parametrize(
    "file",
    sorted((Path(__file__).parents[2] / "docs/suites").glob("*.json")),
    ids=lambda file: file.stem,
)
def test_stored_values_are_of_the_suite_as_it_is(file: Path) -> None:
    """`make suites` writes them anew."""
    told = json.loads(file.read_text(encoding="utf-8"))
    rows = {row.name: values.digest(row) for row in suite.find(file.stem).rows}
    assert {row.name for row in values.rows_of(suite.find(file.stem))} <= told.keys()
    assert {name: row["sha256"] for name, row in told.items()} == {name: rows[name] for name in told}


def test_a_stored_row_is_what_it_gives_now() -> None:
    told = json.loads((Path(__file__).parents[2] / "docs/suites/rfc9438.json").read_text(encoding="utf-8"))
    found = suite.find("rfc9438")
    [row] = [row for row in found.rows if row.name == "10ms-1e-2"]
    now = [[one.ours, one.verdict] for one in values.run(found, row, workers=1)]
    assert now == [[one["ours"], one["verdict"]] for one in told[row.name]["values"]]
