"""Cohorts of connections compared: verdicts with intervals over clusters, and what speaks against believing them."""

from __future__ import annotations

from .comparison import Comparison, compare, comparing
from .verdicts import Verdict

__all__ = ["Comparison", "Verdict", "compare", "comparing"]
