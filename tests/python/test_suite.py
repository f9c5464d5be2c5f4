"""Suites: the format, its mistakes, and that the rows of ours can be run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tcpknee
from support import SUITE
from tcpknee import _core
from tcpknee.errors import ScenarioError, UsageError
from tcpknee.gate import suite
from tcpknee.runs import api


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_suite_is_read(tmp_path: Path) -> None:
    found = suite.find(str(written(tmp_path, SUITE)))
    one, two = found.rows
    assert (found.name, one.name, one.margin, two.prose) == ("mine", "one", 0.05, "A machine reads no text.")
    assert one.published[0].assertion == "0.9 * 9Mbit/s <= new.goodput <= 1.1 * 9Mbit/s"
    alone = suite.without_new(one.scenario)
    assert '"BASE"' in alone and '"NEW"' not in alone and "[path]" in alone


def test_the_scenario_of_a_row_may_be_a_file_beside_the_suite(tmp_path: Path) -> None:
    head, _, rest = SUITE.partition("scenario = '''\n")
    text, _, rest = rest.partition("'''")
    (tmp_path / "one.toml").write_text(text, encoding="utf-8")
    found = suite.load(written(tmp_path, f'{head}scenario = "one.toml"{rest}'))
    assert found.rows[0].scenario == text


@pytest.mark.parametrize(
    ("change", "line", "said"),
    [
        (('question = "Does', 'quesion = "Does'), 10, "quesion: is no key of it; expected one of name"),
        (('better   = "more"', 'better   = "fast"'), 12, 'better: expected "more" or "less"'),
        (('"new.goodput >= 1Mbit/s"', '"new.goodput >> 1Mbit/s"'), 13, "limits: "),
        (('figure    = "9Mbit/s"', 'figure    = ["9Mbit/s"]'), 31, "figure: expected"),
        (
            ('better   = "more"', 'better   = "more"\nmargin   = "100%"'),
            13,
            'margin: got "100%"; expected less than 100%',
        ),
        (('why      = "A tenth of the link."', ""), 13, "why: got none; expected the reason of the limits"),
        (('tolerance = "10%"', 'tolerance = "a tenth"'), 32, "tolerance: got"),
        (('prose    = "A machine reads no text."', ""), 35, 'row "two": got none of them; expected one of'),
        (('name     = "two"', 'name     = "one"'), 36, 'name: got "one" again'),
        (('date   = "2026-11-27"', ""), 2, "date: got none"),
        (("[suite]", "[suit]"), 2, "suit: is no key of a suite"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, change: tuple[str, str], line: int, said: str) -> None:
    assert change[0] in SUITE
    with pytest.raises(ScenarioError) as raised:
        suite.load(written(tmp_path, SUITE.replace(*change, 1)))
    assert any(f"mine.toml:{line}: {said}" in one for one in str(raised.value).split("\n")), str(raised.value)


def test_a_suite_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="rfc9743"):
        suite.find("rfc9473")


def test_suites_are_package_data() -> None:
    assert {path.stem for path in (Path(tcpknee.__file__).parent / "suites").glob("*.toml")} == set(suite.names())


@pytest.mark.parametrize("name", suite.names())
def test_every_question_is_one(name: str) -> None:
    """Not the heading of its source with a question mark."""
    for row in suite.find(name).rows:
        words, mark, _ = row.question.partition("?")
        assert mark and words.lower() != row.section.lower(), row.question
        assert not words.split()[0].endswith("ing"), row.question


@pytest.mark.parametrize("name", suite.names())
def test_every_row_can_be_run(name: str) -> None:
    """With names of ours in both places, and alone where harm is asked for."""
    for row in suite.find(name).rows:
        if not row.scenario:
            continue
        text = suite.put(row.scenario, '"bbr1"', '"cubic"')
        assert _core.parse(text, f"{name}: {row.name}").cells, row.name
        if row.harm:
            alone = _core.parse(suite.put(suite.without_new(row.scenario), "", '"cubic"'), f"{name}: {row.name}")
            assert row.harm in [flow["name"] for flow in alone.cells[0]["flows"]], row.name


CHANCE = re.compile(r"^(?:noise|jitter|loss|reorder|sizes) *=|workload *= *\"(?:web|request-response)", re.MULTILINE)


def rows_with_new() -> list[tuple[str, suite.Row]]:
    return [(name, row) for name in suite.names() for row in suite.find(name).rows if row.uses_new]


def test_rows_with_random_loss_never_decide_alone() -> None:
    """Losses at random are what real paths seldom have."""
    lossy = [(name, row) for name, row in rows_with_new() if re.search(r"^loss *=", row.scenario, re.MULTILINE)]
    assert lossy
    assert not [(name, row.name) for name, row in lossy if not row.stress]


def test_rows_that_judge_have_chance_in_them() -> None:
    """Five repetitions without any are one, five times."""
    judging = [(name, row) for name, row in rows_with_new() if name == "rfc9743" or (name == "nsperf" and row.harm)]
    assert len(judging) > 20
    assert not [(name, row.name) for name, row in judging if not CHANCE.search(row.scenario)]


@pytest.mark.long
@pytest.mark.parametrize("row", [row for row in suite.find("rfc9743").rows if row.uses_new], ids=lambda row: row.name)
def test_repetitions_of_a_row_differ(row: suite.Row) -> None:
    run = api.run_text(suite.put(row.scenario, '"cubic"', '"cubic"'), row.name, out=None)
    # A percentile of a histogram may fall into one bucket each time, as that of the row real-time does.
    found = [found for group in run.summary.groups for found in group.metrics.values()]
    assert found and not all(one.identical for one in found)
