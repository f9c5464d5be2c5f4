"""The network namespace of `fq_qdisc_latency.py`: `python -m tcpknee.validation.claims.checks.qdisc_waits free|burst`.

It puts a qdisc on its loopback interface, says "ready", sends at a line on stdin, and says "sent" when all of it has
left the qdisc. `free`: a transfer through a qdisc that holds nothing back, fq where the kernel has it, else HTB at a
rate that is never reached. `burst`: datagrams of one size, all at once, through HTB at a low rate.
"""

from __future__ import annotations

import socket
import sys
import time

from tcpknee import say

from . import inside, loopback

RATE_BITS_PER_SEC = 10_000_000
BURST_PKTS = 64
_PAYLOAD_BYTES = 1400
WIRE_BYTES = _PAYLOAD_BYTES + 8 + 20 + 14
"""With the headers of UDP, IP and the device, which the qdisc counts."""

_TRANSFER_BYTES = 20_000_000


def _htb(rate: str) -> list[list[str]]:
    """With room for one packet to leave early."""
    room = ["burst", "1600b", "cburst", "1600b"] if rate == f"{RATE_BITS_PER_SEC}bit" else []
    return [
        ["qdisc", "replace", "dev", "lo", "root", "handle", "1:", "htb", "default", "1"],
        ["class", "replace", "dev", "lo", "parent", "1:", "classid", "1:1", "htb", "rate", rate, *room],
    ]


KINDS = {
    "free": ([["qdisc", "replace", "dev", "lo", "root", "fq"]], _htb("32gbit")),
    "burst": (_htb(f"{RATE_BITS_PER_SEC}bit"),),
}
"""Words of tc that set up each; the first way that the kernel has is taken."""


def main(kind: str) -> int:
    """Exit code 2, and a line on stderr, where the namespace cannot be set up."""
    if not inside.is_ready(qdiscs=KINDS[kind]):
        return 2
    _transfer() if kind == "free" else _burst()
    say.json("sent")
    say.flush()
    # The namespace stays until the trace is over.
    sys.stdin.readline()
    return 0


def _transfer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, loopback.sending(listener) as sender:
        sender.sendall(bytes(_TRANSFER_BYTES))


def _burst() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as near,
    ):
        far.bind(("127.0.0.1", 0))
        near.connect(far.getsockname())
        for _ in range(BURST_PKTS):
            near.send(bytes(_PAYLOAD_BYTES))
        # Where nobody listens, each datagram brings an ICMP message, which waits in the same qdisc.
        time.sleep(3 * BURST_PKTS * WIRE_BYTES * 8 / RATE_BITS_PER_SEC)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
