"""Whether a shared object has data that lives on from one connection and one repetition to the next."""

from __future__ import annotations

import struct
from pathlib import Path

_HEADER = struct.Struct("<4sB35xQ10xHHH")
"""Of an ELF file of 64 bits: magic and class; place, size and number of its sections, and which has their names."""

_SECTION = struct.Struct("<IIQ8xQQ24x")
"""Name, type, flags; place and size."""

_WRITABLE, _THERE = 0x1, 0x2

_OF_LINKER = (b".data.rel.ro", b".got", b".dynamic", b".init_array", b".fini_array")
"""What the loader writes, and nobody after it."""


def has_some(shared_object: Path) -> bool:
    """Does it have variables of its own? Yes also where that cannot be read."""
    content = shared_object.read_bytes()
    try:
        magic, bits, begin, each, count, names = _HEADER.unpack_from(content)
        if (magic, bits) != (b"\x7fELF", 2) or not count:
            return True
        sections = [_SECTION.unpack_from(content, begin + number * each) for number in range(count)]
    except struct.error:
        return True
    named_at = sections[names][3]
    return any(
        size and flags & _WRITABLE and flags & _THERE and not content.startswith(_OF_LINKER, named_at + name)
        for name, _, flags, _, size in sections
    )
