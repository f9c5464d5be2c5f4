"""Making the changes of findings, each noted in the journal before and after it, and taking them back.

    steps = planned(findings)
    with open_journal() as journal:
        results = made(steps, journal)
        ...
        results = undone(journal)

A value is put back only where the present one is what we made of it: what somebody else changed meanwhile stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tcpknee.live.which import namespace_path

from .changes import KINDS, CannotChange, Change, State, change_of
from .finding import Finding
from .journal import Beside, Entry, Journal, boot_id


@dataclass(frozen=True)
class Step:
    """A change that will be made."""

    change: Change
    rule: str
    before: State
    goal: State
    gain: str = ""
    """What the finding expects of it."""

    def json(self) -> dict[str, Any]:
        return {
            "change": self.change.json(),
            "commands": self.change.commands(),
            "input": self.change.input,
            "rule": self.rule,
            "before": self.before,
            "goal": self.goal,
            "gain": self.gain,
        }


@dataclass(frozen=True)
class Result:
    """What came of a change."""

    change: Change
    rule: str
    outcome: Literal["made", "undone", "there already", "left", "unpaid", "refused", "gone", "failed"]
    """Left: somebody else, or another finding, wants another value. Unpaid: left out because it is not worth it.
    Failed: it could not be put back; the journal keeps it."""
    said: str = ""
    """Why it is not as was wanted."""

    def json(self) -> dict[str, Any]:
        return {"change": self.change.json(), "rule": self.rule, "outcome": self.outcome, "said": self.said}


def planned(findings: Iterable[Finding], *, named: bool = False) -> tuple[list[Step], list[Result]]:
    """The changes of the findings, in the order in which they can be made; and those that will not be, and why.

    Changes that do not pay are left out, unless their rules were `named`."""
    steps: list[Step] = []
    others: list[Result] = []
    seen: dict[tuple[str | None, str], tuple[Change, Finding]] = {}
    wanted: list[tuple[Change, Finding]] = []
    unpaid: list[tuple[Change, Finding]] = []
    for finding in findings:
        kept = wanted if named or finding.pays else unpaid
        kept += [(change, finding) for change in finding.changes]
    order = {kind: place for place, kind in enumerate(KINDS)}
    for change, finding in sorted(wanted, key=lambda one: order[type(one[0])]):
        rule = finding.rule
        first = seen.setdefault((change.netns, change.target), (change, finding))
        if first[0] is not change:
            if first[0] != change:
                others.append(Result(change, rule, "left", f"{first[1].rule} changes it too, to another value."))
            continue
        try:
            before = change.read()
            goal = change.goal(before)
            if change.reached(goal, before):
                others.append(Result(change, rule, "there already"))
            else:
                steps.append(Step(change, rule, before, goal, finding.gain))
        except CannotChange as error:
            others.append(Result(change, rule, "refused", str(error)))
    for change, finding in unpaid:
        if (change.netns, change.target) not in seen:
            why = f"{finding.unpaid} Name the rule to make it nevertheless."
            others.append(Result(change, finding.rule, "unpaid", why))
    return steps, others


def made(steps: Sequence[Step], journal: Journal, *, tell: Callable[[Result], object] | None = None) -> list[Result]:
    """Makes each change in its turn. `tell` hears of each as it is done. Raises RunFolderError."""
    results = []
    left = list(steps)
    while left:
        step, *left = left
        results.append(_make(step, journal))
        # A driver that sets up its queues anew changes other settings of the interface.
        left = [_again(other) if _of_one_interface(step, other) else other for other in left]
        if tell is not None:
            tell(results[-1])
    return results


def _of_one_interface(one: Step, other: Step) -> bool:
    name = getattr(one.change, "interface", None)
    return name is not None and (name, one.change.netns) == (
        getattr(other.change, "interface", None),
        other.change.netns,
    )


def _again(step: Step) -> Step:
    return replace(step, before=_state(step.change))


def _make(step: Step, journal: Journal) -> Result:
    change = step.change
    try:
        before = change.read()
        if before != step.before:
            return Result(change, step.rule, "left", "Somebody changed it after the plan was made.")
        goal = change.goal(before)
        beside = [Beside(one, _state(change_of(one))) for one in change.beside()]
        inode = _inode(change)
    except CannotChange as error:
        return Result(change, step.rule, "refused", str(error))
    entry = Entry(change.json(), step.rule, before, goal, boot_id(), inode, beside=beside)
    journal.entries.append(entry)
    journal.write()
    try:
        change.apply(goal)
        entry.after = change.read()
        if entry.after == before:
            raise CannotChange(f"{change.target}: the kernel kept the value that was there.")
    except CannotChange as error:
        return _given_up(entry, journal, str(error))
    for one in entry.beside:
        one.after = _state(one.subject)
    entry.state = "made"
    journal.write()
    said = "" if change.reached(goal, entry.after) else "The kernel made another value of it."
    return Result(change, step.rule, "made", said)


def _given_up(entry: Entry, journal: Journal, why: str) -> Result:
    """A change that failed, perhaps half-way, is taken back at once."""
    result = _undo(entry, journal)
    if result.outcome not in ("undone", "gone"):
        why = f"{why} {result.said}"
    outcome: Literal["failed", "refused"] = "failed" if result.outcome == "failed" else "refused"
    return Result(entry.subject, entry.rule, outcome, why)


def undone(journal: Journal, *, tell: Callable[[Result], object] | None = None) -> list[Result]:
    """Puts back what was there before, the last change first. Raises RunFolderError."""
    results = []
    for entry in reversed(journal.entries[:]):
        results.append(_undo(entry, journal))
        if tell is not None:
            tell(results[-1])
    return results


def _undo(entry: Entry, journal: Journal) -> Result:
    result = _put_back(entry, journal, entry.subject)
    if result.outcome == "failed":
        _gone_after_boot(entry)
    else:
        journal.entries.remove(entry)
    journal.write()
    return result


def _gone_after_boot(entry: Entry) -> None:
    """No file of ours has the change made again, so that the next boot takes it back."""
    if entry.persists:
        entry.persists, entry.boot_id, entry.netns_inode = False, boot_id(), _inode(entry.subject)


def _put_back(entry: Entry, journal: Journal, change: Change) -> Result:
    if entry.boot_id != boot_id() and not entry.persists:
        return Result(change, entry.rule, "gone", "The host was booted since, which took it back.")
    try:
        if entry.boot_id == boot_id() and entry.netns_inode != _inode(change):
            return Result(change, entry.rule, "gone", "Its network namespace is another one now.")
        now = change.read()
        is_ours = now == entry.before or _is_ours(entry, change, now)
    except CannotChange as error:
        return Result(change, entry.rule, "gone", str(error)) if error.is_gone else _failed(entry, str(error))
    if not is_ours:
        return Result(change, entry.rule, "left", "Somebody else changed it since, and that stays.")
    if entry.state != "undoing":
        for one in entry.beside:
            one.is_ours = _state(one.subject) in (one.before, one.after)
        entry.state = "undoing"
        journal.write()
    try:
        if now != entry.before:
            change.apply(entry.before)
        for one in entry.beside:
            if one.is_ours and one.before is not None and _state(one.subject) != one.before:
                one.subject.apply(one.before)
        now = change.read()
        why = "" if now == entry.before else f"it was {change.told(entry.before)} and is {change.told(now)}."
    except CannotChange as error:
        why = str(error)
    if why:
        _noted_anew(entry)
        return _failed(entry, why)
    return Result(change, entry.rule, "undone")


def _failed(entry: Entry, why: str) -> Result:
    said = f"It could not be put back: {why} `knee doctor --undo` tries again."
    return Result(entry.subject, entry.rule, "failed", said)


def _noted_anew(entry: Entry) -> None:
    """What is there after we failed to put it back is ours."""
    now = _state(entry.subject)
    if now is None:
        return
    entry.state, entry.after = "made", now
    for one in entry.beside:
        if one.is_ours:
            one.after = _state(one.subject)


def _is_ours(entry: Entry, change: Change, now: State) -> bool:
    """Whether the present value is what we made of it, or what our end half-way left."""
    if entry.state == "made":
        return bool(now == entry.after)
    return (
        now in (entry.after, entry.goal)
        or change.reached(entry.goal, now)
        or change.midway([entry.before, entry.goal], now)
    )


def _state(change: Change) -> State:
    """Its state; None where there is none."""
    try:
        return change.read()
    except CannotChange:
        return None


def _inode(change: Change) -> int:
    """By which the network namespace of the change is known until the next boot. Raises CannotChange."""
    if not change.is_of_namespace:
        return 0
    path = Path("/proc/self/ns/net") if change.netns is None else namespace_path(change.netns)
    try:
        return path.stat().st_ino
    except OSError as error:
        raise CannotChange(
            f"{change.target}: {path}: there is no such namespace ({error.strerror}).",
            is_gone=isinstance(error, FileNotFoundError),
        ) from None
