"""BBR is paced by TCP's own timers.

What it sees: connections that have BBR, or would get it, on an interface that sends through a leaf that is not fq.
Why it matters: BBR needs pacing. Before Linux 4.13 only fq paces, so that BBR sends its window in bursts. Later
kernels keep a timer for each connection, which costs processor time: until 4.20 one after every packet, since then
one for each packet whose time lies in the future. fq has one timer for each queue. A kernel that was built without fq
(CONFIG_NET_SCH_FQ) cannot be mended by a setting.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Qdisc
from tcpknee.doctor.finding import Finding, Severity
from tcpknee.doctor.snapshot import Row, Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    used = facts.uses_bbr(snapshot)
    version = facts.kernel(snapshot)
    if not used or version is None:
        return []
    counts = facts.connections(snapshot)
    connections = sum(counts.get(one, 0) for one in used)
    sends, so_far = ("sends", "") if connections else ("would send", " No connection with it was seen.")
    severity, gain = _cost(version)
    lacks_fq = snapshot.host["has_fq"] is False
    findings = []
    for interface in facts.senders(snapshot):
        kinds = sorted({leaf["kind"] or "unknown" for leaf in facts.leaves(snapshot, interface)})
        # Of a mix `mq-leaf-without-fq` speaks.
        if not kinds or "fq" in kinds:
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                severity,
                name,
                f"{', '.join(used)} {sends} through {', '.join(kinds)}, which does not pace"
                + (", and this kernel has no fq." if lacks_fq else ".")
                + so_far,
                {
                    "kernel": snapshot.host["kernel"],
                    "algorithms": ", ".join(used),
                    "connections": connections,
                    "qdiscs": ", ".join(kinds),
                    "has_fq": snapshot.host["has_fq"],
                },
                confirm=[f"tc -s qdisc show dev {name}", "ss -tin state established"],
                changes=[]
                if lacks_fq
                else [Qdisc(name, "fq", leaves=facts.leaf_count(interface), netns=snapshot.netns)],
                advice=_advice(interface, version, lacks_fq=lacks_fq),
                gain=gain,
                # Another kernel is not the first thing to see to for an algorithm that works, and that nothing has yet.
                events=0 if severity == "advice" and lacks_fq and not connections else None,
            )
        )
    return findings


def _advice(interface: Row, version: tuple[int, int], *, lacks_fq: bool) -> str:
    if not lacks_fq:
        if interface["kind"] in facts.SMALL_CONTAINER:
            return "Look at the host first: it may have fq where these packets leave it, unseen from here."
        return ""
    # A container has the host's kernel.
    until = "use another algorithm, since nothing paces BBR" if version < (4, 13) else "TCP's own timers pace BBR"
    return f"Boot a kernel with CONFIG_NET_SCH_FQ, as those of distributions have it; until then {until}."


def _cost(version: tuple[int, int]) -> tuple[Severity, str]:
    if version < (4, 13):
        return "critical", "BBR works as meant; its model of the path does not hold without pacing."
    if version < (4, 20):
        return "warning", "864e5c090749, which took most of these timers away, measured 10 % more requests (TCP_RR)."
    return "advice", "Less processor time per byte with many paced connections; `--measure` says how much here."


RULE = Rule(
    name="bbr-without-fq",
    group="pacing",
    summary="BBR is paced by TCP's timers because the leaf qdisc is not fq",
    source="Linux 218af599fa63 (4.13, internal pacing), 864e5c090749 (4.20, the timer is set only for packets of the "
    "future; 10 % more of TCP_RR)",
    manual=__doc__,
    check=_check,
    needs=("host", "interfaces", "qdiscs", "sysctls"),
)
