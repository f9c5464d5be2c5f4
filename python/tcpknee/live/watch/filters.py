"""Which sockets are meant: the filters of `knee record`, as one line that can be edited."""

from __future__ import annotations

from typing import Any

from tcpknee.errors import UsageError

Wanted = dict[str, Any]
"""Keywords of `tcpknee.sockets`."""

SEVERAL = {"port": "ports", "address": "addresses", "algorithm": "algorithms", "state": "states"}
ONE = {"min-bytes": "min_bytes", "mark": "mark", "cgroup": "cgroup"}
EXPECTED = ", ".join(f"{word}=" for word in (*SEVERAL, *ONE))


def parse(line: str) -> Wanted:
    """`port=443,!8080 algorithm=bbr min-bytes=1MB`; words of one kind are alternatives. Raises UsageError."""
    wanted: Wanted = {}
    for part in line.split():
        word, equals, value = part.partition("=")
        if not equals or not value or word not in {*SEVERAL, *ONE}:
            raise UsageError(f'filter: got "{part}"; expected words such as port=443, out of {EXPECTED}.')
        if word in ONE:
            if ONE[word] in wanted:
                raise UsageError(f'filter: got "{word}=" twice; expected it once.')
            wanted[ONE[word]] = value
        else:
            wanted.setdefault(SEVERAL[word], []).extend(one for one in value.split(",") if one)
    return wanted


def line(wanted: Wanted) -> str:
    """The line that `parse` reads as these filters."""
    parts = [f"{word}={','.join(wanted[key])}" for word, key in SEVERAL.items() if wanted.get(key)]
    return " ".join(parts + [f"{word}={wanted[key]}" for word, key in ONE.items() if wanted.get(key)])
