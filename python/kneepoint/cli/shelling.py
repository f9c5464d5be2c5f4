"""`knee shell`: a command behind an emulated path."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from kneepoint import _core, compose, engines, human, say
from kneepoint.errors import UsageError
from kneepoint.progress import Phase

from .named import by_option, of_shell

_FILE = "<command line>"


def shell(command: Sequence[str], settings: Mapping[str, Any], *, algorithm: str, bpf: bool, quiet: bool) -> int:
    """`knee shell`. Returns the command's exit code, 128 + N when signal N ended it."""
    command = list(command) or [os.environ.get("SHELL", "/bin/sh")]
    scenario = _scenario(settings, algorithm)
    with ExitStack() as stack:
        with Phase("Loading the algorithm into the kernel", quiet=quiet):
            names = stack.enter_context(engines.algorithms(scenario, _FILE, bpf=bpf))
        outcome = _core.shell(scenario, command, names)
    if not quiet:
        for line in (_measured(outcome.links), *outcome.warnings):
            say.warn(f"knee shell: {line}")
    return int(outcome.exit_code)


def _scenario(settings: Mapping[str, Any], algorithm: str) -> _core.Scenario:
    """The path as a scenario of one cell and one flow, whose algorithm is the far end's."""
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
        scenario = _core.parse(text, _FILE)
    if len(scenario.cells) > 1:
        axes = ", ".join(f"{key}={value}" for key, value in scenario.cells[0]["axes"])
        raise UsageError(
            f"knee shell: got lists that make {len(scenario.cells)} cells; expected one path, such as that of the "
            f"first cell: {axes}."
        )
    return scenario


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
