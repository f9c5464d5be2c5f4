"""Changes that are made and taken back leave every setting as it was, by what ip, tc, ethtool and sysctl say: random
subsets, killed at every point, and but for what somebody else changed meanwhile. All of it in a network namespace."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import probes
from drawn_fixes import DEVICES, OF_THE_MACHINE, QUEUES
from dying import finding_of
from leftovers import new_namespace, noted
from tcpknee.doctor import fix
from tcpknee.doctor.changes import (
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
from tcpknee.doctor.journal import Entry, open_journal
from tcpknee.doctor.links import LEAST_VERSION, Udev
from tcpknee.doctor.persist import Place, persisted

DYING = Path(__file__).with_name("dying.py")
DRAWN = Path(__file__).with_name("drawn_fixes.py")

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
    lines = within(netns, "sysctl", "-a", "--pattern", r"^net\.(core|ipv4|ipv6)\.").splitlines(True)
    own = [line for line in lines if line.partition(" ")[0].rpartition(".")[2] not in OF_THE_MACHINE]
    found = {"sysctl": "".join(own), "qdisc": run("tc", "-n", netns, "-d", "qdisc", "show")}
    for family in ("-4", "-6"):
        found[f"routes {family}"] = run("ip", "-n", netns, "-d", family, "route", "show", "table", "all")
    for device in DEVICES:
        found[f"{device} link"] = run("ip", "-n", netns, "-d", "link", "show", device)
        for letter in "kl":
            found[f"{device} -{letter}"] = run("ip", "netns", "exec", netns, "ethtool", f"-{letter}", device)
        folder = f"/sys/class/net/{device}/queues"
        found[f"{device} queues"] = within(
            netns, "find", f"{folder}/", "-name", "*ps_*", "-exec", "grep", "-H", "", "{}", "+"
        )
    return found


def done(netns: str, journal: Path, what: str, changes: Sequence[Change] = ()) -> dict[str, Any]:
    """What dying.py says."""
    process = subprocess.run(
        ["ip", "netns", "exec", netns, sys.executable, DYING, journal, what],
        input=json.dumps([change.json() for change in changes]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    found: dict[str, Any] = json.loads(process.stdout)
    return found


def outcomes(told: dict[str, Any]) -> dict[str, str]:
    """By change, as a key: what came of it."""
    return {json.dumps(one["change"], sort_keys=True): one["outcome"] for one in told["results"]}


def test_what_is_fixed_and_undone_is_as_it_was(netns: str, tmp_path: Path) -> None:
    before = settings(netns)
    made = outcomes(done(netns, tmp_path, "make", CHANGES))
    assert set(made.values()) == {"made", "refused"}
    assert settings(netns) != before
    undone = outcomes(done(netns, tmp_path, "undo"))
    assert undone == {change: "undone" for change, outcome in made.items() if outcome == "made"}
    assert settings(netns) == before
    assert outcomes(done(netns, tmp_path, "undo")) == {}


def test_every_change_but_those_that_a_veth_has_not_is_made(netns: str, tmp_path: Path) -> None:
    made = done(netns, tmp_path, "make", CHANGES)
    refused = {one["change"]["kind"] for one in made["results"] if one["outcome"] == "refused"}
    # Two queues are left, of which the steps after it no longer find the others.
    assert refused == {"ring", "coalesce"}
    assert "77p" in settings(netns)["qdisc"]


@pytest.mark.slow("a process is killed at each of some hundred points")
def test_who_is_killed_at_every_point_of_making_or_undoing_leaves_what_can_be_undone(
    netns: str, tmp_path: Path
) -> None:
    # One of each kind, and a qdisc whose place somebody's tree has.
    chosen = [*{type(change): change for change in reversed(CHANGES)}.values(), CHANGES[6]]
    found = drawn(netns, tmp_path, "every", given=json.dumps([change.json() for change in chosen]))
    assert (found["wrong"], found["changes"]) == ([], len(chosen))
    # Before and after two writes of the journal and the act, of all but rings and coalescing; making and undoing.
    assert found["kills"] >= 2 * 6 * (len(chosen) - 2)


WHOLE = [range(30), *(pytest.param(range(first, first + 30), marks=pytest.mark.long) for first in range(30, 120, 30))]


@pytest.mark.slow("a process and its ip, tc and ethtool for each drawn state")
@pytest.mark.parametrize("seeds", WHOLE, ids=str)
def test_any_rules_on_any_state_are_undone_to_the_same_bytes(netns: str, tmp_path: Path, seeds: range) -> None:
    found = drawn(netns, tmp_path, "whole", seeds)
    assert (found["wrong"], found["seeds"]) == ([], len(seeds))
    assert found["outcomes"]["made"] > 10 * len(seeds)


@pytest.mark.slow("a process and its ip, tc and ethtool for each drawn state")
@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 80), marks=pytest.mark.long)], ids=str)
def test_who_is_killed_anywhere_with_any_rules_leaves_what_can_be_undone(
    netns: str, tmp_path: Path, seeds: range
) -> None:
    found = drawn(netns, tmp_path, "killed", seeds)
    assert (found["wrong"], found["seeds"]) == ([], len(seeds))
    assert found["kills"] > len(seeds) // 2


@pytest.mark.slow("a process and its ip, tc and ethtool for each drawn state")
def test_what_any_other_program_wrote_meanwhile_is_left_and_all_else_is_undone(netns: str, tmp_path: Path) -> None:
    found = drawn(netns, tmp_path, "foreign", range(40))
    assert (found["wrong"], found["seeds"]) == ([], 40)
    assert found["foreign"] > 10


def drawn(netns: str, folder: Path, mode: str, seeds: Sequence[int] = (), given: str = "") -> dict[str, Any]:
    """What drawn_fixes.py says."""
    words = ["ip", "netns", "exec", netns, sys.executable, DRAWN, folder, mode, *seeds]
    ended = subprocess.run([str(word) for word in words], input=given, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def test_what_somebody_else_changed_meanwhile_is_left_and_said(netns: str, tmp_path: Path) -> None:
    chosen = [CHANGES[i] for i in (0, 3, 6, 11, 12)]
    before = settings(netns)
    done(netns, tmp_path, "make", chosen)
    within(netns, "sysctl", "-w", "net.core.somaxconn=333")
    run("tc", "-n", netns, "qdisc", "replace", "dev", "veth1", "root", "handle", "9:", "pfifo", "limit", 5)
    undone = done(netns, tmp_path, "undo")
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
    steps, others = fix.planned([finding_of(chosen)])
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
    steps, _ = fix.planned([finding_of([change])])
    within(netns, "sysctl", "-w", "net.core.somaxconn=333")
    with open_journal(tmp_path) as journal:
        assert [result.outcome for result in fix.made(steps, journal)] == ["left"]
    assert change.read() == "333"


def knee(*words: object) -> tuple[int, str]:
    """Exit code and output of `knee doctor`, as who has no terminal."""
    command = [sys.executable, "-m", "tcpknee", "doctor", *map(str, words)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert ended.returncode in (0, 1), ended.stderr
    return ended.returncode, ended.stdout


def test_the_command_shows_its_plan_asks_makes_it_and_puts_it_back(netns: str, tmp_path: Path) -> None:
    within(netns, "ethtool", "-K", "veth0", "gso", "off")
    before = settings(netns)
    asked = ("--netns", netns, "--journal", tmp_path, "offloads-off", "--fix")
    code, plan = knee(*asked, "--dry-run")
    assert code == 0
    assert f"    ip netns exec {netns} ethtool -K veth0 gso on" in plan.splitlines()
    assert knee(*asked) == (1, plan)
    assert settings(netns) == before
    code, told = knee(*asked, "--yes")
    assert (code, told.splitlines()[-1]) == (0, f"To put it back: knee doctor --undo --journal {tmp_path}")
    assert "veth0 gso: made" in told
    assert "generic-segmentation-offload: on" in settings(netns)["veth0 -k"]
    assert "offloads-off" not in knee("--netns", netns, "offloads-off")[1]
    assert json.loads(knee("--undo", "--dry-run", "--json", "--journal", tmp_path)[1])["entries"]
    assert "veth0 gso: back to off" in knee("--undo", "--dry-run", "--journal", tmp_path)[1].splitlines()
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


def test_udev_makes_the_settings_of_the_drop_in_that_persist_writes(netns: str, tmp_path: Path) -> None:
    probes.need_programs("udevadm", "mount")
    changes = [TxQueueLen("veth0", 4321), Offload("veth0", "gro", True), Offload("veth0", "gso", False)]
    links = tmp_path / "etc/systemd/network"
    links.mkdir(parents=True)
    given = links / "10-of-the-test.link"
    address = json.loads(run("ip", "-n", netns, "-j", "link", "show", "veth0"))[0]["address"]
    given.write_text(f"[Match]\nMACAddress={address}\n[Link]\nMTUBytes=1400\n")
    (tmp_path / f"n{socket.if_nametoindex('lo')}").write_text(f"E:ID_NET_LINK_FILE={given}\n")
    place = Place(tmp_path / "etc", lambda: True, lambda _: "", Udev(tmp_path, lambda: LEAST_VERSION))
    with open_journal(tmp_path / "journal") as journal:
        for change in changes:
            # The file was given to lo, which this process sees too.
            here = replace(change, interface="lo")
            journal.entries.append(Entry(here.json(), "a-rule", 0, 0, "", 0, "made", 0, persists=True))
        assert persisted(journal, place) == []
    assert sorted(path.name for path in links.rglob("*.conf")) == ["99-tcpknee.conf"]
    act = f"mount --bind {links} /etc/systemd/network && udevadm test-builtin --action=add net_setup_link"
    told = within(netns, "sh", "-c", f"{act} /sys/class/net/veth0 2>&1")
    found = settings(netns)
    assert "qlen 4321" in found["veth0 link"] and "mtu 1400" in found["veth0 link"], told
    assert "generic-receive-offload: on" in found["veth0 -k"], told
    assert "generic-segmentation-offload: off" in found["veth0 -k"], told
