"""A figure with its data, for notebooks and scripts: it shows itself, is saved for a paper, and gives its data away."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpknee.arguments import COUNT, checked
from tcpknee.shapes import TEXT

from . import export, theme
from .figures import OF_DATASETS, of
from .observed import opened
from .run import ReportRun

if TYPE_CHECKING:
    import pyarrow as pa

    from .cohorts import Cohorts
    from .observed import Observed


class Figure:
    """A figure of a run, of a recording or of a fleet. Notebooks show it without a network."""

    def __init__(self, found: ReportRun | Observed | Cohorts, figure: Any, condition: int = 0) -> None:
        self._found, self._figure, self._condition = found, figure, condition

    def save(self, path: Path | str, *, width: str | None = None, font: str | None = None, grey: bool = False) -> Path:
        """Writes it as PDF, PNG or SVG, by the ending; `width`, `font` and `grey` as `tcpknee.pages.save` takes them.
        Raises UsageError, RunFolderError (it cannot be written)."""
        return export.save_figure(self._spec, Path(path), export.Paper(width, font, grey))

    def altair(self) -> Any:
        """An `altair.Chart`, to go on from."""
        import altair as alt

        return alt.Chart.from_dict(self._spec())

    def data(self) -> dict[str, pa.Table]:
        """What it draws, a table by the name of each set of marks: for matplotlib, or whatever else draws."""
        import pyarrow as pa

        sets: dict[str, list[dict[str, Any]]] = {}
        _gather(self._spec(), sets)
        # Altair names by a digest what has no name.
        unnamed = [name for name in sets if name.startswith("data-")]
        called = {name: f"values_{number}" for number, name in enumerate(unnamed, 1)}
        return {called.get(name, name): pa.Table.from_pylist(rows) for name, rows in sets.items() if rows}

    def _spec(self, layout: theme.Layout = theme.WIDE) -> dict[str, Any]:
        return export.spec(self._found, self._figure, condition=self._condition, layout=layout)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """A picture for every notebook, and what JupyterLab draws by itself."""
        import altair as alt

        spec = self._spec()
        version = alt.SCHEMA_VERSION.lstrip("v").split(".")[0]
        return {
            "image/svg+xml": export.svg(lambda _: spec),
            f"application/vnd.vegalite.v{version}+json": spec,
            "text/plain": repr(self),
        }

    def __repr__(self) -> str:
        return f"<tcpknee figure: {self._figure.title}>"


@checked(name=TEXT, condition=COUNT)
def figure(run: Any, name: str, *, condition: int = 0) -> Figure:
    """A figure of a run, or of the folder of one, of a recording, an import or a trace, by its name as `knee report
    --figure` takes it. It shows itself in notebooks, `save("a.pdf", width="3.4in")` writes it for a paper, and `data()`
    has what it draws. `condition` picks the setting of the matrix that a figure over time shows. Raises UsageError:
    there is none, or it does not apply."""
    chosen, found = export.find(name), opened(run)
    export.check_applies(found, chosen, condition)
    return Figure(found, chosen, condition)


def figures(run: Any) -> dict[str, str]:
    """Name and title of each figure that applies to it."""
    found = opened(run)
    known = of(found) if isinstance(found, ReportRun) else [one for one in OF_DATASETS if one.applies(found)]
    return {one.name: one.title for one in known}


def _gather(spec: Any, sets: dict[str, list[dict[str, Any]]]) -> None:
    """The rows that stand in a specification, as named sets or with the marks that draw them."""
    if isinstance(spec, list):
        for value in spec:
            _gather(value, sets)
    elif isinstance(spec, dict):
        sets.update(spec.get("datasets", {}))
        given = spec.get("data")
        if isinstance(given, dict) and isinstance(given.get("values"), list):
            sets[given.get("name", f"data-{len(sets)}")] = given["values"]
        for name, value in spec.items():
            if name not in ("data", "datasets"):
                _gather(value, sets)
