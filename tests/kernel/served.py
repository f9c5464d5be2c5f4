"""Connections to a server of a cgroup: served.py CGROUP FAMILY ADDRESS, then lines of JSON on stdin.

Each line is [[client's address, server's address, server's port or null], ...]; the answer is a line with the server's
end of each connection: [client's address, algorithm, cookie]. Clients are of the caller's cgroup, and only the server's
ends of this one. The first line that is printed is the server's port.
"""

import json
import socket
import struct
import sys
from pathlib import Path

SO_COOKIE = 57
TCP_CONGESTION = 13


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


def main() -> None:
    cgroup, family, address = sys.argv[1:4]
    server = listening(Path(cgroup), socket.AddressFamily[family], address)
    print(server.getsockname()[1], flush=True)
    kept = []
    for line in sys.stdin:
        told = []
        for client, to, port in json.loads(line):
            one = socket.socket(socket.AF_INET6 if ":" in client else socket.AF_INET)
            one.bind((client, 0))
            one.connect((to, port or server.getsockname()[1]))
            far, peer = server.accept()
            algorithm = far.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode()
            (cookie,) = struct.unpack("Q", far.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8))
            told.append([peer[0], algorithm, cookie])
            kept += [one, far]
        print(json.dumps(told), flush=True)
        for end in kept:
            end.close()
        kept.clear()


main()
