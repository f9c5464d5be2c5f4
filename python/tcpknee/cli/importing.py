"""`knee import`: a subcommand for each importer, made of what the importer says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpknee import human, say

from .lazy import LazyGroup
from .options import foreign

if TYPE_CHECKING:
    from tcpknee.imports import Kind, Option

_PATH = click.Path(path_type=Path)


class _Importers(LazyGroup):
    """The importers, of which the core is asked when they are needed: the help of `knee` does without."""

    def found(self) -> MutableMapping[str, click.Command]:
        return _commands()

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Where files stand in the place of an importer, their first bytes say which it is."""
        first = args[0]
        if first not in self.commands and ("/" in first or "." in first or Path(first).exists()):
            from tcpknee import imports

            files = list(takewhile(lambda arg: not arg.startswith("-"), args))
            kind = imports.recognised(files)
            if not {"--quiet", "-q"} & set(args):
                others = f" and {len(files) - 1} more" if len(files) > 1 else ""
                say.warn(f"knee import: {first}{others}: taken for {kind.name} ({kind.summary.rstrip('.')})")
            args = [kind.name, *args]
        return super().resolve_command(context, args)


@click.group("import", cls=_Importers, short_help="Import what other tools wrote about connections.")
def group() -> None:
    """Import what other tools wrote about connections, as Parquet, for `knee sql`.

    `knee import FILE... --out DIR` looks at the files and takes the importer whose own they look like; an importer's
    options need its name.

    Example: knee import capture.pcapng --out imp
    """


@cache
def _commands() -> dict[str, click.Command]:
    from tcpknee.imports import IMPORTERS

    return {name: _command(kind) for name, kind in IMPORTERS.items()}


def _command(kind: Kind) -> click.Command:
    def act(**given: Any) -> int:
        return run(kind, **given)

    decorated: Callable[..., Any] = act
    for decorate in reversed([*map(_option, kind.options), *_COMMON]):
        decorated = decorate(decorated)
    about = f"{kind.about}\n\nExample: knee import {kind.name} FILE --out rec"
    return click.command(kind.name, short_help=kind.summary, help=about)(decorated)


def _option(option: Option) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An importer checks its values itself, for the command line and Python alike."""
    default = f"  [default: {option.default}]" if option.default else ""
    if option.takes == "flag":
        return click.option(f"--{option.name}", is_flag=True, help=option.help)
    return click.option(f"--{option.name}", metavar=option.metavar, help=f"{option.help}{default}")


_COMMON = (
    click.argument("files", metavar="FILE...", nargs=-1, required=True, type=_PATH),
    click.option(
        "--out",
        metavar="DIR",
        type=_PATH,
        help="Folder for the files, which may hold others; by default the next free runs/import-N.",
    ),
    click.option("--strict", is_flag=True, help="Import nothing when something is not understood; exit code 1."),
    foreign,
    click.option("--dry-run", is_flag=True, help="Read all, say what is not understood, write nothing."),
    click.option(
        "--anonymize", metavar="HOW", help="truncate[:V4BITS/V6BITS] or hash[:KEY], before the disk is touched."
    ),
    click.option("--json", is_flag=True, help="Print one JSON object instead of text."),
    click.option("--quiet", "-q", is_flag=True, help="Nothing on stderr."),
)
"""Argument and options of every importer."""


def run(kind: Kind, files: tuple[Path, ...], *, out: Path | None, json: bool, quiet: bool, **given: Any) -> int:
    """Imports, and says what came of it."""
    from tcpknee import imports
    from tcpknee.imports import text
    from tcpknee.runs.folder import next_free

    folder = out or next_free(Path("runs"), "import")
    is_shown = say.shows_progress(quiet=quiet)
    refused = False
    try:
        report = imports.write(kind.name, files, folder, progress=_progress if is_shown else None, **given)
    except imports.NotUnderstood as error:
        report, refused = error.report, True
    finally:
        if is_shown:
            say.progress_ends()
    if json:
        say.json({"schema": 1, "imported": not (refused or given["dry_run"]), "folder": str(folder), **report})
    elif not refused:
        say.lines([text.summary(kind, report), *_written(report, folder)])
    if not quiet:
        for line in text.doubts(kind, report):
            say.warn(f"knee import {kind.name}: {line}")
    if refused:
        say.warn(f"knee import {kind.name}: --strict: nothing was imported.")
    return 1 if refused else 0


def _progress(done_bytes: int, rows: int) -> None:
    """One line that is written over."""
    say.progress(f"{done_bytes >> 20:,} MiB, {rows:,} rows so far")


def _written(report: Mapping[str, Any], folder: Path) -> Iterator[str]:
    files = len(report["files"])
    if not files:
        yield "nothing written: --dry-run"
        return
    size = sum(Path(path).stat().st_size for path in report["files"])
    yield f"{human.counted(files, 'file')}, {human.quantity('bytes', size)} in {folder}"
