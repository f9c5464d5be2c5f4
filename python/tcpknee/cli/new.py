"""`knee new`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from tcpknee import say
from tcpknee.errors import UsageError


@click.group("new", short_help="Write the outline of an algorithm of your own.")
def command() -> None:
    """Write the outline of an algorithm of your own.

    Example: knee new algorithm mine
    """


@command.command("algorithm", short_help="Write NAME.c, an algorithm to begin with.")
@click.argument("name")
def algorithm(name: str) -> int:
    """Write NAME.c into this folder: Reno, commented, to begin with (docs/your-algorithm.md).

    Example: knee new algorithm mine
    """
    from tcpknee import _core, writing
    from tcpknee.algorithms import naming, outline

    if ours := next((one for one in _core.algorithms() if name in (one["name"], one["linux_name"])), None):
        raise UsageError(f"knee new algorithm: {ours['name']} is one of ours; expected another name, as in mine.")
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name) or name in naming.reserved():
        raise UsageError(
            f'knee new algorithm: got the name "{name}"; expected small letters, digits and _, and no name that means '
            "something else in a scenario, as in mine."
        )
    path = Path(f"{name}.c")
    if path.exists() or path.is_symlink():
        raise UsageError(f"knee new algorithm: {path} is there already; expected a name that no file has.")
    with writing.replacing(path, public=True) as file:
        file.write(outline.of(name).encode())
    say.line(f"{path} is written. Compare it: knee compare ./{path}")
    return 0
