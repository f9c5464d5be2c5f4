"""Draws the pictures of `knee watch` for docs/pictures, from real connections in a namespace of its own.

    python tools/watch_pictures.py

Needs root, or user namespaces; nothing of the host is changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
INSIDE = "TCPKNEE_PICTURES_INSIDE"
SIZES = ((80, 24), (200, 50))
SECONDS = 8.0


def main() -> None:
    """Enters a namespace, makes connections, draws."""
    if not os.environ.get(INSIDE):
        own = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
        os.execvpe(own[0], [*own, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})
    for command in (
        "ip link set lo mtu 1500 up",
        "tc qdisc add dev lo root tbf rate 80mbit burst 32kb limit 150kb",
    ):
        subprocess.run(command.split(), check=True)
    connect()
    PICTURES.mkdir(exist_ok=True)
    for size in SIZES:
        asyncio.run(draw(size))


def connect() -> None:
    """Connections of several algorithms: some send all they can, some now and then, some not at all."""
    allowed = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    with socket.create_server(("127.0.0.1", 443), backlog=64) as listener:
        for number in range(60):
            near = socket.socket()
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, allowed[number % len(allowed)].encode())
            near.connect(("127.0.0.1", 443))
            far, _ = listener.accept()
            size, pause_s = ((60_000, 0.0), (20_000, 0.3), (500, 1.0))[min(2, number // 6)]
            if number < 20:
                threading.Thread(target=send, args=(near, size, pause_s), daemon=True).start()
                # One reader is too slow: its window fills.
                threading.Thread(target=drain, args=(far, 0.5 if number == 0 else 0.0), daemon=True).start()


def send(near: socket.socket, size: int, pause_s: float) -> None:
    """Until the process ends."""
    with contextlib.suppress(OSError):
        while True:
            near.sendall(bytes(size))
            time.sleep(pause_s)


def drain(far: socket.socket, pause_s: float) -> None:
    """Likewise."""
    with contextlib.suppress(OSError):
        while far.recv(1 << 16):
            time.sleep(pause_s)


async def draw(size: tuple[int, int]) -> None:
    """The table and a connection's page at this size."""
    from tcpknee.live.watch.app import Watch

    app = Watch({}, None, 0.5, "acked_bits_per_sec")
    name = f"watch-{size[0]}x{size[1]}"
    async with app.run_test(size=size) as pilot:
        await asyncio.sleep(SECONDS)
        write(name, app.export_screenshot(title="knee watch"))
        if size == SIZES[0]:
            await pilot.press("enter")
            await asyncio.sleep(1)
            write("watch-connection", app.export_screenshot(title="knee watch: a connection"))


def write(name: str, svg: str) -> None:
    """Without the fonts that the exporter would have a browser load: monospace is on every machine."""
    own = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    (PICTURES / f"{name}.svg").write_text(own, encoding="utf-8")


if __name__ == "__main__":
    main()
