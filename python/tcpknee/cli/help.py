"""`knee help`."""

from __future__ import annotations

import click

from . import completion


@click.command("help", short_help="Say how a verb is used.")
@click.argument("words", metavar="[VERB]...", nargs=-1, shell_complete=completion.verbs)
@click.pass_context
def command(context: click.Context, words: tuple[str, ...]) -> None:
    """Say how a verb is used, as its --help does.

    Example: knee help fleet compare
    """
    group = context.find_root()
    group.command.main([*words, "--help"], prog_name=group.command_path, standalone_mode=False)
