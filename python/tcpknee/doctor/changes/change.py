"""What every change of a host's setting can do: say its command, read what is there, write, and put back.

A state is what `read` returns: JSON that says all that is needed to put the setting back exactly. A change writes
files below /proc/sys and /sys, or asks the kernel by ioctl or netlink. No program is started and nothing goes through
a shell; `commands` says what a person would type for the same effect.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from tcpknee.errors import EngineError, UsageError
from tcpknee.live.which import inside

from . import elsewhere

State = Any
"""A state of a setting, as JSON has it."""

INTERFACE_NAME_BYTES_MAX = 15
"""IFNAMSIZ, less the zero byte at the end (include/uapi/linux/if.h)."""


_GONE = (errno.ENODEV, errno.ENOENT, errno.ENXIO)


class CannotChange(EngineError):
    """A setting that cannot be read or changed, with the reason. `is_gone`: what it belongs to is not there."""

    def __init__(self, why: str, *, is_gone: bool = False) -> None:
        super().__init__(why)
        self.is_gone = is_gone


@dataclass(frozen=True)
class SysctlLine:
    """A line of a file below sysctl.d."""

    name: str
    value: str


@dataclass(frozen=True)
class BootCommands:
    """Commands of a unit that runs once per boot."""

    argvs: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class BootFile:
    """A file below /sys that gets a value once per boot."""

    path: str
    value: str


@dataclass(frozen=True)
class NotPersistent:
    """A change that is gone after the next boot whatever is written, with the reason."""

    why: str


Persistence = SysctlLine | BootCommands | BootFile | NotPersistent


@dataclass(frozen=True)
class Change(ABC):
    """A setting, and the value that it is to have."""

    netns: str | None = field(default=None, kw_only=True)
    """Network namespace: a name, a process or a path; None: that of this process."""

    kind: ClassVar[str]
    """The change's name in a journal."""
    is_of_namespace: ClassVar[bool] = True
    """Whether each network namespace has this setting for itself."""

    @property
    @abstractmethod
    def target(self) -> str:
        """The setting, for a person: `eth0 ring`."""

    @abstractmethod
    def commands(self) -> list[list[str]]:
        """Commands for the same effect. Of a file that has no command, `tee FILE`, whose input is `input`."""

    @property
    def input(self) -> str | None:
        """What the commands read from their standard input."""
        return None

    @abstractmethod
    def _read(self) -> State: ...

    @abstractmethod
    def _apply(self, state: State) -> None: ...

    @abstractmethod
    def _goal(self, before: State) -> State: ...

    def _reached(self, goal: State, now: State) -> bool:
        return bool(goal == now)

    def _beside(self) -> list[Change]:
        return []

    def _persistence(self) -> Persistence:
        return BootCommands(tuple(tuple(argv) for argv in self.commands()))

    def link_settings(self) -> Sequence[tuple[str, str]]:
        """Keys of [Link] in systemd.link(5) with the same effect, and their values; empty where there are none."""
        return ()

    def read(self) -> State:
        """The present state. Raises CannotChange."""
        return self._there("read", self._read)

    def apply(self, state: State) -> None:
        """Makes `state` the present one. Raises CannotChange."""
        self._there("apply", self._apply, state)

    def goal(self, before: State) -> State:
        """The state that is wanted, within what the kernel takes. Raises CannotChange where there is none."""
        return self._there("goal", self._goal, before)

    def reached(self, goal: State, now: State) -> bool:
        """Whether `now` is what the kernel makes of `goal`. Raises CannotChange."""
        return bool(self._there("reached", self._reached, goal, now))

    def midway(self, states: Sequence[State], now: State) -> bool:
        """Whether who was killed between two of `states` can have left `now`; of what is written in one step: never."""
        return False

    def beside(self) -> list[dict[str, Any]]:
        """Settings that the kernel or the driver may reset together with this one, as `json` gives them. Raises
        CannotChange."""
        found = self._there("beside", lambda: [one.json() for one in self._beside()])
        return [{**one, "netns": self.netns} for one in found]

    def persistence(self) -> Persistence:
        """How the wanted value is there again after a boot."""
        if self.netns is not None:
            return NotPersistent("a network namespace ends with the boot; who makes it has to set this as well")
        return self._persistence()

    def shown(self) -> list[str]:
        """The commands, each in a line that a person can paste into a shell."""
        prefix = f"{inside(self.netns)} " if self.netns is not None and self.is_of_namespace else ""
        given = "" if self.input is None else f"echo {shlex.quote(self.input)} | "
        return [f"{given}{prefix}{shlex.join(argv)}" for argv in self.commands()]

    def told(self, state: State) -> str:
        """A state in words, for a person: `off`, `rx 512, tx 256`."""
        return _words(state)

    def json(self) -> dict[str, Any]:
        """The change as a journal keeps it; `change_of` reads it."""
        return {"kind": self.kind, **asdict(self)}

    def _there(self, method: str, act: Callable[..., Any], *arguments: State) -> Any:
        """`act` where the setting is; `method` is its public name."""
        try:
            if self.netns is None or not self.is_of_namespace:
                return act(*arguments)
            return elsewhere.ask(self.netns, replace(self, netns=None).json(), method, *arguments)
        except elsewhere.Refused as error:
            raise CannotChange(str(error), is_gone=error.is_gone) from None
        except OSError as error:
            raise CannotChange(f"{self.target}: {_reason(error)}", is_gone=error.errno in _GONE) from None
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            if not arguments:
                raise
            # It comes from a journal, which may have been edited.
            raise CannotChange(
                f"{self.target}: got the state {arguments!r}, which it never had ({error}). Put it right by hand."
            ) from None


