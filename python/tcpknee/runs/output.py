"""A run as text and as JSON: the table first, then what it means."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcpknee import human
from tcpknee.evidence import metrics, written
from tcpknee.evidence.metrics import BY_NAME
from tcpknee.evidence.stats import Estimate
from tcpknee.evidence.verdicts import price
from tcpknee.say import aligned

from . import beside, doubts, drift, ending, hosts_text, manifest
from .summary import ALGORITHM, Group, Total

if TYPE_CHECKING:
    from tcpknee.evidence.expect import Outcome
    from tcpknee.evidence.published import Beside
    from tcpknee.evidence.verdicts import Verdict

    from .results import Run

SCHEMA = 1
"""Version of the object that `--json` prints."""

_VERDICTS_SHOWN = 20


def as_json(runs: Sequence[Run]) -> dict[str, Any]:
    """The object of `--json`: cells and verdicts of all runs, each cell with the scenario's file."""
    return {
        "schema": SCHEMA,
        "cells": [entry for run in runs for entry in _cells(run)],
        "verdicts": [{**_whose(run), **verdict_json(verdict)} for run in runs for verdict in run.summary.verdicts],
        "over_paths": [
            {
                **_whose(run),
                **verdict_json(one.verdict, "paths"),
                "greater_on": one.greater,
                "paths": one.paths,
                "lacking": dict(one.lacking),
                "text": one.text,
            }
            for run in runs
            for one in run.summary.over_paths
        ],
        "drifts": [{**_whose(run), **one.json()} for run in runs for one in run.drifts],
        "beside": [{**_whose(run), **one} for run in runs for one in run.meta.get("beside", ())],
        "expectations": [{**_whose(run), **outcome.json()} for run in runs for outcome in run.expectations],
        "published": [{**_whose(run), **found.json()} for run in runs for found in run.published],
        "warnings": [
            warning for run in runs for warning in (*(doubt.line for doubt in run.doubts), *run.summary.warnings)
        ],
        "runs": [
            {
                "scenario": run.meta["file"],
                "title": run.meta["title"],
                "status": run.meta["status"],
                "engine": run.meta["engine"],
                "failed": any(doubt.failed for doubt in run.doubts),
                "seed": run.meta["seed"],
                "repeat": run.meta["repeat"],
                **({"ending": run.meta["ending"]} if "ending" in run.meta else {}),
                "folder": str(run.folder) if run.folder else None,
            }
            for run in runs
        ],
    }


def _whose(run: Run) -> dict[str, Any]:
    """Which scenario and engine an entry is of."""
    return {"scenario": run.meta["file"], "engine": run.meta["engine"]}


def lines(run: Run, room: int | None = None) -> list[str]:
    """What `knee run` prints: title and path, the table, verdicts, expectations, published figures, warnings. Tables
    wider than `room` are folded."""
    tables = [*table(run, room), *_by_size(run, room)]
    return [*_head(run), "", *tables, *_notes(run, any("±" in line for line in tables)), *_after(run)]


def table(run: Run, room: int | None = None) -> list[str]:
    """The summary table: a row per cell and group."""
    summary, others = run.summary, beside.groups(run.meta)
    groups = [*summary.groups, *others]
    totals = {total.cell: total for total in summary.totals} | {one.cell: Total.of_none(one.cell) for one in others}
    columns = [column for column in _columns(run) if any(column.has(group, totals[group.cell]) for group in groups)]
    if not groups:
        # Programs without a flow have a table of their own.
        return []
    heads = [column.head(groups, totals) for column in columns]
    rows = [[column.text(group, totals[group.cell]) for column in columns] for group in groups]
    keys = next(at for at, column in enumerate(columns, 1) if isinstance(column, _Words) and column.name == "flow")
    texts = [[name for name, _ in heads], [unit for _, unit in heads], *rows]
    return aligned(texts, left=[column.left for column in columns], rule=2, keys=keys, room=room)


_OF_TRANSFERS = (
    ("transfers", "transfers"),
    ("completion_us_p50", "done p50"),
    ("completion_us_p95", "done p95"),
    ("completion_us_p99", "done p99"),
    ("slowdown_p50", "slowdown p50"),
    ("slowdown_p99", "slowdown p99"),
)


