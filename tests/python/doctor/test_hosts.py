"""Hosts made from public facts get the findings that they should, and no others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from hosts import HOSTS, Host
from made import snapshot

from kneepoint.doctor import told
from kneepoint.doctor.judge import judge
from kneepoint.doctor.rules import RULES

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
    lines = list(told.report(taken, judged))
    commands = {
        line for one in judged.findings for line in (*one.confirm, *(c for x in one.changes for c in x.shown()))
    }
    long = [line for line in lines if len(line) > 80 and not any(line.endswith(command) for command in commands)]
    assert not long
    if judged.findings:
        assert any(line.startswith("Do first, for ") for line in lines)
