"""Measures how late the hosts of a lab react, which is what `sender.noise` stands for. Needs root. Results are in
docs/validation/against-linux.md.

    python tools/host_noise.py [--knee .venv/bin/knee] [--seconds 20] [--loops 0 4] [--csv FILE]

Runs a flow on the kernel engine, once on the machine as it is and once with busy loops beside it, and looks at the
packets of both hosts with the kernel's own time stamps. A row for each kind of delay, in us:

    ack to data    an ACK comes to the sender's device, the data that it lets go leaves it
    data to ack    data comes to the receiver's device, its ACK leaves it
    pacing         how far the gap behind a packet is from its payload over SO_MAX_PACING_RATE
    link           how far the gap behind a packet that leaves a full link is from its time at the link's rate: the
                   emulated link's own, which is no host's
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

CLONE_NEWNET = 0x4000_0000
SO_TIMESTAMPNS = 35
ETH_P_ALL = 3
RATE_BITS_PER_SEC = 10_000_000
PACING_BITS_PER_SEC = 5_000_000
HEADER_BYTES = 52
TRAIN_NS = 100_000
"""Packets that follow each other so closely left as one: the segments of a TSO packet."""
OWN_LIMIT_NS = 2_000_000
"""A packet this long after what may have caused it was caused by something else: a timer, a reader that was away."""

OWN = Path("/proc/self/ns/net")
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Seen:
    """A packet at a host's device."""

    t_ns: int
    leaves: bool
    payload_bytes: int


def scenario(seconds: float, paced: bool) -> str:
    """One CUBIC: it fills a link, or paces itself at half of its rate."""
    flow = f'max_pacing_rate = "{PACING_BITS_PER_SEC}bit/s"' if paced else ""
    return (
        f'duration = "{seconds:g}s"\n[path]\nrate = "{RATE_BITS_PER_SEC}bit/s"\nrtt = "40ms"\nbuffer = "1bdp"\n'
        f'[sender]\ngso_max = "0B"\n[[flow]]\nalgorithm = "cubic"\n{flow}\n'
    )


