"""The command `knee`. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import os
import sys

from kneepoint.errors import KneepointError


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
    except KneepointError as error:
        code = _refuse(str(error))
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.ctx.get_help() if error.ctx else "", file=sys.stderr)
        code = 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "knee"
        code = _refuse(f"{path}: {error.format_message()} `{path} --help` says what there is.")
    except BrokenPipeError:
        # The reader of our output has gone; keep Python from complaining of it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def _refuse(message: str) -> int:
    """One paragraph on stderr."""
    print(" ".join(message.split()), file=sys.stderr)
    return 2