def _reason(error: OSError) -> str:
    if error.errno in (errno.EPERM, errno.EACCES):
        return "may not be changed by this user; run as root."
    if error.errno in (errno.EOPNOTSUPP, errno.ENOTTY):
        return "is not supported by this device or kernel; leave it as it is."
    if error.errno in _GONE:
        return f"is not there ({error.strerror}); the device, namespace or part of the kernel is missing."
    if error.errno == errno.EINVAL:
        return "the kernel refused the value (Invalid argument); expected one within its bounds."
    return f"{error.strerror or error}."


def _words(state: State) -> str:
    if state is None:
        return "not set"
    if isinstance(state, bool):
        return "on" if state else "off"
    if isinstance(state, dict):
        # Features that one name stands for are mostly alike.
        alike = {value for value in state.values() if isinstance(value, bool)}
        if len(alike) == 1 and all(isinstance(value, bool) for value in state.values()):
            return _words(alike.pop())
        return ", ".join(f"{name} {_within(value)}" for name, value in state.items()) or "none"
    if isinstance(state, list | tuple):
        return ", ".join(map(_within, state)) or "none"
    return str(state)


def _within(state: State) -> str:
    is_several = isinstance(state, dict | list | tuple) and len(state) > 1
    return f"({_words(state)})" if is_several else _words(state)


def interface_name(name: str) -> str:
    """`name`, if the kernel could have a device of that name (dev_valid_name()). Raises UsageError."""
    size = len(os.fsencode(name))
    if not 0 < size <= INTERFACE_NAME_BYTES_MAX or name in {".", ".."} or re.search(r"[/:\s\0]", name):
        raise UsageError(f"change: got the interface {name!r}; expected 1 to 15 bytes without slash, colon or space.")
    return name


def interface_index(name: str) -> int:
    """By which the kernel knows the device. Raises OSError."""
    try:
        return socket.if_nametoindex(name)
    except OSError:
        # Python before 3.14 leaves out the number of the error.
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV)) from None


def whole_number(name: str, value: object, least: int = 0, most: int = (1 << 32) - 1) -> int:
    """`value`, if it is a number between the bounds. Raises UsageError."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(f"change: {name}: got {value!r}; expected a whole number from {least} to {most}.")
    return value


def write_setting(path: Path, text: str) -> None:
    """One write() of the whole value, as files below /proc and /sys want it."""
    with path.open("wb", buffering=0) as file:
        file.write(text.encode() + b"\n")
