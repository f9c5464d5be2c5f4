"""What the kernel tests need: the BPF objects, and a reason when this machine cannot run them."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import probes
import turns
from building import make_bpf
from leftovers import sweep
from side_by_side import SideBySide


@pytest.fixture(scope="session")
def bpf_objects() -> Path:
    """build/bpf with an object per algorithm; skips where they cannot be built."""
    probes.need_programs(os.environ.get("BPF_CLANG", "clang-16"), "make")
    probes.need_header("bpf/bpf_helpers.h", "libbpf-dev")
    return make_bpf("bpf")


@pytest.fixture(scope="session")
def kernel() -> None:
    """Skips where this machine cannot load struct_ops programs; else removes first what a killed run left."""
    probes.need_struct_ops()
    if swept := sweep():
        print(f"left by a killed run, removed: {', '.join(swept)}")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SideBySide:
    return SideBySide(config, log)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "alone: its figures are those of the whole machine, so no other kernel test runs beside it"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """With its fixtures, which may take as long as the test."""
    alone = item.get_closest_marker("alone") is not None
    with turns.taken(item.config.rootpath / "build/tests/turns", alone=alone):
        return (yield)
