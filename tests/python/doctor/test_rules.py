"""Every rule of the registry fires where it should, and only there."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from made import snapshot
from rule_cases import CASES, ENA, interrupts, near, sockets

import tcpknee
from tcpknee.doctor import render
from tcpknee.doctor.changes import change_of
from tcpknee.doctor.finding import SEVERITIES, Finding
from tcpknee.doctor.judge import judge
from tcpknee.doctor.rules import GROUPS, RULES, Rule
from tcpknee.doctor.rules.rule import FEW
from tcpknee.doctor.snapshot import Snapshot, samples
from tcpknee.doctor.snapshot.snapshot import Earlier
from tcpknee.doctor.snapshot.tables import TABLES

every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def test_every_rule_has_a_case_and_no_case_is_left_over() -> None:
    assert {rule.name for rule in RULES} == set(CASES)
    assert len({rule.name for rule in RULES}) == len(RULES)


@every_rule
def test_a_rule_fires_where_it_should(rule: Rule) -> None:
    findings = rule.check(snapshot(CASES[rule.name].fires))
    assert findings and CASES[rule.name].told in findings[0].told, [finding.told for finding in findings]
    for finding in findings:
        assert finding.rule == rule.name and finding.severity in SEVERITIES
        assert finding.subject and finding.why and finding.evidence and finding.source


@every_rule
def test_a_finding_says_what_to_do_in_commands_or_in_words(rule: Rule) -> None:
    for finding in rule.check(snapshot(CASES[rule.name].fires)):
        assert finding.changes or finding.advice
        assert finding.confirm and finding.gain
        for change in finding.changes:
            assert change_of(change.json()) == change
            assert change.commands() and all(word for command in change.commands() for word in command)


@every_rule
def test_a_rule_is_quiet_where_nothing_is_wrong(rule: Rule) -> None:
    assert list(rule.check(snapshot(CASES[rule.name].quiet))) == []
    assert list(rule.check(snapshot())) == []


@every_rule
def test_what_is_not_known_is_not_wrong(rule: Rule) -> None:
    empty = Snapshot.of(0, {})
    assert list(rule.check(empty)) == []
    whole = snapshot(CASES[rule.name].fires)
    for name in rule.needs:
        if name != "sockets":
            rule.check(replace(whole, tables={**whole.tables, name: ()}))
        nulls = [dict.fromkeys(row) for row in whole.rows(name)]
        rule.check(replace(whole, tables={**whole.tables, name: nulls}))


def rarer(whole: Snapshot, times: int) -> Snapshot:
    """The host when everything that counts has come so many times less often; its shares are the same."""
    first = {
        table: [
            {
                name: value - value // times if isinstance(value, int) and name not in keys else value
                for name, value in row.items()
            }
            for row in rows
        ]
        for table, rows in samples.counts_of(whole.tables).items()
        for keys in [samples.KEYS[table]]
    }
    found = replace(whole, earlier=Earlier.of(10.0, first)).window
    assert found is not None
    return found


def test_what_happened_fewer_than_100_times_is_advice_and_not_the_first_thing_to_do() -> None:
    rare = set()
    for rule in RULES:
        names = [name for name in rule.counts if not name.endswith("_pct")]
        whole = snapshot(CASES[rule.name].fires)
        for often in rule.check(whole):
            happened = sum(often.evidence.get(name) or 0 for name in names)
            if happened < FEW:
                continue
            for finding in rule.check(rarer(whole, happened // (FEW // 2))):
                if 0 < sum(finding.evidence.get(name) or 0 for name in names) < FEW:
                    assert finding.severity == "advice" and not finding.pays, finding
                    rare.add(rule.name)
    # The cases of others demand more than that, happened fewer than 100 times, or are about what is so now.
    assert rare == {
        "ena-allowance",
        "fq-fast-path-reorders",
        "fq-flow-limit",
        "fq-horizon-drops",
        "link-errors",
        "qdisc-drops",
        "receive-buffer-shrinks",
        "receive-queue-pruned",
        "rx-ring-drops",
        "softnet-drops",
        "syn-queue-full",
    }


def test_a_limit_of_backlogs_that_hardly_ever_overflowed_is_not_the_first_thing_to_do() -> None:
    softnet = [{"cpu": 2, "dropped": 282, "processed": 20_996_047, "received_rps": 9}]
    whole = snapshot({"without": ["softnet"], "softnet": softnet})
    judged = judge(whole)
    assert "flow-limit-off" in [one.rule for one in judged.findings]
    assert "Do first" not in "\n".join(render.report(whole, judged))


@pytest.mark.parametrize(
    ("dropped", "received", "severity"),
    [(1, 43_982, "advice"), (120, 5_800_000, "advice"), (99, 100_000, "advice"), (100, 1_000_000, "warning")],
)
def test_one_of_ten_thousand_and_a_hundred_of_them_make_a_warning(dropped: int, received: int, severity: str) -> None:
    counters = {"TcpExt.TCPRcvQDrop": dropped, "Tcp.InSegs": received}
    judged = judge(snapshot({"counters": counters}))
    [finding] = [one for one in judged.findings if one.rule == "receive-queue-pruned"]
    assert finding.severity == severity and judged.is_wrong == (severity == "warning")
    report = "\n".join(render.report(snapshot({"counters": counters}), judged))
    assert ("Do first" in report) == (severity == "warning") and "Recv-Q stays above zero" in report


@pytest.mark.parametrize(
    ("kernel", "dropped", "severity"),
    [
        ("6.16.12", 9_000_000, None),
        ("6.17.0-1022-azure", 9_000_000, "warning"),
        ("6.17.4-2-pve", 0, "advice"),
        ("6.17.4-2-pve", 99, "advice"),
        ("6.18.16", 9_000_000, "warning"),
        ("6.18.17", 9_000_000, None),
        ("6.19.6", 9_000_000, "warning"),
        ("6.19.7-arch1-1", 9_000_000, None),
        ("7.0.0", 9_000_000, None),
    ],
)
def test_the_kernels_that_shrink_receive_buffers_are_told_and_warned_of_where_it_shows(
    kernel: str, dropped: int, severity: str | None
) -> None:
    host = {"host": {"kernel": kernel}, "counters": {"TcpExt.TCPRcvQDrop": dropped}}
    found = [one for one in judge(snapshot(host)).findings if one.rule == "receive-buffer-shrinks"]
    assert [one.severity for one in found] == ([severity] if severity else [])
    [rule] = [rule for rule in RULES if rule.name == "receive-buffer-shrinks"]
    # Who receives little is no case of it.
    little = {"without": ["sockets"], "sockets": [near(bytes_received=900_000)]}
    assert not rule.check(snapshot({**host, **little}))


def test_one_connection_of_one_that_waits_for_the_far_end_is_told() -> None:
    [rule] = [rule for rule in RULES if rule.name == "far-end-window-limits"]
    one = {"remote": "private", "rtt_band": "below-1ms", "algorithm": "cubic", "connections": 1, "busy_connections": 1}
    alone = {"without": ["sockets"], "sockets": [{**one, "rwnd_limited_connections": 1}]}
    [finding] = rule.check(snapshot(alone))
    assert finding.told == "1 of 1 busy connections waits for the receiver's window."
    assert not rule.check(snapshot({"without": ["sockets"], "sockets": [{**one, "rwnd_limited_connections": 0}]}))


@pytest.mark.parametrize(
    ("gbit", "bound"), [(4.5, None), (4.7, 5), (5.2, 5), (5.4, None), (9.9, 10), (10.1, 10), (10.6, None)]
)
def test_a_flow_at_the_clouds_bound_is_told_and_not_to_go_where_it_is(gbit: float, bound: int | None) -> None:
    [rule] = [rule for rule in RULES if rule.name == "ena-single-flow"]
    flow = near(delivery_rate_bits_per_sec_max=int(gbit * 1e9), retrans_segs=6239, data_segs_out=1_420_000)
    taken = snapshot({"interfaces": [ENA], "without": ["sockets"], "sockets": [flow]})
    found = rule.check(taken)
    assert [one.evidence["bound_bits_per_sec"] for one in found] == ([bound * 10**9] if bound else [])
    for one in found:
        assert "Of its group 0.44 % of the segments were lost." in one.told
        assert ("placement group" in one.advice) == (bound == 5) and ("maxrate" in one.advice) == (bound == 10)


@every_rule
def test_a_rule_says_what_it_is(rule: Rule) -> None:
    assert rule.group in GROUPS and set(rule.needs) <= set(TABLES)
    module = sys.modules[f"tcpknee.doctor.rules.{rule.name.replace('-', '_')}"]
    assert module.RULE is rule
    for word in ("What it sees:", "Why it matters:"):
        assert word in (module.__doc__ or ""), f"{rule.name}: {word}"


def test_the_page_compares_with_rules_that_there_are() -> None:
    """And names each group of others' rules."""
    page = (Path(__file__).parents[3] / "docs/doctor.md").read_text(encoding="utf-8")
    rows = [
        line.split(" | ")
        for line in page.split("## What others check")[1].split("## What is looked at")[0].splitlines()
        if line.startswith("| ")
    ]
    ours = {name for row in rows[2:] for name in re.findall(r"`([a-z0-9-]+)`", row[2].split(": ")[0])}
    assert len(ours) > 20 and ours <= {rule.name for rule in RULES}
    theirs = " ".join(row[0] for row in rows)
    assert all(name in theirs for name in ("fasterdata", "tuned", "mlnx_tune", "bpftune"))
    assert all(re.search(r"`[a-z0-9-]+`|none: .", row[2]) for row in rows[2:])


