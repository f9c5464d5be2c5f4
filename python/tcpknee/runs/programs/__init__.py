"""External programs whose output is understood, one module each: what they measured, as metrics of their group.

A module has `command`, the name of the program, and `parse(text)`, which returns what the text says, all unknown when
it says nothing. To add a program, add its module here and to `PROGRAMS`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tcpknee import _core
from tcpknee.writing import replacing

from . import iperf3, memtier_benchmark, netperf, redis_benchmark, wrk
from .measured import Measured

if TYPE_CHECKING:
    import pyarrow as pa

PROGRAMS: tuple[ModuleType, ...] = (redis_benchmark, memtier_benchmark, wrk, iperf3, netperf)
"""Every program whose output is understood."""

LINES_SHOWN = 5
"""Lines of a failed program's output that are said; the file has all."""

MOST_READ_BYTES = 16 << 20
"""Of a program's output, the end of it: iperf3 has some 2 MB for an hour of one stream."""

_BETWEEN_WORDS = re.compile(r"[\s'\"();|&]+")


def find(command: str) -> ModuleType | None:
    """The module of the first known program in a command line, also behind `taskset …` or in `sh -c '…'`."""
    by_name = {module.command: module for module in PROGRAMS}
    names = (word.rsplit("/", 1)[-1] for word in _BETWEEN_WORDS.split(command))
    return next((by_name[name] for name in names if name in by_name), None)


def read(programs: pa.Table, folder: Path) -> tuple[pa.Table, list[str]]:
    """The `programs` table with the columns of what clients printed about themselves, and a text for each client that
    failed. `folder` holds the files that column `output` names; it is `output/` of the run's folder."""
    import pyarrow as pa

    from tcpknee.datasets.columns import field

    at = programs.schema.get_field_index("output")
    files = [f"output/{name}" for name in programs["output"].to_pylist()]
    programs = programs.set_column(at, programs.schema.field(at), pa.array(files, pa.string()))
    rows = programs.to_pylist()
    measured, failures = [], []
    for row in rows:
        text = _text(folder / Path(row["output"]).name) if row["role"] == "client" else ""
        module = find(row["command"]) if text else None
        measured.append(module.parse(text) if module else Measured())
        if row["role"] == "client" and (row["exit_code"] is None or row["exit_code"] != 0):
            failures.append(_failure(row, text))
    for column in _core.tables("run")["client_output"]:
        values = pa.array([getattr(found, column["name"]) for found in measured], pa.float64())
        programs = programs.append_column(field(column), values)
    return programs, failures


def keep(folder: Path, name: str, printed: str) -> None:
    """Writes what a program printed on another host where `read` looks for it."""
    with replacing(folder / name, make=True) as file:
        file.write(printed.encode())


def _failure(row: Mapping[str, Any], text: str) -> str:
    """How a client ended, and its last words."""
    code, signal = row["exit_code"], row["signal"]
    end = f"exit code {code}" if code is not None else f"signal {signal}"
    if signal == 15:
        end += ", because it was not done when the duration was over; give it less to do, or a longer `duration`"
    lines = [line.strip() for line in text.splitlines() if line.strip()][-LINES_SHOWN:]
    said = f" It last printed: {' / '.join(lines)}" if lines else " It printed nothing."
    return f"the client `{row['command']}` ended with {end}.{said} (All of it: {row['output']})"


def _text(file: Path) -> str:
    """The end of what a program printed: it may have made the file as long as it likes."""
    try:
        with file.open("rb") as held:
            held.seek(max(0, held.seek(0, os.SEEK_END) - MOST_READ_BYTES))
            return held.read(MOST_READ_BYTES).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
