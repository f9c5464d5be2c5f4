"""`knee fleet`: recorded hosts as evidence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kneepoint import human, say

from .options import PATH, foreign, json_option, out_option, quiet_option

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group("fleet", short_help="Compare cohorts of recorded connections.")
def group() -> None:
    """Compare cohorts of recorded connections, over many hosts."""


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
    from kneepoint.fleet import connections as tables
    from kneepoint.runs.progress import Phase

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
