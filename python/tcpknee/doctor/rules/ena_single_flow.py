"""One connection runs at the cloud's bound for a flow.

What it sees: with the ENA driver, a connection's delivery rate within 8 % below 5 or 10 Gbit/s, on an interface that
carries more.
Why it matters: outside a cluster placement group a flow gets 5 Gbit/s, within one 10. More connections carry more; a
larger window does not.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

BOUNDS_BITS_PER_SEC = (5_000_000_000, 10_000_000_000)
BELOW = 0.08


def _check(snapshot: Snapshot) -> list[Finding]:
    if not any(row["driver"] == "ena" for row in facts.devices(snapshot)):
        return []
    fastest = max(
        (row["delivery_rate_bits_per_sec_max"] or 0 for row in snapshot.rows("sockets") if row["remote"] != "loopback"),
        default=0,
    )
    bound = next((one for one in BOUNDS_BITS_PER_SEC if (1 - BELOW) * one <= fastest <= one), None)
    if bound is None:
        return []
    return [
        RULE.found(
            "advice",
            "single connections",
            f"The fastest connection has {fastest / 1e9:.1f} Gbit/s, near the bound of {bound / 1e9:.0f} for a flow.",
            {"delivery_rate_bits_per_sec_max": fastest, "bound_bits_per_sec": bound},
            confirm=["ss -tin state established | grep -o 'delivery_rate [^ ]*'"],
            advice="Use several connections, a cluster placement group, or ENA Express where both ends have it.",
            gain="More than one flow's bound.",
        )
    ]


RULE = Rule(
    name="ena-single-flow",
    group="cloud",
    summary="a connection runs at the cloud's bound for one flow",
    source="AWS, Amazon EC2 instance network bandwidth (5 Gbit/s for a flow, 10 within a cluster placement group); "
    "github.com/amzn/amzn-drivers, kernel/linux/ena/ENA_Linux_Best_Practices.rst (5 to 10 Gbit/s)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "sockets"),
)
