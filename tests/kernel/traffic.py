"""Varied TCP flows between two hosts, run as a program on each of them.

server: `traffic.py server PORT` prints "ready" and reads every connection to its end, until it is killed.
client: `traffic.py client ADDRESS PORT ALGORITHM PATTERN FLOWS SECONDS` sends and prints one JSON object: the
congestion control that the sockets ran and the bytes sent.
"""

import json
import socket
import sys
import threading
import time
from collections.abc import Callable

from ends import serve

CHUNK = bytes(256 * 1024)


class Client:
    """One flow after another, or one for the whole time, to the same server."""

    def __init__(self, address: str, port: int, algorithm: str, end: float) -> None:
        self.to = (address, port)
        self.algorithm = algorithm
        self.end = end
        self.ran: set[str] = set()
        self.sent_bytes = 0

    def is_over(self) -> bool:
        return time.monotonic() >= self.end

    def connect(self) -> socket.socket:
        sock = socket.socket()
        # Before connect(): the first ACK that cong_control sees is then the SYN-ACK, before init().
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.algorithm.encode())
        sock.settimeout(30)
        sock.connect(self.to)
        self.ran.add(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode())
        return sock

    def send(self, sock: socket.socket, total_bytes: int) -> None:
        left = total_bytes
        while left > 0 and not self.is_over():
            left -= sock.send(CHUNK[: min(left, len(CHUNK))])
        self.sent_bytes += total_bytes - left

    def bulk(self) -> None:
        with self.connect() as sock:
            while not self.is_over():
                self.send(sock, len(CHUNK))

    def capped(self) -> None:
        """A pacing limit of 2 MB/s set by the application."""
        with self.connect() as sock:
            # SO_MAX_PACING_RATE of asm-generic/socket.h; the module has no name for it.
            sock.setsockopt(socket.SOL_SOCKET, 47, 2_000_000)
            while not self.is_over():
                self.send(sock, len(CHUNK))

    def steady(self) -> None:
        """An application that makes 20 kB every 10 ms, so that the window is rarely full."""
        with self.connect() as sock:
            while not self.is_over():
                self.send(sock, 20_000)
                time.sleep(0.01)

    def bursts(self) -> None:
        """Half a megabyte, then a pause that grows from 50 ms to over a second, and again."""
        with self.connect() as sock:
            pause_s = 0.05
            while not self.is_over():
                self.send(sock, 500_000)
                time.sleep(pause_s)
                pause_s = pause_s * 1.6 if pause_s < 1 else 0.05

    def short(self) -> None:
        """Connections of 200 kB, one after another."""
        while not self.is_over():
            with self.connect() as sock:
                self.send(sock, 200_000)


PATTERNS: dict[str, Callable[[Client], None]] = {
    name: getattr(Client, name) for name in ("bulk", "capped", "steady", "bursts", "short")
}


def send(address: str, port: int, algorithm: str, pattern: str, flows: int, seconds: float) -> None:
    clients = [Client(address, port, algorithm, time.monotonic() + seconds) for _ in range(flows)]
    threads = [threading.Thread(target=PATTERNS[pattern], args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ran = sorted(set().union(*(client.ran for client in clients)))
    print(json.dumps({"ran": ran, "sent_bytes": sum(client.sent_bytes for client in clients)}))


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve(int(sys.argv[2]))
    else:
        where, port, algorithm, pattern, flows, seconds = sys.argv[2:]
        send(where, int(port), algorithm, pattern, int(flows), float(seconds))
