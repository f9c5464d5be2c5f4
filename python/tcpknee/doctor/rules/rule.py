"""What a rule is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcpknee.doctor.changes import Change
from tcpknee.doctor.finding import Finding, Severity
from tcpknee.doctor.snapshot import Snapshot

GROUPS = {
    "pacing": "Pacing and qdisc",
    "algorithm": "Algorithm against role",
    "buffers": "Buffers and windows",
    "limits": "Limits",
    "nic": "NIC and processors",
    "cloud": "Cloud and virtual",
    "ownership": "Ownership and drift",
}

FEW, LITTLE = 100, 1e-4
"""Events below which, and shares below which, nothing is wrong that somebody would notice."""

SECTIONS = ("What it sees", "Why it matters")
"""What the manual of a rule says, each beginning a line and ending with a colon."""


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
    """What is wrong where it fires, in one line."""
    source: str
    """The commit, documentation or page that it rests on."""
    manual: str | None
    """The head of its file: a title and SECTIONS."""
    check: Callable[[Snapshot], Sequence[Finding]]
    needs: Sequence[str] = ()
    """Tables that it reads. A snapshot that misses one cannot be judged by it."""
    counts: Sequence[str] = ()
    """Evidence that grows while the trouble goes on, or (ending in `_pct`) that is a share of the time since boot. Two
    samples say how it is now."""

    def section(self, title: str) -> str:
        """A section of the manual in one paragraph."""
        titles = "|".join(SECTIONS)
        found = re.search(rf"^{title}:(.*?)(?=^(?:{titles}):|\Z)", self.manual or "", re.M | re.S)
        text = " ".join(found[1].split()) if found else ""
        return text[:1].upper() + text[1:]

    def found(
        self,
        severity: Severity,
        subject: str,
        told: str,
        evidence: Mapping[str, Any],
        *,
        confirm: Sequence[str] = (),
        changes: Sequence[Change] = (),
        advice: str = "",
        gain: str = "",
        why: str = "",
        events: int | None = None,
        of: int | None = None,
    ) -> Finding:
        """A finding of this rule; by default it matters for the reason that the manual gives.

        `events`: what the finding rests on happened so often, among `of`. What is rare is advice at most, and not the
        first thing to do.
        """
        is_rare = events is not None and (events < FEW or (of is not None and events < LITTLE * of))
        return Finding(
            rule=self.name,
            severity="advice" if is_rare else severity,
            subject=subject,
            told=told,
            evidence=evidence,
            why=why or self.section("Why it matters"),
            # A person pastes these: an interface may be named so that a shell would run a part of it.
            confirm=[line.replace(subject, shlex.quote(subject)) for line in confirm],
            changes=changes,
            advice=advice,
            source=self.source,
            gain=gain,
            unpaid="It happened too rarely to matter." if is_rare else "",
        )
