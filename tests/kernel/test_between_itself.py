"""The engine hosts with this machine as both: in real time, and it holds the lock of the machine."""

from __future__ import annotations

import tcpknee
from tcpknee.runs import output

SHORT = """
title = "Between"
duration = "0.4s"
warmup = "0.1s"
repeat = 1
[path]
rate = "100Mbit/s"
rtt = "10ms"
[[flow]]
algorithm = "reno"
"""


def test_this_machine_is_two_hosts_and_fills_the_tables_of_every_engine() -> None:
    # At what loopback carries, the last packet that is read would not be acked yet.
    run = tcpknee.run(SHORT + 'max_pacing_rate = "100Mbit/s"\n', engine="hosts", hosts=("local", "local"))
    flow = run.flows.arrow().to_pylist()[0]
    assert flow["goodput_bits_per_sec"] > 1e6
    assert flow["bytes_acked"] >= flow["bytes_read"] - 16 > 0
    samples = run.samples.arrow().to_pylist()
    assert len(samples) > 10
    assert all(row["snd_cwnd"] > 0 and row["sndbuf_bytes"] > 0 for row in samples)
    assert any(row["rcvbuf_bytes"] for row in samples)
    times = [row["t_ns"] for row in samples]
    assert times == sorted(times)
    assert times[-1] < 0.6e9
    measured = run.meta["repetitions"][0]["measured"]
    assert 0 < measured["path_rtt_us_least"] < 10_000
    assert measured["sender_clock_uncertainty_us"] < 10_000
    # Nothing has 10 ms of delay here.
    said = "\n".join(output.lines(run))
    assert "Between local and local · round trip without load" in said
    assert "and path.rtt = 10.0 ms" in said


def test_requests_are_answered_and_transfers_end_early() -> None:
    text = SHORT + 'workload = "request-response"\n[[flow]]\nalgorithm = "reno"\nworkload = "transfer"\nbytes = "1MB"\n'
    run = tcpknee.run(text.replace("0.4s", "0.5s"), engine="hosts", hosts=("local", "local"))
    asked, moved = run.flows.arrow().to_pylist()
    assert asked["requests"] > 10
    assert asked["latency_us_p50"] > 0
    assert moved["bytes_read"] == 1_000_000
    assert 0 < moved["completion_us"] < 500_000
