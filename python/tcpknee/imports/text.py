"""The report of an import as text, in the words of its `Kind`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tcpknee import human

from .kinds import Kind

_WORDS_SHOWN = 10


def summary(kind: Kind, report: Mapping[str, Any]) -> str:
    """How much was imported."""
    return re.sub(r"\{(\w+):(\w+)\}", lambda found: human.counted(report[found[1]], found[2]), kind.told)


def shown(kind: Kind, report: Mapping[str, Any]) -> list[str]:
    """The first that are not understood: `FILE:LINE: text`, or the packet; neither where it is of a whole document."""
    between = ": packet " if kind.unit == "packets" else ":"
    first = report["first_not_understood"]
    return [
        f"{file}{'' if number is None else f'{between}{number}'}: {text}".rstrip(" :") for file, number, text in first
    ]


def not_understood(kind: Kind, report: Mapping[str, Any]) -> str:
    """How many were not; empty: none."""
    count = report[f"{kind.unit}_not_understood"]
    return f"{count:,} of {report[kind.unit]:,} {kind.unit} are not understood" if count else ""


def doubts(kind: Kind, report: Mapping[str, Any]) -> Iterator[str]:
    """What is not in the tables, and why their figures may not be what they seem."""
    if found := not_understood(kind, report):
        yield f"{found}; the first of them:"
        yield from (f"  {line}" for line in shown(kind, report))
    for count in kind.counts:
        value = report[count.name]
        if not value or not count.doubt:
            continue
        if not isinstance(value, dict):
            yield human.agreeing(count.doubt.format(count=f"{value:,}"))
        elif "{list}" in count.doubt:
            often = sorted(value.items(), key=lambda item: (-item[1], item[0]))[:_WORDS_SHOWN]
            yield count.doubt.format(list=", ".join(f"{word} ({n:,})" for word, n in often))
        else:
            yield from (human.agreeing(count.doubt.format(count=f"{n:,}", what=word)) for word, n in value.items())
    yield from (f"{path}: empty." for path in report["empty_files"])


def nothing(kind: Kind, files: Sequence[str], report: Mapping[str, Any]) -> str:
    """Why there is no row."""
    what = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    units, first = report[kind.unit], shown(kind, report)
    if not units and not first:
        return f"{what}: empty; expected {kind.expected}."
    found = human.counted(units, kind.unit.removesuffix("s"))
    if first:
        found = f"{not_understood(kind, report)}, as {first[0]}"
    else:
        for count in kind.counts:
            if count.alone and (value := report[count.name]):
                number, words = ("", ", ".join(value)) if isinstance(value, dict) else (f"{value:,}", "")
                found = human.agreeing(count.alone.format(count=number, words=words, found=found))
                break
    return f"{what}: no {kind.row} in it: {found}. Expected {kind.expected}."
