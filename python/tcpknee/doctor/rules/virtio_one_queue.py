"""The virtual machine was given one queue.

What it sees: virtio_net with at most one queue, on two processors or more.
Why it matters: the device has no more queues: changing them is not supported here, rather than forgotten. Whoever
runs the hypervisor can give the device one for each processor.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    cpus = snapshot.host["cpus"] or 0
    if cpus < 2:
        return []
    findings = []
    for interface in facts.devices(snapshot):
        channels = next(iter(snapshot.of_interface("channels", interface)), None)
        if interface["driver"] != "virtio_net" or channels is None or channels["combined_max"] != 1:
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                "advice",
                name,
                f"{name} has one queue for {cpus} processors, and cannot be given more from within.",
                {"combined_max": 1, "cpus": cpus, "hypervisor": snapshot.host["hypervisor"]},
                confirm=[f"ethtool -l {name}"],
                advice="At the hypervisor: queues=N, vectors=2N+2 (QEMU), <driver queues='N'/> (libvirt). Until then "
                "RPS spreads receiving in software.",
                gain="Receiving and sending are spread over the processors.",
            )
        )
    return findings


RULE = Rule(
    name="virtio-one-queue",
    group="cloud",
    summary="a virtual machine has a single network queue, which only the hypervisor changes",
    source="linux-kvm.org/page/Multiqueue; libvirt.org/formatdomain.html (driver queues)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "channels", "host"),
)
