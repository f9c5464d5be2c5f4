"""Metrics of a route: initial windows and the congestion control of connections that take it."""

from __future__ import annotations

import ipaddress
import re
import socket
import struct
from dataclasses import dataclass
from typing import Any, ClassVar

from tcpknee.errors import UsageError

from . import netlink
from .change import CannotChange, Change, NotPersistent, Persistence, State, interface_name, whole_number

_RTMSG = struct.Struct("=BBBBBBBBI")
RTA_DST, RTA_OIF, RTA_PRIORITY, RTA_METRICS, RTA_CACHEINFO, RTA_TABLE, RTA_NH_ID = 1, 4, 6, 8, 12, 15, 30
RTAX_INITCWND, RTAX_INITRWND, RTAX_CC_ALGO = 11, 14, 16
RT_TABLE_MAIN, RTN_UNICAST = 254, 1
RTM_F_CLONED = 0x200
RTNH_F_ONLINK = 4

WINDOW_SEGMENTS_MAX = 65535


@dataclass(frozen=True)
class RouteWindow(Change):
    """The route to `destination` of the main table: `default`, or a prefix. None: stays as it is."""

    destination: str
    interface: str | None = None
    priority: int | None = None
    initcwnd: int | None = None
    initrwnd: int | None = None
    congctl: str | None = None
    is_ipv6: bool = False
    """Of `default`; a prefix says it by itself."""

    kind: ClassVar[str] = "route-window"

    def __post_init__(self) -> None:
        self._prefix()
        if self.interface is not None:
            interface_name(self.interface)
        for name in ("initcwnd", "initrwnd"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), least=1, most=WINDOW_SEGMENTS_MAX)
        if self.congctl is not None and not re.fullmatch(r"[a-z0-9_-]{1,15}", self.congctl):
            raise UsageError(f'change: got the congestion control "{self.congctl}"; expected a name as in sysctl.')

    def _prefix(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        if self.destination == "default":
            return ipaddress.ip_network("::/0" if self.is_ipv6 else "0.0.0.0/0")
        try:
            return ipaddress.ip_network(self.destination)
        except ValueError:
            raise UsageError(f'change: got the route "{self.destination}"; expected default or a prefix.') from None

    @property
    def target(self) -> str:
        return f"route {self.destination}" + (f" dev {self.interface}" if self.interface else "")

    def commands(self) -> list[list[str]]:
        """`ip route change` wants the whole route: what a person has to fill in is in capitals."""
        family = "-6" if self._prefix().version == 6 else "-4"
        words = ["ip", family, "route", "change", self.destination]
        words += ["via", "GATEWAY"] if self.destination == "default" else []
        words += ["dev", self.interface] if self.interface else []
        words += ["metric", str(self.priority)] if self.priority else []
        for name in ("initcwnd", "initrwnd", "congctl"):
            words += [name, str(getattr(self, name))] if getattr(self, name) is not None else []
        return [words]

    def _persistence(self) -> Persistence:
        return NotPersistent("what configures the network writes its routes; set the windows there")

    def _read(self) -> State:
        """The route as the kernel told it, header and attributes as hexadecimal bytes."""
        found = [one for one in self._all() if self._is_meant(*one)]
        if len(found) != 1:
            how = "no such route" if not found else f"{len(found)} such routes; name the interface or the priority"
            raise CannotChange(f"{self.target}: there is {how}. `ip route show` prints them.", is_gone=not found)
        header, attributes = found[0]
        if netlink.first(attributes, RTA_NH_ID) is not None:
            raise CannotChange(f"{self.target}: goes by a nexthop object, whose owner has to change it.")
        return {"header": header.hex(), "attributes": netlink.packed(attributes).hex()}

    def _all(self) -> list[tuple[bytes, list[netlink.Attribute]]]:
        family = socket.AF_INET6 if self._prefix().version == 6 else socket.AF_INET
        found = []
        for body in netlink.dump(netlink.RTM_GETROUTE, _RTMSG.pack(family, 0, 0, 0, 0, 0, 0, 0, 0)):
            attributes = netlink.attributes(body[_RTMSG.size :])
            found.append((body[: _RTMSG.size], [one for one in attributes if one[0] != RTA_CACHEINFO]))
        return found

    def _is_meant(self, header: bytes, attributes: list[netlink.Attribute]) -> bool:
        _, length, _, _, table, _, _, kind, flags = _RTMSG.unpack(header)
        prefix = self._prefix()
        destination = netlink.first(attributes, RTA_DST) or bytes(prefix.max_prefixlen // 8)
        return (
            (table, kind, flags & RTM_F_CLONED) == (RT_TABLE_MAIN, RTN_UNICAST, 0)
            and (length, destination) == (prefix.prefixlen, prefix.network_address.packed)
            and self.interface in (None, _interface(netlink.first(attributes, RTA_OIF)))
            and self.priority in (None, _number(netlink.first(attributes, RTA_PRIORITY)))
        )

    def _apply(self, state: State) -> None:
        fields: list[Any] = list(_RTMSG.unpack(bytes.fromhex(state["header"])))
        # What else the flags say is state of the link, which the kernel refuses to be told.
        fields[-1] &= RTNH_F_ONLINK
        body = _RTMSG.pack(*fields) + bytes.fromhex(state["attributes"])
        netlink.act(netlink.RTM_NEWROUTE, netlink.NLM_F_REPLACE, body)

    def _goal(self, before: State) -> State:
        attributes = netlink.attributes(bytes.fromhex(before["attributes"]))
        metrics = dict(netlink.attributes(netlink.first(attributes, RTA_METRICS) or b""))
        for kind, value in ((RTAX_INITCWND, self.initcwnd), (RTAX_INITRWND, self.initrwnd)):
            if value is not None:
                metrics[kind] = struct.pack("=I", value)
        if self.congctl is not None:
            metrics[RTAX_CC_ALGO] = self.congctl.encode() + b"\0"
        changed = (RTA_METRICS, netlink.packed(sorted(metrics.items())))
        others = [one for one in attributes if one[0] & netlink.NLA_TYPE_MASK != RTA_METRICS]
        return {**before, "attributes": netlink.packed([*others, changed]).hex()}

    def _reached(self, goal: State, now: State) -> bool:
        return _parts(goal) == _parts(now)


def _parts(state: State) -> tuple[str, list[Any]]:
    """The route whatever the order of its attributes."""
    attributes = netlink.attributes(bytes.fromhex(state["attributes"]))
    parts: list[Any] = []
    for kind, content in attributes:
        kind &= netlink.NLA_TYPE_MASK
        parts.append((kind, sorted(netlink.attributes(content)) if kind == RTA_METRICS else content))
    return state["header"], sorted(parts, key=repr)


def _number(content: bytes | None) -> int:
    return int(struct.unpack("=I", content)[0]) if content else 0


def _interface(content: bytes | None) -> str | None:
    try:
        return socket.if_indextoname(_number(content)) if content else None
    except OSError:
        return None
