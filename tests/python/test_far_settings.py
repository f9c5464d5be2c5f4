"""What a scenario asks of two real hosts, and where they differ from it."""

from __future__ import annotations

import os
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tcpknee.errors import EngineError, UsageError
from tcpknee.remote import settings
from tcpknee.remote.transport import Connection, addresses_of
from tcpknee.runs import api, between, far_settings, hosts_text
from tcpknee.runs.job import Job
from tcpknee.runs.pair import Pair

SCENARIO = """
duration = "1s"
[path]
rate = "80Mbit/s"
rtt = "20ms"
loss = "1%"
[sender]
tcp_wmem_max = "5MiB"
tcp_comp_sack_delay = "2ms"
tcp_rto_min = "50ms"
initcwnd = 20
pacing = "fq"
rx_coalesce = "50us"
[receiver]
gro = false
[[flow]]
algorithm = ["reno", "cubic"]
"""
THERE = """sysctl net.ipv4.tcp_wmem = 4096 20000 4194304
sysctl net.ipv4.tcp_rto_min_us = 50000
eth0 qdisc fq_codel 0 ffffffff 00
eth0 rx-gro on
"""

NAMES = {role: {name: name for name in ("reno", "cubic")} for role in ("sender", "receiver")}
"""What both hosts call the algorithms."""


def given(text: str) -> dict[str, settings.Given]:
    scenario = api.parse(text, "f.toml")
    texts = [scenario.write_cell(index) for index in range(len(scenario.cells))]
    return settings.given(scenario.cells, texts, "f.toml")


def test_only_what_the_file_says_is_asked_of_a_host_in_the_kernels_units() -> None:
    wanted, left = settings.wanted(given(SCENARIO)["sender"], THERE, "10.0.0.2")
    assert wanted == [
        {"kind": "sysctl", "name": "net.ipv4.tcp_wmem", "value": "4096 20000 5242880"},
        {"kind": "sysctl", "name": "net.ipv4.tcp_comp_sack_delay_ns", "value": "2000000"},
        {"kind": "sysctl", "name": "net.ipv4.tcp_rto_min_us", "value": "50000"},
        {"kind": "route", "towards": "10.0.0.2", "initcwnd": 20},
        {"kind": "qdisc", "towards": "10.0.0.2", "qdisc": "fq"},
    ]
    assert left == ["rx_coalesce"]
    assert settings.wanted(given(SCENARIO)["receiver"], THERE, "10.0.0.1") == (
        [{"kind": "offload", "towards": "10.0.0.1", "feature": "gro", "on": False}],
        [],
    )


def test_what_two_keys_ask_of_a_host_is_asked_once() -> None:
    text = SCENARIO.replace("initcwnd = 20", 'qdisc = "fq"\ngso_max = "0B"\ntso = false')
    assert settings.wanted(given(text)["sender"], THERE, "10.0.0.2")[0][3:] == [
        {"kind": "qdisc", "towards": "10.0.0.2", "qdisc": "fq"},
        {"kind": "offload", "towards": "10.0.0.2", "feature": "tso", "on": False},
    ]


def test_differences_are_told_and_what_agrees_is_not() -> None:
    told = settings.differences(given(SCENARIO)["sender"], THERE, "10.0.0.2")
    assert "sender: net.ipv4.tcp_wmem is 4096 20000 4194304, and the scenario says 4096 20000 5242880" in told
    assert "sender: the qdisc is not fq, as the scenario says" in told
    assert not any("rto_min" in line for line in told)
    assert settings.differences(given(SCENARIO)["receiver"], THERE, "10.0.0.1") == [
        "receiver: gro is on, and the scenario says off"
    ]


def test_a_host_is_set_once_for_a_run() -> None:
    with pytest.raises(UsageError, match=r"sender\.initcwnd: got 10 and 20; expected one value"):
        given(SCENARIO.replace("initcwnd = 20", "initcwnd = [10, 20]"))


