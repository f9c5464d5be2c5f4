"""The files of cc/ run in the real kernel: each registers as knee_NAME and carries a TCP flow."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ALGORITHMS, ROOT, missing_tools, run

FLOW = ROOT / "tests/kernel/flow.py"
FLOW_BYTES = 24 * 1024 * 1024
LINK_BITS_PER_SEC = 200_000_000
PORT = 5201


def available() -> list[str]:
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


def registered_maps() -> list[str]:
    return [entry["name"] for entry in json.loads(run("bpftool", "-j", "struct_ops", "list"))]


@pytest.fixture
def lab() -> Iterator[tuple[str, str, str]]:
    """Namespaces a and b, joined by a router whose link to b has 200 Mbit/s and a 96 KiB buffer.

    The bottleneck is not on the sending host, where TCP would see a full queue without losing a packet.
    Yields (name of a, name of b, address of b)."""
    if lacking := missing_tools("ip", "tc"):
        pytest.skip(f"a lab of network namespaces needs {', '.join(lacking)} (Debian: iproute2)")
    a, router, b = names = [f"knee-{os.getpid()}-{role}" for role in ("a", "r", "b")]
    try:
        for ns in names:
            run("ip", "netns", "add", ns)
        for ns, device, net in ((a, "to-a", "10.77.1"), (b, "to-b", "10.77.2")):
            run("ip", "link", "add", device, "netns", router, "type", "veth", "peer", "name", "veth0", "netns", ns)
            run("ip", "-n", router, "address", "add", f"{net}.1/24", "dev", device)
            run("ip", "-n", ns, "address", "add", f"{net}.2/24", "dev", "veth0")
            run("ip", "-n", router, "link", "set", device, "up")
            run("ip", "-n", ns, "link", "set", "veth0", "up")
            run("ip", "-n", ns, "route", "add", "default", "via", f"{net}.1")
        run("ip", "netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        rate = ("rate", f"{LINK_BITS_PER_SEC}bit", "burst", "64kb", "limit", "96kb")
        run("tc", "-n", router, "qdisc", "add", "dev", "to-b", "root", "tbf", *rate)
        yield a, b, "10.77.2.2"
    finally:
        for ns in names:
            subprocess.run(["ip", "netns", "delete", ns], capture_output=True)


@pytest.fixture(params=ALGORITHMS)
def registered(request: pytest.FixtureRequest, kernel: None, bpf_objects: Path) -> Iterator[str]:
    """The algorithm's kernel name, registered for the time of the test."""
    if lacking := missing_tools("bpftool"):
        pytest.skip(f"registering struct_ops needs {', '.join(lacking)}")
    name = f"knee_{request.param}"
    if name in available():
        pytest.fail(f"{name} is registered already; free it: bpftool struct_ops unregister name {name}")
    run("bpftool", "struct_ops", "register", bpf_objects / f"{request.param}.bpf.o")
    try:
        yield name
    finally:
        run("bpftool", "struct_ops", "unregister", "name", name)
        assert name not in available()
        assert name not in registered_maps()


def carry_flow(lab: tuple[str, str, str], algorithm: str) -> tuple[dict, int]:
    """Sends FLOW_BYTES from a to b. Returns the client's report and the bytes the server read."""
    a, b, address = lab
    enter = ("ip", "netns", "exec")
    server = subprocess.Popen(
        [*enter, b, sys.executable, FLOW, "server", str(PORT)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert server.stdout is not None and server.stdout.readline() == "ready\n"
        client = run(*enter, a, sys.executable, FLOW, "client", address, PORT, algorithm, FLOW_BYTES)
        received, _ = server.communicate(timeout=30)
    finally:
        server.kill()
        server.wait()
    return json.loads(client), int(received)


def test_registered_algorithm_carries_a_flow_in_the_kernel(registered: str, lab: tuple[str, str, str]) -> None:
    report, received_bytes = carry_flow(lab, registered)
    samples = report["samples"]
    windows = [sample["snd_cwnd"] for sample in samples]
    goodput = FLOW_BYTES * 8 / report["elapsed_s"]
    print(
        f"{registered}: {goodput / 1e6:.0f} Mbit/s, cwnd {min(windows)} to {max(windows)} segments, "
        f"{samples[-1]['total_retrans']} retransmits"
    )

    assert report["ran"] == registered
    assert received_bytes == FLOW_BYTES
    assert samples[-1]["bytes_acked"] >= FLOW_BYTES
    assert min(windows) >= 1
    assert len(set(windows)) >= 5, f"the window hardly moved: {sorted(set(windows))}"
    assert samples[-1]["total_retrans"] > 0, "nothing was lost, so loss handling was not exercised"
    assert LINK_BITS_PER_SEC / 2 < goodput < LINK_BITS_PER_SEC


@pytest.mark.parametrize("registered", ["bbr1"], indirect=True)
def test_bbr1_paces_near_the_rate_of_the_link(registered: str, lab: tuple[str, str, str]) -> None:
    report, _ = carry_flow(lab, registered)
    rates = sorted(sample["pacing_rate"] * 8 for sample in report["samples"][len(report["samples"]) // 2 :])
    median = rates[len(rates) // 2]
    print(f"median pacing rate {median / 1e6:.0f} Mbit/s on a link of {LINK_BITS_PER_SEC / 1e6:.0f} Mbit/s")
    assert 0.7 * LINK_BITS_PER_SEC < median < 1.3 * LINK_BITS_PER_SEC


def test_unregistering_leaves_nothing(registered: str) -> None:
    """The fixture unregisters and asserts; this test enrols every algorithm without a flow."""
    assert registered in available()
    assert registered in registered_maps()
