"""Which .link file systemd-udevd gave to an interface, and whether a drop-in of it reaches that interface alone.

systemd-udevd takes the first .link file that matches a device (systemd.link(5)). One of our own would be the first, and
the file that names the device would no longer count. A drop-in beside that file adds to it; but it acts on all devices
that the file matches. So it is of use only where the file is for one device: where it says its address or its place.
"""

from __future__ import annotations

import configparser
import re
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tcpknee import reading
from tcpknee.errors import RunFolderError

LEAST_VERSION = 250
"""From here on [Link] has every key that `Change.link_settings` gives (RxCoalesceSec= came with 250). Drop-ins are
older (github.com/systemd/systemd/issues/23128 has one with 249)."""

MOST_BYTES = 1 << 20
"""Of a .link file, or of what udev notes of a device: both have some lines."""

_OF_ONE_DEVICE = {"macaddress", "permanentmacaddress", "path"}
_ONE = re.compile(r"[^\s*?\[]+")
"""One word without a wildcard."""


@cache
def _version() -> int:
    """Asked once: each change that persists wants to know it several times."""
    with suppress(OSError, ValueError):
        told = subprocess.run(["udevadm", "--version"], capture_output=True, text=True, check=False).stdout
        return int(told.split()[0]) if told.split() else 0
    return 0


@dataclass(frozen=True)
class Udev:
    """The database of systemd-udevd, and its version; 0: it is not there."""

    data: Path = Path("/run/udev/data")
    version: Callable[[], int] = _version

    def link_file(self, interface: str) -> Path | None:
        """The .link file that was given to this interface and can match no other; None: there is none, or it is not
        known."""
        try:
            index = socket.if_nametoindex(interface)
            text = _text(self.data / f"n{index}")
        except (OSError, RunFolderError):
            return None
        found = re.search(r"^E:ID_NET_LINK_FILE=(/.+\.link)$", text, re.MULTILINE)
        path = Path(found[1]) if found else None
        return path if path is not None and _is_of_one(path) and self.version() >= LEAST_VERSION else None


def _is_of_one(path: Path) -> bool:
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",), comment_prefixes=("#", ";"))
    try:
        parser.read_string(_text(path))
        matches = parser["Match"]
    except (OSError, RunFolderError, KeyError, configparser.Error):
        return False
    return any(_ONE.fullmatch(matches[key]) for key in matches if key in _OF_ONE_DEVICE)


def _text(path: Path) -> str:
    return reading.content(path, most_bytes=MOST_BYTES).decode(errors="replace")
