"""Two programs set the same thing.

What it sees: a sysctl that sysctl.d and tuned set to different values, or that a file sets and bpftune tunes.
Why it matters: which value runs depends on who came last. A change that is written for one of them is undone by the
other.
"""

from __future__ import annotations

import re

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Row, Snapshot

from .rule import Rule
from .setting_drift import same

BPFTUNE = re.compile(
    r"net\.ipv4\.tcp_([rw]?mem|no_metrics_save|moderate_rcvbuf|congestion_control|allowed_congestion_control|"
    r"syncookies|max_syn_backlog|max_orphans)|net\.core\.(netdev_max_backlog|netdev_budget(_usecs)?|dev_weight|"
    r"flow_limit_cpu_bitmap|[rw]mem_(max|default))|net\.ipv[46]\.neigh\.default\.gc_thresh\d"
)
"""What bpftune sets while it runs (its docs, one page for each tuner)."""


def _check(snapshot: Snapshot) -> list[Finding]:
    owners: dict[str, dict[str, Row]] = {}
    for row in snapshot.rows("owners"):
        if row["kind"] == "setting" and row["name"] and row["value"] is not None:
            owners.setdefault(row["name"], {})[row["owner"]] = row
    tunes = facts.runs(snapshot, "bpftune")
    findings = []
    for name, by in owners.items():
        values = [row["value"] for row in by.values()]
        differ = any(not same(values[0], value) for value in values[1:])
        tuned_live = tunes and BPFTUNE.fullmatch(name) is not None
        if not differ and not tuned_live:
            continue
        who = [f"{row['path'] or owner} sets {row['value']}" for owner, row in by.items()]
        if tuned_live:
            who.append("bpftune tunes it")
        findings.append(
            RULE.found(
                "advice",
                name,
                f"{name}: {', '.join(who)}.",
                {"running": snapshot.sysctl(name), **{f"{owner} value": row["value"] for owner, row in by.items()}},
                confirm=[f"sysctl {name}", "tuned-adm active", "systemctl is-active bpftune tuned"],
                advice="Leave it to one of them: take it out of the file, or stop the program that tunes it.",
                gain="One value, whoever starts last.",
            )
        )
    return findings


RULE = Rule(
    name="two-owners",
    group="ownership",
    summary="two programs set the same sysctl",
    source="tuned.conf(5), reapply_sysctl; github.com/oracle/bpftune, docs (it withdraws where others set a value)",
    manual=__doc__,
    check=_check,
    needs=("owners", "sysctls"),
)
