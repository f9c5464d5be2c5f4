"""`knee doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpknee import say
from tcpknee.errors import UsageError

from . import completion, doctor_fix, until
from .options import PATH, json_option, quiet_option

if TYPE_CHECKING:
    from tcpknee.doctor.judge import Judgement


@click.command("doctor", short_help="Say what is wrong with this host's network, and what to do.")
@click.argument("rules", metavar="[RULE]...", nargs=-1, shell_complete=completion.of(completion.rules))
@click.option("--snapshot", metavar="FILE", type=PATH, help="Judge this file of `knee snapshot` instead of this host.")
@click.option("--fleet", metavar="DIR", type=PATH, help="Judge every snapshot in DIR: which rule hits how many hosts.")
@click.option("--netns", metavar="NAME|PID", help="Of this network namespace (root); by default of our own.")
@click.option("--for", "length", metavar="TIME", help="Look twice, this time apart as in 10s: what still goes on.")
@click.option(
    "--explain",
    metavar="RULE",
    shell_complete=completion.of(completion.rules),
    help="Print what a rule sees and why it matters.",
)
@click.option("--measure", is_flag=True, help="Measure in a lab on this host what findings cost, where that can be.")
@doctor_fix.options
@json_option
@quiet_option
def command(
    rules: tuple[str, ...],
    snapshot: Path | None,
    fleet: Path | None,
    netns: str | None,
    length: str | None,
    explain: str | None,
    measure: bool,
    asked: doctor_fix.Asked,
    json: bool,
    quiet: bool,
) -> int:
    """Say what is wrong with this host's network settings, what shows it, and what to do, the worst first.

    Without --fix and --undo it changes nothing and needs no root; what only root may read is named. RULE: only these
    (`knee list rules`). Exit code 1: something is wrong, or was not changed; 0: nothing, or only advice. With --fix, 1:
    a change was not made; those that are left out because they do not pay do not count.

    Example: knee doctor --snapshot web7.json
    """
    given = [name for name, value in (("--snapshot", snapshot), ("--fleet", fleet), ("--netns", netns)) if value]
    if len(given) > 1:
        raise UsageError(f"knee doctor: got {' and '.join(given)}; expected one of them.")
    if length is not None and (snapshot is not None or fleet is not None):
        raise UsageError(f"--for: got it with {given[0]}; expected a live host. `knee snapshot --for` looks twice.")
    apart = until.seconds(length)
    asked.check(given, measure=measure)
    if explain is not None:
        return _explain(explain, json=json)
    if asked.undo:
        return doctor_fix.undone(asked, json=json)
    if fleet is not None:
        return _fleet(fleet, rules, json=json, quiet=quiet)
    from tcpknee.doctor import render
    from tcpknee.doctor.judge import chosen, judge
    from tcpknee.doctor.snapshot import recorded, take_in

    wanted = chosen(rules)
    taken = recorded.read(snapshot) if snapshot is not None else take_in(netns, apart)
    judged = judge(taken, wanted)
    found: list[dict[str, Any]] = []
    if measure:
        judged, found = _measured(judged, quiet=quiet)
    more = {"measured": found} if measure else {}
    if asked.fix:
        code = doctor_fix.fixed(asked, judged.findings, taken.rows("owners"), more, named=bool(rules), json=json)
        if not json:
            _tell_unmeasured(found)
        return code
    if json:
        say.json(render.json(taken, judged) | more)
    else:
        say.lines(render.report(taken, judged))
        _tell_unmeasured(found)
    return int(judged.is_wrong)


def _measured(judged: Judgement, *, quiet: bool) -> tuple[Judgement, list[dict[str, Any]]]:
    """The findings judged by what they cost here; and what was measured for each, as --json has it."""
    from tcpknee.doctor import measure
    from tcpknee.doctor.judge import by_severity
    from tcpknee.runs.progress import Line

    with Line(quiet=quiet) as line:
        costs = measure.measure(judged.findings, tell=line)
    said = [
        {"rule": finding.rule, "subject": finding.subject, **one.json()}
        for finding, one in zip(judged.findings, costs, strict=True)
    ]
    return replace(judged, findings=by_severity(measure.judged(judged.findings, costs))), said


def _tell_unmeasured(found: Sequence[dict[str, Any]]) -> None:
    import textwrap

    missing = dict.fromkeys((one["rule"], why) for one in found for why in one["failed"])
    if missing:
        say.lines(["", "Not measured:"])
    for rule, why in missing:
        say.lines(textwrap.wrap(f"{rule}: {why}", 80, initial_indent="  ", subsequent_indent="    "))


def _explain(name: str, *, json: bool) -> int:
    import textwrap

    from tcpknee.doctor import render
    from tcpknee.doctor.judge import chosen
    from tcpknee.doctor.measure import comparison

    [rule] = chosen([name])
    if json:
        say.json({"schema": 1, **render.rule_json(rule), **render.manual(rule), "measured": comparison(rule.name)})
    else:
        say.lines(render.explained(rule))
        say.lines(textwrap.wrap(f"With --measure: {comparison(rule.name)}", 80, subsequent_indent="  "))
    return 0


def _fleet(folder: Path, names: Sequence[str], *, json: bool, quiet: bool) -> int:
    from tcpknee.doctor import fleet
    from tcpknee.doctor.judge import chosen
    from tcpknee.runs.progress import Line

    with Line(quiet=quiet) as line:
        found = fleet.judged(folder, chosen(names), tell=lambda done: line(f"{done:,} hosts judged"))
    if json:
        say.json(fleet.json(found))
    else:
        say.lines(fleet.report(found))
    return int(found.is_wrong)
