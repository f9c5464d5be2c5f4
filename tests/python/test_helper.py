"""What is heard from a host: bounds of time and memory, whatever the host says. A script stands for the helper."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tcpknee.errors import EngineError
from tcpknee.remote import helper, transport
from tcpknee.remote.helper import Helper
from tcpknee.runs import between

Start = Callable[..., Helper]

HELLO = {
    **dict.fromkeys(("version", "machine", "kernel", "host", "boot"), "x"),
    "uid": 0,
    "processors": 2,
    "ssh": None,
    "available": [],
    "allowed": [],
    "counters": {},
}
DONE = {
    "ended_ns": 1,
    "progress": [],
    "reports": [],
    "congestion": {},
    "connections": [],
    "programs": [],
    "samples": 0,
    "missed": 0,
    "records_bytes": 0,
}
PATH = {"rtt_us_least": 1, "rtt_us_median": 1, "rate_bits_per_sec": None, "retransmit_pct": None, "bytes": 0}
PONG = {"n": 0, "monotonic_ns": 1, "realtime_ns": 1}


def done(records_bytes: int) -> str:
    """That a repetition is over, and so many bytes of samples follow."""
    return says("done", {**DONE, "records_bytes": records_bytes})


def says(name: str, value: Any) -> str:
    """A word of the shell that says so, as the helper does."""
    return f"echo '{json.dumps({name: value})}'"


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """A helper that does what a script of shell says behind its first answer."""
    started: list[Helper] = []

    def begin(script: str, role: str = "sender") -> Helper:
        program = tmp_path / role
        program.write_text(f"#!/bin/sh\nread -r _; {says('hello', HELLO)}\n{script}\n", encoding="utf-8")
        program.chmod(0o700)
        monkeypatch.setattr(transport, "program_for", lambda *_: program)
        started.append(Helper(role, "local"))
        return started[-1]

    yield begin
    for one in started:
        one.close()


def test_samples_are_collected_without_reading_their_line_again(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    one = start(f"read -r _; {done(4_000_000)}; head -c 4000000 /dev/zero; read -r _")
    lines: list[bytes] = []
    loads = json.loads
    monkeypatch.setattr(json, "loads", lambda line, **how: (lines.append(line), loads(line, **how))[1])
    one.tell("start")
    while not (heard := one.hear(5)):
        pass
    assert [said["done"]["records"] for said in heard] == [bytes(4_000_000)]
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("head -c 5000 /dev/zero; read -r _", "says a line of more than 4000 bytes"),
        (f"{done(1_000_000_000)}; read -r _", "got 1000000000 bytes of records"),
        (f"{done(-1)}; read -r _", "said what no helper says: done.records_bytes"),
    ],
)
def test_a_host_that_says_too_much_is_refused(
    start: Start, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    monkeypatch.setattr(helper, "_MOST_LINE_BYTES", 4000)
    one = start(f"read -r _; {script}")
    with pytest.raises(EngineError, match=f"sender local: {told}"):
        one.ask("start")


def hear_out(pair: list[Helper]) -> Any:
    hosts = between.Hosts.__new__(between.Hosts)
    hosts.sender, hosts.receiver = pair
    hosts.cells = [{"duration_ns": 100_000_000}]  # type: ignore[assignment]
    return hosts._hear_out(0, time.monotonic_ns(), None, None)


def test_a_repetition_ends_though_its_hosts_only_answer_the_heartbeat(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(between, "PATIENCE_SEC", 0.2)
    pong = f"while read -r _; do {says('pong', PONG)}; done"
    with pytest.raises(EngineError, match="sender local: did not answer within"):
        hear_out([start(pong), start(pong, "receiver")])


def test_samples_that_trickle_are_given_up(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(between, "PATIENCE_SEC", 0.2)
    script = f"read -r _; {done(1000)}; while sleep 0.1; do echo; done"
    pair = [start(script), start(script, "receiver")]
    monkeypatch.setattr(helper, "PATIENCE_SEC", 0.2)
    for one in pair:
        one.tell("start")
    with pytest.raises(EngineError, match="its samples come more slowly than 10 kB/s"):
        hear_out(pair)


def test_of_what_a_host_says_beside_its_helper_the_end_is_kept_and_told_shortly(start: Start) -> None:
    one = start("head -c 3000000 /dev/zero | tr '\\0' a >&2; read -r _; echo >&2; echo last >&2; exit 1")
    with pytest.raises(EngineError) as refused:
        one.ask("start")
    assert str(refused.value).count("a" * 300) == 1
    assert "/ last)" in str(refused.value)
    assert len(str(refused.value)) < 700
    assert len(one._connection._words_of_ssh) <= transport._WORDS_BYTES


def by_ssh(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    (folder / "ssh").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / "ssh").chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("read -r _", "no command ran there within 0 s"),
        ("while echo noise; do :; done", r"it says 'noise.* and more before any command runs"),
        ("head -c 100000 /dev/zero; read -r _", r"it says .* and more before any command runs"),
        ("echo tcpknee-machine x86_64; sleep 10", "took nothing in for"),
    ],
)
def test_a_host_is_not_waited_for_without_end_before_the_helper_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    by_ssh(tmp_path, monkeypatch, script)
    program = tmp_path / "program"
    program.write_bytes(bytes(200_000))
    monkeypatch.setattr(transport, "program_for", lambda *_: program)
    monkeypatch.setattr(transport, "_BEGINNING_SEC", 0.3)
    with pytest.raises(EngineError, match=rf"(?s)receiver b: {told}"):
        transport.Connection("b", "receiver b")


def test_ssh_is_told_to_hand_nothing_of_the_users_to_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_ssh(tmp_path, monkeypatch, f'printf "%s\\n" "$@" > {tmp_path}/words; exit 255')
    with pytest.raises(EngineError, match="the connection by ssh is not there"):
        transport.Connection("b", "receiver b")
    words = (tmp_path / "words").read_text().split("\n")
    options = words[: words.index("--")]
    assert {"-a", "-x", "-oClearAllForwardings=yes", "-oRemoteCommand=none", "-oPermitLocalCommand=no"} <= set(options)


def test_a_process_that_may_not_be_killed_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def wait(seconds: float) -> int:
        waited.append(seconds)
        if len(waited) == 1:
            raise subprocess.TimeoutExpired("sudo", seconds)
        return 0

    def kill() -> None:
        raise PermissionError(1, "Operation not permitted")

    pipe = SimpleNamespace(close=lambda: None)
    one = transport.Connection.__new__(transport.Connection)
    one.process = SimpleNamespace(stdin=pipe, stdout=pipe, wait=wait, kill=kill)  # type: ignore[assignment]
    one.close()
    assert waited == [3, transport._END_SEC]


def test_the_path_is_measured_with_the_patience_that_its_length_takes() -> None:
    asked: list[dict[str, Any]] = []
    one = SimpleNamespace(role="sender", ask=lambda _, **words: asked.append(words))
    hosts = between.Hosts.__new__(between.Hosts)
    hosts.sender = hosts.receiver = one  # type: ignore[assignment]
    hosts.secret = []
    for rtt_ns in (0, 10_000_000, 700_000_000, 3_000_000_000):
        hosts.block = None
        hosts.cells = [{"rtt_ns": rtt_ns, "rate_bits_per_sec": None}]  # type: ignore[assignment]
        hosts._measure_path({"sender": ["a:1"]}, 0, 1)
        took_sec = (asked[-1]["count"] + 1 + 4) * rtt_ns / 1e9 + asked[-1]["milliseconds"] / 1000
        assert asked[-1]["patience_sec"] > took_sec + helper.PATIENCE_SEC
    assert [words["count"] for words in asked] == [20, 20, 7, 5]


def test_an_answer_that_takes_work_is_waited_for(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    one = start(f"read -r _; sleep 0.3; {says('path', PATH)}; read -r _; sleep 3")
    monkeypatch.setattr(helper, "PATIENCE_SEC", 0.1)
    assert one.ask("path", patience_sec=5.0) == PATH
    with pytest.raises(EngineError, match="did not answer within"):
        one.ask("counters")
