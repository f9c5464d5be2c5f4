"""The files that a host sent of itself, as a snapshot."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from made import snapshot

from tcpknee.doctor.judge import judge
from tcpknee.doctor.rules import RULES
from tcpknee.doctor.snapshot import recorded
from tcpknee.doctor.snapshot.snapshot import Missing
from tcpknee.errors import UsageError

FILES = {
    "proc/sys/kernel/osrelease": "6.1.0\n",
    "proc/sys/net/ipv4/tcp_wmem": "4096\t16384\t4194304\n",
    "proc/net/softnet_stat": "00000010 00000003 00000000\n",
    "etc/sysctl.d/90-net.conf": "net.core.rmem_max = 1\n",
}


def test_files_of_another_host_are_a_snapshot_that_says_what_it_lacks(tmp_path: Path) -> None:
    file = tmp_path / "sender.host.json"
    told = {"format": recorded.FORMAT, "version": 1, "taken_unix_ns": 7, "files": FILES}
    file.write_text(json.dumps(told), encoding="utf-8")
    found = recorded.read(file)
    assert (found.host["kernel"], found.host["root"], found.taken_unix_ns) == ("6.1.0", None, 7)
    assert found.sysctl("net.ipv4.tcp_wmem") == "4096 16384 4194304"
    assert [row["dropped"] for row in found.rows("softnet")] == [3]
    assert ("net.core.rmem_max", "1") in {(row["name"], row["value"]) for row in found.rows("owners")}
    assert any("interfaces" in one.what for one in found.missing)


def test_rules_whose_tables_only_the_kernel_tells_are_not_judged() -> None:
    files = {**FILES, "proc/net/snmp": "Tcp: InSegs RetransSegs\nTcp: 9 0\n"}
    judged = judge(recorded.snapshot_of(files, 0))
    unjudged = dict(judged.unjudged)
    # No other table is missing for these three.
    assert unjudged["initial-window"] == "needs routes" and unjudged["dctcp-outside"] == "needs sockets"
    assert unjudged["listen-drops"] == "needs listeners"
    assert "tw-recycle" not in unjudged
    needed = {rule.name for rule in RULES if {"sockets", "qdiscs", "routes", "interfaces"} & set(rule.needs)}
    assert needed <= unjudged.keys() | {finding.rule for finding in judged.findings}


def test_a_rule_that_found_something_without_a_table_is_judged() -> None:
    missing = [Missing("sockets", "the kernel refused: Operation not permitted", "root")]
    whole = snapshot({"counters": {"TcpExt.ListenOverflows": 90_000}, "without": ["sockets", "listeners"]})
    judged = judge(replace(whole, missing=missing))
    assert "listen-drops" in {finding.rule for finding in judged.findings}
    unjudged = dict(judged.unjudged)
    assert "listen-drops" not in unjudged and unjudged["dctcp-outside"] == "needs sockets"
    assert judge(whole).unjudged == []


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "proc/../../x", "proc//x", "root/x", "proc", "proc/a b"])
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="expected one below /proc"):
        recorded.snapshot_of({path: ""}, 0)


def test_another_form_is_refused() -> None:
    for found in ({}, {"version": 2}, {"version": 1, "taken_unix_ns": 1, "files": {"proc/x": 1}}):
        with pytest.raises(UsageError, match="in another form"):
            recorded.of_json(found)
