"""What the hosts spent, as one value per cell and repetition: processor time, timers, packets.

From the table `cpu`. Of a lab: the time of the hosts' threads and programs, without those of the emulated link, and the
time of all processors in interrupts, which no thread is charged for. On a kernel without CONFIG_IRQ_TIME_ACCOUNTING a
thread's time includes the interrupts that came meanwhile, which then count twice. Of the simulator's hosts: the time of
their processors. From `host_costs`: what the instruments counted, or the host model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from .arrays import numbers
from .groups import Floats, Part, runs

Key = tuple[int, int]

OF_CPU = ("cell", "rep", "t_ns", "name", "run_us", "user_us", "system_us", "softirq_us")
"""Columns of `cpu` that are read."""

_LINK = "link/"
_PROCESSOR = re.compile(r"(?P<host>(sender|receiver|machine)\d*/)?cpu\d+")


def added(
    totals: Sequence[Part],
    groups: Sequence[Part],
    cells: Mapping[int, Mapping[str, Any]],
    cpu: pa.Table | None,
    host_costs: pa.Table | None,
) -> list[Part]:
    """The totals of cells with what their hosts spent; NaN where a table does not tell."""
    # What programs print is a rate of the whole run.
    told: dict[Key, float] = {}
    for group in groups:
        for rep, value in zip(group.reps.tolist(), group.values["requests_per_sec"].tolist(), strict=True):
            if not np.isnan(value):
                seconds = (cells[group.cell]["duration_ns"] - cells[group.cell]["warmup_ns"]) / 1e9
                told[group.cell, rep] = told.get((group.cell, rep), 0.0) + value * seconds
    spent = _spent(cpu, cells) if cpu is not None and cpu.num_rows else {}
    counted = _counted(host_costs) if host_costs is not None else {}
    found = []
    for total in totals:
        keys = [(total.cell, rep) for rep in total.reps.tolist()]
        own = total.values["answered"].tolist()
        answered = [told.get(key, 0.0) if np.isnan(value) else value for key, value in zip(keys, own, strict=True)]
        done = zip(keys, total.values["delivered_bytes"].tolist(), answered, strict=True)
        rows = [_metrics(spent.get(key, {}), counted.get(key, {}), *amounts) for key, *amounts in done]
        values = {name: np.array([row.get(name, np.nan) for row in rows]) for name in METRICS}
        found.append(Part(total.cell, total.group, "total", "", "", total.reps, {**total.values, **values}))
    return found


METRICS = (
    "softirq_share_of_busiest_cpu",
    "cpu_ns_per_byte",
    "cpu_ns_per_request",
    "cpu_user_share",
    "cpu_system_share",
    "cpu_softirq_share",
    "timer_fires_per_data_skb",
    "cross_cpu_reads_per_skb",
    "ring_drops",
    "data_skbs",
    "acks_sent",
)


def _metrics(
    spent: Mapping[str, float], counted: Mapping[str, int], delivered_bytes: float, requests: float
) -> dict[str, float]:
    found = {f"cpu_{name}_share": spent[name] for name in ("user", "system", "softirq") if name in spent}
    if "busiest_softirq" in spent:
        found["softirq_share_of_busiest_cpu"] = spent["busiest_softirq"]
    # The model tells its hosts' time from that of other work on their processors.
    ns = counted.get("cpu_ns", spent.get("ns"))
    if ns is not None and delivered_bytes > 0:
        found["cpu_ns_per_byte"] = ns / delivered_bytes
    if ns is not None and requests > 0:
        found["cpu_ns_per_request"] = ns / requests
    if "data_skbs_sent" in counted:
        found |= {"data_skbs": counted["data_skbs_sent"], "acks_sent": counted["acks_sent"]}
        if counted["data_skbs_sent"] and "pacing_timer_fires" in counted:
            found["timer_fires_per_data_skb"] = counted["pacing_timer_fires"] / counted["data_skbs_sent"]
    if "ring_drops" in counted:
        found["ring_drops"] = counted["ring_drops"]
    if counted.get("skbs_received") and "cross_cpu_reads" in counted:
        found["cross_cpu_reads_per_skb"] = counted["cross_cpu_reads"] / counted["skbs_received"]
    return found


def _spent(cpu: pa.Table, cells: Mapping[int, Mapping[str, Any]]) -> dict[Key, dict[str, float]]:
    """Of each cell and repetition, from the end of the warm-up on: shares of the processors' time, the hosts' time
    in ns, and of the time in softirqs the share of the processor with most."""
    warmups = {cell: int(about["warmup_ns"]) for cell, about in cells.items()}
    names = cpu["name"].combine_chunks()
    names = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
    texts = names.dictionary.to_pylist()
    processor = [_PROCESSOR.fullmatch(text) for text in texts]
    of_link = [text.startswith(_LINK) for text in texts]
    cell, rep, t_ns = (numbers(cpu[name]).astype(np.int64) for name in ("cell", "rep", "t_ns"))
    which = numbers(names.indices).astype(np.int64)
    warm = t_ns >= np.array([warmups[int(one)] for one in cell])
    order = np.lexsort((t_ns, which, rep, cell))
    order = order[warm[order]]
    columns = {name: _floats(cpu, name)[order] for name in OF_CPU[4:]}
    cell, rep, t_ns, which = (column[order] for column in (cell, rep, t_ns, which))
    found: dict[Key, dict[str, float]] = {}
    for start, end in runs(cell, rep) if len(order) else ():
        length_us = (int(t_ns[start:end].max()) - int(t_ns[start:end].min())) / 1e3
        if length_us <= 0:
            continue
        sums = dict.fromkeys(("user", "system", "softirq", "threads"), 0.0)
        softirqs_us: list[float] = []
        for first, last in runs(which[start:end]):
            ends = (start + first, start + last - 1)
            if of := processor[which[ends[0]]]:
                grown = {name: _grown(columns[f"{name}_us"], ends) for name in ("user", "system", "softirq")}
                for name, us in grown.items():
                    sums[name] += us
                    # The model's threads have no rows of their own.
                    sums["threads"] += us if of["host"] and name != "softirq" else 0.0
                softirqs_us.append(grown["softirq"])
            elif not of_link[which[ends[0]]]:
                sums["threads"] += _grown(columns["run_us"], ends)
        shares = {name: sums[name] / (length_us * max(len(softirqs_us), 1)) for name in ("user", "system", "softirq")}
        one = {**shares, "ns": 1e3 * (sums["threads"] + sums["softirq"])}
        if sums["softirq"] > 0:
            one["busiest_softirq"] = max(softirqs_us) / sums["softirq"]
        found[int(cell[start]), int(rep[start])] = one
    return found


def _floats(table: pa.Table, name: str) -> Floats:
    return np.nan_to_num(np.asarray(numbers(table[name]), dtype=np.float64))


def _grown(column: Floats, ends: tuple[int, int]) -> float:
    return float(column[ends[1]] - column[ends[0]])


def _counted(host_costs: pa.Table) -> dict[Key, dict[str, int]]:
    """Counters of both hosts together; where they are not told apart, those of the machine, of everything on it."""
    found: dict[Key, dict[str, int]] = {}
    of_machines: dict[Key, dict[str, int]] = {}
    for row in host_costs.to_pylist():
        into = of_machines if row["host"] == "machine" else found
        counters = into.setdefault((row["cell"], row["rep"]), {})
        counters[row["counter"]] = counters.get(row["counter"], 0) + row["value"]
    for key, counters in of_machines.items():
        found[key] = {**counters, **found.get(key, {})}
    return found
