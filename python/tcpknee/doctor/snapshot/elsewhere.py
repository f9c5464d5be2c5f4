"""A snapshot of another network namespace, by a process that is in it.

Files below /proc/sys/net belong to the namespace of who opens them, and /sys shows the one in which it was mounted: the
process mounts a /sys that nobody else sees.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

from tcpknee import children
from tcpknee.errors import EngineError, UsageError
from tcpknee.live.which import namespace, namespace_path

from .snapshot import MOST_SECONDS, Snapshot
from .take import take


def take_in(netns: str | None = None, seconds: float | None = None) -> Snapshot:
    """Of a namespace by its name below /run/netns, a process in it, or its path; None: of ours. With `seconds` the
    counters are read twice. Raises UsageError, EngineError."""
    if seconds is not None and seconds >= MOST_SECONDS:
        raise UsageError(f"--for: got {seconds:.0f} s; expected less than a day.")
    if netns is None:
        return take(seconds=seconds)
    # An error of its own for what is not there.
    namespace(netns)
    inside = children.command(__name__, *([] if seconds is None else [str(seconds)]))
    within = ["nsenter", f"--net={namespace_path(netns)}", "--", "unshare", "--mount", "--propagation", "slave", "--"]
    try:
        ended = subprocess.run(
            [*within, *inside], env=children.environment(), capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise EngineError("--netns: the program nsenter is not there; it is in the package util-linux.") from None
    if ended.returncode:
        said = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise EngineError(f"--netns: got {netns}, which could not be entered: {said}. That needs root.")
    found = Snapshot.of_json(json.loads(ended.stdout))
    host = {**found.host, "netns": netns}
    return dataclasses.replace(found, tables={**found.tables, "host": [host]})


def main() -> None:
    """Within the namespace: prints the snapshot. Its argument: the seconds between two samples."""
    # The /sys that is there may be of this very namespace: the kernel then says that it is busy.
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], stderr=subprocess.DEVNULL, check=False)
    json.dump(take(seconds=float(sys.argv[1]) if sys.argv[1:] else None).json(), sys.stdout)


if __name__ == "__main__":
    main()
