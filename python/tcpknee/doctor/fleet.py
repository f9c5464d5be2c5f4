"""Many hosts: which rule hits how many of them, and where hosts differ that should be alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcpknee.errors import RunFolderError, UsageError
from tcpknee.human import counted
from tcpknee.say import aligned

from .finding import SEVERITIES, Severity
from .judge import judge
from .rules import RULES, Rule
from .snapshot import Snapshot

LEAST_ALIKE = 3
"""Hosts of a kind from which on a majority says something."""
MAJORITY = 0.6
MOST_EXAMPLES = 3
MOST_DRIFTS = 40

_OF_THE_MOMENT = re.compile(r"conntrack_count|\.tcp_mem$|\.random|fs\.file-|route\.|hostname|neigh\.")
"""Sysctls that differ between hosts which are set alike: counts, and what comes of the memory."""


@dataclass
class Hit:
    """A rule, and the hosts that it found something on."""

    rule: str
    severity: Severity
    hosts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Drift:
    """A setting that most hosts of a kind have alike, and those that have not."""

    kind: str
    setting: str
    usual: str
    hosts: int
    others: Mapping[str, list[str]]
    """By value: hosts that have it."""


@dataclass(frozen=True)
class Fleet:
    hosts: Sequence[str]
    unread: Sequence[tuple[str, str]]
    hits: Sequence[Hit]
    drifts: Sequence[Drift]

    @property
    def is_wrong(self) -> bool:
        """Whether something is wrong on one of them."""
        return any(hit.severity != "advice" for hit in self.hits)


def judged(folder: Path, rules: Sequence[Rule] = RULES, tell: Callable[[int], object] | None = None) -> Fleet:
    """Judges each snapshot (*.json) of a folder. Raises UsageError where there is none that can be read."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise UsageError(
            f'--fleet: got "{folder}", which holds no *.json; expected a folder of snapshots. '
            "`knee snapshot --out FILE` writes one."
        )
    hosts: list[str] = []
    unread: list[tuple[str, str]] = []
    hits: dict[str, Hit] = {}
    settings: dict[str, dict[str, dict[str, str]]] = {}
    for at, path in enumerate(paths):
        try:
            snapshot = Snapshot.of_folder(path)
        except (UsageError, RunFolderError) as error:
            unread.append((path.name, str(error)))
            continue
        name = snapshot.host["host"] or path.stem
        name = name if name not in hosts else f"{name} ({path.name})"
        hosts.append(name)
        for finding in judge(snapshot, rules).findings:
            hit = hits.setdefault(finding.rule, Hit(finding.rule, finding.severity))
            hit.severity = min(hit.severity, finding.severity, key=SEVERITIES.index)
            if hit.hosts[-1:] != [name]:
                hit.hosts.append(name)
        settings.setdefault(_kind(snapshot), {})[name] = _settings(snapshot)
        if tell is not None:
            tell(at + 1)
    if not hosts:
        raise UsageError(
            f'--fleet: got "{folder}", which holds {counted(len(unread), "file")} *.json and no snapshot; expected '
            f"snapshots. The first: {unread[0][1]}"
        )
    ordered = sorted(hits.values(), key=lambda hit: (SEVERITIES.index(hit.severity), -len(hit.hosts), hit.rule))
    return Fleet(
        hosts, unread, ordered, [drift for kind in sorted(settings) for drift in _drifts(kind, settings[kind])]
    )


def _kind(snapshot: Snapshot) -> str:
    """Hosts of one kind should be alike."""
    host = snapshot.host
    drivers = sorted({row["driver"] for row in snapshot.rows("interfaces") if row["driver"]})
    machine = host["instance_type"] or f"{host['hypervisor']} {host['cpus']} processors"
    system = " ".join(filter(None, (host["distribution"], host["distribution_version"])))
    return " · ".join(filter(None, (machine, system, ", ".join(drivers))))


def _settings(snapshot: Snapshot) -> dict[str, str]:
    """What hosts of one kind should have alike."""
    found = {
        row["name"]: row["value"]
        for row in snapshot.rows("sysctls")
        if row["value"] is not None and not _OF_THE_MOMENT.search(row["name"])
    }
    found["kernel"] = snapshot.host["kernel"] or "unknown"
    for row in snapshot.rows("qdiscs"):
        if row["parent"] == "root":
            found[f"{row['interface']} root qdisc"] = str(row["kind"])
    for table, columns in (("rings", ("rx", "tx")), ("channels", ("combined", "rx"))):
        for row in snapshot.rows(table):
            for column in columns:
                if row[column] is not None:
                    found[f"{row['interface']} {table} {column}"] = str(row[column])
    for row in snapshot.rows("interfaces"):
        if row["kind"] is None:
            found[f"{row['interface']} mtu_bytes"] = str(row["mtu_bytes"])
    return found


def _drifts(kind: str, hosts: Mapping[str, Mapping[str, str]]) -> Iterator[Drift]:
    if len(hosts) < LEAST_ALIKE:
        return
    for setting in sorted({name for settings in hosts.values() for name in settings}):
        values = {host: settings[setting] for host, settings in hosts.items() if setting in settings}
        usual, count = Counter(values.values()).most_common(1)[0]
        if count == len(values) or count < MAJORITY * len(hosts):
            continue
        others: dict[str, list[str]] = {}
        for host, value in values.items():
            if value != usual:
                others.setdefault(value, []).append(host)
        yield Drift(kind, setting, usual, len(values), others)


def report(fleet: Fleet) -> Iterator[str]:
    """Text of 80 columns."""
    yield f"{counted(len(fleet.hosts), 'host')}, {counted(len(fleet.hits), 'rule')} found something."
    if fleet.hits:
        yield ""
        rows = [
            [hit.severity, hit.rule, str(len(hit.hosts)), f"{100 * len(hit.hosts) / len(fleet.hosts):.0f} %"]
            for hit in fleet.hits
        ]
        yield from aligned([["severity", "rule", "hosts", "share"], *rows], left=[True, True, False, False])
        yield ""
        first = fleet.hits[0]
        yield f"Look first at {first.rule}: {_some(first.hosts)}."
    if fleet.drifts:
        yield ""
        yield "Hosts that should be alike, and are not:"
        for drift in fleet.drifts[:MOST_DRIFTS]:
            yield f"  {drift.setting}: {drift.usual} on most of {drift.hosts} ({drift.kind})"
            for value, hosts in drift.others.items():
                yield f"    {value}: {_some(hosts)}"
        if len(fleet.drifts) > MOST_DRIFTS:
            yield f"  … and {len(fleet.drifts) - MOST_DRIFTS} more settings (--json has all)"
    for name, why in fleet.unread:
        yield ""
        yield f"Not read: {name}: {why}"


def _some(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - MOST_EXAMPLES} more" if len(hosts) > MOST_EXAMPLES else ""
    return f"{', '.join(hosts[:MOST_EXAMPLES])}{more}"


def json(fleet: Fleet) -> dict[str, Any]:
    """The same for programs."""
    return {
        "schema": 1,
        "hosts": list(fleet.hosts),
        "wrong": fleet.is_wrong,
        "rules": [{"rule": hit.rule, "severity": hit.severity, "hosts": hit.hosts} for hit in fleet.hits],
        "drift": [
            {
                "kind": drift.kind,
                "setting": drift.setting,
                "usual": drift.usual,
                "hosts": drift.hosts,
                "others": [{"value": value, "hosts": hosts} for value, hosts in drift.others.items()],
            }
            for drift in fleet.drifts
        ],
        "unread": [{"file": name, "why": why} for name, why in fleet.unread],
    }
