"""The page of a gate: the matrix first, then each row with its question, thresholds, numbers and reproducer; those that
have a reproducer, as they fail, before the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import html


def render(gate: Mapping[str, Any]) -> str:
    """`gate`: the object of gate.json."""
    shown = sorted((row for row in gate["rows"] if row["scenario"]), key=lambda row: not row["reproducer"])
    return html.still_page("gate.html.j2", gate=gate, shown=shown, base=gate["base"])
