"""`knee conform`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcpknee import say
from tcpknee.errors import RunFolderError, UsageError
from tcpknee.say import aligned

from .options import PATH, Whole, foreign, json_option, out_option, quiet_option

if TYPE_CHECKING:
    from tcpknee.validation.conformance.conform import Compared


@click.command("conform", short_help="Show how far the simulator and this kernel are apart.")
@out_option("Folder for the runs and the figure; by default the next free runs/conform-N.")
@click.option("--quick", is_flag=True, help="Six short cells instead of the whole matrix.")
@click.option("--resume", is_flag=True, help="Go on with the runs in --out.")
@click.option("--against", metavar="FILE.csv", type=PATH, help="Compare the simulator with results of such a file.")
@click.option(
    "--only", metavar="NAME[,NAME...]", multiple=True, help="Of the file, these suites, groups or algorithms."
)
@click.option("--workers", type=Whole(min=1), help="At once: labs, by default one; simulations, one per processor.")
@foreign
@json_option
@quiet_option
def command(
    out: Path | None,
    quick: bool,
    resume: bool,
    against: Path | None,
    only: tuple[str, ...],
    workers: int | None,
    json: bool,
    quiet: bool,
) -> int:
    """Run a matrix of scenarios on both engines and compare them: goodput, round-trip time, retransmissions, shares.

    The whole matrix takes about half an hour of real time. With --against nothing runs in real time: the simulator is
    compared with what a file says, reference/linux-6.12.csv or your own. Exit code 1: something is outside its
    tolerance.

    Example: knee conform --quick
    """
    if against is None:
        if only:
            raise UsageError("knee conform --only: expected --against FILE.csv beside it.")
        return _beside_this_kernel(out, quick=quick, resume=resume, workers=workers, json=json, quiet=quiet)
    if out or quick or resume:
        raise UsageError(
            "knee conform --against: got --out, --quick or --resume too; nothing is kept, so leave them out."
        )
    from .conform_against import compare

    names = [name for text in only for name in text.split(",")]
    return compare(against, only=names, workers=workers, json=json, quiet=quiet)


def _beside_this_kernel(
    out: Path | None, *, quick: bool, resume: bool, workers: int | None, json: bool, quiet: bool
) -> int:
    """Exit code 1 when something is outside its tolerance."""
    from tcpknee.runs import progress
    from tcpknee.runs.folder import next_free
    from tcpknee.runs.output import SCHEMA
    from tcpknee.validation.conformance import conform, overlay
    from tcpknee.validation.conformance.text import verdict_line

    from . import running

    if resume and out is None:
        raise running.no_folder("conform", "conform")
    folder, names = out or next_free(running.RUNS, "conform"), conform.suites(quick=quick)
    if not resume and folder.is_dir() and any(folder.iterdir()):
        raise RunFolderError(
            f"{folder}: is not empty; expected a new folder. Finish what is in it with --resume, or choose another "
            "--out."
        )
    pairs = conform.run(
        names,
        folder,
        resume=resume,
        workers=workers,
        say=(lambda text: None) if quiet else say.warn,
        watch=lambda: progress.watcher(quiet=quiet),
    )
    compared = conform.compare(pairs)
    judged = conform.verdicts(compared)
    with progress.Phase("Drawing the overlay", quiet=quiet):
        figures = overlay.write(pairs, folder)
    doubts = [f"{pair.suite}: {doubt.line}" for pair in pairs for doubt in pair.kernel.doubts]
    if json:
        found = {
            "schema": SCHEMA,
            "compared": [asdict(entry) for entry in compared],
            "verdicts": [{**asdict(verdict), "ok": verdict.ok} for verdict in judged],
            "warnings": doubts,
            "folder": str(folder),
        }
        say.json(found)
    else:
        say.lines(_table(compared))
        say.lines(["", "Over all cells"])
        say.lines(verdict_line(verdict) for verdict in judged)
        say.lines(f"* {doubt}" for doubt in doubts)
        say.lines(["", f"Overlay: {', '.join(str(figure) for figure in figures)}", f"Runs: {folder}"])
    return 0 if all(verdict.ok for verdict in judged) else 1


def _table(compared: list[Compared]) -> list[str]:
    from tcpknee.validation.conformance.text import value

    rows = [["scenario", "cell", "metric", "sim", "kernel", "difference", "tolerance", ""]]
    for entry in compared:
        word = "ok" if entry.ok else "OUTSIDE"
        unit = f" {entry.unit}" if entry.unit else ""
        rows.append(
            [
                entry.suite,
                entry.label or str(entry.cell),
                entry.metric,
                value(entry.metric, entry.sim),
                value(entry.metric, entry.kernel),
                "-" if entry.difference is None else f"{entry.difference:+.2f}{unit}",
                entry.tolerance,
                word,
            ]
        )
    return aligned(rows, left=(True, True, True, False, False, False, True, True))
