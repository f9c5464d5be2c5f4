"""`rps-mask`: the doctor's words for RPS masks, both ways, and the command that sets one."""

from __future__ import annotations

from tcpknee.doctor.changes import Rps
from tcpknee.doctor.cpus import of_mask

from .check import Found, Request, fact

_MASKS = {"0": (), "1": (0,), "3": (0, 1), "00000000,0000000c": (2, 3), "00000001,00000000": (32,)}


def check(request: Request) -> Found:
    """Each mask is the processors that its bits name, and the change that names them has the mask."""
    outcomes = []
    for mask, cpus in _MASKS.items():
        read = tuple(of_mask(mask))
        names = ", ".join(map(str, read)) or "none: RPS is off"
        outcomes.append(fact(f"{mask} is {len(cpus)} processors", read == cpus, names))
        [command] = Rps("eth0", 0, cpus).shown()
        written = command.split()[1]
        outcomes.append(fact(f"the command for {mask}", tuple(of_mask(written)) == cpus, command))
    [command] = Rps("eth0", 0, (0, 1)).shown()
    return Found(outcomes, [("processors 0 and 1", command)])
