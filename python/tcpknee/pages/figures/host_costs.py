"""What the hosts' processors spent on each byte or request, by class of work: of the host model, measured, or both."""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import suppress
from typing import Any

import numpy as np

from tcpknee import human
from tcpknee.errors import MissingTable
from tcpknee.pages import marks, palette, theme
from tcpknee.pages.run import ReportRun
from tcpknee.pages.theme import Layout

name = "host-costs"
title = "What the hosts spent"
needs = "processors: --engine kernel with --measure, or hosts with `costs`"
summary = (
    "Processor time of the hosts after the warm-up, per byte delivered or per request answered, by class of work; "
    "means over the repetitions. In the simulator it is what the host model charged. On the kernel each sample of a "
    "call stack stands for the time until the next: those of the hosts' threads count, and those of interrupts that "
    "came to an idle processor; those of the link and of other programs do not. System calls and interrupts of the "
    'kernel are "syscall" there, programs "other".'
)
ROWS_AT_MOST = 60
BARS_IN_WORDS = 6
#: The number behind the longest bar is within the drawing, also in a narrow one.
ROOM_FOR_TOTAL = 1.1

#: Classes of the host model, in the order of the bars, and the classes of call stacks that each of them has besides.
CLASSES: dict[str, tuple[str, ...]] = {
    "data copy": (),
    "TCP/IP": (),
    "netdev": (),
    "skb": (),
    "memory": (),
    "lock": (),
    "scheduler": (),
    "timer": (),
    "syscall": ("entry",),
    "other": ("user", "BPF"),
}
_OF_STACKS = {stack: word for word, stacks in CLASSES.items() for stack in (word, *stacks)}
_OF_COUNTER = {f"class_{word.lower().replace(' ', '_').replace('/', '_')}_ns": word for word in CLASSES}

ByClass = dict[str, float]


def applies(run: ReportRun) -> bool:
    return bool(run.entrants) and bool(bars(run))


def chart(run: ReportRun, layout: Layout) -> Any:
    import altair as alt

    found = bars(run)[:ROWS_AT_MOST]
    rows = pieces(found)
    present = {row["class"] for row in rows}
    names = [word for word in CLASSES if word in present]
    y = alt.Y(
        "row:N",
        title=None,
        sort=list(dict.fromkeys(str(bar["row"]) for bar in found)),
        axis=alt.Axis(domain=False, ticks=False),
        scale=alt.Scale(paddingInner=0.22, paddingOuter=0.1),
    )
    x = alt.X(
        "from:Q",
        title=f"Processor time per {unit(run)} (ns)",
        scale=marks.from_zero(row["to"] * ROOM_FOR_TOTAL for row in rows),
    )
    fills = alt.Scale(domain=names, range=[ink(word) for word in names])
    tooltip = [
        alt.Tooltip("row:N", title="algorithm"),
        alt.Tooltip("condition:N"),
        alt.Tooltip("class:N"),
        alt.Tooltip("ns:Q", title=f"ns per {unit(run)}", format=",.4~g"),
        alt.Tooltip("pct:Q", title="share (%)", format=".1f"),
    ]
    base = alt.Chart().encode(y=y)
    layers = alt.layer(
        base.mark_bar().encode(
            x=x,
            x2="to:Q",
            fill=alt.Fill("class:N", scale=fills, legend=marks.legend(names, layout)),
            tooltip=tooltip,
        ),
        base.transform_filter("isValid(datum.total)")
        .mark_text(align="left", dx=5, fontSize=11, color=theme.NEUTRAL)
        .encode(x=alt.X("to:Q"), text=alt.Text("total:Q", format=",.3~r")),
    ).properties(width=layout.width, height=alt.Step(34))
    if len(run.conditions) == 1:
        return layers.properties(data=marks.values(rows))
    return marks.stacked(run, layers, rows)


