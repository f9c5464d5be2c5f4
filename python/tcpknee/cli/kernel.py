"""`knee kernel`: kernels that run as guests."""

from __future__ import annotations

from pathlib import Path

import click

from tcpknee import say

from .options import PATH, json_option, quiet_option


@click.group("kernel", short_help="Build kernels of any version, or of a tree of yours, to run as guests.")
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
    from tcpknee.kernels import cache

    found = list(cache.kernels())
    if json:
        say.json({"schema": 1, "kernels": [kernel.facts() for kernel in found]})
        return 0
    if not found:
        say.line(f"No kernel was built yet ({cache.home()}). Build one: knee kernel add 6.12")
        return 0
    rows = [["name", "release", "built", "from"]]
    rows += [[kernel.name, kernel.release, kernel.built, kernel.origin] for kernel in found]
    say.lines(say.aligned(rows, left=[True] * 4, room=say.room()))
    return 0


@group.command("remove", short_help="Remove a kernel.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def remove(names: tuple[str, ...]) -> int:
    """Remove kernels that were built. Example: knee kernel remove 6.12"""
    from tcpknee.kernels import cache

    for name in names:
        cache.remove(name)
        say.line(f"{name} is removed.")
    return 0
