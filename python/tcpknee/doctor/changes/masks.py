"""Files that hold a mask of processors: RPS and XPS of a queue, the affinity of an interrupt."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tcpknee.doctor.cpus import mask_like, of_mask
from tcpknee.errors import UsageError

from .change import BootFile, Change, NotPersistent, Persistence, State, interface_name, whole_number, write_setting
from .queues import device, within_machine

CPU_NUMBER_MAX = 8191
"""NR_CPUS is at most 8,192 (arch/x86/Kconfig)."""


@dataclass(frozen=True)
class _Mask(Change):
    @abstractmethod
    def _file(self) -> Path: ...

    @property
    @abstractmethod
    def _shown_file(self) -> str: ...

    @property
    @abstractmethod
    def _cpus(self) -> tuple[int, ...]: ...

    def commands(self) -> list[list[str]]:
        return [["tee", self._shown_file]]

    @property
    def input(self) -> str:
        return mask_like("", self._cpus)

    def _read(self) -> State:
        return self._file().read_text().strip()

    def _apply(self, state: State) -> None:
        write_setting(self._file(), str(state))

    def _goal(self, before: State) -> State:
        return mask_like(str(before), within_machine(self.target, self._cpus))

    def _reached(self, goal: State, now: State) -> bool:
        return of_mask(goal) == of_mask(now)


def _checked(cpus: tuple[int, ...], *, may_be_none: bool) -> tuple[int, ...]:
    found = tuple(sorted({whole_number("cpus", cpu, most=CPU_NUMBER_MAX) for cpu in cpus}))
    if not found and not may_be_none:
        raise UsageError("change: got no processor; an interrupt needs one.")
    return found


@dataclass(frozen=True)
class _OfQueue(_Mask):
    interface: str
    queue: int
    cpus: tuple[int, ...]

    direction: ClassVar[str]
    file: ClassVar[str]

    def __post_init__(self) -> None:
        interface_name(self.interface)
        whole_number("queue", self.queue)
        object.__setattr__(self, "cpus", _checked(self.cpus, may_be_none=True))

    @property
    def target(self) -> str:
        return f"{self.interface} {self.direction}-{self.queue} {self.file}"

    @property
    def _cpus(self) -> tuple[int, ...]:
        return self.cpus

    @property
    def _shown_file(self) -> str:
        return f"/sys/class/net/{self.interface}/queues/{self.direction}-{self.queue}/{self.file}"

    def _file(self) -> Path:
        return device(self.interface) / "queues" / f"{self.direction}-{self.queue}" / self.file

    def _persistence(self) -> Persistence:
        return BootFile(self._shown_file, self.input)


@dataclass(frozen=True)
class Rps(_OfQueue):
    """Processors to which packets of a receive queue are spread."""

    kind: ClassVar[str] = "rps"
    direction: ClassVar[str] = "rx"
    file: ClassVar[str] = "rps_cpus"


@dataclass(frozen=True)
class Xps(_OfQueue):
    """Processors that send by a transmit queue."""

    kind: ClassVar[str] = "xps"
    direction: ClassVar[str] = "tx"
    file: ClassVar[str] = "xps_cpus"


@dataclass(frozen=True)
class IrqAffinity(_Mask):
    """Processors that may handle an interrupt. It belongs to the machine, whatever the namespace."""

    irq: int
    cpus: tuple[int, ...]

    kind: ClassVar[str] = "irq-affinity"
    is_of_namespace: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole_number("irq", self.irq)
        object.__setattr__(self, "cpus", _checked(self.cpus, may_be_none=False))

    @property
    def target(self) -> str:
        return f"irq {self.irq} affinity"

    @property
    def _cpus(self) -> tuple[int, ...]:
        return self.cpus

    @property
    def _shown_file(self) -> str:
        return f"/proc/irq/{self.irq}/smp_affinity"

    def _file(self) -> Path:
        return Path(self._shown_file)

    def _persistence(self) -> Persistence:
        return NotPersistent("the kernel gives out the interrupt's number at each boot, then perhaps to another device")
