"""The packets of a repetition: simulated again, or as the devices of real hosts had them (`--capture`)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tcpknee import _core, human
from tcpknee.errors import UsageError
from tcpknee.writing import cannot_write

_LEAST_BYTES, _MOST_BYTES = 64 << 10, 256 << 20
"""Of memory at a host: of the kernel's pieces one at least (`crates/capture/src/ring.rs`)."""


def room_bytes(capture: str, engine: str) -> int:
    """The memory for packets at each host that was asked for; 0: none. Raises `UsageError`."""
    if not capture:
        return 0
    if engine == "sim":
        raise UsageError(
            f"capture: got {capture} with the engine {engine}; expected one of kernel, guest, hosts. The packets of a "
            "simulated run need no capture: knee export RUN --format pcapng."
        )
    size = human.bytes_of(capture)
    if size is None or not _LEAST_BYTES <= size <= _MOST_BYTES:
        raise UsageError(
            f'capture: got "{capture}"; expected the memory for packets at each host, from 64KiB to 256MiB, such as '
            "20MB, in which the headers of some 100,000 fit."
        )
    return int(size)


def write(scenario: _core.Scenario, index: int, rep: int, out: Path) -> None:
    """Simulates it, and writes pcapng. Raises `EngineError`, `RunFolderError`."""
    output = scenario.run_cell(index, rep, capture=True)
    try:
        output.write_pcapng(str(out))
    except OSError as error:
        raise cannot_write(out, error) from None


def write_captured(packets: pa.Table, host: str, out: Path) -> None:
    """Writes the packets of a host, rows of the table `packets`, as pcapng. Raises `RunFolderError`."""
    names = ("t_ns", "is_outbound", "length_bytes", "header")
    try:
        _core.write_packets(str(out), host, list(zip(*(packets[name].to_pylist() for name in names), strict=True)))
    except OSError as error:
        raise cannot_write(out, error) from None
