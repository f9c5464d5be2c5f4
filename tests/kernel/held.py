"""Holds connections in the network namespace that it is started in: `python held.py COUNT`.

It says `ready`, sends on one of them until its stdin closes, and leaves the others idle.
"""

import contextlib
import resource
import socket
import subprocess
import sys
import threading
import time

# Several senders, so that no address runs out of ports.
PER_ADDRESS = 5_000


def main() -> None:
    count = int(sys.argv[1])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = []
    for first in range(0, count, PER_ADDRESS):
        address = (f"127.1.{first // PER_ADDRESS}.1", 5001)
        with socket.create_server(address, backlog=64) as listener:
            for _ in range(min(PER_ADDRESS, count - first)):
                near = socket.create_connection(address)
                held.append((near, listener.accept()[0]))
    if held:
        busy = held[0]
        for work in (send, drain):
            threading.Thread(target=work, args=busy, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


def send(near: socket.socket, far: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            near.sendall(bytes(20_000))
            time.sleep(0.01)


def drain(near: socket.socket, far: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while far.recv(1 << 20):
            pass


if __name__ == "__main__":
    main()
