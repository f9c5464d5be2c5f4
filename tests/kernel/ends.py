"""Connections whose ends a test knows, because it holds them or because a program of its own reads them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

READ_BYTES = 256 * 1024


@contextmanager
def listening() -> Iterator[tuple[socket.socket, int]]:
    """A socket that listens on loopback, and its port."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=64)) as listener:
        yield listener, listener.getsockname()[1]


def exchange(listener: socket.socket, size: int) -> tuple[socket.socket, socket.socket]:
    """Both ends of a new connection, of which the first has sent that much and the second has read it."""
    near = socket.create_connection(listener.getsockname())
    far, _ = listener.accept()
    near.sendall(bytes(size))
    assert len(far.recv(size, socket.MSG_WAITALL)) == size
    return near, far


def serve(port: int) -> None:
    """Prints "ready" and reads every connection to its end, until the process is killed."""

    def drain(connection: socket.socket) -> None:
        with connection:
            while connection.recv(READ_BYTES):
                pass

    with socket.create_server(("0.0.0.0", port), backlog=512) as listener:
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=drain, args=(connection,), daemon=True).start()
