"""`iperf3 -J`: what the receiving side received. With `-R` data flows from the server, as in our own workloads."""

from __future__ import annotations

import json

from .measured import Measured

command = "iperf3"


def parse(text: str) -> Measured:
    try:
        end = json.loads(text)["end"]
        received = end.get("sum_received", end.get("sum"))
        return Measured(goodput_bits_per_sec=float(received["bits_per_second"]))
    except (ValueError, KeyError, TypeError):
        return Measured()
