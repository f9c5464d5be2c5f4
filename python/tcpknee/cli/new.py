"""`knee new`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from tcpknee import say
from tcpknee.errors import UsageError

from .options import foreign

_WORD_OF_C = re.compile(
    "auto|bool|break|case|char|const|continue|default|do|double|else|enum|extern|false|float|for|goto|if|inline|int|long"
    "|register|restrict|return|short|signed|sizeof|static|struct|switch|true|typedef|typeof|union|unsigned|void"
    "|volatile|while"
)
"""Keywords in small letters. Source: ISO C11, 6.4.1; gcc's and stdbool.h's."""


@click.group("new", short_help="Write the outline of an algorithm of your own.")
def command() -> None:
    """Write the outline of an algorithm of your own.

    Example: knee new algorithm mine
    """


@command.command("algorithm", short_help="Write NAME.c, an algorithm to begin with.")
@click.argument("name")
@foreign
def algorithm(name: str) -> int:
    """Write NAME.c into this folder: Reno, commented, to begin with (docs/your-algorithm.md).

    Example: knee new algorithm mine
    """
    from tcpknee import _core, writing
    from tcpknee.algorithms import naming, outline

    if ours := next((one for one in _core.algorithms() if name in (one["name"], one["linux_name"])), None):
        raise UsageError(f"knee new algorithm: {ours['name']} is one of ours; expected another name, as in mine.")
    is_taken = name in naming.reserved() or _WORD_OF_C.fullmatch(name)
    if is_taken or not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name):
        raise UsageError(
            f'knee new algorithm: got the name "{name}"; expected small letters, digits and _, and no name that means '
            "something else in a scenario or in C, as in mine."
        )
    path = Path(f"{name}.c")
    if path.exists() or path.is_symlink():
        raise UsageError(f"knee new algorithm: {path} is there already; expected a name that no file has.")
    with writing.replacing(path, public=True) as file:
        file.write(outline.of(name).encode())
    say.line(f"{path} is written. Compare it: knee compare ./{path}")
    return 0
