"""Findings as text of 80 columns, and as JSON."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tcpknee.human import counted
from tcpknee.live.which import inside
from tcpknee.say import printable

from .finding import SEVERITIES, Finding, Now
from .judge import Judgement
from .rules import GROUPS, Rule
from .rules.rule import SECTIONS
from .snapshot import Snapshot

WIDTH = 80
SCREEN = 18
"""A report of up to this many lines leaves its head in sight on a terminal of 24."""
_LABEL = 9
LARGE = 1_000.0
"""From here on numbers are told without decimals."""
MOST_SUBJECTS = 5
"""Findings of one rule that are told in full; of more, as on a host of thousands of interfaces, only the subjects."""
MOST_COMMANDS = 6
"""Commands of one finding that are printed; JSON has all."""


def report(snapshot: Snapshot, judged: Judgement) -> Iterator[str]:
    """The whole report of one host. What to do first is at its head, and of a long one at its end as well: a terminal
    shows that."""
    name = snapshot.host["host"] or "host"
    yield from _wrapped(f"{name} · {summary_of_host(snapshot.host)}")
    if snapshot.netns is not None:
        yield from _wrapped(f"Commands that confirm are for that namespace: {inside(snapshot.netns)} COMMAND")
    yield ""
    if not judged.findings:
        yield "Nothing is wrong by the rules that could be asked."
    else:
        yield from _wrapped(summary(judged.findings))
        yield from _first(judged.findings)
    body = [*_findings(judged.findings), *_not_seen(snapshot, judged)]
    yield from body
    if judged.findings and len(body) > SCREEN:
        yield ""
        yield from _wrapped(f"In all: {summary(judged.findings)} `knee doctor --explain RULE` says more of one.")
        yield from _first(judged.findings)


def few_of_each(findings: Iterable[Finding]) -> tuple[list[Finding], list[str]]:
    """Of each rule the first findings, and a sentence for each rule that has more."""
    shown: list[Finding] = []
    of_rule: dict[str, list[str]] = {}
    for finding in findings:
        subjects = of_rule.setdefault(finding.rule, [])
        subjects.append(finding.subject)
        if len(subjects) <= MOST_SUBJECTS:
            shown.append(finding)
    more = {rule: subjects[MOST_SUBJECTS:] for rule, subjects in of_rule.items() if len(subjects) > MOST_SUBJECTS}
    return shown, [
        f"{rule} also holds for {counted(len(subjects), 'other')}: {', '.join(subjects[:8])}, …"
        for rule, subjects in more.items()
    ]


def _findings(findings: Iterable[Finding]) -> Iterator[str]:
    shown, more = few_of_each(findings)
    for finding in shown:
        yield ""
        yield from _finding(finding)
    for sentence in more:
        yield ""
        yield from _wrapped(sentence)


def summary_of_host(host: Mapping[str, Any]) -> str:
    """What a host is, in a line without its name."""
    parts = [
        f"Linux {host['kernel']}" if host["kernel"] else None,
        " ".join(filter(None, (host["distribution"], host["distribution_version"]))) or None,
        counted(host["cpus"], "processor") if host["cpus"] else None,
        host["instance_type"] or (host["hypervisor"] if host["hypervisor"] != "none" else "bare metal"),
        f"container: {host['container']}" if host["container"] not in (None, "none") else None,
        host["netns"],
    ]
    return " · ".join(part for part in parts if part)


def summary(findings: Iterable[Finding]) -> str:
    """How many findings of each severity, and what it means that all are advice."""
    counts = dict.fromkeys(SEVERITIES, 0)
    for finding in findings:
        counts[finding.severity] += 1
    words = [f"{counts['critical']} critical", counted(counts["warning"], "warning"), f"{counts['advice']} advice"]
    only_advice = not counts["critical"] and not counts["warning"]
    meaning = ": nothing is wrong yet, or the gain depends on the traffic" if only_advice else ""
    return f"{', '.join(word for word in words if not word.startswith('0 '))}{meaning}."


def _first(findings: Sequence[Finding]) -> Iterator[str]:
    """What to do first: of the worst findings one that a command mends, or else one that names what to do. What gains
    nothing here is not worth it."""
    paying = [finding for finding in findings if finding.pays]
    if not paying:
        return
    worst = [finding for finding in paying if finding.severity == paying[0].severity]
    # What two samples say to be over can wait.
    worst = [finding for finding in worst if finding.now is None or finding.now.goes_on] or worst
    first = next((finding for finding in worst if finding.changes), worst[0])
    over = first.now is not None and not first.now.goes_on
    yield from _wrapped(f"Do first, for {first.rule} ({first.subject}){', which may be over' if over else ''}:")
    yield from _labelled("", _commands(first) or [first.advice], is_command=bool(first.changes))


def _finding(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity.upper()}  {finding.rule}"
    yield from _labelled("", [finding.told])
    evidence = ", ".join(f"{name} {value_told(value)}" for name, value in finding.evidence.items() if value is not None)
    yield from _labelled("Seen", [evidence])
    if finding.now is not None:
        yield from _labelled("Now", [now(finding.now)])
    yield from _labelled("Why", [finding.why])
    yield from _labelled("Confirm", finding.confirm, is_command=True)
    yield from _labelled("Change", _commands(finding), is_command=True)
    if finding.advice:
        yield from _labelled("Besides" if finding.changes else "Do", [finding.advice])
    yield from _labelled("Gain", [finding.gain] if finding.gain else [])
    yield from _labelled("Source", [finding.source])


def now(found: Now) -> str:
    """Whether a finding goes on, in a sentence."""
    if not found.goes_on:
        return f"Nothing of it in the last {found.seconds:.0f} s: it may be over."
    rates = ", ".join(f"{name} {_rate(value)} a second" for name, value in found.per_sec.items())
    return f"Goes on{f': {rates}' if rates else ''}, in the last {found.seconds:.0f} s."


def _rate(per_sec: float) -> str:
    return f"{per_sec:,.0f}" if per_sec >= 10 else f"{per_sec:.2g}"


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
        "seconds": None if snapshot.earlier is None else snapshot.earlier.seconds,
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
        "now": None if finding.now is None else dataclasses.asdict(finding.now),
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


def value_told(value: object) -> str:
    """A value of the evidence."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and abs(value) >= LARGE:
        return f"{value:,.0f}"
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
