"""What recording and exporting cost, measured on real loopback sockets in a network namespace of its own.

    python tools/bench_record.py [--connections 50000] [--seconds 20]

Dumps are compared with `ss -tinemH` writing text, in turns, by the processor time of each. Short connections are
counted by their generator, and each must have its final row. Needs root, or user namespaces; nothing of the host is
changed. Timings on a busy machine are upper bounds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tcpknee import _core

PER_PROCESS = 9_000
"""Connections of one process, which has both ends of each: below 20,000 descriptors."""
PROCESSES = 2
"""That make short connections."""
INSIDE = "TCPKNEE_BENCH_INSIDE"


def main() -> None:
    """Enters a namespace, makes the sockets, measures."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--connections", type=int, default=50_000)
    arguments.add_argument("--seconds", type=int, default=20, help="length of each recording")
    arguments.add_argument("--pairs", type=int, default=5)
    arguments.add_argument("--per-second", type=int, default=10_000, help="short connections")
    given = arguments.parse_args()
    if not os.environ.get(INSIDE):
        own = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
        os.execvpe(own[0], [*own, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)
    with established(500):
        tell_recording(1_000, record(given.seconds))
        tell_exporting(1_000, given.seconds)
    with established(given.connections):
        tell_dumps(given.pairs)
        tell_recording(2 * given.connections, record(given.seconds))
        tell_exporting(2 * given.connections, given.seconds)
    tell_short(given.per_second, seconds=5)


@contextmanager
def established(connections: int) -> Iterator[None]:
    """That many connections, held by several processes that never look at them."""
    holders = []
    try:
        for number, first in enumerate(range(0, connections, PER_PROCESS)):
            count = min(PER_PROCESS, connections - first)
            command = [sys.executable, "-c", HOLDER, str(number), str(count)]
            holders.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        for holder in holders:
            assert holder.stdout is not None
            if holder.stdout.readline() != b"ready\n":
                sys.exit("a process could not make its connections; `ulimit -Hn` should be 20000 at least")
        yield
    finally:
        for holder in holders:
            holder.communicate()


HOLDER = """
import resource, socket, sys
number, count = int(sys.argv[1]), int(sys.argv[2])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
listener = socket.create_server((f"127.1.{number}.1", 5001), backlog=64)
held = []
for n in range(count):
    near = socket.create_connection((f"127.1.{number}.1", 5001))
    far, _ = listener.accept()
    near.sendall(bytes(1 + n % 4000))
    far.recv(8192)
    held += [near, far]
listener.close()
print("ready", flush=True)
sys.stdin.read()
"""


def cpu(who: int) -> tuple[float, float]:
    """User and system seconds so far."""
    used = resource.getrusage(who)
    return used.ru_utime, used.ru_stime


def tell_dumps(pairs: int) -> None:
    """Our dump and that of ss, in turns."""
    ours, theirs = [], []
    sockets = 0
    for _ in range(pairs):
        before = cpu(resource.RUSAGE_SELF)
        batches = _core.sockets("{}", [])
        ours.append([now - then for now, then in zip(cpu(resource.RUSAGE_SELF), before, strict=True)])
        sockets = len(batches)
        del batches
        before = cpu(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryFile() as text:
            subprocess.run(["ss", "-tinemH"], stdout=text, check=True)
        theirs.append([now - then for now, then in zip(cpu(resource.RUSAGE_CHILDREN), before, strict=True)])
    total = statistics.median(sum(pair) for pair in ours)
    user = statistics.median(pair[0] for pair in ours)
    text_total = statistics.median(sum(pair) for pair in theirs)
    ratio = statistics.median(sum(b) / sum(a) for a, b in zip(ours, theirs, strict=True))
    print(
        f"one dump of {sockets:,} sockets: {total:.3f} s of CPU, user {1e6 * user / sockets:.2f} us per socket; "
        f"ss -tinemH {text_total:.3f} s, {ratio:.1f} times as much (median of {pairs} pairs)",
        flush=True,
    )


def record(seconds: float, *more: str) -> dict[str, object]:
    """A recording at 1 Hz by the command, as it says of itself."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tcpknee", "record", "--out", folder, "--for", f"{seconds}s", "--json"]
        done = subprocess.run([*command, *more], stdout=subprocess.PIPE, check=True)
    report: dict[str, object] = json.loads(done.stdout)
    return report


def tell_recording(sockets: int, report: dict[str, object]) -> None:
    """What it cost."""
    used, dumps = report["cpu"], report["dump_cpu"]
    assert isinstance(used, dict) and isinstance(dumps, dict)
    elapsed, rows = float(str(report["elapsed_us"])), float(str(report["rows"]))
    share = 100 * (used["user_us"] + used["system_us"]) / elapsed
    print(
        f"recording {sockets:,} sockets at 1 Hz: {share:.2f} % of a processor "
        f"(user {100 * used['user_us'] / elapsed:.2f}, system {100 * used['system_us'] / elapsed:.2f}); "
        f"{report['samples']} samples, {report['missed']} missed; "
        f"memory {float(str(report['peak_rss_bytes'])) / 1e6:.0f} MB; "
        f"{float(str(report['bytes'])) / rows:.0f} bytes on disk per row",
        flush=True,
    )


def tell_exporting(sockets: int, seconds: float) -> None:
    """What a sample of `knee export --prometheus` costs, and being scraped twice for each."""
    command = [sys.executable, "-m", "tcpknee", "export", "--prometheus", ":0", "--every", "1s"]
    exporter = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert exporter.stdout is not None
    url = exporter.stdout.readline().split()[1]

    def told() -> dict[str, float]:
        with urllib.request.urlopen(url) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}

    first = told()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.5)
        last = told()
    exporter.terminate()
    exporter.wait()
    samples = last["tcpknee_samples_total"] - first["tcpknee_samples_total"]
    spent = last["process_cpu_seconds_total"] - first["process_cpu_seconds_total"]
    sampling = sum(last[name] - first[name] for name in last if name.startswith("tcpknee_sample_cpu_seconds_total"))
    print(
        f"exporting {sockets:,} sockets: {1e3 * spent / samples:.0f} ms of CPU per sample with two scrapes, of that "
        f"{1e3 * sampling / samples:.0f} ms sampling; at one each 15 s {100 * spent / samples / 15:.2f} % of a "
        f"processor; memory {last['process_resident_memory_bytes'] / 1e6:.0f} MB; {len(last)} series",
        flush=True,
    )


def tell_short(per_second: int, seconds: int) -> None:
    """Short connections: the generator's count against final rows."""
    source = Path(__file__).with_name("short_connections.c")
    with tempfile.TemporaryDirectory() as tools, tempfile.TemporaryDirectory() as folder:
        maker = f"{tools}/short_connections"
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", maker, source], check=True)
        command = [sys.executable, "-m", "tcpknee", "record", "--out", folder, "--json"]
        recorder = subprocess.Popen(command, stdout=subprocess.PIPE)
        while not list(Path(folder).glob("cpu-*")):
            time.sleep(0.05)
        makers = [
            subprocess.Popen(
                [maker, f"127.2.{number}.1", "6001", str(per_second // PROCESSES), str(seconds)],
                stdout=subprocess.PIPE,
            )
            for number in range(PROCESSES)
        ]
        made, took = 0, 0.0
        for process in makers:
            count, elapsed_us = process.communicate()[0].split()
            made, took = made + int(count), max(took, int(elapsed_us) / 1e6)
        recorder.terminate()
        report = json.loads(recorder.communicate()[0])
        final, counted = ends(Path(folder))
    used_us = report["cpu"]["user_us"] + report["cpu"]["system_us"]
    print(
        f"short connections: {made:,} made at {made / took:,.0f} per second; {final:,} of {2 * made:,} ends have "
        f"their final row, {counted:,} of the {made:,} that were not reset with their bytes; "
        f"{report['events_lost']} events lost; recorder {used_us / 1e6:.2f} s of CPU",
        flush=True,
    )


def ends(folder: Path) -> tuple[int, int]:
    """Distinct connected sockets with a final row, and those whose row has their bytes.

    The near ends are reset at their close, for which the kernel clears what they counted.
    """
    import duckdb

    [(found, counted)] = duckdb.sql(
        "select count(distinct cookie), count(distinct cookie) filter (bytes_received > 0) "
        f"from read_parquet('{folder}/sockets-*.parquet') where final and (local_port != 6001 or bytes_received > 0)"
    ).fetchall()
    return int(found), int(counted)


if __name__ == "__main__":
    main()
