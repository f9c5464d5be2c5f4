"""`knee score`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcpknee import human, say

from .options import PATH, SEED_MAX, Whole, algorithms_argument, json_option, quiet_option

if TYPE_CHECKING:
    from tcpknee.runs.score import Scored


@click.command("score", short_help="Score algorithms of your own by a number, at a bounded cost.")
@algorithms_argument
@click.option("--suite", metavar="FILE", type=PATH, help="Scenario that paths are drawn from.  [default: a wide area]")
@click.option(
    "--seed", type=Whole(0, SEED_MAX >> 1), default=1, show_default=True, help="Of the paths, and of all chance."
)
@click.option("--paths", type=Whole(2, 10_000), default=64, show_default=True, help="Drawn paths, at most.")
@click.option("--cells", type=Whole(4, 10_000_000), default=1000, show_default=True, help="Simulations, at most.")
@click.option("--against", metavar="ALGO", default="cubic", show_default=True, help="What the score is 1 for.")
@json_option
@quiet_option
def command(
    algorithms: tuple[str, ...],
    suite: Path | None,
    seed: int,
    paths: int,
    cells: int,
    against: str,
    json: bool,
    quiet: bool,
) -> int:
    """Score algorithms, files of your own among them, by their power (goodput over RTT) beside cubic's on drawn paths.

    Who is behind the best for sure is dropped early. Who stays is judged again on paths that are held out, where what
    was tuned to the first ones shows. The exit code is 1 when all are dropped.

    Example: knee score ./a.c ./b.c bbr1 --seed 7
    """
    from tcpknee.runs import api, score
    from tcpknee.runs.progress import Line

    text, file = api.read_scenario(suite or score.SUITE)
    race = score.Race(algorithms, against, text, file, seed, paths, cells)
    with Line(quiet=quiet, lines=True) as progress:
        race.tell = progress
        found = race.run()
    if json:
        scores = [one.json() for one in found]
        say.json({"schema": 1, "seed": seed, "against": race.against, "cells": race.cells, "scores": scores})
    else:
        say.lines(_table(found, race.against))
        say.line(f"{human.counted(race.cells, 'simulation')}, seed {seed}. {_of_intervals(found)}")
        say.lines(
            f"{one.name}: {human.counted(one.left_out, 'path')} left out, where it and {race.against} deliver nothing."
            for one in found
            if one.left_out
        )
    return 1 if all(one.dropped for one in found) else 0


def _of_intervals(found: Sequence[Scored]) -> str:
    from tcpknee.evidence.stats import LEAST_TO_LOOK

    if any(each and each.low is not None for one in found for each in (one.score, one.unseen)):
        return "Intervals hold at 95 % whenever one looks."
    return f"There are no intervals of fewer than {LEAST_TO_LOOK} paths."


def _table(found: Sequence[Scored], against: str) -> list[str]:
    from tcpknee.evidence import written

    rows = [["algorithm", f"power, of {against}'s", "", "held out", "", "paths", ""]]
    for one in found:
        cells = [written.ratio(each) if each else ("-", "") for each in (one.score, one.unseen)]
        rows.append([one.name, *cells[0], *cells[1], f"{one.paths:,}", one.dropped and f"dropped: {one.dropped}"])
    return say.aligned(rows, left=[True, False, True, False, True, False, True], room=say.room())
