"""The packets of a simulated repetition as a capture."""

from __future__ import annotations

from pathlib import Path

from tcpknee import _core
from tcpknee.writing import cannot_write


def write(scenario: _core.Scenario, index: int, rep: int, out: Path) -> None:
    """Simulates it, and writes pcapng. Raises `EngineError`, `RunFolderError`."""
    output = scenario.run_cell(index, rep, capture=True)
    try:
        output.write_pcapng(str(out))
    except OSError as error:
        raise cannot_write(out, error) from None
