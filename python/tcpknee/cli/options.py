"""Options that several commands have."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from tcpknee.errors import UsageError
from tcpknee.human import suggest
from tcpknee.runs import engines

from . import completion

if TYPE_CHECKING:
    from tcpknee.runs.ending import Ending

Command = TypeVar("Command", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)

SEED_MAX = (1 << 63) - 1
"""As `tcpknee.fleet.statistics` has it, without its imports."""


class Whole(click.IntRange):
    """A whole number, whose refusal says so."""

    name = "whole number"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        try:
            number = int(super().convert(value, parameter, context))
        except click.BadParameter:
            to = f"to {self.max}" if self.max is not None else "on"
            self.fail(f'got "{value}"; expected a whole number from {self.min} {to}.', parameter, context)
        return number

    def _describe_range(self) -> str:
        """What help says of it in brackets; click has `0<=x<=9223372036854775807`."""
        if self.max is None or self.max == SEED_MAX:
            return f"from {self.min} on"
        return f"{self.min:,} to {self.max:,}"


class Engines(click.ParamType):  # type: ignore[type-arg]  # click before 8.2 has none
    """Names of engines, with commas between; `known`: those that the command has."""

    name = "engines"

    def __init__(self, known: Sequence[str] = engines.NAMES) -> None:
        self.known = known

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(self.known)}],..."

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> str:
        names = str(value).split(",")
        if unknown := next((name for name in names if name not in self.known), None):
            self.fail(f'got "{unknown}"; expected some of {", ".join(self.known)}.', parameter, context)
        if len(set(names)) < len(names):
            self.fail(f'got "{value}"; expected each engine once.', parameter, context)
        return str(value)

    def shell_complete(
        self, context: click.Context, parameter: click.Parameter, begun: str
    ) -> list[click.shell_completion.CompletionItem]:
        return completion.of(lambda: self.known, lists=True)(context, parameter, begun)


def name_list(context: click.Context, option: click.Parameter, given: str) -> tuple[str, ...]:
    """The callback of an option that takes names with commas between."""
    return tuple(filter(None, given.split(",")))


def _allow_foreign(context: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        from tcpknee import writing

        writing.allow_foreign_folders()


foreign = click.option(
    "--allow-foreign-folder",
    is_flag=True,
    expose_value=False,
    callback=_allow_foreign,
    help="As root: also into folders of other users.",
)
"""Of every command that writes files."""


def _allow_foreign_files(context: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        from tcpknee import reading

        reading.allow_foreign_files()


foreign_files = click.option(
    "--allow-foreign-files",
    is_flag=True,
    expose_value=False,
    callback=_allow_foreign_files,
    help="As root, read the files outside of its own folder that a scenario names.",
)
"""Of every command that reads scenarios, or a mix of them, from files."""

algorithms_argument = click.argument(
    "algorithms",
    metavar="ALGO...",
    nargs=-1,
    required=True,
    shell_complete=completion.of(completion.algorithms, files=True),
)
"""Names, and files of the user's."""

json_option = click.option("--json", is_flag=True, help="Print one JSON object instead of text.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")


def out_option(help: str) -> Callable[[Command], Command]:
    """Where the command writes."""
    return click.option("--out", metavar="DIR", type=PATH, help=help)


def figure_options(command: Command) -> Command:
    """Options of every command that writes a page or one figure of it. It gets `paper`, the words that `pages.save`
    takes beside a figure's name and file; what is of figures where none was asked for is refused."""

    @functools.wraps(command)
    def checked(*arguments: Any, width: str | None, font: str | None, grey: bool, **given: Any) -> Any:
        _check_of_figures(given["figure"])
        return command(*arguments, paper={"width": width, "font": font, "grey": grey}, **given)

    formats = click.Choice(("svg", "png", "pdf"))
    for option in (
        click.option(
            "--grey", is_flag=True, help="Of --figure: no colours; lines differ in greys and dashes, points in shape."
        ),
        click.option("--font", metavar="FAMILY", help="Letters of --figure: a font that is installed here."),
        click.option(
            "--width", metavar="LENGTH", help="Of --figure on paper, axes and all: 3.4in, 86mm. Its letters are of 8pt."
        ),
        click.option("--format", default="svg", show_default=True, type=formats, help="Format of --figure."),
        click.option("--figure", metavar="NAME", help="Write only this figure."),
    ):
        checked = option(checked)
    return cast(Command, checked)


def _check_of_figures(figure: str | None) -> None:
    given = click.get_current_context().params
    for name in ("format", "width", "font", "grey"):
        if figure is None and is_given(name):
            got = "it" if given[name] is True else given[name]
            raise click.UsageError(f"--{name}: got {got} without --figure NAME; expected both. A report is HTML.")


force_option = click.option("--force", is_flag=True, expose_value=False, help="Replace the file that is there already.")
"""Of every command that writes files of which somebody gives the name."""


