"""Which processors the receive queues of a host lead to, as a drawing of lines.

Solid lines are interrupts: the processors that a queue's interrupt comes to. Dashed lines are RPS: the processors that
it spreads packets over. An interrupt belongs to a queue by the number at the end of its name, as drivers give it
(`ice-eth0-TxRx-3`, `virtio0-input.0`); one without such a number to no queue, and it is not drawn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcpknee.doctor.snapshot import Row, Snapshot

ROWS_AT_MOST = 64
"""Queues, and processors, that are drawn; beyond that nobody follows a line."""

ROW = 20
"""Height of a row, pixels."""
LEFT, RIGHT, WIDTH = 230, 640, 860
TOP = 26

_SENDS_ONLY = re.compile(r"(^|[^a-z])(tx|output|xmit)([^a-z]|$)", re.IGNORECASE)
_BOTH = re.compile(r"txrx|tx-rx|rxtx", re.IGNORECASE)


@dataclass(frozen=True)
class Queue:
    """A receive queue, and the processors that serve it."""

    interface: str
    number: int
    interrupts: tuple[int, ...]
    """Empty: no interrupt of its own, as with veth, whose sender's processor receives."""
    rps: tuple[int, ...]


def queues(snapshot: Snapshot) -> list[Queue]:
    """Receive queues of interfaces that are in use, those with most packets first."""
    found = []
    in_use = [row for row in snapshot.rows("interfaces") if not row["loopback"] and row["operstate"] != "down"]
    for interface in sorted(in_use, key=lambda row: -(row["rx_packets"] or 0)):
        irqs = _irqs(snapshot.of_interface("irqs", interface))
        for row in sorted(snapshot.of_interface("queues", interface), key=lambda row: row["number"] or 0):
            if row["direction"] == "rx" and row["number"] is not None:
                found.append(
                    Queue(
                        interface["interface"] or "",
                        row["number"],
                        tuple(irqs.get(row["number"], ())),
                        tuple(row["rps_cpus"] or ()),
                    )
                )
    return found


def _irqs(rows: Sequence[Row]) -> dict[int, list[int]]:
    """The processors of each receiving interrupt among those of an interface, by the number of its queue."""
    found: dict[int, list[int]] = {}
    for row in rows:
        name = row["name"] or ""
        number = re.search(r"(\d+)\D*$", name)
        if number is None or (_SENDS_ONLY.search(name) and not _BOTH.search(name)):
            continue
        found.setdefault(int(number[1]), []).extend(row["effective"] or row["affinity"] or ())
    return found


def picture(snapshot: Snapshot) -> Mapping[str, Any] | None:
    """What the template draws: lines and words with their places; None where there is no queue."""
    every = queues(snapshot)
    shown = every[:ROWS_AT_MOST]
    cpus = [row["cpu"] for row in snapshot.rows("cpus") if row["cpu"] is not None]
    used = {cpu for queue in shown for cpu in (*queue.interrupts, *queue.rps)}
    if not shown or not cpus:
        return None
    # Those that no line leads to are left out first.
    kept = sorted(sorted(cpus, key=lambda cpu: (cpu not in used, cpu))[:ROWS_AT_MOST])
    softirq = {row["cpu"]: row["softirq_pct"] for row in snapshot.rows("cpus")}
    rows = max(len(shown), len(kept))
    queue_y = {queue: _y(at, len(shown), rows) for at, queue in enumerate(shown)}
    cpu_y = {cpu: _y(at, len(kept), rows) for at, cpu in enumerate(kept)}
    lines = [
        {"from": queue_y[queue], "to": cpu_y[cpu], "kind": kind}
        for queue in shown
        for kind, of in (("interrupt", queue.interrupts), ("rps", queue.rps))
        for cpu in dict.fromkeys(of)
        if cpu in cpu_y
    ]
    return {
        "width": WIDTH,
        "height": TOP + rows * ROW + 6,
        "left": LEFT,
        "right": RIGHT,
        "lines": lines,
        "queues": [{"y": y, "text": f"{queue.interface} rx {queue.number}"} for queue, y in queue_y.items()],
        "cpus": [{"y": y, "text": _cpu(cpu, softirq.get(cpu))} for cpu, y in cpu_y.items()],
        "left_out": [
            f"{len(every) - len(shown)} more queues" if len(every) > len(shown) else "",
            f"{len(cpus) - len(kept)} more processors" if len(cpus) > len(kept) else "",
        ],
        "words": words(every),
    }


def _y(at: int, count: int, rows: int) -> float:
    """The middle of a row, where the shorter of both columns is spread over the height of the longer."""
    return round(TOP + (at + 0.5) * ROW * rows / count, 1)


def _cpu(cpu: int, softirq_pct: float | None) -> str:
    return f"cpu{cpu}" if softirq_pct is None else f"cpu{cpu}, softirq {softirq_pct:.1f} %"


def words(found: Sequence[Queue]) -> list[str]:
    """The same in words, a line for each interface."""
    by_interface: dict[str, list[Queue]] = {}
    for queue in found:
        by_interface.setdefault(queue.interface, []).append(queue)
    said = []
    for interface, its in by_interface.items():
        interrupts = sorted({cpu for queue in its for cpu in queue.interrupts})
        rps = sorted({cpu for queue in its for cpu in queue.rps})
        count = "1 receive queue" if len(its) == 1 else f"{len(its)} receive queues"
        told = f"interrupts on {ranges(interrupts)}" if interrupts else "no interrupt of their own"
        said.append(f"{interface}: {count}, {told}; RPS {f'over {ranges(rps)}' if rps else 'off'}.")
    return said


def ranges(cpus: Sequence[int]) -> str:
    """Ascending processors as Linux lists them: cpu0-3,8."""
    parts: list[str] = []
    begin = before = cpus[0]
    for cpu in [*cpus[1:], None]:
        if cpu is not None and cpu == before + 1:
            before = cpu
            continue
        parts.append(f"{begin}" if begin == before else f"{begin}-{before}")
        if cpu is not None:
            begin = before = cpu
    return f"cpu{','.join(parts)}"
