"""What the kernel tests need: the BPF objects, and a reason when this machine cannot run them."""

import os
from pathlib import Path

import pytest

from building import BUILD, missing_tools, run
from leftovers import sweep


@pytest.fixture(scope="session")
def bpf_objects() -> Path:
    """build/bpf with an object per algorithm; skips where they cannot be built."""
    clang = os.environ.get("BPF_CLANG", "clang-16")
    if lacking := missing_tools(clang, "make"):
        pytest.skip(f"building BPF objects needs {', '.join(lacking)}")
    if not Path("/usr/include/bpf/bpf_helpers.h").exists():
        pytest.skip("building BPF objects needs the headers of libbpf (Debian: libbpf-dev)")
    run("make", "-f", "cc/bpf.mk", "bpf")
    return BUILD / "bpf"


@pytest.fixture(scope="session")
def kernel() -> None:
    """Skips where this machine cannot load struct_ops programs; else removes first what a killed run left."""
    if os.geteuid() != 0:
        pytest.skip("loading BPF programs needs root")
    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)")
    release = os.uname().release
    version = tuple(int(part) for part in release.split(".")[:2])
    if version < (6, 10):
        pytest.skip(f"cong_control with four arguments needs Linux 6.10, this is {release}")
    if swept := sweep():
        print(f"left by a killed run, removed: {', '.join(swept)}")