def words(run: ReportRun) -> str:
    """The first bars in words: how much, and on what most."""
    found = bars(run)
    said = []
    for bar in found[:BARS_IN_WORDS]:
        most = max(CLASSES, key=lambda word: bar["spent"].get(word, 0.0))
        total = sum(bar["spent"].values())
        share = human.quantity("share", bar["spent"].get(most, 0.0) / total)
        where = f" ({bar['condition']})" if len(run.conditions) > 1 else ""
        said.append(f"{bar['row']}{where} {human.digits(total)} ns per {unit(run)}, {share} of it on {most}")
    more = f"; and {len(found) - BARS_IN_WORDS} more" if len(found) > BARS_IN_WORDS else ""
    return " ".join([f"Here: {'; '.join(said)}{more}.", *_errors(found)])


def _errors(found: list[dict[str, Any]]) -> list[str]:
    """Of each cell that has both bars, what model and measurement say of each class."""
    spent = {(bar["entrants"], bar["condition"], bar["engine"]): bar["spent"] for bar in found}
    said = []
    for (name, condition, engine), model in spent.items():
        measured = spent.get((name, condition, "kernel"))
        if engine != "sim" or measured is None:
            continue
        whole = sum(measured.values())
        pairs = {word: (model.get(word, 0.0), measured.get(word, 0.0)) for word in CLASSES}
        classes = [
            f"{word} {human.digits(ours)} and {human.digits(theirs)} ({100 * (ours - theirs) / whole:+.0f} % of all)"
            for word, (ours, theirs) in pairs.items()
            if ours > 0 or theirs > 0
        ]
        said.append(f"By class, model and measurement of {name} ({condition}) in ns: {', '.join(classes)}.")
    return said[:BARS_IN_WORDS]


def ink(word: str) -> str:
    return palette.CLASSES[next((one for one in CLASSES[word] if word not in palette.CLASSES), word)]


def unit(run: ReportRun) -> str:
    """What the time is divided by: the request where every flow asks for some, else the byte."""
    return "request" if all("requests_per_sec" in group.metrics for _, group in run.measured) else "byte"


def bars(run: ReportRun) -> list[dict[str, Any]]:
    """A bar for each cell that has costs, `spent` with ns by class; those of one cell of two runs stand together."""
    of, found = unit(run), []
    for part, shift, name in run.parts:
        spent = _spent(part, of)
        for cell in part.cells:
            if sum((classes := spent.get(cell, {})).values()) <= 0:
                continue
            words = part.entrants_words(cell)
            found.append(
                {
                    "row": f"{words}, {name}" if name else words,
                    "condition": run.condition_of[cell + shift].label,
                    "entrants": words,
                    "engine": part.meta["engine"],
                    "spent": classes,
                }
            )
    places = list(dict.fromkeys((bar["condition"], bar["entrants"]) for bar in found))
    return sorted(found, key=lambda bar: places.index((bar["condition"], bar["entrants"])))


