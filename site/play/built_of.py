"""Of which sources a playground was built. A page that says it can be told from a stale one."""

from __future__ import annotations

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATTERNS = (
    "Cargo.lock", "crates/*/Cargo.toml", "crates/*/src/**/*.rs", "crates/engine/examples/cell.rs", "cc/*.*",
    "reference/linux-*.csv", "python/tcpknee/pages/palette.py", "site/play/*.*",
)  # fmt: skip
MARK = '<meta name="sources" content="{}">'


def digest() -> str:
    """One number of all of them."""
    found = hashlib.sha256()
    for path in sorted({path for pattern in PATTERNS for path in ROOT.glob(pattern)}):
        found.update(f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def mark() -> str:
    """What a page of the present sources has in its head."""
    return MARK.format(digest())
