"""Waiting for what has to come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SEC = 300
"""On a busy machine everything comes later: how long a test waits that asks whether something comes, not how soon."""


def until(holds: Callable[[], T], what: str) -> T:
    """Asks again until the answer is true, and returns it."""
    end = time.monotonic() + PATIENCE_SEC
    while not (found := holds()):
        assert time.monotonic() < end, f"not in {PATIENCE_SEC} s: {what}"
        time.sleep(0.02)
    return found
