"""What a repetition on the kernel costs the host: instruments that this process holds while a lab runs.

A lab's own process may be in a user namespace, which may load no BPF. So this one does, by the inodes of the network
namespaces that the lab tells it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tcpknee import _core
from tcpknee.errors import UsageError
from tcpknee.human import suggest

from . import tables

STACKS_HZ = 499
"""Samples of stacks per second and processor: 1,000 a second on two, each of which takes a few us. A prime, so that it
does not beat with the kernel's tick."""

TABLES = ("host_costs", "stacks")
"""Tables of a run that are filled here."""


def names() -> list[str]:
    """The instruments."""
    return [one["name"] for one in _core.profile_registry()["instruments"]]


def check(measure: Sequence[str], engine: str, workers: int | None) -> None:
    """Refuses instruments that there are not, and what they cannot measure. Raises UsageError."""
    known = names()
    if unknown := next((name for name in measure if name not in known), None):
        raise UsageError(f'measure: got "{unknown}"; ' + suggest(unknown, known, "expected instruments:"))
    if measure and engine != "kernel":
        raise UsageError(
            f"measure: got it with the engine {engine}; expected the engine kernel, whose host's costs it measures."
        )
    if measure and workers is not None and workers > 1:
        raise UsageError(
            f"measure: got it with {workers} workers; expected one. Labs at the same time share the processors, and no "
            "instrument tells their work apart."
        )


class Measuring:
    """The instruments of one repetition, attached before its lab begins."""

    def __init__(self, measure: Sequence[str], cell: int, rep: int) -> None:
        self._cell, self._rep = cell, rep
        asked = {"instruments": list(measure), "stacks_hz": STACKS_HZ, "netns": None, "pid": None, "is_lab": True}
        self._session = _core.HostSession(json.dumps(asked)) if measure else None
        self._begun = False
        self._found: dict[str, pa.Table] = {}
        self._about: dict[str, Any] | None = None

    def close(self) -> None:
        """Takes the instruments away, in the thread that they belong to: an error may carry this to another one."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def hear(self, said: Mapping[str, Any]) -> None:
        """A line of the lab, which may tell where its hosts are, and when what counts begins and ends."""
        if self._session is None:
            return
        if "hosts" in said:
            self._session.list(*said["hosts"])
        elif said.get("measuring") is True:
            self._session.begin()
            self._begun = True
        elif said.get("measuring") is False and self._begun:
            found, about = self._session.finish(self._cell, self._rep)
            self._about = {**about, "stacks_hz": STACKS_HZ}
            self._found = {name: tables.as_table(found[name]) for name in TABLES}

    def added(self, found: dict[str, pa.Table]) -> dict[str, pa.Table]:
        """The tables of the repetition with what was measured: nothing, where all work was done within the warm-up."""
        if self._about is None:
            return found
        flows, note = tables.take_note(found["flows"])
        lab = note["lab"]
        measured = {**lab.get("measured", {}), "instruments": self._about}
        return tables.with_note(
            {**found, **self._found, "flows": flows}, {**note, "lab": {**lab, "measured": measured}}
        )
