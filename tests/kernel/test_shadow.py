"""Our algorithms beside the kernel's own on live flows: after every op both must have done the same.

The kernel's function decides for the socket; ours runs on the same inputs in its own block (shadow.h)."""

import json
from pathlib import Path

import pytest

from building import ALGORITHMS, run
from lab import carry_flow, laid_out, registered_as

OPS = (
    "init", "ssthresh", "cong_avoid", "cong_control", "undo_cwnd", "set_state", "cwnd_event", "pkts_acked",
    "min_tso_segs", "sndbuf_expand", "in_ack_event",
)  # fmt: skip
# A short queue with many losses, and one of 42 ms in which a window grows for seconds between them.
PATHS = {"shallow": (200_000_000, 96 * 1024, 60_000_000), "deep": (100_000_000, 512 * 1024, 120_000_000)}
# A jiffy may pass between the kernel's look at the clock and ours; cubic and bbr1 keep time stamps in jiffies.
JIFFY_SHARE = 0.001


@pytest.fixture(scope="session")
def shadow_objects(kernel: None, bpf_objects: Path) -> Path:
    run("make", "-f", "cc/bpf.mk", "bpf-shadow")
    return bpf_objects


def skip_without_kernels_own(algorithm: str) -> None:
    """Skips when the kernel's own algorithm is not built in: its functions can be called only then."""
    names = Path("/proc/kallsyms").read_text().split()
    function = {"reno": "tcp_reno_cong_avoid", "cubic": "cubictcp_cong_avoid", "bbr1": "bbr_main"}[algorithm]
    if function not in names:
        pytest.skip(f"this kernel has no {function}() to compare with")


def globals_of_shadow() -> dict[str, list[int] | int]:
    """The variables in which the shadow counts (shadow.h)."""
    for entry in json.loads(run("bpftool", "-j", "map", "list")):
        if not entry.get("name", "").startswith("shadow_") or not entry["name"].endswith(".bss"):
            continue
        (value,) = json.loads(run("bpftool", "-j", "map", "dump", "id", entry["id"]))
        return {k: v for part in value["formatted"]["value"][".bss"] for k, v in part.items()}
    pytest.fail("no map shadow_*.bss: is the shadow loaded?")


def run_beside(algorithm: str, objects: Path, path: str) -> tuple[dict[str, tuple[int, int]], dict]:
    """Runs a flow. Per op (calls, calls that differed), and the shadow's other variables."""
    skip_without_kernels_own(algorithm)
    rate_bits_per_sec, buffer_bytes, flow_bytes = PATHS[path]
    with (
        registered_as(f"shadow_{algorithm}", objects / f"shadow_{algorithm}.bpf.o") as name,
        laid_out(rate_bits_per_sec, buffer_bytes) as lab,
    ):
        report, _ = carry_flow(lab, name, flow_bytes)
        variables = globals_of_shadow()
    assert report["ran"] == name
    rows = zip(OPS, variables["shadow_calls"], variables["shadow_differ"], strict=False)
    result = {op: (calls, differ) for op, calls, differ in rows if calls}
    for op, (calls, differ) in result.items():
        print(f"{algorithm} {path} {op}: {calls} calls, {differ} differ")
    return result, variables


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_algorithm_does_what_the_kernels_own_does(shadow_objects: Path, algorithm: str, path: str) -> None:
    result, variables = run_beside(algorithm, shadow_objects, path)
    acks = result.get("cong_avoid") or result["cong_control"]
    assert acks[0] > 1000
    if "cong_avoid" in result:
        assert result["ssthresh"][0] >= 1, "nothing was lost, so the growth after a loss was not compared"
    for op, (calls, differ) in result.items():
        assert differ <= JIFFY_SHARE * calls, op
    if algorithm == "cubic":
        # The kernel's cube root errs by 0.2 % on average, ours not at all (cc/cubic.c, "Differs from source").
        print(
            f"cubic {path}: {variables['shadow_k_calls']} roots, {variables['shadow_k_gap_per_mille']} per mille apart"
        )
        assert variables["shadow_k_calls"] >= 1
        assert variables["shadow_k_gap_per_mille"] <= 10
