"""Features of an interface: segmentation, merging of received packets, checksums."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from kneepoint.errors import UsageError

from . import ethtool
from .change import CannotChange, Change, State, interface_name

SHORT_NAMES = {
    "gro": "rx-gro",
    "gso": "tx-generic-segmentation",
    "lro": "rx-lro",
    "tso": "tx-tcp.*-segmentation",
    "rx": "rx-checksum",
    "tx": "tx-checksum-.*",
    "sg": "tx-scatter-gather",
}
"""Names of ethtool -K that stand for features of other names."""


@dataclass(frozen=True)
class Offload(Change):
    """A feature by a name of `ethtool -k`, long or short."""

    interface: str
    feature: str
    on: bool

    kind: ClassVar[str] = "offload"

    def __post_init__(self) -> None:
        interface_name(self.interface)
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", self.feature):
            raise UsageError(f'change: got the feature "{self.feature}"; expected one that `ethtool -k` prints.')

    @property
    def target(self) -> str:
        return f"{self.interface} {self.feature}"

    def commands(self) -> list[list[str]]:
        return [["ethtool", "-K", self.interface, self.feature, "on" if self.on else "off"]]

    def _read(self) -> State:
        """All features that are wanted and active, by name: switching one may switch others."""
        names = ethtool.feature_names(self.interface)
        available, wanted, active, _ = ethtool.features(self.interface, len(names))
        asked = sorted(name for bit, name in enumerate(names) if available >> bit & 1 and wanted >> bit & 1)
        return {"wanted": asked, "active": sorted(name for bit, name in enumerate(names) if active >> bit & 1)}

    def _apply(self, state: State) -> None:
        names = ethtool.feature_names(self.interface)
        available, _, _, fixed = ethtool.features(self.interface, len(names))
        wanted = sum(1 << bit for bit, name in enumerate(names) if name in state["wanted"])
        ethtool.set_features(self.interface, len(names), available & ~fixed, wanted)

    def _goal(self, before: State) -> State:
        chosen = self._changeable()
        return {
            **before,
            "wanted": sorted(set(before["wanted"]) | chosen if self.on else set(before["wanted"]) - chosen),
        }

    def _reached(self, goal: State, now: State) -> bool:
        chosen = self._changeable()
        return bool(goal["wanted"] == now["wanted"]) and (not self.on or bool(chosen & set(now["active"])))

    def _changeable(self) -> set[str]:
        """Names of the features that are meant. Raises CannotChange where none can be changed."""
        names = ethtool.feature_names(self.interface)
        available, _, _, fixed = ethtool.features(self.interface, len(names))
        pattern = SHORT_NAMES.get(self.feature, re.escape(self.feature))
        meant = {bit: name for bit, name in enumerate(names) if re.fullmatch(pattern, name)}
        if not meant:
            raise CannotChange(f"{self.target}: is no feature of this kernel; expected one that `ethtool -k` prints.")
        chosen = {name for bit, name in meant.items() if available & ~fixed & 1 << bit}
        if not chosen:
            raise CannotChange(f"{self.target}: is fixed by the driver; leave it.")
        return chosen
