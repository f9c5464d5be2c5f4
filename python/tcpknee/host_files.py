"""Files that a host sent of itself (`crates/hold/src/recorded.rs`): what their paths and texts may be."""

from __future__ import annotations

import re
from collections.abc import Mapping

MOST_FILES = 20_000
"""Of 512 processors there are 16,000."""
MOST_CHARACTERS = 16 << 20
_MOST_PARTS = 12

_PATH = re.compile(r"(proc|sys|etc|usr|run|boot)(/[A-Za-z0-9_.@+:-]{1,200})+")


def mistake(files: Mapping[str, str]) -> str | None:
    """Why they are not what a host sends; None: they are."""
    if len(files) > MOST_FILES or sum(map(len, files.values())) > MOST_CHARACTERS:
        return f"got {len(files)} of them; expected fewer and shorter ones"
    for path in files:
        parts = path.split("/")
        if len(parts) > _MOST_PARTS or not _PATH.fullmatch(path) or any(part in {".", ".."} for part in parts):
            return f"got the path {path[:200]!r}; expected one below /proc, /sys, /etc or the like"
        if any("/".join(parts[:end]) in files for end in range(1, len(parts))):
            return f"got the path {path!r} below a file; expected files and folders apart"
    return None
