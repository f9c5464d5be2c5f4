"""`netperf`: transactions per second of request/response tests, or throughput of streams, as `knee import netperf`
reads them. Of several tests the first counts."""

from __future__ import annotations

from tcpknee import _core

from .measured import Measured

command = "netperf"


def parse(text: str) -> Measured:
    return Measured(**(_core.client_output(command, text) or {}))
