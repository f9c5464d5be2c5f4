"""A capture at a real sender says what the sender's own `tcp_info` says."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

import probes
import tcpknee

CAPTURED = Path(__file__).with_name("captured.py")
SIZE = 700_000
SCENARIO = """\
title = "A capture"
duration = "20s"
[path]
rate = "20Mbit/s"
rtt = "30ms"
loss = "2%"
[[flow]]
algorithm = "cubic"
workload = "programs"
server = "{python} {program} {{server}} {capture} {info} {size}"
client = "{python} {program} {{server}}"
"""


def test_capture_at_the_sender_says_what_its_tcp_info_says(tmp_path: Path) -> None:
    probes.need_root("capturing")
    probes.need_programs("dumpcap")
    probes.need_algorithm("cubic")
    capture, info = tmp_path / "sender.pcapng", tmp_path / "info"
    capture.touch()
    tmp_path.chmod(0o755)
    given = {"python": sys.executable, "program": CAPTURED, "capture": capture, "info": info, "size": SIZE}
    scenario = tmp_path / "captured.toml"
    scenario.write_text(SCENARIO.format(**given))
    tcpknee.run(scenario, engine="kernel", out=tmp_path / "run", programs_as_root=True)

    found = tcpknee.import_pcap(capture)
    rows = [row for row in found.connections.to_pylist() if row["bytes_sent"]]
    assert len(rows) == 1
    row, told = rows[0], info.read_bytes()
    assert (row["vantage"], row["bytes_acked"]) == ("sender", SIZE)
    word = lambda at: struct.unpack_from("I", told, at)[0]  # noqa: E731
    wide = lambda at: struct.unpack_from("Q", told, at)[0]  # noqa: E731
    assert row["total_retrans"] == word(100) > 0
    assert row["data_segs_out"] == word(156)
    assert (row["bytes_sent"], row["bytes_retrans"]) == (wide(200), wide(208))
    assert row["dsack_dups"] == word(216)
    # From the ACK of what was sent again Linux takes the RTT by timestamps, in whole milliseconds.
    assert row["rtt_us_min"] == pytest.approx(word(148), abs=1000)
    acks = [ack for ack in found.acks.to_pylist() if ack["connection"] == row["connection"]]
    assert acks[-1]["inflight_bytes"] == 0
