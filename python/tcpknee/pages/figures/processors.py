"""What each processor of recorded hosts did over time, as `mpstat -P ALL` prints it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcpknee.pages import marks
from tcpknee.pages.observed import Observed
from tcpknee.pages.run import ReportRun
from tcpknee.pages.theme import Layout

from . import cpu

name = "processors"
title = "Each processor over time"
needs = "a recording or an import that has the table cpu"
summary = (
    "Shares of each processor's time in programs (user), in the kernel on their behalf (system), in interrupts "
    "(softirq) and taken by the hypervisor (steal); what is left is idle. Of more than 16 processors the busiest."
)
_QUERY = """
    select coalesce(host, '') as host, cpu, t_unix_ns as t, t_mono_ns as m, {kinds}, {used} as used
    from cpu where cpu is not null and coalesce(t_unix_ns, t_mono_ns) is not null
    order by host, cpu, coalesce(t_unix_ns, t_mono_ns)
"""
_KINDS = {
    "user": "coalesce(user_us, 0) + coalesce(nice_us, 0)",
    "system": "coalesce(system_us, 0)",
    "softirq": "coalesce(irq_us, 0) + coalesce(softirq_us, 0)",
    "steal": "coalesce(steal_us, 0)",
}


def applies(run: ReportRun | Observed) -> bool:
    return isinstance(run, Observed) and bool(_series(run))


def chart(run: Observed, layout: Layout) -> Any:
    series = _series(run)
    end = max(float(columns["t"][-1]) for columns in series.values())
    rows = [
        {"processor": label, "t": float(columns["t"][at]), **{kind: float(columns[kind][at]) for kind in cpu.KINDS}}
        for label, columns in series.items()
        for at in range(len(columns["t"]))
    ]
    return cpu.drawn(list(series), max(end, 1e-3), layout, marks.values(rows))


def _series(found: Observed) -> dict[str, dict[str, Any]]:
    """Shares of time by processor; the time is since the first row of all."""
    series: dict[str, dict[str, Any]] = {}
    used: dict[str, float] = {}
    for side, dataset in found.sides:
        if "cpu" not in dataset.tables:
            continue
        kinds = ", ".join(f"{sql} as {kind}" for kind, sql in _KINDS.items())
        rows = dataset.sql(_QUERY.format(kinds=kinds, used=" + ".join(_KINDS.values()))).to_pylist()
        times = [row["t"] if row["t"] is not None else row["m"] for row in rows]
        begin = min(times, default=0)
        hosts = len({row["host"] for row in rows})
        own: dict[str, list[int]] = {}
        for place, row in enumerate(rows):
            words = [side, row["host"] if hosts > 1 else "", f"cpu{row['cpu']}"]
            own.setdefault(" ".join(word for word in words if word), []).append(place)
        for label, places in own.items():
            counters = np.array([[rows[place][kind] for place in places] for kind in cpu.KINDS], dtype=np.float64)
            t_ns = np.array([times[place] - begin for place in places], dtype=np.float64)
            if len(places) > 1 and t_ns[-1] > 0:
                series[label] = cpu.shares(t_ns - t_ns[0], counters - counters[:, :1])
                series[label]["t"] = series[label]["t"] + t_ns[0] * 1e-9
                used[label] = float(rows[places[-1]]["used"] - rows[places[0]]["used"])
    busiest = sorted(series, key=lambda label: -used[label])[: cpu.PROCESSORS_AT_MOST]
    return {label: columns for label, columns in series.items() if label in busiest}
