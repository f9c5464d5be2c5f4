"""Columns of a run's tables, as `knee list tables` and the docs show them."""

from __future__ import annotations

from tcpknee import _core


def of_tables() -> dict[str, list[dict[str, str]]]:
    """Columns of every table that a run may have, `runs` first."""
    found = {name: list(columns) for name, columns in _core.tables("run").items()}
    found["samples"] += [{**column, "engine": "kernel"} for column in found.pop("tcp_info")]
    found["programs"] += found.pop("client_output")
    return found
