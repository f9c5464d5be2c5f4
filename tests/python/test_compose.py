"""Scenario text from settings, and numbers for people."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcpknee import human
from tcpknee.algorithms import outline
from tcpknee.errors import ScenarioError, UsageError
from tcpknee.evidence import written
from tcpknee.evidence.stats import Estimate
from tcpknee.runs import compose

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = st.one_of(texts, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(allow_nan=False))


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_-]{1,8}", fullmatch=True), st.one_of(scalars, st.lists(scalars, min_size=1)), max_size=4
    ),
    st.lists(
        st.dictionaries(st.from_regex(r"[a-z_-]{1,8}", fullmatch=True), scalars, min_size=1, max_size=3),
        min_size=1,
        max_size=3,
    ),
)
def test_toml_reads_back_as_what_was_written(top: dict[str, object], flows: list[dict[str, object]]) -> None:
    settings = {**top, "path": dict(top), "flow": flows}
    assert tomllib.loads(compose.toml(settings)) == settings


def test_parameters_of_an_algorithm_are_dotted() -> None:
    text = compose.toml({"flow": [{"algorithm": "bbr1", "bbr1": {"drain_gain": 300}}]})
    assert text == '\n[[flow]]\nalgorithm = "bbr1"\nbbr1.drain_gain = 300\n'


def test_one_algorithm_is_no_axis_and_several_are() -> None:
    assert 'algorithm = "cubic"\ncount = 1' in compose.comparison(["cubic"], rate="1Mbit/s", rtt="1ms")
    assert 'algorithm = ["cubic", "bbr1"]\ncount = 4' in compose.comparison(
        ["cubic:4", "bbr1:4"], rate="1Mbit/s", rtt="1ms"
    )


def test_a_mix_is_a_table_each() -> None:
    text = compose.comparison(
        ["cubic:1,bbr1:2"], rate="1Mbit/s", rtt="1ms", set={"flow.start": "1s", "sender.initcwnd": 4}
    )
    assert text.count("[[flow]]") == 2
    assert text.count('start = "1s"') == 2
    assert "[sender]\ninitcwnd = 4" in text


@pytest.mark.parametrize("wrong", ["", "cubic:", "cubic:x", ":2", "cubic:0", "cubic, bbr1", "cubic:1:2"])
def test_what_is_no_algorithm_with_a_count_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="expected ALGORITHM or ALGORITHM:COUNT"):
        compose.comparison([wrong], rate="1Mbit/s", rtt="1ms")


def test_set_refuses_a_table_that_is_a_value() -> None:
    with pytest.raises(ScenarioError, match="got a key of duration, which is a value and no table"):
        compose.comparison(["cubic"], rate="1Mbit/s", rtt="1ms", set={"duration.long": "1s"})


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("10,20", [10, 20]),
        ("[10, 20]", [10, 20]),
        ("2.5", 2.5),
        ("2.5,3", [2.5, 3]),
        ("-1e-3", -0.001),
        ("1_000", 1000),
        ("false", False),
        ("true,false", [True, False]),
        ("1MB", "1MB"),
        ("100kB, 1MB", ["100kB", "1MB"]),
        ("0,10ms", [0, "10ms"]),
        ("0.5,1bdp", [0.5, "1bdp"]),
        ('"1MB"', "1MB"),
        ("'pareto 1.2, 10kB'", "pareto 1.2, 10kB"),
        ('["10ms", "20ms"]', ["10ms", "20ms"]),
        ("periodic 0.1%", "periodic 0.1%"),
        ("2026-11-27", "2026-11-27"),
        ("1]\nother = [2", "1]\nother = [2"),
        ("", ""),
    ],
)
def test_set_reads_what_toml_reads_lists_at_commas_and_other_text(given: str, value: object) -> None:
    found = compose.assignments([f"flow.bbr1.key={given}"])["flow.bbr1.key"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("rate", 48.123e6, "48.1 Mbit/s"),
        ("rate", 5e9, "5.00 Gbit/s"),
        ("rate", 0, "0 bit/s"),
        ("time", 101_234, "101 ms"),
        ("time", 4_200_000, "4200 ms"),
        ("time", 3e7, "30.0 s"),
        ("time", 35, "35.0 us"),
        ("time", 0, "0 ms"),
        ("share", 0.61, "61.0 %"),
        ("pct", 1.523, "1.52 %"),
        ("bytes", 625_000, "610 KiB"),
    ],
)
def test_quantities_have_three_digits_and_a_unit_that_fits(kind: str, value: float, text: str) -> None:
    assert human.quantity(kind, value) == text


@given(st.floats(1e-6, 1e12), st.floats(1e-9, 1))
def test_the_two_ends_of_an_interval_never_read_alike(low: float, spread: float) -> None:
    high = low * (1 + spread)
    _, text = written.bracketed(Estimate((low + high) / 2, low, high, 3))
    left, right = text.strip("[]").split(", ")
    assert left != right or spread < 1e-7


def test_lengths_of_time_read_well() -> None:
    assert [human.duration(ns) for ns in (500_000_000, 30_000_000_000, 200_000_000_000)] == [
        "0.5 s",
        "30 s",
        "3 min 20 s",
    ]


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_parameter_goes_to_the_flows_of_a_mix_that_have_its_algorithm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the name that its file gives it, whatever the file is called."""
    monkeypatch.chdir(tmp_path)
    Path("tcp_x.c").write_text(outline.of("mine"), encoding="utf-8")
    text = compose.comparison(
        ["./tcp_x.c:1,cubic:2"],
        rate="1Mbit/s",
        rtt="10ms",
        set={"flow.mine.beta": ["0.25", "0.5"], "flow.cubic.beta": 700, "flow.rtt": "20ms"},
    )
    mine, cubic = tomllib.loads(text)["flow"]
    assert mine["mine"] == {"beta": ["0.25", "0.5"]} and "cubic" not in mine
    assert cubic["cubic"] == {"beta": 700} and "mine" not in cubic
    assert mine["rtt"] == cubic["rtt"] == "20ms"
