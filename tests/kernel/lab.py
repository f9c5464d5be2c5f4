"""A path of network namespaces, algorithms registered for a while, and a flow over the one with the other."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import probes
from building import ROOT, run
from leftovers import new_namespace, noted
from waiting import PATIENCE_SEC

FLOW = ROOT / "tests/kernel/flow.py"
PORT = 5201


@dataclass(frozen=True)
class Lab:
    """Two hosts and the link between them."""

    sender: str
    router: str
    receiver: str
    address: str
    rate_bits_per_sec: int


@contextmanager
def laid_out(rate_bits_per_sec: int, buffer_bytes: int) -> Iterator[Lab]:
    """Namespaces a and b, joined by a router whose link to b has that rate and buffer.

    The bottleneck is not on the sending host, where TCP would see a full queue without losing a packet."""
    probes.need_programs("ip", "tc")
    a, router, b = names = [new_namespace(role) for role in "arb"]
    with noted("netns", *names):
        try:
            yield _joined(a, router, b, rate_bits_per_sec, buffer_bytes)
        finally:
            for ns in names:
                subprocess.run(["ip", "netns", "delete", ns], capture_output=True, check=False)


def _joined(a: str, router: str, b: str, rate_bits_per_sec: int, buffer_bytes: int) -> Lab:
    for ns in (a, router, b):
        run("ip", "netns", "add", ns)
    for ns, device, net in ((a, "to-a", "10.77.1"), (b, "to-b", "10.77.2")):
        run("ip", "link", "add", device, "netns", router, "type", "veth", "peer", "name", "veth0", "netns", ns)
        run("ip", "-n", router, "address", "add", f"{net}.1/24", "dev", device)
        run("ip", "-n", ns, "address", "add", f"{net}.2/24", "dev", "veth0")
        run("ip", "-n", router, "link", "set", device, "up")
        run("ip", "-n", ns, "link", "set", "veth0", "up")
        run("ip", "-n", ns, "route", "add", "default", "via", f"{net}.1")
    run("ip", "netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    rate = ("rate", f"{rate_bits_per_sec}bit", "burst", "64kb", "limit", f"{buffer_bytes}b")
    run("tc", "-n", router, "qdisc", "add", "dev", "to-b", "root", "tbf", *rate)
    return Lab(a, router, b, "10.77.2.2", rate_bits_per_sec)


def available() -> list[str]:
    """The congestion controls that sockets may choose now."""
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


def registered_maps() -> dict[str, int]:
    """Maps of struct_ops by name. One that the kernel frees when its last socket is gone is not among them."""
    found = {}
    for entry in json.loads(run("bpftool", "-j", "struct_ops", "list")):
        words = ["bpftool", "struct_ops", "dump", "id", str(entry["id"])]
        dumped = subprocess.run(words, capture_output=True, text=True, check=False)
        # One that cannot be shown was freed since it was listed.
        if dumped.returncode == 0 and "STATE_TOBEFREE" not in dumped.stdout:
            found[entry["name"]] = entry["id"]
    return found


@contextmanager
def registered_as(name: str, bpf_object: Path) -> Iterator[str]:
    """The kernel has the algorithm `name` of that object meanwhile, and nothing of it after."""
    probes.need_programs("bpftool")
    if name in available():
        pytest.fail(f"{name} is registered already; free it: bpftool struct_ops unregister name {name}")
    with noted("struct_ops", name):
        run("bpftool", "struct_ops", "register", bpf_object)
        try:
            yield name
        finally:
            run("bpftool", "struct_ops", "unregister", "id", registered_maps()[name])
            assert name not in available()
            assert name not in registered_maps()


def carry_flow(lab: Lab, algorithm: str, flow_bytes: int, far_end: str | None = None) -> tuple[dict, int]:
    """Sends flow_bytes over the lab to a server that runs far_end, or the same algorithm. Returns the client's
    report (flow.py) and the bytes the server read."""
    enter = ("ip", "netns", "exec")
    listen = (FLOW, "server", str(PORT), far_end or algorithm)
    server = subprocess.Popen([*enter, lab.receiver, sys.executable, *listen], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        where = (lab.address, PORT, algorithm, flow_bytes)
        client = run(*enter, lab.sender, sys.executable, FLOW, "client", *where)
        received, _ = server.communicate(timeout=PATIENCE_SEC)
    finally:
        server.kill()
        server.wait()
    return json.loads(client), int(received)
