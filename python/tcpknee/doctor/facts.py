"""What several rules want to know of a snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from tcpknee import _core
from tcpknee.errors import UsageError

from .changes import Change, Sysctl
from .snapshot import Row, Snapshot

UP = ("up", "unknown")
"""States of an interface that carries traffic; drivers that do not tell say unknown."""

SMALL_CONTAINER = {"veth", "macvlan", "ipvlan", "netkit"}
"""Kinds of interfaces that a network namespace has in a device's place."""

LEAST_INTERRUPTS = 1_000_000
"""Of fewer a rule does not say which processors they came to."""

LEAST_ACTIVE = 0.05
"""A queue with fewer interrupts than this share of the mean is not in use."""

BBR = re.compile(r"(knee_)?bbr")
"""Names of BBR in all its versions. It needs pacing; the others only take it."""


def kernel(snapshot: Snapshot) -> tuple[int, int] | None:
    """Version of the kernel: (6, 18). None: not known."""
    found = re.match(r"(\d+)\.(\d+)", snapshot.host["kernel"] or "")
    return (int(found[1]), int(found[2])) if found else None


def patch_level(snapshot: Snapshot) -> int:
    """The third number of the release, 48 of 6.12.48; 0 where there is none. Distributions count otherwise."""
    found = re.match(r"\d+\.\d+\.(\d+)", snapshot.host["kernel"] or "")
    return int(found[1]) if found else 0


@cache
def _releases(rule: str) -> list[tuple[tuple[int, int], str, str]]:
    """The changes of a rule of `knee kernel rules`, the oldest first: release, value and commits."""
    [found] = [known for known in _core.kernel_rules() if known["rule"] == rule]
    changes = []
    for change in found["changes"]:
        major, minor = change["since"].split(".")
        changes.append(((int(major), int(minor)), change["value"], change["source"]))
    return changes


def changed_in(rule: str) -> tuple[tuple[int, int], str]:
    """The release that changed a rule of `knee kernel rules` last, and the first commit of it."""
    release, _, source = _releases(rule)[-1]
    return release, source.split(",")[0]


def rule_of(snapshot: Snapshot, rule: str) -> str | None:
    """What this kernel's release has of a rule of `knee kernel rules`. None: it is older than those, or not known."""
    version = kernel(snapshot)
    values = [value for since, value, _ in _releases(rule) if version is not None and since <= version]
    return values[-1] if values else None


def number(snapshot: Snapshot, name: str) -> int | None:
    """A sysctl that is one whole number; None where it is not known."""
    numbers = vector(snapshot, name)
    return numbers[0] if numbers is not None and len(numbers) == 1 else None


def vector(snapshot: Snapshot, name: str) -> list[int] | None:
    """A sysctl that is whole numbers, such as tcp_rmem; None where it is not known."""
    value = snapshot.sysctl(name)
    try:
        return [int(word) for word in value.split()] if value else None
    except ValueError:
        return None


def counted(snapshot: Snapshot, *names: str) -> int:
    """The sum of counters; 0 for those that are not known."""
    return sum(snapshot.counter(name) or 0 for name in names)


def settable(name: str, value: str, netns: str | None) -> list[Change]:
    """The change of a sysctl whose name and value come from the host; none where it cannot be undone, or is none."""
    try:
        return [Sysctl(name, value, netns=netns)]
    except UsageError:
        return []


def connections(snapshot: Snapshot) -> dict[str, int]:
    """How many connections that leave the host each congestion control has."""
    found: dict[str, int] = {}
    for row in snapshot.rows("sockets"):
        if row["algorithm"] and row["remote"] != "loopback":
            found[row["algorithm"]] = found.get(row["algorithm"], 0) + (row["connections"] or 0)
    return found


def default_algorithm(snapshot: Snapshot) -> str | None:
    """What a new connection gets."""
    return snapshot.sysctl("net.ipv4.tcp_congestion_control")


def uses_bbr(snapshot: Snapshot) -> list[str]:
    """Versions of BBR that connections have, or would get."""
    names = [*connections(snapshot), default_algorithm(snapshot) or ""]
    return sorted({name for name in names if BBR.match(name)})


