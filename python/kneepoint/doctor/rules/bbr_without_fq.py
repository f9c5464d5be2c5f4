"""BBR paced by TCP's own timers, because no fq stands in its way out.

What it sees: connections that have BBR, or would get it, on an interface that sends through a leaf that is not fq.
Why it matters: BBR before Linux 4.13 is not paced at all then. Later kernels keep a timer per connection, which costs
processor time: until 4.20 one after every packet, since then one for each packet whose time lies in the future.
"""

from __future__ import annotations

from kneepoint.doctor import facts
from kneepoint.doctor.finding import Finding, Severity
from kneepoint.doctor.snapshot import Snapshot

from .rule import Rule

_PACES = {"fq"}


def _check(snapshot: Snapshot) -> list[Finding]:
    used = facts.uses_bbr(snapshot)
    version = facts.kernel(snapshot)
    if not used or version is None:
        return []
    counts = facts.connections(snapshot)
    live = sum(counts.get(name, 0) for name in used)
    severity, why, gain = _cost(version)
    findings = []
    for interface in facts.senders(snapshot):
        leaves = facts.leaves(snapshot, interface)
        kinds = sorted({leaf["kind"] for leaf in leaves})
        # A mix is the matter of `mq-leaf-without-fq`.
        if not leaves or _PACES & set(kinds):
            continue
        findings.append(
            Finding(
                rule=RULE.name,
                severity=severity,
                subject=interface["interface"],
                told=f"{', '.join(used)} sends through {', '.join(kinds)}, which does not pace.",
                evidence={
                    "kernel": snapshot.host["kernel"],
                    "algorithms": ", ".join(used),
                    "connections": live,
                    "qdiscs": ", ".join(kinds),
                },
                why=why,
                confirm=[f"tc -s qdisc show dev {interface['interface']}", "ss -tin state established"],
                source=RULE.source,
                gain=gain,
                namespace=interface["netns"] or "",
            )
        )
    return findings


def _cost(version: tuple[int, int]) -> tuple[Severity, str, str]:
    if version < (4, 13):
        return (
            "critical",
            "Before Linux 4.13 only fq paces. BBR without it sends its window in bursts, which queues drop.",
            "BBR works as meant; without pacing its model of the path does not hold.",
        )
    if version < (4, 20):
        return (
            "warning",
            "Until Linux 4.20 TCP starts a high-resolution timer after every packet that it paces itself.",
            "864e5c090749 took away the timers that were not needed: TCP_RR rose by about 10 %.",
        )
    return (
        "advice",
        "TCP paces by a timer of each connection. fq has one timer per queue and sends what is due together.",
        "Less processor time per byte with many paced connections; `--measure` says how much here.",
    )


RULE = Rule(
    name="bbr-without-fq",
    group="pacing",
    summary="BBR is paced by TCP's timers because the leaf qdisc is not fq.",
    source="Linux 218af599fa63 (4.13, internal pacing), 864e5c090749 (4.20, fewer timers); net/ipv4/tcp_output.c",
    check=_check,
    needs=("host", "interfaces", "qdiscs", "sysctls"),
)
