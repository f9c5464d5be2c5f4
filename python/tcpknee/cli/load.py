"""`knee load`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tcpknee import say
from tcpknee.errors import KernelUnsupported, UsageError
from tcpknee.human import suggest

from .options import json_option, quiet_option


@click.command("load", short_help="Put algorithms into the running kernel.")
@click.argument("algorithms", nargs=-1, required=True, metavar="ALGO...")
@click.option("--default-in", metavar="NETNS", help="Make it the default of a network namespace: a name or a PID.")
@json_option
@quiet_option
def command(algorithms: tuple[str, ...], default_in: str | None, json: bool, quiet: bool) -> int:
    """Put algorithms into the running kernel, without rebuilding it: sockets can choose knee_ALGO from then on.

    They stay until `knee unload` or a reboot. It needs root and a kernel with BTF, 6.1 or later.
    """
    from tcpknee import _core
    from tcpknee.runs.progress import Phase

    check("load", algorithms)
    if default_in is not None and len(algorithms) > 1:
        raise UsageError(
            "knee load --default-in: got several algorithms; expected one, as a namespace has one default."
        )
    done: dict[str, str] = {}
    try:
        for name in algorithms:
            with Phase(f"Loading {name} into the kernel", quiet=quiet):
                done[name] = _core.load(name, default_in=default_in)
            if not json:
                where = f"; new sockets of {default_in} get it" if default_in else ""
                say.line(f"{name} is loaded: sockets can choose {done[name]} until `knee unload {name}`{where}")
    except KernelUnsupported as error:
        so_far = f" Loaded before it: {', '.join(done)}." if done else ""
        raise KernelUnsupported(f"knee load: {error}.{so_far}".replace("..", ".")) from None
    if json:
        say.json({"schema": 1, "loaded": done})
    return 0


def check(command: str, algorithms: Sequence[str]) -> None:
    """Refuses names that are no algorithms of ours."""
    from tcpknee import _core

    known = [entry["name"] for entry in _core.algorithms()]
    unknown = next((name for name in algorithms if name not in known), None)
    if unknown is not None:
        raise UsageError(f'knee {command}: got "{unknown}"; ' + suggest(unknown, known, "expected one of"))
