"""What offloads, rings, interrupts and the spreading of received packets over processors cost.

A veth pair has no interrupts, no ring of a NIC and no queue that a driver serves: those are the host model's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tcpknee.doctor.changes import Ring
from tcpknee.doctor.cpus import mask_like
from tcpknee.doctor.finding import Finding
from tcpknee.human import counted

from .experiment import ONE_CPU, VETH, Arm, Experiment
from .plan import Plan, always, goal, number, of_kind
from .quantities import CPU_PER_BYTE, CPU_PER_REQUEST, TIME_PER_BYTE, TIME_PER_REQUEST, Quantity

MOST_CPUS = 8
"""Processors of the model's server: more take longer to simulate, and show the same."""

NIC: Mapping[str, Any] = {"rate": "10Gbit/s", "rtt": "100us", "buffer": "1MiB"}
PACKET_US = 1.23
"""Time of a full packet at 10 Gbit/s, with preamble and gap."""

_STREAM = {"workload": "bulk"}
_SMALL: Mapping[str, Any] = {
    "workload": "request-response",
    "request": "64B",
    "response": "64B",
    "depth": 4,
    "connections": 64,
}
_MODEL_MS: Mapping[str, Any] = {"duration_ms": 300, "warmup_ms": 100, "where": ("model",)}

SEGMENTATION = {
    "tx-checksumming": "checksums",
    "scatter-gather": "scatter-gather",
    "generic-segmentation-offload": "GSO",
}
"""Without each of them TCP sends no packet larger than the MTU (net/core/dev.c, netdev_fix_features())."""


def _offloads(finding: Finding) -> Sequence[Experiment]:
    off = str(finding.evidence["off"]).split(", ")
    made = []
    if "generic-receive-offload" in off:
        merged = Arm("GRO on", receiver={"gro": True})
        made.append(Experiment("a stream", CPU_PER_BYTE, _STREAM, Arm("GRO off"), merged, VETH, ONE_CPU))
    if without := [SEGMENTATION[name] for name in off if name in SEGMENTATION]:
        single = Arm(f"{' and '.join(without)} off", sender={"gso_max": "0B"})
        made.append(Experiment("a stream", CPU_PER_BYTE, _STREAM, single, Arm("segmentation on"), VETH, ONE_CPU))
    elif "tcp-segmentation-offload" in off:
        split = Arm("TSO off", sender={"tso": False})
        made.append(Experiment("a stream", CPU_PER_BYTE, _STREAM, split, Arm("TSO on"), NIC, **_MODEL_MS))
    return made


def _cpus(finding: Finding) -> int:
    return min(number(finding, "cpus") or 2, MOST_CPUS)


def served(
    cpus: int,
    now: tuple[str, Mapping[str, Any]],
    other: tuple[str, Mapping[str, Any]],
    quantity: Quantity = TIME_PER_REQUEST,
) -> Experiment:
    """Small requests to the model's server, which has a thread on each of its processors. An arm is its name and the
    server's settings; the client's work takes no time."""

    def arm(label: str, keys: Mapping[str, Any]) -> Arm:
        return Arm(label, sender={"cpus": cpus, "app_threads": cpus, **keys}, receiver={"costs": "none"})

    work = f"64-byte requests over 64 connections to {cpus} processors"
    return Experiment(work, quantity, _SMALL, arm(*now), arm(*other), NIC, **_MODEL_MS)


def _steered(finding: Finding) -> Sequence[Experiment]:
    """On this kernel: packets are received by the sender's processor, which stands for the one that is interrupted, or
    by the other one. In the model: one queue, and RPS to all processors but the one that it interrupts."""
    sender, receiver = {"app_cpus": "0"}, {"app_cpus": "1", "queues": 1}
    alone = finding.evidence.get("rps_cpus")
    now = "RPS on one processor" if alone is not None else "RPS off"
    here = Experiment(
        "a stream between two processors, received in one queue",
        TIME_PER_BYTE,
        _STREAM,
        Arm(now, sender=sender, receiver={**receiver, "rps_cpus": "1" if alone is not None else "0"}),
        Arm("RPS on the other processor", sender=sender, receiver={**receiver, "rps_cpus": "2"}),
        VETH,
        {"gro": False},
        where=("kernel",),
    )
    cpus = _cpus(finding)
    first = {"queues": 1, "rps_cpus": mask_like("", [1]) if alone is not None else "0"}
    others = {"queues": 1, "rps_cpus": mask_like("", range(1, cpus))}
    return [here, served(cpus, (now, first), ("RPS on the others", others))]


