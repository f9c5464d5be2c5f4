"""Files of our own that make the changes again after a boot, as this distribution expects them:

    /etc/sysctl.d/99-tcpknee.conf                  sysctls
    /etc/systemd/network/NAME.link.d/99-tcpknee.conf   rings, queues, offloads, coalescing and txqueuelen of a device
                                                     that has a .link file to itself (see `links`)
    /etc/tcpknee/settings.conf                     values of files below /sys, as tmpfiles.d(5) writes them
    /etc/systemd/system/tcpknee-settings.service   a unit that runs once per boot, for those and for commands

No file of anybody else is changed. They are written from the journal, which knows what they hold: a file that somebody
edited since is left as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tcpknee import _core, reading
from tcpknee.writing import cannot_write, new_file

from .changes import BootCommands, BootFile, Change, NotPersistent, SysctlLine
from .journal import Journal, WrittenFile, synced
from .links import Udev

ETC = Path("/etc")
SYSTEMD = Path("/run/systemd/system")
"""There while systemd runs (sd_booted(3))."""

HEADER = "# Written by `knee doctor --fix --persist`. `knee doctor --undo` removes it; do not edit it.\n"
SYSCTLS, VALUES, UNIT = "sysctl.d/99-tcpknee.conf", "tcpknee/settings.conf", "tcpknee-settings.service"
UNIT_FILE = f"systemd/system/{UNIT}"

_DROP_IN = re.compile(r"systemd/network/[^/]+\.link\.d/99-tcpknee\.conf")

_SAFE_WORD = re.compile(r"[A-Za-z0-9_./:=,+][A-Za-z0-9_./:=,+-]*|-[A-Za-z46]")
"""What a unit and tmpfiles.d take without quotes or escapes."""


@dataclass(frozen=True)
class Place:
    """Where the files go, and how systemd is told of them."""

    etc: Path = ETC
    has_systemd: Callable[[], bool] = SYSTEMD.is_dir
    systemctl: Callable[[Sequence[str]], str] = lambda words: _systemctl(words)
    udev: Udev = field(default_factory=Udev)


def why_not(change: Change, place: Place) -> str:
    """Why a change will be gone after a boot; "" where it can persist."""
    how = change.persistence()
    if isinstance(how, NotPersistent):
        return how.why
    if isinstance(how, SysctlLine):
        return "" if (place.etc / SYSCTLS).parent.is_dir() else f"{place.etc}/sysctl.d is not there"
    if not place.has_systemd():
        # A drop-in of udev needs systemd as well.
        return "this host does not run systemd; add the command to what your system runs at boot"
    if _drop_in(change, place) is not None:
        return ""
    words = [how.path, how.value] if isinstance(how, BootFile) else [word for argv in how.argvs for word in argv]
    odd = next((word for word in words if not _SAFE_WORD.fullmatch(word)), None)
    return "" if odd is None else f'a unit cannot hold the word "{odd}" as it is'


def check_files(journal: Journal, place: Place) -> None:
    """Refuses a journal that names a file which is none of ours: it would be removed. Raises EngineError."""
    ours = {str(place.etc / name) for name in (SYSCTLS, VALUES, UNIT_FILE)}
    etc = f"{place.etc}/"
    for path in (str(one.path) for one in journal.files):
        if path not in ours and not (path.startswith(etc) and _DROP_IN.fullmatch(path.removeprefix(etc))):
            raise journal.unreadable(f'it names the file "{path}", which --persist does not write')


def persisted(journal: Journal, place: Place, *, removed: Callable[[Path], object] | None = None) -> list[str]:
    """Brings the files in line with the entries of the journal that persist. `removed` hears of each file that is gone
    now. Returns what went wrong.

    Raises RunFolderError."""
    said = []
    wanted = _texts([entry.subject for entry in journal.entries if entry.persists], place)
    # A file that no change needs any more, such as a drop-in.
    etc = f"{place.etc}/"
    wanted |= {name: None for one in journal.files if (name := one.path.removeprefix(etc)) not in wanted}
    had_unit = (place.etc / UNIT_FILE).exists()
    if had_unit and wanted[UNIT_FILE] is None:
        said += _told(place.systemctl(["disable", UNIT]))
    for name, text in wanted.items():
        path = place.etc / name
        was_there = path.exists()
        said += _told(_brought(journal, path, text))
        if removed is not None and was_there and not path.exists():
            removed(path)
    if had_unit or wanted[UNIT_FILE] is not None:
        said += _told(place.systemctl(["daemon-reload"]))
    if wanted[UNIT_FILE] is not None:
        said += _told(place.systemctl(["enable", UNIT]))
    return said


def _told(said: str) -> list[str]:
    return [said] if said else []


def _drop_in(change: Change, place: Place) -> str | None:
    """The drop-in of a .link file that makes the change; None: no .link file is for this interface alone."""
    if not change.link_settings() or change.netns is not None or not place.has_systemd():
        return None
    file = place.udev.link_file(str(getattr(change, "interface", "")))
    return None if file is None else f"systemd/network/{file.name}.d/99-tcpknee.conf"


def _texts(changes: Sequence[Change], place: Place) -> dict[str, str | None]:
    """What each of the files has to hold; None: it is not needed."""
    links: dict[str, list[str]] = {}
    others = []
    for change in changes:
        if (file := _drop_in(change, place)) is not None:
            links.setdefault(file, []).extend(f"{key}={value}\n" for key, value in change.link_settings())
        else:
            others.append(change)
    return _of_boot(others) | {file: f"{HEADER}[Link]\n{''.join(lines)}" for file, lines in links.items()}


def _of_boot(changes: Sequence[Change]) -> dict[str, str | None]:
    """The files that every host has, for these changes."""
    how = [change.persistence() for change in changes]
    sysctls = [f"{one.name} = {one.value}\n" for one in how if isinstance(one, SysctlLine)]
    files = [f"w {one.path} - - - - {one.value}\n" for one in how if isinstance(one, BootFile)]
    argvs = [argv for one in how if isinstance(one, BootCommands) for argv in one.argvs]
    return {
        SYSCTLS: HEADER + "".join(sysctls) if sysctls else None,
        VALUES: HEADER + "".join(files) if files else None,
        UNIT_FILE: _unit(changes, argvs, has_files=bool(files)) if argvs or files else None,
    }


def _unit(changes: Sequence[Change], argvs: Sequence[Sequence[str]], *, has_files: bool) -> str:
    names = sorted({name for change in changes if (name := getattr(change, "interface", None))})
    devices = " ".join("sys-subsystem-net-devices-" + name.replace("-", "\\x2d") + ".device" for name in names)
    after = f"Wants={devices}\nAfter={devices} network.target\n" if devices else "After=network.target\n"
    # Queues have to be there before their files are written.
    runs = [*argvs, *([("systemd-tmpfiles", "--create", f"{ETC}/{VALUES}")] if has_files else [])]
    starts = "".join(f"ExecStart=-{shutil.which(argv[0]) or argv[0]} {' '.join(argv[1:])}\n" for argv in runs)
    return (
        f"{HEADER}[Unit]\nDescription=Network settings of knee doctor\n{after}\n"
        f"[Service]\nType=oneshot\nRemainAfterExit=yes\n{starts}\n[Install]\nWantedBy=multi-user.target\n"
    )


def _brought(journal: Journal, path: Path, text: str | None) -> str:
    """Has the file hold `text`. Returns why not."""
    present = _present(path)
    record = next((one for one in journal.files if one.path == str(path)), None)
    if text is None and record is None:
        return ""
    if present is not None and (record is None or present not in record.texts):
        if record is not None and text is None:
            journal.files.remove(record)
            journal.write()
        return f"{path}: somebody wrote it, or edited it since; it is left as it is."
    if record is None:
        record = WrittenFile(str(path), [])
        journal.files.append(record)
    record.texts = [present, text]
    journal.write()
    _write(path, text)
    record.texts = [text]
    if text is None:
        journal.files.remove(record)
    journal.write()
    return ""


def _present(path: Path) -> str | None:
    try:
        return reading.content(path, most_bytes=1 << 20).decode(errors="surrogateescape")
    except FileNotFoundError:
        return None


def _write(path: Path, text: str | None) -> None:
    try:
        _readable(path.parent)
        folder = _core.Folder(path.parent, of_root=True)
        if text is None:
            folder.remove(path.name)
            synced(path.parent)
            if path.parent.name.endswith(".link.d"):
                with suppress(OSError):
                    # Somebody else's drop-ins stay.
                    path.parent.rmdir()
                    synced(path.parent.parent)
        else:
            with new_file(folder, path.name, public=True) as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            synced(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from None


def _readable(folder: Path) -> None:
    """Makes the folder and those above it that are missing, so that daemons of any user can read them."""
    if not folder.is_dir():
        _readable(folder.parent)
        folder.mkdir()
        folder.chmod(0o755)


def _systemctl(words: Sequence[str]) -> str:
    """What went wrong; "" if nothing did."""
    with suppress(FileNotFoundError):
        done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else f"systemctl {' '.join(words)}: {done.stderr.strip()}"
    return "systemctl is not installed; tell systemd of the unit by hand."
