"""Files of an interface's queues below /sys: which processors receive for a queue, and which send by it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tcpknee.doctor.cpus import of_list

from .change import CannotChange, interface_index

DEVICES = Path("/sys/class/net")


def device(interface: str) -> Path:
    """The interface's folder below /sys. Raises OSError, CannotChange."""
    path = DEVICES / interface
    index = interface_index(interface)
    if int((path / "ifindex").read_text()) != index:
        raise CannotChange(
            f"{interface}: /sys shows another network namespace than this process is in. Mount a new one: "
            "mount -t sysfs sysfs /sys"
        )
    return path


def queue_numbers(interface: str, direction: str) -> list[int]:
    """Numbers of the queues in a direction, `rx` or `tx`. Raises OSError, CannotChange."""
    found = (re.fullmatch(rf"{direction}-(\d+)", path.name) for path in (device(interface) / "queues").iterdir())
    return sorted(int(one[1]) for one in found if one)


def possible_cpus() -> set[int]:
    """Processors that this machine can have."""
    return set(of_list(Path("/sys/devices/system/cpu/possible").read_text()))


def within_machine(target: str, cpus: Iterable[int]) -> list[int]:
    """Those of the processors that the machine can have. Raises CannotChange if none is left of some."""
    asked = set(cpus)
    kept = asked & possible_cpus()
    if asked and not kept:
        raise CannotChange(f"{target}: got the processors {sorted(asked)}; this machine has {len(possible_cpus())}.")
    return sorted(kept)
