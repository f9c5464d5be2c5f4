"""The files of cc/ run in the real kernel: each registers by its kernel name and carries a TCP flow."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from building import ALGORITHMS, kernel_name
from lab import Lab, available, carry_flow, laid_out, registered_as, registered_maps

FLOW_BYTES = 24 * 1024 * 1024


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A buffer of 4 ms, so that every algorithm loses packets."""
    with laid_out(200_000_000, 96 * 1024) as hosts:
        yield hosts


@pytest.fixture(params=ALGORITHMS)
def registered(request: pytest.FixtureRequest, kernel: None, bpf_objects: Path) -> Iterator[str]:
    """The algorithm's kernel name, registered for the time of the test."""
    with registered_as(kernel_name(request.param), bpf_objects / f"{request.param}.bpf.o") as name:
        yield name


def test_registered_algorithm_carries_a_flow_in_the_kernel(registered: str, lab: Lab) -> None:
    # Where the machine stands still for a moment, that is not the algorithm's: one flow of three has its rate.
    for _ in range(3):
        report, received_bytes = carry_flow(lab, registered, FLOW_BYTES)
        goodput_bits_per_sec = FLOW_BYTES * 8 / report["elapsed_s"]
        if goodput_bits_per_sec > lab.rate_bits_per_sec / 2:
            break
    samples = report["samples"]
    windows = [sample["snd_cwnd"] for sample in samples]
    print(
        f"{registered}: {goodput_bits_per_sec / 1e6:.0f} Mbit/s, cwnd {min(windows)} to {max(windows)} segments, "
        f"{samples[-1]['total_retrans']} retransmits"
    )

    assert report["ran"] == registered
    assert received_bytes == FLOW_BYTES
    assert samples[-1]["bytes_acked"] >= FLOW_BYTES
    assert min(windows) >= 1
    assert len(set(windows)) >= 5, f"the window hardly moved: {sorted(set(windows))}"
    assert samples[-1]["total_retrans"] > 0, "nothing was lost, so loss handling was not exercised"
    assert lab.rate_bits_per_sec / 2 < goodput_bits_per_sec < lab.rate_bits_per_sec


@pytest.mark.parametrize("registered", ["bbr1"], indirect=True)
def test_bbr1_paces_near_the_rate_of_the_link(registered: str, lab: Lab) -> None:
    report, _ = carry_flow(lab, registered, FLOW_BYTES)
    rates = sorted(sample["pacing_rate"] * 8 for sample in report["samples"][len(report["samples"]) // 2 :])
    median = rates[len(rates) // 2]
    print(f"median pacing rate {median / 1e6:.0f} Mbit/s on a link of {lab.rate_bits_per_sec / 1e6:.0f} Mbit/s")
    assert 0.7 * lab.rate_bits_per_sec < median < 1.3 * lab.rate_bits_per_sec


@pytest.mark.parametrize("registered", ["dctcp", "prague"], indirect=True)
def test_a_flow_that_needs_ecn_and_gets_none_is_reno(registered: str, lab: Lab) -> None:
    """A server whose algorithm does not need ECN refuses it to one whose does; ECT without an echo would be a lie."""
    report, received_bytes = carry_flow(lab, registered, FLOW_BYTES, far_end="reno")
    assert report["ran"] == "reno"
    assert received_bytes == FLOW_BYTES


def test_unregistering_leaves_nothing(registered: str) -> None:
    """The fixture unregisters and asserts; this test enrols every algorithm without a flow."""
    assert registered in available()
    assert registered in registered_maps()
