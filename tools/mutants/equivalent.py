"""The checked-in list of mutants that no test can tell from the original, each with its reason."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib

_KEYS = ("file", "function", "text", "change")


class Equivalents:
    """Found by what the line says, so that it holds when lines move and ends when the line changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reasons: dict[tuple[str, ...], str] = {}
        for at, listed in enumerate(tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", []), 1):
            # A line outside of functions has none.
            told = [text for key, text in listed.items() if key != "function"]
            if listed.keys() != {*_KEYS, "reason"} or not all(isinstance(text, str) and text for text in told):
                sys.exit(f"{path}: entry {at}: expected the texts {', '.join(_KEYS)} and reason, got {sorted(listed)}")
            self._reasons[tuple(listed[key] for key in _KEYS)] = listed["reason"]

    def listed(self) -> set[tuple[str, ...]]:
        """The mutants: file, function, line of source, change."""
        return set(self._reasons)

    def reason(self, entry: Mapping[str, str]) -> str | None:
        """Why it survives, if it is listed."""
        file = entry["place"].rsplit(":", 1)[0]
        return self._reasons.get((file, entry["function"], entry["text"], entry["change"]))
