"""The text of a profile of a host: tables and lines for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tcpknee import human
from tcpknee.live.profile import Profile

from . import functions, trace_text

CLASS_HEADS = ("class", "samples", "of busy time")
COUNT_HEADS = ("counted", "in all", "per second", "per data skb sent")
_PROCESSOR_TIMES = ("user", "system", "irq", "softirq", "steal", "idle")
PROCESSOR_HEADS = ("cpu", *(f"{name} %" for name in _PROCESSOR_TIMES))
PROCESSORS_SHOWN = 16
"""In the terminal."""
SIZE_HEADS = ("size", "skbs sent", "skbs received", "polls")

_PER_SKB = (
    "pacing_timer_arms",
    "pacing_timer_fires",
    "pacing_timer_cancels",
    "qdisc_timer_fires",
    "data_segments_sent",
    "data_bytes_sent",
    "acks_sent",
    "interrupts",
    "wakeups",
    "context_switches",
)
"""Counters of which it is asked how many come with a packet."""
_OF_MACHINE = frozenset(("interrupts", "wakeups", "context_switches"))
"""Of these, those that no network namespace and no process limits."""


def answer(found: Profile) -> str:
    """How busy the processors were, and with what."""
    if not found.is_taken:
        return f"{human.counted(sum(found.classes.values()), 'sample')} of busy processors, imported"
    rows = found.rows("processors")
    spent = {name: sum(row[f"{name}_us"] for row in rows) for name in ("user", "system", "irq", "softirq", "steal")}
    whole = sum(spent.values()) + sum(row["idle_us"] for row in rows)
    parts = {
        "programs": spent["user"],
        "the kernel for them": spent["system"],
        "interrupts": spent["irq"] + spent["softirq"],
        "other machines": spent["steal"],
    }
    if not whole:
        return f"{found.about['seconds']:.3g} s"
    busy = human.quantity("share", sum(spent.values()) / whole)
    shares = ", ".join(f"{name} {human.quantity('share', value / whole)}" for name, value in parts.items())
    count = human.counted(len(rows), "processor")
    return f"{found.about['seconds']:.3g} s; {count} busy for {busy} of the time: {shares}"


def classes(found: Profile) -> list[list[str]]:
    """Rows under CLASS_HEADS; of what was sampled, but for idle processors."""
    busy = sum(found.classes.values())
    return [
        [name, f"{count:,}", human.quantity("share", count / busy) if busy else "-"]
        for name, count in found.classes.items()
    ]


def processors(found: Profile, shown: int | None = None) -> list[list[str]]:
    """Rows under PROCESSOR_HEADS, as `mpstat -P ALL` has them: `all`, then each processor, or of many the busiest."""
    rows = sorted(found.rows("processors"), key=lambda row: row["cpu"])
    if len(rows) < 2:
        return []
    total = {name: sum(row[name] for row in rows) for name in rows[0]}
    busiest = sorted(rows, key=lambda row: row["idle_us"] / max(1, _length_us(row)))[:shown]
    kept = [row for row in rows if row in busiest]
    return [["all", *_shares(total)], *([str(row["cpu"]), *_shares(row)] for row in kept)]


def _length_us(row: Mapping[str, int]) -> int:
    return sum(row[f"{name}_us"] for name in _PROCESSOR_TIMES)


def _shares(row: Mapping[str, int]) -> list[str]:
    length_us = max(1, _length_us(row))
    return [f"{100 * row[f'{name}_us'] / length_us:.2f}" for name in _PROCESSOR_TIMES]


def counts(found: Profile) -> list[list[str]]:
    """Rows under COUNT_HEADS, of what was seen at all."""
    skbs = found.costs.get("data_skbs_sent", 0)
    asked = found.about["asked"]
    # Where packets count in one place alone, what the machine did besides has no ratio to them.
    related = {*_PER_SKB} - (_OF_MACHINE if asked.get("netns") or asked.get("pid") else set())
    rows = []
    for name, value in found.costs.items():
        if not value:
            continue
        per_skb = human.digits(value / skbs) if skbs and name in related else "-"
        rows.append([name, _amount(name, value), _amount(name, value / found.about["seconds"]), per_skb])
    return rows


def never(found: Profile) -> list[tuple[str, str]]:
    """What was counted and not seen once, as a fact; nothing: all was."""
    names = [name for name, value in found.costs.items() if not value]
    return [("not seen once", ", ".join(names))] if names else []


def _amount(name: str, value: float) -> str:
    if name.endswith("_ns"):
        return trace_text.time_of(value)
    if name.endswith("_bytes_sent"):
        return human.quantity("bytes", value)
    return f"{value:,.0f}"


def sizes(found: Profile) -> list[list[str]]:
    """Rows under SIZE_HEADS: how many skbs had so many bytes of payload, and polls so many packets."""
    rows: dict[tuple[int, int], dict[str, int]] = {}
    for row in found.rows("histograms"):
        rows.setdefault((row["least"], row["most"]), {})[row["histogram"]] = row["count"]
    columns = ("sent_bytes", "received_bytes", "packets_per_poll")
    return [
        [
            f"{least:,}" if least == most else f"{least:,} to {most:,}",
            *(f"{by_name[name]:,}" if name in by_name else "-" for name in columns),
        ]
        for (least, most), by_name in sorted(rows.items())
    ]


def warnings(found: Profile) -> Iterator[str]:
    """What makes the figures less than they seem."""
    about = found.about
    if count := about["lost_samples"]:
        yield f"{human.counted(count, 'sample')} found no room: the shares of the classes are of the others."
    if count := about["unreadable"]:
        yield f"{human.counted(count, 'packet')} had headers in several pieces and could not be counted."
    busy = sum(found.classes.values())
    if busy and (other := found.classes.get("other", 0)):
        yield f"{human.quantity('share', other / busy)} of the busy samples could not be put into a class."
    if sum(row["steal_us"] for row in found.rows("processors")):
        yield "A hypervisor gave time of these processors to others: what the host costs is more than what is seen."


def cost(found: Profile) -> list[tuple[str, str]]:
    """What the profile itself took from this machine."""
    return list(trace_text.cost(found.about["cost"], found.about["seconds"])) if found.about["cost"]["programs"] else []


BESIDE_HEADS = ("counted per second", "before", "now", "ratio")


def beside(before: Profile, now: Profile) -> list[list[str]]:
    """Rows under BESIDE_HEADS: counters and classes of both, per second; the ratio with three digits. None of imported
    stacks, of which nobody knows how long they were sampled."""
    if not (before.is_taken and now.is_taken):
        return []
    then, after = _per_second(before), _per_second(now)
    rows = []
    for name in then.keys() | after.keys():
        one, other = then.get(name), after.get(name)
        ratio = f"{human.digits(other / one)} x" if one and other is not None else "-"
        shown = [_amount(name, value) if value is not None else "-" for value in (one, other)]
        rows.append([name, *shown, ratio])
    order = [*now.costs, *before.costs, *(f"samples of {name}" for name in {**now.classes, **before.classes})]
    return sorted(rows, key=lambda row: order.index(row[0]))


def functions_of(now: Profile, before: Profile | None, shown: int = functions.SHOWN) -> list[list[str]]:
    """Rows under `functions.HEADS`, or under `functions.BESIDE_HEADS` where there are two profiles."""
    return functions.rows(functions.of(now.stacks), functions.of(before.stacks) if before else None, shown)


def function_heads(before: Profile | None) -> tuple[str, ...]:
    return functions.BESIDE_HEADS if before else functions.HEADS


def stack_lines(now: Profile, before: Profile | None, function: str | None) -> Iterator[str]:
    """The functions as a table for the terminal, or the callers of one. Raises UsageError (no such function)."""
    if function is None:
        heads: Sequence[str] = function_heads(before)
        rows = functions_of(now, before)
    else:
        heads, rows = functions.callers(function, now.stacks, before.stacks if before else None)
    if rows:
        yield from functions.lines(heads, rows)


def _per_second(found: Profile) -> dict[str, float]:
    seconds = found.about["seconds"]
    named = {**found.costs, **{f"samples of {name}": count for name, count in found.classes.items()}}
    return {name: value / seconds for name, value in named.items()}