def free(*paths: Path) -> None:
    """Refuses to write where something is, unless --force was given. Raises RunFolderError."""
    from tcpknee.errors import RunFolderError

    for path in paths if not is_given("force") else ():
        if path.exists() or path.is_symlink():
            raise RunFolderError(
                f"{path}: is there already; expected a name that is free. Choose another, or replace it with --force."
            )


def names_of(option: str, only: Sequence[str], known: Sequence[str], expected: str) -> list[str]:
    """The names in an option that may stand several times, each time with a list; all that are known where it does not.
    `expected`: what stands before those in the refusal of another."""
    wanted = [name.strip() for text in only for name in text.split(",")]
    unknown = next((name for name in wanted if name not in known), None)
    if unknown is not None:
        raise UsageError(f'{option}: got "{unknown}"; {suggest(unknown, known, expected)}')
    return [name for name in known if not wanted or name in wanted]


def is_given(option: str) -> bool:
    """Whether the option stands on the command line; its value may be the default all the same."""
    return click.get_current_context().get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE


PAIR = ("sender", "receiver", "address", "port", "netem", "allow_programs")
"""Options of the engine hosts."""

_REAL_TIME = tuple(filter(engines.in_real_time, engines.NAMES))
_OF_ENGINES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(PAIR, ("hosts",)),
    **dict.fromkeys(("until_decided", "budget", "pause"), _REAL_TIME),
    **dict.fromkeys(("bpf", "measure"), ("kernel",)),
    "allow_host_settings": ("kernel", "hosts"),
    "capture": engines.OF_KERNELS,
    "programs_as_root": ("kernel", "guest", "hosts"),
}
"""Options that are for some engines alone, and for which."""


@dataclass(frozen=True)
class Options:
    """What commands that run scenarios have in common."""

    out: Path | None = None
    workers: int | None = None
    resume: bool = False
    force: bool = False
    dry_run: bool = False
    report: bool = False
    json: bool = False
    quiet: bool = False
    engine: str | None = None
    bpf: bool = False
    programs_as_root: bool = False
    allow_host_settings: bool = False
    measure: tuple[str, ...] = ()
    capture: str = ""
    kernel: tuple[str, ...] = ()
    until_decided: bool = False
    budget: str = ""
    pause: str = ""
    beside: tuple[str, ...] = ()
    cluster: str | None = None
    parts: str | None = None
    sender: str | None = None
    receiver: str | None = None
    address: str | None = None
    port: int = 0
    netem: bool = False
    allow_programs: bool = False

    @property
    def engines(self) -> list[str]:
        """The engines that were named, or the simulator."""
        return (self.engine or "sim").split(",")

    @property
    def in_guests_alone(self) -> bool:
        """Does no other engine run it?"""
        return self.engines == ["guest"] and not self.beside

    def by_engine(self) -> list[Options]:
        """The same for each engine alone. Where several are named, each has what is for it; what is for none of them is
        refused later. Raises UsageError: kernels of which no engine is."""
        if self.kernel and all(map(engines.in_real_time, self.engines)):
            raise UsageError(
                f"--kernel: got it with --engine {self.engine}; expected the engines sim or guest, as this host has "
                "its own kernel."
            )
        plain, found = Options(), []
        for name in self.engines:
            others = {
                option: getattr(plain, option)
                for option, owners in _OF_ENGINES.items()
                if name not in owners and set(owners) & set(self.engines)
            }
            found.append(replace(self, engine=name, **others))
        return found

    @property
    def ending(self) -> Ending:
        """What ends a run early."""
        from tcpknee.runs.ending import Ending

        return Ending(self.until_decided, self.budget, self.pause)

    @property
    def of_engine(self) -> dict[str, Any]:
        """The settings of the engine, by their names in `api.run`."""
        names = ("bpf", "programs_as_root", "allow_host_settings", "measure", "capture", "workers")
        found = {name: getattr(self, name) for name in names}
        if any(getattr(self, name) for name in PAIR):
            from tcpknee.runs.pair import Pair

            found["hosts"] = Pair(
                self.sender or "", self.receiver or "", self.address, self.port, self.netem, self.allow_programs
            )
        return found


def running_options(command: Command) -> Command:
    """Options of every command that runs scenarios."""
    for option in (
        quiet_option,
        json_option,
        click.option(
            "--workers",
            type=Whole(min=1),
            help="Repetitions at once; by default one per processor, which changes no result of the simulator, and "
            "one on the kernel, where they would take time from each other.",
        ),
        foreign,
        click.option(
            "--allow-host-settings",
            is_flag=True,
            help="With --engine kernel or hosts, as root: set what a scenario asks for and a kernel has for the whole "
            "machine, and put it back after the run.",
        ),
        click.option(
            "--programs-as-root",
            is_flag=True,
            help="With --engine kernel or guest, as root: run a scenario's programs as root, and not as the user who "
            "called sudo, or nobody. With --engine hosts: also where ssh comes as root.",
        ),
        click.option(
            "--bpf",
            is_flag=True,
            help="With --engine kernel: our build of each algorithm, also where the kernel has its own.",
        ),
        click.option(
            "--engine",
            type=Engines(),
            help="What runs it: the simulator; this host's own TCP stack, in real time; another kernel, in virtual "
            "time; or two hosts of yours, over the path between them. Several "
            "with commas between are set beside each other.  [default: sim]",
        ),
    ):
        command = option(command)
    return command


