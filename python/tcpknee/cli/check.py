"""`knee check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpknee import say
from tcpknee.errors import UsageError

from .options import PATH, Whole, is_given, json_option

if TYPE_CHECKING:
    from tcpknee.runs.checking import Finding

_MOST_CALL_BYTES = 1 << 20

_LEAST_ROOM = 20
"""Columns for what there is to say of an answer, however narrow the terminal is."""


@click.command("check", short_help="Say whether an algorithm of your own keeps to the contract.")
@click.argument("file", type=click.Path())
@click.option("--call", type=PATH, metavar="CALL", help="Make the one call that a run wrote down, and nothing else.")
@click.option("--seconds", default=2, show_default=True, type=Whole(1, 3600), help="For drawn calls of its ops.")
@json_option
def command(file: str, call: Path | None, seconds: int, json: bool) -> int:
    """Say whether an algorithm of your own keeps to the contract, in one table: it has integers only, compiles, fits
    the 104 bytes that Linux gives a congestion control, bears any call, goes into this kernel and does the same there,
    builds in guests, and carries data.

    Exit code 0, 1 when something is wrong with it, 2 when it cannot be asked.

    Example: knee check ./mine.c
    """
    from tcpknee.runs import checking

    if call is not None and is_given("seconds"):
        raise click.UsageError("--seconds: got it with --call, which is one call; expected one of them.")
    if call is not None:
        return _play(file, call, json)
    findings = checking.check(file, seconds)
    if json:
        say.json({"schema": 1, "file": file, "findings": [finding._asdict() for finding in findings]})
    else:
        say.lines(_table(findings, say.room()))
    return 1 if any(finding.ok is False and finding.matters for finding in findings) else 0


def _table(findings: list[Finding], room: int | None) -> list[str]:
    verdicts = {True: "yes", False: "NO", None: "not asked"}
    rows = [[one.asked, verdicts[one.ok], one.words.replace("\n", "; ")] for one in findings]
    if room is not None:
        # What a compiler or the kernel's verifier says may have any length.
        left = max(room - sum(2 + max(len(row[at]) for row in rows) for at in (0, 1)), _LEAST_ROOM)
        rows = [[*row, words if len(words) <= left else f"{words[: left - 1]}…"] for *row, words in rows]
    lines = list(say.aligned([["asked", "answer", ""], *rows], left=[True, True, True], room=room))
    whole = next((one.words for one in findings if one.asked == "compiles" and one.ok is False), "")
    return [*lines, "", *whole.splitlines()] if room is not None and whole else lines


def _of_scores(given: dict[str, Any]) -> dict[str, Any] | None:
    """The first call that is among what `knee score --json` said."""
    scores = given.get("scores")
    calls = [one.get("call") for one in scores if isinstance(one, dict)] if isinstance(scores, list) else []
    return next((one for one in calls if isinstance(one, dict)), None)


def _play(file: str, call: Path, json: bool) -> int:
    from tcpknee import reading
    from tcpknee.algorithms import naming
    from tcpknee.algorithms.building import build
    from tcpknee.runs import isolated

    try:
        given: Any = reading.json_of(call, most_bytes=_MOST_CALL_BYTES)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"--call: {call}: cannot be read ({why}); expected a call that `knee run` wrote.") from None
    if not isinstance(given, dict):
        raise UsageError(f"--call: {call}: is no object; expected a call that `knee run` wrote.")
    given = _of_scores(given) or given
    (named,) = naming.named([build(file)])
    try:
        played, wrong = isolated.play(named, given)
    except UsageError as error:
        raise UsageError(f"--call: {call}: {error}") from None
    if json:
        say.json({"schema": 1, "file": file, "wrong": wrong or None, "played": played})
    elif played is None:
        names_line = f" `knee check {file}` names the line." if "divides by zero" in wrong else ""
        say.line(f"{wrong}.{names_line}")
    else:
        changed = [
            f"{name} {given['out'].get(name)} -> {value}"
            for name, value in played["out"].items()
            if value != given["out"].get(name)
        ]
        say.line(f"{named.name} returns from {given['op']}: {', '.join(changed) or 'nothing is changed'}.")
    return 1 if wrong else 0
