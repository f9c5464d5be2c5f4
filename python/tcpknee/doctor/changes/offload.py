"""Features of an interface: segmentation, merging of received packets, checksums."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from tcpknee import _core
from tcpknee.errors import UsageError

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

LINK_KEYS = {
    "gro": "GenericReceiveOffload",
    "gso": "GenericSegmentationOffload",
    "lro": "LargeReceiveOffload",
    "rx": "ReceiveChecksumOffload",
    "tx": "TransmitChecksumOffload",
}
"""Keys of systemd.link(5) that mean the same. None does for tso: its keys leave out two of the four kinds."""


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

    def link_settings(self) -> list[tuple[str, str]]:
        key = LINK_KEYS.get(self.feature)
        return [(key, "yes" if self.on else "no")] if key is not None else []

    def _read(self) -> State:
        """Whether each feature that is meant is wanted. What is active follows from that by itself. Raises CannotChange
        where none can be changed."""
        features = _core.ethtool_features(self.interface)
        pattern = SHORT_NAMES.get(self.feature, re.escape(self.feature))
        meant = [one for one in features if re.fullmatch(pattern, one[0])]
        if not meant:
            raise CannotChange(f"{self.target}: is no feature of this kernel; expected one that `ethtool -k` prints.")
        state = {name: is_wanted for name, is_changeable, is_wanted in meant if is_changeable}
        if not state:
            raise CannotChange(f"{self.target}: is fixed by the driver; leave it.")
        return state

    def _apply(self, state: State) -> None:
        _core.set_ethtool_features(self.interface, {name: bool(state[name]) for name in self._read()})

    def _goal(self, before: State) -> State:
        return dict.fromkeys(before, self.on)
