"""A running value is not the one that is configured.

What it sees: sysctls that files of sysctl.d, or the active profile of tuned, set to another value than the running
one.
Why it matters: the next boot, or the next start of tuned, brings the configured value. What is measured today does
not hold then; or the setting never took effect.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Row, Snapshot

from .rule import Rule

MOVING = ("nf_conntrack_count",)
AT_BOOT = {"net.core.default_qdisc"}


def _check(snapshot: Snapshot) -> list[Finding]:
    # Namespaces of their own begin with the kernel's defaults, and no file is applied to them.
    if snapshot.host["initial_netns"] is False or snapshot.host["container"] not in ("none", None):
        return []
    findings = []
    for name, row in configured(snapshot).items():
        running, wanted = snapshot.sysctl(name), row["value"]
        if running is None or wanted is None or same(running, wanted) or name.endswith(MOVING):
            continue
        findings.append(
            RULE.found(
                "advice",
                name,
                f"{name} is {running}, and {row['path']} sets {wanted}.",
                {"running": running, "configured": wanted, "owner": row["owner"], "path": row["path"]},
                confirm=[f"sysctl {name}", f"grep -rs {name} /etc/sysctl.conf /etc/sysctl.d /usr/lib/sysctl.d"],
                changes=[] if name in AT_BOOT else facts.settable(name, wanted, snapshot.netns),
                advice="Decide which of the two is meant, and make the other the same.",
                gain="The next boot changes nothing.",
            )
        )
    return findings


def configured(snapshot: Snapshot) -> dict[str, Row]:
    """What holds of each sysctl: tuned comes after sysctl.d, and within an owner the last one."""
    rows = [row for row in snapshot.rows("owners") if row["kind"] == "setting" and row["name"]]
    rows.sort(key=lambda row: row["owner"] == "tuned")
    return {row["name"]: row for row in rows}


def same(one: str, other: str) -> bool:
    """Words alike, numbers by value."""
    numbers = _numbers(one)
    return one.split() == other.split() or (numbers is not None and numbers == _numbers(other))


def _numbers(text: str) -> list[int] | None:
    try:
        return [int(word, 0) for word in text.split()]
    except ValueError:
        return None


RULE = Rule(
    name="setting-drift",
    group="ownership",
    summary="a running value is not the configured one",
    source="sysctl.d(5); tuned.conf(5)",
    manual=__doc__,
    check=_check,
    needs=("owners", "sysctls", "host"),
)
