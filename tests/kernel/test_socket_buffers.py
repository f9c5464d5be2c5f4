"""Buffers and windows that sockets ask for: the simulator beside the running kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

import probes
import tcpknee
from tcpknee.errors import EngineError
from tcpknee.runs.results import Run

TEXT = """
duration = "4s"
warmup = "1s"
[path]
backend = "user"
rate = "100Mbit/s"
rtt = "40ms"
buffer = "1bdp"
[[flow]]
algorithm = "reno"
{keys}
"""


def ran(keys: str, engine: str) -> Run:
    return tcpknee.run(TEXT.format(keys=keys), engine=engine)


def largest(run: Run, column: str) -> float:
    return float(max(value for value in run.samples[column].to_pylist() if value is not None))


@pytest.mark.timed
@pytest.mark.parametrize(
    ("keys", "buffer", "buffer_bytes"),
    [
        ('sndbuf = "100kB"', "sndbuf_bytes", 200_000),
        ('sndbuf = "60kB"', "sndbuf_bytes", 120_000),
        ('rcvbuf = "100kB"', "rcvbuf_bytes", 200_000),
        ('window_clamp = "65535B"', None, 0),
        ('window_clamp = "100kB"', None, 0),
    ],
)
def test_sockets_that_ask_get_what_the_simulator_gives_them(keys: str, buffer: str | None, buffer_bytes: int) -> None:
    probes.need_lab()
    sim, kernel = ran(keys, "sim"), ran(keys, "kernel")
    if buffer:
        assert largest(sim, buffer) == largest(kernel, buffer) == buffer_bytes
    goodput, srtt_us = (
        [run.flows[column][0].as_py() for run in (sim, kernel)] for column in ("goodput_bits_per_sec", "srtt_us_mean")
    )
    windows = [largest(run, "snd_wnd_bytes") for run in (sim, kernel)]
    print(f"{keys}: goodput {goodput}, srtt {srtt_us}, window {windows}")
    # A round trip each: on a machine that is busy it takes longer.
    assert goodput[1] * srtt_us[1] == pytest.approx(goodput[0] * srtt_us[0], rel=0.1)
    assert goodput[0] < 80e6, "something else limits"
    if buffer != "sndbuf_bytes":
        assert windows[1] == pytest.approx(windows[0], rel=0.05)


def test_a_buffer_above_what_the_machine_gives_is_refused() -> None:
    probes.need_lab()
    most = int(Path("/proc/sys/net/core/wmem_max").read_text(encoding="utf-8"))
    keys = f'sndbuf = "{2 * most}B"\n[sender]\nwmem_max = "{2 * most}B"'
    with pytest.raises(EngineError, match=rf"flow.0.sndbuf.*no more than {most}B.*raise net.core.wmem_max"):
        ran(keys, "kernel")
