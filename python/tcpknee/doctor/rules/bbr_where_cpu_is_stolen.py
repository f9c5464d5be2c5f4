"""BBR in a virtual machine that waits for its processor.

What it sees: BBR in use, and a hypervisor that gave at least 1 % of the processor time to others.
Why it matters: a machine that is not running sends nothing and sees ACKs late. BBR measures that as a slow path,
paces by it and stays slow; algorithms that react to loss only do not.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

STOLEN_PCT = 1.0


def _check(snapshot: Snapshot) -> list[Finding]:
    used = facts.uses_bbr(snapshot)
    stolen = snapshot.host["steal_pct"]
    if not used or stolen is None or stolen < STOLEN_PCT:
        return []
    return [
        RULE.found(
            "warning",
            ", ".join(used),
            f"{', '.join(used)} on a machine whose hypervisor gave {stolen:.1f} % of its time to others.",
            {"steal_pct": stolen, "hypervisor": snapshot.host["hypervisor"], "algorithms": ", ".join(used)},
            confirm=["grep ^cpu /proc/stat", "vmstat 1 5"],
            advice="Move to a machine with processors of its own, or compare CUBIC here with `knee record`.",
            gain="The paper saw BBR held below 10 to 20 Mbit/s under contention, on every hypervisor tried; CUBIC not.",
        )
    ]


RULE = Rule(
    name="bbr-where-cpu-is-stolen",
    group="algorithm",
    summary="BBR in a virtual machine that waits for processor time",
    source="arXiv 2601.05665 (2BRobust: BBR in virtual machines under CPU contention)",
    manual=__doc__,
    check=_check,
    needs=("host", "sysctls"),
)