def test_the_page_has_every_rule_by_what_it_looks_at() -> None:
    page = (Path(__file__).parents[3] / "docs/doctor.md").read_text(encoding="utf-8")
    table = page.split("## What is looked at, and by which rule")[1].split("Not judged")[0]
    named = {name for line in table.splitlines() for name in re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", line)}
    assert named == {rule.name for rule in RULES}


def test_no_more_queues_are_asked_for_than_there_are_cores() -> None:
    [rule] = [rule for rule in RULES if rule.name == "few-queues"]
    one_of_eight = {"channels": [{"interface": "eth0", "combined": 1, "combined_max": 8}]}
    two_cores = {"cpus": [{"cpu": cpu, "siblings": [cpu % 2, cpu % 2 + 2]} for cpu in range(4)]}
    for more, wanted in (({}, 4), (two_cores, 2)):
        [finding] = rule.check(snapshot({**one_of_eight, **more}))
        assert [change.json()["combined"] for change in finding.changes] == [wanted]


def test_a_large_initial_window_stays_where_all_connections_are_near_and_lose_nothing() -> None:
    """Article B's remedy for short transfers in a clean network."""
    [rule] = [rule for rule in RULES if rule.name == "initial-window"]

    def found(*groups: dict[str, Any], default: bool = True) -> list[Finding]:
        large = {"interface": "eth0", "default": default, "initcwnd_pkts": 100}
        return list(rule.check(snapshot({"without": ["sockets"], "routes": [large], "sockets": list(groups)})))

    clean = near(data_segs_out=1_000_000, retrans_segs=900)
    assert found(clean) == []
    assert found(clean, sockets(remote="loopback")) == []
    for group in (sockets(), near(rtt_band="10-50ms"), near(data_segs_out=1_000_000, retrans_segs=1_100)):
        [finding] = found(clean, group)
        assert [change.json()["initcwnd"] for change in finding.changes] == [10]
        assert "ip route change PREFIX" in finding.advice
    # Without connections nothing tells that they stay inside; a route to a prefix was set for those who live there.
    assert len(found()) == 1
    assert found(sockets(), default=False) == []


def test_flow_limit_is_for_the_processors_that_hand_packets_on_and_not_for_those_that_overflow() -> None:
    """skb_flow_limit() asks the processor that it runs on, which is the one that the device interrupted."""
    [rule] = [rule for rule in RULES if rule.name == "flow-limit-off"]
    overflowed = {"softnet": [{"cpu": 2, "dropped": 5_000_000, "received_rps": 9}], "without": ["irqs"]}
    [finding] = rule.check(snapshot({**overflowed, "irqs": interrupts((0, 1, 0, 1))}))
    assert [change.json()["value"] for change in finding.changes] == ["3"]
    [finding] = rule.check(snapshot(overflowed))
    assert not finding.changes and "/proc/interrupts" in finding.advice


def test_before_linux_4_19_prunes_that_failed_tell_of_the_drops() -> None:
    [rule] = [rule for rule in RULES if rule.name == "receive-queue-pruned"]
    old = {"TcpExt.TCPRcvQDrop": None, "TcpExt.TCPOFODrop": 50_000, "TcpExt.PruneCalled": 900_000}
    [finding] = rule.check(snapshot({"counters": {**old, "TcpExt.RcvPruned": 200_000}}))
    assert "dropped 200,000 of" in finding.told
    assert rule.check(snapshot({"counters": old})) == []


@pytest.mark.parametrize(
    ("kernel", "until"), [("6.12.48", "TCP's own timers pace BBR"), ("4.9.0", "nothing paces BBR")]
)
def test_no_command_asks_a_kernel_that_was_built_without_fq_for_it(kernel: str, until: str) -> None:
    [rule] = [rule for rule in RULES if rule.name == "bbr-without-fq"]
    fires = CASES[rule.name].fires
    for has_fq in (True, None):
        [finding] = rule.check(snapshot({**fires, "host": {"kernel": kernel, "has_fq": has_fq}}))
        assert finding.changes and not finding.advice and "this kernel has no fq" not in finding.told
    [finding] = rule.check(snapshot({**fires, "host": {"kernel": kernel, "has_fq": False}}))
    assert not finding.changes and "this kernel has no fq" in finding.told
    assert "CONFIG_NET_SCH_FQ" in finding.advice and until in finding.advice


def rule_named(name: str) -> Rule:
    [rule] = [rule for rule in RULES if rule.name == name]
    return rule


def virtual(kind: str | None, *rows: dict[str, Any], **values: Any) -> Snapshot:
    """A host with an interface x0 of the kind and its qdiscs."""
    interface = {"interface": "x0", "kind": kind, "operstate": "up", "loopback": False, "mtu_bytes": 1500, **values}
    listed = [{"interface": "x0", "parent": "root", "handle": "8001:", "options": {}, **row} for row in rows]
    return snapshot({"interfaces": [interface], "qdiscs": listed})


LOST = {"drops": 7_642, "packets": 56_273}


@pytest.mark.parametrize("device", [None, "veth", "bond", "vlan", "tun", "bridge", "macvlan"])
@pytest.mark.parametrize("kind", ["tbf", "htb", "hfsc", "pfifo", "bfifo", "pfifo_fast", "sfq"])
def test_what_drops_at_its_limit_is_told_on_every_interface(device: str | None, kind: str) -> None:
    [finding] = rule_named("qdisc-drops").check(virtual(device, {"kind": kind, **LOST}, txqueuelen_pkts=500))
    assert finding.told == f"{kind} 8001: dropped 7,642 of 63,915 packets." and finding.severity == "warning"
    # Only pfifo_fast takes the interface's length for its own after it was made.
    assert bool(finding.changes) == (kind == "pfifo_fast")


@pytest.mark.parametrize("kind", ["fq_codel", "codel", "cake", "red", "pie", "fq_pie", "dualpi2", "netem"])
def test_what_drops_on_purpose_is_no_finding(kind: str) -> None:
    assert not rule_named("qdisc-drops").check(virtual("veth", {"kind": kind, **LOST}))
    assert kind in rule_named("qdisc-drops").section("What it sees")


def test_an_ifb_and_an_interface_that_is_down_are_no_findings_of_a_qdisc() -> None:
    assert not rule_named("qdisc-drops").check(virtual("ifb", {"kind": "htb", **LOST}))
    assert not rule_named("qdisc-drops").check(virtual("veth", {"kind": "tbf", **LOST}, operstate="down"))


@pytest.mark.parametrize(("below", "told"), [("pfifo", "pfifo 8:"), ("fq_codel", None)])
def test_a_drop_below_a_shaper_is_not_counted_twice(below: str, told: str | None) -> None:
    """The kernel counts it at the shaper, too; what its own FIFOs dropped besides is the shaper's."""
    leaf = {"kind": below, "handle": "8:", "parent": "7:10", **LOST}
    found = rule_named("qdisc-drops").check(virtual("veth", {"kind": "htb", "handle": "7:", **LOST}, leaf))
    assert [one.told.split(" dropped")[0] for one in found] == ([told] if told else [])
    more = {"kind": "htb", "handle": "7:", **LOST, "drops": 8_642}
    found = rule_named("qdisc-drops").check(virtual("veth", more, leaf))
    assert [one.evidence["drops"] for one in found if one.evidence["qdisc"] == "htb"] == [1_000]


@pytest.mark.parametrize(
    ("somaxconn", "backlog", "changed", "says"),
    [
        (128, 128, True, "Restart it"),
        (128, 5, False, "does nothing: its queue is not bounded by it (128)"),
        (4096, 128, False, "does nothing: its queue is not bounded by it (4,096)"),
        (4096, 4096, False, "raise both net.core.somaxconn and what it asks for in listen()"),
    ],
)
def test_a_longer_somaxconn_is_advised_only_where_it_bounds_the_queue(
    somaxconn: int, backlog: int, changed: bool, says: str
) -> None:
    listener = {"local_port": 443, "queued": backlog + 1, "backlog": backlog}
    host = {"sysctls": {"net.core.somaxconn": str(somaxconn)}, "listeners": [listener]}
    [finding] = rule_named("listen-drops").check(snapshot(host))
    assert bool(finding.changes) == changed and says in finding.advice
    counted = {"TcpExt.ListenOverflows": 441, "Tcp.PassiveOpens": 10_000}
    [finding] = rule_named("listen-drops").check(
        snapshot({**host, "listeners": [{**listener, "queued": 0}], "counters": counted})
    )
    assert bool(finding.changes) == changed
    # Each SYN/ACK that is sent again counts again: these are no connections.
    assert finding.told == "An accept queue was full 441 times, retries included; 10,000 connections were accepted."


@pytest.mark.parametrize(
    ("kind", "packets", "mean", "is_told"),
    [
        ("veth", 1_000_000, 56_000, False),
        ("veth", 1_000_000, 1_514, True),
        ("veth", 1_000_000, 70, False),
        ("veth", 900, 1_514, False),
        ("veth", None, 0, False),
        (None, 1_000_000, 36_000, False),
        (None, 1_000_000, 70, True),
        (None, None, 0, True),
    ],
)
def test_gro_that_is_off_is_told_where_it_has_work(
    kind: str | None, packets: int | None, mean: int, is_told: bool
) -> None:
    device = {"interface": "eth0", "kind": kind, "operstate": "up", "loopback": False, "mtu_bytes": 1500}
    counted = {"rx_packets": packets, "rx_bytes": None if packets is None else packets * mean}
    off = {"interface": "eth0", "fixed": False, "on": False}
    names = ("generic-receive-offload", "scatter-gather")

    def found(*off_too: str) -> list[str]:
        rows = [{**off, "name": name} for name in off_too]
        taken = snapshot({"interfaces": [{**device, **counted}], "without": ["offloads"], "offloads": rows})
        return [str(one.evidence["off"]) for one in rule_named("offloads-off").check(taken)]

    assert found(names[0]) == ([names[0]] if is_told else [])
    # The other offloads are judged by themselves.
    assert found(*names) == [", ".join(names) if is_told else names[1]]


@pytest.mark.parametrize(
    ("default", "is_near", "says"),
    [
        ("bbr", False, "New connections get bbr already"),
        ("bbr", True, "New connections get bbr already"),
        ("cubic", True, "others of this host stay near"),
        ("htcp", False, "by their route (ip route … congctl bbr), or in their program"),
    ],
)
def test_the_advice_for_lossy_paths_says_of_others_what_is_so(default: str, is_near: bool, says: str) -> None:
    groups = [sockets(busy_connections=5, data_segs_out=10_000, retrans_segs=300), *([near()] if is_near else [])]
    host = {"sysctls": {"net.ipv4.tcp_congestion_control": default}, "without": ["sockets"], "sockets": groups}
    [finding] = rule_named("loss-based-on-lossy-path").check(snapshot(host))
    assert says in finding.advice and not finding.changes
    assert ("stay near" in finding.advice) == (is_near and default == "cubic")


@pytest.mark.parametrize(
    ("sent", "again", "severity"),
    [(999, 90, None), (1_000, 15, None), (1_000, 16, "advice"), (6_000, 99, "advice"), (6_000, 100, "warning")],
)
def test_a_slow_flow_on_a_lossy_path_is_told_within_seconds(sent: int, again: int, severity: str | None) -> None:
    group = sockets(busy_connections=1, data_segs_out=sent, retrans_segs=again)
    found = rule_named("loss-based-on-lossy-path").check(snapshot({"without": ["sockets"], "sockets": [group]}))
    assert [one.severity for one in found] == ([severity] if severity else [])
    assert "1,000 segments" in rule_named("loss-based-on-lossy-path").section("What it sees")


@pytest.mark.parametrize(
    ("name", "found", "mended"),
    [
        ("rmem", "100000 50000 6291456", "4096 50000 6291456"),
        ("wmem", "10000 5000 4194304", "4096 5000 4194304"),
        ("wmem", "10000 2000 4194304", "2000 2000 4194304"),
        ("wmem", "4096 16384 4000", "4096 16384 4194304"),
        ("rmem", "4096 131072 4000", "4096 131072 6291456"),
        ("rmem", "9000 2097152 134217728", "9000 131072 134217728"),
        ("rmem", "4096 131072 2147483647", "4096 131072 67108864"),
        ("rmem", "8192 131072 -2126562996", "8192 131072 67108864"),
    ],
)
def test_bounds_that_make_no_sense_change_where_they_are_wrong(name: str, found: str, mended: str) -> None:
    sysctl = f"net.ipv4.tcp_{name}"
    [finding] = rule_named("buffer-trap").check(snapshot({"sysctls": {sysctl: found}}))
    assert [change.json()["value"] for change in finding.changes] == [mended]


def test_what_is_proposed_for_a_buffer_is_no_trap_itself() -> None:
    values = ("-1", "0", "1", "5000", "100000", "1048575", "1048576", "1073741824", "2147483647")
    for name, words in product(("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"), product(values, repeat=3)):
        for finding in rule_named("buffer-trap").check(snapshot({"sysctls": {name: " ".join(words)}})):
            [change] = finding.changes
            again = rule_named("buffer-trap").check(snapshot({"sysctls": {name: change.json()["value"]}}))
            assert not again, (words, change.json()["value"])


def test_retransmissions_are_no_more_than_all_that_was_sent() -> None:
    """Tcp.OutSegs leaves them out (tcp_transmit_skb() counts what is after snd_nxt)."""
    counters = {"Tcp.OutSegs": 20_000, "Tcp.RetransSegs": 30_000}
    more = {"TcpExt.TCPDSACKRecv": 15_000, "TcpExt.TCPTimeouts": 20_000}
    [finding] = rule_named("spurious-retransmissions").check(snapshot({"counters": {**counters, **more}}))
    assert finding.evidence["retransmit_pct"] == 60
    [finding] = rule_named("losses-found-by-timeout").check(snapshot({"counters": {**counters, **more}}))
    assert finding.told == "20,000 timeouts; 30,000 of 50,000 segments sent were retransmissions."
    assert finding.evidence["sent_segs"] == 50_000


def test_connections_over_ipv6_use_ports_too() -> None:
    outward = {"Tcp.ActiveOpens": 90_000_000, "TCP.tw": 10_000}
    assert not rule_named("few-ports").check(snapshot({"counters": outward}))
    [finding] = rule_named("few-ports").check(snapshot({"counters": {**outward, "TCP6.inuse": 5_000}}))
    assert finding.told.startswith("15,420 connections are open or in TIME_WAIT")
    assert (finding.evidence["in_use"], finding.evidence["time_wait"]) == (5_420, 10_000)


@pytest.mark.parametrize(
    ("dropped", "passed", "share"),
    [(3_000_000, 1_000_000, "75"), (30_000, 399_970_000, "0.0075"), (10, 1_000, "0.99"), (9_999_999, 1, "100")],
)
def test_the_gain_of_fewer_drops_is_a_share_of_the_packets_that_came(dropped: int, passed: int, share: str) -> None:
    gain = f"Up to {share} % of the packets are no longer lost here."
    of_cpu = {"without": ["softnet"], "softnet": [{"cpu": 0, "dropped": dropped, "processed": passed}]}
    [finding] = rule_named("softnet-drops").check(snapshot(of_cpu))
    assert finding.told.startswith(f"{dropped:,} of {dropped + passed:,} packets") and finding.gain == gain
    if dropped * 1_000 < passed:
        return
    [finding] = rule_named("qdisc-drops").check(virtual("veth", {"kind": "pfifo", "drops": dropped, "packets": passed}))
    assert finding.told.startswith(f"pfifo 8001: dropped {dropped:,} of {dropped + passed:,} packets")
    assert finding.gain == gain


@pytest.mark.parametrize(
    ("speed_mbit", "rtt_us", "told", "wanted", "times"),
    [
        (1_000, 26_000, "can get 968 of 1,000 Mbit/s", 8 << 20, "1.03"),
        (10_000, 18_000, "can get 1398 of 10,000 Mbit/s", 64 << 20, "7.15"),
        # 256 MiB, the most that is proposed, is too little for 10 Gbit/s.
        (10_000, 200_000, "can get 126 of 10,000 Mbit/s", 256 << 20, "42.7"),
    ],
)
def test_a_larger_receive_buffer_gains_no_more_than_the_path_has(
    speed_mbit: int, rtt_us: int, told: str, wanted: int, times: str
) -> None:
    host = {
        "interfaces": [{"interface": "eth0", "speed_bits_per_sec": speed_mbit * 1_000_000}],
        "sysctls": {"net.ipv4.tcp_rmem": "4096 131072 6291456"},
        "without": ["sockets"],
        "sockets": [sockets(min_rtt_us_p50=rtt_us, bytes_received=5_000_000_000)],
    }
    [finding] = rule_named("receive-buffer-below-path").check(snapshot(host))
    assert told in finding.told and finding.gain.startswith(f"Up to {times} times the rate")
    assert [change.json()["value"] for change in finding.changes] == [f"4096 131072 {wanted}"]


@pytest.mark.parametrize(("rate_mbit", "times"), [(10, 9), (200, 100)])
def test_what_the_simulator_gives_bbr_on_lossy_paths_is_said_with_its_rate(rate_mbit: int, times: int) -> None:
    run = tcpknee.compare("cubic", "bbr1", rate=f"{rate_mbit}Mbit/s", rtt="100ms", loss="1.5%", repeat=1)
    goodput = {row["algorithm"]: row["goodput_bits_per_sec"] for row in run.flows.arrow().to_pylist()}
    assert 0.8 < goodput["bbr1"] / goodput["cubic"] / times < 1.25
    group = sockets(busy_connections=5, data_segs_out=10_000, retrans_segs=300)
    [finding] = rule_named("loss-based-on-lossy-path").check(snapshot({"without": ["sockets"], "sockets": [group]}))
    assert re.search(rf"\b{times} times .*\b{rate_mbit} Mbit/s", finding.gain)
