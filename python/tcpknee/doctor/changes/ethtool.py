"""Questions to drivers by the ioctl of ethtool (include/uapi/linux/ethtool.h), which needs no program."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from array import array
from collections.abc import Mapping, Sequence

SIOCETHTOOL = 0x8946
GCOALESCE, SCOALESCE = 0x0E, 0x0F
GRINGPARAM, SRINGPARAM = 0x10, 0x11
GSTRINGS, GSTATS, GSSET_INFO = 0x1B, 0x1D, 0x37
GRXFHINDIR = 0x38
GFEATURES, SFEATURES = 0x3A, 0x3B
GCHANNELS, SCHANNELS = 0x3C, 0x3D
SS_STATS, SS_FEATURES = 1, 4
STRING_BYTES = 32
_NAME_BYTES = 16

RING = ("rx_max", "rx_mini_max", "rx_jumbo_max", "tx_max", "rx", "rx_mini", "rx_jumbo", "tx")
CHANNELS = ("max_rx", "max_tx", "max_other", "max_combined", "rx", "tx", "other", "combined")
COALESCE = (
    *("rx_usecs", "rx_frames", "rx_usecs_irq", "rx_frames_irq", "tx_usecs", "tx_frames", "tx_usecs_irq"),
    *("tx_frames_irq", "stats_block_usecs", "adaptive_rx", "adaptive_tx", "pkt_rate_low", "rx_usecs_low"),
    *("rx_frames_low", "tx_usecs_low", "tx_frames_low", "pkt_rate_high", "rx_usecs_high", "rx_frames_high"),
    *("tx_usecs_high", "tx_frames_high", "sample_interval"),
)


def asked(interface: str, command: bytes) -> bytes:
    """What the driver leaves in a command. Raises OSError."""
    buffer = array("B", command)
    name = os.fsencode(interface).ljust(_NAME_BYTES, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as any_socket:
        fcntl.ioctl(any_socket, SIOCETHTOOL, struct.pack("=16sQ16x", name, buffer.buffer_info()[0]))
    return buffer.tobytes()


def numbers(interface: str, command: int, names: Sequence[str]) -> dict[str, int]:
    """The fields of a command that is an array of 32-bit numbers. Raises OSError."""
    shape = struct.Struct(f"={1 + len(names)}I")
    found = asked(interface, shape.pack(command, *[0] * len(names)))
    return dict(zip(names, shape.unpack(found)[1:], strict=True))


def set_numbers(interface: str, command: int, names: Sequence[str], values: Mapping[str, int]) -> None:
    """Gives such a command to the driver; fields without a value are 0. Raises OSError."""
    shape = struct.Struct(f"={1 + len(names)}I")
    asked(interface, shape.pack(command, *(values.get(name, 0) for name in names)))


def feature_names(interface: str) -> list[str]:
    """Names of the features by bit; "" where a bit has none. Raises OSError."""
    return names_of(interface, SS_FEATURES)


def names_of(interface: str, which: int) -> list[str]:
    """The driver's names of a set of things, SS_FEATURES or SS_STATS. Raises OSError."""
    info = struct.Struct("=IIQI")
    count = info.unpack(asked(interface, info.pack(GSSET_INFO, 0, 1 << which, 0)))[3]
    head = struct.Struct("=III")
    found = asked(interface, head.pack(GSTRINGS, which, count) + bytes(count * STRING_BYTES))
    texts = (found[head.size + i * STRING_BYTES :][:STRING_BYTES] for i in range(count))
    return [text.partition(b"\0")[0].decode(errors="replace") for text in texts]


def stats(interface: str) -> dict[str, int]:
    """The driver's counters by name. Raises OSError."""
    names = names_of(interface, SS_STATS)
    head = struct.Struct("=II")
    found = asked(interface, head.pack(GSTATS, len(names)) + bytes(8 * len(names)))
    return dict(zip(names, struct.unpack_from(f"={len(names)}Q", found, head.size), strict=True))


def rss_queues(interface: str) -> set[int]:
    """Receive queues that the table of RSS leads to. Raises OSError."""
    head = struct.Struct("=II")
    _, size = head.unpack(asked(interface, head.pack(GRXFHINDIR, 0)))
    found = asked(interface, head.pack(GRXFHINDIR, size) + bytes(4 * size))
    return set(struct.unpack_from(f"={size}I", found, head.size))


def features(interface: str, count: int) -> tuple[int, int, int, int]:
    """Features that can be changed, are wanted, are active, and never change, as bits. Raises OSError."""
    blocks = (count + 31) // 32
    found = asked(interface, struct.pack("=II", GFEATURES, blocks) + bytes(16 * blocks))
    words = struct.unpack_from(f"={4 * blocks}I", found, 8)
    available, wanted, active, fixed = (sum(words[4 * b + i] << 32 * b for b in range(blocks)) for i in range(4))
    return available, wanted, active, fixed


def set_features(interface: str, count: int, valid: int, wanted: int) -> None:
    """Wants the features of `valid` to be as in `wanted`. Raises OSError."""
    blocks = (count + 31) // 32
    mask = (1 << 32) - 1
    words = [(bits >> 32 * b) & mask for b in range(blocks) for bits in (valid, wanted)]
    asked(interface, struct.pack(f"=II{2 * blocks}I", SFEATURES, blocks, *words))
