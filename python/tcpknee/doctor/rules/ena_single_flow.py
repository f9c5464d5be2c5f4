"""One connection runs at the cloud's bound for a flow.

What it sees: with the ENA driver, a connection's delivery rate from 8 % below to 5 % above 5 or 10 Gbit/s, on an
interface that carries more.
Why it matters: outside a cluster placement group a flow gets 5 Gbit/s, within one 10. What is above is dropped, so the
connection loses what it sends too much. More connections carry more; a larger window does not.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

BELOW, ABOVE = 0.08, 0.05
"""A delivery rate is over a round trip: the bound lets bursts through."""

ADVICE = {
    5_000_000_000: "Use several connections, a cluster placement group, or ENA Express where both ends have it.",
    # Who has that rate is in a placement group.
    10_000_000_000: "Use several connections, or ENA Express where both ends have it. What one connection loses above "
    "the bound, pacing below it saves: maxrate of fq, or SO_MAX_PACING_RATE of the program.",
}


def _check(snapshot: Snapshot) -> list[Finding]:
    if not any(row["driver"] == "ena" for row in facts.devices(snapshot)):
        return []
    rows = [row for row in snapshot.rows("sockets") if row["remote"] != "loopback"]
    fastest = max((row["delivery_rate_bits_per_sec_max"] or 0 for row in rows), default=0)
    bound = next((one for one in ADVICE if (1 - BELOW) * one <= fastest <= (1 + ABOVE) * one), None)
    if bound is None:
        return []
    [row, *_] = [row for row in rows if row["delivery_rate_bits_per_sec_max"] == fastest]
    lost, sent = row["retrans_segs"] or 0, row["data_segs_out"] or 0
    losses = f" Of its group {100 * lost / sent:.2g} % of the segments were lost." if lost and sent else ""
    return [
        RULE.found(
            "advice",
            "single connections",
            f"The fastest connection has {fastest / 1e9:.1f} Gbit/s, near the bound of {bound / 1e9:.0f} for a flow."
            + losses,
            {
                "delivery_rate_bits_per_sec_max": fastest,
                "bound_bits_per_sec": bound,
                "retrans_segs": lost,
                "data_segs_out": sent,
            },
            confirm=["ss -tin state established | grep -o 'delivery_rate [^ ]*'"],
            advice=ADVICE[bound],
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
