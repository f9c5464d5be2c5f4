"""A host as a page: what is wrong, where packets go, its qdiscs, rings and connections. Of a snapshot.

And many hosts as one: which rule finds something on how many, and where hosts differ that should be alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tcpknee import human
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.fleet import Fleet
from tcpknee.doctor.judge import judge
from tcpknee.doctor.render import few_of_each, now, summary, summary_of_host, value_told
from tcpknee.doctor.rules import RULES
from tcpknee.doctor.snapshot import Row, Snapshot
from tcpknee.errors import UsageError

from . import export, html
from .host_picture import picture

INTERFACES_AT_MOST = 64
"""Interfaces that the page has; a host with thousands of containers has as many, nearly all alike."""
QDISCS_AT_MOST = 64
"""Qdiscs of one interface that the page has."""

_LAST_UNIX_S = 253_402_300_799
"""The end of the year 9999."""


def save(found: Snapshot | Fleet, path: Path) -> Path:
    """Writes the page, which needs no network and runs no script."""
    if path.suffix.lower() != ".html":
        raise UsageError(f"{path}: got the ending {path.suffix or 'of no kind'!r}; expected .html.")
    text = page(found) if isinstance(found, Snapshot) else fleet_page(found)
    export.write_file(path, text.encode("utf-8"))
    return path


def fleet_page(fleet: Fleet) -> str:
    """Many hosts as a page."""
    counted = human.counted(len(fleet.hosts), "host")
    first = fleet.hits[0] if fleet.hits else None
    summaries = {rule.name: rule.summary for rule in RULES}
    told = f" First: {first.rule}, on {len(first.hosts)} of them." if first else ""
    return html.still_page(
        "hosts.html.j2",
        title=counted,
        answer=f"{human.counted(len(fleet.hits), 'rule')} of {len(RULES)} found something.{told}",
        hits=[
            {
                "rule": hit.rule,
                "summary": summaries[hit.rule],
                "severity": hit.severity,
                "count": len(hit.hosts),
                "pct": 100 * len(hit.hosts) / len(fleet.hosts),
                "hosts": hit.hosts,
            }
            for hit in fleet.hits
        ],
        drifts=fleet.drifts,
        unread=fleet.unread,
    )


def page(snapshot: Snapshot) -> str:
    """The snapshot as a page, with what the rules find in it."""
    judgement = judge(snapshot)
    findings = judgement.findings
    shown, more = few_of_each(findings)
    host = snapshot.host
    interfaces = sorted(
        snapshot.rows("interfaces"), key=lambda row: -((row["rx_packets"] or 0) + (row["tx_packets"] or 0))
    )
    return html.still_page(
        "host.html.j2",
        title=host["host"] or "a host",
        about=summary_of_host(host),
        answer=answer(findings),
        facts=_facts(snapshot),
        findings=[_finding(one) for one in shown],
        more_findings=more,
        picture=picture(snapshot),
        interfaces=[_interface(snapshot, row) for row in interfaces[:INTERFACES_AT_MOST]],
        more_interfaces=max(0, len(interfaces) - INTERFACES_AT_MOST),
        sockets=_sockets(snapshot.rows("sockets")),
        missing=snapshot.missing,
        unjudged=judgement.unjudged,
    )


def answer(findings: Sequence[Finding]) -> str:
    """The page's first sentence."""
    if not findings:
        return f"None of {human.counted(len(RULES), 'rule')} finds anything wrong."
    return f"{summary(findings)} First: {findings[0].subject}: {findings[0].told}"


def _up(seconds: float) -> str:
    """`3.2 days`, `40 min 12 s`."""
    return f"{seconds / 86_400:,.1f} days" if seconds >= 86_400 else human.duration(int(seconds * 1e9))


def _facts(snapshot: Snapshot) -> list[tuple[str, str]]:
    """What the host is, in the order that a person asks."""
    host = snapshot.host
    cloud = " ".join(word for word in (host["cloud"], host["instance_type"]) if word)
    # A foreign file may give a time that no calendar has.
    taken = datetime.fromtimestamp(min(max(snapshot.taken_unix_ns / 1e9, 0), _LAST_UNIX_S), timezone.utc)
    up_s = host["uptime_sec"]
    facts = [
        ("taken", f"{taken:%Y-%m-%d %H:%M:%S} UTC"),
        ("up", _up(up_s) if up_s is not None else None),
        ("looked at twice", f"{snapshot.earlier.seconds:g} s apart" if snapshot.earlier is not None else None),
        ("kernel", host["kernel"]),
        ("distribution", " ".join(word for word in (host["distribution"], host["distribution_version"]) if word)),
        ("processors", host["cpus"]),
        ("memory", human.quantity("bytes", host["memory_bytes"]) if host["memory_bytes"] else None),
        ("hypervisor", host["hypervisor"]),
        ("container", host["container"]),
        ("cloud", cloud),
        ("congestion controls", ", ".join(host["algorithms"] or ())),
        ("clock", host["clocksource"]),
        ("stolen since boot", f"{host['steal_pct']:.2f} %" if host["steal_pct"] is not None else None),
        ("network namespace", host["netns"]),
    ]
    return [(name, str(value)) for name, value in facts if value not in (None, "")]


