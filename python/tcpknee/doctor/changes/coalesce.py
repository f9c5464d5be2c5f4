"""How long an interface waits before it interrupts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcpknee import _core
from tcpknee.errors import UsageError

from .change import Change, State, interface_name, whole_number

WORDS = {"adaptive_rx": "adaptive-rx", "adaptive_tx": "adaptive-tx"}
"""Fields whose word for ethtool -C is not their name with dashes."""
LINK_KEYS = {
    "rx_usecs": "RxCoalesceSec",
    "rx_frames": "RxMaxCoalescedFrames",
    "tx_usecs": "TxCoalesceSec",
    "tx_frames": "TxMaxCoalescedFrames",
    "adaptive_rx": "UseAdaptiveRxCoalesce",
    "adaptive_tx": "UseAdaptiveTxCoalesce",
}
NAMES = tuple(LINK_KEYS)


@dataclass(frozen=True)
class Coalesce(Change):
    """Delays and numbers of packets; `settings` by the names of `ethtool -c` with underscores."""

    interface: str
    settings: tuple[tuple[str, int], ...]

    kind: ClassVar[str] = "coalesce"

    def __post_init__(self) -> None:
        interface_name(self.interface)
        object.__setattr__(self, "settings", tuple((name, value) for name, value in self.settings))
        for name, value in self.settings:
            if name not in NAMES:
                raise UsageError(f'change: got "{name}" of coalescing; expected one of {", ".join(NAMES)}.')
            whole_number(name, value, most=1 if name in WORDS else (1 << 32) - 1)

    @property
    def target(self) -> str:
        return f"{self.interface} coalescing"

    def commands(self) -> list[list[str]]:
        words = []
        for name, value in self.settings:
            if name in WORDS:
                words += [WORDS[name], "on" if value else "off"]
            else:
                words += [name.replace("_", "-"), str(value)]
        return [["ethtool", "-C", self.interface, *words]]

    def link_settings(self) -> list[tuple[str, str]]:
        return [(LINK_KEYS[name], _link_value(name, value)) for name, value in self.settings]

    def _read(self) -> State:
        return _core.ethtool_numbers(self.interface, "coalesce")

    def _apply(self, state: State) -> None:
        _core.set_ethtool_numbers(self.interface, "coalesce", state)

    def _goal(self, before: State) -> State:
        return {**before, **dict(self.settings)}

    def _reached(self, goal: State, now: State) -> bool:
        # Drivers round delays to what their clock counts; adaptive ones move by themselves.
        return all(bool(now[name]) == bool(value) for name, value in self.settings)


def _link_value(name: str, value: int) -> str:
    if name in WORDS:
        return "yes" if value else "no"
    return f"{value}us" if name.endswith("_usecs") else str(value)
