"""`knee whatif`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcpknee import say
from tcpknee.errors import UsageError

from . import completion
from .options import SEED_MAX, Whole, force_option, foreign, free, json_option, out_option, quiet_option

if TYPE_CHECKING:
    from tcpknee.whatif.request import Answer


@click.command("whatif", short_help="Predict what another algorithm would do on recorded paths.")
@click.argument("data", metavar="DATA...", nargs=-1, required=True)
@click.option(
    "--algorithms",
    metavar="NAMES",
    required=True,
    shell_complete=completion.of(completion.algorithms, lists=True),
    help="To predict: names, or files in C, with commas between.",
)
@click.option("--adoption", metavar="PCTS", default="1,10,50,100", show_default=True, help="Shares of connections.")
@click.option("--paths", type=Whole(min=1), default=200, show_default=True, help="At most so many paths, at random.")
@click.option("--seed", type=Whole(0, SEED_MAX), default=1, show_default=True, help="Of every draw.")
@click.option("--baseline", default="cubic", show_default=True, help="What runs now; for populations, not recordings.")
@click.option("--all", "whole", is_flag=True, help="Print every metric and adoption, and all that is not identified.")
@click.option("--workers", type=Whole(min=1), help="Paths at once; by default one per processor.")
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Fit and simulate on the workers of the Dask scheduler at tls://HOST:PORT.",
)
@out_option("Folder for paths.csv, which a scenario's [[sample]] reads, and whatif.json.")
@force_option
@foreign
@json_option
@quiet_option
def command(
    data: tuple[str, ...],
    algorithms: str,
    adoption: str,
    paths: int,
    seed: int,
    baseline: str,
    whole: bool,
    workers: int | None,
    cluster: str | None,
    out: Path | None,
    json: bool,
    quiet: bool,
) -> int:
    """Predict what another algorithm would do on the paths of recorded connections: knee whatif rec --algorithms bbr1

    DATA is what `knee record` or `knee run` wrote, `pantheon` for Pantheon's six calibrated paths, or a folder with
    profiles of iBox. The paths are fitted by simulation; what the recording cannot identify is said, and the intervals
    hold it. Where less than half of the paths can be fitted, nothing is predicted: exit code 2.
    """
    from tcpknee.runs import engines
    from tcpknee.runs.progress import Line
    from tcpknee.whatif.request import Question, answered

    if cluster and workers:
        raise UsageError(
            "knee whatif: got --workers and --cluster; expected one of them: a cluster has its own workers."
        )
    if out is not None:
        free(*(out / name for name in _FILES))
    question = Question(
        data=data,
        algorithms=tuple(filter(None, algorithms.split(","))),
        adoption_pcts=_pcts(adoption),
        most_paths=paths,
        seed=seed,
        baseline=baseline,
        workers=workers or engines.default_workers("sim"),
        cluster=cluster,
    )
    with Line(quiet=quiet, lines=True) as progress:
        answer = answered(question, progress=progress)
    if out is not None:
        _write(answer, out)
    if json:
        say.json(answer.json)
    else:
        say.lines(answer.lines if whole else answer.summary)
    return 0


_FILES = ("paths.csv", "whatif.json")
"""What stands in --out."""


def _write(answer: Answer, out: Path) -> None:
    from json import dumps

    from tcpknee import writing

    for name, text in zip(_FILES, (answer.paths_csv, dumps(answer.json, indent=2) + "\n"), strict=True):
        with writing.replacing(out / name, make=True) as file:
            file.write(text.encode())


def _pcts(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 < value <= 100 for value in found):
        raise UsageError(f'adoption: got "{text}"; expected percentages above 0 and up to 100, such as 1,10,50,100.')
    return found
