"""What differs between releases of Linux in a scenario: the rules, and what each of them does by itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpknee import _core, algorithms
from tcpknee.errors import UsageError

from . import api, compose, differences, differences_text

if TYPE_CHECKING:
    from tcpknee.evidence.verdicts import Verdict

    from .differences import Diff
    from .pool import Watcher
    from .results import Run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Changed:
    """A rule that is not the same in two releases. `subject`: "hosts", a key of sender and receiver; "param", one of an
    algorithm; "not modelled". `source`: the commits between them."""

    rule: str
    subject: str
    doc: str
    before: str
    after: str
    source: str


def value(rule: dict[str, Any], release: str) -> str:
    """What a release has of a rule of `_core.kernel_rules`."""
    return str([change["value"] for change in rule["changes"] if number(change["since"]) <= number(release)][-1])


def number(release: str) -> tuple[int, ...]:
    """Releases in order. Raises `UsageError`."""
    parts = release.split(".")
    oldest, newest = (3, 10), (7, 2)
    if len(parts) == 2 and all(part.isdigit() for part in parts):
        found = tuple(map(int, parts))
        if oldest <= found <= newest:
            return found
    raise UsageError(f'kernel: got "{release}"; expected a release from 3.10 to 7.2, such as 6.12.')


def between(before: str, after: str) -> Iterator[Changed]:
    """The rules that differ between two releases."""
    for rule in _core.kernel_rules():
        values = value(rule, before), value(rule, after)
        if values[0] != values[1]:
            first, last = sorted((number(before), number(after)))
            sources = [change["source"] for change in rule["changes"] if first < number(change["since"]) <= last]
            yield Changed(rule["rule"], rule["subject"], rule["doc"], *values, "; ".join(sources))


def alone(
    run: Run, after: str, watcher: Callable[[], Watcher], workers: int | None = None
) -> Iterator[tuple[Changed, Diff | None]]:
    """What each rule of release `after` does by itself in a simulated run of a scenario that names another: the run
    with that rule beside it. None: the simulator does not have the rule, or not for the scenario's hosts, which have no
    costs, or the scenario sets it. Rules of algorithms that no flow has are left out."""
    before, file = str(run.meta["cells"][0]["kernel"]), run.meta["file"]
    for changed in between(before, after):
        scenario = tomllib.loads(run.meta["scenario"])
        if changed.subject == "param" and not _flows_of(scenario, changed):
            continue
        if not _put(scenario, changed):
            yield changed, None
            continue
        found = api.run_text(compose.toml(scenario), file, out=None, watcher=watcher(), workers=workers)
        keys = {key for cell in found.meta["cells"] for key, _, _ in cell["describe"]}
        yield changed, differences.diff(run, found, [key for key in keys if _is_of(key, changed)])


def _put(scenario: dict[str, Any], changed: Changed) -> bool:
    """Gives the scenario that rule's later value; false where it cannot have it."""
    given = _plain(changed.after)
    if changed.subject == "hosts":
        tables = [scenario.setdefault(side, {}) for side in ("sender", "receiver")]
        name = changed.rule
        if name in _of_model():
            tables = [table for table in tables if "costs" in table]
    elif changed.subject == "param":
        algorithm, name = changed.rule.split(".")
        tables = [flow.setdefault(algorithm, {}) for flow in _flows_of(scenario, changed)]
        given = bool(given) if given in (0, 1) else given
    else:
        return False
    if not tables or any(name in table for table in tables):
        return False
    for table in tables:
        table[name] = given
    return True


def _of_model() -> set[str]:
    """Keys of hosts that have an effect only where their work has a cost."""
    listed = [key for key in _core.keys() if key["engines"] == "sim with costs"]  # noqa: SIM118  (a function of the module, not of a dict)
    return {key["path"].removeprefix("sender.") for key in listed}


def _flows_of(scenario: dict[str, Any], changed: Changed) -> list[dict[str, Any]]:
    """The tables of flows with the algorithm whose rule that is, which may be called by Linux's name."""
    algorithm, _ = changed.rule.split(".")
    return [flow for flow in scenario["flow"] if algorithm in _names(flow["algorithm"])]


def _names(algorithm: str | list[str]) -> set[str]:
    return {algorithms.ours(name) for name in ([algorithm] if isinstance(algorithm, str) else algorithm)}


def _plain(text: str) -> Any:
    """A value as TOML has it."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdigit() else text


def _is_of(key: str, changed: Changed) -> bool:
    """Whether a described key is that of the rule."""
    return key.endswith(f".{changed.rule}")


def lines(found: Iterator[tuple[Changed, Diff | None]], before: str, after: str) -> Iterator[str]:
    """What text says of them, while they are found out."""
    yield f"Rules of {before}, each by itself as {after} has it"
    idle: list[str] = []
    untried: list[str] = []
    verdicts: list[Verdict] = []
    for changed, diff in found:
        if diff is None:
            untried.append(changed.rule)
            continue
        verdicts += filter(differences_text.is_headline, diff.verdicts)
        told = [sentence for sentence in differences_text.answer(diff) if _differs(sentence)]
        if not told:
            idle.append(changed.rule)
            continue
        yield f"  {changed.rule}: {changed.before} -> {changed.after}  ({changed.source})"
        yield from (f"    {sentence}" for sentence in told)
    if idle:
        yield f"  no difference shown by {', '.join(idle)}"
    if untried:
        why = "the simulator lacks it, the scenario sets it, or it takes hosts with costs"
        yield f"  not tried, as {why}: {', '.join(untried)}"
    yield from differences_text.by_chance(verdicts)
    yield "Effects need not add up: a rule may matter only beside another."


def _differs(sentence: str) -> bool:
    return any(word in sentence for word in ("better", "worse", "higher", "lower"))


def shown(releases: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rules with all their changes; `values`: by release, of those that are named. Of two releases: what differs."""
    found = []
    for rule in _core.kernel_rules():
        values = {release: value(rule, release) for release in releases}
        if len(releases) < 2 or len(set(values.values())) > 1:
            found.append({**rule, **({"values": values} if values else {})})
    return found


def table(releases: tuple[str, ...]) -> list[list[str]]:
    """Rows of the rules: all with their history, those that two releases differ in, or what one release has."""
    if not releases:
        return [["rule", "since", "value", "commits"], *_history()]
    head = ["rule", *releases, "what"]
    return [head, *([rule["rule"], *rule["values"].values(), rule["doc"]] for rule in shown(releases))]


def _history() -> Iterator[list[str]]:
    """A row per change, the oldest value of each rule first."""
    for rule in _core.kernel_rules():
        for number, change in enumerate(rule["changes"]):
            commits = change["source"].split(', "')[0]
            yield ["" if number else rule["rule"], change["since"] if number else "", change["value"], commits]
