"""Packets of a lab, captured: what the sockets counted is what the devices saw."""

from __future__ import annotations

from pathlib import Path

import pytest

import probes
import tcpknee
from tcpknee.cli.app import app
from tcpknee.errors import UsageError

SCENARIO = """
title = "Captured"
duration = "1s"
[path]
rate = "20Mbit/s"
rtt = "20ms"
[[flow]]
algorithm = "reno"
"""
SYN, SYN_ACK = 0x02, 0x12


def flags(header: bytes) -> int:
    return header[(header[0] & 15) * 4 + 13]


def test_the_packets_of_both_hosts_are_those_that_tcp_counted(tmp_path: Path) -> None:
    probes.need_lab()
    found = tcpknee.run(SCENARIO, engine="kernel", capture="20MB", out=tmp_path / "run")
    assert found.meta["capture"] == "20MB"
    assert not any("captured" in doubt.line for doubt in found.doubts)
    flow = found.flows.arrow().to_pylist()[0]
    rows = found.packets.arrow().to_pylist()
    of = {host: [row for row in rows if row["host"] == host] for host in ("sender", "receiver")}
    for host, packets in of.items():
        opening = [(row["is_outbound"], flags(row["header"])) for row in packets[:2]]
        assert opening == [(host == "sender", SYN), (host == "receiver", SYN_ACK)]
        times = [row["t_ns"] for row in packets]
        assert times == sorted(times)
        assert times[0] > 0
        assert times[-1] < 3e9
    payload = [row["length_bytes"] - len(row["header"]) for row in of["sender"] if row["is_outbound"]]
    # The last sample is taken before the last packet leaves, on a busy machine long before.
    assert flow["bytes_sent"] <= sum(payload) < 1.3 * flow["bytes_sent"]
    assert max(payload) > 1448, "TSO"
    # A round trip at the sender; at the receiver none of the path.
    assert of["sender"][1]["t_ns"] - of["sender"][0]["t_ns"] > 20_000_000
    assert of["receiver"][1]["t_ns"] - of["receiver"][0]["t_ns"] < 10_000_000
    assert of["receiver"][0]["t_ns"] - of["sender"][0]["t_ns"] > 10_000_000

    out = tmp_path / "receiver.pcapng"
    words = ["export", str(tmp_path / "run"), "--format", "pcapng", "--out", str(out), "--host", "receiver"]
    app.main(words, standalone_mode=False)
    connections = tcpknee.import_pcap(out).connections.to_pylist()
    assert [row["vantage"] for row in connections if row["bytes_sent"]] == ["receiver"]


def test_packets_without_room_are_counted_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probes.need_lab()
    found = tcpknee.run(SCENARIO, engine="kernel", capture="64KiB", out=tmp_path / "run")
    told = [doubt.line for doubt in found.doubts if "the memory for captured packets was full after" in doubt.line]
    assert ["sender:" in line for line in told] == [True, False]
    assert 300 < found.packets.arrow().num_rows < 2 * 65536 / 192
    app.main(
        ["export", str(tmp_path / "run"), "--format", "pcapng", "--out", str(tmp_path / "p.pcapng")],
        standalone_mode=False,
    )
    assert "Warning: sender: the memory for captured packets was full after" in capsys.readouterr().out


def test_a_run_goes_on_with_the_capture_that_it_was_begun_with(tmp_path: Path) -> None:
    probes.need_lab()
    tcpknee.run(SCENARIO, engine="kernel", out=tmp_path / "run")
    words = ["export", str(tmp_path / "run"), "--format", "pcapng", "--out", str(tmp_path / "p.pcapng")]
    with pytest.raises(UsageError, match="was run with --engine kernel and without --capture"):
        app.main(words, standalone_mode=False)
    with pytest.raises(
        tcpknee.errors.RunFolderError, match="got --engine kernel --capture 1MB; this run was begun with"
    ):
        tcpknee.run(SCENARIO, engine="kernel", capture="1MB", resume=True, out=tmp_path / "run")