def _by_size(run: Run, room: int | None) -> list[str]:
    """A table with a row per group and size of its transfers, where they are of several sizes."""
    groups = [group for group in run.summary.groups if len(group.sizes) > 1]
    if not groups:
        return []
    # Who runs beside a group stands in no row of this table but its own.
    own = {f"flow.{group.group}.algorithm" for group in groups}
    axes = [key for key in _axes(run) if key not in own]
    found = [(group, sizes) for group in groups for sizes in (*group.sizes, None)]
    rows = [
        [*(group.axes.get(key, "") for key in axes), flow_label(group), sizes.label if sizes else "all"]
        for group, sizes in found
    ]
    heads, units = [*map(_short, axes), "flow", "size"], [""] * (len(axes) + 2)
    for metric, head in _OF_TRANSFERS:
        estimates = [group.metrics.get(metrics.of_sizes(metric, sizes)) for group, sizes in found]
        if not any(estimates):
            continue
        largest = max(abs(estimate.mean) for estimate in estimates if estimate)
        divisor, unit = human.scale(BY_NAME[metric].kind, largest)
        heads.append(head)
        units.append(unit)
        for row, estimate in zip(rows, estimates, strict=True):
            row.append(" ".join(filter(None, written.plus_minus(estimate, divisor))) if estimate else "-")
    keys = len(axes) + 2
    left = [position < keys for position in range(len(heads))]
    return ["", "Transfers by size", *aligned([heads, units, *rows], left=left, rule=2, keys=keys, room=room)]


class _Column(ABC):
    """A column of the table: its head, its unit (one for all rows) and its text."""

    left = False

    def has(self, group: Group, total: Total) -> bool:
        return True

    @abstractmethod
    def head(self, groups: Sequence[Group], totals: Mapping[int, Total]) -> tuple[str, str]:
        """Name and unit."""

    @abstractmethod
    def text(self, group: Group, total: Total) -> str:
        """What stands in the group's row."""


class _Words(_Column):
    """Text at the left."""

    left = True

    def __init__(self, name: str, read: Callable[[Group], str]) -> None:
        self.name, self.read = name, read

    def head(self, groups: Sequence[Group], totals: Mapping[int, Total]) -> tuple[str, str]:
        return self.name, ""

    def text(self, group: Group, total: Total) -> str:
        return self.read(group)


class _Number(_Column):
    """A metric with its interval."""

    def __init__(self, metric: str, name: str, of_total: bool = False) -> None:
        self.metric, self.name, self.of_total = metric, name, of_total
        self.divisor = 1.0

    def has(self, group: Group, total: Total) -> bool:
        return self._found(group, total) is not None

    def head(self, groups: Sequence[Group], totals: Mapping[int, Total]) -> tuple[str, str]:
        found = [self._found(group, totals[group.cell]) for group in groups]
        largest = max((abs(estimate.mean) for estimate in found if estimate), default=0.0)
        self.divisor, unit = human.scale(BY_NAME[self.metric].kind, largest)
        return self.name, unit

    def text(self, group: Group, total: Total) -> str:
        found = self._found(group, total)
        return " ".join(filter(None, written.plus_minus(found, self.divisor))) if found else "-"

    def _found(self, group: Group, total: Total) -> Estimate | None:
        return (total if self.of_total else group).metrics.get(self.metric)


def _axes(run: Run) -> list[str]:
    """The axes of all cells; a parameter of one algorithm is none of another's."""
    return list(dict.fromkeys(key for cell in run.meta["cells"] for key, _ in cell["axes"]))


def _columns(run: Run) -> list[_Column]:
    axes = [key for key in _axes(run) if not key.endswith(".algorithm")]
    several = any(len(cell["flows"]) > 1 for cell in run.meta["cells"])
    doubtful = doubts.cells(run.doubts)
    number = [
        ("goodput_bits_per_sec", "goodput"),
        ("completion_us_p50", "done p50"),
        ("completion_us_p95", "done p95"),
        ("requests_per_sec", "requests"),
        ("latency_us_p50", "latency p50"),
        ("latency_us_p95", "latency p95"),
        ("retransmit_pct", "retrans"),
        ("srtt_us_p50", "srtt p50"),
        ("srtt_us_p95", "srtt p95"),
        ("min_rtt_us", "min rtt"),
        ("queue_delay_us_p95", "queue p95"),
    ]
    return [
        *(_Words(_short(key), lambda group, key=key: group.axes.get(key, "")) for key in axes),  # type: ignore[misc]
        _Words("flow", lambda group: flow_label(group) + ("*" if group.cell in doubtful else "")),
        *(_Number(metric, name) for metric, name in number),
        _Number("utilisation", "link used", of_total=True),
        *([_Number("jain", "Jain", of_total=True)] if several else []),
        _Words("limited by", limits),
    ]


