"""The commands and their options. Each hands over to another module when called, so that help costs nothing.

click and not typer, which is built on it: typer's checks load pydantic, 0.15 s of every command's start.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kneepoint import engines, say
from kneepoint.errors import EngineError, UsageError

from . import importing
from .options import Whole, foreign

Command = TypeVar("Command", bound=Callable[..., Any])

LISTED = ("algorithms", "queues", "losses", "workloads", "sizes", "keys", "tables", "scenarios")
"""What `knee list` can print."""

_PATH = click.Path(path_type=Path)


class Options:
    """What commands that run scenarios have in common."""

    def __init__(
        self,
        out: Path | None = None,
        workers: int | None = None,
        resume: bool = False,
        force: bool = False,
        dry_run: bool = False,
        report: bool = False,
        json: bool = False,
        quiet: bool = False,
        engine: str | None = None,
        bpf: bool = False,
        programs_as_root: bool = False,
    ) -> None:
        self.out, self.workers, self.resume, self.force = out, workers, resume, force
        self.dry_run, self.report, self.json, self.quiet = dry_run, report, json, quiet
        self.engine, self.bpf, self.programs_as_root = engine, bpf, programs_as_root


def _out(help: str) -> Callable[[Command], Command]:
    return click.option("--out", metavar="DIR", type=_PATH, help=help)


_json = click.option("--json", is_flag=True, help="Print one JSON object instead of text.")
_quiet = click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")


def _running(command: Command) -> Command:
    """Options of every command that runs scenarios."""
    for option in (
        _quiet,
        _json,
        click.option(
            "--workers",
            type=Whole(min=1),
            help="Repetitions at once; by default one per processor, which changes no result of the simulator, and "
            "one on the kernel, where they would take time from each other.",
        ),
        foreign,
        click.option(
            "--programs-as-root",
            is_flag=True,
            help="With --engine kernel, as root: run a scenario's programs as root, and not as the user who called "
            "sudo, or nobody.",
        ),
        click.option(
            "--bpf",
            is_flag=True,
            help="With --engine kernel: our build of each algorithm, also where the kernel has its own.",
        ),
        click.option(
            "--engine",
            type=click.Choice(engines.NAMES),
            help="What runs it: the simulator, or this host's own TCP stack, in real time.  [default: sim]",
        ),
    ):
        command = option(command)
    return command


def _planning(command: Command) -> Command:
    """Options of `run` and `compare`."""
    for option in (
        click.option("--report", is_flag=True, help="Write DIR/report.html besides."),
        click.option("--dry-run", is_flag=True, help="Print the cells, their BDP and buffer, and run nothing."),
        click.option("--force", is_flag=True, help="Replace the run that DIR holds."),
    ):
        command = option(command)
    return command


_FILTERS = ("port", "address", "algorithm", "state", "min_bytes", "mark", "cgroup", "netns")
"""Options of `_filtering`."""


def _filtering(command: Command) -> Command:
    """Which sockets `record`, `watch` and `export` look at."""
    for option in (
        click.option("--netns", metavar="NAME|PID", help="Of this network namespace; by default of our own."),
        click.option("--cgroup", metavar="PATH", help="Of this cgroup v2."),
        click.option("--mark", metavar="N[/MASK]", help="With this SO_MARK."),
        click.option("--min-bytes", metavar="BYTES", help="With at least this much acked and received."),
        click.option("--state", multiple=True, metavar="STATE", help="As ss names it, or all.  [default: connected]"),
        click.option("--algorithm", multiple=True, metavar="NAME", help="With this congestion control."),
        click.option(
            "--address", multiple=True, metavar="PREFIX", help="At either end: 10.0.0.0/8, 2001:db8::1; ! likewise."
        ),
        click.option(
            "--port", multiple=True, metavar="PORT", help="At either end: 443, 8000-8100; with ! before: not that."
        ),
    ):
        command = option(command)
    return command


def _version(context: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        from kneepoint.record import engine_version

        say.line(f"kneepoint {engine_version()}")
        context.exit()


class _Knee(click.Group):
    """The commands. An error at an argument of the API is told as one of the option of that name."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except (UsageError, EngineError) as error:
            name, _, said = str(error).partition(": ")
            option = f"--{name.replace('_', '-')}"
            if option not in _options(self.get_command(context, context.invoked_subcommand or "")):
                raise
            raise type(error)(f"{option}: {said}") from None


