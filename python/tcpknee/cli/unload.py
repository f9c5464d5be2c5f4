"""`knee unload`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from tcpknee import say
from tcpknee.errors import EngineError, UsageError

from . import completion
from .options import json_option

_SHOWN = 3
"""Sockets that are named when an algorithm is unloaded."""


@click.command("unload", short_help="Take algorithms out of the kernel again.")
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
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="utf-8").split()
    status = _core.in_kernel()
    if all_:
        loaded = [name for name in status if status[name]["loaded"]]
        # Without the BPF file system, and before Linux 6.4, nothing pins one.
        named = [name.removeprefix("knee_") for name in available if name.startswith("knee_")]
        files = [name for name in dict.fromkeys([*_core.pinned(), *named]) if name not in status]
        algorithms = (*loaded, *files)
    # One of a file may be named without the file, which may be gone.
    of_files = {name for name in algorithms if name not in status and f"knee_{name}" in available}
    if others := [name for name in algorithms if name not in of_files]:
        chosen = dict(zip(others, for_kernel.names("knee unload", others, to_load=False), strict=True))
        algorithms = tuple(chosen.get(name, name) for name in algorithms)
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
