"""RFS' table of flows, which a machine has once: in the first network namespace, where these tests run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import probes
from direct import HEAD, KNEE, as_ordinary_user, run
from waiting import PATIENCE_SEC, until

FLOW_TABLE = Path("/proc/sys/net/core/rps_sock_flow_entries")

FLOWS_REMEMBERED = f"""\
{HEAD}[receiver]
rps_sock_flow_entries = 4096
[[flow]]
algorithm = "cubic"
"""


def test_a_setting_of_the_machine_is_told_held_and_put_back_also_when_the_run_is_killed(tmp_path: Path) -> None:
    probes.need_root("setting what the machine has")
    if not FLOW_TABLE.exists():
        pytest.skip("this network namespace has no table of RFS, or this kernel none (CONFIG_RPS)")
    probes.need_lab()
    before = FLOW_TABLE.read_text()
    (tmp_path / "told").mkdir()
    found = run(tmp_path / "told", FLOWS_REMEMBERED, "--allow-host-settings")
    (lab,) = found.meta["labs"]
    assert lab["host_settings"] == {"net.core.rps_sock_flow_entries": {"was": int(before), "set": 4096}}
    assert lab["receiver"]["nic"] == {"queues/rx-0/rps_flow_cnt": "4096"}
    assert lab["sender"]["nic"] == {}
    assert FLOW_TABLE.read_text() == before

    (tmp_path / "s.toml").write_text(FLOWS_REMEMBERED.replace("2s", "60s"))
    command = [*KNEE, "run", "s.toml", "--engine", "kernel", "--quiet", "--allow-host-settings"]
    with subprocess.Popen([*command, "--out", "first"], cwd=tmp_path) as front:
        until(lambda: FLOW_TABLE.read_text() != before, "it is set")
        second = subprocess.run(
            [*command, "--out", "second"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SEC,
            check=False,
        )
        assert second.returncode == 2
        front.kill()
    assert "another run holds it" in second.stderr
    until(lambda: FLOW_TABLE.read_text() == before, "it is put back")


def test_an_ordinary_user_does_not_set_what_the_machine_has(tmp_path: Path) -> None:
    probes.need_user_namespaces()
    if not FLOW_TABLE.exists():
        pytest.skip("this network namespace has no table of RFS, or this kernel none (CONFIG_RPS)")
    text = f'{HEAD}[receiver]\nrps_sock_flow_entries = 64\n[[flow]]\nalgorithm = "reno"\n'
    ran = as_ordinary_user(tmp_path / "remembered", text, "--allow-host-settings")
    assert ran.returncode == 2
    assert "cannot set net.core.rps_sock_flow_entries to 64: only root may; run as root." in ran.stderr
