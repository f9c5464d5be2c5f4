"""How fast dumps of ss and logs of nginx are imported: both real, many times over.

    python tools/bench_import.py [--megabytes 1000] [--connections 2000] [--requests 20000] [--pairs 3]

The dump is of real sockets, the logs are of a real nginx under load, in network namespaces of their own. A text is read
by `knee import` whole (Parquet written), by its parser alone, and, a part of the dump, by pandas with a regular
expression per field, in turns. MB are 10^6 bytes, seconds are of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tcpknee import _core

SS: dict[str, Any] = {}

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

COMBINED = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
)
FORMATS = {
    "combined": COMBINED,
    "tcpinfo": f"{COMBINED} $request_time $tcpinfo_rtt $tcpinfo_rttvar $tcpinfo_snd_cwnd $tcpinfo_rcv_space",
}
NGINX = """
import http.client, pathlib, random, subprocess, sys, time
folder, requests = pathlib.Path(sys.argv[1]), int(sys.argv[2])
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
for name, size in (("small", 300), ("page", 20_000), ("big", 300_000)):
    (folder / "html" / name).write_bytes(bytes(size))
server = subprocess.Popen(["nginx", "-p", str(folder), "-c", "nginx.conf", "-g", "daemon off;"])
choose = random.Random(1)
agents = ("curl/7.88.1", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
link = None
for number in range(requests):
    if number % 50 == 0:
        for attempt in range(100):
            try:
                link = http.client.HTTPConnection("127.0.0.1", 8080)
                link.connect()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
    path = f"/{choose.choice(('small', 'small', 'page', 'big', 'gone'))}?id={number}&q=%22x%22"
    link.request("GET", path, headers={"User-Agent": choose.choice(agents), "Referer": "https://example.org/a?b=c"})
    link.getresponse().read()
server.terminate()
server.wait()
"""


def main() -> None:
    """Makes the text, measures."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--megabytes", type=int, default=1000)
    arguments.add_argument("--part-megabytes", type=int, default=50, help="what pandas reads")
    arguments.add_argument("--connections", type=int, default=2000)
    arguments.add_argument("--requests", type=int, default=20_000, help="that nginx answers")
    arguments.add_argument("--pairs", type=int, default=3)
    arguments.add_argument("--scratch", type=Path, help="folder for the text, by default of the system")
    given = arguments.parse_args()
    own = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    with tempfile.TemporaryDirectory(dir=given.scratch) as scratch:
        folder = Path(scratch)
        dump = folder / "dump.txt"
        subprocess.run([*own, sys.executable, "-c", DUMP, str(given.connections), str(dump)], check=True)
        whole = repeated(dump, folder / "whole.txt", given.megabytes * 10**6)
        part = repeated(dump, folder / "part.txt", given.part_megabytes * 10**6)
        print(
            f"{platform.release()}, {os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}; "
            f"{whole.stat().st_size / 1e6:.0f} MB of ss -tineomH, {2 * given.connections} sockets a dump",
            flush=True,
        )
        out = folder / "out"
        measure("import ss", "ss", whole, out, SS, given.pairs)
        ours, theirs = [], []
        for _ in range(given.pairs):
            ours.append(used(lambda: imported("ss", part, out, SS)))
            theirs.append(used(lambda: by_pandas(part)))
        ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
        size = part.stat().st_size / 1e6
        print(
            f"{size:.0f} MB: import {size / statistics.median(ours):.0f} MB/s, "
            f"pandas with {len(FIELDS)} regular expressions {size / statistics.median(theirs):.1f} MB/s: "
            f"{ratio:.0f} times as long (median of {given.pairs} pairs)"
        )
        whole.unlink()
        if not shutil.which("nginx"):
            sys.exit("logs of nginx: not measured; needs nginx (Debian: nginx-light)")
        for name, log in logs(own, folder / "nginx", given.requests).items():
            whole = repeated(log, folder / "whole.log", given.megabytes * 10**6)
            how = {"format": FORMATS[name], "escape": "default"}
            measure(f"import nginx, {name}", "nginx", whole, out, how, given.pairs)
    print(f"peak memory, with pandas: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def logs(own: list[str], folder: Path, requests: int) -> dict[str, Path]:
    """What a real nginx logs of that many requests, by format."""
    for name in ("logs", "html"):
        (folder / name).mkdir(parents=True)
    formats = "".join(
        f"log_format {name}_ '{text}'; access_log logs/{name}.log {name}_;\n" for name, text in FORMATS.items()
    )
    (folder / "nginx.conf").write_text(
        "worker_processes 1; pid nginx.pid; error_log logs/error.log crit; events {}\n"
        f"http {{ {formats} server {{ listen 127.0.0.1:8080; root html; keepalive_requests 1000; }} }}\n"
    )
    # Its workers are of another user.
    for path in (folder.parent, folder, folder / "html"):
        path.chmod(0o755)
    subprocess.run(
        [*own, sys.executable, "-c", NGINX, str(folder), str(requests)], check=True, stderr=subprocess.DEVNULL
    )
    return {name: folder / f"logs/{name}.log" for name in FORMATS}


def repeated(text: Path, into: Path, size: int) -> Path:
    """The text again and again; a dump of ss begins with its time, a minute apart."""
    once = text.read_bytes()
    with into.open("wb") as out:
        for number in range(max(1, size // len(once))):
            if text.suffix == ".txt":
                out.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(1_787_313_600 + 60 * number))}\n".encode())
            out.write(once)
    return into


def used(act: Callable[[], None]) -> float:
    """Seconds of the processor, of this process and its threads."""
    before = time.process_time()
    act()
    return time.process_time() - before


def measure(what: str, importer: str, text: Path, out: Path, how: Mapping[str, Any], times: int) -> None:
    tell(f"{what}, whole", text, lambda: imported(importer, text, out, how), times)
    tell(f"{what}, parser alone", text, lambda: parsed(importer, text, how), times)


def tell(what: str, text: Path, act: Callable[[], None], times: int) -> None:
    seconds = statistics.median(used(act) for _ in range(times))
    size = text.stat().st_size / 1e6
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what}: {size / seconds:.0f} MB/s of one processor; peak memory so far {memory:.0f} MiB", flush=True)


def asked(text: Path, out: Path | None, how: Mapping[str, Any], dry_run: bool) -> str:
    more = {"strict": True, "anonymize": None, "dry_run": dry_run}
    return json.dumps({"files": [str(text)], "out": out and str(out), **more, "options": dict(how)})


def imported(importer: str, text: Path, out: Path, how: Mapping[str, Any]) -> None:
    """Into a folder that is emptied again."""
    report, _ = _core.import_files(importer, asked(text, out, how, False), None)
    assert report["lines_not_understood"] == 0 and report["rows"] > 0
    for path in out.iterdir():
        path.unlink()


def parsed(importer: str, text: Path, how: Mapping[str, Any]) -> None:
    report, rows = _core.import_files(importer, asked(text, None, how, True), None)
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
    numbers = frame.columns.intersection(list(FIELDS))
    frame[numbers] = frame[numbers].apply(pandas.to_numeric)
    assert len(frame) > 0


if __name__ == "__main__":
    main()