def _finding(one: Finding) -> Mapping[str, Any]:
    return {
        "rule": one.rule,
        "severity": one.severity,
        "subject": one.subject,
        "told": one.told,
        "now": now(one.now) if one.now is not None else "",
        "why": one.why,
        "gain": one.gain,
        "advice": one.advice,
        "source": one.source,
        "evidence": [(name, value_told(value)) for name, value in one.evidence.items() if value is not None],
        "confirm": list(one.confirm),
        "changes": [line for change in one.changes for line in change.shown()],
    }


def _interface(snapshot: Snapshot, row: Row) -> Mapping[str, Any]:
    ring = next(iter(snapshot.of_interface("rings", row)), None)
    drops = [
        (name, row[name])
        for name in ("rx_dropped", "tx_dropped", "rx_missed_errors", "rx_fifo_errors", "rx_errors", "tx_errors")
        if row[name]
    ]
    tree = tree_of(snapshot.of_interface("qdiscs", row))
    return {
        "name": row["interface"],
        "kind": row["kind"] or row["driver"] or ("loopback" if row["loopback"] else "device"),
        "state": row["operstate"],
        "speed": human.quantity("rate", row["speed_bits_per_sec"]) if row["speed_bits_per_sec"] else "",
        "mtu": row["mtu_bytes"],
        "rx_ring": _ring(ring, "rx"),
        "tx_ring": _ring(ring, "tx"),
        "queues": f"{row['rx_queues']} rx, {row['tx_queues']} tx" if row["rx_queues"] is not None else "",
        "drops": ", ".join(f"{name} {count:,}" for name, count in drops),
        "qdiscs": tree[:QDISCS_AT_MOST],
        "more_qdiscs": max(0, len(tree) - QDISCS_AT_MOST),
    }


def _ring(ring: Row | None, side: str) -> str:
    """`256 of 4096`."""
    if ring is None or ring[side] is None:
        return ""
    return f"{ring[side]}" if ring[f"{side}_max"] is None else f"{ring[side]} of {ring[f'{side}_max']}"


def tree_of(rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    """Qdiscs in the order of their tree, each with how deep it hangs. One whose parent is not there hangs from the
    top, and so does one of several that are each other's parents."""
    majors = {_major(row["handle"]) for row in rows if row["handle"]}
    below: dict[str, list[Row]] = {}
    for row in rows:
        parent = _major(row["parent"])
        below.setdefault(parent if parent in majors else "", []).append(row)
    tree: list[Mapping[str, Any]] = []
    waiting: list[tuple[Row, int]] = []
    while waiting or below:
        if not waiting:
            waiting = [(row, 0) for row in reversed(below.pop("" if "" in below else next(iter(below))))]
        row, depth = waiting.pop()
        tree.append(_qdisc(row, depth))
        # Taken out, so that a handle that is given twice leads nowhere the second time.
        hanging = below.pop(_major(row["handle"]), []) if row["handle"] else []
        waiting += [(one, depth + 1) for one in reversed(hanging)]
    return tree


def _major(handle: str | None) -> str:
    return (handle or "").split(":")[0]


def _qdisc(row: Row, depth: int) -> Mapping[str, Any]:
    options = ", ".join(f"{name} {value}" for name, value in (row["options"] or {}).items())
    return {
        "depth": depth,
        "kind": row["kind"],
        "at": " ".join(word for word in (row["handle"], row["parent"]) if word),
        "options": options,
        "packets": _number(row["packets"]),
        "drops": _number(row["drops"]),
        "backlog": _number(row["backlog_pkts"]),
    }


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _sockets(rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    """Groups of connections, those that sent most first."""
    told: list[Mapping[str, Any]] = []
    for row in sorted(rows, key=lambda row: -(row["bytes_acked"] or 0)):
        out, again = row["data_segs_out"], row["retrans_segs"]
        busy = row["busy_us"] or 0
        told.append(
            {
                "algorithm": row["algorithm"],
                "remote": row["remote"],
                "band": row["rtt_band"],
                "connections": row["connections"],
                "acked": human.quantity("bytes", row["bytes_acked"]) if row["bytes_acked"] is not None else "",
                "srtt": human.quantity("time", row["srtt_us_p50"]) if row["srtt_us_p50"] is not None else "",
                "retrans": f"{100 * again / out:.2f} %" if out and again is not None else "",
                "rwnd": f"{100 * (row['rwnd_limited_us'] or 0) / busy:.1f} %" if busy else "",
                "sndbuf": f"{100 * (row['sndbuf_limited_us'] or 0) / busy:.1f} %" if busy else "",
            }
        )
    return told
