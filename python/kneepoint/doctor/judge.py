"""All rules asked about one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kneepoint.errors import UsageError
from kneepoint.human import suggest

from .finding import SEVERITIES, Finding
from .rules import RULES, Rule
from .snapshot import Snapshot

NEVER_EMPTY = {"host", "sysctls", "interfaces", "counters", "softnet", "cpus"}
"""Tables that every host has rows for: an empty one could not be read. Of others nothing may be there."""


@dataclass(frozen=True)
class Judgement:
    """What rules found on one host."""

    findings: Sequence[Finding]
    """The worst first; of one severity in the order of the rules."""
    unjudged: Sequence[tuple[str, str]]
    """Rules that could not be asked, and why."""

    @property
    def is_wrong(self) -> bool:
        """Whether something is wrong: advice says that something could be better."""
        return any(finding.severity != "advice" for finding in self.findings)


def judge(snapshot: Snapshot, rules: Sequence[Rule] = RULES) -> Judgement:
    """Asks the rules."""
    findings: list[Finding] = []
    unjudged = []
    for rule in rules:
        empty = [name for name in rule.needs if name in NEVER_EMPTY and not snapshot.rows(name)]
        if empty:
            unjudged.append((rule.name, f"needs {', '.join(empty)}"))
            continue
        try:
            findings += rule.check(snapshot)
        except UsageError as error:
            # A value that no kernel gives, in a file that somebody wrote.
            unjudged.append((rule.name, str(error)))
    return Judgement(by_severity(findings), unjudged)


def by_severity(findings: Sequence[Finding]) -> list[Finding]:
    """The worst first, else in the same order."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def chosen(names: Sequence[str]) -> Sequence[Rule]:
    """The rules of those names; all without a name. Raises UsageError."""
    by_name = {rule.name: rule for rule in RULES}
    for name in names:
        if name not in by_name:
            expected = suggest(name, list(by_name), "expected one of", shown=["those of `knee list rules`"])
            raise UsageError(f'RULE: got "{name}"; {expected}.')
    return [by_name[name] for name in dict.fromkeys(names)] if names else RULES
