"""`knee report`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from tcpknee import say
from tcpknee.errors import UsageError

from .options import PATH, Whole, figure_options, force_option, foreign, free, quiet_option


@click.command("report", short_help="Write the report of a folder of tables, or one figure.")
@click.argument("run", metavar="DIR|SNAPSHOT", type=PATH)
@click.option(
    "--against",
    metavar="DIR",
    type=PATH,
    help="Of a profile, imported stacks, a trace, a capture or a recording: lay this other one beside it or over it. "
    "Two runs: knee diff --report.",
)
@click.option("--function", metavar="NAME", help="Of a profile or imported stacks: who calls this function.")
@click.option(
    "--out",
    metavar="FILE",
    type=PATH,
    help="By default DIR/report.html, of a trace, a profile or snapshots trace.html, profile.html or hosts.html; of a "
    "snapshot SNAPSHOT.html; of a figure DIR/FIGURE.FORMAT.",
)
@figure_options
@click.option(
    "--condition",
    metavar="N",
    type=Whole(min=0),
    help="Point of the matrix that --figure shows, from 0, where it shows one.",
)
@force_option
@foreign
@quiet_option
def command(
    run: Path,
    against: Path | None,
    function: str | None,
    out: Path | None,
    figure: str | None,
    format: str,
    paper: Mapping[str, Any],
    condition: int | None,
    quiet: bool,
) -> int:
    """Write the report of DIR, which run, record, import, trace or profile wrote, or of a file of `knee snapshot`: one
    HTML file that opens offline.

    Of a run it has the statistics and every figure that applies; of the others where the rows come from, the tables,
    and the connections that sent most over time (--figure timeseries); of a snapshot what is wrong with the host, and
    where its packets go; of a folder of snapshots which rule finds something on how many.

    Example: knee report runs/demo --figure goodput --format pdf --width 3.4in
    """
    if out is not None:
        free(out)
    from tcpknee.live import profile

    if run.is_file():
        if figure is not None or condition is not None or against is not None:
            raise click.UsageError(f"--figure, --condition, --against: {run} is a file; these are of folders.")
        _refuse_function(run, function)
        _snapshot_report(run, out, quiet)
        return 0
    if _are_snapshots(run) and figure is None and condition is None and against is None:
        _refuse_function(run, function)
        _hosts_report(run, out, quiet)
        return 0
    if profile.is_profile(run):
        if figure is not None or condition is not None:
            raise click.UsageError(f"--figure, --condition: {run} is a profile, whose page has one figure.")
        _profile_report(run, against, function, out, quiet)
        return 0
    _refuse_function(run, function)
    if against is not None:
        if condition is not None:
            raise UsageError(
                f"--condition: got {condition} with --against; expected one of them. A run alone has conditions."
            )
        _beside_report(run, against, out, figure, format, paper, quiet)
        return 0
    write(run, out, figure, format, paper, condition, quiet=quiet)
    return 0


def _refuse_function(run: Path, function: str | None) -> None:
    if function is not None:
        raise UsageError(f"--function: got {function}, and {run} is no profile; expected a profile or imported stacks.")


def write(
    run: Path,
    out: Path | None = None,
    figure: str | None = None,
    format: str = "svg",
    paper: Mapping[str, Any] | None = None,
    condition: int | None = None,
    tell: Callable[[str], None] = say.line,
    quiet: bool = False,
) -> None:
    """Writes the report, or one figure of it, and says where. `paper`: as `figure_options` has it."""
    from tcpknee import pages
    from tcpknee.live import trace
    from tcpknee.runs.progress import Phase

    is_trace, paper = trace.is_trace(run), paper or {}
    if condition is not None and not (run / "run.json").is_file() and run.is_dir():
        raise UsageError(
            f"--condition: got {condition} for {run}, which is no run; expected a run, which alone has some."
        )
    if is_trace and figure in (None, "trace"):
        _trace_report(run, out, figure, format, paper, tell, quiet)
        return
    if figure is None:
        if condition is not None:
            raise UsageError(
                f"--condition: got {condition} without a figure; expected --figure NAME beside it. The whole report "
                "shows every condition."
            )
        target = out or run / "report.html"
        with Phase("Writing the report", quiet=quiet):
            pages.write(run, target)
        tell(f"Report: {target}")
    else:
        target = out or run / f"{figure}.{format}"
        with Phase("Drawing the figure", quiet=quiet):
            pages.save(run, figure, target, condition=condition or 0, **paper)
        tell(f"Figure: {target}")


def _trace_report(
    run: Path,
    out: Path | None,
    figure: str | None,
    format: str,
    paper: Mapping[str, Any],
    tell: Callable[[str], None],
    quiet: bool,
) -> None:
    """The page of a trace, or its figure with the turning points."""
    from tcpknee.live import trace
    from tcpknee.pages import export, trace_page
    from tcpknee.runs.progress import Phase

    target = out or run / ("trace.html" if figure is None else f"trace.{format}")
    with Phase("Drawing the figure", quiet=quiet):
        trace_page.save(trace.read(run), target, export.Paper(**paper))
    tell(f"Figure: {target}")


def _profile_report(run: Path, against: Path | None, function: str | None, out: Path | None, quiet: bool) -> None:
    """The page of a profile, or of two side by side, and its functions as text."""
    from tcpknee.live import profile
    from tcpknee.pages import profile_page, profile_text
    from tcpknee.runs.progress import Phase

    target = out or run / "profile.html"
    found = profile.read(run)
    other = profile.read(against) if against is not None else None
    with Phase("Writing the report", quiet=quiet):
        profile_page.save(found, target, other, function)
    say.lines(profile_text.stack_lines(found, other, function))
    say.line(f"Report: {target}")


def _beside_report(
    run: Path, against: Path, out: Path | None, figure: str | None, format: str, paper: Mapping[str, Any], quiet: bool
) -> None:
    """The page of two traces, captures or recordings, or one figure of both."""
    from tcpknee import pages
    from tcpknee.datasets.dataset import Dataset
    from tcpknee.pages.beside import Beside
    from tcpknee.runs.progress import Phase

    both = [Dataset(run), Dataset(against)]
    if any(one.kind == "run" for one in both):
        raise UsageError(
            f"--against: got {against} for {run}; expected two traces, captures, recordings or profiles. Two runs are "
            "laid over each other by `knee diff RUN RUN --report`."
        )
    found = Beside(*both)
    with Phase("Writing the report", quiet=quiet):
        if figure is None:
            target = out or run / "report.html"
            pages.write(found, target)
        else:
            target = out or run / f"{figure}.{format}"
            pages.save(found, figure, target, **paper)
    say.line(f"{'Report' if figure is None else 'Figure'}: {target}")


def _snapshot_report(file: Path, out: Path | None, quiet: bool) -> None:
    """The page of a host."""
    from tcpknee.doctor.snapshot import Snapshot
    from tcpknee.pages import host_page
    from tcpknee.runs.progress import Phase

    target = out or file.with_suffix(".html")
    try:
        snapshot = Snapshot.read(file)
    except UsageError as error:
        raise UsageError(f"{error} Of anything but a snapshot a report takes the folder.") from None
    with Phase("Writing the report", quiet=quiet):
        host_page.save(snapshot, target)
    say.line(f"Report: {target}")


def _are_snapshots(folder: Path) -> bool:
    """Whether a folder holds files of `knee snapshot`: JSON that is no manifest, and no table anywhere below."""
    from tcpknee.datasets import manifest

    names = {path.name for path in folder.glob("*.json")}
    if not names or names & {manifest.RUN, manifest.TRACE, manifest.PROFILE}:
        return False
    return next(folder.rglob("*.parquet"), None) is None


def _hosts_report(folder: Path, out: Path | None, quiet: bool) -> None:
    """The page of many hosts."""
    from tcpknee.doctor import fleet
    from tcpknee.pages import host_page
    from tcpknee.runs.progress import Phase

    target = out or folder / "hosts.html"
    with Phase("Writing the report", quiet=quiet):
        host_page.save(fleet.judged(folder), target)
    say.line(f"Report: {target}")