def test_netem_has_half_of_the_delay_on_either_side_and_the_path_at_the_sender() -> None:
    scenario = api.parse(SCENARIO, "f.toml")
    path = settings.netem(scenario.cells[0], "10.0.0.2", "10.0.0.1", "f.toml")
    assert path["sender"] == {
        "kind": "netem",
        "towards": "10.0.0.2",
        "delay_us": 10_000,
        # 133 packets of the buffer, 66 on their way, and one that is sent.
        "limit_packets": 133 + 67 + 1,
        "loss_ppb": 10_000_000,
        "rate_bits_per_sec": 80_000_000,
    }
    assert path["receiver"]["delay_us"] == 10_000
    assert "loss_ppb" not in path["receiver"]
    other = api.parse(SCENARIO.replace('loss = "1%"', 'queue = "fq_codel"'), "f.toml")
    with pytest.raises(UsageError, match=r"path\.queue: got fq_codel with --netem"):
        settings.netem(other.cells[0], "10.0.0.2", "10.0.0.1", "f.toml")


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('jitter = ["0s", "1ms"]', "path.jitter: got 1ms"),
        ('reorder = "1%"', "path.reorder: got 1%"),
        ('duplicate = "1%"', "path.duplicate: got 1%"),
        ('policer_rate = "10Mbit/s"', "path.policer_rate: got 10Mbit/s"),
        ('overhead = "20B"', "path.overhead: got 20B"),
        ('mtu = "9000B"', "path.mtu: got 9000B"),
        ('ack_rate = "1Mbit/s"', "path.ack_rate: got 1Mbit/s"),
        ('rtt_change = "0.5s to 40ms"', "path.rtt_change: got"),
        ('outage = "0.5s for 100ms"', "path.outage: got"),
    ],
)
def test_what_netem_does_not_make_of_a_path_is_refused_in_any_cell(line: str, key: str) -> None:
    scenario = api.parse(SCENARIO.replace('loss = "1%"', line), "f.toml")
    with pytest.raises(UsageError, match=rf"f\.toml: {re.escape(key)}.* with --netem; expected a path of rate, rtt"):
        for cell in scenario.cells:
            settings.netem(cell, "10.0.0.2", "10.0.0.1", "f.toml")


def test_a_rate_trace_a_flows_own_rtt_and_hops_are_refused_with_netem() -> None:
    for old, new, key in (
        ('"80Mbit/s"', '"trace cellular"', "path.rate"),
        ("[[flow]]", '[[flow]]\nrtt = "50ms"', "flow.0.rtt"),
        ("[path]", "[[hop]]", "hop.0.rate"),
    ):
        text = SCENARIO.replace(old, new)
        text += '[[hop]]\nrate = "70Mbit/s"\nrtt = "1ms"\n' if new == "[[hop]]" else ""
        scenario = api.parse(text, "f.toml")
        with pytest.raises(UsageError, match=rf"{key}: got .* with --netem"):
            settings.netem(scenario.cells[0], "10.0.0.2", "10.0.0.1", "f.toml")


def test_the_text_of_a_run_says_what_was_set_whether_it_is_back_and_what_differs() -> None:
    one = {"setting": "eth0 qdisc", "was": "fq_codel", "is": "netem"}
    told = {
        "sender": {"of_cells": [one], "as_before": True, "differs": []},
        "receiver": {"differs": ["receiver: gro is on, and the scenario says off"]},
    }
    session = {"hosts": told}
    assert hosts_text.lines({"sessions": [session, session]}) == [
        "Hosts",
        "  sender: eth0 qdisc was fq_codel, and netem for the run",
        "  sender: all settings are as before",
        "  sender: netem gets what TCP hands over, of up to 64 KiB with tso: it delays, counts and loses such a "
        "packet as one",
        "  receiver: gro is on, and the scenario says off",
    ]
    told["sender"]["as_before"] = False
    assert "  sender: not all settings are as before: see the warnings" in hosts_text.lines({"sessions": [session]})
    assert hosts_text.lines({"sessions": [{}]}) == []


def test_what_changed_on_a_host_is_told_line_by_line() -> None:
    assert settings.compared("a = 1\nb = 2\n", "a = 1\nb = 2\n") == []
    assert settings.compared("a = 1\nb = 2\n", "a = 1\nb = 3\n") == ["-b = 2", "+b = 3"]


def test_who_is_not_root_is_told_what_could_not_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EngineError, match=r"sender local: settings cannot be made there: .* is not root.*NOPASSWD"):
        Connection("local", "sender local", holds=True)


def test_what_one_host_did_not_put_back_is_told_where_the_other_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    class Holder:
        def __init__(self, role: str, *_: object) -> None:
            if role == "receiver":
                raise EngineError("receiver local: a setting cannot be made: no.")
            self.held: list[dict[str, str]] = []

        def end(self) -> list[str]:
            return ["sender local: Not put back: sysctl a: it is 3"]

    def host(role: str, there: str = THERE) -> Any:
        said = {"settings": there, "recorded": {"files": {}}}
        return SimpleNamespace(
            role=role, name="local", where=f"{role} local", ask=lambda what, **_: said[what], close=lambda: None
        )

    monkeypatch.setattr(far_settings.holding, "Holder", Holder)
    monkeypatch.setattr(far_settings, "Helper", lambda role, _: host(role, f"{THERE}a = 3\n"))
    scenario = api.parse(SCENARIO, "f.toml")
    job = Job(scenario, SCENARIO, "f.toml", allow_host_settings=True, pair=Pair("local", "local"))
    addresses = {"sender": "127.0.0.1", "receiver": "127.0.0.1"}
    held = far_settings.HostSettings(job, (host("sender"), host("receiver")), addresses, NAMES)
    with pytest.raises(EngineError, match="receiver local: a setting cannot be made"), held:
        pytest.fail("it is held")
    assert job.told["warnings"] == [
        "sender local: Not put back: sysctl a: it is 3",
        "sender local: settings are not as they were before the run: +a = 3",
        "receiver local: settings are not as they were before the run: +a = 3",
    ]
    assert job.told["sender"]["as_before"] is False