def flow_label(group: Group) -> str:
    """`bbr1`, `video (bbr1)`, `cubic ×4`."""
    label = group.algorithm if group.name == group.algorithm else f"{group.name} ({group.algorithm})"
    return f"{label} ×{group.count}" if group.count > 1 else label


def limits(group: Group) -> str:
    """What held it back: `cwnd 61 %, pacing 38 %`."""
    words = {"other": "not told"}
    return ", ".join(f"{words.get(limit, limit)} {100 * found.mean:.0f} %" for limit, found in group.limits)


def _short(key: str) -> str:
    return key.removeprefix("path.")


def _head(run: Run) -> Iterator[str]:
    meta = run.meta
    yield str(meta["title"])
    hops = manifest.hops(meta)
    facts = [f"{hops} hops"] if hops > 1 else []
    for name, label, kind, factor in (
        ("rate_bits_per_sec", "narrowest rate" if hops > 1 else "rate", "rate", 1.0),
        ("rtt_ns", "rtt", "time", 1e-3),
        ("bdp_bytes", "BDP", "bytes", 1.0),
    ):
        values = {cell.get(name) for cell in meta["cells"]}
        if len(values) == 1 and None not in values:
            facts.append(f"{label} {human.quantity(kind, values.pop() * factor)}")
    buffers = {buffer_text(cell) for cell in meta["cells"]}
    if len(buffers) == 1:
        facts.append(f"buffer {buffers.pop()}")
    durations = {cell["duration_ns"] for cell in meta["cells"]}
    if len(durations) == 1:
        facts.append(human.duration(durations.pop()))
    if meta["engine"] != "sim":
        facts.append(f"on {manifest.kernel_of(meta)}")
        users = (lab.get("programs_ran_as") for lab in meta.get("labs", []))
        facts += sorted({f"programs as {user['user']} (uid {user['uid']})" for user in users if user})
    facts.append(human.counted(meta.get("ending", {}).get("blocks") or meta["repeat"], "repetition"))
    seeds = {manifest.seed_of(meta, cell) for cell in meta["cells"]}
    if len(seeds) == 1:
        facts[-1] += f", seed {seeds.pop()}"
    if meta["engine"] != "hosts":
        yield " · ".join(facts)
        return
    from . import between_text

    yield f"expected: {' · '.join(facts)}"
    yield from between_text.lines(meta)


def buffer_text(cell: Mapping[str, Any]) -> str:
    """`610 KiB (1.00 BDP)`, `170 packets`, `unlimited`."""
    size, packets = cell.get("buffer_bytes"), cell.get("buffer_pkts")
    if packets is not None:
        return human.counted(packets, "packet")
    if size is None:
        return "unlimited"
    text, bdp = human.quantity("bytes", size), cell.get("bdp_bytes")
    return f"{text} ({human.digits(size / bdp)} BDP)" if bdp else text


def _notes(run: Run, intervals: bool) -> Iterator[str]:
    """How the tables are read; `intervals`: one of them has some."""
    notes = ["± is the 95 % interval over repetitions."] if intervals else []
    is_even = run.meta["engine"] in ("sim", "guest") and not any(
        cell.get("is_random", True) for cell in run.meta["cells"]
    )
    if intervals and is_even:
        notes.append(
            "Nothing on this path is random: repetitions differ by the phase of clocks and by what algorithms draw."
        )
    if any(group.count > 1 for group in run.summary.groups):
        notes.append("Goodput is of all flows of a row together.")
    if manifest.hops(run.meta) > 1:
        notes.append("Link used is of the narrowest hop.")
    if notes:
        yield ""
        yield " ".join(notes)


def _after(run: Run) -> Iterator[str]:
    summary = run.summary
    verdicts = summary.shown
    if run.meta.get("beside"):
        yield ""
        yield from beside.lines(run)
    if run.doubts:
        yield ""
        yield from (f"* {doubt.line}" for doubt in run.doubts)
    if summary.over_paths:
        yield ""
        own = any("seed" in group.axes for group in summary.groups)
        yield "Over the sampled paths" + ("" if own else ", which all have one seed: what is random is so on all alike")
        for one in summary.over_paths:
            yield f"  {one.text}" + _where(run, one.verdict)
        yield "  Each path by itself: --json"
    if verdicts:
        yield ""
        yield "Verdicts"
        for verdict in verdicts[:_VERDICTS_SHOWN]:
            yield f"  {verdict.text}" + _where(run, verdict)
            if cost := price(verdict, summary.verdicts):
                yield f"    but {cost.text}"
        if len(verdicts) > _VERDICTS_SHOWN:
            yield f"  and {len(verdicts) - _VERDICTS_SHOWN} more; --json has all of them"
    if how := [*filter(None, [ending.text(run.meta)]), *drift.lines(run)]:
        yield ""
        yield from how
    if of_hosts := hosts_text.lines(run.meta):
        yield ""
        yield from of_hosts
    if run.expectations:
        yield ""
        yield "Expectations"
        yield from expectations(run)
    if run.published:
        yield ""
        yield "Published, beside ours"
        yield from (f"  {line}" for line in _published(run.published))
    if summary.warnings:
        yield ""
        yield from (f"Warning: {warning}" for warning in summary.warnings)


