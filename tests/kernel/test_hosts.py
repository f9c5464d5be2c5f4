"""Hosts of a lab with nothing between them: a veth pair, and what runs on which processor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import kneepoint
import probes
from kneepoint.runs.results import Run

KNEE = (sys.executable, "-m", "kneepoint")

HEAD = """\
duration = "2s"
warmup = "500ms"
[path]
backend = "veth"
rate = "unlimited"
rtt = "0s"
"""


def tried(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A short run, into the folder `out`."""
    (folder / "scenario.toml").write_text(text)
    command = [*KNEE, "run", "scenario.toml", "--engine", "kernel", "--quiet", "--out", "out", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def run(folder: Path, text: str, *words: str) -> Run:
    probes.need_lab()
    ran = tried(folder, text, *words)
    assert ran.returncode == 0, ran.stderr
    return kneepoint.open(folder / "out")


@pytest.mark.parametrize("algorithm", ["cubic", "bbr1"])
def test_hosts_joined_directly_carry_more_than_a_gigabit(tmp_path: Path, algorithm: str) -> None:
    if algorithm == "bbr1":
        probes.need_algorithm("bbr")
    found = run(tmp_path, f'{HEAD}[[flow]]\nalgorithm = "{algorithm}"\n')
    flow = found.flows.arrow().to_pylist()[0]
    assert flow["goodput_bits_per_sec"] > 1e9
    assert flow["min_rtt_us"] < 1_000
    data, back = found.links.arrow().to_pylist()
    assert (data["backend"], back["backend"]) == ("veth", "veth")
    assert data["forwarded_bytes"] > flow["bytes_read"] > 0
    assert 0 < back["forwarded_pkts"] < data["forwarded_pkts"]
    assert data["asked_rate_bits_per_sec"] is None
    assert found.queue.arrow().num_rows == 0
