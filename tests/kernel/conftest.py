"""What the kernel tests need: the BPF objects, and a reason when this machine cannot run them."""

import os
from pathlib import Path
from typing import Any

import pytest

import probes
import repeats
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
    config.addinivalue_line(
        "markers", "timed: it asks how soon something happens; repeated if it fails on a machine that is late itself"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long begins first, so that nobody waits for it at the end. What is to be alone comes last, when there
    is least to wait for."""
    items.sort(key=lambda item: (item.get_closest_marker("alone") is not None, item.get_closest_marker("slow") is None))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """A turn is for a test with its fixtures, which may take as long as the test."""
    alone = item.get_closest_marker("alone") is not None
    with turns.taken(item.config.rootpath / "build/tests/turns", alone=alone):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in repeats.reports_of(item, nextitem):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [one for kind in terminalreporter.stats.values() for one in kind if isinstance(one, pytest.TestReport)]
    for line in repeats.told(reports):
        terminalreporter.write_line(line)
