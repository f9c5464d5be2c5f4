"""The simulator's answer for the path between two hosts, beside what was measured there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from building import run

SCENARIO = """
duration = "500ms"
repeat = 20
[path]
rate = "1Gbit/s"
rtt = "1ms"
[[flow]]
algorithm = ["cubic", "reno"]
max_pacing_rate = "50Mbit/s"
"""


@pytest.mark.slow("it is in real time")
@pytest.mark.timed
def test_the_measured_path_is_simulated_beside_what_ran_on_it(tmp_path: Path) -> None:
    """And a budget ends the run with whole blocks."""
    scenario = tmp_path / "s.toml"
    scenario.write_text(SCENARIO)
    hosts = ("--engine", "hosts", "--sender", "local", "--receiver", "local", "--out", tmp_path / "run")
    words = ("run", scenario, *hosts, "--beside", "sim", "--budget", "15MB", "--json", "-q")
    told = json.loads(run(sys.executable, "-m", "tcpknee", *words))
    assert told["runs"][0]["ending"]["by"] == "bytes"
    blocks = told["runs"][0]["ending"]["blocks"]
    assert {cell["metrics"]["goodput_bits_per_sec"]["n"] for cell in told["cells"]} == {blocks}
    [beside] = told["beside"]
    assert beside["kind"] == "sim" and 0 < beside["path"]["rtt_us"]["low"] < 1000
    assert [row["algorithm"] for row in beside["rows"]] == ["cubic", "reno"]
    assert {row["metrics"]["goodput_bits_per_sec"]["n"] for row in beside["rows"]} == {blocks}
    assert all("measured beside simulated: goodput " in note for note in beside["notes"])
