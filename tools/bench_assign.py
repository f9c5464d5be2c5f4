"""What `knee assign` costs per connection: the kernel's account of its program, and its process' time.

As root: bench_assign.py [SECONDS]. Connections are made over the loopback of a network namespace to a server in a
cgroup of its own, as fast as this machine makes them; the cost at 10,000 a second follows from that of one. Once every
connection gets another algorithm than it would have, and once half of them do.

The kernel's account of a program's time (kernel.bpf_stats_enabled) takes time itself, which is in the account: as much
as an empty program beside ours is said to take. It is left out of the cost, and printed.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tcpknee import say
from tcpknee.fleet.assign import cgroup, running

STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
PER_SEC = 10_000
IDLE_SEC = 4
LINGER_0 = struct.pack("ii", 1, 0)
DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
EMPTY = "knee_nothing"

# include/uapi/linux/bpf.h
SYS_BPF = {"x86_64": 321, "aarch64": 280}
PROG_LOAD, LINK_CREATE = 5, 28
SOCK_OPS, CGROUP_SOCK_OPS = 13, 3
RETURN_1 = bytes.fromhex("b700000001000000 9500000000000000")


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    if sys.argv[2:]:
        return connect(seconds, Path(sys.argv[2]))
    folder = cgroup.folder(None) / f"knee-{secrets.token_hex(4)}-b"
    folder.mkdir()
    before = STATS.read_text()
    try:
        STATS.write_text("1")
        default = DEFAULT.read_text().strip()
        other = next(name for name in AVAILABLE.read_text().split() if name != default)
        for share in (100, 50):
            measure(seconds, folder, (f"{other}={share}%", f"{default}={100 - share}%"))
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


def measure(seconds: float, folder: Path, arms: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as out:
        words = ("assign", *arms, "--cgroup", str(folder), "--out", out, "--quiet")
        with subprocess.Popen([sys.executable, "-m", "tcpknee", *words], stdout=subprocess.DEVNULL) as process:
            while not Path(out, running.ABOUT).exists():
                time.sleep(0.05)
            time.sleep(1)
            used = cpu_ns(process.pid)
            time.sleep(IDLE_SEC)
            idle_ns_per_sec = (cpu_ns(process.pid) - used) / IDLE_SEC
            # It runs after ours, which has brought into the cache what both read.
            held = attach_empty(folder)
            used, begun = cpu_ns(process.pid), time.monotonic()
            load = ["unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", sys.executable, __file__]
            subprocess.run([*load, str(seconds), str(folder)], check=True)
            time.sleep(1)
            elapsed, used = time.monotonic() - begun, cpu_ns(process.pid) - used
            program, counting = accounts("knee_assign"), accounts(EMPTY)
            for descriptor in held:
                os.close(descriptor)
            process.terminate()
        about = running.read(Path(out))
        assert about is not None
        assigned = sum(about["assigned"].values())
        counting_ns = counting["run_time_ns"] / assigned
        kernel_ns = program["run_time_ns"] / assigned - counting_ns
        process_ns = (used - idle_ns_per_sec * elapsed) / assigned
        at_rate_pct = (idle_ns_per_sec + PER_SEC * (kernel_ns + process_ns)) / 1e9 * 100
        say.line(
            f"{', '.join(arms)}: {assigned:,} connections in {elapsed:.1f} s ({assigned / seconds:,.0f}/s), "
            f"{about['lost']} not logged; program {kernel_ns:.0f} ns in {program['run_cnt'] / assigned:.1f} runs (and "
            f"{counting_ns:.0f} ns of counting), process {process_ns:.0f} ns per connection, and "
            f"{idle_ns_per_sec / 1e3:.0f} us a second without any; at {PER_SEC:,}/s {at_rate_pct:.2f} % of a processor"
        )


def accounts(program: str) -> dict[str, int]:
    listed = subprocess.run(["bpftool", "-j", "prog", "list"], check=True, capture_output=True, text=True).stdout
    found: dict[str, int] = next(one for one in json.loads(listed) if one.get("name") == program)
    return found


def attach_empty(folder: Path) -> tuple[int, int]:
    """A program that returns at once, at the cgroup; descriptors of it and its link."""
    code, licence = ctypes.create_string_buffer(RETURN_1), ctypes.create_string_buffer(b"GPL")
    load = struct.pack(
        "=IIQQIIQII16s", SOCK_OPS, 2, ctypes.addressof(code), ctypes.addressof(licence), 0, 0, 0, 0, 0, EMPTY.encode()
    )
    program = bpf(PROG_LOAD, load)
    place = os.open(folder, os.O_RDONLY)
    link = bpf(LINK_CREATE, struct.pack("=IIII", program, place, CGROUP_SOCK_OPS, 0))
    os.close(place)
    return program, link


def bpf(command: int, attributes: bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    found: int = libc.syscall(SYS_BPF[os.uname().machine], command, attributes, len(attributes))
    if found < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return found


def cpu_ns(pid: int) -> int:
    """Of all its threads, to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


if __name__ == "__main__":
    sys.exit(main())
