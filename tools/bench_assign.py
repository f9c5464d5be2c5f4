"""What `knee assign` costs per connection: the kernel's account of its program, and its process' time.

As root: bench_assign.py [SECONDS]. Connections are made over the loopback of a network namespace to a server in a
cgroup of its own, as fast as this machine makes them; the cost at 10,000 a second follows from that of one.
"""

from __future__ import annotations

import json
import secrets
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kneepoint import say
from kneepoint.fleet.assign import cgroup, running

STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
PER_SEC = 10_000
IDLE_SEC = 4
LINGER_0 = struct.pack("ii", 1, 0)


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    if sys.argv[2:]:
        return connect(seconds, Path(sys.argv[2]))
    folder = cgroup.folder(None) / f"knee-{secrets.token_hex(4)}-b"
    folder.mkdir()
    before = STATS.read_text()
    try:
        STATS.write_text("1")
        measure(seconds, folder)
    finally:
        STATS.write_text(before)
        folder.rmdir()
    return 0


def connect(seconds: float, folder: Path) -> int:
    """The load, in the network namespace: each connection is established, and reset by its client."""
    (folder / "cgroup.procs").write_text("0")
    server = socket.create_server(("0.0.0.0", 0), backlog=512)
    (folder.parent / "cgroup.procs").write_text("0")
    port, made, deadline = server.getsockname()[1], 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        for number in range(250):
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
                client.bind((f"127.{1 + made % 200}.{number}.1", 0))
                client.connect(("127.0.0.1", port))
                server.accept()[0].close()
        made += 1
    return 0


def measure(seconds: float, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as out:
        words = ("assign", "reno=50%", "cubic=50%", "--cgroup", str(folder), "--out", out, "--quiet")
        with subprocess.Popen([sys.executable, "-m", "kneepoint", *words], stdout=subprocess.DEVNULL) as process:
            while not Path(out, running.ABOUT).exists():
                time.sleep(0.05)
            time.sleep(1)
            used = cpu_ns(process.pid)
            time.sleep(IDLE_SEC)
            idle_ns_per_sec = (cpu_ns(process.pid) - used) / IDLE_SEC
            used, begun = cpu_ns(process.pid), time.monotonic()
            load = ["unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", sys.executable, __file__]
            subprocess.run([*load, str(seconds), str(folder)], check=True)
            time.sleep(1)
            elapsed, used = time.monotonic() - begun, cpu_ns(process.pid) - used
            program = program_of_ours()
            process.terminate()
        about = running.read(Path(out))
        assert about is not None
        assigned = sum(about["assigned"].values())
        kernel_ns = program["run_time_ns"] / assigned
        process_ns = (used - idle_ns_per_sec * elapsed) / assigned
        at_rate_pct = (idle_ns_per_sec + PER_SEC * (kernel_ns + process_ns)) / 1e9 * 100
        say.line(
            f"{assigned:,} connections in {elapsed:.1f} s ({assigned / seconds:,.0f}/s), {about['lost']} not logged; "
            f"program {kernel_ns:.0f} ns in {program['run_cnt'] / assigned:.1f} runs, process {process_ns:.0f} ns per "
            f"connection, and {idle_ns_per_sec / 1e3:.0f} us a second without any; at "
            f"{PER_SEC:,}/s {at_rate_pct:.2f} % of a processor"
        )


def program_of_ours() -> dict[str, int]:
    listed = subprocess.run(["bpftool", "-j", "prog", "list"], check=True, capture_output=True, text=True).stdout
    found: dict[str, int] = next(one for one in json.loads(listed) if one.get("name") == "knee_assign")
    return found


def cpu_ns(pid: int) -> int:
    """Of all its threads, to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


if __name__ == "__main__":
    sys.exit(main())
