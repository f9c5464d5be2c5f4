"""One network namespace of `per_namespace_choice.py`: `python -m tcpknee.validation.claims.checks.namespaced ALGORITHM
QDISC...`.

It sets the namespace's default and the qdisc of its loopback interface, the first that the kernel has, says "ready",
and at a line on stdin transfers data over a socket that asked for nothing. It tells what the socket ran, what the qdisc
carried, and when.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

from tcpknee import say

from . import inside, loopback

_BYTES = 4_000_000
_SECONDS_LEAST = 1.0
"""Long enough that two of them meet, even where one is woken late."""


def main(algorithm: str, *qdiscs: str) -> int:
    """Exit code 2, and a line on stderr, where the namespace cannot be set up."""
    default = ("sysctl", "-qw", f"net.ipv4.tcp_congestion_control={algorithm}")
    if not inside.is_ready(default, qdiscs=[[("qdisc", "replace", "dev", "lo", "root", one)] for one in qdiscs]):
        return 2
    began = time.monotonic()
    ran = _transfer()
    shown = subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev", "lo"], capture_output=True, text=True, check=True)
    root = next(entry for entry in json.loads(shown.stdout) if entry.get("root"))
    say.json(
        {
            "algorithm": ran,
            "qdisc": root["kind"],
            "qdisc_pkts": root["packets"],
            "netns": str(Path("/proc/self/ns/net").readlink()),
            "began": began,
            "ended": time.monotonic(),
        }
    )
    return 0


def _transfer() -> str:
    """The algorithm that the kernel gave the sending socket."""
    with socket.create_server(("127.0.0.1", 0)) as listener, loopback.sending(listener) as sender:
        end, sent = time.monotonic() + _SECONDS_LEAST, 0
        while sent < _BYTES or time.monotonic() < end:
            sent += sender.send(bytes(16_384))
            time.sleep(0.001)
        return sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
