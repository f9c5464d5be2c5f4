"""Two queues of a device interrupt the two threads of one core.

What it sees: simultaneous multithreading is on, the interrupts of two queues come to threads of the same core, and
another core of the node has none.
Why it matters: the threads share the core's units and caches. Two queues on one core get little more done than one,
while the other core has time.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, IrqAffinity
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Row, Snapshot

from .rule import Rule

Core = tuple[int, ...]


def _check(snapshot: Snapshot) -> list[Finding]:
    rows = [row for row in snapshot.rows("cpus") if row["cpu"] is not None and not row["isolated"]]
    core_of: dict[int, Core] = {row["cpu"]: tuple(row["siblings"]) for row in rows if row["siblings"]}
    if not any(len(core) > 1 for core in core_of.values()):
        return []
    balancing = facts.runs(snapshot, "irqbalance")
    findings = []
    for interface in facts.devices(snapshot):
        places = _places(snapshot, interface)
        cores: dict[Core, list[int]] = {}
        for number, cpu in places.items():
            if cpu in core_of:
                cores.setdefault(core_of[cpu], []).append(number)
        on_node = {core_of[row["cpu"]] for row in rows if row["cpu"] in core_of and _near(row, interface)}
        free = sorted(on_node - cores.keys())
        # Several on one thread: `irqs-on-one-cpu` speaks of that.
        shared = [
            numbers
            for numbers in cores.values()
            if len(numbers) > 1 and len({places[number] for number in numbers}) == len(numbers)
        ]
        moved = [number for numbers in shared for number in numbers[1:]]
        if not moved or not free:
            continue
        name = interface["interface"]
        changes: list[Change] = [IrqAffinity(number, (core[0],)) for number, core in zip(moved, free, strict=False)]
        findings.append(
            RULE.found(
                "advice",
                name,
                f"{len(shared)} cores serve two queues of {name} with their two threads, and {len(free)} cores none.",
                {
                    "queues": len(places),
                    "cores_with_two_queues": len(shared),
                    "cores_without": len(free),
                    "smt": snapshot.host["smt"],
                    "irqbalance": balancing,
                },
                confirm=[
                    "cat /sys/devices/system/cpu/cpu*/topology/thread_siblings_list",
                    f"grep {name} /proc/interrupts",
                ],
                changes=[] if balancing else changes,
                advice="irqbalance runs and would undo a change of affinity; let it know of cores, or give the device "
                "as many queues as there are cores (ethtool -L)."
                if balancing
                else "Or give the device as many queues as there are cores (ethtool -L).",
                gain="Up to the work of a core for each queue that moves; none while the threads are idle.",
            )
        )
    return findings


def _places(snapshot: Snapshot, interface: Row) -> Mapping[int, int]:
    """The processor that most interrupts of each busy queue came to, by the interrupt's number."""
    _, active = facts.busy_interrupts(snapshot, interface)
    return {
        row["number"]: int(max(row["counts"], key=row["counts"].__getitem__))
        for row in active
        if row["number"] is not None and all(cpu.isdigit() for cpu in row["counts"])
    }


def _near(cpu: Row, interface: Row) -> bool:
    """Whether a processor is of the device's node; of all, where the device has none."""
    node = interface["numa_node"]
    return node is None or node < 0 or cpu["numa_node"] in (None, node)


RULE = Rule(
    name="queues-on-siblings",
    group="nic",
    summary="two queues of a device share a core, and other cores have none",
    source="Documentation/networking/scaling.rst, RSS IRQ Configuration (no benefit of hyperthreads for interrupts: as "
    "many queues as cores); ENA_Linux_Best_Practices.rst, CPU starvation (no RPS on siblings of interrupts)",
    manual=__doc__,
    check=_check,
    needs=("cpus", "irqs", "interfaces"),
)