def _spread(now: int, wanted: int) -> Sequence[Experiment]:
    """Interrupts of all queues on one processor are those of one queue."""
    wanted = min(wanted, MOST_CPUS)
    now = min(now, wanted - 1)
    if now < 1:
        return []
    few, many = ((f"receiving on {counted(queues, 'processor')}", {"queues": queues}) for queues in (now, wanted))
    return [served(wanted, few, many)]


def _more_queues(finding: Finding) -> Sequence[Experiment]:
    now = 1 if finding.rule == "irqs-on-one-cpu" else number(finding, "queues") or 1
    return _spread(now, number(finding, "cpus") or 2)


def _more_places(finding: Finding) -> Sequence[Experiment]:
    now, wanted = number(finding, "processors"), number(finding, "interrupts")
    return _spread(now, wanted) if now and wanted else []


def _more_hashes(finding: Finding) -> Sequence[Experiment]:
    now, wanted = number(finding, "rss_queues"), number(finding, "queues")
    return _spread(now, wanted) if now and wanted else []


def _beside_rss(finding: Finding) -> Sequence[Experiment]:
    cpus = _cpus(finding)
    every = {"queues": cpus}
    now = {**every, "rps_cpus": mask_like("", range(cpus))}
    return [served(cpus, (f"RPS beside {cpus} queues", now), ("queues alone", every))]


def _followed(finding: Finding) -> Sequence[Experiment]:
    # In the model: the kernel has one table of flows for the whole machine, which a lab may not change.
    spread = {"queues": 1, "rps_cpus": "f"}
    followed = {**spread, "rps_sock_flow_entries": 32768}
    return [served(4, ("RPS without RFS", spread), ("RFS", followed), CPU_PER_REQUEST)]


def _budget(finding: Finding) -> Sequence[Experiment]:
    names = ("netdev_budget", "netdev_budget_usecs")
    now = {name: value for name in names if (value := number(finding, name))}
    wanted = {name: values[0] for name in names if (values := goal(finding, f"net.core.{name}"))}
    if not wanted or len(now) < len(names):
        return []

    def arm(settings: Mapping[str, int]) -> Arm:
        most = [f"{settings[name]:,} {unit}" for name, unit in zip(names, ("packets", "us"), strict=True)]
        receiver = {"cpus": 2, "app_threads": 2, "queues": 8, "gro": False, "rx_ring": 4096, **settings}
        return Arm(f"rounds of at most {most[0]} and {most[1]}", receiver=receiver)

    # More than the two processors can receive, packet by packet from four queues each: rounds end before all is done.
    work = "16 transfers at once over 40 Gbit/s to 2 processors"
    path = {**NIC, "rate": "40Gbit/s", "buffer": "16MiB"}
    return [Experiment(work, TIME_PER_BYTE, {**_STREAM, "count": 16}, arm(now), arm(now | wanted), path, **_MODEL_MS)]


def _longer(key: str, name: str, now: int, wanted: int, **keys: Any) -> Experiment:
    """16 transfers at once into a ring or a backlog of both lengths. The processor pauses now and then: too long for
    the shorter length to hold what arrives, and not for the longer. A host that dropped packets had such pauses, or
    bursts of that length."""
    pause_us = max(int(math.sqrt(now * wanted) * PACKET_US), 1)
    away = {"steal": "2%", "steal_slice": f"{pause_us}us"}
    return Experiment(
        f"16 transfers at once over 10 Gbit/s and 5 ms, with pauses of {pause_us / 1000:.2g} ms",
        TIME_PER_BYTE,
        {**_STREAM, "count": 16},
        Arm(f"{name} of {now:,}", receiver={key: now, **away, **keys}),
        Arm(f"{name} of {wanted:,}", receiver={key: wanted, **away, **keys}),
        {"rate": "10Gbit/s", "rtt": "5ms", "buffer": "10MiB"},
        {"tcp_wmem_max": "64MiB", "tcp_rmem_max": "64MiB"},
        duration_ms=1000,
        warmup_ms=300,
        where=("model",),
    )