def devices(snapshot: Snapshot) -> Iterator[Row]:
    """Interfaces that are up and have a device: not virtual ones."""
    return filter(_is_device, snapshot.rows("interfaces"))


def senders(snapshot: Snapshot) -> list[Row]:
    """Interfaces whose qdisc sees what this namespace sends: devices, or where there are none what a container has."""
    return list(devices(snapshot)) or list(filter(_is_of_container, snapshot.rows("interfaces")))


def is_sender(snapshot: Snapshot, interface: Row) -> bool:
    """Whether it is one of `senders`."""
    return _is_device(interface) or (_is_of_container(interface) and next(devices(snapshot), None) is None)


def _is_device(row: Row) -> bool:
    return row["kind"] is None and not row["loopback"] and row["operstate"] in UP


def _is_of_container(row: Row) -> bool:
    return row["kind"] in SMALL_CONTAINER and row["operstate"] in UP and row["master"] is None


def cores(snapshot: Snapshot) -> int | None:
    """Processors that share no core with each other; all of them where the snapshot does not tell."""
    told = {tuple(row["siblings"]) for row in snapshot.rows("cpus") if row["siblings"]}
    return len(told) or snapshot.host["cpus"]


def receive_queues(snapshot: Snapshot, interface: Row) -> int:
    """Receive queues that an interface uses."""
    channels = next(iter(snapshot.of_interface("channels", interface)), None)
    if channels is not None:
        return (channels["combined"] or 0) + (channels["rx"] or 0)
    return sum(1 for row in snapshot.of_interface("queues", interface) if row["direction"] == "rx")


def runs(snapshot: Snapshot, program: str) -> bool:
    """Whether a program that sets such things runs on the host: irqbalance, bpftune."""
    return any(row["owner"] == program and row["kind"] == "running" for row in snapshot.rows("owners"))


def interrupts(snapshot: Snapshot, interface: Row) -> list[Row]:
    """The interrupts of an interface's device that have come at all."""
    return [row for row in snapshot.of_interface("irqs", interface) if row["counts"]]


def busy_interrupts(snapshot: Snapshot, interface: Row) -> tuple[int, list[Row]]:
    """How many interrupts of an interface's device came, and the rows of those in use; none where there were too few
    to judge."""
    irqs = interrupts(snapshot, interface)
    totals = [sum(row["counts"].values()) for row in irqs]
    whole = sum(totals)
    if whole < LEAST_INTERRUPTS:
        return whole, []
    return whole, [row for row, total in zip(irqs, totals, strict=True) if total > LEAST_ACTIVE * whole / len(irqs)]


def members(snapshot: Snapshot) -> dict[str, list[Row]]:
    """Interfaces of each bridge, bond and team."""
    found: dict[str, list[Row]] = {}
    for row in snapshot.rows("interfaces"):
        if row["master"] is not None:
            found.setdefault(row["master"], []).append(row)
    return found


def leaf_count(interface: Row) -> int:
    """How many leaves a qdisc for each queue would have; 0: the interface has one queue, or none of a device."""
    count: int = interface["tx_queues"] or 1
    return count if count > 1 and interface["kind"] is None else 0


def leaves(snapshot: Snapshot, interface: Row) -> Sequence[Row]:
    """The qdiscs of an interface that hold packets: the root, or what hangs from it. Ingress is none of them."""
    outward = [row for row in snapshot.of_interface("qdiscs", interface) if row["kind"] not in ("ingress", "clsact")]
    parents = {(row["parent"] or "").partition(":")[0] for row in outward if row["parent"] != "root"}
    # Qdiscs that the kernel made by itself all have the handle 0.
    return [
        row
        for row in outward
        if row["kind"] not in ("mq", "mqprio")
        and (row["handle"] == "0:" or (row["handle"] or "").partition(":")[0] not in parents)
    ]


def root_qdisc(snapshot: Snapshot, interface: Row) -> Row | None:
    """The qdisc at the root of an interface."""
    return next((row for row in snapshot.of_interface("qdiscs", interface) if row["parent"] == "root"), None)


def forwards(snapshot: Snapshot) -> bool:
    """Whether packets of others pass through: a router, or a host of containers and virtual machines."""
    return bool(number(snapshot, "net.ipv4.ip_forward") or number(snapshot, "net.ipv6.conf.all.forwarding"))
