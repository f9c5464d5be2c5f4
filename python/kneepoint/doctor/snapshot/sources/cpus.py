"""Processors: what they did since boot, their frequency, idle states and nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kneepoint.doctor.snapshot.reader import Reader, cpus_of_list, whole

Rows = list[dict[str, Any]]


def read(reader: Reader) -> dict[str, Rows]:
    """The table `cpus`."""
    base = reader.roots.sys / "devices/system/cpu"
    nodes = _nodes(reader)
    isolated = set(cpus_of_list(reader.text(base / "isolated")) or ())
    rows = []
    for line in (reader.text(reader.roots.proc / "stat") or "").splitlines():
        words = line.split()
        if not words or not words[0].startswith("cpu") or not words[0][3:].isdigit():
            continue
        cpu = int(words[0][3:])
        folder = base / f"cpu{cpu}"
        rows.append(
            {
                "cpu": cpu,
                "numa_node": nodes.get(cpu),
                "governor": reader.text(folder / "cpufreq/scaling_governor"),
                "driver": reader.text(folder / "cpufreq/scaling_driver"),
                "max_khz": reader.number(folder / "cpufreq/scaling_max_freq"),
                "hardware_max_khz": reader.number(folder / "cpufreq/cpuinfo_max_freq"),
                "isolated": cpu in isolated,
                **_idle(reader, folder / "cpuidle"),
                **_shares(words[1:]),
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


def _shares(words: list[str]) -> dict[str, float]:
    """Of user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already."""
    times = [whole(word) or 0 for word in words[:8]]
    total = sum(times)
    if len(times) < 8 or not total:
        return {}
    return {
        "busy_pct": round(100 * (total - times[3] - times[4]) / total, 2),
        "softirq_pct": round(100 * times[6] / total, 2),
        "steal_pct": round(100 * times[7] / total, 3),
    }
