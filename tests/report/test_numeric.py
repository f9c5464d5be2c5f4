"""Values of an axis that are numbers stand where they lie, and others in the order of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tcpknee
from tcpknee.pages.numeric import numbers


@pytest.mark.parametrize(
    ("values", "unit", "expected", "is_logarithmic"),
    [
        (["10ms", "20ms", "0.2s"], "ms", [10, 20, 200], True),
        (["10ms", "20ms", "60ms"], "ms", [10, 20, 60], False),
        (["0%", "0.1%", "2%"], "%", [0, 0.1, 2], True),
        (["1Gbit/s", "10Mbit/s", "40Mbit/s"], "Mbit/s", [1000, 10, 40], True),
        (["1", "2", "3"], "", [1, 2, 3], False),
        (["0.5bdp", "1bdp", "4bdp"], "bdp", [0.5, 1, 4], False),
    ],
)
def test_numbers_have_one_unit(values: list[str], unit: str, expected: list[float], is_logarithmic: bool) -> None:
    found = numbers(values)
    assert found and found.unit == unit and found.is_logarithmic == is_logarithmic
    assert [found.of[value] for value in values] == pytest.approx(expected)


@pytest.mark.parametrize(
    "values",
    [
        ["10ms", "20ms"],
        ["fifo", "codel", "pie"],
        ["1bdp", "20ms", "30ms"],
        ["1%", "gilbert 1% burst 5", "2%"],
        ["1000ms", "1s", "2s"],
        ["1 parsec", "2 parsec", "3 parsec"],
    ],
)
def test_others_are_no_numbers(values: list[str]) -> None:
    assert numbers(values) is None


def scales(spec: Any, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the specification says of its flat axes."""
    if isinstance(spec, list):
        for one in spec:
            scales(one, found)
    elif isinstance(spec, dict):
        across = (spec.get("encoding") or {}).get("x")
        if across and across.get("field") == "at":
            found.append(across)
        for one in spec.values():
            scales(one, found)
    return found


def test_the_figure_of_a_matrix_lies_by_number_where_it_can(tmp_path: Path) -> None:
    run = tcpknee.run(
        duration="1s",
        path={"rate": "5Mbit/s", "rtt": ["5ms", "20ms", "80ms"], "loss": ["0%", "1%"]},
        flow=[{"algorithm": "cubic"}],
    )
    found = {one["title"]: one for one in scales(run.figure("axes").altair().to_dict(), [])}
    assert set(found) == {"RTT (ms)", "Loss"}
    assert found["RTT (ms)"]["type"] == "quantitative" and found["RTT (ms)"]["scale"]["type"] == "log"
    assert found["RTT (ms)"]["axis"]["values"] == [5, 20, 80]
    assert found["Loss"]["type"] == "ordinal", "two values show no distance"
