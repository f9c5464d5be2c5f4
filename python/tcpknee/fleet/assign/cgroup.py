"""Where cgroups v2 are on this host."""

from __future__ import annotations

from pathlib import Path

from tcpknee.errors import KernelUnsupported, UsageError

_MOUNTS = Path("/proc/self/mountinfo")


def folder(path: str | None, mounts: Path = _MOUNTS) -> Path:
    """The folder of a cgroup v2: of all processes, or that of `path`, below it or in full.

    Raises KernelUnsupported (cgroup v2 is not mounted), UsageError (there is no such cgroup).
    """
    root = _root(mounts)
    if root is None:
        raise KernelUnsupported(
            "cannot assign: no cgroup v2 is mounted, and connections are assigned by cgroup. `mount -t cgroup2 none "
            "/sys/fs/cgroup/unified` (make the folder first) mounts it beside cgroups v1; in a container, ask for its "
            "own with the host's /sys/fs/cgroup."
        )
    if path is None:
        return root
    found = Path(path) if Path(path).is_relative_to(root) else root / path.lstrip("/")
    if not (found / "cgroup.procs").is_file():
        raise UsageError(
            f'cgroup: got "{path}", and {found} is no cgroup v2; expected a path below {root}, such as '
            "system.slice/nginx.service. `systemctl show -p ControlGroup UNIT` prints that of a service."
        )
    return found


def _root(mounts: Path) -> Path | None:
    """Where the hierarchy is mounted, with the whole of it before a part."""
    found: list[tuple[bool, str]] = []
    for line in mounts.read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        if after.split(" ", 1)[0] == "cgroup2":
            fields = before.split(" ")
            # Octal escapes stand for blanks, as in proc_pid_mountinfo(5).
            place = fields[4].encode().decode("unicode_escape")
            found.append((fields[3] != "/", place))
    return Path(min(found)[1]) if found else None
