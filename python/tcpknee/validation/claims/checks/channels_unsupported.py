"""`channels-unsupported`: a device whose queues cannot be changed, to the doctor and to one of its changes."""

from __future__ import annotations

from collections.abc import Sequence

from tcpknee.doctor.changes import CannotChange, Change, Channels
from tcpknee.doctor.judge import judge
from tcpknee.doctor.snapshot import Snapshot

from .check import Found, Request, fact

_INTERFACE = {"netns": "net:[1]", "interface": "eth0", "ifindex": 2, "operstate": "up", "loopback": False}


def _host(driver: str, channels: list[dict[str, object]]) -> Snapshot:
    tables = {
        "host": [{"cpus": 4, "kernel": "6.1.0"}],
        "interfaces": [{**_INTERFACE, "driver": driver, "rx_queues": 1, "tx_queues": 1}],
        "channels": channels,
    }
    return Snapshot.of(0, tables)


def check(request: Request) -> Found:
    """Said as a fact, without a change that cannot be made; and the change says so where somebody wants it."""
    one = _host("virtio_net", [{"netns": "net:[1]", "interface": "eth0", "combined": 1, "combined_max": 1}])
    none = _host("e1000", [])
    told = [finding for finding in judge(one).findings if finding.rule == "virtio-one-queue"]
    wants = [finding for host in (one, none) for finding in judge(host).findings if _changes_queues(finding.changes)]
    outcomes = [
        fact("the one queue is told", len(told) == 1, told[0].told if told else "no finding"),
        fact("as advice", all(finding.severity == "advice" for finding in told), "it is nothing that is wrong"),
        fact("no finding proposes another number of queues", not wants, f"{len(wants)} findings propose it"),
    ]
    try:
        # No loopback device has channels.
        Channels("lo", combined=2).read()
        said = "it can be changed"
    except CannotChange as error:
        said = str(error)
    outcomes.append(fact("the change says that it is not supported", "is not supported by this device" in said, said))
    return Found(outcomes, [("told", told[0].told if told else "-")])


def _changes_queues(changes: Sequence[Change]) -> bool:
    return any(isinstance(change, Channels) for change in changes)
