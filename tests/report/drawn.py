"""What a figure looks like once drawn: pieces of its SVG, with their places."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Any

import vl_convert

SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Panel:
    """A rectangle with its axes: pixels from its left and from its top."""

    width: float
    height: float
    grid: list[float]
    """Upright lines."""
    ticks: list[float]
    """Of the axis below; none where it has no axis of its own."""
    lines: list[list[tuple[float, float]]]
    """Points of each line that is drawn."""
    dashes: list[str | None]
    """Of each line."""


def panels(spec: dict[str, Any]) -> list[Panel]:
    """The panels of a figure, from the top."""
    root = ET.fromstring(vl_convert.vegalite_to_svg(spec))
    found = []
    for group in root.iter(f"{SVG}g"):
        if re.search(r"_\d+_group$", group.get("class") or ""):
            found += [_panel(inner) for inner in group.findall(f"{SVG}g")]
    return [panel for panel in found if panel.grid]


def _panel(group: ET.Element) -> Panel:
    background = next(path for path in group.findall(f"{SVG}path") if "background" in (path.get("class") or ""))
    size = re.match(r"M0,0h([\d.]+)v([\d.]+)", background.get("d") or "")
    assert size, background.get("d")
    grid: list[float] = []
    ticks: list[float] = []
    lines = [path for mark in _marks(group, "mark-line role-mark") for path in mark.iter(f"{SVG}path")]
    for rules, kind in ((grid, "role-axis-grid"), (ticks, "role-axis-tick")):
        for mark in _marks(group, kind):
            for line in mark.iter(f"{SVG}line"):
                at = re.match(r"translate\(([-\d.]+),", line.get("transform") or "")
                # Upright: it has no width.
                if at and float(line.get("x2") or 0) == 0:
                    rules.append(float(at[1]))
    drawn = [path for path in lines if path.get("d")]
    return Panel(
        float(size[1]),
        float(size[2]),
        sorted(grid),
        sorted(ticks),
        [_points(path.get("d") or "") for path in drawn],
        [path.get("stroke-dasharray") for path in drawn],
    )


def _marks(group: ET.Element, kind: str) -> list[ET.Element]:
    return [mark for mark in group.iter(f"{SVG}g") if kind in (mark.get("class") or "")]


def _points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+),([-\d.]+)", path)]
