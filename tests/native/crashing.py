"""knee with an algorithm of a library in the place of the last one: crashing.py LIBRARY WORDS..."""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from tcpknee import _core
from tcpknee.cli import main

REPLACED = "nv"


def parts() -> Iterator[tuple[int, bytes]]:
    """What of the native module lies in memory, with its address."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        span, access, *_, file = line.split(maxsplit=5)
        if access.startswith("r") and file == _core.__file__:
            begin, end = (int(one, 16) for one in span.split("-"))
            yield begin, ctypes.string_at(begin, end - begin)


def places(searched: bytes) -> list[int]:
    found = []
    for begin, held in parts():
        at = held.find(searched)
        while at >= 0:
            found.append(begin + at)
            at = held.find(searched, at + 1)
    return found


def pointer(address: int) -> bytes:
    return struct.pack("=Q", address)


def put(library: str) -> None:
    """Before anybody reads the registry of cc_native.c. The kernel's name is the second field of a description."""
    names = [at + 1 for at in places(f"\0knee_{REPLACED}\0".encode())]
    descriptions = [at - 8 for name in names for at in places(pointer(name))]
    (entry,) = (at for description in descriptions for at in places(pointer(description)))
    page = entry & ~(mmap.PAGESIZE - 1)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(page), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE) == 0
    ours = ctypes.c_char.in_dll(ctypes.CDLL(library), "cc_algorithm_crashing")
    ctypes.c_uint64.from_address(entry).value = ctypes.addressof(ours)


if __name__ == "__main__":
    put(sys.argv.pop(1))
    main()
