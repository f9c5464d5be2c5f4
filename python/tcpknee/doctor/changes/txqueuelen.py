"""`txqueuelen` of an interface, by which FIFO qdiscs choose their length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .change import Change, State, interface_name, whole_number, write_setting
from .queues import device


@dataclass(frozen=True)
class TxQueueLen(Change):
    interface: str
    packets: int

    kind: ClassVar[str] = "txqueuelen"

    def __post_init__(self) -> None:
        interface_name(self.interface)
        whole_number("packets", self.packets, most=(1 << 31) - 1)

    @property
    def target(self) -> str:
        return f"{self.interface} txqueuelen"

    def commands(self) -> list[list[str]]:
        return [["ip", "link", "set", "dev", self.interface, "txqueuelen", str(self.packets)]]

    def link_settings(self) -> list[tuple[str, str]]:
        return [("TransmitQueueLength", str(self.packets))]

    def _read(self) -> State:
        return int((device(self.interface) / "tx_queue_len").read_text())

    def _apply(self, state: State) -> None:
        write_setting(device(self.interface) / "tx_queue_len", str(state))

    def _goal(self, before: State) -> State:
        return self.packets
