"""Settings of two hosts that ssh leads to: made when asked, put back whatever ends the run, and one test at a time."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import probes
from building import run
from lab import Lab
from tcpknee.remote import transport
from test_between_hosts import Servers, servers  # noqa: F401
from waiting import PATIENCE_SEC, until

SCENARIO = """
title = "Set for a while"
duration = "{duration}"
warmup = "0.1s"
repeat = 1
[path]
rate = "50Mbit/s"
rtt = "10ms"
[sender]
tcp_wmem_max = "5MiB"
initcwnd = 23
tso = false
[receiver]
tcp_rmem_max = "7MiB"
gro = false
[[flow]]
algorithm = "reno"
"""
PAIR = ("--engine", "hosts", "--sender", "a", "--receiver", "b")


def settings_of(namespace: str) -> dict[str, str]:
    """What a test may have changed there, by programs of others."""
    enter = ("ip", "netns", "exec", namespace)
    devices = [path for path in run(*enter, "ls", "/sys/class/net").split() if path != "lo"]
    return {
        "sysctls": run(*enter, "sysctl", "net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem"),
        "routes": run(*enter, "ip", "route"),
        # Who holds a reference at this instant is no setting.
        "qdiscs": re.sub(r" refcnt \d+", "", run(*enter, "tc", "qdisc")),
        **{device: run(*enter, "ethtool", "-k", device) for device in devices},
    }


def all_settings(lab: Lab) -> list[dict[str, str]]:
    return [settings_of(name) for name in (lab.sender, lab.receiver)]


def scenario(folder: Path, duration: str = "0.4s") -> Path:
    path = folder / "set.toml"
    path.write_text(SCENARIO.format(duration=duration), encoding="utf-8")
    return path


def holders(lab: Lab, name: str) -> list[int]:
    """Processes of that name on the two hosts that hold settings, or put them back."""
    networks = {Path(f"/run/netns/{one}").stat().st_ino for one in (lab.sender, lab.receiver)}
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == name:
                is_holder = b"hold" in (entry / "cmdline").read_bytes().split(b"\0")
                found += [int(entry.name)] if is_holder and (entry / "ns/net").stat().st_ino in networks else []
        except OSError:
            continue
    return found


@contextmanager
def running(servers: Servers, folder: Path) -> Iterator[subprocess.Popen[str]]:  # noqa: F811
    """A run that has set both hosts, and goes on."""
    words = servers.words(scenario(folder, "30s"), *PAIR, "--allow-host-settings", "--out", folder / "run")
    front = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        until(lambda: "initcwnd 23" in settings_of(servers.lab.sender)["routes"], "the route is set")
        until(lambda: "7340032" in settings_of(servers.lab.receiver)["sysctls"], "the receiver is set")
        yield front
    finally:
        front.kill()
        front.wait()


def test_settings_of_the_scenario_are_made_and_are_back_afterwards(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    probes.need_programs("ethtool")
    before = all_settings(servers.lab)
    ended = servers.knee(scenario(tmp_path), *PAIR, "--allow-host-settings", "--out", tmp_path / "run")
    assert ended.returncode == 0, ended.stderr
    assert all_settings(servers.lab) == before
    meta = json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))
    made = {one["setting"]: one["is"] for one in meta["labs"][0]["sender"]["settings"]}
    assert made["net.ipv4.tcp_wmem"].endswith(" 5242880")
    assert "route to 10.77.2.2" in made
    told = meta["sessions"][0]["hosts"]
    assert [told[role]["as_before"] for role in ("sender", "receiver")] == [True, True], ended.stdout + ended.stderr
    assert {one["setting"] for one in told["receiver"]["held"]} >= {"net.ipv4.tcp_rmem"}
    for role in ("sender", "receiver"):
        file = tmp_path / f"run/{role}.host.json"
        judged = subprocess.run(
            [sys.executable, "-m", "tcpknee", "doctor", "--snapshot", file, "--json"], capture_output=True, text=True
        )
        assert json.loads(judged.stdout)["host"]["kernel"] == os.uname().release


def test_without_the_word_hosts_are_left_alone_and_differences_are_told(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    ended = servers.knee(scenario(tmp_path), *PAIR, "--out", tmp_path / "run")
    assert ended.returncode == 0, ended.stderr
    assert "sender: initcwnd = 23 of the scenario is not set" in ended.stdout
    for role in ("sender", "receiver"):
        file = tmp_path / f"run/{role}.host.json"
        assert re.search(rf"^Doctor of the {role}: [a-z ,-]+: knee doctor --snapshot {file}$", ended.stdout, re.M)
    told = json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))["sessions"][0]["hosts"]
    assert "held" not in told["sender"]
    assert any("net.ipv4.tcp_wmem" in line for line in told["sender"]["differs"])


@pytest.mark.parametrize(
    "who",
    [
        "front",
        pytest.param("knee-remote", marks=pytest.mark.long),
        pytest.param("knee-watchdog", marks=pytest.mark.long),
    ],
)
def test_whoever_is_killed_both_hosts_are_as_before_within_seconds(
    servers: Servers,  # noqa: F811
    tmp_path: Path,
    who: str,
) -> None:
    before = all_settings(servers.lab)
    with running(servers, tmp_path) as front:
        killed = [front.pid] if who == "front" else holders(servers.lab, who)
        assert killed
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        until(lambda: all_settings(servers.lab) == before, "both hosts are as before")
        assert time.monotonic() - began < 10


def test_what_two_killed_at_once_left_is_put_back_by_the_next_and_a_held_setting_is_refused(servers: Servers) -> None:  # noqa: F811
    before = settings_of(servers.lab.sender)
    program = str(transport.program_for(os.uname().machine, "here"))
    towards = "10.77.2.2"
    asked = [
        {"kind": "route", "towards": towards, "initcwnd": 31},
        {"kind": "offload", "towards": towards, "feature": "tso", "on": False},
    ]

    def ordered(*settings: object) -> tuple[subprocess.Popen[str], dict[str, object]]:
        words = ["ip", "netns", "exec", servers.lab.sender, program, "hold"]
        one = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert one.stdin is not None and one.stdout is not None
        order = {"do": "hold", "settings": settings, "deadline_s": 60, "silence_s": 60}
        one.stdin.write(json.dumps(order) + "\n")
        one.stdin.flush()
        return one, json.loads(one.stdout.readline())

    first, held = ordered(*asked)
    assert "held" in held
    for setting in asked:
        second, refused = ordered(setting)
        assert "another test holds it; wait for its end" in str(refused["error"])
        second.communicate()
    both = [first.pid, *holders(servers.lab, "knee-watchdog")]
    assert len(both) == 2
    for sign in (signal.SIGSTOP, signal.SIGKILL):
        for pid in both:
            os.kill(pid, sign)
    first.communicate()
    assert "initcwnd 31" in settings_of(servers.lab.sender)["routes"]
    until(lambda: not holders(servers.lab, "knee-watchdog"), "the watchdog is gone")
    third, held = ordered(asked[0])
    assert "held" in held
    third.communicate('{"do": "end"}\n')
    assert settings_of(servers.lab.sender) == before


def test_a_second_run_is_refused_with_who_holds_the_host(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    with running(servers, tmp_path):
        second = servers.knee(scenario(tmp_path), *PAIR, "--out", tmp_path / "second")
    assert second.returncode == 2
    assert "another test runs there, of " in second.stderr
    assert " UTC. Two at once would measure each other" in second.stderr
    assert not (tmp_path / "second").exists()


def test_a_host_that_cannot_make_a_setting_leaves_none_made(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    before = all_settings(servers.lab)
    path = scenario(tmp_path)
    text = path.read_text(encoding="utf-8").replace("gro = false", 'gro = false\nqdisc = "sfq"')
    path.write_text(text, encoding="utf-8")
    ended = servers.knee(path, *PAIR, "--allow-host-settings", "--out", tmp_path / "run")
    assert ended.returncode == 2
    assert 'receiver b: a setting cannot be made: qdisc: got "sfq"; expected' in ended.stderr
    assert not (tmp_path / "run").exists()
    assert all_settings(servers.lab) == before


def test_netem_that_a_kernel_lacks_is_named_and_leaves_nothing_made(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    probes.need_no_qdisc("netem")
    before = all_settings(servers.lab)
    ended = servers.knee(scenario(tmp_path), *PAIR, "--netem", "--out", tmp_path / "run")
    assert ended.returncode == 2
    assert "sender a: a setting cannot be made: " in ended.stderr
    assert " qdisc: this kernel does not have it. Nothing stays changed there." in ended.stderr
    assert all_settings(servers.lab) == before


def test_a_connection_that_is_lost_in_mid_run_leaves_both_hosts_as_before(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    before = all_settings(servers.lab)
    with running(servers, tmp_path) as front:
        # The processes of sshd that serve connections; the one that listens is its own parent's.
        sessions = run("pgrep", "-f", "sshd: root@notty").split()
        networks = {Path(f"/run/netns/{one}").stat().st_ino for one in (servers.lab.sender, servers.lab.receiver)}
        ours = [int(pid) for pid in sessions if Path(f"/proc/{pid}/ns/net").stat().st_ino in networks]
        assert len(ours) >= 4
        for pid in ours:
            os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        until(lambda: all_settings(servers.lab) == before, "both hosts are as before")
        assert time.monotonic() - began < 10
        said, _ = front.communicate(timeout=PATIENCE_SEC)
    assert front.returncode == 2
    assert "or is out of reach." in said
    # No repetition was finished.
    assert "--resume" not in said
