"""The ops of cc/ are total, and the host build and the BPF bytecode do the same."""

import hashlib
import os
from pathlib import Path

import pytest

import probes
from building import ALGORITHMS, BUILD, ROOT, alone, run

FUZZ_OPS = 1_000_000
# Each from a fresh state, of 11 to 16 ops in the mean. `make equality` asks for a million.
SEQUENCES = int(os.environ.get("EQUALITY_SEQUENCES", "100000"))
C_FLAGS = ("-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-Icc")
# Sequence numbers and counters wrap by design, so the checks of unsigned arithmetic stay off.
SANITIZERS = ("-O1", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")


def build(source: str, compiler: str, *flags: str) -> Path:
    """Compiles a test program together with every algorithm, once for all test processes; its path."""
    # These two are programs.
    programs = {ROOT / "cc/cc_total.c", ROOT / "cc/cc_replay.c"}
    folder, algorithms = BUILD / "tests", sorted({*(ROOT / "cc").glob("*.c")} - programs)
    command = (compiler, *C_FLAGS, source, *map(str, algorithms), *flags)
    contents = hashlib.sha256("\0".join(command).encode())
    for file in (ROOT / source, *sorted((ROOT / "tests/kernel").glob("*.h")), *sorted((ROOT / "cc").glob("*.[ch]"))):
        contents.update(file.read_bytes())
    program = folder / f"{Path(source).stem}-{contents.hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    with alone(program.name):
        if not program.exists():
            run(*command, "-o", f"{program}.new")
            Path(f"{program}.new").replace(program)
    return program


@pytest.fixture(scope="session")
def fuzz_ops() -> Path:
    probes.need_sanitizers()
    return build("tests/kernel/fuzz_ops.c", "clang-16", *SANITIZERS)


@pytest.fixture(scope="session")
def replay_ops(kernel: None) -> Path:
    compiler = os.environ.get("CC", "cc")
    probes.need_programs(compiler)
    probes.need_header("bpf/libbpf.h", "libbpf-dev")
    return build("cc/cc_replay.c", compiler, "-O2", "-lbpf")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_ops_are_total_under_sanitizers(fuzz_ops: Path, algorithm: str) -> None:
    """No undefined behaviour, no stray access, snd_cwnd never 0, `in` never written, whatever the input."""
    assert run(fuzz_ops, algorithm, FUZZ_OPS).startswith(f"{algorithm}: {FUZZ_OPS} ops")


@pytest.mark.slow("the first of them builds every algorithm for BPF")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_host_and_bytecode_agree_byte_for_byte(replay_ops: Path, bpf_objects: Path, algorithm: str) -> None:
    """After every op of every sequence."""
    report = run(replay_ops, algorithm, bpf_objects / f"{algorithm}.replay.bpf.o", SEQUENCES, timeout_s=900)
    print(report, end="")
    assert report.startswith(f"{algorithm}: {SEQUENCES} sequences equal")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_cong_control_of_older_kernels_still_compiles(bpf_objects: Path, algorithm: str, tmp_path: Path) -> None:
    """6.4 to 6.9 call cong_control(sk, rs). Such an object does not load here; that it builds is what is checked."""
    target = tmp_path / "build/bpf" / f"{algorithm}.bpf.o"
    built = bpf_objects / f"{algorithm}.bpf.o"
    run("make", "-f", "cc/bpf.mk", f"BPF_OUT={target.parent}", "BPF_DEFINES=-DCC_BPF_CONG_CONTROL_2", target)
    if algorithm == "bbr1":
        assert target.read_bytes() != built.read_bytes()