def _ring(finding: Finding) -> Sequence[Experiment]:
    now, change = number(finding, "ring_rx"), of_kind(finding, Ring)
    if now is None or change is None or change.rx is None:
        return []
    return [_longer("rx_ring", "a ring", now, change.rx)]


def _backlog(finding: Finding) -> Sequence[Experiment]:
    now, wanted = number(finding, "netdev_max_backlog"), goal(finding, "net.core.netdev_max_backlog")
    if now is None or not wanted:
        return []
    # Without GRO, since packets from another interface or through RPS may come unmerged.
    rps = {"cpus": 2, "rps_cpus": "2", "rx_ring": 8192, "gro": False}
    return [_longer("netdev_max_backlog", "a backlog", now, wanted[0], **rps)]


def _interrupts(wait_us: int) -> dict[str, Any]:
    return {"rx_coalesce": f"{wait_us}us"}


_USUAL_US = 20
"""The ena driver's first rx-usecs (netdev, 12 May 2024); adaptive moderation moves around it, which is not modelled."""

_EACH = Experiment(
    "a stream",
    CPU_PER_BYTE,
    _STREAM,
    Arm("an interrupt per packet", receiver=_interrupts(0)),
    Arm(f"interrupts {_USUAL_US} us apart", receiver=_interrupts(_USUAL_US)),
    NIC,
    **_MODEL_MS,
)


def _late(finding: Finding) -> Sequence[Experiment]:
    wait_us, rtt_us = number(finding, "rx_us"), number(finding, "min_rtt_us_p50")
    if wait_us is None or rtt_us is None:
        return []
    return [
        Experiment(
            f"one request at a time over {rtt_us} us",
            TIME_PER_REQUEST,
            {"workload": "request-response", "request": "64B", "response": "64B"},
            Arm(f"interrupts after {wait_us} us", sender=_interrupts(wait_us)),
            Arm(f"after {_USUAL_US} us", sender=_interrupts(_USUAL_US)),
            # The round-trip time that was found includes the wait.
            {**NIC, "rtt": f"{max(rtt_us - wait_us, 1)}us"},
            **_MODEL_MS,
        )
    ]


_STEERED = Plan(
    "a stream between two processors through one queue, and small requests in the model: time with and without RPS",
    _steered,
)
_QUEUES = Plan(
    "small requests to the model's server: time per request with receiving on as many as now, and on all", _more_queues
)

PLANS = {
    "offloads-off": Plan("a stream with GRO, segmentation or (in the model) TSO off and on: CPU per byte", _offloads),
    "one-queue-without-rps": _STEERED,
    "rps-on-one-cpu": _STEERED,
    "few-queues": _QUEUES,
    "virtio-one-queue": _QUEUES,
    "irqs-on-one-cpu": _QUEUES,
    "irqbalance-missing": Plan(_QUEUES.what, _more_places),
    "rss-leaves-queues-out": Plan(_QUEUES.what, _more_hashes),
    "rps-beside-rss": Plan("small requests to the model's server: time with and without RPS", _beside_rss),
    "rfs-half-set": Plan("small requests to the model's server: CPU with RPS alone and with RFS", _followed),
    "rx-ring-drops": Plan("transfers into the model's ring of both lengths, with pauses: time per byte", _ring),
    "softnet-drops": Plan("transfers into the model's backlog of both lengths, with pauses: time per byte", _backlog),
    "softnet-squeezed": Plan("transfers into the model's host: time per byte with both budgets", _budget),
    "interrupt-per-packet": always("a stream in the model: CPU per byte with and without moderation", _EACH),
    "interrupts-wait-long": Plan("one request at a time in the model: time with this wait and with 20 us", _late),
}
