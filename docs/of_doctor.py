"""The generated parts of the pages about `knee doctor` and `knee snapshot`."""

from __future__ import annotations

from layout import code, table

from tcpknee.doctor.measure import PLANS, UNMEASURED
from tcpknee.doctor.rules import GROUPS, RULES
from tcpknee.doctor.snapshot.tables import TABLES


def rules() -> str:
    """Every rule of the doctor, a section per group."""
    parts = []
    for group, title in GROUPS.items():
        rows = [[code(rule.name), rule.summary, rule.source] for rule in RULES if rule.group == group]
        parts.append(f"### {title}\n\n{table(['rule', 'what is wrong', 'source'], rows)}")
    return "\n".join(parts)


def measured() -> str:
    """What `knee doctor --measure` compares for the findings of each rule, and why nothing for the others."""
    rows = [[code(name), plan.what] for name, plan in PLANS.items()]
    by_reason: dict[str, list[str]] = {}
    for name, why in UNMEASURED.items():
        by_reason.setdefault(why, []).append(code(name))
    others = [[", ".join(names), f"what is found {why}"] for why, names in by_reason.items()]
    return f"{table(['rule', 'work, and what is compared'], rows)}\n\n{table(['not measured', 'because'], others)}"


def snapshot_tables() -> str:
    """Every column of a snapshot."""
    parts = []
    for name, listed in TABLES.items():
        rows = [[code(one.name), one.kind, one.unit, one.doc] for one in listed.columns.values()]
        head = f"### {name}\n\n{listed.doc} From: {listed.source}.\n\n"
        parts.append(head + table(["column", "type", "unit", "meaning"], rows))
    return "\n".join(parts)
