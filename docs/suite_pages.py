"""A page for each suite, made of its rows and of the stored values (docs/suites/NAME.json, of tools/suites.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from layout import code, table
from reference import ROOT, Page

from tcpknee.evidence.published import readable
from tcpknee.gate import suite as suites
from tcpknee.gate import values
from tcpknee.gate.suite import Published, Row, Suite
from tcpknee.human import counted

Value = Mapping[str, Any]


def pages() -> dict[str, Page]:
    """The page of each suite by its name."""
    found = {name: suites.find(name) for name in suites.names()}
    return {name: Page(suite.title, _suite(suite, stored(name))) for name, suite in found.items()}


def stored(name: str) -> Mapping[str, Any]:
    """What the rows of a suite gave when it was last run; nothing before."""
    path = ROOT / "docs" / "suites" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def index() -> str:
    """A line for each suite."""
    rows = []
    for name in suites.names():
        suite, told = suites.find(name), stored(name)
        verdicts = [one["verdict"] for row in told.values() for one in row.get("values", ())]
        counts = ", ".join(f"{verdicts.count(word)} {word}" for word in sorted(set(verdicts)))
        rows.append([f"[{suite.title}](suites/{name}.md)", code(name), str(len(suite.rows)), counts or "for the gate"])
    return table(["suite", "name", "rows", "published values"], rows)


def _suite(suite: Suite, told: Mapping[str, Any]) -> str:
    parts = [f"{code(suite.name)}. Source: {suite.source}."]
    if told:
        runs = sorted({f"on {row['date']} by version {row['engine_version']}" for row in told.values()})
        parts.append(
            f"Run {' and '.join(runs)}, in the simulator, with 95 % intervals over a row's repetitions; what has none "
            "was the same in each, or is of one."
        )
    commands: list[str] = []
    if values.rows_of(suite):
        parts.append(
            "Inside: the whole interval is in the published range, or within ± of a single figure; that tolerance is "
            "ours, as nobody prints one."
        )
        commands.append(f"knee suite {suite.name}")
    if any(row.uses_new for row in suite.rows):
        commands.append(f"knee gate ALGORITHM --suite {suite.name}")
    typed = "\n".join(commands)
    parts.append(f"```sh\n{typed}\n```")
    parts += [_row(suite, row, told.get(row.name, {})) for row in suite.rows]
    return "\n\n".join(parts) + "\n"


def _row(suite: Suite, row: Row, told: Mapping[str, Any]) -> str:
    about = [code(row.name), *([row.section] if row.section else [])]
    if row.scenario:
        about.append(counted(values.repetitions(suite, row), "repetition"))
    parts = [f"## {row.question}", ", ".join(about)]
    if row.prose or row.not_tested:
        parts.append(f"**{'A matter of prose' if row.prose else 'Not tested'}.** {row.prose or row.not_tested}")
    beside = list(zip(row.published, told["values"], strict=True)) if "values" in told else []
    if beside:
        lines = [
            [
                _badge(one["verdict"]),
                f"{values.figure_text(said)} {values.tolerance_text(said)}".rstrip(),
                one["ours"],
                one["ratio"],
                readable(said.value),
            ]
            for said, one in beside
        ]
        parts.append(table(["", "published", "ours", "ours / published", "value"], lines))
        parts.append("\n".join(f"- {text}" for text in _said(beside)))
    if row.measure:
        parts.append(f"Compared in {code(row.measure)}, of which {row.better} is better.")
    if measured := told.get("measured"):
        places = list(next(iter(measured.values())))
        lines = [[place, *(of[place] for of in measured.values())] for place in places]
        parts.append(table(["at", *measured], lines))
    if row.limits:
        parts.append(f"Must hold: {', '.join(map(code, row.limits))}. These thresholds are ours. {row.why}")
    if row.scenario:
        parts.append(
            f"<details markdown><summary>The scenario</summary>\n\n```toml\n{row.scenario.strip()}\n```\n</details>"
        )
    return "\n\n".join(parts)


def _said(beside: Sequence[tuple[Published, Value]]) -> Iterable[str]:
    """The sources, and why what is not inside is not."""
    yield from dict.fromkeys(
        f"Source: {said.source}{' (second-hand)' if said.second_hand else ''}." for said, _ in beside
    )
    for said, one in beside:
        if one["verdict"] != values.INSIDE:
            yield f"**{values.figure_text(said)}**: {said.note or 'unexplained.'}"


def _badge(verdict: str) -> str:
    kind = {"inside": "reproduced", "outside": "not-reproduced"}.get(verdict, verdict)
    return f'<span class="verdict {kind}">{verdict}</span>'
