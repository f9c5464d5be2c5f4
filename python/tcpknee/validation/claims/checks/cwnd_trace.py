"""`cwnd-trace`: `knee trace` on a connection of this process over the loopback interface."""

from __future__ import annotations

import socket
import threading

from tcpknee.live import trace

from . import loopback
from .check import Found, Request, fact

_COLUMNS = ("t_ns", "snd_una", "snd_cwnd", "snd_ssthresh", "srtt_us")
"""What the article's script printed of each ACK."""

_BYTES = 32_000_000
_CHUNK_BYTES = 64 * 1024
_TRACE_SEC = 20.0
"""An upper bound: the trace ends with the transfer."""

_ACKS_LEAST = 20


def check(request: Request) -> Found:
    """A row for each ACK, with what the script printed."""
    over, begun = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        moved = threading.Thread(target=_transfer, args=(listener, begun, over), daemon=True)
        moved.start()
        found = trace.connections(
            request.folder / "trace",
            port=port,
            seconds=_TRACE_SEC,
            stop=over,
            progress=lambda rows, lost: begun.set(),
        )
        moved.join()
    rows = found.table("acks").to_pylist()
    # Both ends are here: the sender's rows are those in which data is under way.
    sent = [row for row in rows if (row["bytes_acked"] or 0) > 1]
    present = [name for name in _COLUMNS if rows and name in rows[0]]
    filled = [name for name in _COLUMNS if sent and all(row.get(name) is not None for row in sent)]
    times = [row["t_ns"] for row in sent]
    advanced = len({row["snd_una"] for row in sent})
    outcomes = [
        fact(
            "a row has t, snd_una, cwnd, ssthresh and srtt",
            len(present) == len(_COLUMNS),
            ", ".join(present) or "no row",
        ),
        fact("none of them is null in a sender's row", len(filled) == len(_COLUMNS), f"{len(sent)} rows"),
        fact(
            f"there are {_ACKS_LEAST} ACKs or more, in order of time",
            len(sent) >= _ACKS_LEAST and times == sorted(times),
            f"{len(sent)} rows",
        ),
        fact("snd_una moves with the ACKs", advanced >= _ACKS_LEAST, f"{advanced} values of snd_una"),
    ]
    windows = [row["snd_cwnd"] for row in sent]
    shown = f"{len(sent)} ACKs, cwnd {min(windows)} to {max(windows)} segments" if windows else "no ACK"
    return Found(outcomes, [("trace", f"{shown}, {found.about['lost']} records lost")])


def _transfer(listener: socket.socket, begun: threading.Event, over: threading.Event) -> None:
    """Sends once the trace is under way."""
    begun.wait(_TRACE_SEC)
    try:
        with loopback.sending(listener) as sender:
            for _ in range(_BYTES // _CHUNK_BYTES):
                sender.sendall(bytes(_CHUNK_BYTES))
    finally:
        over.set()
