"""Who a scenario's programs run as: never root, unless that is asked for.

Root's labs run them as the user who called sudo, else as nobody; an ordinary user's as that user, who is root of the
lab alone.
"""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpknee.errors import KernelUnsupported, UsageError

_NOBODY = 65534
"""Where no user is called nobody: the kernel's own for whom it cannot name."""


@dataclass(frozen=True)
class User:
    """A user of this system. `other`: programs must become that user, as it is not this process's."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str | None = None
    other: bool = False

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.name} (uid {self.uid})"

    @property
    def note(self) -> dict[str, Any]:
        """For `run.json`."""
        return {"user": self.name, "uid": self.uid, "gid": self.gid, "groups": list(self.groups)}

    @contextmanager
    def place(self) -> Iterator[dict[str, Any] | None]:
        """What the lab needs to run a program as that user, with a private folder until the end; None: nothing."""
        if not self.other:
            yield None
            return
        with tempfile.TemporaryDirectory(prefix="tcpknee-") as private:
            os.chown(private, self.uid, self.gid)
            # A folder within one that is closed to nobody would be open to nobody by way of the working directory.
            folder = str(Path.cwd()) if self.home else None
            said = {"user": self.name, "uid": self.uid, "gid": self.gid, "groups": self.groups}
            yield {**said, "home": self.home, "folder": folder, "private": private}


def of_programs(as_root: bool) -> User:
    """Who programs run as. Raises `UsageError` for what SUDO_UID cannot mean, `KernelUnsupported` where that user
    cannot be had here."""
    if os.geteuid() != 0:
        if as_root:
            raise UsageError(
                "--programs-as-root: got it from an ordinary user; expected root, as programs run as who calls. "
                "Leave it out: in the lab they have its root's rights already."
            )
        return _known(os.geteuid(), os.getegid(), tuple(os.getgroups()))
    if as_root:
        return _known(0, os.getegid(), tuple(os.getgroups()))
    user = caller() or _nobody()
    for kind, number in (("uid", user.uid), ("gid", user.gid)):
        if not _is_mapped(kind, number):
            raise KernelUnsupported(
                f"a scenario's programs are to run as {user.words}, and this user namespace does not have the {kind} "
                f"{number}; expected one that it maps (/proc/self/{kind}_map). Map it, call knee as an ordinary user, "
                "or give --programs-as-root."
            )
    return user


def caller() -> User | None:
    """Who called sudo; None: nobody did, or root. Raises `UsageError` for what SUDO_UID cannot mean."""
    given = os.environ.get("SUDO_UID", "")
    if not given:
        return None
    uid = _number("SUDO_UID", given)
    if uid == 0:
        return None
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        # A user that this system has no name for, as in containers.
        gid = _number("SUDO_GID", os.environ.get("SUDO_GID", "") or str(_NOBODY))
        return User(f"user {uid}", uid, gid, (gid,), "/", other=True)
    gid = _number("SUDO_GID", os.environ.get("SUDO_GID", "") or str(entry.pw_gid))
    return User(entry.pw_name, uid, gid, tuple(os.getgrouplist(entry.pw_name, gid)), entry.pw_dir, other=True)


def _nobody() -> User:
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        return User("nobody", _NOBODY, _NOBODY, (), other=True)
    return User("nobody", entry.pw_uid, entry.pw_gid, (), other=True)


def _known(uid: int, gid: int, groups: tuple[int, ...]) -> User:
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"user {uid}"
    return User(name, uid, gid, groups)


def _number(name: str, given: str) -> int:
    if not given.isascii() or not given.isdigit() or int(given) >= 2**32 - 1:
        raise UsageError(
            f'{name}: got "{given}"; expected the number of the user who called sudo, as sudo sets it. '
            "Unset it to run a scenario's programs as nobody."
        )
    return int(given)


def _is_mapped(kind: str, number: int) -> bool:
    for line in Path(f"/proc/self/{kind}_map").read_text().splitlines():
        first, _, count = map(int, line.split())
        if first <= number < first + count:
            return True
    return False
