"""A page for each verb of `knee`, made of what its --help is made of."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click
from layout import code, table

from tcpknee.cli.app import SECTIONS, app
from tcpknee.cli.help import below

Found = tuple[click.Command, click.Context]

OF_FILES = "import"
"""The verb whose commands have pages of what they read, `imports/`."""

_PAGE = re.compile(r"\bdocs/([\w-]+\.md)\b")
"""What help says to read."""


def pages() -> dict[str, tuple[str, str]]:
    """Title and text of each page, by its name below reference/."""
    return {_name(context): (context.command_path, _page(command, context)) for command, context in _all()}


def index() -> str:
    """Every verb, by what it is for."""
    parts, listed = [], [*_all()]
    for title, verbs in SECTIONS.items():
        rows = [_row(*found) for found in listed if found[1].command_path.split()[1] in verbs]
        parts.append(f"## {title}\n\n{table(['command', 'what it does'], rows)}")
    return "\n".join(parts)


def _all() -> Iterator[Found]:
    for command, context in below(app, click.Context(app, info_name="knee")):
        if context.parent is not None and context.parent.info_name != OF_FILES:
            yield command, context


def _name(context: click.Context) -> str:
    _, verb, *rest = context.command_path.split()
    return f"imports/{rest[0]}" if verb == OF_FILES and rest else f"commands/{'-'.join([verb, *rest])}"


def _row(command: click.Command, context: click.Context) -> list[str]:
    return [f"[{code(context.command_path)}](reference/{_name(context)}.md)", command.get_short_help_str(200)]


def _page(command: click.Command, context: click.Context) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    first, *rest = _paragraphs(inspect.cleandoc(command.help or ""))
    parts = [first, f"```text\n{usage}\n```", *rest]
    if further := [_row(*found) for found in below(command, context) if found[0] is not command]:
        parts.append(table(["command", "what it does"], further).rstrip())
    records = [one for param in command.get_params(context) if (one := param.get_help_record(context))]
    rows = [[code(options), " ".join(help_.split())] for options, help_ in records if help_]
    return _PAGE.sub(r"[\g<0>](\1)", "\n\n".join([*parts, table(["option", "meaning"], rows)]))


def _paragraphs(help_: str) -> Iterator[str]:
    """A paragraph with click's mark keeps its lines; one that is a command is a block."""
    for text in re.split(r"\n\s*\n", help_.strip()):
        if text.startswith("\b"):
            yield "```text\n" + text.removeprefix("\b").strip("\n") + "\n```"
            continue
        line = " ".join(text.split())
        said, example, typed = line.partition("Example: ")
        yield said.rstrip() if not example else f"{said}Example:\n\n```sh\n{typed}\n```"
