"""What an experiment compares: a number that each run gives. Less is better."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tcpknee.calibration.measuring import threads_ns_per_sec
from tcpknee.errors import EngineError
from tcpknee.runs.results import Run


@dataclass(frozen=True)
class Quantity:
    """`name` is followed by the words `is +23 % …`."""

    name: str
    on_kernel: Callable[[Run, int], float]
    """Reads it from a run on the kernel, given the warm-up in ms. Raises EngineError where no work was done."""
    in_model: Callable[[Run], float]


def _first_flow(run: Run, column: str) -> list[float]:
    """The column's values in the first group of flows. Other groups are only beside it."""
    rows = run.flows.arrow().to_pylist()
    return [float(row[column]) for row in rows if row["group"] == 0 and row[column] is not None]


def _some(found: float, what: str) -> float:
    if found <= 0:
        raise EngineError(f"knee doctor --measure: got no {what} done; expected some. Is the machine busy?")
    return found


def _requests(run: Run) -> float:
    return _some(sum(_first_flow(run, "requests_per_sec")), "request")


def _bytes(run: Run) -> float:
    return _some(sum(_first_flow(run, "goodput_bits_per_sec")), "transfer") / 8


def _cpu_in_model(per: Callable[[Run], float]) -> Callable[[Run], float]:
    def found(run: Run) -> float:
        rows = run.host_costs.arrow().to_pylist()
        spent = sum(float(row["value"]) for row in rows if row["counter"] == "cpu_ns")
        return spent / per(run)

    return found


def _cpu(name: str, per: Callable[[Run], float]) -> Quantity:
    return Quantity(name, lambda run, warmup_ms: threads_ns_per_sec(run, warmup_ms) / per(run), _cpu_in_model(per))


def _of_flows(name: str, found: Callable[[Run], float]) -> Quantity:
    return Quantity(name, lambda run, _: found(run), found)


def _mean(column: str, what: str) -> Callable[[Run], float]:
    def found(run: Run) -> float:
        values = _first_flow(run, column)
        return _some(sum(values) / len(values) if values else 0.0, what)

    return found


def _printed(run: Run, _: int) -> float:
    """The number that the client of ends.py printed."""
    [row] = [row for row in run.programs.arrow().to_pylist() if row["role"] == "client"]
    said = ((run.folder or Path()) / row["output"]).read_text(errors="replace").strip()
    try:
        return _some(float(json.loads(said.splitlines()[-1])["value"]), "work")
    except (IndexError, KeyError, TypeError, ValueError):
        last = said.splitlines()[-1:] or ["nothing"]
        raise EngineError(f"knee doctor --measure: got from the lab's program: {last[0]}; expected a number.") from None


def _never(_: Run) -> float:
    raise EngineError("knee doctor --measure: the simulator runs no programs; this is a defect.")


CPU_PER_REQUEST = _cpu("CPU per request", _requests)
CPU_PER_BYTE = _cpu("CPU per byte", _bytes)
TIME_PER_REQUEST = _of_flows("time per request", lambda run: 1 / _requests(run))
TIME_PER_BYTE = _of_flows("time per byte", lambda run: 1 / _bytes(run))
COMPLETION = _of_flows("time to the last byte", _mean("completion_us", "transfer"))
LATENCY = _of_flows("time until the answer", _mean("latency_us_p50", "request"))


def printed(name: str) -> Quantity:
    """What a program of ends.py measures."""
    return Quantity(name, _printed, _never)


AGE = printed("age of data when it arrives")
WAIT = printed("time until a connection is served")
ANSWER = printed("time until the answer")
STREAM = printed("time per byte")
