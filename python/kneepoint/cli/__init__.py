"""The command `knee`. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from kneepoint.errors import KneepointError, ScenarioError

if TYPE_CHECKING:
    import click


def main() -> None:
    """Runs the command line and exits: 0 all well, 1 an expectation failed, 2 bad usage or input, 130 Ctrl-C."""
    import click

    from .app import app

    code: int | None = 0
    try:
        code = app.main(prog_name="knee", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        code = end.exit_code
    except (KeyboardInterrupt, click.Abort):
        code = 130
    except ScenarioError as error:
        # A paragraph for each mistake.
        code = _refuse(*str(error).split("\n"))
    except KneepointError as error:
        code = _refuse(str(error))
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.ctx.get_help() if error.ctx else "", file=sys.stderr)
        code = 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else _command_path(app, sys.argv[1:])
        said = error.format_message()
        if type(error) is click.BadParameter and error.param is not None:
            # A value at an option: what click says, after the option's name as everywhere.
            said = f"{error.param.get_error_hint(context).strip(chr(39))}: {error.message}" if context else said
        stop = "" if said.endswith((".", "?")) else "."
        code = _refuse(f"{path}: {said}{stop} `{path} --help` says what there is.")
    except BrokenPipeError:
        # The reader of our output has gone; keep Python from complaining of it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def _command_path(app: click.Group, words: list[str]) -> str:
    """The command that the words name; click's parser does not say in which it failed."""
    return f"knee {words[0]}" if words and words[0] in app.commands else "knee"


def _refuse(*messages: str) -> int:
    """One paragraph on stderr for each."""
    for message in messages:
        print(" ".join(message.split()), file=sys.stderr)
    return 2
