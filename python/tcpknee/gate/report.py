"""What a gate found, as text, Markdown, JSON, JUnit and a badge. The page is `pages.gate_page`'s."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from tcpknee import human, provenance, say

from .judging import (
    BETTER,
    CRASHED,
    HARM_MARGIN,
    NO_TIME,
    NOT_OK,
    NOT_RUN,
    NOT_TESTED,
    OK,
    PROSE,
    UNDECIDED,
    WORSE,
    Gate,
    Judged,
)

SCHEMA = 1

CHANGES_IT = (
    "Thresholds and margins are ours: RFC 9743 sets none. A row with an interval near its threshold turns with another "
    "threshold, and may turn with another --seed.",
    "A number without an interval was the same in each repetition. One repetition decides nothing.",
    "Each interval of 95 % decides alone, with no correction for their number; docs/gate.md has how often that errs.",
    "Undecided rows have an interval that holds both outcomes: more repetitions decide them.",
    "Stress rows have random losses, which real paths seldom have. They are shown, and never decide alone.",
    "Jitter never reorders packets here, unless a row is about reordering.",
    "The competitor is the base (--against). Another one, as what is deployed changes, changes each row of harm.",
    "The simulator is Linux's TCP in a model; --engine guest runs the same rows in a Linux kernel of your choice.",
    "Rows that are not tested, and those that want prose, are open: this report says nothing of them.",
)
"""What would change the verdict."""


def verdict(found: Sequence[Judged], *, by_criteria: bool) -> tuple[bool, str]:
    """Whether the change may go in, and a sentence that says why. `by_criteria`: what rows ask counts too."""
    missing = {word: [one.row.name for one in found if one.verdict == word] for word in (NO_TIME, NOT_RUN)}
    failing = [one for one in found if one.is_regression or (by_criteria and one.fails)]
    said = []
    if failing:
        words = ", ".join(f"{one.row.name} ({_why(one, by_criteria)})" for one in failing)
        said.append(f"{human.counted(len(failing), 'row')} of {len(found)}: {words}")
    if names := missing[NO_TIME]:
        said.append(f"no time for {human.counted(len(names), 'row')}: {', '.join(names)}")
    if names := missing[NOT_RUN]:
        said.append(f"could not be run: {', '.join(names)}")
    if said:
        return False, f"Not passed: {'; '.join(said)}."
    undecided = [one.row.name for one in found if UNDECIDED in (one.verdict, one.change)]
    rest = f" Undecided: {', '.join(undecided)}." if undecided else ""
    stressed = [one.row.name for one in found if one.row.stress and (one.change == WORSE or one.verdict == NOT_OK)]
    which = "no row that decides" if stressed else "no row"
    if stressed:
        rest = f" Under stress, which never decides alone: {', '.join(stressed)}.{rest}"
    return True, f"Passed: {which} is worse than the base{' or not ok' if by_criteria else ''}.{rest}"


def _why(one: Judged, by_criteria: bool) -> str:
    if one.verdict == CRASHED or (one.verdict == NOT_OK and (by_criteria or one.change != WORSE)):
        return one.verdict
    return WORSE


def counts(found: Sequence[Judged]) -> str:
    """`14 ok, 3 not ok, 5 not tested`."""
    number = Counter(one.verdict for one in found)
    return ", ".join(f"{count} {word}" for word, count in number.most_common())


def legend(gate: Gate) -> str:
    """What the rows' own words mean."""
    base = gate.base.label
    return (
        f'"new" is {gate.new.label}, "old" is {base}, and the base\'s own is that of {base} beside {base}. Harm is the '
        "share of what a flow has alone that another takes from it: 0 nothing, 1 all."
    )


def facts(gate: Gate) -> list[tuple[str, str]]:
    """What was run, without anything that another run of it would not say too."""
    return [
        ("algorithm", gate.new.words),
        ("against", gate.base.words),
        ("suite", f"{gate.suite.name}, of {gate.suite.date}: {gate.suite.source}"),
        *([("rows", f"{len(gate.rows)} of {len(gate.suite.rows)}")] if gate.only else []),
        ("engine", gate.ran_on),
        ("seed", str(gate.seed)),
        ("version", f"tcpknee {provenance.engine_version()}"),
        (
            "harm",
            f"counts from {100 * HARM_MARGIN:.0f} percentage points above the base's own; where less is better, from "
            f"{HARM_MARGIN:.0%} above what the flow has beside the base; ours",
        ),
    ]


def lines(gate: Gate, found: Sequence[Judged], room: int | None, *, by_criteria: bool) -> Iterator[str]:
    """The text of the terminal: the matrix, then each finding."""
    yield gate.title
    yield ""
    rows = [["section", "row", "verdict", f"beside {gate.base.label}"]]
    rows += [[_section(one), one.row.name + _stress(one), one.verdict, one.change or "-"] for one in found]
    yield from say.aligned(rows, left=[True] * 4, room=room)
    yield ""
    _, why = verdict(found, by_criteria=by_criteria)
    told = [line for one in found if _is_told(one) for line in _told(one)]
    for line in (*told, f"{counts(found)}. Thresholds are ours.", why):
        yield from textwrap.wrap(line, room, subsequent_indent="    ") if room else [line]


def _is_told(one: Judged) -> bool:
    return (
        one.verdict in (NOT_OK, CRASHED, NOT_RUN, UNDECIDED)
        or one.base == CRASHED
        or one.change in (WORSE, BETTER, UNDECIDED)
    )


