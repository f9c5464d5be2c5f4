"""`knee diff`."""

from __future__ import annotations

from pathlib import Path

import click

from tcpknee import say

from .options import PATH, force_option, foreign, free, json_option, quiet_option


@click.command("diff", short_help="Compare two runs: before and after, two kernels, two engines.")
@click.argument("before", metavar="RUN", type=PATH)
@click.argument("after", metavar="RUN", type=PATH)
@click.option(
    "--varying",
    metavar="KEYS",
    default="",
    callback=lambda context, option, given: tuple(filter(None, given.split(","))),
    help="Keys in which the scenarios may differ, with commas between: what is compared then.",
)
@click.option("--all", "everything", is_flag=True, help="Print also what shows no difference.")
@click.option("--report", is_flag=True, help="Write a page with the figures of both laid over each other.")
@click.option("--out", metavar="FILE", type=PATH, help="Of --report; by default diff.html in the second RUN.")
@force_option
@foreign
@json_option
@quiet_option
def command(
    before: Path,
    after: Path,
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
    """
    if out is not None and not report:
        raise click.UsageError("--out: got it without --report; expected both. Text goes to stdout.")
    if out is not None:
        free(out)
    from tcpknee.runs import differences, differences_text
    from tcpknee.runs.progress import Phase

    with Phase("Comparing the runs", quiet=quiet):
        found = differences.diff(before, after, varying)
        lines = [] if json else differences_text.lines(found, everything=everything)
    if json:
        say.json(found.json(), allow_nan=False)
    say.lines(lines)
    if report:
        from tcpknee import pages

        target = out or after / "diff.html"
        with Phase("Writing the report", quiet=quiet):
            pages.write(found, target)
        (say.warn if json else say.line)(f"Report: {target}")
    return 0
