"""`knee diff`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcpknee import human, provenance, say
from tcpknee.errors import UsageError

from . import completion
from .named import of_kernels
from .options import (
    PATH,
    Whole,
    force_option,
    foreign,
    foreign_files,
    free,
    is_given,
    json_option,
    name_list,
    quiet_option,
)

if TYPE_CHECKING:
    from tcpknee.runs.differences import Diff
    from tcpknee.runs.results import Run


@click.command("diff", short_help="Compare two runs: before and after, two kernels, two engines.")
@click.argument("runs", metavar="RUN RUN|SCENARIO", nargs=-1, required=True, type=PATH)
@click.option(
    "--kernel",
    metavar="A,B",
    shell_complete=completion.of(completion.kernels_and_releases, lists=True),
    default="",
    callback=name_list,
    help="Run SCENARIO with each of two kernels and compare: releases, names of `knee kernel list`, or trees such as "
    "~/linux@HEAD~1, which are built.",
)
@click.option(
    "--engine",
    type=click.Choice(("sim", "guest")),
    default="sim",
    show_default=True,
    help="With --kernel: the simulator by the rules of each release, or the kernels themselves.",
)
@click.option("--workers", type=Whole(min=1), help="With --kernel: repetitions at once.")
@click.option(
    "--varying",
    metavar="KEYS",
    default="",
    callback=name_list,
    help="Keys in which the scenarios may differ, with commas between: what is compared then.",
)
@click.option("--all", "everything", is_flag=True, help="Print also what shows no difference.")
@click.option("--report", is_flag=True, help="Write a page with the figures of both laid over each other.")
@click.option("--out", metavar="FILE", type=PATH, help="Of --report; by default diff.html in the second RUN.")
@force_option
@foreign
@json_option
@quiet_option
@foreign_files
def command(
    runs: tuple[Path, ...],
    kernel: tuple[str, ...],
    engine: str,
    workers: int | None,
    varying: tuple[str, ...],
    everything: bool,
    report: bool,
    out: Path | None,
    json: bool,
    quiet: bool,
) -> int:
    """Compare two runs of one scenario: before and after a patch, on two kernels, by two engines or versions.

    Cells are compared with those that have the same values of the axes, repetitions with those of the same seed where
    one engine ran both. Differences are no failure: the exit code is 0.

    \b
      knee run path.toml --engine kernel --out before
      knee run path.toml --engine kernel --out after      # with the patch
      knee diff before after --report
      knee diff --kernel 4.15,5.3 path.toml               # simulated; which rule makes the difference?
      knee diff --kernel ~/linux@HEAD~1,~/linux@HEAD --engine guest path.toml
    """
    asked = 1 if kernel else 2
    if len(runs) != asked or len(kernel) not in (0, 2):
        raise click.UsageError(
            f"got {human.counted(len(runs), 'path')} and {human.counted(len(kernel), 'kernel')}; expected two run "
            "folders, or a scenario and two kernels: --kernel 4.15,5.3 path.toml."
        )
    for name in ("engine", "workers"):
        if is_given(name) and not kernel:
            raise click.UsageError(
                f"--{name}: got it without --kernel; expected both. Two run folders are compared as they are."
            )
    if out is not None and not report:
        raise click.UsageError("--out: got it without --report; expected both. Text goes to stdout.")
    if out is not None:
        free(out)
    from tcpknee.runs import differences, differences_text
    from tcpknee.runs.progress import Phase

    before: Run | Path = runs[0]
    after: Run | Path = runs[-1]
    names = None
    if kernel:
        names = called(kernel)
        (before, after), varying = _run(runs[0], kernel, engine, workers, quiet), ("kernel", *varying)
    with Phase("Comparing the runs", quiet=quiet):
        found = differences.diff(before, after, varying, names)
        lines = [] if json else differences_text.lines(found, everything=everything)
    if json:
        say.json(found.json(), allow_nan=False)
    say.lines(lines)
    if kernel and engine == "sim":
        _tell_rules(found, workers, quiet, json)
    if report:
        from tcpknee import pages

        target = out or Path(found.b.folder or ".") / "diff.html"
        with Phase("Writing the report", quiet=quiet):
            pages.write(found, target)
        (say.warn if json else say.line)(f"Report: {target}")
    return 0


def _run(file: Path, kernels: tuple[str, ...], engine: str, workers: int | None, quiet: bool) -> list[Run]:
    """The scenario with each of the kernels, in folders of their own."""
    from tcpknee.kernels import building
    from tcpknee.runs import api, progress
    from tcpknee.runs.folder import fresh

    from . import running

    names = kernels
    if engine == "guest":
        names = tuple(
            building.name_of(one, lambda title: progress.Phase(title, quiet=quiet, lines=True)) for one in kernels
        )
    if names[0] == names[1]:
        raise UsageError(f'--kernel: got "{names[0]}" twice; expected two kernels.')
    text, called = api.read_scenario(file)
    alone = engine == "guest"
    texts = {name: api.with_kernels(text, called, name, in_guests_alone=alone) for name in names}
    for of_kernel in texts.values():
        with of_kernels(names):
            api.parse(of_kernel, called, in_guests_alone=alone)
    runs = []
    for name, of_kernel in texts.items():
        again = ["knee", "run", str(file), "--engine", engine, "--kernel", name]
        with fresh(running.RUNS, f"{file.stem}-{name}") as out, running.interruptible(out, command=again):
            runs.append(
                api.run_text(
                    of_kernel,
                    called,
                    out=out,
                    engine=engine,
                    workers=workers,
                    watcher=progress.watcher(quiet=quiet),
                    command=provenance.command_line(*again),
                )
            )
    return runs


def called(kernels: Sequence[str]) -> tuple[str, str]:
    """The runs by what the user called their kernels: without the folders that a tree is in, where that tells them
    apart."""
    short = [f"Linux {one}" if re.fullmatch(r"[0-9.]+", one) else one.rpartition("/")[2] for one in kernels]
    before, after = short if short[0] != short[1] else kernels
    return before, after


def _tell_rules(found: Diff, workers: int | None, quiet: bool, json: bool) -> None:
    """Which rules made the difference."""
    from tcpknee.runs import progress, rules

    before, after = (str(run.meta["cells"][0]["kernel"]) for run in (found.a, found.b))
    alone = rules.alone(found.a, after, lambda: progress.watcher(quiet=True), workers)
    with progress.Phase("Switching the rules one at a time", quiet=quiet):
        lines = list(rules.lines(alone, before, after))
    for line in ["", *lines]:
        (say.warn if json else say.line)(line)