def _told(one: Judged) -> Iterator[str]:
    yield f"{one.row.name}: {one.verdict}{_stress(one)}{f', {one.change}' if one.change else ''}. {one.row.question}"
    yield f"  {one.worst}"
    if one.change in (WORSE, BETTER) and one.changes[0].told not in one.worst:
        yield f"  {one.change}: {one.changes[0].told} {one.changes[0].where}".rstrip()
    if one.finding:
        yield f"  shown by: knee run {one.finding}"


def _section(one: Judged) -> str:
    return f"{one.row.section}{' MUST' if one.row.must else ''}"


def _stress(one: Judged) -> str:
    return " (stress)" if one.row.stress else ""


def markdown(gate: Gate, found: Sequence[Judged], *, by_criteria: bool) -> Iterator[str]:
    """A comment of a pull request; its first line, which is not shown, tells which one is to be kept up to date."""
    _, why = verdict(found, by_criteria=by_criteria)
    yield f"<!-- knee gate: {quote(gate.suite.name)} {quote(gate.new.label)} -->"
    yield f"### knee gate: {_cell(gate.title)}"
    yield ""
    yield f"**{_cell(why)}** {counts(found)}. Thresholds are ours."
    yield ""
    for one in found:
        if one.finding:
            said = f"{_cell(one.row.question)} {_cell(one.worst)}. Shown by `knee run {one.finding}`"
            yield f"- **{one.row.name}**: {said}"
    yield ""
    yield _cell(legend(gate))
    yield ""
    yield f"| section | row | verdict | beside {_cell(gate.base.label)} | worst |"
    yield "|---|---|---|---|---|"
    for one in found:
        cells = (_section(one), one.row.name + _stress(one), one.verdict, one.change or "-", one.worst)
        section, name, judged, *others = map(_cell, cells)
        marked = f"**{judged}**" if one.fails or one.is_regression else judged
        yield f"| {' | '.join((section, name, marked, *others))} |"
    yield ""
    yield "<details><summary>What was run, and what would change this verdict</summary>"
    yield ""
    for name, value in facts(gate):
        yield f"- {name}: {_cell(value)}"
    for sentence in CHANGES_IT:
        yield f"- {sentence}"
    yield ""
    yield "</details>"


_AS_TEXT = str.maketrans(
    {
        **{character: f"\\{character}" for character in "\\`*_~[]!|"},
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        "\n": " ",
        "\r": " ",
        # GitHub looks for @name and #1 in what was rendered, where a backslash is gone: a space of no width parts them.
        "@": "@&#8203;",
        "#": "#&#8203;",
    }
)


def _cell(text: str) -> str:
    """Without what Markdown, HTML or GitHub would take for its own."""
    return text.translate(_AS_TEXT)


def as_json(gate: Gate, found: Sequence[Judged], *, by_criteria: bool) -> dict[str, Any]:
    """The object of `--json`, and of gate.json."""
    passed, why = verdict(found, by_criteria=by_criteria)
    return {
        "schema": SCHEMA,
        "title": gate.title,
        "algorithm": gate.new.label,
        "base": gate.base.label,
        "passed": passed,
        "why": why,
        "counts": counts(found),
        "legend": legend(gate),
        "facts": dict(facts(gate)),
        "rows": [one.json() for one in found],
        "would_change": list(CHANGES_IT),
    }


def json_bytes(found: Mapping[str, Any]) -> bytes:
    """The same as a file."""
    return (json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode()


def junit(done: Iterable[tuple[Gate, Sequence[Judged]]], *, by_criteria: bool) -> bytes:
    """A suite per gate, with a test case per row."""
    whole = ElementTree.Element("testsuites")
    whole.extend(_testsuite(gate, found, by_criteria) for gate, found in done)
    ElementTree.indent(whole)
    text = ElementTree.tostring(whole, encoding="unicode")
    return f"<?xml version='1.0' encoding='utf-8'?>\n{text}\n".encode()


def _testsuite(gate: Gate, found: Sequence[Judged], by_criteria: bool) -> ElementTree.Element:
    failing = {id(one) for one in found if one.is_regression or (by_criteria and one.fails)}
    skipped = (PROSE, NOT_TESTED)
    whole = ElementTree.Element(
        "testsuite",
        name=say.printable_text(gate.title),
        tests=str(len(found)),
        failures=str(len(failing)),
        errors=str(sum(one.verdict in (NO_TIME, NOT_RUN) for one in found)),
        skipped=str(sum(one.verdict in skipped for one in found)),
    )
    for one in found:
        case = ElementTree.SubElement(whole, "testcase", classname=gate.suite.name, name=one.row.name)
        said = say.printable_text(f"{one.row.question} {one.worst}")
        if id(one) in failing:
            failure = ElementTree.SubElement(case, "failure", message=f"{one.verdict} {one.change}".strip())
            failure.text = f"{said}\nknee run {one.finding}" if one.finding else said
        elif one.verdict in (NO_TIME, NOT_RUN):
            ElementTree.SubElement(case, "error", message=said)
        elif one.verdict in skipped:
            ElementTree.SubElement(case, "skipped", message=said)
    return whole


def badge(gate: Gate, found: Sequence[Judged], *, by_criteria: bool) -> bytes:
    """What shields.io draws a badge of (its endpoint badge)."""
    passed, _ = verdict(found, by_criteria=by_criteria)
    asked = [one for one in found if one.verdict not in (PROSE, NOT_TESTED)]
    told = {
        "schemaVersion": 1,
        "label": gate.suite.name,
        "message": f"{sum(one.verdict == OK for one in asked)} of {len(asked)} ok",
        "color": "brightgreen" if passed else "red",
    }
    return (json.dumps(told) + "\n").encode()
