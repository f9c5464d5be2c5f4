"""One figure by itself: as an Altair chart, PDF, PNG or SVG, as wide as a column of a paper where that is asked for."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tcpknee.errors import UsageError
from tcpknee.say import printable
from tcpknee.writing import replacing

from . import palette, theme
from .cohorts import Cohorts
from .figures import FIGURES, OF_DATASETS
from .observed import Observed, opened
from .run import ReportRun

KINDS = {ReportRun: "this run", Cohorts: "this fleet"}
PNG_PIXELS_PER_INCH = 144.0
#: Of a picture for paper, as journals ask for.
PAPER_PIXELS_PER_INCH = 600.0


EVERY = tuple(dict.fromkeys((*FIGURES, *OF_DATASETS)))


def find(name: str, among: Sequence[Any] = EVERY) -> Any:
    known = {figure.name: figure for figure in among}
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f' Did you mean "{close[0]}"?' if close else ""
        raise UsageError(f'figure: got "{name}"; expected one of {", ".join(known)}.{hint}')
    return known[name]


def spec(
    run: ReportRun | Observed | Cohorts,
    figure: Any,
    *,
    condition: int = 0,
    data: bool = True,
    layout: theme.Layout = theme.WIDE,
) -> dict[str, Any]:
    """The figure's Vega-Lite specification; `data=False` leaves named data sets to the page."""
    check_applies(run, figure, condition)
    found = written(lambda: figure.chart(run, layout))
    found["config"] = theme.config(layout=layout)
    if data and hasattr(figure, "data"):
        sets = figure.data(run, run.conditions[condition])
        if isinstance(run, ReportRun) and figure.name == "timeseries" and run.series.as_bands:
            # Single flows are for the page's reader to call up; paper shows the bands.
            sets = {name: blocks for name, blocks in sets.items() if name.startswith("bands_") or name == "lines_queue"}
        rows = {name: [row for block in blocks for row in block.rows()] for name, blocks in sets.items()}
        found["datasets"] = {**empty_sets(found), **found.get("datasets", {}), **rows}
    return found


def written(draw: Callable[[], Any]) -> dict[str, Any]:
    """What Altair makes of the chart that `draw` returns."""
    from altair.utils.schemapi import debug_mode

    # Altair would check every value against its schema, which takes most of a report's time: tests do that.
    with debug_mode(False), warnings.catch_warnings():
        # Panels share one time axis on purpose.
        warnings.filterwarnings("ignore", message="Automatically deduplicated selection parameter")
        found: dict[str, Any] = draw().to_dict(validate=False)
    return found


def check_applies(run: ReportRun | Observed | Cohorts, figure: Any, condition: int = 0) -> None:
    """Raises UsageError: the figure has nothing to show of it, no conditions to choose from, or not that one."""
    if isinstance(run, Observed) and figure not in OF_DATASETS:
        named = ", ".join(one.name for one in OF_DATASETS)
        raise UsageError(
            f'figure: "{figure.name}" is of runs, and {run.dataset.path} is a {run.dataset.kind}; expected {named}.'
        )
    if not figure.applies(run):
        what = f"this {run.dataset.kind}" if isinstance(run, Observed) else KINDS[type(run)]
        needs = getattr(figure, "needs", "data it has not")
        raise UsageError(f'figure: "{figure.name}" does not apply to {what}: {figure.title} needs {needs}.')
    if condition and not hasattr(figure, "data"):
        raise UsageError(
            f'condition: got {condition} for the figure "{figure.name}", which shows every condition; expected no '
            "--condition beside it."
        )
    if condition and not 0 <= condition < len(run.conditions):
        last = len(run.conditions) - 1
        named = ", ".join(f"{found.index} is {found.label}" for found in run.conditions[:12])
        more = f", and {last - 11} more" if last > 11 else ""
        raise UsageError(f"condition: got {condition}; expected 0 to {last}: {named}{more}.")