def planning_options(command: Command) -> Command:
    """Options of `run` and `compare`."""
    for option in (
        click.option(
            "--allow-programs",
            is_flag=True,
            help="With --engine hosts: run the scenario's programs there, as the user of the connection.",
        ),
        click.option(
            "--netem",
            is_flag=True,
            help="With --engine hosts: have the hosts' own netem make the scenario's path, as root there, for the time "
            "of the run.",
        ),
        click.option(
            "--port",
            type=Whole(0, 65535),
            default=0,
            metavar="PORT",
            help="With --engine hosts: the port that the receiver listens at, and those behind it for further [[flow]] "
            "tables.  [default: any]",
        ),
        click.option(
            "--address",
            metavar="IP",
            help="With --engine hosts: the receiver's address for data.  [default: the one that ssh reached]",
        ),
        click.option(
            "--receiver", metavar="HOST", help="With --engine hosts: the host that receives, in the same way."
        ),
        click.option(
            "--sender",
            metavar="HOST",
            help="With --engine hosts: the host that sends, as ssh knows it (user@host), or local, which is this one "
            "(docs/hosts.md).",
        ),
        click.option(
            "--kernel",
            metavar="NAMES",
            shell_complete=completion.of(completion.kernels_and_releases, lists=True),
            default="",
            callback=name_list,
            help="Whose rules hold: a release such as 6.12, or several with commas between; with --engine guest the "
            "kernels that boot, as `knee kernel list` names them.",
        ),
        click.option(
            "--measure",
            metavar="NAMES",
            default="",
            callback=name_list,
            help="With --engine kernel: measure what a repetition costs the host; some of timers, packets, polls, "
            "softirqs, wakeups, stacks, softnet with commas between (docs/profile.md).",
        ),
        click.option(
            "--capture",
            metavar="SIZE",
            default="",
            help="With another engine than sim: keep the headers of packets at both hosts, in so much memory of each, "
            "such as 20MB for some 100,000; `knee export --format pcapng` writes them. At hosts of yours as root.",
        ),
        click.option(
            "--until-decided",
            is_flag=True,
            help="With --engine kernel or hosts: no more repetitions once every comparison is decided; `repeat` is the "
            "most.",
        ),
        click.option(
            "--budget",
            metavar="TIME,BYTES",
            default="",
            help="With --engine kernel or hosts: no repetition beyond it, such as 10min, 5GB or 10min,5GB.",
        ),
        click.option(
            "--pause",
            metavar="TIME",
            default="",
            help="With --engine kernel or hosts: wait so long between blocks, which are a repetition of every cell.  "
            "[default: none]",
        ),
        click.option(
            "--beside",
            metavar="DATA",
            multiple=True,
            help="Set beside it what was measured elsewhere: a file of iperf3 or flent, a capture, or a folder of "
            "`knee record`, `import` or `run`; with --engine hosts also sim, which simulates the measured path.",
        ),
        click.option("--report", is_flag=True, help="Write DIR/report.html besides."),
        click.option("--dry-run", is_flag=True, help="Print the cells, their BDP and buffer, and run nothing."),
        click.option("--force", is_flag=True, help="Replace the run that DIR holds."),
    ):
        command = option(command)
    return command


FILTERS = ("port", "address", "algorithm", "state", "min_bytes", "mark", "cgroup", "netns")
"""Options of `filter_options`."""


def filter_options(command: Command) -> Command:
    """Which sockets `record`, `watch` and `export` look at."""
    for option in (
        click.option("--netns", metavar="NAME|PID", help="Of this network namespace; by default of our own."),
        click.option("--cgroup", metavar="PATH", help="Of this cgroup v2."),
        click.option("--mark", metavar="N[/MASK]", help="With this SO_MARK."),
        click.option("--min-bytes", metavar="BYTES", help="With at least this much acked and received."),
        click.option("--state", multiple=True, metavar="STATE", help="As ss names it, or all.  [default: connected]"),
        click.option(
            "--algorithm",
            multiple=True,
            metavar="NAME",
            shell_complete=completion.of(completion.algorithms),
            help="With this congestion control.",
        ),
        click.option(
            "--address", multiple=True, metavar="PREFIX", help="At either end: 10.0.0.0/8, 2001:db8::1; ! likewise."
        ),
        click.option(
            "--port", multiple=True, metavar="PORT", help="At either end: 443, 8000-8100; with ! before: not that."
        ),
    ):
        command = option(command)
    return command
