"""Descriptors in the rings of an interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcpknee import _core

from .change import CannotChange, Change, State, interface_name, whole_number

SIZES = ("rx", "tx", "rx_mini", "rx_jumbo")


@dataclass(frozen=True)
class Ring(Change):
    """Sizes of the rings; None: stays as it is."""

    interface: str
    rx: int | None = None
    tx: int | None = None

    kind: ClassVar[str] = "ring"

    def __post_init__(self) -> None:
        interface_name(self.interface)
        for name, size in self._wanted().items():
            whole_number(name, size, least=1)

    @property
    def target(self) -> str:
        return f"{self.interface} ring"

    def commands(self) -> list[list[str]]:
        words = [word for name, size in self._wanted().items() for word in (name, str(size))]
        return [["ethtool", "-G", self.interface, *words]]

    def _wanted(self) -> dict[str, int]:
        return {name: size for name, size in (("rx", self.rx), ("tx", self.tx)) if size is not None}

    def link_settings(self) -> list[tuple[str, str]]:
        return [(f"{name.capitalize()}BufferSize", str(size)) for name, size in self._wanted().items()]

    def _read(self) -> State:
        found = self._numbers()
        return {name: found[name] for name in SIZES}

    def _numbers(self) -> dict[str, int]:
        return _core.ethtool_numbers(self.interface, "ring")

    def _apply(self, state: State) -> None:
        _core.set_ethtool_numbers(self.interface, "ring", state)

    def _goal(self, before: State) -> State:
        limits = self._numbers()
        for name in self._wanted():
            if not limits[f"{name}_max"]:
                raise CannotChange(f"{self.target}: the driver has no {name} ring whose size can be set; leave it.")
        return {**before, **{name: min(size, limits[f"{name}_max"]) for name, size in self._wanted().items()}}

    def _reached(self, goal: State, now: State) -> bool:
        # Drivers round sizes up, many to a power of two.
        return all(now[name] >= goal[name] if name in self._wanted() else now[name] == goal[name] for name in SIZES)
