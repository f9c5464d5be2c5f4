"""`knee doctor --measure` on a kernel: settings whose cost is many times the 5 % that count show a cost, in labs of
this machine and nothing of it changed. What a busy machine can hide is not claimed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import probes

sys.path.insert(0, str(Path(__file__).parents[1] / "python/doctor"))

from made import snapshot
from rule_cases import CASES

from tcpknee.doctor import measure
from tcpknee.doctor.measure import Measured, experiment
from tcpknee.doctor.rules import RULES

SHARED = ("net.core.somaxconn", "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_rmem")


LARGE = {
    # 64 KiB per 40 ms are 13 of 100 Mbit/s.
    "options-off": 2.0,
    # The others are let in when their SYN-ACK is sent again, a second later.
    "short-backlog": 2.0,
    # Some MiB wait to be sent at 20 Mbit/s, which takes a second and more.
    "unsent-data-piles-up": 1.2,
}
"""Rules, and by how many times the present way is slower at least, by the arithmetic of each."""


PATIENCE_SEC = 300
"""A machine that other tests share is slow, which is no mistake of what is measured."""


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    probes.need_root("a lab whose programs set sysctls")
    probes.need_lab()
    monkeypatch.setattr(experiment, "MOST_PAIRS", experiment.LEAST_PAIRS)


def measured(rule: str) -> Measured:
    """The first experiment about the host on which the rule fires, in as few pairs as there may be."""
    [asked] = [one for one in RULES if one.name == rule]
    found = asked.check(snapshot(CASES[rule].fires))
    [costs] = measure.measure(found[:1], seconds=PATIENCE_SEC)
    assert not costs.failed, costs.failed
    return costs.measured[0]


@pytest.mark.slow("each setting is tried with and without, in real time")
def test_settings_with_a_large_cost_show_it_and_this_host_keeps_its_own() -> None:
    values = {name: Path("/proc/sys", *name.split(".")).read_text() for name in SHARED}
    for rule, least in LARGE.items():
        one = measured(rule)
        assert one.where == "kernel"
        assert one.ratio.n == 3
        assert one.ratio.mean > least, one.text()
        assert not one.is_none, one.text()
    assert values == {name: Path("/proc/sys", *name.split(".")).read_text() for name in SHARED}
