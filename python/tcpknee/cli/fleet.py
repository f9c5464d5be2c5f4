"""`knee fleet`: recorded hosts as evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tcpknee import human, say

from .options import (
    PATH,
    SEED_MAX,
    Whole,
    figure_options,
    force_option,
    foreign,
    foreign_files,
    free,
    json_option,
    out_option,
    quiet_option,
)

if TYPE_CHECKING:
    from tcpknee.fleet.following.following import Look

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group("fleet", short_help="Compare cohorts of recorded connections.")
def group() -> None:
    """Compare cohorts of recorded connections, over many hosts.

    Example: knee fleet compare rec1 rec2 --by algorithm
    """


@group.command("synthesize", short_help="Simulate a fleet from a stated mix.")
@click.argument("mix")
@out_option("New folder for the fleet: a recording for each host.")
@click.option("--seed", type=Whole(0, SEED_MAX), help="Of all draws.  [default: that of the mix]")
@click.option("--prefixes", type=Whole(min=1), help="How many bottlenecks.  [default: that of the mix]")
@click.option("--design", metavar="NAME", help="ab, cluster, switchback or paired-link.  [default: that of the mix]")
@click.option("--arm", "arms", multiple=True, metavar="NAME=SHARE", help="An algorithm; replaces the arms of the mix.")
@click.option("--workers", type=Whole(min=1), help="Paths simulated at once.  [default: one per processor]")
@foreign
@foreign_files
@json_option
@quiet_option
def synthesize(
    mix: str,
    out: Path | None,
    seed: int | None,
    prefixes: int | None,
    design: str | None,
    arms: tuple[str, ...],
    workers: int | None,
    json: bool,
    quiet: bool,
) -> int:
    """Simulate a fleet from a stated mix of clients, as recordings of its hosts. MIX is a file, or a name of
    gallery/fleets.

    knee fleet synthesize demo --out fleet --design ab --arm cubic=90% --arm bbr1=10%
    """
    if out is None:
        raise click.UsageError("Missing option '--out'.")
    from tcpknee.fleet import synthetic
    from tcpknee.runs import progress

    chosen = synthetic.read(mix).changed(seed=seed, prefixes=prefixes, design=design, arms=arms)
    told = synthetic.write(chosen, out, workers=workers, watcher=progress.watcher(quiet=quiet))
    if json:
        say.json(told)
        return 0
    arms_told = ", ".join(f"{name} {count:,}" for name, count in told["connections_by_arm"].items())
    say.line(
        f"{human.counted(told['connections'], 'connection')} simulated ({arms_told}) behind "
        f"{human.counted(told['prefixes'], 'bottleneck')}, to {human.counted(len(told['hosts']), 'host')}: {out}"
    )
    return 0


def data_options(command: Command) -> Command:
    """Which connections a command reads."""
    for option in (
        click.option(
            "--memory",
            default="5GiB",
            show_default=True,
            metavar="SIZE",
            help="That the query may take; the rest spills.",
        ),
        click.option(
            "--partial",
            is_flag=True,
            help="Leave out what is damaged or there twice, and say so; by default exit code 2.",
        ),
        click.option(
            "--tag", "tags", multiple=True, metavar="DIR:NAME=VALUE", help="A word about the connections of a folder."
        ),
        click.option("--where", default="", metavar="SQL", help="Only connections for which this holds."),
        click.argument("data", metavar="DATA...", nargs=-1, required=True, type=PATH),
    ):
        command = option(command)
    return command


@group.command("connections", short_help="Write one row per connection.")
@data_options
@out_option("Folder for connections.parquet, which is DATA in turn.")
@force_option
@foreign
@json_option
@quiet_option
def connections(
    data: tuple[Path, ...],
    where: str,
    tags: tuple[str, ...],
    partial: bool,
    memory: str,
    out: Path | None,
    json: bool,
    quiet: bool,
) -> int:
    """Write one row per connection of recordings, imports and runs, for other hosts or tools.

    knee fleet connections rec/edge1 rec/edge2 --out conn --where 'bytes_acked > 1000000'
    """
    if out is None:
        raise click.UsageError("Missing option '--out'.")
    if out.suffix == ".parquet":
        raise click.UsageError(f"--out: got {out}; expected a folder, in which connections.parquet will stand.")
    free(out / "connections.parquet", out / "assignments.parquet")
    from tcpknee.fleet import connections as tables
    from tcpknee.runs.progress import Phase

    with Phase("Reading", quiet=quiet):
        told = tables.write(data, out, where=where, tags=tags, partial=partial, memory=memory)
    if json:
        say.json({"schema": 1, **told})
        return 0
    for note in told["notes"] if not quiet else ():
        say.warn(f"knee fleet connections: {note}")
    say.line(
        f"{human.counted(told['connections'], 'connection')} of {human.counted(told['hosts'], 'host')}: "
        f"{', '.join(told['files'])}"
    )
    return 0


def compare_options(command: Command) -> Command:
    """What is compared, and how."""
    for option in (
        click.option("--seed", default=1, show_default=True, type=Whole(0, SEED_MAX), help="Seed of the bootstrap."),
        click.option("--margin", default="2%", show_default=True, metavar="SHARE", help="Of 'no worse than'."),
        click.option(
            "--before",
            multiple=True,
            metavar="DIR",
            type=PATH,
            help="DATA of the period before the experiment: what clusters were like then is taken out.",
        ),
        click.option("--reweight", metavar="WHAT", help="Also as if all cohorts had the same mix of these strata."),
        click.option(
            "--strata",
            multiple=True,
            metavar="WHAT",
            help="Also within bands of rtt, of rate, by prefix, or by a file with the columns remote_prefix and "
            "another, such as country.",
        ),
        click.option(
            "--cluster",
            metavar="WHAT",
            help="The unit of inference: unit, prefix, host, day, link, period, or another column.  [default: unit: "
            "what the assignment log says was drawn; without one the client's prefix, or host where none is known]",
        ),
        click.option(
            "--triggered",
            is_flag=True,
            help="Only connections that the algorithm could affect: they left the initial window and the "
            "application did not limit them.",
        ),
        click.option(
            "--min-bytes", default="0B", metavar="SIZE", help="Only connections that moved as much, such as 1MB."
        ),
        click.option(
            "--baseline",
            metavar="COHORT",
            help="What the others are compared with.  [default: control, cubic, or the largest]",
        ),
        click.option(
            "--by",
            default="algorithm",
            show_default=True,
            metavar="WHAT",
            help="Cohorts: algorithm, kernel, host, arm, or another column or tag.",
        ),
    ):
        command = option(command)
    return command


@group.command("compare", short_help="Say which cohort is better, for whom, and how surely.")
@data_options
@compare_options
@click.option(
    "--detect", metavar="SHARE", help="Also how many clusters would show a difference as small as this, such as 2%."
)
@out_option("Also write comparison.json there.")
@force_option
@foreign
@json_option
@quiet_option
def compare(data: tuple[Path, ...], out: Path | None, json: bool, quiet: bool, **given: Any) -> int:
    """Compare cohorts of connections: verdicts with intervals over clusters, and what speaks against believing them.

    knee fleet compare rec/edge1 rec/edge2 --by algorithm --min-bytes 1MB --triggered --strata rtt
    """
    if out is not None:
        free(out / "comparison.json")
    from . import blas

    blas.import_numpy()
    from tcpknee.fleet import cohorts
    from tcpknee.runs.progress import Phase

    with Phase("Comparing", quiet=quiet):
        found = cohorts.compare(*data, **given)
    if out is not None:
        found.write(out)
    if json:
        say.json(found.as_json())
        return 0
    for note in found.notes if not quiet else ():
        say.warn(f"knee fleet compare: {note}")
    say.lines(str(found).splitlines())
    return 0


@group.command("report", short_help="Write the page of a comparison, or one figure.")
@data_options
@compare_options
@click.option("--out", metavar="FILE", type=PATH, help="By default fleet.html or FIGURE.FORMAT in this folder.")
@figure_options
@force_option
@foreign
@json_option
@quiet_option
def report(
    data: tuple[Path, ...],
    out: Path | None,
    figure: str | None,
    format: str,
    paper: Mapping[str, Any],
    json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Write what `compare` finds as a page that opens offline: verdicts first, then the figures that explain them.

    knee fleet report rec/edge1 rec/edge2 --by algorithm --min-bytes 1MB --out fleet.html
    """
    out = out or Path("fleet.html" if figure is None else f"{figure}.{format}")
    free(out)
    from . import blas

    blas.import_numpy()
    from tcpknee.pages.fleet_report import FleetReport
    from tcpknee.runs.progress import Phase

    with Phase("Comparing", quiet=quiet):
        found = FleetReport(*data, **given)
    with Phase("Drawing", quiet=quiet):
        file = found.save(out) if figure is None else found.figure(figure).save(out, **paper)
    if json:
        say.json({"schema": 1, "file": str(file), "figures": found.figures})
        return 0
    for note in found.comparison.notes if not quiet else ():
        say.warn(f"knee fleet report: {note}")
    say.line(f"{'Report' if figure is None else 'Figure'}: {file}")
    return 0


