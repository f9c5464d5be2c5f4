"""`knee doctor --fix` and `--undo`: the plan as commands, the question, what came of it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpknee import say
from tcpknee.errors import UsageError

from .options import PATH

if TYPE_CHECKING:
    from tcpknee.doctor.finding import Finding
    from tcpknee.doctor.fix import Result, Step
    from tcpknee.doctor.journal import Journal
    from tcpknee.doctor.persist import Place

WRITERS_OF: Mapping[str, tuple[str, ...]] = {
    "tuned": ("sysctl", "ring", "channels", "offload", "coalesce", "rps"),
    "bpftune": ("sysctl",),
    "irqbalance": ("irq-affinity",),
    "NetworkManager": ("qdisc", "ring", "channels", "offload", "coalesce", "txqueuelen", "route-window"),
    "systemd-networkd": ("qdisc", "route-window"),
}
"""Programs that may set a kind of change again while they run."""

_NOTHING = "There is nothing to undo."

_OUTCOMES = {
    "made": "made",
    "undone": "put back",
    "there already": "is so already",
    "left": "LEFT",
    "unpaid": "LEFT",
    "refused": "NOT MADE",
    "gone": "gone",
    "failed": "NOT PUT BACK",
}


@dataclass(frozen=True)
class Asked:
    """The options of `knee doctor` that change the host."""

    fix: bool
    undo: bool
    persist: bool
    dry_run: bool
    yes: bool
    journal: Path | None

    def check(self, elsewhere: Sequence[str], *, measure: bool) -> None:
        """Refuses what says nothing together; `elsewhere`: options that name another place to judge."""
        if self.fix and self.undo:
            raise UsageError("knee doctor: got --fix and --undo; expected one of them.")
        for name, given in (("--persist", self.persist), ("--yes", self.yes)):
            if given and not self.fix:
                raise UsageError(f"{name}: got it without --fix; expected both.")
        if self.dry_run and not (self.fix or self.undo):
            raise UsageError("--dry-run: got it without --fix or --undo; expected one of them.")
        if other := next((name for name in elsewhere if name != "--netns"), None):
            acting = (("--fix", self.fix), ("--undo", self.undo), ("--measure", measure))
            if option := next((name for name, given in acting if given), None):
                raise UsageError(f"{option}: got it with {other}; it acts on this host, which {other} does not judge.")


_OPTIONS = (
    click.option(
        "--fix", is_flag=True, help="Show the changes of the findings as commands, ask, and make them (root)."
    ),
    click.option("--undo", is_flag=True, help="Put back all that --fix changed (root)."),
    click.option(
        "--persist", is_flag=True, help="With --fix: write files, so that the next boot makes the changes again."
    ),
    click.option("--dry-run", is_flag=True, help="With --fix or --undo: show what would be done, and do nothing."),
    click.option("--yes", is_flag=True, help="With --fix: do not ask."),
    click.option("--journal", metavar="DIR", type=PATH, help="Where --fix notes what was there, and --undo finds it."),
)


def options(command: Callable[..., int]) -> Callable[..., int]:
    """The command gets them as one argument, `asked`."""

    @wraps(command)
    def bundled(**given: Any) -> int:
        asked = Asked(**{one.name: given.pop(one.name) for one in fields(Asked)})
        return command(**given, asked=asked)

    for option in reversed(_OPTIONS):
        bundled = option(bundled)
    return bundled


def fixed(
    asked: Asked,
    findings: Sequence[Finding],
    owners: Iterable[Mapping[str, Any]],
    more: Mapping[str, Any],
    *,
    named: bool,
    json: bool,
) -> int:
    """Makes the changes of the findings. `owners` are rows of the snapshot's table; `more` is for the JSON object;
    `named`: so were the rules.

    Returns the exit code: 1 where a change was not made, except those that do not pay."""
    from tcpknee.doctor.fix import made, planned
    from tcpknee.doctor.persist import Place, persisted

    place = Place()
    steps, others = planned(findings, named=named)
    _show_plan(steps, others, list(owners), place if asked.persist else None, to_stdout=not json)
    if asked.dry_run or not steps:
        if json:
            say.json({"schema": 1, "plan": [step.json() for step in steps], "results": _json(others), **more})
        return int(_is_short(others))
    _need_root("--fix", "; `--fix --dry-run` shows the commands without")
    if not asked.yes and not say.confirmed(f"Make {len(steps)} {'change' if len(steps) == 1 else 'changes'}?"):
        say.warn("knee doctor: nothing was changed.")
        return 1
    said: list[str] = []
    with _opened(asked.journal, place) as book:
        results = made(steps, book, tell=None if json else _tell)
        if asked.persist:
            _mark(book, [result for result in results if result.outcome == "made"], place)
            said = persisted(book, place, removed=None if json else _tell_removed)
    if json:
        say.json({"schema": 1, "results": _json([*others, *results]), "said": said, **more})
    else:
        say.lines(said)
        if any(result.outcome in ("made", "failed") for result in results):
            where = "" if asked.journal is None else f" --journal {shlex.quote(str(asked.journal))}"
            say.line(f"To put it back: knee doctor --undo{where}")
    return int(bool(said) or _is_short([*others, *results]))


def _is_short(results: Iterable[Result]) -> bool:
    """Whether a change that was wanted is not there."""
    return any(result.outcome not in ("made", "there already", "unpaid") for result in results)


def undone(asked: Asked, *, json: bool) -> int:
    """Takes back all that the journal has. Returns the exit code: 1 where something is left."""
    from tcpknee.doctor.fix import undone as put_back
    from tcpknee.doctor.persist import Place, persisted

    _need_root("--undo")
    place = Place()
    removed: list[Path] = []

    def gone(file: Path) -> None:
        removed.append(file)
        if not json:
            _tell_removed(file)

    with _opened(asked.journal, place) as book:
        if asked.dry_run:
            entries = [{"change": entry.subject.target, "before": entry.before} for entry in reversed(book.entries)]
            files = [one.path for one in book.files]
            if json:
                say.json({"schema": 1, "entries": entries, "files": files})
            else:
                say.lines(
                    f"{entry.subject.target}: back to {entry.subject.told(entry.before)}"
                    for entry in reversed(book.entries)
                )
                for file in files:
                    _tell_removed(file)
                if not (entries or files):
                    say.line(_NOTHING)
            return 0
        results = put_back(book, tell=None if json else _tell)
        said = persisted(book, place, removed=gone)
    if json:
        say.json({"schema": 1, "results": _json(results), "files": [str(file) for file in removed], "said": said})
    else:
        say.lines(said)
        if not (results or removed or said):
            say.line(_NOTHING)
    return int(bool(said) or any(result.outcome in ("left", "failed") for result in results))


@contextmanager
def _opened(folder: Path | None, place: Place) -> Iterator[Journal]:
    from tcpknee.doctor.journal import FOLDER, open_journal
    from tcpknee.doctor.persist import check_files

    with open_journal(folder or FOLDER) as book:
        check_files(book, place)
        yield book


def _need_root(option: str, instead: str = "") -> None:
    if os.geteuid() != 0:
        raise UsageError(f"knee doctor {option}: needs root; run it with sudo{instead}.")


def _mark(journal: Journal, results: Sequence[Result], place: Place) -> None:
    """Has the entries of these changes persist, where they can."""
    from tcpknee.doctor.persist import why_not

    made = {str(result.change.json()) for result in results if not why_not(result.change, place)}
    for entry in journal.entries:
        entry.persists = entry.persists or str(entry.change) in made
    journal.write()


def _show_plan(
    steps: Sequence[Step],
    others: Sequence[Result],
    owners: Sequence[Mapping[str, Any]],
    place: Place | None,
    *,
    to_stdout: bool,
) -> None:
    from tcpknee.doctor.persist import why_not

    tell = say.line if to_stdout else say.warn
    for step in steps:
        tell(f"{step.rule}:")
        for command in step.change.shown():
            tell(f"    {command}")
        if step.gain:
            tell(f"    gain: {step.gain}")
        for note in _notes(step, owners):
            tell(f"    note: {note}")
        if place is not None and (why := why_not(step.change, place)):
            tell(f"    note: will not persist: {why}")
    for result in others:
        tell(_told(result))
    if not steps:
        tell("There is nothing to change.")


def _notes(step: Step, owners: Sequence[Mapping[str, Any]]) -> list[str]:
    """Who else sets what the step changes."""
    from tcpknee.doctor.changes import RfsEntries, Sysctl

    notes = []
    change = step.change
    name = change.name if isinstance(change, Sysctl | RfsEntries) else None
    for row in owners:
        if row["kind"] == "running" and change.kind in WRITERS_OF.get(row["owner"] or "", ()):
            notes.append(f"{row['owner']} runs, and may set it again.")
        elif row["kind"] == "setting" and name is not None and row["name"] == name:
            notes.append(f"{row['path']} sets it to {row['value']}; change it there too.")
    return sorted(set(notes))


def _tell(result: Result) -> None:
    say.line(_told(result))


def _tell_removed(file: Path | str) -> None:
    say.line(f"{file}: removed")


def _told(result: Result) -> str:
    said = result.said.removeprefix(f"{result.change.target}: ")
    return f"{result.change.target}: {_OUTCOMES[result.outcome]}" + (f": {said}" if said else "")


def _json(results: Iterable[Result]) -> list[dict[str, Any]]:
    return [result.json() for result in results]
