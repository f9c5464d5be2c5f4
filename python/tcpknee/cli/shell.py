"""`knee shell`: a command behind an emulated path."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from tcpknee import human, say
from tcpknee.errors import UsageError

from . import completion

if TYPE_CHECKING:
    from tcpknee import _core

_FILE = "<command line>"


@click.command(
    "shell",
    short_help="Run a command behind an emulated path.",
    # What follows the command is the command's.
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", metavar="[--] [CMD...]", nargs=-1, type=click.UNPROCESSED)
@click.option("--rate", default="50Mbit/s", show_default=True, help="Rate towards the command, or 'unlimited'.")
@click.option("--rtt", default="40ms", show_default=True, help="Base round-trip time.")
@click.option("--loss", help="Loss towards the command: 1.5% at random, or 'periodic 0.1%'.")
@click.option("--ack-loss", help="Loss of what the command sends.")
@click.option("--buffer", help="Size of the queue: 1bdp, 256KiB, 170packets, 20ms.  [default: 1bdp]")
@click.option("--queue", shell_complete=completion.of(completion.queues), help="Kind of queue; `knee list queues`.")
@click.option(
    "--algorithm",
    default="cubic",
    show_default=True,
    shell_complete=completion.of(completion.algorithms),
    help="Congestion control towards the command, the far end's.",
)
@click.option("--bpf", is_flag=True, help="Our build of the algorithm, also where the kernel has its own.")
@click.option(
    "--set",
    "set_",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=completion.assignments,
    help="A key of [path], [sender] or [receiver], or a parameter of the algorithm, as in path.mtu=1400B, "
    "receiver.tcp_rmem_max=6MiB or flow.bbr1.cwnd_gain=2.5.",
)
@click.option("--quiet", "-q", is_flag=True, help="Do not say at the end what the link carried.")
def command(command: tuple[str, ...], **given: Any) -> int:
    """Run any command behind an emulated path: curl, a browser, by default your shell.

    It has this machine's files, terminal and environment, and a network whose only way out is the path. The host's
    loopback is at the name knee-host. Exit code: the command's.

    Example: knee shell --rate 20Mbit/s --rtt 60ms --loss 1% -- curl -O http://knee-host:8080/file
    """
    from tcpknee.runs import compose

    from .named import refuse_both

    settings = compose.assignments(given.pop("set_"))
    of_path = {f"path.{name}": name for name in ("rate", "rtt", "loss", "ack_loss", "buffer", "queue")}
    refuse_both("knee shell", {**of_path, "flow.algorithm": "algorithm"}, settings)
    given["algorithm"] = settings.pop("flow.algorithm", given["algorithm"])
    for key, name in of_path.items():
        if (value := given.pop(name)) is not None:
            settings.setdefault(key, compose.axis(value))
    return shell(command, settings, **given)


def shell(command: Sequence[str], settings: Mapping[str, Any], *, algorithm: str, bpf: bool, quiet: bool) -> int:
    """Returns the command's exit code, 128 + N when signal N ended it."""
    from tcpknee import _core
    from tcpknee.runs.job import algorithms
    from tcpknee.runs.progress import Phase

    _refuse_what_no_command_has(settings)
    command = list(command) or [os.environ.get("SHELL", "/bin/sh")]
    scenario = _scenario(settings, algorithm)
    with ExitStack() as stack:
        with Phase("Loading the algorithm into the kernel", quiet=quiet):
            names = stack.enter_context(algorithms(scenario, _FILE, bpf=bpf))
        outcome = _core.shell(scenario, command, names)
    for line in (*([] if quiet else [_measured(outcome.links)]), *outcome.warnings):
        say.warn(f"knee shell: {line}")
    return int(outcome.exit_code)


def _scenario(settings: Mapping[str, Any], algorithm: str) -> _core.Scenario:
    """The path as a scenario of one cell and one flow, whose algorithm is the far end's."""
    from tcpknee.runs import api, compose

    from .named import by_option, of_shell

    # The lab lives as long as the command and nobody looks at samples; both keys are at their limits.
    with by_option("knee shell", of_shell):
        text = compose.comparison(
            [algorithm],
            rate=settings["path.rate"],
            rtt=settings["path.rtt"],
            duration="24h",
            warmup="0s",
            repeat=1,
            set={"sample_interval": "1h", **settings},
        )
        scenario = api.parse(text, _FILE)
    if len(scenario.cells) > 1:
        axes = ", ".join(f"{key}={value}" for key, value in scenario.cells[0]["axes"])
        raise UsageError(
            f"knee shell: got lists that make {len(scenario.cells)} cells; expected one path, such as that of the "
            f"first cell: {axes}."
        )
    if sum(flow["count"] for flow in scenario.cells[0]["flows"]) > 1:
        raise UsageError(
            f'--algorithm: got "{algorithm}"; expected one algorithm, which every connection towards the command has.'
        )
    for line in scenario.without_effect(0, "kernel"):
        say.warn(f"Warning: {line}.")
    return scenario


def _refuse_what_no_command_has(settings: Mapping[str, Any]) -> None:
    """Keys of the run and of its flows: the command is the traffic. Raises `UsageError`."""
    for key in settings:
        table, _, name = key.partition(".")
        is_parameter = table == "flow" and "." in name
        if table not in ("path", "sender", "receiver") and not is_parameter:
            raise UsageError(
                f"--set {key}: got a key of a run or of its flows; expected one of path, sender or receiver, or a "
                "parameter of the algorithm, as the command itself is the traffic."
            )


def _measured(links: Sequence[Mapping[str, Any]]) -> str:
    """One line of what the link carried and how late."""
    return "; ".join(f"{name} {_direction(link)}" for name, link in zip(("down", "up"), links, strict=True))


def _direction(link: Mapping[str, Any]) -> str:
    """Of one direction: bytes, packets lost and dropped, rate and added delay."""
    parts = [f"{human.quantity('bytes', link['forwarded_bytes'])} in {human.counted(link['forwarded_pkts'], 'packet')}"]
    parts += [f"{link[f'{what}_pkts']} {what}" for what in ("lost", "dropped") if link[f"{what}_pkts"] is not None]
    if link["achieved_rate_bits_per_sec"] is not None:
        parts.append(f"{human.quantity('rate', link['achieved_rate_bits_per_sec'])} while busy")
    if link["added_delay_us_p99"] is not None:
        parts.append(f"99 % at most {human.quantity('time', link['added_delay_us_p99'])} late")
    return ", ".join(parts)
