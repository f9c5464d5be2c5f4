"""How a helper comes to a host: by the user's own ssh, or as a child of this process where the host is this machine.

One connection does it all. A line of shell there says what machine it is, takes the program into a private folder,
checks its sum and becomes it; the helper takes the folder away as it begins. So nothing is left, however it ends. Only
a shell that is killed while the program comes leaves a folder, which the next one there takes away.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import os
import re
import selectors
import shlex
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import IO

from tcpknee.errors import EngineError, UsageError

LOCAL = "local"
"""The name of this machine."""

PROGRAMS = Path(__file__).parent / "programs"
"""One for each kind of processor, put there by `make setup`."""

_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
"""The kind of processor, by what `uname -m` says."""

_NAME = re.compile(r"(ssh://)?([\w.+~%-]+@)?(\[[0-9a-fA-F:.%\w]+\]|[\w.:%-]+)(:\d+)?/?", re.ASCII)

_MARK = "tcpknee-machine"
_REFUSED = "tcpknee-refused"
_NO_ROOT = "tcpknee-no-root"

_OLD_MIN = 10
"""How old a folder is that nobody copies into any more: the front waits `_BEGINNING_SEC` for the end of that."""

_TAKE = (
    f'umask 077; echo "{_MARK} $(uname -m)"; read -r size sum; d=; '
    'gone() { rm -rf "$d"; }; trap gone EXIT; trap "exit 1" HUP INT TERM; '
    'for at in "$XDG_RUNTIME_DIR" /tmp /var/tmp "$HOME"; do [ -n "$at" ] || continue; '
    'for old in "$at"/tcpknee-??????????; do [ "$(ls -A "$old" 2>/dev/null)" = knee-remote ] && '
    f'[ -n "$(find "$old" -prune -type d -user "$(id -u)" -mmin +{_OLD_MIN} 2>/dev/null)" ] && '
    'rm -f "$old/knee-remote" && rmdir "$old"; done; '
    'd=$(mktemp -d "$at/tcpknee-XXXXXXXXXX" 2>/dev/null) || continue; '
    'd=$(cd "$d" && pwd -P) || continue; p=$d/knee-remote; '
    '{ head -c "$size" /dev/zero > "$p" && chmod 700 "$p"; } 2>/dev/null && [ -x "$p" ] && break; '
    'rm -rf "$d"; d=; done; '
    f'[ -n "$d" ] || {{ echo "{_REFUSED} no folder with room for $size bytes that programs may be run from"; '
    "exit 1; }; "
    'head -c "$size" > "$p"; '
    'echo "$sum  $p" | sha256sum -c > /dev/null 2>&1 || { rm -rf "$d"; '
    f'echo "{_REFUSED} a program that did not arrive whole"; exit 1; }}; '
    '$root "$p" "$d" $word; c=$?; exit $c'
)
"""For the shell of the far host. Neither quotes of one stroke, line ends nor exclamation marks: whatever the user's own
shell is, it hands this on as it stands."""

_AS_ROOT = (
    'root=; [ "$(id -u)" = 0 ] || { root="sudo -n"; sudo -n true > /dev/null 2>&1 || { '
    f'echo "{_NO_ROOT} $(id -un)"; exit 1; }}; }}; '
)
"""In front of it, where it is to be root's."""

_SSH = (
    "ssh",
    "-T",
    "-a",
    "-x",
    "-oClearAllForwardings=yes",
    "-oRemoteCommand=none",
    "-oPermitLocalCommand=no",
    "-oBatchMode=yes",
    "-oConnectTimeout=15",
    "-oServerAliveInterval=10",
    "-oServerAliveCountMax=2",
)
"""Asks for nothing, hands neither agent nor ports nor a display to the host, and notices within 20 s that it is gone.
Names, users, keys, ports and jumps are as the user has them."""

_OF_ROOT = {True: "settings cannot be made", False: "packets cannot be captured"}
_ASKING = {True: "--allow-host-settings and --netem", False: "--capture"}
"""What root is for, and what asks for it, by whether settings are held."""

_SOURCE = re.compile(r"\bsrc ([0-9a-fA-F.:]+)", re.ASCII)
"""In what `ip route get` says."""

_FAILED = 255
"""The exit code of ssh that brought nothing about; others are of what ran there."""

_SHORT_SEC = 30.0
"""How long one short command over ssh may take."""

_BEGINNING_SEC = 120.0
"""How long it may take until the helper is there: 4 MB over a slow line."""

_END_SEC = 60.0
"""How long a process of root's, which this one may not kill, may take to put settings back."""

_NOISE_BYTES = 16 << 10
"""What a host may say before the shell does: the lines of its user's own start-up files."""

_WORDS_BYTES = 4 << 10
"""Of what ssh says about a connection, the end that is kept."""

