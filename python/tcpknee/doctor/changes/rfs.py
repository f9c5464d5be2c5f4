"""Receive flow steering: the machine's table of flows, and each receive queue's part of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from .change import BootFile, Change, Persistence, State, SysctlLine, interface_name, whole_number, write_setting
from .queues import device

FLOWS_MAX = 1 << 29
"""Beyond it the kernel refuses the machine's table (rps_sock_flow_sysctl())."""


def power_of_two(count: int) -> int:
    """What the kernel makes of a size of these tables: the next power of two; 0 is none."""
    return 1 << (count - 1).bit_length() if count else 0


@dataclass(frozen=True)
class RfsEntries(Change):
    """`net.core.rps_sock_flow_entries`."""

    entries: int

    kind: ClassVar[str] = "rfs-entries"
    is_of_namespace: ClassVar[bool] = False
    name: ClassVar[str] = "net.core.rps_sock_flow_entries"

    def __post_init__(self) -> None:
        whole_number("entries", self.entries, most=FLOWS_MAX)

    @property
    def target(self) -> str:
        return f"sysctl {self.name}"

    def commands(self) -> list[list[str]]:
        return [["sysctl", "-w", f"{self.name}={self.entries}"]]

    def _read(self) -> State:
        return int(self._file().read_text())

    def _apply(self, state: State) -> None:
        write_setting(self._file(), str(state))

    def _goal(self, before: State) -> State:
        return power_of_two(self.entries)

    def _persistence(self) -> Persistence:
        return SysctlLine(self.name, str(self.entries))

    def _file(self) -> Path:
        return Path("/proc/sys", *self.name.split("."))


@dataclass(frozen=True)
class RpsFlows(Change):
    """`rps_flow_cnt` of a receive queue."""

    interface: str
    queue: int
    flows: int

    kind: ClassVar[str] = "rps-flows"

    def __post_init__(self) -> None:
        interface_name(self.interface)
        whole_number("queue", self.queue)
        whole_number("flows", self.flows, most=FLOWS_MAX)

    @property
    def target(self) -> str:
        return f"{self.interface} rx-{self.queue} rps_flow_cnt"

    def commands(self) -> list[list[str]]:
        return [["tee", self._shown_file]]

    @property
    def input(self) -> str:
        return str(self.flows)

    @property
    def _shown_file(self) -> str:
        return f"/sys/class/net/{self.interface}/queues/rx-{self.queue}/rps_flow_cnt"

    def _read(self) -> State:
        return int(self._file().read_text())

    def _apply(self, state: State) -> None:
        write_setting(self._file(), str(state))

    def _goal(self, before: State) -> State:
        return power_of_two(self.flows)

    def _persistence(self) -> Persistence:
        return BootFile(self._shown_file, self.input)

    def _file(self) -> Path:
        return device(self.interface) / "queues" / f"rx-{self.queue}" / "rps_flow_cnt"
