"""`knee doctor`, `knee snapshot` and `knee list rules`, as they are typed."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from hosts import HOSTS
from made import Difference, qdiscs, snapshot

from support import Ended
from tcpknee.doctor.changes import Qdisc, change_of
from tcpknee.doctor.rules import RULES

Call = Callable[..., Ended]

BBR: Difference = {"sysctls": {"net.ipv4.tcp_congestion_control": "bbr"}, "without": ["qdiscs"]}
ROOT = os.geteuid() == 0


def written(folder: Path, name: str, difference: Difference | None = None) -> Path:
    file = folder / f"{name}.json"
    snapshot({**(difference or {}), "host": {**(difference or {}).get("host", {}), "host": name}}).write(file)
    return file


def test_the_worst_comes_first_and_something_wrong_is_exit_code_1(call: Call, tmp_path: Path) -> None:
    wrong = {
        "host": {"kernel": "4.9.0"},
        **BBR,
        "qdiscs": qdiscs("eth0", *["pfifo_fast"] * 4),
        "channels": [{"interface": "eth0", "combined": 1}],
    }
    ended = call("doctor", "--snapshot", written(tmp_path, "old", wrong))
    assert ended.code == 1
    heads = [line.split()[0] for line in ended.out.splitlines() if line.startswith(("CRITICAL", "WARNING", "ADVICE"))]
    assert heads[0] == "CRITICAL" and heads == sorted(heads, key=["CRITICAL", "WARNING", "ADVICE"].index)
    lines = ended.out.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("Do first, for bbr-without-fq (eth0)"))
    assert (
        lines[first + 1].strip() == "tc qdisc replace dev eth0 root handle 4b4e: mq" or "tc qdisc" in lines[first + 1]
    )


def test_what_this_kernel_cannot_do_is_not_the_first_thing_to_do(call: Call, tmp_path: Path) -> None:
    advised = {
        **BBR,
        "sysctls": {**BBR["sysctls"], "net.ipv4.tcp_slow_start_after_idle": "1"},
        "qdiscs": qdiscs("eth0", *["pfifo_fast"] * 4),
    }
    for has_fq, rule in ((True, "bbr-without-fq"), (False, "slow-start-after-idle")):
        ended = call("doctor", "--snapshot", written(tmp_path, "advised", {**advised, "host": {"has_fq": has_fq}}))
        assert f"Do first, for {rule} " in ended.out
        assert ("tc qdisc replace" in ended.out) is has_fq
    alone = {**advised, "sysctls": BBR["sysctls"], "host": {"has_fq": False}}
    ended = call("doctor", "--snapshot", written(tmp_path, "alone", alone))
    assert "Boot a kernel with" in ended.out and "Do first" not in ended.out


def test_a_well_tuned_host_and_mere_advice_are_exit_code_0(call: Call, tmp_path: Path) -> None:
    ended = call("doctor", "--snapshot", written(tmp_path, "tuned"))
    assert ended.code == 0 and "Nothing is wrong" in ended.out
    advised = written(tmp_path, "advised", {"sysctls": {"net.ipv4.tcp_slow_start_after_idle": "1"}})
    ended = call("doctor", "--snapshot", advised)
    assert ended.code == 0 and "1 advice: nothing is wrong yet" in ended.out


def test_json_has_every_finding_with_what_a_program_needs(call: Call, tmp_path: Path) -> None:
    file = written(tmp_path, "bbr", {**BBR, "qdiscs": qdiscs("eth0", *["fq_codel"] * 4)})
    found = json.loads(call("doctor", "--snapshot", file, "--json").out)
    assert found["schema"] == 1 and found["host"]["host"] == "bbr" and found["wrong"] is False
    [finding] = found["findings"]
    assert finding["rule"] == "bbr-without-fq" and finding["severity"] == "advice"
    assert list(map(change_of, finding["changes"])) == [Qdisc("eth0", "fq", leaves=4)]
    assert all(isinstance(word, str) for command in finding["commands"] for word in command)
    assert finding["evidence"]["qdiscs"] == "fq_codel" and finding["source"] and finding["why"] and finding["gain"]


def test_only_the_rules_that_are_named_are_asked(call: Call, tmp_path: Path) -> None:
    file = written(tmp_path, "drops", {"counters": {"arp_cache.entries": 1_000, "TcpExt.TCPRcvQDrop": 900_000}})
    found = json.loads(call("doctor", "receive-queue-pruned", "--snapshot", file, "--json").out)
    assert [finding["rule"] for finding in found["findings"]] == ["receive-queue-pruned"]
    refused = call("doctor", "receive-queue-prunes", "--snapshot", file)
    assert refused.code == 2 and 'Did you mean "receive-queue-pruned"?' in refused.err


def test_every_rule_is_listed_and_explained_in_80_columns(call: Call) -> None:
    listed = json.loads(call("list", "rules", "--json").out)["rules"]
    assert [rule["name"] for rule in listed] == [rule.name for rule in RULES]
    assert call("list", "rules").out.count("source: ") == len(RULES)
    for rule in RULES:
        lines = call("doctor", "--explain", rule.name).out.splitlines()
        assert lines[0].startswith(f"{rule.name}: ") and "Why it matters:" in lines
        assert any(line.startswith("With --measure: ") for line in lines)
        assert max(map(len, lines[1:])) <= 80
    assert set(json.loads(call("doctor", "--explain", "tw-recycle", "--json").out)) >= {"name", "why_it_matters"}


def test_options_that_say_nothing_together_are_refused(call: Call, tmp_path: Path) -> None:
    file = written(tmp_path, "a")
    assert call("doctor", "--snapshot", file, "--fleet", tmp_path).code == 2
    assert call("snapshot", "--json").code == 2
    assert "holds no *.json" in call("doctor", "--fleet", tmp_path / "none").err
    assert "no-such.json" in call("doctor", "--snapshot", tmp_path / "no-such.json").err


HOSTILE = "a;$(id)\x1b[2J"


def test_a_hostile_name_neither_drives_the_terminal_nor_a_shell(call: Call, tmp_path: Path) -> None:
    row = {"interface": HOSTILE, "ifindex": 5, "operstate": "up", "loopback": False, "rx_queues": 1, "tx_queues": 1}
    difference = {
        "host": {"host": "\x1b]0;owned\x07", "kernel": "6.1\u202e"},
        "sysctls": {"net.ipv4.tcp_congestion_control": "bbr"},
        "interfaces": [row],
        "qdiscs": qdiscs(HOSTILE, "pfifo_fast", root=None),
        "owners": [
            {"owner": "sysctl.d", "kind": "setting", "path": "/x\x1b", "name": "net.core.a;id", "value": "1"},
            {"owner": "sysctl.d", "kind": "setting", "path": "/x", "name": "net.ipv4.ip_forward", "value": "1"},
        ],
    }
    file = tmp_path / "hostile.json"
    snapshot(difference).write(file)
    ended = call("doctor", "--snapshot", file)
    assert "\x1b" not in ended.out and "\x07" not in ended.out and "\u202e" not in ended.out
    findings = json.loads(call("doctor", "--snapshot", file, "--json").out)["findings"]
    assert HOSTILE in {finding["subject"] for finding in findings}
    for finding in findings:
        for line in finding["confirm"]:
            if HOSTILE in line:
                assert HOSTILE in shlex.split(line)


def test_a_value_that_no_kernel_gives_ends_one_rule_and_not_the_report(call: Call, tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "odd",
        {
            "interfaces": [{"interface": "eth0", "rx_missed_errors": 900_000}],
            "rings": [{"interface": "eth0", "rx": -5, "rx_max": -1}],
            "counters": {"arp_cache.entries": 1 << 63, "TcpExt.TCPRcvQDrop": 900_000},
        },
    )
    ended = call("doctor", "--snapshot", file)
    assert ended.code == 1 and "receive-queue-pruned" in ended.out and not ended.err


def test_4096_interfaces_and_512_processors_are_told_by_a_few_of_each(call: Call, tmp_path: Path) -> None:
    whole = snapshot({"sysctls": {"net.ipv4.ip_forward": "1"}}, cpus=512).json()
    for at in range(4096):
        own = {"netns": whole["tables"]["interfaces"][0]["netns"], "interface": f"veth{at}"}
        whole["tables"]["interfaces"].append({**own, "kind": "veth", "operstate": "up", "loopback": False})
        whole["tables"]["queues"].append({**own, "direction": "rx", "number": 0, "rps_cpus": [1]})
        whole["tables"]["qdiscs"].append({**own, "kind": "fq", "handle": "0:", "parent": "root"})
    file = tmp_path / "many.json"
    file.write_text(json.dumps(whole))
    found = json.loads(call("doctor", "--snapshot", file, "--json").out)["findings"]
    assert sum(1 for finding in found if finding["rule"] == "rps-on-one-cpu") == 4096
    ended = call("doctor", "--snapshot", file)
    assert "rps-on-one-cpu also holds for 4,091 others" in ended.out and len(ended.out.splitlines()) < 200


def test_a_fleet_says_which_rule_hits_how_many_and_who_differs(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    folder.mkdir()
    for at in range(5):
        changed = {"sysctls": {"net.core.somaxconn": "128"}} if at == 3 else {}
        written(folder, f"web{at}", {**changed, **({"counters": {"TcpExt.TCPRcvQDrop": 9_000_000}} if at < 2 else {})})
    written(folder, "db", {"host": {"distribution": "rhel"}})
    (folder / "torn.json").write_text("{")
    ended = call("doctor", "--fleet", folder, "-q")
    assert ended.code == 1 and "6 hosts" in ended.out and "Not read: torn.json" in ended.out
    assert "net.core.somaxconn: 4096 on most of 5" in ended.out and "128: web3" in ended.out
    found = json.loads(call("doctor", "--fleet", folder, "--json", "-q").out)
    assert found["rules"] == [{"rule": "receive-queue-pruned", "severity": "warning", "hosts": ["web0", "web1"]}]
    assert found["drift"][0]["others"] == [{"value": "128", "hosts": ["web3"]}]


def test_a_fleet_without_a_readable_snapshot_is_refused(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text("{}")
    for options in ((), ("--json",)):
        ended = call("doctor", "--fleet", tmp_path, "-q", *options)
        assert (ended.code, ended.out) == (2, "")
        assert "holds 2 files *.json and no snapshot" in ended.err and "a.json: is not JSON" in ended.err


def test_every_made_host_survives_a_file(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "hosts"
    folder.mkdir()
    for host in HOSTS:
        snapshot(host.difference, cpus=host.cpus).write(folder / f"{host.name}.json")
    found = json.loads(call("doctor", "--fleet", folder, "--json", "-q").out)
    hit = {(rule["rule"], len(rule["hosts"])) for rule in found["rules"]}
    expected = {rule: sum(rule in host.expected for host in HOSTS) for host in HOSTS for rule in host.expected}
    assert hit == set(expected.items())


def test_a_snapshot_is_written_and_judged(call: Call, tmp_path: Path) -> None:
    ended = call("snapshot", "--out", "here.json")
    assert ended.code == 0 and "Snapshot: here.json" in ended.out
    assert json.loads(call("snapshot", "--out", "here.json", "--force", "--json").out)["rows"]["host"] == 1
    assert call("doctor", "--snapshot", "here.json").code in (0, 1)
    assert json.loads(call("snapshot").out)["format"] == "tcpknee-snapshot"


ODD = os.fsdecode(b"\xff\x1b[31m")
"""A name that the kernel takes, and that is neither UTF-8 nor fit for a terminal."""


@pytest.fixture
def namespace() -> Iterator[str]:
    """A network namespace with a veth whose packets all go to one processor."""
    if not ROOT or os.cpu_count() == 1:
        pytest.skip("a network namespace needs root; RPS needs two processors")
    name = f"knee-{uuid.uuid4().hex[:8]}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        for words in (
            ["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"],
            ["ip", "link", "set", "v1", "name", ODD],
            ["ip", "link", "set", "v0", "up"],
            ["ip", "link", "set", ODD, "up"],
            ["sysctl", "-qw", "net.ipv4.tcp_congestion_control=bbr"],
            ["sh", "-c", "echo 1 > /sys/class/net/v0/queues/rx-0/rps_cpus"],
        ):
            done = subprocess.run(["ip", "netns", "exec", name, *words], capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"{shlex.join(words)!a}: {done.stderr.strip()}")
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def test_a_namespace_of_veths_has_bbr_without_fq_and_one_processor_for_a_veth(call: Call, namespace: str) -> None:
    ended = call("doctor", "bbr-without-fq", "rps-on-one-cpu", "--netns", namespace, "--json")
    found = json.loads(ended.out)
    assert found["host"]["netns"] == namespace and found["host"].get("initial_netns") is not True
    assert {(finding["rule"], finding["subject"]) for finding in found["findings"]} >= {
        ("bbr-without-fq", "v0"),
        ("bbr-without-fq", ODD),
        ("rps-on-one-cpu", "v0"),
    }
    assert all(change["netns"] == namespace for finding in found["findings"] for change in finding["changes"])
    said = call("doctor", "bbr-without-fq", "--netns", namespace).out
    assert "\x1b" not in said and f"that namespace: ip netns exec {namespace}" in said
    assert call("doctor", "--netns", "no-such-namespace").code == 2
