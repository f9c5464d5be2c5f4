"""The command `knee`. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import re
import sys

from tcpknee import interrupts, say
from tcpknee.errors import ScenarioError, TcpkneeError


def main() -> None:
    """Runs the command line and exits: 0 all well, 1 an expectation failed, 2 bad usage or input, or output that cannot
    be written, 130 Ctrl-C, 141 the reader of stdout has gone."""
    sys.exit(say.guarded(_run))


def _run() -> int:
    with interrupts.noted():
        code = _called()
        if not interrupts.came():
            return code
        # Where Ctrl-C came within the text of an exec, as those that make dataclasses, CPython remembers it until the
        # next one, and `python -m` would end by the signal instead of with our exit code.
        exec("")
        return 130


def _called() -> int:
    """Calls the command; its exit code, after its errors have been told, but for those that Ctrl-C made."""
    import click

    from .app import app

    for word in sys.argv[1:]:
        if not _is_text(word):
            return _refuse(
                f'knee: got the argument "{word}", which is not UTF-8; expected text. A file of such a name '
                "can be reached by a link whose name is text."
            )
    try:
        return app.main(prog_name="knee", standalone_mode=False) or 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except (KeyboardInterrupt, click.Abort):
        return 130
    except say.Lost:
        raise
    except Exception as error:
        return 130 if interrupts.came() else _told(error)


def _told(error: Exception) -> int:
    """Says what went wrong; the exit code."""
    import click

    if isinstance(error, ScenarioError):
        # A paragraph for each mistake.
        return _refuse(*str(error).split("\n"))
    if isinstance(error, TcpkneeError):
        return _refuse(str(error))
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        for line in error.ctx.get_help().splitlines() if error.ctx else ():
            say.warn(line)
        return 2
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        path = context.command_path if context else _command_path(sys.argv[1:])
        said = error.format_message()
        if type(error) is click.BadParameter and error.param is not None:
            # A value at an option: what click says, after the option's name as everywhere.
            said = f"{error.param.get_error_hint(context).strip(chr(39))}: {error.message}" if context else said
        stop = "" if said.endswith((".", "?")) else "."
        return _refuse(f"{path}: {said}{stop} `{path} --help` says what there is.")
    if refused := _refused_by_the_system(error):
        return _refuse(f"knee: {refused}")
    import traceback

    traceback.print_exception(error)
    return _refuse("knee: the lines above show a defect of tcpknee; please report them.")


def _refused_by_the_system(error: Exception) -> str | None:
    """What the system did not give this process, where nobody nearer said it; None: it is a defect of ours."""
    if isinstance(error, OSError) and error.errno is not None:
        at = f"{error.filename}: " if error.filename is not None else ""
        said = f"{at}{error.strerror}"
    elif isinstance(error, MemoryError):
        said = "there is not enough memory"
    elif isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        said = "no further thread can be started"
    else:
        return None
    return f"{said}. Look at the limits of this process (ulimit -a), at its rights, and at the room that is left."


def _is_text(word: str) -> bool:
    """Whether it is Unicode: bytes that are not become lone surrogates, which neither JSON nor Rust can hold."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _command_path(words: list[str]) -> str:
    """The command that the words name; click's parser does not say in which it failed."""
    from .app import VERBS

    return f"knee {words[0]}" if words and words[0] in VERBS else "knee"


def _refuse(*messages: str) -> int:
    """One paragraph on stderr for each."""
    for message in messages:
        say.warn(re.sub(r"\s*\n\s*", " ", message.strip()))
    return 2
