"""Requests about routes and queueing disciplines (rtnetlink), whose attributes are kept byte for byte."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Iterator

RTM_NEWROUTE, RTM_GETROUTE = 24, 26
RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
NLM_F_REQUEST, NLM_F_ACK, NLM_F_REPLACE, NLM_F_DUMP, NLM_F_CREATE = 0x1, 0x4, 0x100, 0x300, 0x400
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLA_TYPE_MASK = 0x3FFF
_HEADER = struct.Struct("=IHHII")
_RECEIVE_BYTES = 1 << 20

Attribute = tuple[int, bytes]


def dump(message: int, body: bytes) -> list[bytes]:
    """Bodies of all messages with which the kernel answers. Raises OSError."""
    with _socket() as link:
        link.send(_HEADER.pack(_HEADER.size + len(body), message, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + body)
        return list(_answers(link))


def act(message: int, flags: int, body: bytes) -> None:
    """Has the kernel do it. Raises OSError."""
    with _socket() as link:
        link.send(_HEADER.pack(_HEADER.size + len(body), message, NLM_F_REQUEST | NLM_F_ACK | flags, 1, 0) + body)
        for _ in _answers(link):
            pass


def _socket() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)


def _answers(link: socket.socket) -> Iterator[bytes]:
    while True:
        data = link.recv(_RECEIVE_BYTES)
        while data:
            size, message, _, _, _ = _HEADER.unpack_from(data)
            body, data = data[_HEADER.size : size], data[(size + 3) & ~3 :]
            if message == NLMSG_DONE:
                return
            if message == NLMSG_ERROR:
                (number,) = struct.unpack_from("=i", body)
                if number:
                    raise OSError(-number, os.strerror(-number))
                return
            yield body


def attributes(data: bytes) -> list[Attribute]:
    """Type and content of each attribute, in their order."""
    found = []
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        if size < 4:
            break
        found.append((kind, data[4:size]))
        data = data[(size + 3) & ~3 :]
    return found


def packed(found: Iterable[Attribute]) -> bytes:
    """The attributes as the kernel reads them."""
    parts = []
    for kind, content in found:
        size = len(content) + 4
        parts.append(struct.pack("=HH", size, kind) + content + bytes(-size % 4))
    return b"".join(parts)


def first(found: Iterable[Attribute], kind: int) -> bytes | None:
    """The content of the first attribute of that type."""
    return next((content for one, content in found if one & NLA_TYPE_MASK == kind), None)


def text(content: bytes | None) -> str:
    """A string of the kernel without the zero byte at its end."""
    return (content or b"").rstrip(b"\0").decode(errors="surrogateescape")
