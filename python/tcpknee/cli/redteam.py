"""`knee redteam`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcpknee import human, say

from . import completion
from .options import SEED_MAX, Whole, force_option, foreign, free, json_option, out_option, quiet_option

if TYPE_CHECKING:
    from tcpknee.redteam.request import Answer

_TAKEN = completion.of(completion.algorithms, files=True)


@click.command("redteam", short_help="Search for scenarios in which an algorithm does badly.")
@click.argument("algorithm", metavar="ALGO", shell_complete=_TAKEN)
@click.option(
    "--runs",
    type=Whole(1, 10_000_000),
    default=6000,
    show_default=True,
    help="Simulations of the search, which ends with the 64 scenarios that reach them.",
)
@click.option(
    "--budget",
    metavar="TIME",
    default="5min",
    show_default=True,
    help="Seven tenths of it are the search's, the rest is for checking what was found. What is not checked by then is "
    "counted, and not told.",
)
@click.option("--seed", type=Whole(0, SEED_MAX >> 1), default=1, show_default=True, help="Of all that is drawn.")
@click.option(
    "--against",
    metavar="ALGO",
    shell_complete=_TAKEN,
    help="What it is compared with.  [default: cubic; reno for cubic]",
)
@click.option("--workers", type=Whole(min=1), help="Scenarios at once; by default one per processor. Changes no find.")
@out_option("Folder for the finds: a scenario file of each, and finds.json.")
@force_option
@foreign
@json_option
@quiet_option
def command(
    algorithm: str,
    runs: int,
    budget: str,
    seed: int,
    against: str | None,
    workers: int | None,
    out: Path | None,
    json: bool,
    quiet: bool,
) -> int:
    """Search for scenarios in which an algorithm starves, harms others, loses more than it should, gets stuck, keeps a
    queue, sends again what was not lost, or collapses by one setting. Each is made small, run again with other seeds
    and with all its numbers changed a little, and told with its file, which --out writes. The thresholds are ours.

    Equal runs and seeds give equal finds, unless the time ends first. The exit code is 1 when there is a find, or
    the time was over before the first run.

    Example: knee redteam bbr1 --seed 7 --out finds
    """
    import textwrap

    from tcpknee import _core
    from tcpknee.redteam.request import answered
    from tcpknee.runs import engines
    from tcpknee.runs.progress import Line

    if out is not None:
        free(out)
    with Line(quiet=quiet, lines=True) as progress:
        answer = answered(
            algorithm,
            against=against,
            runs=runs,
            seconds=_core.duration_ns("--budget", budget) / 1e9,
            seed=seed,
            workers=workers or engines.default_workers("sim"),
            progress=progress,
        )
    if out is not None:
        _write(answer, out)
    if json:
        say.json(_document(answer))
    else:
        for name, words in answer.told:
            say.lines([name, *textwrap.wrap(words, 100, initial_indent="  ", subsequent_indent="  "), ""])
        say.line(_ending(answer, seed))
        if answer.told and out is None:
            say.line("--out DIR writes the files.")
    return 1 if answer.told or not answer.searched else 0


def _ending(answer: Answer, seed: int) -> str:
    count = human.counted(len(answer.told), "find")
    words = f"{count}, after {human.counted(answer.searched, 'run')} of the search and {answer.spent:,} to check them; "
    words += f"seed {seed}."
    if answer.over:
        left = f", with {human.counted(answer.unchecked, 'candidate')} not checked" if answer.unchecked else ""
        words += f" The time was over first{left}: a larger --budget may find more, and the same one less."
    return words


def _document(answer: Answer) -> dict[str, object]:
    return {
        "schema": 1,
        "algorithm": answer.sides.own,
        "against": answer.sides.other,
        "runs": answer.searched,
        "time_was_over": answer.over,
        "not_checked": answer.unchecked,
        "finds": answer.json(),
    }


def _write(answer: Answer, out: Path) -> None:
    from json import dumps

    from tcpknee import writing

    written = {**answer.sources, **answer.files, "finds.json": dumps(_document(answer), indent=2) + "\n"}
    for name, text in written.items():
        with writing.replacing(out / name, make=True) as file:
            file.write(text.encode())
