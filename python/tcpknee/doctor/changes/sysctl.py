"""A sysctl below `net.`, of the machine or of a network namespace."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tcpknee.errors import UsageError

from .change import CannotChange, Change, Persistence, State, SysctlLine, write_setting

VALUE_CHARACTERS_MAX = 200

RESETS_OTHERS = re.compile(r"forward|route[./]flush|\.disable_ipv6$")
"""Sysctls whose writing changes others, or that act instead of holding a value."""


@dataclass(frozen=True)
class Sysctl(Change):
    """`name = value`; slashes and dots in the name as sysctl(8) has them."""

    name: str
    value: str

    kind: ClassVar[str] = "sysctl"

    def __post_init__(self) -> None:
        parts = self._path_parts()
        if parts[0] != "net" or len(parts) < 3 or not all(_is_part(part) for part in parts):
            raise UsageError(f'change: got the sysctl "{self.name}"; expected a name such as net.core.somaxconn.')
        if RESETS_OTHERS.search(self.name):
            raise UsageError(f"change: {self.name}: writing it changes other settings, so that it could not be undone.")
        if not re.fullmatch(r"[ -~]+", self.value) or len(self.value) > VALUE_CHARACTERS_MAX:
            raise UsageError(f"change: {self.name}: got {self.value!r}; expected printable ASCII in one line.")

    @property
    def target(self) -> str:
        return f"sysctl {self.name}"

    def commands(self) -> list[list[str]]:
        return [["sysctl", "-w", f"{self.name}={self.value}"]]

    def _read(self) -> State:
        try:
            return " ".join(self._file().read_text().split())
        except FileNotFoundError:
            raise CannotChange(
                f"{self.target}: is not there: this kernel lacks it, or has it in the first network namespace only.",
                is_gone=True,
            ) from None

    def _apply(self, state: State) -> None:
        write_setting(self._file(), str(state))

    def _goal(self, before: State) -> State:
        return " ".join(self.value.split())

    def _persistence(self) -> Persistence:
        return SysctlLine(self.name, self.value)

    def _path_parts(self) -> list[str]:
        # sysctl(8): a slash in a name stands for a dot in the file's name, as in eth0/100 for eth0.100.
        return [part.replace("/", ".") for part in self.name.split(".")]

    def _file(self) -> Path:
        return Path("/proc/sys", *self._path_parts())


def _is_part(part: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9_.@:-]+", part)) and part not in {".", ".."}
