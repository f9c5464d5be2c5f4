"""Which connections are meant: `A:P-B:Q`, `B:Q`, a cookie, a prefix, a network namespace."""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tcpknee import _core
from tcpknee.errors import EngineError, UsageError

Prefix = tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]

NAMED = Path("/run/netns")
"""Where network namespaces have names."""

_DEVICES_SHOWN = 20

CONNECTION_FORMS = (
    'the far end as "192.0.2.1:443" or "[2001:db8::1]:443", both ends as "192.0.2.7:40000-192.0.2.1:443" (an address '
    'may be *), or the cookie as `ss -e` prints it, "sk:1a2b"'
)


def connection(text: str) -> dict[str, Any]:
    """What is asked of a connection, as keywords of `_core.trace_tcp`."""
    cookie = re.fullmatch(r"sk:([0-9a-fA-F]{1,16})", text)
    if cookie:
        number = int(cookie[1], 16)
        if not number:
            raise UsageError(f'CONNECTION: got "{text}", and no socket has cookie 0; expected {CONNECTION_FORMS}.')
        return {"cookie": number}
    ends = re.fullmatch(r"(?:(?P<near>.+:[^:\]-]+)-)?(?P<far>.+:[^:\]-]+)", text)
    if not ends:
        raise UsageError(f'CONNECTION: got "{text}"; expected {CONNECTION_FORMS}.')
    asked = _end("remote", ends["far"], text)
    if ends["near"] is not None:
        asked |= _end("local", ends["near"], text)
    return asked


def _end(which: str, text: str, whole: str) -> dict[str, Any]:
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise UsageError(f'CONNECTION: got "{whole}", whose port "{port}" is none; expected {CONNECTION_FORMS}.')
    asked: dict[str, Any] = {f"{which}_port": int(port)}
    if host == "*":
        return asked
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        raise UsageError(
            f'CONNECTION: got "{whole}", whose address "{host}" is none; expected {CONNECTION_FORMS}. Names are not '
            "looked up."
        ) from None
    if address.version == 6 and bare == host:
        raise UsageError(f'CONNECTION: got "{whole}"; write an IPv6 address in brackets: "[{host}]:{port}".')
    return {**asked, which: (_plain(address), address.max_prefixlen)}


def prefix(text: str) -> Prefix:
    """`10.0.0.0/8`, or an address by itself."""
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise UsageError(
            f'--address: got "{text}"; expected an address or a prefix such as "192.0.2.0/24" or "2001:db8::/32".'
        ) from None
    return _plain(network.network_address), network.prefixlen


def _plain(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Without a zone (`%eth0`), which a socket's address does not hold."""
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id:
        return ipaddress.IPv6Address(int(address))
    return address


def namespace(text: str) -> int:
    """The inode of a network namespace: a name below /run/netns, the number of a process, or a path."""
    path = namespace_path(text)
    try:
        return path.stat().st_ino
    except OSError as error:
        raise UsageError(
            f'--netns: got "{text}", and {path} cannot be looked at ({error.strerror}); expected a name that '
            "`ip netns` prints, the number of a process, or a path such as /proc/PID/ns/net."
        ) from None


def namespace_path(text: str) -> Path:
    """The file of that namespace."""
    if text.isdigit():
        return Path("/proc", text, "ns/net")
    return Path(text) if "/" in text else NAMED / text


def is_of_process(text: str) -> bool:
    """Is that namespace named by a process in it, and known no longer than that is there?"""
    return text.isdigit() or text.startswith("/proc/")


def inside(text: str) -> str:
    """What a person types before a command, so that it runs in that namespace: `ip netns exec` knows names alone."""
    if text.isdigit() or "/" in text:
        return f"nsenter --net={shlex.quote(str(namespace_path(text)))}"
    return f"ip netns exec {shlex.quote(text)}"


def namespaces(netns: str | None, file: Path | None = None) -> list[tuple[str | None, Path | None]]:
    """Name and file of this network namespace, which may be another `file` of it; by default of ours (None) and of
    those that `ip netns` prints, each once."""
    if netns is not None:
        return [(netns, file or namespace_path(netns))]
    found: list[tuple[str | None, Path | None]] = [(None, None)]
    known = {_identity(Path("/proc/self/ns/net"))}
    for path in sorted(NAMED.glob("*")):
        with suppress(OSError):
            identity = _identity(path)
            if identity not in known:
                known.add(identity)
                found.append((path.name, path))
    return found


def _identity(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_dev, about.st_ino


@contextmanager
def held(netns: str | None) -> Iterator[Path | None]:
    """The file of that network namespace, which can be entered until the end also where the process or the name by
    which it was found has gone. None: there is none, as of `namespaces`. Raises UsageError."""
    if netns is None:
        yield None
        return
    namespace(netns)
    try:
        descriptor = os.open(namespace_path(netns), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        # It may be looked at and not entered, without root; who enters it says so.
        yield namespace_path(netns)
        return
    try:
        # Of this process, whichever thread of it asks.
        yield Path("/proc", str(os.getpid()), "fd", str(descriptor))
    finally:
        os.close(descriptor)


def check_device(device: str, netns: str | None, file: Path | None = None) -> None:
    """Is there a device of that name in the network namespace, or in any of this host's? `file`: as `held` has it.
    Raises UsageError."""
    found: set[str] = set()
    for devices in _devices(file or _file_of(netns)):
        # What cannot be looked at may hold it.
        if devices is None or device in devices:
            return
        found.update(devices)
    where = f"the network namespace {netns}" if netns is not None else "any network namespace of this host"
    shown = sorted(found)[:_DEVICES_SHOWN]
    more = f" and {len(found) - _DEVICES_SHOWN} more" if len(found) > _DEVICES_SHOWN else ""
    close = get_close_matches(device, sorted(found), n=1)
    raise UsageError(
        f'--device: got "{device}", and there is no such device in {where}; expected one of {", ".join(shown)}{more}.'
        + (f' Did you mean "{close[0]}"?' if close else "")
    )


def has_device(device: str, file: Path | None) -> bool:
    """Is it there now? `file`: of its network namespace, as `held` has it."""
    return any(devices is None or device in devices for devices in _devices(file))


def _file_of(netns: str | None) -> Path | None:
    return None if netns is None else namespace_path(netns)


def _devices(file: Path | None) -> Iterator[list[str] | None]:
    """Names of the devices, by network namespace: of that of this file, or of ours and then of all others. None: of one
    that is there and cannot be looked at."""
    if file is not None:
        yield _devices_of(file)
        return
    yield _core.devices()
    known = {Path("/proc/self/ns/net").stat().st_ino}
    for path in (*NAMED.glob("*"), *Path("/proc").glob("[0-9]*/ns/net")):
        try:
            inode = path.stat().st_ino
        except PermissionError:
            yield None
            continue
        except OSError:
            # The process or the name has gone.
            continue
        if inode not in known:
            known.add(inode)
            yield _devices_of(path)


def _devices_of(path: Path) -> list[str] | None:
    try:
        return _core.devices(path)
    except (EngineError, UsageError):
        # It has gone since, or may not be entered.
        return None if path.exists() else []
