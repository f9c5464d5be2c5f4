"""The command `knee`: its verbs, each in a file of this folder.

click and not typer, which is built on it: typer's checks load pydantic, 0.15 s of every command's start.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from importlib import import_module
from typing import Any

import click

from tcpknee import say
from tcpknee.errors import EngineError, UsageError

from .lazy import LazyGroup

SECTIONS = {
    "Algorithms on a path": {
        "compare": "compare",
        "run": "run",
        "gallery": "gallery",
        "suite": "suite",
        "diff": "diff",
    },
    "This host": {
        "doctor": "doctor",
        "recommend": "recommend",
        "watch": "watch",
        "shell": "shell",
        "profile": "profile",
        "trace": "trace",
        "snapshot": "snapshot",
        "calibrate": "calibrate",
    },
    "Production": {
        "record": "record",
        "import": "importing:group",
        "fleet": "fleet:group",
        "whatif": "whatif",
        "assign": "assign",
    },
    "An algorithm of your own, or a change to one": {
        "new": "new",
        "check": "check",
        "score": "score",
        "against": "against",
        "gate": "gate",
        "redteam": "redteam",
        "load": "load",
        "unload": "unload",
    },
    "Linux, as it is": {
        "kernel": "kernel:group",
        "conform": "conform",
    },
    "Results": {
        "report": "report",
        "sql": "sql",
        "export": "export",
    },
    "Help": {
        "list": "list",
        "help": "help",
        "completion": "completion",
    },
}
"""The file of each verb by what it is for, imported when the verb is asked for or all are listed; what it is called
there, if not `command`."""

VERBS = {name: file for verbs in SECTIONS.values() for name, file in verbs.items()}


class _Knee(LazyGroup):
    """The verbs. An error at an argument of the API is told as one of the option of that name."""

    def found(self) -> MutableMapping[str, click.Command]:
        """All of them, which click wants to see when it suggests one."""
        return {name: self._command(name) for name in VERBS}

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(VERBS)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        # The two columns that `write_dl` sets apart by two, of all sections alike.
        name_width = max(map(len, VERBS))
        room = formatter.width - name_width - 4
        for title, verbs in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(name_width), self._command(name).get_short_help_str(room)) for name in verbs]
                )

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        return self._command(name) if name in VERBS else None

    def _command(self, name: str) -> click.Command:
        file, _, called = VERBS[name].partition(":")
        found: click.Command = getattr(import_module(f".{file}", __package__), called or "command")
        return found

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in VERBS and f"--{args[0]}" in {name for one in self.params for name in one.opts}:
            context.fail(f"No such command '{args[0]}'. Did you mean '--{args[0]}'?")
        return super().resolve_command(context, args)

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


def _version(context: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        from tcpknee import provenance

        say.line(f"tcpknee {provenance.engine_version()} ({provenance.build()})")
        context.exit()


@click.group(name="knee", cls=_Knee, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    "-V",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print version, commit and build.",
)
def app() -> None:
    """A workbench for TCP congestion control: which algorithm and settings are best for this path, and why?

    Begin with `knee compare cubic bbr1`, or on a server with `knee doctor`. `knee help VERB` says more.
    """
