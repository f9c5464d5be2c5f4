"""Connections of this process to itself, whose far end reads all that arrives."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_READ_BYTES = 64 * 1024


@contextmanager
def sending(listener: socket.socket) -> Iterator[socket.socket]:
    """The sending end of a new connection to `listener`. On leaving, it is shut down and all of it has been read."""
    with socket.create_connection(listener.getsockname()) as sender, listener.accept()[0] as receiver:
        reader = threading.Thread(target=_drain, args=(receiver,), daemon=True)
        reader.start()
        yield sender
        sender.shutdown(socket.SHUT_WR)
        reader.join()


def _drain(receiver: socket.socket) -> None:
    while receiver.recv(_READ_BYTES):
        pass
