"""How fast dumps of ss are imported, on one made of real sockets in a network namespace of its own, many times over.

    python tools/bench_import.py [--megabytes 1000] [--connections 2000] [--pairs 3]

The same text is read by `knee import ss` whole (Parquet written), by its parser alone, and, a part of it, by pandas
with a regular expression per field, in turns. MB are 10^6 bytes, seconds are of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kneepoint import _core

FIELDS = {
    "rtt": r"\brtt:([\d.]+)/", "rttvar": r"\brtt:[\d.]+/([\d.]+)", "rto": r"\brto:([\d.]+)", "mss": r"\bmss:(\d+)",
    "cwnd": r"\bcwnd:(\d+)", "ssthresh": r"\bssthresh:(\d+)", "bytes_sent": r"\bbytes_sent:(\d+)",
    "bytes_acked": r"\bbytes_acked:(\d+)", "bytes_received": r"\bbytes_received:(\d+)", "segs_out": r"\bsegs_out:(\d+)",
    "pacing_rate": r"\bpacing_rate (\d+)", "delivery_rate": r"\bdelivery_rate (\d+)", "retrans": r"\bretrans:\d+/(\d+)",
    "minrtt": r"\bminrtt:([\d.]+)",
}  # fmt: skip
"""What a notebook takes of a line; ours takes everything."""

DUMP = """
import socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
held = []
for n in range(int(sys.argv[1])):
    near = socket.create_connection(listener.getsockname())
    far, _ = listener.accept()
    near.sendall(bytes(1 + n % 4000))
    held += [near, far]
with open(sys.argv[2], "w") as out:
    subprocess.run(["ss", "-tineomH"], stdout=out, check=True)
"""


def main() -> None:
    """Makes the text, measures."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--megabytes", type=int, default=1000)
    arguments.add_argument("--part-megabytes", type=int, default=50, help="what pandas reads")
    arguments.add_argument("--connections", type=int, default=2000)
    arguments.add_argument("--pairs", type=int, default=3)
    arguments.add_argument("--scratch", type=Path, help="folder for the text, by default of the system")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=given.scratch) as scratch:
        folder = Path(scratch)
        own = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
        dump = folder / "dump.txt"
        subprocess.run([*own, sys.executable, "-c", DUMP, str(given.connections), str(dump)], check=True)
        whole = repeated(dump, folder / "whole.txt", given.megabytes * 10**6)
        part = repeated(dump, folder / "part.txt", given.part_megabytes * 10**6)
        print(
            f"{platform.release()}, {os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}; "
            f"{whole.stat().st_size / 1e6:.0f} MB of ss -tineomH, {2 * given.connections} sockets a dump",
            flush=True,
        )
        tell("import, whole", whole, lambda: imported(whole, folder / "out"), given.pairs)
        tell("parser alone", whole, lambda: parsed(whole), given.pairs)
        ours, theirs = [], []
        for _ in range(given.pairs):
            ours.append(used(lambda: imported(part, folder / "out")))
            theirs.append(used(lambda: by_pandas(part)))
        ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
        size = part.stat().st_size / 1e6
        print(
            f"{size:.0f} MB: import {size / statistics.median(ours):.0f} MB/s, "
            f"pandas with {len(FIELDS)} regular expressions {size / statistics.median(theirs):.1f} MB/s: "
            f"{ratio:.0f} times as long (median of {given.pairs} pairs)"
        )
    print(f"peak memory, with pandas: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def repeated(dump: Path, into: Path, size: int) -> Path:
    """The dump again and again, a minute apart."""
    text = dump.read_bytes()
    with into.open("wb") as out:
        for number in range(max(1, size // len(text))):
            out.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(1_787_313_600 + 60 * number))}\n".encode())
            out.write(text)
    return into


def used(act: Callable[[], None]) -> float:
    """Seconds of the processor, of this process and its threads."""
    before = time.process_time()
    act()
    return time.process_time() - before


def tell(what: str, text: Path, act: Callable[[], None], times: int) -> None:
    seconds = statistics.median(used(act) for _ in range(times))
    size = text.stat().st_size / 1e6
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what}: {size / seconds:.0f} MB/s of one processor; peak memory so far {memory:.0f} MiB", flush=True)


def asked(text: Path, out: Path | None, dry_run: bool) -> str:
    more = {"strict": True, "anonymize": None, "zone_s": None, "host": None, "dry_run": dry_run}
    return json.dumps({"files": [str(text)], "out": out and str(out), **more})


def imported(text: Path, out: Path) -> None:
    """Into a folder that is emptied again."""
    report, _ = _core.import_ss(asked(text, out, False), None)
    assert report["lines_not_understood"] == 0 and report["rows"] > 0
    for path in out.iterdir():
        path.unlink()


def parsed(text: Path) -> None:
    report, rows = _core.import_ss(asked(text, None, True), None)
    assert report["rows"] > 0 and rows is None


def by_pandas(text: Path) -> None:
    """As notebooks do it: a list of dicts, then a frame."""
    import pandas

    patterns = {name: re.compile(pattern) for name, pattern in FIELDS.items()}
    rows = []
    with text.open() as lines:
        for line in lines:
            if not line.startswith(("\t", " ")):
                head = line.split()
                continue
            row = {"local": head[3], "remote": head[4]}
            for name, pattern in patterns.items():
                if match := pattern.search(line):
                    row[name] = match[1]
            rows.append(row)
    frame = pandas.DataFrame(rows)
    frame[list(FIELDS)] = frame[[*FIELDS]].apply(pandas.to_numeric)
    assert len(frame) > 0


if __name__ == "__main__":
    main()
