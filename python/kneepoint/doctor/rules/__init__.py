"""The rules. A new one is a file beside these and a line in the list, within its group."""

from __future__ import annotations

from . import (
    bbr_without_fq,
    default_qdisc_not_applied,
    departure_times_in_one_fifo,
    fq_fast_path_reorders,
    fq_flow_limit,
    fq_horizon_drops,
    fq_where_forwarded,
    mq_leaf_without_fq,
    one_root_for_many_queues,
    pod_departure_times,
    qdisc_drops,
)
from .rule import GROUPS, Rule

RULES: tuple[Rule, ...] = (
    bbr_without_fq.RULE,
    mq_leaf_without_fq.RULE,
    fq_horizon_drops.RULE,
    fq_flow_limit.RULE,
    fq_fast_path_reorders.RULE,
    fq_where_forwarded.RULE,
    pod_departure_times.RULE,
    one_root_for_many_queues.RULE,
    departure_times_in_one_fifo.RULE,
    default_qdisc_not_applied.RULE,
    qdisc_drops.RULE,
)

__all__ = ["GROUPS", "RULES", "Rule"]
