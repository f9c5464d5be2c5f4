"""Both ends of experiments about settings that no key of a scenario has: programs of a lab, run by their path.

ends.py [--sysctl NAME=VALUE]... stream|age|ask|burst [NUMBER] server|client

Each sets the sysctls in its own namespace first. The client prints a JSON object whose `value` is what it measured:

    stream       ns per byte of one connection, after SKIP_SEC, for LENGTH_SEC
    age          mean age in us of records on their arrival, likewise; they are written as fast as the socket takes them
    ask          mean time in us until an answer of ANSWER_BYTES is there, one after the other, likewise
    burst N      mean time in us until the server has answered, over N connections that are opened at once, while it
                 accepts none for PAUSE_SEC
"""

import argparse
import json
import os
import re
import resource
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PORT = 5201
SKIP_SEC, LENGTH_SEC = 1.0, 1.5
PAUSE_SEC = 0.05
PATIENCE_SEC = 5.0
RECORD_BYTES = 1000
ANSWER_BYTES = 20_000
CHUNK_BYTES = 1 << 17
STAMP = struct.Struct("=Q")
MOST_FILES = 8192


def stream_server() -> None:
    chunk = bytes(CHUNK_BYTES)
    serve(lambda: chunk)


def stream_client() -> float:
    done = 0
    with connected() as connection:
        begun = time.monotonic() + SKIP_SEC
        while (now := time.monotonic()) < begun + LENGTH_SEC:
            got = len(connection.recv(CHUNK_BYTES))
            if now >= begun:
                done += got
    return float(now - begun) * 1e9 / max(done, 1)


def age_server() -> None:
    rest = bytes(RECORD_BYTES - STAMP.size)
    serve(lambda: STAMP.pack(time.monotonic_ns()) + rest)


def age_client() -> float:
    ages: list[int] = []
    held = b""
    with connected() as connection:
        begun = time.monotonic() + SKIP_SEC
        while (now := time.monotonic()) < begun + LENGTH_SEC:
            held += connection.recv(CHUNK_BYTES)
            arrived_ns = time.monotonic_ns()
            whole = len(held) - len(held) % RECORD_BYTES
            if now >= begun:
                stamps = (STAMP.unpack_from(held, at)[0] for at in range(0, whole, RECORD_BYTES))
                ages += [arrived_ns - stamp for stamp in stamps]
            held = held[whole:]
    return sum(ages) / max(len(ages), 1) / 1e3


def ask_server() -> None:
    answer = bytes(ANSWER_BYTES)
    with listening() as listener:
        while True:
            connection, _ = listener.accept()
            with suppress(OSError), connection:
                while connection.recv(1):
                    connection.sendall(answer)


def ask_client() -> float:
    waits: list[float] = []
    with connected() as connection:
        begun = time.monotonic()
        while (asked := time.monotonic()) < begun + SKIP_SEC + LENGTH_SEC:
            connection.send(b"x")
            left = ANSWER_BYTES
            while left:
                left -= len(connection.recv(left))
            if asked >= begun + SKIP_SEC:
                waits.append(time.monotonic() - asked)
    return sum(waits) / max(len(waits), 1) * 1e6


def burst_server() -> None:
    # The longest queue there is: net.core.somaxconn cuts it.
    with listening(backlog=1 << 16) as listener:
        first = [listener.accept()[0]]
        first[0].recv(1)
        time.sleep(PAUSE_SEC)
        while True:
            connection, _ = listener.accept()
            connection.send(b"x")
            first.append(connection)


def burst_client(count: int) -> float:
    raised_limit()
    connection = connected()
    connection.send(b"x")
    selector = selectors.DefaultSelector()
    begun = time.monotonic()
    for _ in range(count):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex((os.environ["KNEE_SERVER"], PORT))
        selector.register(one, selectors.EVENT_READ)
    waits: list[float] = []
    while len(waits) < count and time.monotonic() < begun + PATIENCE_SEC:
        for key, _ in selector.select(begun + PATIENCE_SEC - time.monotonic()):
            waits.append(time.monotonic() - begun)
            selector.unregister(key.fileobj)
    # A connection that was not served has waited at least this long.
    waits += [PATIENCE_SEC] * (count - len(waits))
    return sum(waits) / count * 1e6


def listening(backlog: int = 1) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((os.environ["KNEE_SERVER"], PORT))
    raised_limit()
    listener.listen(backlog)
    return listener


def serve(data: Callable[[], bytes]) -> None:
    """Writes to each connection as fast as it takes it. The lab ends this program."""
    with listening() as listener:
        while True:
            connection, _ = listener.accept()
            # Until the far end closes it.
            with suppress(OSError), connection:
                while True:
                    connection.sendall(data())


def connected() -> socket.socket:
    """To the server, which may not listen yet."""
    until = time.monotonic() + PATIENCE_SEC
    while True:
        try:
            return socket.create_connection((os.environ["KNEE_SERVER"], PORT), timeout=PATIENCE_SEC)
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def raised_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sysctl", action="append", default=[])
    parser.add_argument("what", choices=("stream", "age", "ask", "burst"))
    parser.add_argument("count", type=int, nargs="?")
    parser.add_argument("role", choices=("server", "client"))
    asked = parser.parse_args()
    for setting in asked.sysctl:
        name, _, value = setting.partition("=")
        if not re.fullmatch(r"net\.[a-z0-9_.]+", name):
            sys.exit(f"--sysctl: got {name}; expected a name below net.")
        Path("/proc/sys", *name.split(".")).write_text(value)
    arguments = [asked.count] if asked.what == "burst" and asked.role == "client" else []
    value = globals()[f"{asked.what}_{asked.role}"](*arguments)
    if value is not None:
        print(json.dumps({"value": value}))


if __name__ == "__main__":
    main()
