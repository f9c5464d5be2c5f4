"""Taking a snapshot of this host. Nothing is written, loaded or changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kneepoint.errors import EngineError

from .reader import Reader, Roots
from .snapshot import Snapshot
from .sources import cpus, ethtool, files, host, processes, procnet, rtnetlink, sockets, sysctls, sysfs

Tables = dict[str, list[dict[str, Any]]]


def take(*, roots: Roots | None = None) -> Snapshot:
    """What this process may see of its network namespace and the host. What it may not see is in `missing`."""
    roots = roots or Roots()
    reader = Reader(roots, _namespace(roots))
    tables: Tables = {}
    for source in (host.read, sysctls.read, procnet.read, cpus.read):
        tables |= source(reader)
    running = processes.read(reader, tables["host"][0])
    tables |= running | {"owners": running["owners"] + files.read(reader)["owners"]}
    if roots.netlink:
        tables |= _asked(reader, rtnetlink.read, "interfaces, qdiscs and routes")
        interfaces = tables.get("interfaces", [])
        tables |= sysfs.add(reader, interfaces)
        tables |= _asked(reader, lambda reader: ethtool.read(reader, interfaces), "rings, offloads and coalescing")
        tables |= _asked(reader, sockets.read, "sockets")
    else:
        reader.miss("interfaces, qdiscs, routes and sockets", "only files were read", "the host itself")
    return Snapshot.of(time.time_ns(), tables, reader.missing)


def _namespace(roots: Roots) -> str:
    try:
        return (roots.proc / "self/ns/net").readlink().name
    except OSError:
        return "unknown"


def _asked(reader: Reader, source: Callable[[Reader], Tables], what: str) -> Tables:
    """What the kernel tells; a refusal is named."""
    try:
        return source(reader)
    except OSError as error:
        reader.miss(what, f"the kernel refused: {error.strerror or error}", "root" if error.errno in (1, 13) else "")
    except EngineError as error:
        reader.miss(what, str(error), "root")
    return {}
