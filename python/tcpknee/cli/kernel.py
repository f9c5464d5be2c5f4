"""`knee kernel`: kernels that run as guests."""

from __future__ import annotations

from pathlib import Path

import click

from tcpknee import say
from tcpknee.errors import UsageError

from . import completion
from .options import PATH, json_option, quiet_option


@click.group("kernel", short_help="Build kernels of any version, or of your tree, as guests.")
def group() -> None:
    """Build kernels of any version, or of a tree of yours, that `--engine guest` runs.

    A guest kernel is an ordinary program with a virtual clock: no root, no reboot, and the same results on a busy
    machine.

    Example: knee kernel add 6.12; knee compare cubic bbr1 --engine guest --kernel 6.12
    """


@group.command("add", short_help="Build a kernel.")
@click.argument("what", metavar="VERSION|TREE[@REVISION]")
@click.option("--deb", metavar="FILE", type=PATH, help="Debian's package linux-source-VERSION, instead of fetching it.")
@click.option("--name", metavar="NAME", help="What it is called.  [default: the version, or the tree's folder]")
@json_option
@quiet_option
def add(what: str, deb: Path | None, name: str | None, json: bool, quiet: bool) -> int:
    """Build a kernel: a version that Debian has (5.10, 6.1, 6.12, 7.2), or a source tree of 5.4 or newer.

    A tree is neither changed nor built in; after a change of one file the same command takes seconds. The first build
    takes minutes. Example: knee kernel add ~/linux@HEAD~1
    """
    from tcpknee.kernels import building
    from tcpknee.runs.progress import Phase

    found = building.add(what, name=name, package=deb, phase=lambda title: Phase(title, quiet=quiet, lines=True))
    if json:
        say.json({"schema": 1, "kernel": found.facts()})
        return 0
    say.line(f"{found.name}: Linux {found.release}, from {found.origin}")
    if not found.is_repeatable:
        say.line("Its random numbers take no seed: runs of it differ where chance decides.")
    say.line(f"Run it: knee compare cubic bbr1 --engine guest --kernel {found.name}")
    return 0


@group.command("list", short_help="Show the kernels that were built.")
@json_option
def list_(json: bool) -> int:
    """Show the kernels that were built. Example: knee kernel list --json"""
    from tcpknee.kernels import building, cache, modules

    found = list(cache.kernels())
    doubts = {kernel.name: building.doubt(kernel) for kernel in found}
    if json:
        say.json({"schema": 1, "kernels": [{**kernel.facts(), "doubt": doubts[kernel.name]} for kernel in found]})
        return 0
    if not found:
        say.line(f"No kernel was built yet ({cache.home()}). Build one: knee kernel add 6.12")
        return 0
    rows = [["name", "release", "built", "from"]]
    rows += [[kernel.name, kernel.release, kernel.built, kernel.origin] for kernel in found]
    say.lines(say.aligned(rows, left=[True] * 4, room=say.room()))
    say.lines(f"Warning: {doubt}." for doubt in doubts.values() if doubt)
    bare = [kernel.name for kernel in found if not modules.can_build(kernel)]
    if bare:
        say.line(f"No algorithms of files run in {', '.join(bare)} until `knee kernel add` has built it again.")
    return 0


@group.command("remove", short_help="Remove a kernel.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=completion.of(completion.kernels))
def remove(names: tuple[str, ...]) -> int:
    """Remove kernels that were built. Example: knee kernel remove 6.12"""
    from tcpknee.kernels import cache

    for name in names:
        cache.remove(name)
        say.line(f"{name} is removed.")
    return 0


@group.command("rules", short_help="Show what differs between releases of Linux.")
@click.argument("releases", nargs=-1, metavar="[RELEASE [RELEASE]]", shell_complete=completion.of(completion.releases))
@json_option
def rules(releases: tuple[str, ...], json: bool) -> int:
    """Show the rules and defaults of TCP that changed from Linux 3.10 to 7.2, and the commits that changed them.

    All have their history; with one RELEASE, what it has; with two, what differs between them.

    `kernel = "4.19"` in a scenario sets those of a release. What a scenario has as no key the simulator does not model.
    Example: knee kernel rules 4.15 5.3
    """
    from tcpknee.runs import rules as of_releases

    if len(releases) > 2:
        raise UsageError(f"knee kernel rules: got {len(releases)} releases; expected none, one or two.")
    for release in releases:
        of_releases.number(release)
    if json:
        say.json({"schema": 1, "releases": list(releases), "rules": of_releases.shown(releases)})
        return 0
    rows = of_releases.table(releases)
    if len(rows) == 1:
        say.line(f"{releases[0]} and {releases[1]} differ in none of the rules.")
        return 0
    # A history has each rule once, above its changes, so that it cannot be folded.
    say.lines(say.aligned(rows, left=[True] * len(rows[0]), room=say.room() if releases else None))
    say.line()
    say.line("Commits are of mainline; releases and commits are from mailing lists and release notes, and from the")
    say.line("sources of 6.12 and 7.2. docs/kernels.md says which were measured.")
    return 0
