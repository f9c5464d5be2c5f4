"""How a check's process in a network namespace begins: with a loopback interface, settings and a qdisc of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence

from tcpknee import say

Command = Sequence[str]


def is_ready(*settings: Command, qdiscs: Iterable[Sequence[Command]]) -> bool:
    """Sets up the namespace, says "ready" and waits for a line on stdin.

    `qdiscs` lists ways to set one up, each as commands of tc; the first way that the kernel takes is used. Returns
    False where the kernel refuses, and then says why on stderr."""
    refused = _refused([("ip", "link", "set", "lo", "up"), *settings])
    if not refused:
        for commands in qdiscs:
            refused = _refused([("tc", *words) for words in commands])
            if not refused:
                break
    if refused:
        say.warn(refused)
        return False
    say.json("ready")
    say.flush()
    sys.stdin.readline()
    return True


def _refused(commands: Sequence[Command]) -> str:
    """What the first command that fails says; "" where none does."""
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{' '.join(command)}: {done.stderr.strip()}"
    return ""