@group.command("watch", short_help="Follow an experiment; end it where a guard is crossed.")
@click.argument("data", metavar="DATA...", nargs=-1, required=True, type=PATH)
@click.option(
    "--guard",
    "guards",
    multiple=True,
    required=True,
    metavar="GUARD",
    help='"retransmit_pct ratio <= 1.2": METRIC, ratio or difference, <= or >=, NUMBER.',
)
@click.option("--control", metavar="ARM", help="That others are compared with.  [default: the last of knee assign]")
@click.option(
    "--cluster",
    type=click.Choice(("unit", "prefix", "host", "period", "link")),
    default="unit",
    show_default=True,
    help="What connections are independent by; unit: what the assignment log says was drawn, or the client's prefix.",
)
@click.option("--where", default="", metavar="SQL", help="Only connections for which this holds, such as triggered.")
@click.option(
    "--planned", type=Whole(min=30), default=1000, show_default=True, help="Clusters at which intervals are narrowest."
)
@click.option("--every", default="1min", show_default=True, metavar="TIME", help="Between two looks.")
@click.option("--for", "length", metavar="TIME", help="End after this time.  [default: with the assignment, or Ctrl-C]")
@foreign
@json_option
@quiet_option
def watch(
    data: tuple[Path, ...],
    guards: tuple[str, ...],
    every: str,
    length: str | None,
    json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Follow an experiment while it runs, and end `knee assign` when a guard is crossed: exit code 1.

    knee fleet watch rec --guard "retransmit_pct ratio <= 1.2" --guard "srtt_us ratio <= 1.1"

    DATA are the folders of its recordings and logs, also while they are written. Intervals hold at every look at once
    (anytime-valid), so looking often ends no harmless experiment.
    """
    from tcpknee.fleet.following import following
    from tcpknee.fleet.following.guards import parse

    from .until import seconds, until_ctrl_c

    asked = [parse(guard) for guard in guards]
    every_sec = seconds(every)
    assert every_sec is not None

    def tell(look: Look) -> None:
        if not quiet and not json:
            say.lines(_looked(look))

    with until_ctrl_c() as stop:
        ended = following.follow(
            data, asked, every_sec=every_sec, seconds=seconds(length), stop=stop, tell=tell, **given
        )
    if json:
        say.json({"schema": 1, **ended.look.json(), "ended": [str(folder) for folder in ended.told]})
    elif ended.look.crossed is not None:
        told = ", ".join(str(folder) for folder in ended.told)
        then = f"`knee assign` is told to end: {told}" if told else "no assignment is under way in DATA"
        say.line(f"Crossed. {ended.look.crossed}; {then}")
    return 1 if ended.look.crossed is not None else 0


def _looked(look: Look) -> Iterator[str]:
    counts = ", ".join(
        f"{arm} {count:,}" + (f" (at {look.allocation_pct[arm]:g}%)" if arm in look.allocation_pct else "")
        for arm, count in look.connections.items()
    )
    yield f"connections that ended: {counts}; unit of inference: {look.clusters}"
    for arm, judged in look.judged.items():
        for one in judged:
            yield f"  {arm}: {one.guard}: {one.told}" + (" CROSSED" if one.is_crossed else "")
