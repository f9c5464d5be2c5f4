"""The page of a gate: the matrix first, then each row with its question, thresholds, numbers and reproducer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import html


def render(gate: Mapping[str, Any]) -> str:
    """`gate`: the object of gate.json."""
    return html.still_page("gate.html.j2", gate=gate, base=gate["base"])
