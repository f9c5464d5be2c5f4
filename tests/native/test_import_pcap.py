"""A simulated flow, exported and imported again, is what its tables say, and what tshark says of the same packets."""

from __future__ import annotations

import shutil
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tcpknee
from tcpknee import _core

SCENARIO = """
title = "captured"
duration = "4s"
seed = 7
[path]
rate = "20Mbit/s"
rtt = "40ms"
loss = "0.5%"
[[flow]]
algorithm = "cubic"
workload = "transfer"
bytes = "4MB"
"""
SAME = ("bytes_sent", "bytes_retrans", "data_segs_out", "total_retrans", "retransmit_pct")
FIELDS = ("frame.time_epoch", "tcp.srcport", "tcp.analysis.ack_rtt", "tcp.options.sack_le")
SENT_AGAIN = "tcp.analysis.retransmission || tcp.analysis.out_of_order || tcp.analysis.spurious_retransmission"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A capture, and the run's row of `flows`."""
    path = tmp_path_factory.mktemp("captures") / "flow.pcapng"
    output = _core.parse(SCENARIO, "captured.toml").run_cell(0, 0, capture=True)
    output.write_pcapng(str(path), payload=False)
    return path, pa.record_batch(output.flows).to_pylist()[0]


def test_a_simulated_flow_read_back_is_what_its_tables_say(simulated: tuple[Path, dict[str, Any]]) -> None:
    path, flow = simulated
    found = tcpknee.import_pcap(path)
    (row,) = found.connections.to_pylist()
    assert {name: row[name] for name in SAME} == pytest.approx({name: flow[name] for name in SAME})
    assert row["total_retrans"] > 0
    assert (row["bytes_acked"], row["ended"], row["vantage"]) == (4_000_000, "fin", "sender")
    # A full packet takes 600 us at 20 Mbit/s.
    assert row["rtt_us_min"] == 40_600
    # srtt follows the oldest segment that an ACK acknowledges, one or two packets' time longer.
    assert row["rtt_us_p50"] == pytest.approx(flow["srtt_us_p50"], rel=0.05)
    acks = found.acks.to_pylist()
    assert acks[-1]["inflight_bytes"] == 0
    assert max(ack["inflight_bytes"] for ack in acks) <= row["inflight_bytes_max"]
    reached = [ack["rtt_us"] for ack in acks if ack["rtt_us"] is not None]
    assert (len(reached), min(reached), max(reached)) == (row["rtt_samples"], row["rtt_us_min"], row["rtt_us_max"])


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_measures_the_same_rtts_and_retransmissions(simulated: tuple[Path, dict[str, Any]]) -> None:
    path, _ = simulated
    found = tcpknee.import_pcap(path)
    fields = [word for name in FIELDS for word in ("-e", name)]
    asked = ["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=,", "-E", "occurrence=f", *fields]
    lines = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    theirs = {
        int(Decimal(time) * 10**9): (round(Decimal(rtt) * 10**6), bool(sack))
        for time, port, rtt, sack in (line.split(",") for line in lines)
        if rtt and port == "5001"
    }
    ours = {ack["t_unix_ns"]: ack["rtt_us"] for ack in found.acks.to_pylist()}
    both = {time: (*found, ours[time]) for time, found in theirs.items() if ours.get(time) is not None}
    # The rest are ACKs of what was sent again, where ours has none, and the SYN's.
    assert len(both) > 0.95 * len(theirs) > 500
    # tshark's is that of the last segment below the ACK's number also where a SACK block tells of a later one, whose
    # is ours, and shorter.
    assert [pair for pair in both.values() if pair[2] - pair[0] > 1] == []
    assert [pair for pair in both.values() if pair[0] - pair[2] > 1 and not pair[1]] == []
    again = subprocess.run(["tshark", "-n", "-r", path, "-Y", SENT_AGAIN], capture_output=True, text=True, check=True)
    (row,) = found.connections.to_pylist()
    assert len(again.stdout.splitlines()) == row["total_retrans"]
