"""`knee load`."""

from __future__ import annotations

import click

from tcpknee import say
from tcpknee.errors import KernelUnsupported, UsageError

from .options import algorithms_argument, json_option, quiet_option


@click.command("load", short_help="Put algorithms into the running kernel.")
@algorithms_argument
@click.option("--default-in", metavar="NETNS", help="Make it the default of a network namespace: a name or a PID.")
@json_option
@quiet_option
def command(algorithms: tuple[str, ...], default_in: str | None, json: bool, quiet: bool) -> int:
    """Put algorithms into the running kernel, without rebuilding it: sockets can choose knee_ALGO from then on.

    ALGO is a name, or a file of your own in C (docs/your-algorithm.md), which takes clang.

    They stay until `knee unload` or a reboot; one that is there already stays. It needs root and a kernel with BTF, 6.1
    or later.

    Example: knee load bbr3
    """
    from tcpknee import _core
    from tcpknee.algorithms import for_kernel
    from tcpknee.runs.progress import Phase

    algorithms = for_kernel.names("knee load", algorithms)
    if default_in is not None and len(algorithms) > 1:
        raise UsageError(
            "knee load --default-in: got several algorithms; expected one, as a namespace has one default."
        )
    done: dict[str, str] = {}
    try:
        for name in algorithms:
            with Phase(f"Loading {name} into the kernel", quiet=quiet):
                done[name], was_there = _core.load(name, default_in=default_in)
            if not json:
                where = f"; new sockets of {default_in} get it" if default_in else ""
                so = "was loaded already" if was_there else "is loaded"
                say.line(f"{name} {so}: sockets can choose {done[name]} until `knee unload {name}`{where}")
    except KernelUnsupported as error:
        so_far = f" Loaded before it: {', '.join(done)}." if done else ""
        raise KernelUnsupported(f"knee load: {error}.{so_far}".replace("..", ".")) from None
    if json:
        say.json({"schema": 1, "loaded": done})
    return 0
