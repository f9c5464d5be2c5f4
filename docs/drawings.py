"""Drawings of the site, as HTML that takes its colours from the page (site/look/site.css) and from the palette of all
figures."""

from __future__ import annotations

import csv
import math
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import reference

from tcpknee.pages import palette

ROOT = Path(__file__).resolve().parent.parent
MEGABYTE = 1e6


def styles() -> str:
    """A class for each family: its colour, on either paper, is that of the figures."""
    return "".join(f".family-{k} {{ --ink: {palette.COLOURS[k]}; }}\n" for k in range(len(palette.FAMILIES)))


def race() -> str:
    """The same download with two algorithms, twice each, byte by byte as it came (site/race.csv, which tools/race.py
    writes), shown in its own time."""
    with (ROOT / "site" / "race.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    end = math.ceil(max(float(row["seconds"]) for row in rows)) + 1
    plot = Plot(560, 300, (0, end), (0, 3.2))
    curves, said = [], []
    for name, label in (("cubic", "CUBIC"), ("bbr1", "BBR")):
        runs: dict[str, list[tuple[float, float]]] = {}
        for row in rows:
            if row["algorithm"] == name:
                runs.setdefault(row["run"], []).append((float(row["seconds"]), int(row["bytes"]) / MEGABYTE))
        curves.append(f'<g class="{reference.look(name)[0]}">')
        for points in runs.values():
            took, got = points[-1]
            curves.append(f'<path class="line" d="{plot.path(points)}"/>')
            curves.append(f'<circle class="dot" cx="{plot.x(took):.1f}" cy="{plot.y(got):.1f}" r="5"/>')
        every = sorted(points[-1] for points in runs.values())
        said.append(f"{label}: {' and '.join(dict.fromkeys(f'{took:.1f}' for took, _ in every))} s")
        # Above the end of a curve, or beside one that ends early: on a telephone two of them do not fit side by side.
        if every[0][0] > end / 2:
            at = f'x="{plot.x(every[0][0]) - 10:.1f}" y="{plot.y(every[0][1]) - 10:.1f}" text-anchor="end"'
        else:
            at = f'x="{plot.x(every[-1][0]) + 10:.1f}" y="{plot.y(2 / 3 * every[-1][1]):.1f}"'
        curves.append(f'<text class="strong" {at}>{said[-1]}</text></g>')
    # The frame makes the group as large as the plot: it is uncovered from left to right (site.css).
    frame = f'<path class="frame" d="M{plot.left} 0H{plot.width - 12}V{plot.bottom}H{plot.left}z"/>'
    data = f'<g class="data" style="animation-duration: {end}s">{frame}{"".join(curves)}</g>'
    button = '<button type="button" class="md-button play">Show it as it happened</button>'
    axes = plot.axes("seconds", "megabytes received", range(0, end, 2), range(4))
    drawn = plot.svg("A download of 3 MB, twice each. " + ". ".join(said) + ".", [axes, data])
    return f'<div class="drawing race">{drawn}{button}</div>'


def beside() -> str:
    """Each cell of reference/linux-6.12.csv: what that kernel does across, what the simulator does upwards."""
    compared = reference.compared("linux-6.12.csv")
    panels = (
        ("goodput_bits_per_sec", "goodput, Mbit/s", 1e-6),
        ("srtt_us_p50", "median RTT, ms", 1e-3),
    )
    drawn = []
    for metric, measured, factor in panels:
        every = [one for one in compared if one.metric == metric]
        cells = [one for one in every if min(one.sim, one.kernel) > 0]
        values = [side * factor for one in cells for side in (one.sim, one.kernel)]
        between = (min(values) / 1.1, max(values) * 1.1)
        ticks = _ticks(*between)
        plot = Plot(360, 330, between, between, logarithmic=True)
        parts = [plot.axes(f"Linux 6.12: {measured}", "simulator", ticks, ticks)]
        parts.append(f'<path class="rule" d="{plot.path([(between[0], between[0]), (between[1], between[1])])}"/>')
        for one in cells:
            name = one.label.split()[0]
            kind = reference.look(name)[0] if name in palette.KNOWN else "family-none"
            x, y = plot.x(one.kernel * factor), plot.y(one.sim * factor)
            title = f"<title>{escape(one.label)}</title>"
            parts.append(f'<circle class="{kind} dot" cx="{x:.1f}" cy="{y:.1f}" r="3">{title}</circle>')
        apart = sorted(100 * abs(one.sim / one.kernel - 1) for one in cells)
        tenth = statistics.quantiles(apart, n=10)[-1]
        said = (
            f"{sum(one.ok for one in every)} of {len(every)} cells within their bounds. Apart: "
            f"{statistics.median(apart):.2f} % in the median, {tenth:.1f} % or more in one of ten, "
            f"{apart[-1]:.0f} % at worst."
        )
        drawn.append(f"<div>{plot.svg(f'{measured}: {said}', parts)}<p>{said}</p></div>")
    return f'<div class="drawing panels">{"".join(drawn)}</div>'


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten between them."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    return [tick for power in powers for step in (1, 2, 5) if low <= (tick := step * 10.0**power) <= high]


VALUE = re.compile(r"(-?[\d.]+)(?: ?([^\s\[\d(]+))?(?: \[(-?[\d.]+), (-?[\d.]+)\])?(?: \(\d+ clusters\))?")
ROW, BAR, LEFT = 44, 12, 4
"""Of a row: its height and that of its bar, which is below its words."""
MANY = 200
"""Times the least: bars of so different length have a logarithmic axis."""


def values(name: str, ours: Iterable[Sequence[str]]) -> str:
    """A bar with its interval for each value of a claim, if they have one unit. A ratio has its bar from 1 on; what
    spans orders of magnitude has a dot, as a bar would have no beginning there."""
    read = [(label, text, found) for label, text in ours if (found := VALUE.fullmatch(text))]
    # Some ratios have no sign of it but in their name.
    units = {found[2] or ("×" if "÷" in label else "") for label, _, found in read}
    if len(units) != 1:
        return ""
    rows = [(label, text, *(float(found[k] or found[1]) for k in (1, 3, 4))) for label, text, found in read]
    ratio = units == {"×"}
    ends = [at for *_, value, low, high in rows for at in (value, low, high)]
    logarithmic = min(ends) > 0 and (ratio or max(ends) > MANY * min(ends))
    least, most = min([*ends, 1.0] if ratio else ends), max([*ends, 1.0] if ratio else ends)
    low, high = (least / 1.3, most * 1.1) if logarithmic else (min(0.0, least), most * 1.05 or 1.0)
    plot = Plot(440, ROW * len(rows) + 2, (low, high), (0, 1), logarithmic, left=LEFT)
    dots = logarithmic and not ratio
    origin = plot.x(1.0 if ratio else low if dots else 0.0)
    parts = []
    for k, (label, text, value, start, end) in enumerate(rows):
        y, x = ROW * k + 30, plot.x(value)
        parts.append(f'<text x="{LEFT}" y="{y - 14}">{escape(label)}</text>')
        parts.append(f'<text class="value" x="{plot.width - 12}" y="{y - 14}" text-anchor="end">{escape(text)}</text>')
        left, length = min(origin, x), max(abs(x - origin), 1.0)
        kind = _of(label)
        if dots:
            parts.append(f'<circle class="{kind} dot" cx="{x:.1f}" cy="{y}" r="5"/>')
        else:
            box = f'x="{left:.1f}" y="{y - BAR / 2}" width="{length:.1f}" height="{BAR}"'
            parts.append(f'<rect class="{kind} bar" {box}/>')
        if ratio:
            parts.append(f'<path class="rule" d="M{origin:.1f} {y - 10}V{y + 10}"/>')
        parts.append(f'<path class="interval" d="M{plot.x(start):.1f} {y}H{plot.x(end):.1f}"/>')
    said = f"{name}: " + "; ".join(f"{label} {text}" for label, text, *_ in rows)
    return f'<div class="drawing values">{plot.svg(said, parts)}</div>'


def _of(label: str) -> str:
    """The class of the first algorithm that a label names."""
    words = re.findall(r"\w+", label)
    return next((reference.look(word)[0] for word in words if word in palette.KNOWN), "family-none")


DRAWN: dict[str, Callable[[], str]] = {"race": race, "beside": beside}
"""What a page has where it says `<!-- drawn: NAME -->`."""


@dataclass(frozen=True)
class Plot:
    """A drawing with an axis to the right and one upwards."""

    width: int
    height: int
    across: tuple[float, float]
    upwards: tuple[float, float]
    logarithmic: bool = False
    left: int = 46

    @property
    def bottom(self) -> int:
        return self.height - 40

    def x(self, value: float) -> float:
        return self.left + (self.width - self.left - 12) * self._part(value, self.across)

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - 12) * self._part(value, self.upwards)

    def _part(self, value: float, between: tuple[float, float]) -> float:
        low, high, at = (*map(math.log, between), math.log(value)) if self.logarithmic else (*between, value)
        return (at - low) / (high - low)

    def path(self, points: Iterable[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)

    def axes(self, across: str, upwards: str, ticks_x: Sequence[float], ticks_y: Sequence[float]) -> str:
        parts = []
        for tick in ticks_y:
            y = self.y(tick)
            parts.append(f'<path class="grid" d="M{self.left} {y:.1f}H{self.width}"/>')
            parts.append(f'<text x="{self.left - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        for tick in ticks_x:
            parts.append(f'<text x="{self.x(tick):.1f}" y="{self.bottom + 18}" text-anchor="middle">{tick:g}</text>')
        middle = (self.left + self.width) / 2
        parts.append(f'<text x="{middle}" y="{self.height - 4}" text-anchor="middle">{escape(across)}</text>')
        y = self.bottom / 2
        parts.append(
            f'<text x="12" y="{y}" text-anchor="middle" transform="rotate(-90 12 {y})">{escape(upwards)}</text>'
        )
        return "".join(parts)

    def svg(self, said: str, parts: Iterable[str]) -> str:
        box = f"0 0 {self.width} {self.height}"
        return f'<svg viewBox="{box}" role="img" aria-label="{escape(said)}">{"".join(parts)}</svg>'
