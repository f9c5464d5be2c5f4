"""Many connections of many hosts: cohorts compared, experiments assigned and judged, changes predicted.

from tcpknee import fleet
found = fleet.compare("rec/edge1", "rec/edge2", by="algorithm", min_bytes="1MB")
print(found)
found.verdict("retransmit_pct", "bbr1").ratio
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cohorts import Comparison, compare

__all__ = ["Comparison", "compare"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from . import cohorts

        return getattr(cohorts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
