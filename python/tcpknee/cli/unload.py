"""`knee unload`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from tcpknee import say
from tcpknee.errors import EngineError, UsageError

from . import completion
from .options import json_option

_SHOWN = 3
"""Sockets that are named when an algorithm is unloaded."""


@click.command("unload", short_help="Take them out again.")
@click.argument("algorithms", nargs=-1, metavar="[ALGO...]", shell_complete=completion.of(completion.algorithms))
@click.option("--all", "all_", is_flag=True, help="Every algorithm that was loaded.")
@json_option
def command(algorithms: tuple[str, ...], all_: bool, json: bool) -> int:
    """Take algorithms out of the running kernel. Sockets that run one keep it until they close, and are named.

    Example: knee unload bbr3
    """
    from tcpknee import _core
    from tcpknee.algorithms import for_kernel

    if all_ == bool(algorithms):
        raise UsageError("knee unload: expected names of algorithms or --all, and not both.")
    if all_:
        algorithms = tuple(name for name, status in _core.in_kernel().items() if status["loaded"])
    if algorithms:
        algorithms = for_kernel.names("knee unload", algorithms, to_load=False)
    done: dict[str, list[dict[str, str]]] = {}
    failed: list[str] = []
    for name in algorithms:
        try:
            done[name] = _core.unload(name)
        except EngineError as error:
            # One that a run holds is no reason to keep the others.
            failed.append(str(error))
            continue
        if not json:
            say.line(f"{name} is unloaded{_still_used(done[name])}")
    if json:
        say.json({"schema": 1, "unloaded": done})
    elif not algorithms:
        say.line("nothing is loaded")
    if failed:
        raise EngineError("knee unload: " + "; ".join(failed))
    return 0


def _still_used(users: Sequence[Mapping[str, str]]) -> str:
    if not users:
        return ""
    named = ", ".join(
        f"{user['source']} to {user['destination']}" + (f" in {user['namespace']}" if user["namespace"] else "")
        for user in users[:_SHOWN]
    )
    more = f" and {len(users) - _SHOWN} more" if len(users) > _SHOWN else ""
    sockets = "socket runs" if len(users) == 1 else "sockets run"
    return f"; {len(users)} {sockets} it until closed: {named}{more}"