_PLACES_SHOWN = 12


def expectations(run: Run) -> Iterator[str]:
    """What must hold, and whether it does."""
    for outcome in run.expectations:
        yield from _expectation(outcome)


def _expectation(outcome: Outcome) -> Iterator[str]:
    """A line, and where it was looked at in several places a line for each, what does not hold first."""
    if not outcome.places:
        yield f"  {outcome.verdict}: {outcome.assertion}  ({outcome.detail})"
        return
    hold = sum(verdict == "holds" for verdict, _, _ in outcome.places)
    yield f"  {outcome.verdict}: {outcome.assertion}  (holds in {hold} of {len(outcome.places)})"
    order = ("fails", "undecided", "holds")
    listed = sorted(outcome.places, key=lambda place: order.index(place[0]))
    for verdict, where, detail in listed[:_PLACES_SHOWN]:
        yield f"    {verdict} at {where}: {detail}"
    if len(listed) > _PLACES_SHOWN:
        yield f"    and {len(listed) - _PLACES_SHOWN} more; --json has all of them"


def _where(run: Run, verdict: Verdict) -> str:
    """Which flow's algorithms a verdict compares, where several have some, and its axes that others do not share."""
    number = verdict.groups[0]
    own = f"flow.{number}.algorithm"
    is_open = own not in verdict.axes and any(map(ALGORITHM.fullmatch, verdict.axes)) and _varies(run, own)
    names = {group.name for group in run.summary.groups if group.group == number and is_open}
    # A flow without a name of its own has that of each algorithm.
    flow = [*names] if len(names) == 1 else [f"flow.{number}"] if names else []
    where = [*flow, *(f"{_short(key)} {value}" for key, value in verdict.axes.items() if _varies(run, key))]
    return f"  ({', '.join(where)})" if where else ""


def _published(found: Sequence[Beside]) -> Iterator[str]:
    """The figures of others with ours; a source that all share stands once, below."""
    from tcpknee.evidence import published

    heads = ["value", "published", "ours", "ours / published"]
    rows = [[one.entry.value, one.published_text, one.ours_text, one.ratio_text] for one in found]
    sources = [one.entry.source for one in found]
    alike = len(set(sources)) == 1
    if not alike:
        heads.append("source")
        rows = [[*row, source] for row, source in zip(rows, sources, strict=True)]
    yield from aligned([heads, *rows], left=[True] * len(heads))
    if alike:
        yield f"Source: {sources[0]}"
    yield published.NOTE


def _varies(run: Run, key: str) -> bool:
    return len({dict(cell["axes"]).get(key) for cell in run.meta["cells"]}) > 1


def _cells(run: Run) -> Iterator[dict[str, Any]]:
    totals = {total.cell: total for total in run.summary.totals}
    for group in run.summary.groups:
        measured: dict[str, Any] = {name: found.json() for name, found in group.metrics.items()}
        measured["limited_by"] = {limit: found.mean for limit, found in group.limited_by.items()}
        yield {
            **_whose(run),
            "cell": group.cell,
            "algorithm": group.algorithm,
            "flow": group.name,
            "count": group.count,
            "axes": dict(group.axes),
            "metrics": measured,
            "total": {name: found.json() for name, found in totals[group.cell].metrics.items()},
        }


def verdict_json(verdict: Verdict, units: str = "repetitions") -> dict[str, Any]:
    """The entry of `--json`; `units`: what its evidence is counted in. `ratio` is b / a and `difference` b - a, also
    where `text` names b first."""
    return {
        "metric": verdict.metric,
        "a": verdict.a,
        "b": verdict.b,
        "cells": list(verdict.places),
        "axes": dict(verdict.axes),
        "shared": verdict.shared,
        verdict.scale: verdict.found.json(),
        "decision": verdict.decision,
        "word": verdict.word,
        "too_wide": verdict.too_wide,
        f"{units}_needed": verdict.units_needed,
        "text": verdict.text,
    }
