"""One cell of a scenario as a scenario of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tcpknee import reading
from tcpknee.runs import compose


def one(text: str, place: Mapping[str, str]) -> str:
    """The scenario with one value for each axis of `place` (`path.rtt`, `flow.0.cubic.beta`), as its list has it."""
    scenario = reading.toml(text)
    for key, value in place.items():
        _pick(scenario, key.split("."), value)
    # Lists that vary together have one value each now.
    together = [one for one in scenario.pop("zip", []) if not place.keys() & set(one["keys"])]
    return compose.toml({**scenario, **({"zip": together} if together else {})})


def without_index(assertion: str, place: Mapping[str, str]) -> str:
    """An assertion as it reads where these axes have only that value."""
    for key, value in place.items():
        assertion = re.sub(rf'{re.escape(key)}\s*=\s*"{re.escape(value)}",?\s*', "", assertion)
    return assertion.replace("[]", "")


def _pick(table: Any, keys: list[str], value: str) -> None:
    *outer, last = (int(key) if key.isdecimal() else key for key in keys)
    for key in outer:
        table = table[key]
    values = table[last]
    if isinstance(values, list):
        table[last] = next(one for one in values if _written(one) == value)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
