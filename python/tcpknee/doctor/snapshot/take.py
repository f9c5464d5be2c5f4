"""Taking a snapshot of this host. Nothing is written, loaded or changed.

The native module reads what the host is set to and what it has counted (`crates/collect/src/host_state.rs`); what the
host is, whose files set it and how its connections fare is read here.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tcpknee import _core
from tcpknee.errors import EngineError
from tcpknee.processors import shares

from . import samples
from .reader import Reader, Roots
from .snapshot import Earlier, Snapshot, uncollected
from .sources import files, host, sockets
from .tables import TABLES

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
    # The second sample says what could not be read.
    first = _state(Reader(roots, _namespace(roots)), counts=True)
    time.sleep(max(0.0, begun + seconds - time.monotonic()))
    passed = time.monotonic() - begun
    whole = _taken(roots)
    # Of interrupts only those of network devices are kept.
    numbers = {row["number"] for row in whole.rows("irqs")}
    first["irqs"] = [row for row in first["irqs"] if row["number"] in numbers]
    return replace(whole, earlier=Earlier.of(round(passed, 3), samples.counts_of(first)))


def _taken(roots: Roots) -> Snapshot:
    reader = Reader(roots, _namespace(roots))
    tables = _state(reader)
    [of_host] = host.read(reader)["host"]
    tables["host"] = [of_host | tables["host"][0]]
    tables["owners"] += files.read(reader)["owners"]
    if roots.netlink:
        tables |= _asked(reader, sockets.read, "sockets")
    return Snapshot.of(time.time_ns(), tables, reader.missing)


def _state(reader: Reader, *, counts: bool = False) -> Tables:
    """The tables of the native module; `counts`: the counters alone."""
    roots = reader.roots
    tables: Tables = json.loads(_core.host_state(roots.proc, roots.sys, roots.root, not roots.netlink, counts))
    for one in tables.pop("missing"):
        reader.miss(**one)
    name_as_kernel(tables)
    for name, rows in tables.items():
        if "netns" in TABLES[name].columns and name != "host":
            for row in rows:
                row.setdefault("netns", reader.netns)
    for row in tables["cpus"]:
        row |= shares(row)
    return tables


def name_as_kernel(tables: Tables) -> None:
    """Bytes of a name that are no UTF-8 are surrogates in Python, which the native module's text cannot hold: there
    they have escapes."""
    escaped = [row for row in tables["interfaces"] if "\\" in row["interface"]]
    names = {row["interface"]: socket.if_indextoname(row["ifindex"]) for row in escaped}
    if names:
        for rows in tables.values():
            for row in rows:
                row |= {key: names[row[key]] for key in ("interface", "master", "lower") if row.get(key) in names}


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
