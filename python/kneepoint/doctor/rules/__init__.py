"""The rules. A new one is a file beside these and a line in the list."""

from __future__ import annotations

from . import bbr_without_fq, mq_leaf_without_fq
from .rule import GROUPS, Rule

RULES: tuple[Rule, ...] = (
    bbr_without_fq.RULE,
    mq_leaf_without_fq.RULE,
)

__all__ = ["GROUPS", "RULES", "Rule"]
