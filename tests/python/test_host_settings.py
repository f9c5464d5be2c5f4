"""Settings of the whole machine: what is refused, and how. That they are set and put back, tests/kernel asks."""

from __future__ import annotations

import pytest

import tcpknee
from support import SMALL
from tcpknee.errors import EngineError, KernelUnsupported, UsageError
from tcpknee.runs import host_settings


def test_a_run_that_needs_none_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_settings, "KEEPER", ("/nowhere/keeper",))
    for allowed in (False, True):
        with host_settings.held({}, "s.toml", {}, allowed=allowed) as held:
            assert held == {}


def test_what_was_not_allowed_is_refused_with_the_option_that_would() -> None:
    refusal = host_settings.held({"net.core.rps_sock_flow_entries": 64}, "s.toml", {}, allowed=False)
    with pytest.raises(KernelUnsupported) as refused, refusal:
        pytest.fail("it is held")
    assert str(refused.value) == (
        "s.toml: rps_sock_flow_entries = 64 is asked for, which this kernel has for the whole machine and not for a "
        "lab (net.core.rps_sock_flow_entries). Allow it for the time of the run with --allow-host-settings, or leave "
        "it out."
    )


def test_a_setting_that_the_kernel_does_not_have_is_told() -> None:
    refusal = host_settings.held({"net.core.knee_has_none": 1}, "s.toml", {}, allowed=True)
    with (
        pytest.raises(EngineError, match=r"cannot set net\.core\.knee_has_none to 1: No such file") as refused,
        refusal,
    ):
        pytest.fail("it is held")
    assert str(refused.value).endswith("leave it out.")


def test_the_simulator_has_no_machine_to_set() -> None:
    with pytest.raises(UsageError, match="allow_host_settings: got it with the engine sim"):
        tcpknee.run(SMALL, allow_host_settings=True)
