"""What a run says of its two hosts: what was set there and put back, and where they are not what the scenario says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def lines(meta: Mapping[str, Any]) -> list[str]:
    """Of the sessions in `run.json`; what several say is said once."""
    found: dict[str, None] = {}
    for session in meta.get("sessions", ()):
        for role, told in session.get("hosts", {}).items():
            found |= dict.fromkeys(_of_host(role, told))
    return ["Hosts", *(f"  {line}" for line in found)] if found else []


def _of_host(role: str, told: Mapping[str, Any]) -> Iterator[str]:
    held = [*told.get("held", ()), *told.get("of_cells", ())]
    for one in held:
        yield f"{role}: {one['setting']} was {one['was']}, and {one['is']} for the run"
    if held:
        back = told.get("as_before")
        yield f"{role}: {'all settings are as before' if back else 'not all settings are as before: see the warnings'}"
    if any(" netem" in f" {one['is']}" for one in held):
        yield (
            f"{role}: netem gets what TCP hands over, of up to 64 KiB with tso: it delays, counts and loses such a "
            "packet as one"
        )
    yield from told.get("differs", ())