def descendants(pid: int) -> list[int]:
    """Processes below one."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *descendants(child)]
    return found


def namespaces(pid: int) -> dict[int, Path]:
    """Network namespaces below a process, other than ours, by their number."""
    own = OWN.stat().st_ino
    found: dict[int, Path] = {}
    for child in descendants(pid):
        path = Path(f"/proc/{child}/ns/net")
        try:
            number = path.stat().st_ino
        except OSError:
            continue
        if number != own:
            found.setdefault(number, path)
    return found


def tap(path: Path) -> socket.socket | None:
    """A socket that sees the packets of the namespace; None where it has ended."""
    with OWN.open("rb") as own:
        try:
            with path.open("rb") as other:
                if LIBC.setns(other.fileno(), CLONE_NEWNET) != 0:
                    return None
        except OSError:
            return None
        try:
            found = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        finally:
            if LIBC.setns(own.fileno(), CLONE_NEWNET) != 0:
                raise SystemExit("host_noise: cannot return to the network namespace it began in.")
    found.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    found.setblocking(False)
    return found


def parse(data: bytes, t_ns: int, leaves: bool) -> Seen | None:
    """A TCP packet from its IP header on."""
    if len(data) < 40 or data[9] != socket.IPPROTO_TCP:
        return None
    header = (data[0] & 15) * 4
    whole = struct.unpack_from("!H", data, 2)[0] or len(data)
    return Seen(t_ns, leaves, whole - header - (data[header + 12] >> 4) * 4)


def read(tapped: socket.socket, into: list[Seen]) -> None:
    """Takes what there is."""
    while True:
        try:
            data, extra, _, address = tapped.recvmsg(128, 128)
        except (BlockingIOError, OSError):
            return
        stamp = next((content for _, kind, content in extra if kind == SO_TIMESTAMPNS), None)
        if stamp is None:
            continue
        sec, nsec = struct.unpack("qq", stamp[:16])
        seen = parse(data, sec * 1_000_000_000 + nsec, address[2] == socket.PACKET_OUTGOING)
        if seen:
            into.append(seen)


def run(knee: str, seconds: float, paced: bool) -> tuple[list[Seen], list[Seen]]:
    """Packets at the sender's and at the receiver's device, the first fifth left out."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "noise.toml")
        file.write_text(scenario(seconds, paced))
        command = [knee, "run", str(file), "--engine", "kernel", "--out", str(Path(folder, "run")), "--quiet"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            taps: dict[int, tuple[socket.socket, list[Seen]]] = {}
            while process.poll() is None:
                for number, path in namespaces(process.pid).items() if len(taps) < 3 else ():
                    if number not in taps and (found := tap(path)):
                        taps[number] = (found, [])
                ready, _, _ = select.select([tapped for tapped, _ in taps.values()], [], [], 0.05)
                for tapped, seen in taps.values():
                    if tapped in ready:
                        read(tapped, seen)
            output = process.stdout.read() if process.stdout else ""
    hosts = [seen for _, seen in taps.values() if len(seen) > 100]
    if process.returncode or len(hosts) != 2:
        raise SystemExit(f"host_noise: {len(hosts)} of 2 hosts were seen; knee said:\n{output}")
    hosts.sort(key=lambda seen: not any(one.leaves and one.payload_bytes for one in seen))
    sender, receiver = ([one for one in seen if one.t_ns > seen[0].t_ns + seconds * 2e8] for seen in hosts)
    return sender, receiver


def reactions(seen: Iterable[Seen], data_leaves: bool) -> list[float]:
    """From a packet that comes to the first that leaves because of it, us."""
    found, came = [], None
    for one in seen:
        if one.leaves:
            if came is not None and bool(one.payload_bytes) == data_leaves and one.t_ns - came < OWN_LIMIT_NS:
                found.append((one.t_ns - came) / 1e3)
            came = None
        elif bool(one.payload_bytes) != data_leaves:
            came = one.t_ns
    return found


def gaps(seen: Sequence[Seen], leaves: bool, ns_per_byte: float, further_bytes: int = 0) -> list[float]:
    """How far the gap behind a train of packets is from what its bytes take, us; what is twice as long is a pause."""
    trains: list[tuple[int, int, int]] = []
    for one in seen:
        if one.leaves != leaves or not one.payload_bytes:
            continue
        size = one.payload_bytes + further_bytes
        if trains and one.t_ns - trains[-1][1] < TRAIN_NS:
            began, _, before = trains[-1]
            trains[-1] = (began, one.t_ns, before + size)
        else:
            trains.append((one.t_ns, one.t_ns, size))
    found = []
    for (began, _, size), (after, _, _) in itertools.pairwise(trains):
        due_ns = size * ns_per_byte
        if after - began < 2 * due_ns:
            found.append(abs(after - began - due_ns) / 1e3)
    return found


def measure(knee: str, seconds: float) -> dict[str, list[float]]:
    """Every kind of delay."""
    sender, receiver = run(knee, seconds, paced=False)
    paced, _ = run(knee, seconds, paced=True)
    return {
        "ack to data": reactions(sender, data_leaves=True),
        "data to ack": reactions(receiver, data_leaves=False),
        "pacing": gaps(paced, True, 8e9 / PACING_BITS_PER_SEC),
        "link": gaps(receiver, False, 8e9 / RATE_BITS_PER_SEC, HEADER_BYTES),
    }


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which so many lie."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def main() -> int:
    """Measures idle and loaded, and prints a table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--knee", default=str(Path(sys.executable).parent / "knee"))
    arguments.add_argument("--seconds", type=float, default=20)
    arguments.add_argument(
        "--loops", type=int, nargs="+", default=[0, 2 * (os.cpu_count() or 1)], help="busy loops beside"
    )
    arguments.add_argument("--csv", type=Path, help="every value, besides")
    options = arguments.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("host_noise: got an ordinary user; expected root, who may look into a lab's namespaces.")
    rows = ["machine,delay,us"]
    print(f"Linux {os.uname().release}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before it began")
    print("| machine | delay | n | p50 | p90 | p99 | most |\n|---|---|---|---|---|---|---|")
    for loops in options.loops:
        machine = f"{loops} busy loops" if loops else "idle"
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
        try:
            time.sleep(1)
            found = measure(options.knee, options.seconds)
        finally:
            for process in busy:
                process.send_signal(signal.SIGKILL)
                process.wait()
        for delay, values in found.items():
            figures = [f"{quantile(values, share):.0f}" for share in (0.5, 0.9, 0.99, 1)]
            print(f"| {machine} | {delay} | {len(values)} | {' | '.join(figures)} |", flush=True)
            rows += [f"{machine},{delay},{value:.3f}" for value in values]
    if options.csv:
        options.csv.write_text("\n".join(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
