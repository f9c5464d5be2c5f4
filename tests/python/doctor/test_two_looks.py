"""Two samples of a host's counters say what goes on, what is over, and what has just begun."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from made import qdiscs, sampled, snapshot
from rule_cases import CASES

from support import Ended
from tcpknee.doctor import render
from tcpknee.doctor.judge import judge
from tcpknee.doctor.rules import RULES
from tcpknee.doctor.snapshot import Snapshot, samples, take
from tcpknee.doctor.snapshot.reader import Roots
from tcpknee.doctor.snapshot.tables import TABLES
from tcpknee.errors import UsageError

Call = Callable[..., Ended]

ETH0 = {"interface": "eth0"}


def drops(count: int, packets: int = 8_000_000) -> dict[str, Any]:
    """eth0, whose first leaf of fq dropped `count` packets beyond its horizon."""
    rows = qdiscs("eth0", *["fq"] * 4)
    rows[1] |= {"horizon_drops": count, "packets": packets}
    return {"without": ["qdiscs"], "qdiscs": rows}


def test_what_grew_goes_on_at_so_much_a_second() -> None:
    [finding] = judge(sampled(drops(5_000), drops(4_000))).findings
    assert finding.now is not None and finding.now.goes_on
    assert finding.now.per_sec == {"horizon_drops": 100.0}
    assert "Goes on: horizon_drops 100 a second, in the last 10 s." in render.now(finding.now)


def test_what_did_not_grow_may_be_over_and_comes_after_what_goes_on() -> None:
    both = {"counters": {"TcpExt.TCPTimeWaitOverflow": 7, "TcpExt.TCPRcvQDrop": 900_000}}
    judged = judge(sampled(both, {"counters": {**both["counters"], "TcpExt.TCPRcvQDrop": 800_000}}))
    assert [finding.rule for finding in judged.findings] == ["receive-queue-pruned", "time-wait-overflow"]
    assert [finding.now and finding.now.goes_on for finding in judged.findings] == [True, False]
    assert judged.findings[1].now and "it may be over" in render.now(judged.findings[1].now)


def test_what_began_just_now_is_found_though_little_since_boot() -> None:
    now = {"interfaces": [{**ETH0, "rx_missed_errors": 600}]}
    assert not judge(snapshot(now)).findings
    first = {"interfaces": [{**ETH0, "rx_missed_errors": 0, "rx_packets": 9_999_000_000}]}
    [finding] = judge(sampled(now, first)).findings
    assert finding.rule == "rx-ring-drops" and finding.told.startswith("In the last 10 s: 600 of 1,000,000")
    assert finding.now and finding.now.per_sec == {"dropped_pkts": 60.0}


def test_a_share_of_the_time_is_that_of_the_window() -> None:
    def stolen(steal_us: int, time_us: int) -> dict[str, Any]:
        times = {"time_us": time_us, "busy_us": steal_us, "softirq_us": 0, "steal_us": steal_us}
        rows = [{"cpu": cpu, **times} for cpu in range(4)]
        return {"host": {"hypervisor": "kvm", "steal_pct": 12.5}, "cpus": rows}

    [over] = judge(sampled(stolen(1_000_000, 8_000_000), stolen(1_000_000, 7_000_000))).findings
    assert over.rule == "cpu-stolen" and over.now and not over.now.goes_on
    [goes_on] = judge(sampled(stolen(1_500_000, 8_000_000), stolen(1_000_000, 7_000_000))).findings
    assert goes_on.now and goes_on.now.goes_on and goes_on.now.per_sec == {}
    window = sampled(stolen(1_500_000, 8_000_000), stolen(1_000_000, 7_000_000)).window
    assert window is not None and window.host["steal_pct"] == 50.0 and window.host["uptime_sec"] == 10.0
    assert {row["busy_pct"] for row in window.rows("cpus")} == {50.0}


def test_values_of_the_moment_are_not_subtracted_and_a_count_that_fell_is_not_known() -> None:
    now = {"counters": {"TCP.mem": 9, "arp_cache.entries": 7, "Tcp.CurrEstab": 5, "Tcp.OutSegs": 40, "Tcp.InSegs": 3}}
    first = {"counters": {"TCP.mem": 5, "arp_cache.entries": 6, "Tcp.CurrEstab": 4, "Tcp.OutSegs": 30, "Tcp.InSegs": 4}}
    window = sampled(now, first).window
    assert window is not None
    assert [window.counter(name) for name in now["counters"]] == [9, 7, 5, 10, None]


def test_an_interface_that_came_in_between_counted_nothing_that_is_known() -> None:
    row = {"interface": "eth1", "operstate": "up", "loopback": False, "rx_packets": 10, "rx_missed_errors": 10}
    taken = sampled({"interfaces": [row]}, {})
    assert taken.window is not None
    [seen] = [row for row in taken.window.rows("interfaces") if row["interface"] == "eth1"]
    assert seen["rx_packets"] is None and seen["operstate"] == "up"


OF_THE_MOMENT = {"listen-drops", "conntrack-full", "neighbour-table-full", "tcp-memory-pressure", "cpu-stolen"}
"""Rules that also see a queue or table that is full now, which goes on whatever was counted."""


def test_a_setting_neither_goes_on_nor_is_over() -> None:
    off = {"sysctls": {"net.ipv4.tcp_recovery": "0"}}
    often = {"counters": {"Tcp.RetransSegs": 20_000_000, "TcpExt.TCPTimeouts": 15_000_000}}
    [setting] = judge(sampled(off, off)).findings
    assert setting.rule == "losses-found-by-timeout" and setting.now is None
    [both] = judge(sampled({**off, **often}, {**off, **often})).findings
    assert both.told.startswith("RACK is off. 15,000,000 timeouts") and both.now and not both.now.goes_on


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.counts], ids=lambda rule: rule.name)
def test_what_a_rule_counts_is_in_its_evidence(rule: Any) -> None:
    """And two equal samples say that nothing of it goes on, or that a state of the moment does."""
    fires = CASES[rule.name].fires
    names = {name for finding in rule.check(snapshot(fires)) for name in finding.evidence}
    assert names & set(rule.counts), f"{rule.name}: none of {rule.counts} is in {sorted(names)}"
    for finding in judge(sampled(fires, fires), [rule]).findings:
        assert finding.now is not None and finding.now.per_sec == {}
        assert not finding.now.goes_on or rule.name in OF_THE_MOMENT


def test_keys_of_samples_are_columns_and_every_counting_table_has_some() -> None:
    counting = {
        name for name, table in TABLES.items() if any(one.kind in ("count", "counts") for one in table.columns.values())
    }
    assert counting - {"host"} == set(samples.KEYS)
    assert all(set(key) <= set(TABLES[name].columns) for name, key in samples.KEYS.items())


def test_a_file_keeps_both_samples(tmp_path: Path) -> None:
    taken = sampled(drops(5_000), drops(4_000))
    taken.write(tmp_path / "a.json")
    assert Snapshot.read(tmp_path / "a.json").earlier == taken.earlier


@pytest.mark.parametrize(
    ("earlier", "said"),
    [
        ([], "earlier: expected an object"),
        ({"seconds": 0, "tables": {}}, "earlier: expected an object with the seconds"),
        ({"seconds": 1e300, "tables": {}}, "earlier: expected an object with the seconds"),
        ({"seconds": 10, "tables": []}, "earlier.tables: expected an object"),
        ({"seconds": 10, "tables": {"sysctls": []}}, "earlier.tables: got"),
        ({"seconds": 10, "tables": {"softnet": [{"cpu": "x"}]}}, "earlier.tables.softnet[0].cpu"),
    ],
)
def test_a_first_sample_that_is_none_is_refused(earlier: Any, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        Snapshot.of_json(snapshot().json() | {"earlier": earlier})
    assert said in str(refused.value)


def test_a_file_of_version_1_is_read() -> None:
    old = snapshot().json() | {"version": 1}
    for row in old["tables"]["channels"] + old["tables"]["cpus"]:
        for name in ("rss_queues", "siblings", "time_us"):
            row.pop(name, None)
    assert Snapshot.of_json(old).earlier is None


def test_this_host_is_counted_twice(tmp_path: Path) -> None:
    """Of its files a copy, in which the first sample and the second are the same."""
    taken = take(seconds=0.01)
    assert taken.earlier is not None and taken.earlier.seconds >= 0.01 and taken.window is not None
    assert {row["interface"] for row in taken.earlier.tables["interfaces"]}
    proc = tmp_path / "proc"
    (proc / "net").mkdir(parents=True)
    for name in ("stat", "net/snmp", "net/netstat", "net/softnet_stat"):
        shutil.copyfile(f"/proc/{name}", proc / name)
    still = take(roots=Roots(proc, tmp_path / "sys", tmp_path, netlink=False), seconds=0.01)
    assert still.window is not None and still.window.counter("Tcp.OutSegs") == 0
    assert {row["processed"] for row in still.window.rows("softnet")} == {0}


def test_doctor_looks_twice_on_request(call: Call, tmp_path: Path) -> None:
    assert json.loads(call("doctor", "--for", "20ms", "--json").out)["seconds"] >= 0.02
    assert json.loads(call("doctor", "--json").out)["seconds"] is None
    file = tmp_path / "a.json"
    assert call("snapshot", "--for", "20ms", "--out", file).code == 0
    assert json.loads(call("doctor", "--snapshot", file, "--json").out)["seconds"] >= 0.02
    refused = call("doctor", "--snapshot", file, "--for", "1s")
    assert refused.code == 2 and "--for: got it with --snapshot" in refused.err
    assert "--for" in call("doctor", "--for", "10").err
    assert "less than a day" in call("snapshot", "--for", "48h").err
    ended = call("doctor", "--snapshot", _written(tmp_path))
    assert "  Now      Goes on: horizon_drops 100 a second, in the last 10 s." in ended.out
    assert os.linesep.join(line for line in ended.out.splitlines() if len(line) > 80) == ""


def _written(folder: Path) -> Path:
    sampled(drops(5_000), drops(4_000)).write(folder / "drops.json")
    return folder / "drops.json"
