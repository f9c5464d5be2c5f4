"""The kernel's version of the algorithm has a defect that later releases lack.

What it sees: an algorithm in use on a kernel from before a known fix of it.
Why it matters: the fix changed what the algorithm sends. Distributions take such fixes over at times, without another
version: ask for the commit.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


@dataclass(frozen=True)
class Defect:
    algorithm: str
    rule: str
    """Of `knee kernel rules`, whose last change is the fix."""
    told: str
    with_fq: bool | None = None
    """Only with fq, only without; None: either way."""
    since: tuple[int, int] = (0, 0)
    taken_over: tuple[tuple[int, int], ...] = ()
    """Older long-term releases that have the fix since."""

    @property
    def fixed(self) -> tuple[int, int]:
        return facts.changed_in(self.rule)[0]

    @property
    def commit(self) -> str:
        return facts.changed_in(self.rule)[1]


DEFECTS = (
    Defect(
        "cubic",
        "cubic.per_ack",
        "CUBIC grows its window by ACKs instead of by segments, so that GRO and offloads of the far end slow it down",
    ),
    Defect(
        "bbr",
        "send_stamps",
        "fq paces by rate instead of departure times, so that its wait is in the round-trip times that BBR goes by",
        with_fq=True,
    ),
    Defect(
        "bbr",
        "bbr1.pace_headers",
        "without fq TCP's own timer paces BBR 3.6 % faster than what it measured, so that a queue stands for good",
        with_fq=False,
        since=(4, 13),
    ),
    Defect(
        "bbr",
        "bbr1.ack_aggregation",
        "BBR does not allow for ACKs that come in bunches, as behind Wi-Fi, and starves there",
        taken_over=((4, 19),),
    ),
    Defect(
        "cubic",
        "HyStart and pacing",
        "HyStart takes the gaps that pacing makes for a full path and leaves slow start early",
        with_fq=True,
    ),
)


def _check(snapshot: Snapshot) -> list[Finding]:
    version = facts.kernel(snapshot)
    if version is None:
        return []
    used = {*facts.connections(snapshot), facts.default_algorithm(snapshot)}
    has_fq = any(row["kind"] == "fq" for row in snapshot.rows("qdiscs"))
    return [
        RULE.found(
            "advice",
            defect.algorithm,
            f"{defect.told}.",
            {
                "kernel": snapshot.host["kernel"],
                "fixed_in": ".".join(map(str, defect.fixed)),
                "commit": defect.commit,
                "connections": facts.connections(snapshot).get(defect.algorithm, 0),
            },
            confirm=["uname -r"],
            advice=f"Update to Linux {'.'.join(map(str, defect.fixed))} or later, or ask the distribution for "
            f"{defect.commit}.",
            gain="What the commit's message measured.",
        )
        for defect in DEFECTS
        if defect.algorithm in used
        and defect.since <= version < defect.fixed
        and version not in defect.taken_over
        and defect.with_fq in (None, has_fq)
    ]


RULE = Rule(
    name="algorithm-defect",
    group="algorithm",
    summary="this kernel's version of an algorithm in use has a known defect",
    source="Linux e73ebb0881ea and after (4.0, CUBIC and stretch ACKs), ab408b6dc744 (4.20, BBR and departure times), "
    "cadefe5f584a (4.19, BBR and TCP's timer), 78dc70ebaa38 (5.1, BBR and aggregation), ede656e84658 (5.6, HyStart and "
    "pacing)",
    manual=__doc__,
    check=_check,
    needs=("host", "sysctls"),
)
