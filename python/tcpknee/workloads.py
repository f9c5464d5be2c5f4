"""What the registry says of a workload by its name, as the tables of runs have it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypedDict

Counts = Literal["goodput", "completion", "requests", "programs"]


class Workload(TypedDict):
    """`counts`: what its metrics are of; `draws`: do its connections come and go at random, others in each run?"""

    counts: Counts
    draws: bool


def of(name: str) -> Workload:
    """A workload that only another version knows counts by its goodput."""
    return _known().get(name, {"counts": "goodput", "draws": False})


def of_programs(cell: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The flows of a cell that programs of the scenario's own make."""
    return [flow for flow in cell["flows"] if of(flow["workload"])["counts"] == "programs"]


@cache
def _known() -> dict[str, Workload]:
    from tcpknee import _core

    return {kind["name"]: {"counts": kind["counts"], "draws": kind["draws"]} for kind in _core.workloads()}
