"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kneepoint.doctor.finding import Finding
from kneepoint.doctor.snapshot import Snapshot

GROUPS = {
    "pacing": "Pacing and qdisc",
    "algorithm": "Algorithm against role",
    "buffers": "Buffers and windows",
    "limits": "Limits",
    "nic": "NIC and processors",
    "cloud": "Cloud and virtual",
    "ownership": "Ownership and drift",
}


@dataclass(frozen=True)
class Rule:
    """A rule: a pure function from a snapshot to findings, and what a person wants to know of it.

    A table that a snapshot lacks, or a value that is null, leads to no finding: what is not known is not wrong.
    """

    name: str
    """As on the command line: words with hyphens. The file has the same name with underscores."""
    group: str
    """A key of GROUPS."""
    summary: str
    """What it looks for, in one line."""
    source: str
    """The commit, documentation or page that it rests on."""
    check: Callable[[Snapshot], Sequence[Finding]]
    needs: Sequence[str] = ()
    """Tables that it reads. A snapshot that misses one cannot be judged by it."""
