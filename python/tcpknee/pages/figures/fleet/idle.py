"""Processor time that hosts had left, over time."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import cohort_marks
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.theme import Layout

name = "idle"
title = "Idle processors over time"
summary = (
    "Share of the hosts' processor time that was idle or waited for disks. A host whose connections are of several "
    "cohorts has its share in the line of such hosts."
)
#: Time of guests is in user_us and nice_us already.
USED = ("user_us", "nice_us", "system_us", "irq_us", "softirq_us", "steal_us")
SOURCE = f"""
    select boot_id, host, t_unix_ns, idle - lag(idle) over each as more_idle, used - lag(used) over each as more_used
    from (
        select *, idle_us + coalesce(iowait_us, 0) as idle, {" + ".join(f"coalesce({one}, 0)" for one in USED)} as used
        from cpu
    )
    window each as (partition by boot_id, cpu order by t_unix_ns)
"""
PCT = "100.0 * sum(more_idle) / nullif(sum(more_idle) + sum(more_used), 0)"


def applies(found: Cohorts) -> bool:
    return bool(found.over_time("cpu", SOURCE, PCT))


def chart(found: Cohorts, layout: Layout) -> Any:
    return cohort_marks.over_wall_time(found, found.over_time("cpu", SOURCE, PCT), "Idle (%)", layout)
