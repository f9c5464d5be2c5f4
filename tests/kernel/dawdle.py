"""Hostile clients, `python dawdle.py PORT SLOW SILENT`: so many slow and silent ones stay connected until it is killed.

A slow one sends a byte of its request every four seconds, a silent one asks and never reads. One that is closed comes
again. Says "there" when all have come once.
"""

import selectors
import socket
import sys
import time

HEAD = b"GET /metrics HTTP/1.1\r\nHost: here\r\n"


def come(port: int, silent: bool) -> socket.socket:
    connection = socket.socket()
    # The least that the kernel gives, so that what is not read does not fit.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    connection.connect(("127.0.0.1", port))
    connection.sendall(HEAD + (b"\r\n" if silent else b"X: "))
    connection.setblocking(False)
    return connection


def main(port: int, slow: int, silent: int) -> None:
    selector = selectors.DefaultSelector()
    mute: list[socket.socket] = []

    def keep() -> None:
        while len(selector.get_map()) < slow:
            selector.register(come(port, False), selectors.EVENT_READ)
        while len(mute) < silent:
            mute.append(come(port, True))

    keep()
    print("there", flush=True)
    while True:
        due = time.monotonic() + 4
        while (left := due - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                selector.unregister(key.fileobj)
                key.fileobj.close()
            # 1: ESTABLISHED, the first byte of tcp_info. What has been reset is closed without a read.
            for connection in [one for one in mute if one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != 1]:
                mute.remove(connection)
                connection.close()
            keep()
        for key in list(selector.get_map().values()):
            try:
                key.fileobj.send(b"x")
            except OSError:
                selector.unregister(key.fileobj)
                key.fileobj.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
