"""Cost profiles as files: `[costs]` with `{ ns, low, high, source }` of each operation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tcpknee import _core

from .fit import Cost


def shipped(name: str) -> dict[str, float]:
    """The costs of a profile that comes with tcpknee, ns by operation."""
    return dict(_core.cost_profile(name))


def written(costs: Mapping[str, Cost], *, title: str, kernel: str, machine: str, how: str, prior: str) -> str:
    """The text of a profile. `prior`: the one that it began with, whose costs those are that no run sees."""
    lines = [f"title = {_quoted(title)}", f"kernel = {_quoted(kernel)}", f"machine = {_quoted(machine)}", "", "[costs]"]
    for name, cost in costs.items():
        source = f"{how}; the measurement took {cost.told:.0%} of the uncertainty"
        if not cost.is_seen:
            source = f"not seen by the runs of knee calibrate: a cost of the profile {prior}, with its uncertainty"
        numbers = f"ns = {cost.ns:.4g}, low = {cost.low:.4g}, high = {cost.high:.4g}"
        lines.append(f"{name} = {{ {numbers}, source = {_quoted(source)} }}")
    return "\n".join(lines) + "\n"


def bare(costs: Mapping[str, float]) -> str:
    """A profile of numbers alone, for the model while it is fitted."""
    lines = ["[costs]"]
    for name, ns in costs.items():
        lines.append(f'{name} = {{ ns = {ns!r}, low = 0.0, high = {max(ns, 0.0)!r}, source = "while it is fitted" }}')
    return "\n".join(lines) + "\n"


def keep(path: Path, text: str) -> None:
    """Writes the file as a whole."""
    from tcpknee.writing import replacing

    with replacing(path, make=True, public=True) as file:
        file.write(text.encode())


def _quoted(text: str) -> str:
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else " " for c in text) + '"'
