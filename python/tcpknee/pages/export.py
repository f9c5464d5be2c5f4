"""One figure by itself: as an Altair chart, PNG or SVG."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tcpknee.errors import UsageError
from tcpknee.writing import replacing

from . import theme
from .cohorts import Cohorts
from .figures import FIGURES, OF_DATASETS
from .observed import Observed, opened
from .run import ReportRun

KINDS = {ReportRun: "this run", Cohorts: "this fleet"}
PNG_PIXELS_PER_POINT = 2.0


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
    if isinstance(run, Observed) and figure not in OF_DATASETS:
        named = ", ".join(one.name for one in OF_DATASETS)
        raise UsageError(
            f'figure: "{figure.name}" is of runs, and {run.dataset.path} is a {run.dataset.kind}; expected {named}.'
        )
    check_applies(run, figure)
    found = written(lambda: figure.chart(run, layout))
    found["config"] = theme.config(layout=layout)
    if condition and not hasattr(figure, "data"):
        raise UsageError(
            f'condition: got {condition} for the figure "{figure.name}", which shows every condition; expected no '
            "--condition beside it."
        )
    if data and hasattr(figure, "data"):
        if not 0 <= condition < len(run.conditions):
            last = len(run.conditions) - 1
            named = ", ".join(f"{found.index} is {found.label}" for found in run.conditions[:12])
            more = f", and {last - 11} more" if last > 11 else ""
            raise UsageError(f"condition: got {condition}; expected 0 to {last}: {named}{more}.")
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


def check_applies(run: ReportRun | Observed | Cohorts, figure: Any) -> None:
    """Raises UsageError: the figure has nothing to show of it."""
    if not figure.applies(run):
        what = f"this {run.dataset.kind}" if isinstance(run, Observed) else KINDS[type(run)]
        needs = getattr(figure, "needs", "data it has not")
        raise UsageError(f'figure: "{figure.name}" does not apply to {what}: {figure.title} needs {needs}.')


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


def save(run: Any, name: str, path: Path, *, condition: int = 0) -> Path:
    figure = find(name)
    return save_spec(spec(opened(run), figure, condition=condition), path)


def save_spec(found: dict[str, Any], path: Path) -> Path:
    """Writes a specification with its data as PNG or SVG, by the ending of `path`. Raises UsageError: it is neither."""
    import vl_convert

    ending = path.suffix.lower()
    if ending not in (".svg", ".png"):
        raise UsageError(f"{path}: got the ending {ending or 'of no kind'!r}; expected .svg or .png.")
    if ending == ".svg":
        content = vl_convert.vegalite_to_svg(found).encode("utf-8")
    else:
        content = vl_convert.vegalite_to_png(found, scale=PNG_PIXELS_PER_POINT)
    write_file(path, content)
    return path


def write_file(path: Path, content: bytes) -> None:
    """A reader never sees half a file."""
    with replacing(path, make=True) as file:
        file.write(content)
