"""The report of a fleet, for the command line and for notebooks.

report = tcpknee.fleet_report("rec/edge1", "rec/edge2", by="algorithm", min_bytes="1MB")
report                      # verdicts and cohorts, in a notebook
report.cdf()                # a figure, each by its name
report.cdf().save("cdf.svg")
report.save("fleet.html")   # the page, which needs no network
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpknee.errors import UsageError
from tcpknee.fleet.cohorts import comparing

from . import export, fleet_page
from .cohorts import of_comparison
from .figure import Figure
from .figures import fleet

if TYPE_CHECKING:
    from tcpknee.fleet.cohorts import Comparison


def fleet_report(*data: Path | str, **options: Any) -> FleetReport:
    """Cohorts of DATA, compared and drawn. Takes what `tcpknee.fleet.compare` takes, and raises as it does."""
    return FleetReport(*data, **options)


class FleetReport:
    """`comparison` has the numbers; methods named as the figures draw them."""

    def __init__(self, *data: Path | str, **options: Any) -> None:
        with ExitStack() as opening:
            observed, comparison = opening.enter_context(comparing(*data, **options))
            self._found = of_comparison(observed, comparison)
            kept = opening.pop_all()
        self.comparison: Comparison = comparison
        self.close: Callable[[], None] = weakref.finalize(self, kept.close)
        """Gives back what the query took; nothing can be drawn after that."""

    @property
    def figures(self) -> dict[str, str]:
        """Name and title of each figure that can be drawn of this fleet."""
        return {figure.name: figure.title for figure in fleet.of(self._found)}

    def figure(self, name: str) -> Figure:
        """One figure by its name. Raises UsageError: there is none, or it lacks what it would show."""
        figure = export.find(name, fleet.FIGURES)
        export.check_applies(self._found, figure)
        return Figure(self._found, figure)

    def save(self, path: Path | str) -> Path:
        """Writes the page as HTML, or raises UsageError (its ending), RunFolderError (it cannot be written)."""
        path = Path(path)
        if path.suffix.lower() != ".html":
            raise UsageError(f"{path}: got the ending {path.suffix or 'of no kind'!r}; expected .html.")
        return fleet_page.write(self._found, path)

    def __getattr__(self, name: str) -> Callable[[], Figure]:
        known = {figure.name.replace("-", "_"): figure.name for figure in fleet.FIGURES}
        if name not in known:
            raise AttributeError(
                f"{type(self).__name__!r} has no attribute {name!r}; its figures are {', '.join(known)}"
            )
        return partial(self.figure, known[name])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(figure.name.replace("-", "_") for figure in fleet.FIGURES)]

    def _repr_html_(self) -> str:
        return fleet_page.notebook(self._found)

    def __repr__(self) -> str:
        return str(self.comparison)
