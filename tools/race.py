"""Measures the race of the site's first page and writes site/race.csv: a download of 3 MB over an emulated path with
two congestion controls, twice each, byte by byte as it came. It needs root: race.py [FILE]."""

from __future__ import annotations

import http.server
import json
import platform
import shlex
import subprocess
import sys
import threading
from pathlib import Path

from tcpknee.writing import replacing

ROOT = Path(__file__).resolve().parent.parent
PATH = "--rate 30Mbit/s --rtt 60ms --loss 1%"
ALGORITHMS = ("cubic", "bbr1")
RUNS = 2
SIZE = 3_000_000
EVERY_SEC = 0.08
"""Between two rows: what a drawing can show."""

CLIENT = """
import json, socket, sys, time
start = time.monotonic()
server = socket.create_connection(("knee-host", int(sys.argv[1])))
server.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
rows, got = [(0.0, 0)], 0
while block := server.recv(1 << 16):
    got += len(block)
    rows.append((time.monotonic() - start, got))
print(json.dumps(rows))
"""


class File(http.server.BaseHTTPRequestHandler):
    """A server of as many bytes, whatever is asked."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(SIZE))

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


def measure(algorithm: str, port: int) -> list[tuple[float, int]]:
    """The seconds and bytes of one download, with no more rows than a drawing shows."""
    knee = Path(sys.executable).with_name("knee")
    words = [knee, "shell", *PATH.split(), "--algorithm", algorithm, "--", sys.executable, "-c", CLIENT, str(port)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"race: {shlex.join(map(str, words[:-3]))}: exit code {done.returncode}: {done.stderr}")
    every = [(float(seconds), int(got)) for seconds, got in json.loads(done.stdout.splitlines()[-1])]
    rows = every[:1]
    for row in every[1:-1]:
        if row[0] - rows[-1][0] >= EVERY_SEC:
            rows.append(row)
    return [*rows, every[-1]]


def main(out: Path) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), File) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        # In turn, so that what else the machine does meets both.
        found = [(name, run, measure(name, port)) for run in range(1, RUNS + 1) for name in ALGORITHMS]
        server.shutdown()
    with replacing(out, public=True) as file:
        lines = [
            f"# tools/race.py: knee shell {PATH}, {SIZE} bytes, Linux {'.'.join(platform.release().split('.')[:2])}\n"
        ]
        lines.append("algorithm,run,seconds,bytes\n")
        lines += [f"{name},{run},{seconds:.3f},{got}\n" for name, run, rows in sorted(found) for seconds, got in rows]
        file.write("".join(lines).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site" / "race.csv")
