"""Our algorithms beside the kernel's own on live flows: after every op both must have done the same.

The kernel's function decides for the socket; ours runs on the same inputs in its own block (shadow.h)."""

import json
from pathlib import Path

import pytest

from building import run
from lab import carry_flow, laid_out, registered_as

OPS = (
    "init", "ssthresh", "cong_avoid", "cong_control", "undo_cwnd", "set_state", "cwnd_event", "pkts_acked",
    "min_tso_segs", "sndbuf_expand", "in_ack_event",
)  # fmt: skip
# A short queue with many losses, and one of 160 ms in which a window grows for long.
PATHS = {"shallow": (200_000_000, 96 * 1024, 60_000_000), "deep": (100_000_000, 2 * 1024 * 1024, 100_000_000)}
# A jiffy may pass between the kernel's look at the clock and ours; bbr1 keeps time stamps in jiffies.
JIFFY_SHARE = 0.001


@pytest.fixture(scope="session")
def shadow_objects(kernel: None, bpf_objects: Path) -> Path:
    run("make", "-f", "cc/bpf.mk", "bpf-shadow")
    return bpf_objects


def kernel_own(algorithm: str) -> None:
    """Skips when the kernel's own algorithm is not built in: its functions can be called only then."""
    names = Path("/proc/kallsyms").read_text().split()
    function = {"reno": "tcp_reno_cong_avoid", "cubic": "cubictcp_cong_avoid", "bbr1": "bbr_main"}[algorithm]
    if function not in names:
        pytest.skip(f"this kernel has no {function}() to compare with")


def counts() -> dict[str, tuple[int, int, int]]:
    """Per op: calls, calls that differed, largest difference of the window in segments."""
    for entry in json.loads(run("bpftool", "-j", "map", "list")):
        if not entry.get("name", "").startswith("shadow_") or not entry["name"].endswith(".bss"):
            continue
        (value,) = json.loads(run("bpftool", "-j", "map", "dump", "id", entry["id"]))
        values = {k: v for part in value["formatted"]["value"][".bss"] for k, v in part.items()}
        columns = (values["shadow_calls"], values["shadow_differ"], values["shadow_cwnd_gap"])
        return {op: row for op, row in zip(OPS, zip(*columns, strict=True), strict=False) if row[0]}
    pytest.fail("no map shadow_*.bss: is the shadow loaded?")


def run_beside(algorithm: str, objects: Path, path: str) -> dict[str, tuple[int, int, int]]:
    kernel_own(algorithm)
    rate_bits_per_sec, buffer_bytes, flow_bytes = PATHS[path]
    with (
        registered_as(f"shadow_{algorithm}", objects / f"shadow_{algorithm}.bpf.o") as name,
        laid_out(rate_bits_per_sec, buffer_bytes) as lab,
    ):
        report, _ = carry_flow(lab, name, flow_bytes)
        result = counts()
    assert report["ran"] == name
    for op, (calls, differ, gap) in result.items():
        print(f"{algorithm} {path} {op}: {calls} calls, {differ} differ, window by {gap} at most")
    return result


@pytest.mark.parametrize("path", PATHS)
def test_reno_does_what_the_kernel_does(shadow_objects: Path, path: str) -> None:
    result = run_beside("reno", shadow_objects, path)
    assert result["cong_avoid"][0] > 1000
    assert {op: differ for op, (_, differ, _) in result.items() if differ} == {}


@pytest.mark.parametrize("path", PATHS)
def test_bbr1_does_what_the_kernel_does(shadow_objects: Path, path: str) -> None:
    result = run_beside("bbr1", shadow_objects, path)
    assert result["cong_control"][0] > 1000
    for op, (calls, differ, _) in result.items():
        assert differ <= JIFFY_SHARE * calls, op


@pytest.mark.parametrize("path", PATHS)
def test_cubic_differs_from_the_kernel_by_its_exact_cube_root_only(shadow_objects: Path, path: str) -> None:
    """K differs by the kernel's approximation of the cube root (cc/cubic.c), so growth comes an ACK sooner or later."""
    result = run_beside("cubic", shadow_objects, path)
    calls, _, gap = result.pop("cong_avoid")
    assert calls > 1000
    assert gap <= 1
    assert {op: differ for op, (_, differ, _) in result.items() if differ} == {}
