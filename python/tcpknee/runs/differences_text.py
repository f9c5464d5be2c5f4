"""Two runs side by side, as text of 80 columns and as JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tcpknee import human
from tcpknee.evidence import metrics, written
from tcpknee.evidence.stats import LEVEL
from tcpknee.evidence.verdicts import Verdict
from tcpknee.say import aligned

from . import doubts, manifest
from .output import SCHEMA, limits, verdict_json
from .results import Run
from .summary import Group

if TYPE_CHECKING:
    from .differences import Compared, Diff

_LISTED = 10
"""Cells that only one run has, of which text names no more."""

_MANY = 20
"""Comparisons of which one in twenty differs by chance, from which on this is said."""

_MOVED = 0.05
"""A share of time that held a flow back has changed, from this difference on."""

_HEADLINE = frozenset(
    (
        "goodput_bits_per_sec",
        *(f"completion_us_p{part}" for part in (50, 95, 99)),
        "slowdown_p99",
        "requests_per_sec",
        *(f"latency_us_p{part}" for part in (50, 95, 99)),
        "retransmit_pct",
        *(f"srtt_us_p{part}" for part in (50, 95)),
        "queue_delay_us_p95",
        "utilisation",
        "jain",
        *(name for name in metrics.BY_NAME if name.startswith("cpu_") or name == "timer_fires_per_data_skb"),
    )
)
"""Metrics that text shows unless it is to show all."""

_DIFFERENT = ("better", "worse", "higher", "lower")

_READ = (
    "B / A with its 95 % interval over repetitions; with a sign B - A, where some value is 0.",
    "A and B are arithmetic means, B / A is that of geometric means: they may differ.",
    "none shown: the interval holds equality. too wide: it could not decide 5 % either.",
    "single: one repetition, no interval.",
)


def lines(diff: Diff, *, everything: bool = False) -> list[str]:
    """What `knee diff` prints; `everything`: also what shows no difference, and every metric."""
    table = ["", *_table(diff, everything), "", *_READ] if diff.compared else []
    return [*_head(diff), *table, *_after(diff, everything)]


def answer(diff: Diff) -> list[str]:
    """A sentence per metric that is shown: in how many comparisons B is better, worse or neither, and by how much.

    Of a cell as a whole only what its flows by themselves do not have."""
    found: dict[str, list[Verdict]] = {}
    for one in diff.compared:
        for verdict in one.verdicts:
            if isinstance(one.a, Group) or metrics.BY_NAME[verdict.metric] not in metrics.METRICS:
                found.setdefault(verdict.metric, []).append(verdict)
    return [
        f"{metrics.BY_NAME[name].label}: {_counted(verdicts)}"
        for name, verdicts in found.items()
        if any(_is_shown(one, verdict) for one in diff.compared for verdict in one.verdicts if verdict.metric == name)
    ]


def _is_shown(one: Compared, verdict: Verdict) -> bool:
    """Whether text shows it without being told to: what differs, and what matters most of each group of flows."""
    if verdict.primary and isinstance(one.a, Group):
        return True
    return is_headline(verdict) and verdict.word in _DIFFERENT


def is_headline(verdict: Verdict) -> bool:
    """Whether it is of a metric that text and page show."""
    return verdict.primary or verdict.metric in _HEADLINE


def told(run: Run) -> str:
    """Who ran it: `kernel, Linux 6.12.4, tcpknee 0.1.0, 5 repetitions, seed 1`."""
    meta = run.meta
    where = [manifest.kernel_of(meta)] if meta["engine"] != "sim" and meta.get("host") else []
    status = [] if run.complete else [str(meta.get("status"))]
    version = f"tcpknee {meta.get('engine_version')}"
    repeat = f"{human.counted(meta['repeat'], 'repetition')}, seed {meta['seed']}"
    return ", ".join([meta["engine"], *where, version, repeat, *status])


def how_paired(diff: Diff) -> str:
    """What the intervals rest on."""
    if not diff.compared:
        return "No flows stand in both: nothing of them is compared."
    if diff.paired:
        sides = zip(*((one.a, one.b) for one in diff.compared), strict=True)
        counts = [max(len(side.reps) for side in of_run) for of_run in sides]
        few, many = sorted(counts)
        if few == many:
            return "Repetitions of one seed are paired."
        own = f"the mean of {'AB'[counts.index(many)]} is of all its {many}"
        return f"Repetitions of one seed are paired, {few} of them; {own}."
    engines = diff.a.meta["engine"], diff.b.meta["engine"]
    why = f"by {engines[0]} and {engines[1]}" if engines[0] != engines[1] else "of two seeds"
    return f"Not paired, as the runs are {why}: each is a sample of its own."


def as_json(diff: Diff) -> dict[str, Any]:
    """The object of `--json`."""
    return {
        "schema": SCHEMA,
        "a": _run_json(diff.a, diff.names[0]),
        "b": _run_json(diff.b, diff.names[1]),
        "paired": diff.paired,
        "differing": [{"key": one.key, "a": list(one.a), "b": list(one.b)} for one in diff.differing],
        "only_in_a": diff.only[0],
        "only_in_b": diff.only[1],
        "compared": [
            {
                "axes": dict(one.place),
                "flow": one.label,
                "cells": [one.a.cell, one.b.cell],
                "metrics": {
                    verdict.metric: {
                        "a": one.a.metrics[verdict.metric].json(),
                        "b": one.b.metrics[verdict.metric].json(),
                        **{name: value for name, value in verdict_json(verdict).items() if name not in _OF_PAIR},
                    }
                    for verdict in one.verdicts
                },
            }
            for one in diff.compared
        ],
        "warnings": list(doubted(diff)),
    }


_OF_PAIR = ("metric", "a", "b", "cells", "axes", "shared")
"""Of a verdict, what stands with what it is about."""


def _run_json(run: Run, name: str) -> dict[str, Any]:
    names = ("title", "status", "engine", "engine_version", "seed", "repeat", "host")
    return {
        "name": name,
        "folder": str(run.folder) if run.folder else None,
        **{key: run.meta.get(key) for key in names},
    }


def _head(diff: Diff) -> Iterator[str]:
    titles = dict.fromkeys((str(diff.a.meta["title"]), str(diff.b.meta["title"])))
    yield "; ".join(titles)
    width = max(map(len, diff.names))
    for letter, name, run in zip("AB", diff.names, (diff.a, diff.b), strict=True):
        yield f"{letter}  {name:{width}}  {told(run)}"
    yield how_paired(diff)
    rules = [one.key for one in diff.differing if one.is_rule]
    kernels = [one for one in diff.differing if one.key == "kernel"]
    for one in diff.differing:
        if not kernels or one.key not in rules:
            yield f"The scenarios differ in {one.key}: {', '.join(one.a)} in A, {', '.join(one.b)} in B."
    if kernels and rules:
        names = (*kernels[0].a, *kernels[0].b)
        are_releases = all(re.fullmatch(r"\d+\.\d+", name) for name in names)
        how = f": knee kernel rules {' '.join(names)}" if are_releases else "."
        # Of both hosts, mostly: a rule is one. That of an algorithm has its name before it.
        settings = {re.sub(r"^(sender|receiver|flow\.\d+)\.", "", key) for key in rules}
        of = Counter(key.rpartition(".")[0] or "the hosts" for key in sorted(settings, key=lambda key: "." in key))
        (whose, count), *others = of.items()
        words = [f"{human.counted(count, 'setting')} of {whose}", *(f"{number} of {name}" for name, number in others)]
        yield f"So {' and '.join(words)} differ{how}"


def _table(diff: Diff, everything: bool) -> list[str]:
    heads, rows = [], [["", "A", "B", "B / A", ""]]
    for one in diff.compared:
        shown = [verdict for verdict in one.verdicts if everything or _is_shown(one, verdict)]
        if shown:
            heads.append((len(rows), one))
            rows += [row(one, verdict) for verdict in shown]
    made = aligned(rows, left=[True, False, False, True, True])
    top, body = made[:2], made[2:]
    lines = []
    for (begin, one), end in zip(heads, [*(begin for begin, _ in heads), len(rows)][1:], strict=True):
        lines += [one.where, *body[begin - 1 : end - 1], *_limited(one)]
    return [*top, *lines]


def row(one: Compared, verdict: Verdict) -> list[str]:
    """A metric: its label with the unit, both means, the ratio with its interval, and what that says."""
    metric = metrics.BY_NAME[verdict.metric]
    means = [side.metrics[verdict.metric].mean for side in (one.a, one.b)]
    divisor, unit = human.scale(metric.kind, max(map(abs, means)))
    unit = "ns" if metric.kind == "ns" else unit
    if verdict.scale == "ratio":
        step = " ".join(written.ratio(verdict.found)).rstrip()
    else:
        number, bracket = written.bracketed(verdict.found, divisor)
        step = f"{'+' if verdict.value > 0 else ''}{number} {bracket}".rstrip()
    label = f"{metric.label}, {unit}" if unit and unit != metric.label else metric.label
    return [f"  {label}", *(human.digits(mean / divisor) for mean in means), step, word(verdict)]


def word(verdict: Verdict) -> str:
    """What B is beside A, in a word or two."""
    return "too wide" if verdict.too_wide else verdict.word


def _limited(one: Compared) -> Iterator[str]:
    """What held it back, where that has changed."""
    if not isinstance(one.a, Group) or not isinstance(one.b, Group):
        return
    shares = [_shares(one.a), _shares(one.b)]
    if any(abs(shares[0].get(name, 0.0) - shares[1].get(name, 0.0)) >= _MOVED for name in {*shares[0], *shares[1]}):
        yield f"  limited by: {limits(one.a) or 'nothing'} -> {limits(one.b) or 'nothing'}"


def _shares(group: Group) -> dict[str, float]:
    return {limit: found.mean for limit, found in group.limited_by.items()}


def _after(diff: Diff, everything: bool) -> Iterator[str]:
    yield from by_chance(verdict for verdict in diff.verdicts if everything or is_headline(verdict))
    hidden = 0 if everything else sum(not _is_shown(one, verdict) for one in diff.compared for verdict in one.verdicts)
    if hidden:
        yield f"{human.counted(hidden, 'comparison')} left out, without a difference or in other metrics: --all."
    if len(diff.compared) > 1:
        yield ""
        yield f"{diff.names[1]} beside {diff.names[0]}"
        yield from (f"  {sentence}" for sentence in answer(diff))
    for name, only in zip(diff.names, diff.only, strict=True):
        if only:
            yield ""
            yield f"Only in {name}"
            yield from (f"  {place}" for place in only[:_LISTED])
            if len(only) > _LISTED:
                yield f"  and {len(only) - _LISTED} more; --json has all"
    if found := list(doubted(diff)):
        yield ""
        yield from (f"* {doubt}" for doubt in found)


def by_chance(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """How many of them differ though nothing does, where they are many. What is equal to the last bit does not."""
    judged = sum(verdict.low is not None and not verdict.found.identical for verdict in verdicts)
    if judged >= _MANY:
        chance = round((1 - LEVEL) * judged)
        yield f"Of {judged} comparisons at {100 * LEVEL:.0f} % about {chance} differ by chance alone."


def _counted(verdicts: Sequence[Verdict]) -> str:
    """`better in 1 of 4 (1.02×), none shown in 3 of 4`."""
    parts = []
    for kind in dict.fromkeys(sorted(map(word, verdicts), key=lambda one: one not in _DIFFERENT)):
        of_kind = [verdict for verdict in verdicts if word(verdict) == kind]
        share = f"in {len(of_kind)} of {len(verdicts)}" if len(verdicts) > 1 else ""
        ratios = sorted((v for v in of_kind if v.scale == "ratio"), key=lambda v: v.value)
        spread = ""
        if kind in _DIFFERENT and ratios:
            ends = dict.fromkeys(written.ratio(v.found)[0] for v in (ratios[0], ratios[-1]))
            spread = f"({' to '.join(ends)})"
        parts.append(" ".join(filter(None, (kind, share, spread))))
    return ", ".join(parts)


def doubted(diff: Diff) -> Iterator[str]:
    """What makes figures of either run doubtful, and what settings are warned of; of both alike it is said once."""
    runs = (diff.a, diff.b)
    for name, run in zip(diff.names, runs, strict=True):
        yield from (f"{name}: {doubt.line}" for doubt in run.doubts)
    of_a, of_b = (doubts.of_settings(run.meta["cells"]) for run in runs)
    yield from (text for text in of_a if text in of_b)
    for name, own, other in zip(diff.names, (of_a, of_b), (of_b, of_a), strict=True):
        yield from (f"{name}: {text}" for text in own if text not in other)
