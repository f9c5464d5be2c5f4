"""A kernel as a guest: booted with this host's files, read-only, as the user who calls, without a network.

Its clock jumps to the next event when there is nothing to do and stands still while it computes, so that what happens
in it depends on no other work of this host. It ends with the process that booted it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tcpknee.errors import KernelUnsupported

MEMORY = "512M"
BEGINS_SEC = 1_767_225_600
"""Of every guest's clock: 2026-01-01."""

LOG = "kernel.log"
CODE = "code"
"""Files of a guest's folder: what the kernel says, and with what its work ended."""

_MOST_BOOT_SEC = 60.0
_LINES_SHOWN = 6
_NOISE = re.compile(r"\[<[0-9a-f]+>\]|^ [0-9a-f]{8} |^(Stack|Call Trace):")
"""Addresses of a panic, which tell a user nothing."""

DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""Before a command: it ends with the process that starts it."""

_REMOVER = """folder=$(mktemp -d "$TMPDIR/tcpknee-guest-XXXXXXXXXX") || exit 1
echo "$folder"
read -r _
for attempt in 1 2 3 4 5; do rm -rf -- "$folder" && exit; sleep 1; done
"""
"""Its standard input ends with the process that asked for the folder. A guest that ends then may write until it has."""

_INIT = """#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
{folder}/mount -o remount,bind,ro,nosuid / || exit 1
mount -t proc proc /proc && mount -t sysfs sysfs /sys || exit 1
mount -t tmpfs tmpfs /run || exit 1
grep -q '^dev[^ ]* /dev devtmpfs' /proc/mounts || mount -t devtmpfs dev /dev || exit 1
mkdir -p /run/tmp /run/home /run/netns
export TMPDIR=/run/tmp HOME=/run/home
mount -t hostfs -o {folder} none {folder} || exit 1
{mounts}cd {folder} || exit 1
ip link set lo up
{work}
echo $? >code.part && mv code.part code
echo o >/proc/sysrq-trigger
sleep 1
"""


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that a guest may write, gone afterwards, also after kill -9 of this process."""
    # In a session of its own, so that what ends us by the terminal does not end it.
    with subprocess.Popen(
        ["sh", "-c", _REMOVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": tempfile.gettempdir()},
        start_new_session=True,
    ) as remover:
        assert remover.stdout is not None
        path = os.fsdecode(remover.stdout.readline().rstrip(b"\n"))
        if not path:
            raise KernelUnsupported(
                f"{tempfile.gettempdir()}: cannot have a folder for a guest. Make room, or set TMPDIR."
            )
        yield Path(path)


def contained() -> list[str]:
    """The words before a command that make whatever it starts die with it, and it with us: the first process of a
    namespace takes all others along."""
    words = [*DIES_WITH_PARENT, "unshare", "--pid", "--fork", "--kill-child"]
    return words if os.geteuid() == 0 else [*words, "--user", "--map-current-user"]


def boot(
    program: Path,
    folder: Path,
    work: str,
    *,
    seed: int = 0,
    writable: Sequence[Path] = (),
    more: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    """Boots a kernel that does `work`, lines of a shell, in a folder of the host, which it may write as `writable`
    others. What the work prints on /dev/console comes through the process's stdout. `more`: words of the kernel's
    command line."""
    mounts = "".join(
        f"mount -t hostfs -o {shlex.quote(str(path))} none {shlex.quote(str(path))} || exit 1\n" for path in writable
    )
    # Root's files are an unknown user's in a guest of an ordinary user, and setuid programs would become that user. So
    # the first one, which says that there are none, is a copy without the bit.
    mount = folder / "mount"
    shutil.copyfile(shutil.which("mount") or "/usr/bin/mount", mount)
    mount.chmod(0o700)
    init = folder / "init"
    init.write_text(_INIT.format(folder=shlex.quote(str(folder)), mounts=mounts, work=work), encoding="utf-8")
    init.chmod(0o700)
    words = [
        str(program),
        *(
            f"mem={MEMORY}",
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
            "quiet",
            "panic=-1",
            "seccomp=auto",
        ),
        *("time-travel=inf-cpu", f"time-travel-start={BEGINS_SEC * 10**9}", f"knee_seed={seed}"),
        *(f"uml_dir={folder}/", "umid=guest", "con=null", "con0=null,fd:1", f"init={init}"),
        *more,
    ]
    log = (folder / LOG).open("wb")
    with log:
        return subprocess.Popen(
            # A kernel that panics raises a signal, which the first process of a namespace would not get: sh is that.
            [*contained(), "sh", "-c", '"$@"; exit $?', "sh", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )


def ended(process: subprocess.Popen[bytes], folder: Path, said: Sequence[str]) -> int:
    """The exit code of a guest's work, which is over. `said`: lines of its console. Raises `KernelUnsupported` where
    the kernel died before."""
    process.wait()
    try:
        return int((folder / CODE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        log = (folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
        lines = [line.strip() for line in (*log, *said) if line.strip() and not _NOISE.search(line)]
        raise KernelUnsupported(
            f"the guest kernel ended before its work was done. It said: {' / '.join(lines[:_LINES_SHOWN]) or 'nothing'}"
        ) from None


def algorithms(program: Path) -> tuple[str, ...]:
    """Boots a kernel once; its congestion controls. Raises `KernelUnsupported`."""
    with folder() as place:
        process = boot(program, place, "cat /proc/sys/net/ipv4/tcp_available_congestion_control >algorithms")
        try:
            console, _ = process.communicate(timeout=_MOST_BOOT_SEC)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise KernelUnsupported(f"{program}: does not end within {_MOST_BOOT_SEC:.0f} s of its start.") from None
        ended(process, place, console.decode(errors="replace").splitlines())
        return tuple(sorted((place / "algorithms").read_text(encoding="utf-8").split()))
