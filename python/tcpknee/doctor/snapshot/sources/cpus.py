"""Processors: what they did since boot, their frequency, idle states and nodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tcpknee import processors
from tcpknee.doctor.snapshot.reader import Reader, cpus_of_list

Rows = list[dict[str, Any]]


def read(reader: Reader) -> dict[str, Rows]:
    """The table `cpus`."""
    base = reader.roots.sys / "devices/system/cpu"
    nodes = _nodes(reader)
    isolated = set(cpus_of_list(reader.text(base / "isolated")) or ())
    rows = []
    for cpu, times in _times(reader).items():
        folder = base / f"cpu{cpu}"
        rows.append(
            {
                "cpu": cpu,
                "numa_node": nodes.get(cpu),
                "siblings": cpus_of_list(reader.text(folder / "topology/thread_siblings_list")),
                "governor": reader.text(folder / "cpufreq/scaling_governor"),
                "driver": reader.text(folder / "cpufreq/scaling_driver"),
                "max_khz": reader.number(folder / "cpufreq/scaling_max_freq"),
                "hardware_max_khz": reader.number(folder / "cpufreq/cpuinfo_max_freq"),
                "isolated": cpu in isolated,
                **_idle(reader, folder / "cpuidle"),
                **times,
                **(processors.shares(times) if times else {}),
            }
        )
    if not rows:
        reader.miss("processors", f"{reader.roots.proc}/stat is not there", "a mounted /proc")
    return {"cpus": rows}


def _nodes(reader: Reader) -> dict[int, int]:
    found = {}
    for path in reader.entries(reader.roots.sys / "devices/system/node"):
        if path.name.startswith("node") and path.name[4:].isdigit():
            for cpu in cpus_of_list(reader.text(path / "cpulist")) or ():
                found[cpu] = int(path.name[4:])
    return found


def _idle(reader: Reader, folder: Path) -> dict[str, Any]:
    """The deepest state that may be taken."""
    states = [path for path in reader.entries(folder) if path.name[5:].isdigit()]
    for state in sorted(states, key=lambda path: int(path.name[5:]), reverse=True):
        if reader.text(state / "disable") != "1":
            return {"idle_state": reader.text(state / "name"), "idle_exit_us": reader.number(state / "latency")}
    return {}


def read_times(reader: Reader) -> dict[str, Rows]:
    """The table `cpus` with their times alone."""
    return {"cpus": [{"cpu": cpu, **times} for cpu, times in _times(reader).items()]}


def _times(reader: Reader) -> dict[int, dict[str, int]]:
    """By processor; empty where its line is damaged."""
    text = reader.text(reader.roots.proc / "stat") or ""
    found = processors.times_us(text)
    numbers = re.findall(r"^cpu(\d+)\b", text, re.M)
    return {int(number): found.get(f"cpu{number}", {}) for number in numbers}
