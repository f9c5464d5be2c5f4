"""`knee help`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tcpknee import provenance
from tcpknee.errors import UsageError

from . import completion


@click.command("help", short_help="Say how a verb is used.")
@click.argument("words", metavar="[VERB]...", nargs=-1, shell_complete=completion.verbs)
@click.pass_context
def command(context: click.Context, words: tuple[str, ...]) -> None:
    """Say how a verb is used, as its --help does.

    Example: knee help fleet compare
    """
    from .list import LISTED

    if words and words[0] in LISTED:
        listed = provenance.command_line("knee", "list", *words)
        raise UsageError(f'knee help: got "{words[0]}", which is no verb, but can be listed: {listed}')
    group = context.find_root()
    group.command.main([*words, "--help"], prog_name=group.command_path, standalone_mode=False)


def below(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """A command and all below it, for pages that say what their help does."""
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from below(found, click.Context(found, parent=context, info_name=name))