def _options(command: click.Command | None) -> set[str]:
    """The long options of a command and of what is below it."""
    below = command.commands.values() if isinstance(command, click.Group) else ()
    own = {option for parameter in command.params for option in parameter.opts} if command else set()
    return own.union(*map(_options, below))


@click.group(name="knee", cls=_Knee, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def app() -> None:
    """A workbench for TCP congestion control: which algorithm and settings are best for this path, and why?"""


@app.command("run", short_help="Run scenarios and say what came of them.")
@click.argument("scenarios", metavar="SCENARIO...", nargs=-1, type=_PATH)
@_out("Run folder; by default runs/NAME-N. With several scenarios: DIR/NAME each.")
@click.option("--resume", is_flag=True, help="Run only what the run in DIR still lacks.")
@_planning
@_running
def _run(scenarios: tuple[Path, ...], **options: Any) -> int:
    """Run scenario files (TOML) and say what came of them.

    Exit code 0, 1 when an [[expect]] of a scenario is not met, 2 when something is wrong with what was asked,
    or its output cannot be written.
    """
    from . import running

    return running.run(scenarios, Options(**options))


@app.command("compare", short_help="Compare algorithms on one path.")
@click.argument("algorithms", metavar="ALGO...", nargs=-1, required=True)
@click.option("--rate", default="50Mbit/s", show_default=True, help="Rate of the bottleneck, or 'unlimited'.")
@click.option("--rtt", default="40ms", show_default=True, help="Base round-trip time.")
@click.option("--loss", help="Loss of data packets: 1.5% at random, or 'periodic 0.1%'.")
@click.option("--buffer", help="Size of the queue: 1bdp, 256KiB, 170packets, 20ms.  [default: 1bdp]")
@click.option("--queue", help="Kind of queue; `knee list queues`.")
@click.option("--duration", default="30s", show_default=True, help="Length of each repetition.")
@click.option("--warmup", help="Left out of steady-state metrics.  [default: a sixth of the duration, at most 5s]")
@click.option("--repeat", default=5, show_default=True, type=Whole(min=1), help="Repetitions of each cell.")
@click.option("--seed", default=1, show_default=True, type=Whole(min=0), help="Seed of all random draws.")
@click.option("--workload", help="Kind of workload; `knee list workloads`.")
@click.option(
    "--set",
    "set_",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any other key of a scenario, as in sender.initcwnd=20 or flow.bytes=1MB.",
)
@_out("Run folder; by default runs/compare-N.")
@_planning
@_running
def _compare(algorithms: tuple[str, ...], **given: Any) -> int:
    """Compare algorithms on one path.

    ALGO is a name, each run by itself, or one mix that shares the path: cubic:1,bbr1:2. An option with a list
    (--rtt 10ms,100ms) is an axis.
    """
    from kneepoint import compose

    from . import running

    settings: dict[str, Any] = {
        name: compose.axis(given.pop(name)) for name in ("rate", "rtt", "loss", "buffer", "queue")
    }
    settings |= {name: given.pop(name) for name in ("duration", "warmup", "repeat", "seed", "workload")}
    settings["set"] = compose.assignments(given.pop("set_"))
    return running.compare(algorithms, settings, Options(**given))


@app.command("gallery", short_help="Check the published claims, or run scenarios of the gallery.")
@click.argument("names", metavar="[NAME...]", nargs=-1)
@click.option("--only", metavar="ID[,ID...]", multiple=True, help="Of the claims, these; by default all.")
@click.option("--quick", is_flag=True, help="The short form of each claim: fewer and shorter repetitions.")
@click.option("--seed", type=Whole(min=0), help="Another seed of all random draws.  [default: that of each scenario]")
@click.option("--resume", is_flag=True, help="Go on with the claims in --out.")
@_out("Folder of the run folders; by default runs/gallery-N.")
@_running
def _gallery(
    names: tuple[str, ...], only: tuple[str, ...], quick: bool, seed: int | None, resume: bool, **options: Any
) -> int:
    """Check the published claims, and say which are reproduced. With NAME: run those scenarios of the gallery instead.

    Exit code 1: a claim is not reproduced, or in part only. Figures of other machines are shown, never checked.
    """
    if names:
        from . import running

        asked = {"--only": only, "--quick": quick, "--seed": seed is not None, "--resume": resume}
        return running.gallery(names, Options(**options), [option for option, given in asked.items() if given])
    from . import claiming

    return claiming.claims(only, Options(**options), quick=quick, seed=seed, resume=resume)


@app.command(
    "shell",
    short_help="Run a command behind an emulated path.",
    # What follows the command is the command's.
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", metavar="[--] [CMD...]", nargs=-1, type=click.UNPROCESSED)
@click.option("--rate", default="50Mbit/s", show_default=True, help="Rate towards the command, or 'unlimited'.")
@click.option("--rtt", default="40ms", show_default=True, help="Base round-trip time.")
@click.option("--loss", help="Loss towards the command: 1.5% at random, or 'periodic 0.1%'.")
@click.option("--ack-loss", help="Loss of what the command sends.")
@click.option("--buffer", help="Size of the queue: 1bdp, 256KiB, 170packets, 20ms.  [default: 1bdp]")
@click.option("--queue", help="Kind of queue; `knee list queues`.")
@click.option(
    "--algorithm", default="cubic", show_default=True, help="Congestion control towards the command, the far end's."
)
@click.option("--bpf", is_flag=True, help="Our build of the algorithm, also where the kernel has its own.")
@click.option(
    "--set",
    "set_",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any other key of a scenario, as in path.mtu=1400B or receiver.tcp_rmem_max=6MiB.",
)
@click.option("--quiet", "-q", is_flag=True, help="Do not say at the end what the link carried.")
def _shell(command: tuple[str, ...], **given: Any) -> int:
    """Run any command behind an emulated path: curl, a browser, by default your shell.

    It has this machine's files, terminal and environment, and a network whose only way out is the path. The host's
    loopback is at the name knee-host. Exit code: the command's.
    """
    from kneepoint import compose

    from . import shelling

    settings = compose.assignments(given.pop("set_"))
    for name in ("rate", "rtt", "loss", "ack_loss", "buffer", "queue"):
        if (value := given.pop(name)) is not None:
            settings[f"path.{name}"] = compose.axis(value)
    return shelling.shell(command, settings, **given)


@app.command("conform", short_help="Show how far the simulator and this kernel are apart.")
@_out("Folder for the runs and the figure; by default the next free runs/conform-N.")
@click.option("--quick", is_flag=True, help="Six short cells instead of the whole matrix.")
@click.option("--resume", is_flag=True, help="Go on with the runs in --out.")
@click.option("--against", metavar="FILE.csv", type=_PATH, help="Compare the simulator with results of such a file.")
@click.option(
    "--only", metavar="NAME[,NAME...]", multiple=True, help="Of the file, these suites, groups or algorithms."
)
@click.option("--workers", type=Whole(min=1), help="At once: labs, by default one; simulations, one per processor.")
@foreign
@_json
@_quiet
def _conform(
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
    """
    from . import beside, conforming

    if against is None:
        if only:
            raise UsageError("knee conform --only: expected --against FILE.csv beside it.")
        return conforming.conformance(out, quick=quick, resume=resume, workers=workers, json=json, quiet=quiet)
    if out or quick or resume:
        raise UsageError(
            "knee conform --against: got --out, --quick or --resume too; nothing is kept, so leave them out."
        )
    names = [name for text in only for name in text.split(",")]
    return beside.compare(against, only=names, workers=workers, json=json, quiet=quiet)


@app.command("load", short_help="Put algorithms into the running kernel.")
@click.argument("algorithms", nargs=-1, required=True, metavar="ALGO...")
@click.option("--default-in", metavar="NETNS", help="Make it the default of a network namespace: a name or a PID.")
@_json
@_quiet
def _load(algorithms: tuple[str, ...], default_in: str | None, json: bool, quiet: bool) -> int:
    """Put algorithms into the running kernel, without rebuilding it: sockets can choose knee_ALGO from then on.

    They stay until `knee unload` or a reboot. It needs root and a kernel with BTF, 6.1 or later.
    """
    from . import loading

    return loading.load(algorithms, default_in, json=json, quiet=quiet)


@app.command("unload", short_help="Take them out again.")
@click.argument("algorithms", nargs=-1, metavar="[ALGO...]")
@click.option("--all", "all_", is_flag=True, help="Every algorithm that was loaded.")
@_json
def _unload(algorithms: tuple[str, ...], all_: bool, json: bool) -> int:
    """Take algorithms out of the running kernel. Sockets that run one keep it until they close, and are named."""
    from . import loading

    return loading.unload(algorithms, every=all_, json=json)


@app.command("record", short_help="Record every TCP socket of this host.")
@click.option("--out", required=True, metavar="DIR", type=_PATH, help="Folder for the files, which may hold others.")
@click.option("--every", default="1s", show_default=True, metavar="TIME", help="Between two samples.")
@click.option("--for", "for_", metavar="TIME", help="End after this time; by default at Ctrl-C or SIGTERM.")
@click.option("--keep", metavar="BYTES", help="Delete the oldest files beyond this much: 10GB.")
@click.option("--rotate", metavar="BYTES|TIME", help="Begin new files at this size or age.  [default: 256MiB and 1h]")
@_filtering
@click.option("--processes", is_flag=True, help="Name and PID of who holds a socket; up to 5 % of a processor.")
@click.option("--anonymize", metavar="HOW", help="truncate[:V4BITS/V6BITS] or hash[:KEY], before the disk is touched.")
@click.option(
    "--no-host", is_flag=True, help="No counters of the host, its processors, devices and queues, and no settings."
)
@foreign
@_json
@click.option("--quiet", "-q", is_flag=True, help="Nothing on stderr.")
def _record(json: bool, quiet: bool, for_: str | None, no_host: bool, **given: Any) -> int:
    """Record every TCP socket of this host at intervals, and the last state of each that closes, into Parquet.

    An ordinary user may do it; what only root can be told (marks, processes of others) is then missing and named.
    """
    from . import recording

    asked = {
        "out": str(given.pop("out").absolute()),
        "for": for_,
        "host": not no_host,
        "ports": given.pop("port"),
        "addresses": given.pop("address"),
        "algorithms": given.pop("algorithm"),
        "states": given.pop("state"),
        **given,
    }
    return recording.run(asked, json=json, quiet=quiet)


@app.command("watch", short_help="Watch the TCP connections of this host, live.")
@click.option("--every", default="1s", show_default=True, metavar="TIME", help="Between two samples.")
@_filtering
@click.option("--sort", default="acked_bits_per_sec", show_default=True, metavar="COLUMN", help="Order of the rows.")
@click.option("--once", is_flag=True, help="Print one interval as text and end; needs no terminal.")
@click.option("--rows", default=20, show_default=True, type=Whole(min=0), help="With --once; 0: all.")
@click.option("--json", is_flag=True, help="With --once, which it implies: print one JSON object instead.")
def _watch(port: tuple[str, ...], address: tuple[str, ...], **given: Any) -> int:
    """Watch the TCP connections of this host: rates, windows, round-trip times, and what holds each back.

    Rates are those of the interval between two samples. Keys are on the page that `h` opens.
    """
    from . import watching

    rows_are_given = click.get_current_context().get_parameter_source("rows") is click.core.ParameterSource.COMMANDLINE
    if rows_are_given and not given["once"] and not given["json"]:
        raise click.UsageError("--rows is for --once; the screen shows as many rows as it holds.")
    wanted = {"ports": port, "addresses": address, "algorithms": given.pop("algorithm"), "states": given.pop("state")}
    wanted |= {name: given.pop(name) for name in ("min_bytes", "mark", "cgroup")}
    return watching.run({name: value for name, value in wanted.items() if value}, **given)


app.add_command(importing.group)


@app.command("sql", short_help="Ask a folder of tables in SQL.")
@click.argument("query", metavar="QUERY")
@click.argument("folder", metavar="DIR", type=_PATH)
@_json
@click.option("--csv", is_flag=True, help="Print CSV instead of a table.")
@click.option("--external", is_flag=True, help="Let the query read and write other files, and load extensions.")
@_quiet
def _sql(query: str, folder: Path, json: bool, csv: bool, external: bool, quiet: bool) -> int:
    """Ask a folder of tables in DuckDB's SQL: what record, import, trace or run wrote.

    Each table is a view of its name: knee sql 'select algorithm, count(*) from sockets group by all' DIR. `show
    tables` lists them, `describe sockets` the columns of one. Nothing in DIR is changed, and nothing else is read.
    """
    from . import querying

    if json and csv:
        raise click.UsageError("got --json and --csv; expected one of them.")
    return querying.query(query, folder, json=json, csv=csv, external=external, quiet=quiet)


@app.command("trace", short_help="Trace live connections ACK by ACK, or waits in qdiscs.")
@click.argument("connection", metavar="[CONNECTION]", required=False)
@click.option("--port", type=Whole(1, 65535), help="Connections with this port at either end.")
@click.option("--address", metavar="PREFIX", help="Connections with an end within it: 192.0.2.0/24, 2001:db8::/32.")
@click.option("--qdisc", is_flag=True, help="How long packets wait in the root qdisc of each device, instead.")
@click.option("--device", metavar="DEV", help="With --qdisc: only this device.")
@click.option("--netns", metavar="NETNS", help="Only this network namespace: a name, a PID or a path.  [default: all]")
@click.option("--for", "length", metavar="TIME", help="How long, as in 10s.  [default: until Ctrl-C]")
@_out("Folder of the tables and the figure; by default the next free runs/trace-N.")
@foreign
@_json
@_quiet
def _trace(connection: str | None, qdisc: bool, device: str | None, **given: Any) -> int:
    """Trace live TCP connections of this host segment by segment: window, threshold, round-trip time, state.

    CONNECTION is the far end, 192.0.2.1:443, or both, 192.0.2.7:40000-192.0.2.1:443, or a socket's cookie as `ss -e`
    prints it, sk:1a2b. Needs root (CAP_BPF and CAP_PERFMON) and a kernel with BTF, 5.12 or later; the connections
    themselves are not touched.
    """
    from . import tracing

    if not qdisc:
        if device is not None:
            raise click.UsageError("--device is for --qdisc; a connection is chosen by CONNECTION, --port, --address.")
        return tracing.connections(connection, **given)
    chosen = {"CONNECTION": connection, "--port": given.pop("port"), "--address": given.pop("address")}
    chosen["--out"] = given.pop("out")
    if useless := [name for name, value in chosen.items() if value is not None]:
        raise click.UsageError(f"{useless[0]} is not for --qdisc, which prints what it found; --device chooses one.")
    return tracing.queues(device=device, **given)


@app.command("list", short_help="List algorithms, queues, losses, workloads, sizes, keys, tables, scenarios.")
@click.argument("what", required=False, metavar=f"[{'|'.join(LISTED)}]", type=click.Choice(LISTED))
@_json
def _list(what: str | None, json: bool) -> int:
    """List what Kneepoint knows, by default the names of all."""
    from . import listing

    listing.show(what, json=json)
    return 0


@app.command("report", short_help="Write the report of a run, or one figure of it.")
@click.argument("run", metavar="RUN", type=_PATH)
@click.option("--out", metavar="FILE", type=_PATH, help="By default RUN/report.html or RUN/FIGURE.FORMAT.")
@click.option("--figure", metavar="NAME", help="Write only this figure.")
@click.option(
    "--format",
    default="svg",
    show_default=True,
    type=click.Choice(("svg", "png")),
    help="Format of --figure.",
)
@click.option(
    "--condition",
    metavar="N",
    type=Whole(min=0),
    help="Point of the matrix that --figure shows, from 0, where it shows one.",
)
@foreign
@_quiet
def _report(run: Path, out: Path | None, figure: str | None, format: str, condition: int | None, quiet: bool) -> int:
    """Write the report of a run: one HTML file that opens offline."""
    from . import exporting

    format_is_given = (
        click.get_current_context().get_parameter_source("format") is click.core.ParameterSource.COMMANDLINE
    )
    if format_is_given and figure is None:
        raise click.UsageError(f"--format: got {format} without --figure NAME; expected both. A report is HTML.")
    exporting.report(run, out, figure, format, condition, quiet=quiet)
    return 0


@app.command("export", short_help="Export a run for other tools, or this host's TCP for Prometheus.")
@click.argument("run", metavar="[RUN]", required=False, type=_PATH)
@click.option(
    "--format",
    type=click.Choice(("csv", "flent", "pcapng", "mahimahi")),
    help="csv: every table, also of a recording, an import or a trace; flent: one repetition as a data file of flent; "
    "pcapng: its packets; mahimahi: the rate of its bottleneck, or of a scenario's, as a trace.",
)
@click.option("--out", metavar="PATH", type=_PATH, help="A folder for csv, a file for the others.")
@click.option("--cell", default=0, show_default=True, type=Whole(min=0), help="All but csv: cell of the matrix.")
@click.option("--rep", default=0, show_default=True, type=Whole(min=0), help="All but csv: repetition, from 0.")
@click.option("--step", metavar="TIME", help="flent: between two points.  [default: 200ms]")
@click.option(
    "--prometheus",
    metavar="[ADDRESS]:PORT",
    help="Without RUN: serve sums over this host's TCP sockets; by default on loopback.",
)
@click.option("--every", default="15s", show_default=True, metavar="TIME", help="Between two samples, whoever asks.")
@click.option(
    "--by",
    metavar="WHAT=A,B",
    help="A second label with these values and other: port=443,8000-8100, cgroup=PATH or process=NAME.",
)
@_filtering
@click.option("--grafana", metavar="FILE", type=_PATH, help="Write a dashboard for what --prometheus serves.")
@click.option("--systemd", metavar="DIR", type=_PATH, help="Write units of --prometheus and of record.")
@foreign
@_quiet
def _export(**given: Any) -> int:
    """Export a run for other tools: RUN with --format and --out.

    Or serve TCP of this host to Prometheus: `knee export --prometheus :9757`. --grafana and --systemd write the files
    that go with it.
    """
    ways = {
        "RUN": ("run", "format", "out", "cell", "rep", "step", "quiet"),
        "--prometheus": ("prometheus", "every", "by", *_FILTERS),
        "--grafana": ("grafana",),
        "--systemd": ("systemd",),
    }
    chosen = [way for way, names in ways.items() if given[names[0]] is not None]
    if len(chosen) != 1:
        raise click.UsageError(f"got {' and '.join(chosen) or 'nothing'}; expected one of {', '.join(ways)}.")
    way = chosen[0]
    for other, names in ways.items():
        for name in names[1:] if other != way else ():
            if click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
                raise click.UsageError(f"--{name.replace('_', '-')} is for {other}, and got {way}.")
    if way == "RUN":
        for name in ("format", "out"):
            if given[name] is None:
                raise click.UsageError(f"Missing option '--{name}'.")
        return _export_run(*(given[name] for name in ways["RUN"]))
    from . import serving

    if way == "--prometheus":
        asked = {name: given[name] for name in ways[way][1:]}
        lists = {"port": "ports", "address": "addresses", "algorithm": "algorithms", "state": "states"}
        return serving.prometheus(given["prometheus"], {lists.get(name, name): asked[name] for name in asked})
    if way == "--grafana":
        serving.grafana(given["grafana"])
    else:
        serving.systemd(given["systemd"])
    return 0


def _export_run(run: Path, format: str, out: Path, cell: int, rep: int, step: str | None, quiet: bool) -> int:
    from . import exporting

    if step is not None and format != "flent":
        raise click.UsageError(f"--step is for --format flent, and got {format}.")
    # A trace of mahimahi may come of a scenario, which has cells and no repetitions yet.
    useless = ("cell", "rep") if format == "csv" else ("rep",) if format == "mahimahi" and run.is_file() else ()
    for name in useless:
        if click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            what = "csv, which has every cell" if format == "csv" else "a scenario, of which nothing was repeated yet"
            raise click.UsageError(f"--{name} is not for {what}.")
    if format == "csv":
        exporting.csv(run, out, quiet=quiet)
    elif format == "flent":
        exporting.flent(run, out, cell, rep, step)
    elif format == "mahimahi":
        exporting.mahimahi(run, out, cell, rep)
    else:
        exporting.pcapng(run, out, cell, rep, quiet=quiet)
    return 0
