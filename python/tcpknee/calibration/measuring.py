"""One micro run on either engine, as one number: ns of a processor, or of time, for each request or byte."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpknee import processors
from tcpknee.errors import EngineError
from tcpknee.runs import api
from tcpknee.runs.results import Run

from .micro import WARMUP_MS, Micro

_STAT = Path("/proc/stat")


def on_kernel(micro: Micro) -> float:
    """ns of one run on this host. Raises `EngineError`."""
    run = api.run_text(micro.text(), "<calibration>", engine="kernel", out=None)
    per_sec = _units_per_sec(run, micro)
    if micro.elapsed:
        return 1e9 / per_sec
    return threads_ns_per_sec(run, WARMUP_MS) / per_sec


@dataclass(frozen=True)
class Predicted:
    """What the model says. `ns`: as measured; `by_operation`: of that, by the name of a cost."""

    ns: float
    by_operation: Mapping[str, float]


def in_model(micro: Micro, profile: Path) -> Predicted:
    """ns by the model with a profile."""
    text = micro.text(costs=f"file {profile.name}")
    run = api.run_text(text, str(profile.parent / "calibration.toml"), out=None)
    per_sec = _units_per_sec(run, micro)
    window = run.meta["cells"][0]
    seconds = (int(window["duration_ns"]) - int(window["warmup_ns"])) / 1e9
    units = per_sec * seconds
    rows = run.host_costs.arrow().to_pylist()
    counters = {row["counter"]: row["value"] / units for row in rows}
    from tcpknee import _core

    names = [cost["name"] for cost in _core.costs()]
    ns = 1e9 / per_sec if micro.elapsed else counters["cpu_ns"]
    return Predicted(ns, {name: counters[name] for name in names})


def _units_per_sec(run: Run, micro: Micro) -> float:
    flows = run.flows.arrow()
    name = "requests_per_sec" if micro.per == "request" else "goodput_bits_per_sec"
    total: float = sum(value or 0.0 for value in flows[name].to_pylist())
    per_sec = total if micro.per == "request" else total / 8
    if per_sec <= 0:
        raise EngineError(f"calibration, {micro.name}: got no {micro.per} done; expected some. Is the machine busy?")
    return per_sec


def threads_ns_per_sec(run: Run, warmup_ms: int) -> float:
    """Time of the hosts' threads: with one processor for both, softirqs run within them."""
    rows = [row for row in run.cpu_time.arrow().to_pylist() if row["t_ns"] >= warmup_ms * 1_000_000]
    ends: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["name"].startswith(("sender", "receiver")):
            ends.setdefault(row["name"], []).append(row)
    spent: float = sum(rows[-1]["run_us"] - rows[0]["run_us"] for rows in ends.values())
    length_us: float = max((rows[-1]["t_ns"] - rows[0]["t_ns"]) / 1e3 for rows in ends.values())
    return spent / length_us * 1e9


def busy_share(seconds: float = 1.0) -> float:
    """The share of this host's processors that are busy now."""
    before = processors.times_us(_STAT.read_text())[processors.ALL]
    time.sleep(seconds)
    now = processors.times_us(_STAT.read_text())[processors.ALL]
    return (now["busy_us"] - before["busy_us"]) / max(now["time_us"] - before["time_us"], 1)
