"""Sizes in bytes, as options have them."""

from __future__ import annotations

import re

from tcpknee.errors import UsageError

_BYTES = {"b": 1, "kb": 10**3, "kib": 2**10, "mb": 10**6, "mib": 2**20, "gb": 10**9, "gib": 2**30}


def size_bytes(option: str, text: str, *, example: str, least: int = 0) -> int:
    """The bytes of a size such as `1MB`. Raises UsageError: it is none, or below `least`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?i?b)", text, re.IGNORECASE)
    size = int(float(found[1]) * _BYTES[found[2].lower()]) if found and found[2].lower() in _BYTES else -1
    if size < least:
        raise UsageError(f'{option}: got "{text}"; expected a size with its unit, such as {example}.')
    return size
