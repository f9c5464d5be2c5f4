"""Hosts made from public facts get the findings that they should, and no others."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from host_parts import Host, merged
from hosts import HOSTS
from hypothesis import given, settings
from hypothesis import strategies as st
from made import sampled, snapshot
from rule_cases import CASES

from tcpknee.doctor import render
from tcpknee.doctor.judge import judge
from tcpknee.doctor.rules import RULES
from tcpknee.doctor.snapshot import Snapshot
from tcpknee.doctor.snapshot.tables import TABLES

every_host = pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)


def test_there_are_hosts_enough_and_each_says_where_its_facts_are_from() -> None:
    assert len(HOSTS) >= 30 and len({host.name for host in HOSTS}) == len(HOSTS)
    assert all(host.facts and host.source for host in HOSTS)
    assert frozenset().union(*(host.expected for host in HOSTS)) <= {rule.name for rule in RULES}


@every_host
def test_a_host_gets_the_findings_that_it_should(host: Host) -> None:
    judged = judge(snapshot(host.difference, cpus=host.cpus))
    assert {finding.rule for finding in judged.findings} == host.expected, [one.told for one in judged.findings]


@every_host
def test_a_report_has_80_columns_but_for_commands(host: Host) -> None:
    taken = snapshot(host.difference, cpus=host.cpus)
    judged = judge(taken)
    lines = list(render.report(taken, judged))
    commands = {
        line for one in judged.findings for line in (*one.confirm, *(c for x in one.changes for c in x.shown()))
    }
    long = [line for line in lines if len(line) > 80 and not any(line.endswith(command) for command in commands)]
    assert not long
    assert any(line.startswith("Do first, for ") for line in lines) == any(one.pays for one in judged.findings)


ODD = {
    "integer": (None, 0, 1, -1, (1 << 63) - 1, -(1 << 63)),
    "count": (None, 0, 1, -1, (1 << 64) - 1, -(1 << 63)),
    "number": (None, 0, 0.0, -1.5, 1e300),
    "text": (None, "", "0", "-1", "4096 0 0", "none", "eth0", "fq", "bbr", "\x1b"),
    "bool": (None, True, False),
    "integers": (None, [], [0], [-1, 1 << 62]),
    "texts": (None, [], [""]),
    "counts": (None, {}, {"0": 0}, {"x": (1 << 64) - 1, "1": -5}),
    "object": (None, {}, {"0": 0}, {"x": 1 << 62, "flow_limit_pkts": 0}),
}
"""Values of each kind that a damaged or foreign file may have."""

NAMES = [(table, column) for table in TABLES.values() for column in table.columns.values()]
_WRONG = merged(*(CASES[rule.name].fires for rule in RULES))
BROKEN = sampled(_WRONG, _WRONG).json()
"""A host on which nearly everything is wrong, so that most of each rule is reached; with two samples."""


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=12))
def test_odd_values_lead_to_a_report_and_never_to_a_traceback(changes: list[Any]) -> None:
    found = copy.deepcopy(BROKEN)
    for (table, column), row, value in changes:
        rows = found["tables"][table.name]
        if rows and column.name != "interface":
            odd = ODD[column.kind]
            rows[row % len(rows)][column.name] = odd[value % len(odd)]
            if column.kind in ("count", "counts") and (first := found["earlier"]["tables"].get(table.name)):
                first[value % len(first)][column.name] = odd[row % len(odd)]
    taken = Snapshot.of_json(found)
    judged = judge(taken)
    assert list(render.report(taken, judged)) and render.json(taken, judged)
    assert json.loads(json.dumps(render.json(taken, judged)))
