"""Routes set an unusual initial window.

What it sees: routes with an initcwnd or initrwnd below 10; default routes with an initcwnd above 32, unless all
connections stay inside: private addresses within 10 ms, of whose segments less than 0.1 % are lost.
Why it matters: below 10 every new connection needs more round trips for its first answer than the kernel's default.
Far above, the first burst is larger than many queues on the way to the public, and its losses cost more than was
gained. Inside a clean network it is a remedy: a short transfer is over before its window has grown (claim
initcwnd-100). It belongs on the routes to that network, which this rule leaves alone, and not on the default route.
"""

from __future__ import annotations

from tcpknee.doctor.changes import Change, RouteWindow
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

USUAL_PKTS = 10
LARGE_PKTS = 32
NEAR = ("below-1ms", "1-10ms")
CLEAN = 0.001
"""Share lost from which on a network is no clean one."""


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for row in snapshot.rows("routes"):
        cwnd, rwnd = row["initcwnd_pkts"], row["initrwnd_pkts"]
        low = [value for value in (cwnd, rwnd) if value and value < USUAL_PKTS]
        large = (cwnd or 0) > LARGE_PKTS and row["default"] and not _stays_inside(snapshot)
        if not low and not large:
            continue
        name = row["interface"] or "route"
        changes: list[Change] = []
        if row["default"] and row["interface"] is not None:
            changes = [
                RouteWindow(
                    "default",
                    interface=row["interface"],
                    initcwnd=USUAL_PKTS if large or (cwnd and cwnd < USUAL_PKTS) else None,
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
                advice=_advice(large=large, changes=bool(changes)),
                gain="First answers of up to ten segments in one round-trip time." if low else "Fewer early losses.",
            )
        )
    return findings


def _stays_inside(snapshot: Snapshot) -> bool:
    """Do all connections go to near private addresses, with hardly a loss? Not where there are none to tell."""
    rows = [row for row in snapshot.rows("sockets") if row["remote"] != "loopback" and row["connections"]]
    if not rows or any(row["remote"] != "private" or row["rtt_band"] not in NEAR for row in rows):
        return False
    sent, again = (sum(row[name] or 0 for row in rows) for name in ("data_segs_out", "retrans_segs"))
    return again <= CLEAN * sent


def _advice(*, large: bool, changes: bool) -> str:
    if large:
        return "Where it is meant for a network of your own, set it there: ip route change PREFIX … initcwnd N."
    return "" if changes else "Take initcwnd and initrwnd out of these routes."


RULE = Rule(
    name="initial-window",
    group="buffers",
    summary="routes set an initial window that is small or very large",
    source="RFC 6928 (ten segments); ip-route(8), initcwnd and initrwnd",
    manual=__doc__,
    check=_check,
    needs=("routes",),
)