def test_a_host_without_root_speaks_of_itself_alone() -> None:
    one = Connection.__new__(Connection)
    one.where, one.holds = "receiver b", True
    assert "Nothing was changed there." in str(one.lost("tcpknee-no-root me"))
    assert "either host" not in str(one.lost("tcpknee-no-root me"))
    one.holds = False
    assert "packets cannot be captured there: me is not root" in str(one.lost("tcpknee-no-root me"))


def pair_of(told: str) -> tuple[Any, ...]:
    """Two hosts behind ssh, of which the receiver tells that address."""
    facts = {"sender": ["192.0.2.9", "192.0.2.1"], "receiver": ["192.0.2.9", told]}
    return tuple(
        SimpleNamespace(
            role=role,
            name=role[0],
            where=f"{role} {role[0]}",
            facts={"ssh": facts[role]},
            ask=lambda what, **_: {"files": {}} if what == "recorded" else THERE,
        )
        for role in ("sender", "receiver")
    )


@pytest.mark.parametrize(
    "told", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "224.0.0.1", "ff02::1", "0.0.0.0", "255.255.255.255", "nonsense"]
)
def test_a_host_does_not_say_that_the_other_one_connects_to_itself_or_to_many(
    told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(api.parse(SCENARIO, "f.toml"), SCENARIO, "f.toml")
    sender, receiver = pair_of(told)
    with pytest.raises(EngineError, match=r"receiver r: got .* as its address.*--address"):
        between.Hosts(job, sender, receiver, Pair("s", "r"), NAMES)
    hosts = between.Hosts(job, *pair_of("192.0.2.2"), Pair("s", "r"), NAMES)
    assert hosts.addresses == {"sender": "192.0.2.1", "receiver": "192.0.2.2"}
    monkeypatch.setattr(between, "source_towards", lambda *_: None)
    assert between.Hosts(job, sender, receiver, Pair("s", "r", "192.0.2.3"), NAMES).addresses["receiver"] == "192.0.2.3"


@pytest.mark.parametrize(
    ("asked", "said", "expected"),
    [
        (0, 22, "one from 1024"),
        (0, 70_000, "one from 1024"),
        (5001, 5002, "port 5001"),
        (443, 443, None),
        (0, 4000, None),
    ],
)
def test_a_host_listens_where_it_was_told_and_at_no_port_of_roots(asked: int, said: int, expected: str | None) -> None:
    job = Job(api.parse(SCENARIO, "f.toml"), SCENARIO, "f.toml")
    hosts = between.Hosts(job, *pair_of("192.0.2.2"), Pair("s", "r", port=asked), NAMES)
    hosts.host_settings._before["receiver"] = THERE
    told = {"ports": [said], "everywhere": False}
    one: Any = SimpleNamespace(role="receiver", where="receiver r", ask=lambda *_, **__: told)
    if expected is None:
        assert hosts._prepare(one, 0, 1) == told
    else:
        with pytest.raises(EngineError, match=f"receiver r: listens at port {said}; expected {expected}"):
            hosts._prepare(one, 0, 1)


PROGRAMS = """
title = "Programs"
duration = "1s"
repeat = 1
[path]
rate = "80Mbit/s"
rtt = "20ms"
[sender]
initcwnd = 23
[[flow]]
algorithm = ["reno", "cubic"]
workload = "programs"
server = "iperf3 -s -p 443"
client = "iperf3 -c {server} -p 443"
"""


@pytest.mark.parametrize(
    ("told", "expected"),
    [([[5201]], None), ([[443]], None), ([[22]], "port 22, which is one of root's"), ([], "got 0; expected 1")],
)
def test_a_server_listens_at_a_port_of_roots_where_its_command_names_it(told: Any, expected: str | None) -> None:
    job = Job(api.parse(PROGRAMS, "f.toml"), PROGRAMS, "f.toml")
    hosts = between.Hosts(job, *pair_of("192.0.2.2"), Pair("s", "r"), NAMES)
    if expected is None:
        assert hosts._servers(told, 0) == told
    else:
        with pytest.raises(EngineError, match=expected):
            hosts._servers(told, 0)


def test_programs_get_the_congestion_control_of_a_cell_by_a_route_with_what_else_it_has() -> None:
    there = THERE.rstrip("\n") + "\nsysctl net.ipv4.tcp_congestion_control = cubic\n"
    job = Job(api.parse(PROGRAMS, "f.toml"), PROGRAMS, "f.toml", allow_host_settings=True, pair=Pair("s", "r"))
    addresses = {"sender": "192.0.2.1", "receiver": "192.0.2.2"}
    held = far_settings.HostSettings(job, pair_of("192.0.2.2"), addresses, NAMES)
    held._before = {"sender": there, "receiver": there}
    held._windows = {"sender": {"kind": "route", "towards": "192.0.2.2", "initcwnd": 23}}
    route = {"kind": "route", "towards": "192.0.2.2", "initcwnd": 23}
    assert held._wanted(0) == {"sender": [{**route, "congctl": "reno"}]}
    assert held._wanted(1) == {"sender": [route]}
    window = {"kind": "route", "towards": "192.0.2.1", "initcwnd": 7}
    held._windows["receiver"] = window
    assert held._wanted(1) == {"sender": [route], "receiver": [window]}
    alone = replace(job, allow_host_settings=False)
    held = far_settings.HostSettings(alone, pair_of("192.0.2.2"), addresses, NAMES)
    held._before = {"sender": there, "receiver": there}
    told: dict[str, dict[str, Any]] = {"sender": {"differs": []}, "receiver": {"differs": []}}
    with pytest.raises(UsageError, match="got reno for programs; expected cubic, which is what sender s gives them"):
        held._check_congestion(0, told)
    held._check_congestion(1, told)
    assert told == {"sender": {"differs": []}, "receiver": {"differs": []}}
    assert held._wanted(1) == {}
    held._before["receiver"] = there.replace("= cubic", "= reno")
    held.receiver_says = True
    held._check_congestion(1, told)
    assert told["receiver"] == {"differs": ["receiver: programs run reno, and receiver.algorithm is cubic"]}


def test_an_algorithm_of_the_receiver_is_no_setting_of_its_host() -> None:
    receiver = given(SCENARIO.replace("gro = false", 'algorithm = "reno"'))["receiver"]
    assert receiver.values == {"algorithm": "reno"}
    assert settings.wanted(receiver, THERE, "10.0.0.1") == ([], [])


def test_roots_device_follows_from_an_address_that_ssh_knows_or_the_user_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ssh").write_text(
        "#!/bin/sh\nfor name; do :; done\n"
        'case "$name" in s) echo hostname 192.0.2.1;; ip*) echo "192.0.2.7 dev x src 192.0.2.1";; '
        "*) echo hostname 192.0.2.2;; esac\n",
        encoding="utf-8",
    )
    (tmp_path / "ssh").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(far_settings.holding, "held", lambda *_: nullcontext({}))

    def check(told: str, pair: Pair, text: str = SCENARIO) -> None:
        job = Job(api.parse(text, "f.toml"), text, "f.toml", allow_host_settings=True, pair=pair)
        between.Hosts(job, *pair_of(told), pair, NAMES).host_settings.__enter__()

    check("192.0.2.2", Pair("s", "r"))
    check("192.0.2.7", Pair("s", "r", "192.0.2.7"))
    fake = (tmp_path / "ssh").read_text(encoding="utf-8")
    (tmp_path / "ssh").write_text(fake.replace("src 192.0.2.1", "src 192.0.2.9"), encoding="utf-8")
    with pytest.raises(
        EngineError, match=r"sender s: says that its address is 192\.0\.2\.9, and ssh knows 192\.0\.2\.1"
    ):
        check("192.0.2.7", Pair("s", "r", "192.0.2.7"))
    # No device of the receiver's is set, towards whom ever.
    check("192.0.2.7", Pair("s", "r", "192.0.2.7"), SCENARIO.replace("gro = false", 'tcp_rmem_max = "5MiB"'))
    with pytest.raises(
        EngineError, match=r"receiver r: says that its address is 192\.0\.2\.7, and ssh knows 192\.0\.2\.2"
    ):
        check("192.0.2.7", Pair("s", "r"))
    (tmp_path / "ssh").write_text("#!/bin/sh\nexit 255\n", encoding="utf-8")
    with pytest.raises(EngineError, match="ssh knows none"):
        check("192.0.2.2", Pair("s", "r"))
    (tmp_path / "ssh").write_text("#!/bin/sh\necho 'hostname [2001:db8::1]'\n", encoding="utf-8")
    assert addresses_of("r") == {"2001:db8::1"}