def empty_sets(found: Any) -> dict[str, list[Any]]:
    """An empty data set for every name that the specification mentions."""
    sets: dict[str, list[Any]] = {}
    if isinstance(found, dict):
        name = found["data"].get("name") if isinstance(found.get("data"), dict) else None
        if name:
            sets[name] = []
        for value in found.values():
            sets |= empty_sets(value)
    elif isinstance(found, list):
        for value in found:
            sets |= empty_sets(value)
    return sets


def chart(run: Any, name: str, *, condition: int = 0) -> Any:
    import altair as alt

    return alt.Chart.from_dict(spec(opened(run), find(name), condition=condition))


@dataclass(frozen=True)
class Paper:
    """How a figure stands on paper: `width`, as "3.4in" or "86mm", with axes and all; `font`, by its family's name.
    `grey`: every colour is a grey, and algorithms are told apart by how dark they are together with dashes and
    shapes. What is left out is as on a page."""

    width: str | None = None
    font: str | None = None
    grey: bool = False

    @property
    def points(self) -> float | None:
        """The width in points, of which an inch has 72. Raises UsageError."""
        if self.width is None:
            return None
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(in|cm|mm|pt)", self.width)
        points = float(found[1]) * POINTS[found[2]] if found else 0.0
        if not LEAST_POINTS <= points <= MOST_POINTS:
            raise UsageError(
                f'width: got "{printable(self.width)}"; expected 1in to 20in, as "3.4in", "86mm" or "245pt".'
            )
        return points


