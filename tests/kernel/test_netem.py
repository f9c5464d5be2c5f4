"""The kernel's own netem as a scenario's path; skipped, with what the kernel lacks, where it has none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import probes
import punctual
from waiting import PATIENCE_SEC

KNEE = (sys.executable, "-m", "tcpknee")


def tried(tmp_path: Path, path: str, *flows: str) -> subprocess.CompletedProcess[str]:
    """A short run, into the folder `out`."""
    scenario = tmp_path / "scenario.toml"
    tables = "\n".join(f"[[flow]]\n{flow}" for flow in flows)
    scenario.write_text(f'duration = "8s"\nwarmup = "3s"\n[path]\n{path}\n{tables}\n')
    command = [*KNEE, "run", str(scenario), "--engine", "kernel", "--quiet", "--out", str(tmp_path / "out")]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False)


def run(tmp_path: Path, path: str, *flows: str) -> Path:
    """The folder of a short run whose path is the kernel's."""
    probes.need_lab()
    probes.need_qdisc("netem")
    ran = tried(tmp_path, f'backend = "netem"\n{path}', *flows)
    assert ran.returncode == 0, ran.stderr
    return tmp_path / "out"


@pytest.mark.slow("eight seconds are in real time")
@pytest.mark.timed
def test_rate_delay_and_buffer_are_those_of_the_scenario(tmp_path: Path) -> None:
    with punctual.beside() as machine:
        out = run(tmp_path, 'rate = "20Mbit/s"\nrtt = "40ms"', 'algorithm = "cubic"')
    data, back = pq.read_table(out / "links.parquet").to_pylist()
    assert (data["backend"], back["backend"]) == ("netem", "netem")
    flow = pq.read_table(out / "flows.parquet").to_pylist()[0]
    assert 40_000 <= flow["min_rtt_us"] < 42_000
    queue = pq.read_table(out / "queue.parquet").to_pylist()
    assert max(row["queue_bytes"] for row in queue) <= 100_000
    assert queue[-1]["dropped_pkts"] > 0
    assert queue[-1]["lost_pkts"] == 0
    assert data["kept_up"], f"{data}, on a machine that is {machine.late_us:.0f} us late"
    # 1448 of 1500 bytes are payload.
    assert flow["goodput_bits_per_sec"] == pytest.approx(20e6 * 1448 / 1500, rel=0.02)


@pytest.mark.slow("eight seconds are in real time")
@pytest.mark.timed
def test_loss_is_told_from_drops_and_groups_have_rtts_of_their_own(tmp_path: Path) -> None:
    near = 'algorithm = "cubic"\nrtt = "20ms"\nname = "near"'
    far = 'algorithm = "cubic"\nrtt = "80ms"\nname = "far"'
    out = run(tmp_path, 'rate = "20Mbit/s"\nrtt = "20ms"\nloss = "1%"', near, far)
    flows = {row["name"]: row for row in pq.read_table(out / "flows.parquet").to_pylist()}
    assert 20_000 <= flows["near"]["min_rtt_us"] < 22_000
    assert 80_000 <= flows["far"]["min_rtt_us"] < 82_000
    last = pq.read_table(out / "queue.parquet").to_pylist()[-1]
    share = last["lost_pkts"] / (last["lost_pkts"] + last["dropped_pkts"] + last["sent_pkts"])
    assert 0.004 < share < 0.018


def test_a_kernel_without_netem_is_told_what_it_lacks(tmp_path: Path) -> None:
    probes.need_lab()
    probes.need_no_qdisc("netem")
    ran = tried(tmp_path, 'rate = "20Mbit/s"\nrtt = "10ms"\nbackend = "netem"', 'algorithm = "cubic"')
    assert ran.returncode == 2
    assert "needs the qdisc" in ran.stderr
    assert "CONFIG_NET_SCH_NETEM" in ran.stderr
    assert 'path.backend = "user"' in ran.stderr


@pytest.mark.slow("eight seconds are in real time")
def test_auto_takes_the_own_link_at_rates_which_that_holds_and_the_choice_is_recorded(tmp_path: Path) -> None:
    probes.need_lab()
    ran = tried(tmp_path, 'rate = "20Mbit/s"\nrtt = "10ms"', 'algorithm = "cubic"')
    assert ran.returncode == 0, ran.stderr
    out = tmp_path / "out"
    assert {row["backend"] for row in pq.read_table(out / "links.parquet").to_pylist()} == {"user"}
    assert '"backend": "user"' in json.dumps(json.loads((out / "run.json").read_text()))
