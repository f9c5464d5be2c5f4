"""Routes set an unusual initial window.

What it sees: routes with an initcwnd or initrwnd below 10, or an initcwnd above 32.
Why it matters: below 10 every new connection needs more round trips for its first answer than the kernel's default.
Far above, the first burst is larger than many queues on the way, and its losses cost more than was gained.
"""

from __future__ import annotations

from tcpknee.doctor.changes import Change, RouteWindow
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

USUAL_PKTS = 10
LARGE_PKTS = 32


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for row in snapshot.rows("routes"):
        cwnd, rwnd = row["initcwnd_pkts"], row["initrwnd_pkts"]
        low = [value for value in (cwnd, rwnd) if value and value < USUAL_PKTS]
        if not low and (cwnd or 0) <= LARGE_PKTS:
            continue
        name = row["interface"] or "route"
        changes: list[Change] = []
        if row["default"] and row["interface"] is not None:
            changes = [
                RouteWindow(
                    "default",
                    interface=row["interface"],
                    initcwnd=USUAL_PKTS if cwnd and (cwnd < USUAL_PKTS or cwnd > LARGE_PKTS) else None,
                    initrwnd=USUAL_PKTS if rwnd and rwnd < USUAL_PKTS else None,
                    netns=snapshot.netns,
                )
            ]
        findings.append(
            RULE.found(
                "warning" if low else "advice",
                name,
                f"{row['routes']} routes through {name} set initcwnd {cwnd or 'as it is'} and initrwnd "
                f"{rwnd or 'as it is'}.",
                {"initcwnd_pkts": cwnd, "initrwnd_pkts": rwnd, "routes": row["routes"]},
                confirm=["ip route show table all | grep init"],
                changes=changes,
                advice="" if changes else "Take initcwnd and initrwnd out of these routes.",
                gain="First answers of up to ten segments in one round-trip time." if low else "Fewer early losses.",
            )
        )
    return findings


RULE = Rule(
    name="initial-window",
    group="buffers",
    summary="routes set an initial window that is small or very large",
    source="RFC 6928 (ten segments); ip-route(8), initcwnd and initrwnd",
    manual=__doc__,
    check=_check,
    needs=("routes",),
)
