"""Taking a snapshot of this host. Nothing is written, loaded or changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .reader import Reader, Roots
from .snapshot import Snapshot
from .sources import host, rtnetlink, sysctls

Tables = dict[str, list[dict[str, Any]]]

_FILES: tuple[Callable[[Reader], Tables], ...] = (host.read, sysctls.read)


def take(*, roots: Roots | None = None) -> Snapshot:
    """What this process may see of its network namespace and the host. What it may not see is in `missing`."""
    roots = roots or Roots()
    reader = Reader(roots, _namespace(roots))
    tables: Tables = {}
    for source in _FILES:
        tables |= source(reader)
    if roots.netlink:
        tables |= _asked(reader, rtnetlink.read, "interfaces, qdiscs and routes")
    return Snapshot.of(time.time_ns(), tables, reader.missing)


def _namespace(roots: Roots) -> str:
    try:
        return (roots.proc / "self/ns/net").readlink().name
    except OSError:
        return "unknown"


def _asked(reader: Reader, source: Callable[[Reader], Tables], what: str) -> Tables:
    """What the kernel tells by netlink; a refusal is named."""
    try:
        return source(reader)
    except OSError as error:
        reader.miss(what, f"netlink: {error.strerror or error}", "CAP_NET_ADMIN" if error.errno == 1 else "")
        return {}
