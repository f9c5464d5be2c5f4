"""What /proc/stat says of processors: how long each was busy, and with what (proc_stat(5))."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

ALL = "cpu"
"""The name of all processors together; others are `cpu0`, `cpu1`, …"""

_TICKS = re.compile(r"[0-9]{1,14}")

_SHARES = (("busy", 2), ("softirq", 2), ("steal", 3))
"""Parts of the time, and the number of digits of their shares."""


def times_us(stat: str) -> dict[str, dict[str, int]]:
    """By processor: the time since boot that was counted; and how much of it was busy (neither idle nor waiting for a
    disk), in soft interrupts, and given to others by the hypervisor. A damaged line is left out."""
    found = {}
    for line in stat.splitlines():
        name, *words = line.split() or [""]
        # user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
        ticks = words[:8]
        if not name.startswith(ALL) or len(ticks) < 8 or not all(map(_TICKS.fullmatch, ticks)):
            continue
        micros = [int(tick) * 1_000_000 // os.sysconf("SC_CLK_TCK") for tick in ticks]
        found[name] = {
            "time_us": sum(micros),
            "busy_us": sum(micros) - micros[3] - micros[4],
            "softirq_us": micros[6],
            "steal_us": micros[7],
        }
    return found


def shares(times: Mapping[str, int | None]) -> dict[str, float]:
    """Percent of the time that was counted, where it is known."""
    whole_us = times["time_us"]
    if not whole_us:
        return {}
    parts = ((name, digits, times[f"{name}_us"]) for name, digits in _SHARES)
    return {f"{name}_pct": round(100 * part / whole_us, digits) for name, digits, part in parts if part is not None}
