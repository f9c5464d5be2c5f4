"""Queues of an interface, as its driver divides them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcpknee import _core

from .change import CannotChange, Change, State, interface_name, whole_number
from .masks import Rps, Xps
from .qdisc import Qdisc
from .queues import queue_numbers
from .rfs import RpsFlows

COUNTS = ("rx", "tx", "other", "combined")


@dataclass(frozen=True)
class Channels(Change):
    """Numbers of queues; None: stays as it is."""

    interface: str
    combined: int | None = None
    rx: int | None = None
    tx: int | None = None

    kind: ClassVar[str] = "channels"

    def __post_init__(self) -> None:
        interface_name(self.interface)
        for name, count in self._wanted().items():
            whole_number(name, count)

    @property
    def target(self) -> str:
        return f"{self.interface} channels"

    def commands(self) -> list[list[str]]:
        words = [word for name, count in self._wanted().items() for word in (name, str(count))]
        return [["ethtool", "-L", self.interface, *words]]

    def _wanted(self) -> dict[str, int]:
        asked = (("combined", self.combined), ("rx", self.rx), ("tx", self.tx))
        return {name: count for name, count in asked if count is not None}

    def link_settings(self) -> list[tuple[str, str]]:
        return [(f"{name.capitalize()}Channels", str(count)) for name, count in self._wanted().items()]

    def _read(self) -> State:
        found = self._numbers()
        return {name: found[name] for name in COUNTS}

    def _numbers(self) -> dict[str, int]:
        return _core.ethtool_numbers(self.interface, "channels")

    def _apply(self, state: State) -> None:
        _core.set_ethtool_numbers(self.interface, "channels", state)

    def _goal(self, before: State) -> State:
        limits = self._numbers()
        for name in self._wanted():
            if not limits[f"{name}_max"]:
                raise CannotChange(f"{self.target}: the driver has no {name} channels; leave them.")
        return {**before, **{name: min(count, limits[f"{name}_max"]) for name, count in self._wanted().items()}}

    def _beside(self) -> list[Change]:
        """Settings of queues, which go with a queue; drivers set up the others anew."""
        rx, tx = queue_numbers(self.interface, "rx"), queue_numbers(self.interface, "tx")
        return [
            Qdisc(self.interface, "pfifo"),
            *(Rps(self.interface, queue, ()) for queue in rx),
            *(RpsFlows(self.interface, queue, 0) for queue in rx),
            *(Xps(self.interface, queue, ()) for queue in tx),
        ]