def pieces(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pieces of the bars, one behind the other; the last of a bar has its `total`."""
    rows: list[dict[str, Any]] = []
    for bar in found:
        total = sum(bar["spent"].values())
        at = 0.0
        for word in CLASSES:
            ns = bar["spent"].get(word, 0.0)
            if ns <= 0:
                continue
            piece = {"row": bar["row"], "condition": bar["condition"], "class": word, "total": None}
            rows.append({**piece, "ns": ns, "pct": 100.0 * ns / total, "from": at, "to": at + ns})
            at += ns
        rows[-1]["total"] = total
    return rows


def _spent(run: ReportRun, of: str) -> dict[int, ByClass]:
    """By cell, ns per byte or request in each class."""
    return _charged(run, of) if run.meta["engine"] == "sim" else _sampled(run, of)


def _charged(run: ReportRun, of: str) -> dict[int, ByClass]:
    """What the host model charged, by the counters of its classes."""
    found: dict[int, dict[int, ByClass]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    with suppress(MissingTable):
        for row in run.table("host_costs", ["cell", "rep", "counter", "value"]).to_pylist():
            if row["counter"] in _OF_COUNTER:
                found[row["cell"]][row["rep"]][_OF_COUNTER[row["counter"]]] += row["value"]
    spent = {}
    for cell, reps in found.items():
        amounts = {rep: amount for rep, amount in _amounts(run, cell, of).items() if amount > 0 and rep in reps}
        if amounts:
            spent[cell] = {
                word: float(np.mean([reps[rep][word] / amount for rep, amount in amounts.items()])) for word in CLASSES
            }
    return spent


def _amounts(run: ReportRun, cell: int, of: str) -> dict[int, float]:
    """Bytes delivered or requests answered from the end of the warm-up on, by repetition."""
    total = next(total for total in run.stats.totals if total.cell == cell)
    values = total.values["delivered_bytes" if of == "byte" else "answered"]
    return dict(zip(total.reps.tolist(), values.tolist(), strict=True))


def _rates(run: ReportRun, cell: int, of: str) -> dict[int, float]:
    """Bytes delivered or requests answered per second, by repetition."""
    found: dict[int, float] = defaultdict(float)
    if of == "byte":
        totals = next(total for total in run.stats.totals if total.cell == cell)
        rates = [(totals.reps, totals.values["goodput_bits_per_sec"] / 8)]
    else:
        rates = [(group.reps, group.values["requests_per_sec"]) for group in run.stats.groups if group.cell == cell]
    for reps, values in rates:
        for rep, value in zip(reps.tolist(), values.tolist(), strict=True):
            found[rep] += value
    return found


def _sampled(run: ReportRun, of: str) -> dict[int, ByClass]:
    """Each sample of a stack is as much of a processor's time as passes until the next.

    A thread's own time would not do: on a kernel without CONFIG_IRQ_TIME_ACCOUNTING it includes the interrupts that
    came meanwhile, on others it does not.
    """
    counts: dict[tuple[int, int], ByClass] = defaultdict(lambda: defaultdict(float))
    with suppress(MissingTable):
        threads = _threads_of_hosts(run.table("cpu_time", ["name"])["name"].unique().to_pylist())
        for row in run.table("stacks", ["cell", "rep", "stack", "samples", "class"]).to_pylist():
            program, _, functions = row["stack"].partition(";")
            if program in threads or program.startswith(_RECEIVING) or _is_interrupted_idle(program, functions):
                counts[row["cell"], row["rep"]][_OF_STACKS[row["class"]]] += row["samples"]
    spent: dict[int, list[ByClass]] = defaultdict(list)
    rates = {cell: _rates(run, cell, of) for cell in {cell for cell, _ in counts}}
    for told in run.meta["repetitions"] if counts else ():
        cell, rep = told["cell"], told["rep"]
        if (classes := counts.get((cell, rep))) and (rate := rates[cell].get(rep, 0.0)) > 0:
            instruments = told["measured"]["instruments"]
            units = rate * instruments["seconds"] * instruments["stacks_hz"]
            spent[cell].append({word: 1e9 * count / units for word, count in classes.items()})
    return {
        cell: {word: float(np.mean([one.get(word, 0.0) for one in reps])) for word in CLASSES}
        for cell, reps in spent.items()
    }


#: The kernel's threads that receive.
_RECEIVING = ("ksoftirqd/", "napi/")
_INTERRUPT = re.compile("irq|sysvec|interrupt")


def _is_interrupted_idle(program: str, functions: str) -> bool:
    return program.startswith("swapper/") and _INTERRUPT.search(functions) is not None


def _threads_of_hosts(names: list[str]) -> set[str]:
    """Of those that `cpu` names, without the link's, as stacks name them: a process's own thread by its role."""
    pairs = [name.partition("/") for name in names if "/" in name]
    return {role if thread == "main" else thread for role, _, thread in pairs if role != "link"}
