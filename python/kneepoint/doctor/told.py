"""Findings as text of 80 columns, and as JSON."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kneepoint.human import counted
from kneepoint.live.which import namespace_path
from kneepoint.say import printable

from .finding import SEVERITIES, Finding
from .judge import Judgement
from .rules import GROUPS, Rule
from .rules.rule import SECTIONS
from .snapshot import Snapshot

WIDTH = 80
_LABEL = 9
MOST_SUBJECTS = 5
"""Findings of one rule that are told in full; of more, as on a host of thousands of interfaces, only the subjects."""
MOST_COMMANDS = 6
"""Commands of one finding that are printed; JSON has all."""


def report(snapshot: Snapshot, judged: Judgement) -> Iterator[str]:
    """The whole report of one host."""
    yield from _wrapped(_host(snapshot.host))
    if snapshot.netns is not None:
        yield from _wrapped(f"Commands that confirm are for that namespace: {_inside(snapshot.netns)} COMMAND")
    yield ""
    if not judged.findings:
        yield "Nothing is wrong by the rules that could be asked."
    else:
        yield from _wrapped(_summary(judged.findings))
        yield from _first(judged.findings)
    told: dict[str, int] = {}
    left_out: dict[str, list[str]] = {}
    for finding in judged.findings:
        told[finding.rule] = told.get(finding.rule, 0) + 1
        if told[finding.rule] > MOST_SUBJECTS:
            left_out.setdefault(finding.rule, []).append(finding.subject)
            continue
        yield ""
        yield from _finding(finding)
    for rule, subjects in left_out.items():
        yield ""
        yield from _wrapped(f"{rule} also holds for {counted(len(subjects), 'other')}: {', '.join(subjects[:8])}, …")
    yield from _not_seen(snapshot, judged)


def _host(host: Mapping[str, Any]) -> str:
    parts = [
        host["host"] or "host",
        f"Linux {host['kernel']}" if host["kernel"] else None,
        " ".join(filter(None, (host["distribution"], host["distribution_version"]))) or None,
        counted(host["cpus"], "processor") if host["cpus"] else None,
        host["instance_type"] or (host["hypervisor"] if host["hypervisor"] != "none" else "bare metal"),
        f"container: {host['container']}" if host["container"] not in (None, "none") else None,
        host["netns"],
    ]
    return " · ".join(part for part in parts if part)


def _inside(netns: str) -> str:
    """What stands before a command, so that it runs in a namespace."""
    if netns.isdigit() or "/" in netns:
        return f"nsenter --net={shlex.quote(str(namespace_path(netns)))}"
    return f"ip netns exec {shlex.quote(netns)}"


def _summary(findings: Iterable[Finding]) -> str:
    counts = dict.fromkeys(SEVERITIES, 0)
    for finding in findings:
        counts[finding.severity] += 1
    words = [f"{counts['critical']} critical", counted(counts["warning"], "warning"), f"{counts['advice']} advice"]
    return f"{', '.join(word for word in words if not word.startswith('0 '))}."


def _first(findings: Sequence[Finding]) -> Iterator[str]:
    """What to do first: of the worst findings one that a command mends, or else one that names what to do."""
    worst = [finding for finding in findings if finding.severity == findings[0].severity]
    first = next((finding for finding in worst if finding.changes), worst[0])
    yield from _wrapped(f"Do first, for {first.rule} ({first.subject}):")
    yield from _labelled("", _commands(first) or [first.advice], is_command=bool(first.changes))


def _finding(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity.upper()}  {finding.rule}"
    yield from _labelled("", [finding.told])
    evidence = ", ".join(f"{name} {_value(value)}" for name, value in finding.evidence.items() if value is not None)
    yield from _labelled("Seen", [evidence])
    yield from _labelled("Why", [finding.why])
    yield from _labelled("Confirm", finding.confirm, is_command=True)
    yield from _labelled("Change", _commands(finding), is_command=True)
    if finding.advice:
        yield from _labelled("Besides" if finding.changes else "Do", [finding.advice])
    yield from _labelled("Gain", [finding.gain] if finding.gain else [])
    yield from _labelled("Source", [finding.source])


def _commands(finding: Finding) -> list[str]:
    lines = [line for change in finding.changes for line in change.shown()]
    if len(lines) > MOST_COMMANDS:
        lines = [*lines[:MOST_COMMANDS], f"… and {len(lines) - MOST_COMMANDS} more (--json has all)"]
    return lines


def _not_seen(snapshot: Snapshot, judged: Judgement) -> Iterator[str]:
    if snapshot.missing:
        yield ""
        yield "Could not be read:"
        for one in snapshot.missing:
            needs = f" (needs {one.needs})" if one.needs else ""
            yield from _wrapped(f"  {one.what}: {one.why}{needs}", indent=4)
    if judged.unjudged:
        yield ""
        by_reason: dict[str, list[str]] = {}
        for rule, why in judged.unjudged:
            by_reason.setdefault(why, []).append(rule)
        yield "Not judged:"
        for why, rules in by_reason.items():
            yield from _wrapped(f"  {', '.join(rules)}: {why}", indent=4)


def explained(rule: Rule) -> Iterator[str]:
    """The manual of a rule."""
    yield f"{rule.name}: {rule.summary}"
    yield f"Group: {GROUPS[rule.group]}"
    for title in SECTIONS:
        yield ""
        yield f"{title}:"
        yield from _wrapped(f"  {rule.section(title)}", indent=2)
    yield ""
    yield from _wrapped(f"Source: {rule.source}", indent=2)
    yield from _wrapped(f"Reads: {', '.join(rule.needs)}", indent=2)


def json(snapshot: Snapshot, judged: Judgement) -> dict[str, Any]:
    """The same for programs."""
    return {
        "schema": 1,
        "host": {name: value for name, value in snapshot.host.items() if value is not None},
        "taken_unix_ns": snapshot.taken_unix_ns,
        "wrong": judged.is_wrong,
        "findings": [finding_json(finding) for finding in judged.findings],
        "missing": [{"what": one.what, "why": one.why, "needs": one.needs} for one in snapshot.missing],
        "unjudged": [{"rule": rule, "why": why} for rule, why in judged.unjudged],
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "subject": finding.subject,
        "told": finding.told,
        "evidence": dict(finding.evidence),
        "why": finding.why,
        "confirm": list(finding.confirm),
        "commands": [command for change in finding.changes for command in change.commands()],
        "changes": [change.json() for change in finding.changes],
        "advice": finding.advice,
        "gain": finding.gain,
        "source": finding.source,
    }


def manual(rule: Rule) -> dict[str, str]:
    """The sections of a rule's manual."""
    return {title.lower().replace(" ", "_"): rule.section(title) for title in SECTIONS}


def rule_json(rule: Rule) -> dict[str, Any]:
    """A rule as `knee list rules` has it."""
    return {
        "name": rule.name,
        "group": rule.group,
        "summary": rule.summary,
        "source": rule.source,
        "reads": list(rule.needs),
    }


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _labelled(label: str, texts: Iterable[str], *, is_command: bool = False) -> Iterator[str]:
    """Texts behind a label; each begins a line of its own. Commands are not broken: they are there to be copied."""
    head = f"  {label:<{_LABEL}}"
    for text in texts:
        lines = [printable(text)] if is_command else _wrapped(text, width=WIDTH - len(head))
        for line in lines:
            yield f"{head}{line}".rstrip()
            head = " " * len(head)


def _wrapped(text: str, indent: int = 0, width: int = WIDTH) -> list[str]:
    return textwrap.wrap(
        printable(text),
        width,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
