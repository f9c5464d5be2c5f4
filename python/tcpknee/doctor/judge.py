"""All rules asked about one snapshot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcpknee.errors import UsageError
from tcpknee.human import suggest

from .finding import SEVERITIES, Finding, Now
from .rules import RULES, Rule
from .snapshot import Snapshot

NEVER_EMPTY = {"host", "sysctls", "interfaces", "counters", "softnet", "cpus"}
"""Tables that every host has rows for: an empty one could not be read. Of others nothing may be there."""

NAMED_AS = {"irqs": "interrupts", "listeners": "sockets"}
"""The words of a snapshot's `missing` for tables that it does not name as they are called."""


@dataclass(frozen=True)
class Judgement:
    """What rules found on one host."""

    findings: Sequence[Finding]
    """The worst first; of one severity what goes on first, then in the order of the rules."""
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
    named = {word for one in snapshot.missing for word in re.findall(r"\w+", one.what.lower())}
    for rule in rules:
        empty = [name for name in rule.needs if name in NEVER_EMPTY and not snapshot.rows(name)]
        if empty:
            unjudged.append((rule.name, f"needs {', '.join(empty)}"))
            continue
        try:
            found = _checked(rule, snapshot)
        except UsageError as error:
            # A value that no kernel gives, in a file that somebody wrote.
            unjudged.append((rule.name, str(error)))
            continue
        findings += found
        unread = [name for name in rule.needs if NAMED_AS.get(name, name) in named and not snapshot.rows(name)]
        if unread and not found:
            unjudged.append((rule.name, f"needs {', '.join(unread)}"))
    return Judgement(by_severity(findings), unjudged)


def _checked(rule: Rule, snapshot: Snapshot) -> list[Finding]:
    """What the rule finds; where the snapshot has two samples, with what they say of now."""
    found = list(rule.check(snapshot))
    window, before = snapshot.window, snapshot.before
    if not rule.counts or snapshot.earlier is None or window is None or before is None:
        return found
    seconds = snapshot.earlier.seconds
    past, lately = _by_subject(rule.check(before)), _by_subject(rule.check(window))
    judged = []
    for finding in found:
        now = lately.pop(finding.subject, None)
        at_present = replace(finding, now=_now(rule, finding, past.get(finding.subject), now, seconds))
        # Rare since boot may be frequent now.
        if now is not None and now.pays:
            worse = min(finding.severity, now.severity, key=SEVERITIES.index)
            at_present = replace(at_present, severity=worse, unpaid="")
        judged.append(at_present)
    # Little since boot, but much at present. A finding about a setting is no such thing.
    begun = [(finding, _grown(rule, finding, None, seconds)) for finding in lately.values()]
    return judged + [
        replace(
            finding,
            told=f"In the last {seconds:.0f} s: {finding.told}",
            now=Now(seconds, per_sec, goes_on=True),
        )
        for finding, per_sec in begun
        if per_sec or any(name.endswith("_pct") for name in rule.counts)
    ]


def _by_subject(findings: Sequence[Finding]) -> dict[str, Finding]:
    return {finding.subject: finding for finding in findings}


def _now(rule: Rule, finding: Finding, past: Finding | None, lately: Finding | None, seconds: float) -> Now | None:
    """None: nothing of its evidence counts, so that it is about a setting."""
    if not set(rule.counts) & finding.evidence.keys():
        return None
    per_sec = _grown(rule, finding, past, seconds) if past is not None else {}
    if lately is not None:
        per_sec = _grown(rule, lately, None, seconds)
    # A rule may say that something is possible here, of which nothing happened.
    return Now(seconds, per_sec, goes_on=bool(per_sec) or (lately is not None and lately.pays))


def _grown(rule: Rule, finding: Finding, past: Finding | None, seconds: float) -> dict[str, float]:
    """How much a second each count of the evidence grew; without `past` it began at 0."""
    found = {}
    for name in rule.counts:
        value, first = finding.evidence.get(name), past.evidence.get(name) if past is not None else 0
        if isinstance(value, int) and isinstance(first, int) and value > first and not name.endswith("_pct"):
            found[name] = round((value - first) / seconds, 3)
    return found


def by_severity(findings: Sequence[Finding]) -> list[Finding]:
    """The worst first; of one severity what goes on before what does not, else in the same order."""
    return sorted(
        findings,
        key=lambda finding: (SEVERITIES.index(finding.severity), finding.now is not None and not finding.now.goes_on),
    )


def chosen(names: Sequence[str]) -> Sequence[Rule]:
    """The rules of those names; all without a name. Raises UsageError."""
    by_name = {rule.name: rule for rule in RULES}
    for name in names:
        if name not in by_name:
            expected = suggest(name, list(by_name), "expected one", shown=["of `knee list rules`"])
            raise UsageError(f'knee doctor: got the rule "{name}"; {expected}')
    return [by_name[name] for name in dict.fromkeys(names)] if names else RULES
