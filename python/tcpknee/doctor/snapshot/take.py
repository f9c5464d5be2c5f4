"""Taking a snapshot of this host. Nothing is written, loaded or changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tcpknee.errors import EngineError

from . import samples
from .reader import Reader, Roots
from .snapshot import Earlier, Snapshot, uncollected
from .sources import cpus, ethtool, files, host, processes, procnet, rtnetlink, sockets, sysctls, sysfs

Tables = dict[str, list[dict[str, Any]]]


def take(*, roots: Roots | None = None, seconds: float | None = None) -> Snapshot:
    """What this process may see of its network namespace and the host. What it may not see is in `missing`.

    With `seconds` the counters are read that long before, too."""
    with uncollected():
        return _sampled(roots or Roots(), seconds)


def _sampled(roots: Roots, seconds: float | None) -> Snapshot:
    if seconds is None:
        return _taken(roots)
    begun = time.monotonic()
    first = _counts(roots)
    time.sleep(max(0.0, begun + seconds - time.monotonic()))
    passed = time.monotonic() - begun
    whole = _taken(roots)
    # Of interrupts only those of network devices are kept.
    numbers = {row["number"] for row in whole.rows("irqs")}
    first["irqs"] = [row for row in first.get("irqs", []) if row["number"] in numbers]
    return replace(whole, earlier=Earlier.of(round(passed, 3), samples.counts_of(first)))


def _counts(roots: Roots) -> Tables:
    """The counters alone. The second sample says what could not be read."""
    reader = Reader(roots, _namespace(roots))
    tables = procnet.read(reader) | cpus.read_times(reader) | sysfs.read_counts(reader)
    if roots.netlink:
        tables |= _asked(reader, rtnetlink.read_counts, "interfaces and qdiscs")
        interfaces = tables.get("interfaces", [])
        tables |= _asked(reader, lambda reader: ethtool.read_counts(reader, interfaces), "counters of drivers")
    return tables


def _taken(roots: Roots) -> Snapshot:
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
