"""`memtier_benchmark`: operations per second and latency, from its table or its JSON, as `knee import memtier` reads
them. Of several results the first counts."""

from __future__ import annotations

from tcpknee import _core

from .measured import Measured

command = "memtier_benchmark"


def parse(text: str) -> Measured:
    return Measured(**(_core.client_output(command, text) or {}))
