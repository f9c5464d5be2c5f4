"""Connections to a server of a cgroup: served.py CGROUP FAMILY ADDRESS, then lines of JSON on stdin.

Each line is {"connections": [[client's address, server's address, server's port or null], ...]}; the answer is a line
with the server's end of each connection: [client's address, algorithm, cookie]. Clients are of the caller's cgroup, and
only the server's ends of this one. The first line that is printed is the server's port.

With "send_bytes", the server sends as much over each connection before it is closed, all at once; "bytes_per_sec" says
how fast it does so with each algorithm.
"""

import json
import selectors
import socket
import struct
import sys
from pathlib import Path

SO_MAX_PACING_RATE = 47
SO_COOKIE = 57
TCP_CONGESTION = 13

Pair = tuple[socket.socket, socket.socket]
"""The client's end of a connection, and the server's."""


def listening(cgroup: Path, family: socket.AddressFamily, address: str) -> socket.socket:
    """A socket belongs to the cgroup in which it is made."""
    procs = cgroup / "cgroup.procs"
    before = Path("/proc/self/cgroup").read_text().splitlines()[-1].partition("::")[2]
    root = cgroup.parent
    procs.write_text("0")
    made = socket.socket(family)
    (root / before.lstrip("/") / "cgroup.procs").write_text("0")
    if family is socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    made.bind((address, 0))
    made.listen(64)
    return made


def algorithm(end: socket.socket) -> str:
    return end.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode()


def send(pairs: list[Pair], size_bytes: int) -> None:
    """From every server's end to its client, side by side, until all have everything."""
    unsent, unread = {}, {}
    with selectors.DefaultSelector() as ready:
        for client, server in pairs:
            server.setblocking(False)
            ready.register(server, selectors.EVENT_WRITE)
            ready.register(client, selectors.EVENT_READ)
            unsent[server], unread[client] = size_bytes, size_bytes
        while unread:
            for key, _ in ready.select():
                end = key.fileobj
                if end in unsent:
                    unsent[end] -= end.send(bytes(unsent[end]))
                    if not unsent[end]:
                        ready.unregister(end)
                else:
                    unread[end] -= len(end.recv(1 << 16))
                    if not unread[end]:
                        ready.unregister(end)
                        del unread[end]


def main() -> None:
    cgroup, family, address = sys.argv[1:4]
    server = listening(Path(cgroup), socket.AddressFamily[family], address)
    print(server.getsockname()[1], flush=True)
    for line in sys.stdin:
        asked, told, pairs = json.loads(line), [], []
        for client, to, port in asked["connections"]:
            one = socket.socket(socket.AF_INET6 if ":" in client else socket.AF_INET)
            one.bind((client, 0))
            one.connect((to, port or server.getsockname()[1]))
            far, peer = server.accept()
            (cookie,) = struct.unpack("Q", far.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8))
            told.append([peer[0], algorithm(far), cookie])
            pairs.append((one, far))
        if "send_bytes" in asked:
            for _, far in pairs:
                rate = asked["bytes_per_sec"][algorithm(far)]
                far.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, rate)
            send(pairs, asked["send_bytes"])
        print(json.dumps(told), flush=True)
        for pair in pairs:
            for end in pair:
                end.close()


main()
