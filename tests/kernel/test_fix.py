"""Changes that are made and taken back leave every setting as it was, by what ip, tc, ethtool and sysctl say: random
subsets, killed at every point, and but for what somebody else changed meanwhile. All of it in a network namespace."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import probes
from kneepoint.doctor import fix
from kneepoint.doctor.changes import (
    Change,
    Channels,
    Coalesce,
    Offload,
    Qdisc,
    Ring,
    RouteWindow,
    Rps,
    RpsFlows,
    Sysctl,
    TxQueueLen,
    Xps,
)
from kneepoint.doctor.finding import Finding
from kneepoint.doctor.journal import open_journal
from leftovers import new_namespace, noted

DYING = Path(__file__).with_name("dying.py")
QUEUES = 4
OF_THE_MACHINE = re.compile(r"net\.ipv4\.tcp_(challenge_ack_limit|(available|allowed)_congestion_control) ")
"""What every namespace shows of the machine: which algorithms are loaded, which other tests do meanwhile."""

CHANGES: list[Change] = [
    Sysctl("net.ipv4.tcp_rmem", "4096 131072 16777216"),
    Sysctl("net.ipv4.tcp_slow_start_after_idle", "0"),
    Sysctl("net.ipv4.tcp_congestion_control", "reno"),
    Sysctl("net.core.somaxconn", "16384"),
    Sysctl("net.ipv4.conf.veth0.rp_filter", "2"),
    Qdisc("veth0", "pfifo", (("limit", 77),), leaves=QUEUES),
    Qdisc("veth1", "bfifo", (("limit", 99_999),)),
    Channels("veth0", rx=2, tx=2),
    Offload("veth0", "gro", True),
    Offload("veth0", "tso", False),
    Offload("veth1", "tx", False),
    TxQueueLen("veth0", 4321),
    Rps("veth0", 0, (0, 1)),
    Rps("veth0", 1, (0,)),
    RpsFlows("veth0", 0, 5000),
    Xps("veth0", 1, (1,)),
    RouteWindow("default", initcwnd=42, congctl="reno"),
    RouteWindow("10.9.0.0/24", initrwnd=33),
    RouteWindow("fd00:9::/64", initcwnd=12),
    # What a veth has not: refused without harm.
    Ring("veth0", rx=512),
    Coalesce("veth0", (("rx_usecs", 10),)),
]


def run(*words: object) -> str:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def netns() -> Iterator[str]:
    """A network namespace with a pair of devices that have four queues each, some of them set up by somebody."""
    probes.need_root("a network namespace to change settings in")
    probes.need_programs("ip", "tc", "ethtool", "nsenter", "unshare")
    name = new_namespace("f")
    with noted("netns", name):
        run("ip", "netns", "add", name)
        try:
            # Addresses and their routes are there at once, and stay as they are.
            within(name, "sysctl", "-w", "net.ipv6.conf.all.accept_dad=0", "net.ipv6.conf.default.accept_dad=0")
            queues = ("numtxqueues", QUEUES, "numrxqueues", QUEUES)
            run("ip", "-n", name, "link", "add", "veth0", *queues, "type", "veth", "peer", "name", "veth1", *queues)
            for device, address in (("veth0", "10.9.0.1/24"), ("veth1", "10.9.1.1/24")):
                run("ip", "-n", name, "link", "set", device, "up")
                run("ip", "-n", name, "address", "add", address, "dev", device)
            run("ip", "-n", name, "address", "add", "fd00:9::1/64", "dev", "veth0", "nodad")
            run("ip", "-n", name, "route", "add", "default", "via", "10.9.0.2", "initcwnd", "20", "mtu", "1400")
            run("tc", "-n", name, "qdisc", "add", "dev", "veth1", "root", "handle", "7:", "mq")
            run("tc", "-n", name, "qdisc", "add", "dev", "veth1", "parent", "7:2", "handle", "72:", "pfifo", "limit", 9)
            within(name, "tee", "/sys/class/net/veth0/queues/rx-3/rps_cpus", given="2")
            yield name
        finally:
            run("ip", "netns", "del", name)


def within(netns: str, *words: object, given: str = "") -> str:
    command = ["ip", "netns", "exec", netns, *map(str, words)]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout


def settings(netns: str) -> dict[str, str]:
    """What programs of others say of all there is to change."""
    found = {"sysctl": within(netns, "sysctl", "-a", "--pattern", r"^net\.(core|ipv4|ipv6)\.")}
    found["sysctl"] = "".join(line for line in found["sysctl"].splitlines(True) if not OF_THE_MACHINE.match(line))
    found["qdisc"] = run("tc", "-n", netns, "-d", "qdisc", "show")
    for family in ("-4", "-6"):
        found[f"routes {family}"] = run("ip", "-n", netns, "-d", family, "route", "show", "table", "all")
    for device in ("veth0", "veth1"):
        found[f"{device} link"] = run("ip", "-n", netns, "-d", "link", "show", device)
        for letter in "kl":
            found[f"{device} -{letter}"] = run("ip", "netns", "exec", netns, "ethtool", f"-{letter}", device)
        folder = f"/sys/class/net/{device}/queues"
        found[f"{device} queues"] = within(
            netns, "find", f"{folder}/", "-name", "*ps_*", "-exec", "grep", "-H", "", "{}", "+"
        )
    return found


def done(netns: str, journal: Path, what: str, changes: Sequence[Change] = (), point: int = 0) -> dict[str, Any] | None:
    """What dying.py says; None: it was killed."""
    process = subprocess.run(
        ["ip", "netns", "exec", netns, sys.executable, DYING, journal, str(point), what],
        input=json.dumps([change.json() for change in changes]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == (-signal.SIGKILL if point else 0), process.stderr
    return None if point else json.loads(process.stdout)


def outcomes(told: dict[str, Any] | None) -> dict[str, str]:
    """By change, as a key: what came of it."""
    assert told is not None
    return {json.dumps(one["change"], sort_keys=True): one["outcome"] for one in told["results"]}


@pytest.mark.parametrize("seed", range(8))
def test_what_is_fixed_and_undone_is_as_it_was(netns: str, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    chosen = chance.sample(CHANGES, chance.randrange(1, len(CHANGES) + 1)) if seed else CHANGES
    before = settings(netns)
    made = outcomes(done(netns, tmp_path, "make", chosen))
    assert set(made.values()) <= {"made", "refused"}
    if "made" in made.values():
        assert settings(netns) != before
    undone = outcomes(done(netns, tmp_path, "undo"))
    assert undone == {change: "undone" for change, outcome in made.items() if outcome == "made"}
    assert settings(netns) == before
    assert outcomes(done(netns, tmp_path, "undo")) == {}


def test_every_change_but_those_that_a_veth_has_not_is_made(netns: str, tmp_path: Path) -> None:
    made = done(netns, tmp_path, "make", CHANGES)
    assert made is not None
    refused = {one["change"]["kind"] for one in made["results"] if one["outcome"] == "refused"}
    # Two queues are left, of which the steps after it no longer find the others.
    assert refused == {"ring", "coalesce"}
    assert "77p" in settings(netns)["qdisc"]


def test_who_is_killed_at_any_point_of_making_leaves_what_can_be_undone(netns: str, tmp_path: Path) -> None:
    chosen = [CHANGES[i] for i in (0, 5, 7, 9, 12, 16)]
    before = settings(netns)
    whole = done(netns, tmp_path / "whole", "make", chosen)
    assert whole is not None and whole["points"] > 30
    done(netns, tmp_path / "whole", "undo")
    assert settings(netns) == before
    for point in range(1, whole["points"] + 1):
        journal = tmp_path / str(point)
        done(netns, journal, "make", chosen, point)
        assert set(outcomes(done(netns, journal, "undo")).values()) <= {"undone"}
        assert settings(netns) == before, f"killed at point {point}"


def test_who_is_killed_at_any_point_of_undoing_leaves_what_can_be_undone(netns: str, tmp_path: Path) -> None:
    chosen = [CHANGES[i] for i in (0, 5, 6, 7, 9, 13, 16)]
    before = settings(netns)
    done(netns, tmp_path, "make", chosen)
    whole = done(netns, tmp_path, "undo")
    assert whole is not None and whole["points"] > 30
    for point in range(1, whole["points"] + 1):
        done(netns, tmp_path, "make", chosen)
        done(netns, tmp_path, "undo", point=point)
        assert set(outcomes(done(netns, tmp_path, "undo")).values()) <= {"undone"}
        assert settings(netns) == before, f"killed at point {point}"


def test_what_somebody_else_changed_meanwhile_is_left_and_said(netns: str, tmp_path: Path) -> None:
    chosen = [CHANGES[i] for i in (0, 3, 6, 11, 12)]
    before = settings(netns)
    done(netns, tmp_path, "make", chosen)
    within(netns, "sysctl", "-w", "net.core.somaxconn=333")
    run("tc", "-n", netns, "qdisc", "replace", "dev", "veth1", "root", "handle", "9:", "pfifo", "limit", 5)
    undone = done(netns, tmp_path, "undo")
    assert undone is not None
    left = {one["change"]["kind"]: one["said"] for one in undone["results"] if one["outcome"] == "left"}
    assert left.keys() == {"sysctl", "qdisc"}
    assert all("Somebody else changed it" in said for said in left.values())
    after = settings(netns)
    assert {name for name in after if after[name] != before[name]} == {"sysctl", "qdisc", "veth1 link"}
    assert "net.core.somaxconn = 333" in after["sysctl"]
    assert "qdisc pfifo 9: dev veth1 root" in after["qdisc"]


def test_a_namespace_is_changed_from_outside_as_from_inside(netns: str, tmp_path: Path) -> None:
    before = settings(netns)
    chosen = [type(change)(**{**vars(change), "netns": netns}) for change in CHANGES[:6]]
    steps, others = fix.planned([Finding("a-rule", "advice", "host", "", {}, "", changes=chosen)])
    assert not others
    with open_journal(tmp_path) as journal:
        assert {result.outcome for result in fix.made(steps, journal)} == {"made"}
        assert settings(netns) != before
        assert {result.outcome for result in fix.undone(journal)} == {"undone"}
    assert settings(netns) == before


def test_what_was_made_before_the_last_boot_is_gone_and_nothing_is_written(netns: str, tmp_path: Path) -> None:
    done(netns, tmp_path, "make", CHANGES[:2])
    noted_in = tmp_path / "journal.json"
    found = json.loads(noted_in.read_text())
    for entry in found["entries"]:
        entry["boot_id"] = "another"
    noted_in.write_text(json.dumps(found))
    here = settings(netns)
    assert set(outcomes(done(netns, tmp_path, "undo")).values()) == {"gone"}
    assert settings(netns) == here


def test_what_became_another_value_after_the_plan_is_not_written_over(netns: str, tmp_path: Path) -> None:
    change = Sysctl("net.core.somaxconn", "9999", netns=netns)
    steps, _ = fix.planned([Finding("a-rule", "advice", "host", "", {}, "", changes=[change])])
    within(netns, "sysctl", "-w", "net.core.somaxconn=333")
    with open_journal(tmp_path) as journal:
        assert [result.outcome for result in fix.made(steps, journal)] == ["left"]
    assert change.read() == "333"


def knee(*words: object) -> tuple[int, str]:
    """Exit code and output of `knee doctor`, as who has no terminal."""
    command = [sys.executable, "-m", "kneepoint", "doctor", *map(str, words)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert ended.returncode in (0, 1), ended.stderr
    return ended.returncode, ended.stdout


def test_the_command_shows_its_plan_asks_makes_it_and_puts_it_back(netns: str, tmp_path: Path) -> None:
    before = settings(netns)
    asked = ("--netns", netns, "--journal", tmp_path, "offloads-off", "--fix")
    code, plan = knee(*asked, "--dry-run")
    assert code == 0
    assert f"    ip netns exec {netns} ethtool -K veth0 gro on" in plan.splitlines()
    assert knee(*asked) == (1, plan)
    assert settings(netns) == before
    code, told = knee(*asked, "--yes")
    assert (code, told.splitlines()[-1]) == (0, "To put it back: knee doctor --undo")
    assert "veth0 gro: made" in told
    assert "generic-receive-offload: on" in settings(netns)["veth0 -k"]
    assert "offloads-off" not in knee("--netns", netns, "offloads-off")[1]
    assert json.loads(knee("--undo", "--dry-run", "--json", "--journal", tmp_path)[1])["entries"]
    assert knee("--undo", "--journal", tmp_path)[0] == 0
    assert settings(netns) == before
    assert knee("--undo", "--journal", tmp_path) == (0, "There is nothing to undo.\n")


def test_a_change_that_this_kernel_cannot_make_is_said_and_leaves_all_as_it_was(netns: str, tmp_path: Path) -> None:
    before = settings(netns)
    steps = [fix.Step(change := Qdisc("veth1", "fq", netns=netns), "a-rule", change.read(), [])]
    if probes.has_qdisc("fq"):
        pytest.skip("this kernel has fq")
    with open_journal(tmp_path) as journal:
        [result] = fix.made(steps, journal)
        assert (result.outcome, journal.entries) == ("refused", [])
    assert "this kernel has no fq" in result.said
    assert settings(netns) == before
