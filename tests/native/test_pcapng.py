"""A simulated flow as pcapng: tshark reads it without complaint and counts what the tables count."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from tcpknee import _core

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

SCENARIO = """
title = "captured"
duration = "{duration}"
seed = 7
[path]
rate = "20Mbit/s"
rtt = "40ms"
loss = "{loss}"
buffer = "{buffer}"
[receiver]
gro = false
[[flow]]
algorithm = "{algorithm}"
{more}
"""

CHECK = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-o", "tcp.analyze_sequence_numbers:TRUE"]


def captured(path: Path, *, payload: bool = False, **changes: str) -> dict[str, list[object]]:
    """Runs the scenario, writes its capture; the flows table."""
    values = {"duration": "3s", "loss": "0%", "buffer": "1bdp", "algorithm": "cubic", "more": ""} | changes
    output = _core.parse(SCENARIO.format(**values), "captured.toml").run_cell(0, 0, capture=True)
    output.write_pcapng(str(path), payload=payload)
    return pa.record_batch(output.flows).to_pydict()


def tshark(path: Path, *arguments: str) -> list[str]:
    """Lines that tshark prints; nothing on stderr but its warning about root."""
    asked = subprocess.run(["tshark", "-n", "-r", path, *CHECK, *arguments], capture_output=True, text=True, check=True)
    complaints = [line for line in asked.stderr.splitlines() if "Running as user" not in line]
    assert not complaints
    return asked.stdout.splitlines()


def count(path: Path, display_filter: str) -> int:
    return len(tshark(path, "-Y", display_filter))


def test_tshark_finds_nothing_malformed_and_every_checksum_good(tmp_path: Path) -> None:
    path = tmp_path / "whole.pcapng"
    captured(path, payload=True, loss="1%")
    assert count(path, "_ws.malformed || _ws.short") == 0
    assert count(path, "ip.checksum.status == bad || tcp.checksum.status == bad") == 0
    packets = len(tshark(path))
    assert packets > 1000
    assert count(path, "tcp.checksum.status == good") == packets


def test_a_capture_without_payload_keeps_the_lengths(tmp_path: Path) -> None:
    path = tmp_path / "headers.pcapng"
    flows = captured(path)
    lengths = tshark(path, "-Y", "ip.src == 10.0.0.1", "-T", "fields", "-e", "tcp.len")
    assert sum(map(int, lengths)) == flows["bytes_sent"][0]
    assert path.stat().st_size < 150 * len(tshark(path))


def test_a_clean_path_shows_no_event_but_the_handshake(tmp_path: Path) -> None:
    path = tmp_path / "clean.pcapng"
    flows = captured(path, buffer="unlimited", duration="1s")
    assert flows["total_retrans"] == [0]
    assert count(path, "tcp.analysis.retransmission || tcp.analysis.out_of_order || tcp.analysis.lost_segment") == 0
    assert count(path, "tcp.analysis.ack_lost_segment || tcp.analysis.duplicate_ack") == 0
    assert count(path, "tcp.flags.syn == 1") == 2


@pytest.mark.parametrize("algorithm", ["reno", "cubic", "bbr1"])
def test_tshark_counts_the_retransmissions_of_the_flows_table(tmp_path: Path, algorithm: str) -> None:
    """Counted on sequence numbers, because tshark's own verdict depends on its timing heuristics."""
    path = tmp_path / f"{algorithm}.pcapng"
    flows = captured(path, loss="1%", algorithm=algorithm)
    rows = tshark(path, "-Y", "ip.src == 10.0.0.1 && tcp.len > 0", "-T", "fields", "-e", "tcp.seq", "-e", "tcp.len")
    assert len(rows) == flows["data_segs_out"][0]
    again = sum(times - 1 for times in Counter(row.split("\t")[0] for row in rows).values())
    assert again == flows["total_retrans"][0] > 0
    # Its verdicts on the same packets: a retransmission is called one of these three.
    verdict = "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || tcp.analysis.out_of_order"
    assert count(path, f"ip.src == 10.0.0.1 && ({verdict})") == flows["total_retrans"][0]


def test_selective_acknowledgements_stay_within_what_was_sent(tmp_path: Path) -> None:
    path = tmp_path / "sack.pcapng"
    captured(path, loss="2%")
    assert count(path, "tcp.options.sack.count > 0") > 0
    assert count(path, "tcp.analysis.ack_lost_segment") == 0
    rows = tshark(path, "-Y", "tcp.options.sack", "-T", "fields", "-e", "tcp.options.sack_re")
    highest = max(int(edge) for row in rows for edge in row.split(","))
    sent = tshark(path, "-Y", "ip.src == 10.0.0.1 && tcp.len > 0", "-T", "fields", "-e", "tcp.nxtseq")
    assert highest <= max(map(int, sent))


def test_a_finished_transfer_opens_and_closes_as_tcp_does(tmp_path: Path) -> None:
    path = tmp_path / "transfer.pcapng"
    captured(path, more='workload = "transfer"\nbytes = "100kB"')
    syn = tshark(
        path, "-Y", "tcp.flags.syn == 1", "-T", "fields", "-e", "tcp.options.mss_val", "-e", "tcp.options.wscale.shift"
    )
    assert [row.split("\t")[0] for row in syn] == ["1460", "1460"]
    assert all(row.split("\t")[1] for row in syn)
    assert count(path, "tcp.flags.fin == 1") == 2
    # SYN 1 + SYN-ACK 2 + ACK 4 + data 8 + FIN 16; it grows as tshark reads, so the last packet's counts.
    assert tshark(path, "-T", "fields", "-e", "tcp.completeness")[-1] == "31"


def test_a_bare_fin_is_no_data_segment_and_pushes_nothing(tmp_path: Path) -> None:
    """As Linux counts and sends it. 2 kB leave before the application closes."""
    path = tmp_path / "short.pcapng"
    flows = captured(path, more='workload = "transfer"\nbytes = "2000B"')
    sent = "ip.src == 10.0.0.1"
    lengths = tshark(path, "-Y", f"{sent} && tcp.len > 0", "-T", "fields", "-e", "tcp.len")
    assert lengths == ["1448", "552"]
    assert (flows["data_segs_out"], flows["bytes_sent"]) == ([2], [2000])
    assert count(path, f"{sent} && tcp.flags.fin == 1 && tcp.len == 0 && tcp.flags.push == 0") == 1
    assert count(path, f"{sent} && tcp.flags.push == 1") == 1