_LONGEST_WORDS = 300


def check_name(option: str, name: str) -> str:
    """A host as ssh takes it. Raises `UsageError` for what ssh or a shell would take for something else."""
    plain = _NAME.fullmatch(name)
    if not plain or plain[3].startswith("-") or name.startswith("-"):
        raise UsageError(
            f"{option}: got {name!r}; expected a host as ssh knows it (user@host, or a name of ~/.ssh/config), or "
            f"{LOCAL}, which is this machine."
        )
    return name


def addresses_of(name: str) -> set[str]:
    """To which ssh itself connects for that name, as far as this machine knows."""
    try:
        found = subprocess.run(
            [*_SSH, "-G", "--", name], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=15, check=False
        ).stdout
        host = next(line.split()[1].strip("[]") for line in found.splitlines() if line.startswith("hostname "))
        return {str(one[4][0]).partition("%")[0] for one in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError, IndexError, StopIteration, subprocess.TimeoutExpired):
        return set()


def source_towards(name: str, address: str) -> str | None:
    """The address of that host by which it reaches `address`, as its kernel chooses; None: it does not say."""
    try:
        far = ipaddress.ip_address(address)
        if name == LOCAL:
            family = socket.AF_INET if far.version == 4 else socket.AF_INET6
            with socket.socket(family, socket.SOCK_DGRAM) as asking:
                # Nothing is sent.
                asking.connect((str(far), 9))
                said = str(asking.getsockname()[0])
        else:
            found = subprocess.run(
                [*_SSH, "--", name, f"ip -o route get {far}"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SHORT_SEC,
                check=False,
            )
            said = _SOURCE.findall(found.stdout[-_WORDS_BYTES:].decode(errors="replace"))[-1]
        source = ipaddress.ip_address(said)
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        return None
    return str(source) if source.version == far.version else None


def program_for(machine: str, where: str) -> Path:
    """The helper for that kind of processor. Raises `EngineError`."""
    path = PROGRAMS / f"knee-remote-{_MACHINES.get(machine, machine)}"
    if machine not in _MACHINES or not path.is_file():
        there = sorted(path.name.removeprefix("knee-remote-") for path in PROGRAMS.glob("knee-remote-*"))
        raise EngineError(
            f"{where}: its processor is of the kind {machine!r}, and this tcpknee has a helper for "
            f"{', '.join(there) or 'none'}. Install a wheel that has it, or run `make setup` in the sources "
            "(`make wheel-arm` for arm64)."
        )
    return path


class Connection:
    """A helper that runs on a host; `stdin` and `stdout` lead to it. `close` ends it. `as_root`: it is root's;
    `holds`: and holds settings."""

    def __init__(self, name: str, where: str, *, as_root: bool = False, holds: bool = False) -> None:
        self.name, self.where, self.as_root, self.holds = name, where, as_root or holds, holds
        self._is_there = False
        self._words_of_ssh = bytearray()
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        if self.name == LOCAL:
            self._start(*self._local_root(), str(program_for(os.uname().machine, self.where)), *self._words())
            return
        as_whom = _AS_ROOT if self.as_root else "root=; "
        take = f"word={'hold' if self.holds else ''}; {as_whom}{_TAKE}"
        self._start(*_SSH, "--", self.name, f"exec /bin/sh -c {shlex.quote(take)}")
        until = time.monotonic() + _BEGINNING_SEC
        program = program_for(self._word(_MARK, until), self.where).read_bytes()
        self._is_there = True
        sum_ = hashlib.sha256(program).hexdigest().encode()
        try:
            self.write(b"%d %s\n%s" % (len(program), sum_, program), until - time.monotonic())
        except BrokenPipeError:
            # The shell there ended before it had the program, and said why.
            raise self.lost(f"{_REFUSED} {self._word(_REFUSED, until)}") from None

    def write(self, data: bytes, patience_sec: float) -> None:
        """Raises `BrokenPipeError` where nobody reads any more, `ValueError` behind `close`, and `EngineError` where it
        is not taken in time."""
        left, until = memoryview(data), time.monotonic() + patience_sec
        with selectors.DefaultSelector() as selector:
            selector.register(self.stdin, selectors.EVENT_WRITE)
            while left:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise self._slow(patience_sec)
                with contextlib.suppress(BlockingIOError):
                    left = left[os.write(self.stdin.fileno(), left) :]

    def _slow(self, patience_sec: float) -> EngineError:
        return EngineError(
            f"{self.where}: took nothing in for {patience_sec:.0f} s. The host or the way to it is gone or very slow."
        )

    def _words(self) -> list[str]:
        return ["hold"] if self.holds else []

    def _local_root(self) -> list[str]:
        if not self.as_root or os.geteuid() == 0:
            return []
        asked = ["sudo", "-n", "true"]
        try:
            has_root = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            has_root = False
        if not has_root:
            raise self.lost(_NO_ROOT)
        return ["sudo", "-n"]

    def _start(self, *words: str) -> None:
        try:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C in a terminal reaches this process only, which then ends its helpers in order.
                start_new_session=True,
            )
        except FileNotFoundError:
            raise EngineError(
                f"{self.where}: the program ssh is not there. Install it (Debian: openssh-client), or name {LOCAL}."
            ) from None
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        os.set_blocking(self.stdin.fileno(), False)
        self._listening = threading.Thread(target=self._keep_end, args=(self.process.stderr,), daemon=True)
        self._listening.start()

    def _keep_end(self, stderr: IO[bytes]) -> None:
        """Reads what ssh and the host say beside the helper, and keeps the end of it."""
        with stderr:
            while read := os.read(stderr.fileno(), 1 << 16):
                self._words_of_ssh += read
                del self._words_of_ssh[:-_WORDS_BYTES]

    def _word(self, mark: str, until: float) -> str:
        """What the shell says behind its mark; unbuffered, since what follows is the helper's."""
        noise, at = bytearray(), 0
        with selectors.DefaultSelector() as selector:
            selector.register(self.stdout, selectors.EVENT_READ)
            while len(noise) < _NOISE_BYTES:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise EngineError(
                        f"{self.where}: no command ran there within {_BEGINNING_SEC:.0f} s. Expected "
                        f"`ssh {self.name} true` to end at once: see the start-up files of the shell there."
                    )
                read = os.read(self.stdout.fileno(), 1)
                if not read:
                    raise self.lost(noise.decode(errors="replace"))
                noise += read
                if read != b"\n":
                    continue
                words = noise[at:].decode(errors="replace").split()
                at = len(noise)
                if words[:1] == [_NO_ROOT]:
                    raise self.lost(" ".join(words))
                if words[:1] == [mark]:
                    return " ".join(words[1:])
        raise EngineError(
            f"{self.where}: it says {cut(noise.decode(errors='replace'))!r} and more before any command runs. "
            "Expected a shell that prints nothing when it is no terminal: see its start-up files (~/.bashrc)."
        )

    def lost(self, said: str = "") -> EngineError:
        """How the connection ended, in the words of ssh or of the shell."""
        if said.startswith(_NO_ROOT):
            who = cut(said.removeprefix(_NO_ROOT)) or "this user"
            return EngineError(
                f"{self.where}: {_OF_ROOT[self.holds]} there: {who} is not root, and `sudo -n true` is refused. "
                "Nothing was changed there. Allow it there without a password (sudoers: NOPASSWD: ALL, as "
                "the program is at another place each time: whoever is that user is root then), connect "
                f"as root, or leave {_ASKING[self.holds]} out."
            )
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2)
            self._listening.join(2)
        told = bytes(self._words_of_ssh).decode(errors="replace").splitlines()
        words = [cut(line) for line in told if line.strip()][-3:]
        if said.startswith(_REFUSED):
            return EngineError(
                f"{self.where}: the helper cannot be put there: it has {cut(said.removeprefix(_REFUSED))}"
                f"{_last(words)}. Make room below /tmp, /var/tmp or $HOME, or allow programs there (mount option exec)."
            )
        code = self.process.poll()
        if self.name != LOCAL and not self._is_there and code not in (None, _FAILED):
            words += [cut(line) for line in said.splitlines() if line.strip()][-3:]
            return EngineError(
                f"{self.where}: ssh comes there, and what runs there ended with exit code {code} before any command"
                f"{_last(words)}. Expected `ssh {self.name} true` to end with 0: a shell that runs commands "
                "(not nologin), and no ForceCommand or command= of the key."
            )
        if self.name != LOCAL and not self._is_there:
            return EngineError(
                f"{self.where}: the connection by ssh is not there{_last(words)}. Expected `ssh {self.name} true` to "
                "work in this terminal without a question: a key that the host accepts, and a host key that is known "
                "(connect once by hand)."
            )
        return EngineError(
            f"{self.where}: the helper, or the connection to it, ended before its work was done{_last(words)}. The "
            "host may have been restarted, or is out of reach."
        )

    def close(self) -> None:
        """Ends the helper: it ends with its standard input."""
        process = getattr(self, "process", None)
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:
                # Root's does not end by a word of this user's.
                with contextlib.suppress(PermissionError):
                    process.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_END_SEC)


def _last(words: list[str]) -> str:
    return f" ({' / '.join(words)})" if words else ""


def cut(text: str) -> str:
    """Words of a host, no longer than a message may have them."""
    text = text.strip()
    return text if len(text) <= _LONGEST_WORDS else f"{text[:_LONGEST_WORDS]} ..."
