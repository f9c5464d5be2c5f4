"""`knee profile`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpknee import say
from tcpknee.errors import KernelUnsupported
from tcpknee.say import aligned

from .options import PATH, Command, Whole, foreign, json_option, out_option, quiet_option
from .until import seconds, until_ctrl_c

if TYPE_CHECKING:
    from tcpknee.live.profile import Profile

_RUNS = Path("runs")
_INSTRUMENTS = ("timers", "packets", "polls", "softirqs", "wakeups", "stacks", "softnet")
"""Those of the core, which help must not load."""


def _left_out(command: Command) -> Command:
    """An option for each instrument."""
    for name in reversed(_INSTRUMENTS):
        command = click.option(f"--no-{name}", is_flag=True, help=f"Without {name}.")(command)
    return command


@click.command("profile", short_help="Measure what the network costs this host's processors.")
@click.option("--for", "length", metavar="TIME", help="How long, as in 10s.  [default: until Ctrl-C]")
@click.option("--netns", metavar="NETNS", help="Only this network namespace: a name, a PID or a path.  [default: all]")
@click.option("--pid", type=Whole(1), help="Only this process: its threads, its stacks, its network namespace.")
@click.option("--against", metavar="DIR", type=PATH, help="Lay the profile in DIR beside this one.")
@click.option("--function", metavar="NAME", help="Print who calls this function, of the kernel or a program.")
@click.option("--no-bpf", is_flag=True, help="Only what /proc tells everybody.")
@_left_out
@out_option("Folder of the tables and the page; by default the next free runs/profile-N.")
@foreign
@json_option
@quiet_option
def command(
    length: str | None,
    netns: str | None,
    pid: int | None,
    against: Path | None,
    function: str | None,
    no_bpf: bool,
    out: Path | None,
    json: bool,
    quiet: bool,
    **left_out: bool,
) -> int:
    """Measure what the network costs this host: pacing timers, packets and their sizes, polls, softirqs, call stacks.

    Needs root (CAP_BPF and CAP_PERFMON) and a kernel with BTF; with --no-bpf it does not. docs/profile.md says what
    each figure means.

    Example: knee profile --for 10s --out runs/before
    """
    from tcpknee import provenance
    from tcpknee.live import profile
    from tcpknee.pages import profile_page
    from tcpknee.runs.folder import next_free
    from tcpknee.runs.progress import Line, Phase

    other = profile.read(against) if against is not None else None
    folder = out or next_free(_RUNS, "profile")
    known = profile.without_bpf() if no_bpf else profile.instruments()
    progress, loading = Line(quiet=quiet), Phase("Loading the programs into the kernel", quiet=quiet)
    ending = Phase("Naming functions, writing the tables", quiet=quiet, later=True)

    def tell(so_far: float) -> None:
        loading.end()
        progress(f"{so_far:.0f} s; Ctrl-C ends it")

    def end() -> None:
        progress.end()
        ending.begin()

    with until_ctrl_c() as stop, loading, progress, ending:
        found = _taken(
            profile.take,
            folder,
            seconds=seconds(length),
            netns=netns,
            pid=pid,
            chosen=[name for name in known if not left_out[f"no_{name}"]],
            stop=stop,
            command=provenance.command_line("knee", *sys.argv[1:]),
            progress=tell,
            ending=end,
        )
    with Phase("Writing the page", quiet=quiet):
        drawn = profile_page.save(found, folder / "profile.html", other, function)
    if json:
        say.json({"schema": 1, "folder": str(folder), **found.about, "costs": found.costs, "classes": found.classes})
        return 0
    say.lines(_told(found, other, function))
    say.line(f"Profile: {folder} ({', '.join(f'{name}.parquet' for name in profile.TABLES)})")
    say.line(f"Page: {drawn}")
    return 0


def _taken(take: Callable[..., Profile], *words: Any, **given: Any) -> Profile:
    """The profile; a refusal says what can be had without BPF."""
    try:
        return take(*words, **given)
    except KernelUnsupported as error:
        raise KernelUnsupported(f"{error} `knee profile --no-bpf` measures what /proc tells.") from None


def _told(found: Profile, other: Profile | None, function: str | None) -> Iterator[str]:
    from tcpknee.pages import profile_text as text

    tables = [
        (text.BESIDE_HEADS, text.beside(other, found)) if other is not None else None,
        (text.PROCESSOR_HEADS, text.processors(found, text.PROCESSORS_SHOWN)),
        (text.CLASS_HEADS, text.classes(found)),
        (text.COUNT_HEADS, text.counts(found)),
        (text.SIZE_HEADS, text.sizes(found)),
    ]
    yield text.answer(found)
    for one in tables:
        if one is not None and one[1]:
            heads, rows = one
            yield ""
            yield from aligned([heads, *rows], left=[True, *[False] * (len(heads) - 1)])
    if stacks := list(text.stack_lines(found, other, function)):
        yield from ("", *stacks)
    yield ""
    yield from text.warnings(found)
    yield from (f"{where}: {much}" for where, much in (*text.never(found), *text.cost(found)))
