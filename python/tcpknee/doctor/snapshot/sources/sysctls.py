"""Settings below /proc/sys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tcpknee.doctor.snapshot.reader import Reader

FOLDERS = ("net/core", "net/ipv4", "net/netfilter", "net/mptcp", "net/ipv4/neigh/default", "net/ipv6/neigh/default")
"""Read as a whole, without what is below them."""

FILES = (
    "kernel/numa_balancing",
    "kernel/timer_migration",
    "net/ipv4/conf/all/forwarding",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/conf/default/rp_filter",
    "net/ipv4/route/gc_thresh",
    "net/ipv4/route/mtu_expires",
    "net/ipv4/route/min_pmtu",
    "net/ipv6/conf/all/forwarding",
    "net/ipv6/route/max_size",
    "vm/min_free_kbytes",
    "vm/swappiness",
    "fs/file-max",
    "fs/nr_open",
)

_SECRET = ("key", "secret", "hmac")
"""Parts of names whose values are nobody's business."""


def is_secret(name: str) -> bool:
    """Whether a sysctl's value stays on the host."""
    return any(part in name for part in _SECRET)


def read(reader: Reader) -> dict[str, list[dict[str, Any]]]:
    """The table `sysctls`."""
    rows = []
    base = reader.roots.proc / "sys"
    for path in _paths(reader, base):
        name = ".".join(path.relative_to(base).parts)
        if is_secret(name):
            continue
        text = reader.text(path, "sysctls that only root may read")
        rows.append({"netns": reader.netns, "name": name, "value": None if text is None else " ".join(text.split())})
    if not rows:
        reader.miss("sysctls", f"{base} is not there", "a mounted /proc")
    return {"sysctls": rows}


def _paths(reader: Reader, base: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        for path in reader.entries(base / folder):
            # `flush` is written to and never read; folders hold a file per interface.
            if path.name != "flush" and path.is_file():
                yield path
    for name in FILES:
        if (base / name).is_file():
            yield base / name
