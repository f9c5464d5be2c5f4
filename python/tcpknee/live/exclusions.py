"""Why no socket was found: what each filter leaves out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tcpknee import _core
from tcpknee.errors import TcpkneeError

_OPTIONS = {
    "port": "ports",
    "address": "addresses",
    "algorithm": "algorithms",
    "state": "states",
    "min-bytes": "min_bytes",
    "mark": "mark",
    "cgroup": "cgroup",
}
"""Options of a filter, and the keywords of `tcpknee.sockets`."""
KEYWORDS = tuple(_OPTIONS.values())


def count(wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """Counts the TCP sockets of this moment (`sockets`), and those that each option leaves out by itself (`by`).

    `wanted` has the keywords of `tcpknee.sockets`. None if they cannot be counted any more, as where the network
    namespace is gone.
    """
    asked = {key: wanted[key] for key in (*KEYWORDS, "netns") if wanted.get(key)}
    try:
        found: dict[str, Any] = json.loads(_core.exclusions(json.dumps(asked)))
    except TcpkneeError:
        return None
    return found


def text(found: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> str:
    """The counts as text: `0 sockets: of the 214 TCP sockets that are here now, --port 443 leaves out all.`"""
    if found is None:
        return "0 sockets."
    where = f"in the network namespace {wanted['netns']}" if wanted.get("netns") else "here"
    count = found["sockets"]
    if not count:
        return f"0 sockets: there is no TCP socket {where} now."
    parts = [
        f"{_given(option, wanted)} leaves out {'all' if out == count else f'{out:,}'}"
        for option, out in sorted(found["by"].items(), key=lambda item: -item[1])
    ]
    there = f"{count:,} TCP sockets that are" if count > 1 else "one TCP socket that is"
    return f"0 sockets: of the {there} {where} now, {', '.join(parts) or 'no filter leaves out any'}."


def _given(option: str, wanted: Mapping[str, Any]) -> str:
    """The option as it was given."""
    value = wanted.get(_OPTIONS[option])
    if not value:
        # Only states have a default that leaves something out.
        return f"--{option} connected (the default)"
    values = [value] if isinstance(value, str) else value
    return " ".join(f"--{option} {one}" for one in values)
