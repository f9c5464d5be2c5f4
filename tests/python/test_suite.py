"""Suites: the format, its mistakes, and that the rows of ours can be run."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcpknee
from support import SUITE
from tcpknee import _core
from tcpknee.errors import ScenarioError, UsageError
from tcpknee.gate import suite


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
        (('figure    = "9Mbit/s"', 'figure    = ["9Mbit/s"]'), 29, "figure: expected"),
        (('tolerance = "10%"', 'tolerance = "a tenth"'), 30, "tolerance: got"),
        (('prose    = "A machine reads no text."', ""), 33, 'row "two": got none of them; expected one of'),
        (('name     = "two"', 'name     = "one"'), 34, 'name: got "one" again'),
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