PAGE = Paper()
POINTS = {"in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4, "pt": 1.0}
LEAST_POINTS, MOST_POINTS = 72.0, 1440.0

_DRAWN_PER_POINT = 1.5
"""Pixels of the drawing to a point on paper: letters of 12 pixels are of 8 points there, as in captions."""

_REFERRED = re.compile(r'(?<=\bid=")clip\d+(?=")|(?<=url\(#)clip\d+(?=\))')
"""Names of shapes that others are cut to, in a picture of Vega's."""

_OWN_LETTERS = 8

_RESOURCES = re.compile(rb"(?<= <<\n)(?: +/\w+ \d+ 0 R\n)+")
"""Entries of a dictionary of a PDF page, each on a line: in whatever order they came."""

_SIZE = re.compile(
    r'<svg [^>]*?\bwidth="([0-9.]+)"[^>]*?\bheight="([0-9.]+)"|<svg [^>]*?\bheight="([0-9.]+)"[^>]*?\bwidth="([0-9.]+)"'
)


def save(run: Any, name: str, path: Path, *, condition: int = 0, paper: Paper = PAGE) -> Path:
    figure, shown = find(name), opened(run)
    return save_figure(lambda layout: spec(shown, figure, condition=condition, layout=layout), path, paper)


def save_figure(draw: Callable[[theme.Layout], dict[str, Any]], path: Path, paper: Paper = PAGE) -> Path:
    """Writes what `draw` makes of a layout as PDF, PNG or SVG, by the ending of `path`. Raises UsageError."""
    import vl_convert

    ending = path.suffix.lower()
    if ending not in (".pdf", ".svg", ".png"):
        raise UsageError(f"{path}: got the ending {ending or 'of no kind'!r}; expected .pdf, .svg or .png.")
    if ending == ".svg":
        content = svg(draw, paper).encode("utf-8")
    elif ending == ".pdf":
        # A pixel becomes a point.
        content = _RESOURCES.sub(_in_order, vl_convert.svg_to_pdf(svg(draw, paper, unit="px")))
    else:
        # A pixel becomes a point here, too, and the file says how many dots an inch has.
        dots = PNG_PIXELS_PER_INCH if paper.width is None else PAPER_PIXELS_PER_INCH
        content = vl_convert.svg_to_png(svg(draw, paper, unit="px"), ppi=dots)
    write_file(path, content)
    return path


def svg(draw: Callable[[theme.Layout], dict[str, Any]], paper: Paper = PAGE, *, unit: str = "pt") -> str:
    """The picture as SVG, exactly as wide as the paper wants it; `unit`: what a point of that is called."""
    import vl_convert

    font = None if paper.font is None else _family(paper.font)

    def drawn(layout: theme.Layout) -> str:
        found = draw(layout)
        if font is not None:
            found["config"]["font"] = font
        return _named(str(vl_convert.vegalite_to_svg(found)))

    points = paper.points
    if points is None:
        return _toned(drawn(theme.WIDE), paper)
    wanted = points * _DRAWN_PER_POINT
    layout = theme.WIDE if wanted >= theme.WIDE.least else theme.NARROW
    room = float(theme.AXIS_ROOM)
    # What stands beside the drawing is known when it was drawn, and changes a little with its width.
    for _ in range(3):
        width = max(round(wanted - room), 60)
        picture = drawn(replace(layout, width=width, least=min(layout.least, width)))
        across, down = _size(picture)
        room += across - wanted
        if abs(across - wanted) <= 1:
            break
    scale = points / across
    head, rest = _toned(picture, paper).split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    return f'{head} width="{points:g}{unit}" height="{down * scale:.2f}{unit}">{rest}'


def _named(picture: str) -> str:
    """The same picture with names of its own for what it refers to. Vega numbers these through a process: the same
    figure would be other bytes each time. In one page of a notebook, no two pictures may share a name."""
    names = {name: str(place) for place, name in enumerate(dict.fromkeys(_REFERRED.findall(picture)))}
    plain = _REFERRED.sub(lambda found: names[found[0]], picture)
    own = hashlib.sha256(plain.encode()).hexdigest()[:_OWN_LETTERS]
    return _REFERRED.sub(lambda found: f"clip-{own}-{names[found[0]]}", picture)


def _in_order(resources: re.Match[bytes]) -> bytes:
    return b"".join(sorted(resources[0].splitlines(keepends=True)))


def _family(font: str) -> str:
    """An installed family as its font writes it, small letters and capitals too. Raises UsageError."""
    if _is_installed(font):
        return font
    known = {family.casefold(): family for family in _families()}
    near = [known[name] for name in get_close_matches(font.casefold(), known)]
    close = next((family for family in near if _is_installed(family)), None)
    if close is not None and close.casefold() == font.casefold():
        return close
    hint = f' Did you mean "{printable(close)}"?' if close else ""
    raise UsageError(
        f'font: got "{printable(font)}", which is not installed here; expected the family of a font that is: '
        f"`fc-list : family` lists them.{hint}"
    )


def _families() -> list[str]:
    """Those that fontconfig knows; none where it is not installed."""
    if shutil.which("fc-list") is None:
        return []
    done = subprocess.run(["fc-list", ":", "family"], capture_output=True, text=True, errors="replace", check=False)
    return [family for line in done.stdout.splitlines() for family in line.split(",")]


def _is_installed(font: str) -> bool:
    """Without its font a picture would have no letters: asks what draws them for one."""
    from xml.sax.saxutils import quoteattr

    import vl_convert

    letter = f'<text y="9" font-family={quoteattr(font)}>A</text>'
    probe = vl_convert.svg_to_pdf(f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{letter}</svg>')
    return b"/Font" in probe


def _toned(picture: str, paper: Paper) -> str:
    if not paper.grey:
        return picture
    return re.sub(r"#[0-9A-Fa-f]{6}\b", lambda ink: palette.grey(ink[0]), picture)


def _size(picture: str) -> tuple[float, float]:
    found = _SIZE.search(picture)
    assert found, "the picture says how large it is"
    return float(found[1] or found[4]), float(found[2] or found[3])


def write_file(path: Path, content: bytes) -> None:
    """A reader never sees half a file."""
    with replacing(path, make=True) as file:
        file.write(content)
