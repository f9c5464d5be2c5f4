"""The engine hosts over ssh: two namespaces with an sshd each and a path between them; faults; nothing left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import probes
import tcpknee
from building import run
from lab import Lab, laid_out
from waiting import PATIENCE_SEC, until

RATE_BITS_PER_SEC = 50_000_000
SCENARIO = """
title = "Between two hosts"
duration = "1s"
warmup = "0.4s"
repeat = 2
[path]
rate = "50Mbit/s"
rtt = "10ms"
[[flow]]
algorithm = ["reno", "cubic"]
"""
SSHD = """
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
"""
SSH = """
Host c
  HostName 10.77.2.2
  Port 2223
Host *
  User root
  Port 2222
  IdentityFile {folder}/user
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
  StrictHostKeyChecking yes
Host a
  HostName 10.77.1.2
Host b
  HostName 10.77.2.2
"""


@dataclass
class Servers:
    """Two hosts that ssh knows as a and b; c is b where something is wrong. Commands run on a."""

    lab: Lab
    folder: Path

    def words(self, *words: object) -> list[str]:
        enter = ("ip", "netns", "exec", self.lab.sender, "env", f"PATH={self.folder}/bin:{os.environ['PATH']}")
        return [str(word) for word in (*enter, sys.executable, "-m", "tcpknee", "run", *words)]

    def knee(self, *words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.words(*words), capture_output=True, text=True, timeout=2 * PATIENCE_SEC)


@contextmanager
def listening(namespace: str, folder: Path, port: int = 2222, *options: str) -> Iterator[None]:
    """An sshd of that network namespace, by the files in that folder."""
    enter = ("ip", "netns", "exec", namespace)
    # Else a host does not reach its own address.
    run("ip", "-n", namespace, "link", "set", "lo", "up")
    words = ("/usr/sbin/sshd", "-D", "-e", "-p", str(port), "-f", str(folder / "sshd_config"), *options)
    sshd = subprocess.Popen([*enter, *words])
    try:
        until(lambda: f":{port}" in run(*enter, "ss", "-tlnH"), "sshd listens")
        yield
    finally:
        sshd.terminate()
        sshd.wait()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    probes.need_root("namespaces with a name")
    probes.need_programs("/usr/sbin/sshd", "ssh", "ssh-keygen")
    folder = tmp_path_factory.mktemp("ssh")
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "user"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name)
    (folder / "sshd_config").write_text(SSHD.format(folder=folder), encoding="utf-8")
    (folder / "config").write_text(SSH.format(folder=folder), encoding="utf-8")
    key = (folder / "host.pub").read_text(encoding="utf-8").split()[:2]
    places = ("[10.77.1.2]:2222", "[10.77.2.2]:2222", "[10.77.2.2]:2223")
    known = "".join(f"{place} {' '.join(key)}\n" for place in places)
    (folder / "known").write_text(known, encoding="utf-8")
    (folder / "bin").mkdir()
    (folder / "bin/ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {folder}/config "$@"\n', encoding="utf-8")
    (folder / "bin/ssh").chmod(0o755)
    (folder / "path.toml").write_text(SCENARIO, encoding="utf-8")
    with (
        laid_out(RATE_BITS_PER_SEC, 250_000) as lab,
        listening(lab.sender, folder),
        listening(lab.receiver, folder),
    ):
        yield Servers(lab, folder)


@contextmanager
def data_network(lab: Lab) -> Iterator[str]:
    """Both hosts have addresses of a second network over the same path; yields the receiver's."""
    places = ((lab.sender, "veth0", "1.2"), (lab.router, "to-a", "1.1"), (lab.receiver, "veth0", "2.2"))
    every = [(host, device, f"10.78.{rest}/24") for host, device, rest in (*places, (lab.router, "to-b", "2.1"))]
    for host, device, address in every:
        run("ip", "-n", host, "address", "add", address, "dev", device)
    run("ip", "-n", lab.sender, "route", "add", "10.78.2.0/24", "via", "10.78.1.1")
    run("ip", "-n", lab.receiver, "route", "add", "10.78.1.0/24", "via", "10.78.2.1")
    try:
        yield "10.78.2.2"
    finally:
        for host, device, address in every:
            run("ip", "-n", host, "address", "del", address, "dev", device)


def helpers(lab: Lab) -> list[int]:
    """The helpers that run on these hosts, by their process numbers."""
    networks = {Path(f"/run/netns/{name}").stat().st_ino for name in (lab.sender, lab.receiver)}
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and "knee-remote" in str((entry / "exe").readlink()):
                found += [int(entry.name)] if (entry / "ns/net").stat().st_ino in networks else []
        except OSError:
            continue
    return found


def is_sending(lab: Lab) -> bool:
    """Has a connection to the receiver carried a megabyte, but for those of ssh?"""
    told = run("ip", "netns", "exec", lab.receiver, "ss", "-tinH", "sport != :2222")
    return any(int(count) > 1_000_000 for count in re.findall(r"bytes_received:(\d+)", told))


HOSTS = ("--engine", "hosts", "--sender", "a", "--receiver", "b", "-q")


@pytest.mark.timed
def test_a_scenario_runs_between_two_hosts_over_ssh(servers: Servers, tmp_path: Path) -> None:
    done = servers.knee(servers.folder / "path.toml", *HOSTS, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    found = tcpknee.open(tmp_path / "run")
    flows = found.flows.arrow().to_pylist()
    assert [(row["cell"], row["rep"]) for row in flows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for row in flows:
        # Of IP packets of 1500 bytes 1448 are payload; the router's bucket counts Ethernet's 14 as well.
        assert row["goodput_bits_per_sec"] == pytest.approx(RATE_BITS_PER_SEC * 1448 / 1514, rel=0.03)
        assert row["min_rtt_us"] < 5_000
        assert row["bytes_sent"] >= row["bytes_acked"] > 0
    samples = found.samples.arrow().to_pylist()
    assert len(samples) > 4 * 50
    assert all(row["rcvbuf_bytes"] for row in samples[10:])
    meta = json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))
    named = {"sender": "a", "receiver": "b", "address": None, "port": 0}
    assert meta["hosts"] == {**named, "netem": False, "programs": False, "allow_host_settings": False}
    assert meta["labs"][0]["addresses"] == {"receiver": "10.77.2.2", "sender": "10.77.1.2"}
    measured = meta["repetitions"][0]["measured"]
    assert 0 < measured["path_rtt_us_least"] < 5_000
    assert measured["sender_clock_uncertainty_us"] < 20_000
    assert "Between a and b" in done.stdout
    assert "and path.rtt = 10.0 ms" in done.stdout
    until(lambda: not helpers(servers.lab), "the helpers are gone")


def test_packets_are_captured_at_both_hosts_with_times_of_one_beginning(servers: Servers, tmp_path: Path) -> None:
    done = servers.knee(servers.folder / "path.toml", *HOSTS, "--out", tmp_path / "run", "--capture", "8MB")
    assert done.returncode == 0, done.stderr
    found = tcpknee.open(tmp_path / "run")
    assert found.meta["labs"][0]["captured_of"] == {"sender": "veth0", "receiver": "veth0"}
    for flow in found.flows.arrow().to_pylist():
        rows = found.rows("packets", cell=flow["cell"], rep=flow["rep"]).to_pylist()
        of = {host: [row for row in rows if row["host"] == host] for host in ("sender", "receiver")}
        sent = sum(row["length_bytes"] - len(row["header"]) for row in of["sender"] if row["is_outbound"])
        # The last sample is taken before the last packet leaves, on a busy machine long before.
        assert flow["bytes_sent"] <= sent < 1.3 * flow["bytes_sent"]
        # The other host's clock is known to less than this, and no packet comes before it was sent.
        assert -1e6 < of["receiver"][0]["t_ns"] - of["sender"][0]["t_ns"] < 20e6
    until(lambda: not helpers(servers.lab), "the helpers are gone")


def test_a_receiver_keeps_its_own_algorithm_where_the_file_names_none(servers: Servers, tmp_path: Path) -> None:
    """Its host's, which may be one that the sender has not."""
    text = SCENARIO.replace('["reno", "cubic"]', '"reno"').replace("repeat = 2", "repeat = 1")
    (tmp_path / "path.toml").write_text(text, encoding="utf-8")
    key = "net.ipv4.tcp_congestion_control"
    enter = ("ip", "netns", "exec", servers.lab.receiver)
    own = run(*enter, "sysctl", "-n", key).strip()
    run(*enter, "sysctl", "-qw", f"{key}=reno")
    try:
        words = servers.words(tmp_path / "path.toml", *HOSTS, "--out", tmp_path / "run")
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as knee:
            until(lambda: is_sending(servers.lab), "it sends")
            told = run(*enter, "ss", "-tinH", "sport != :2222")
            _, stderr = knee.communicate(timeout=PATIENCE_SEC)
    finally:
        run(*enter, "sysctl", "-qw", f"{key}={own}")
    assert knee.returncode == 0, stderr
    assert "reno" in told and "cubic" not in told, told


def test_an_address_of_a_data_network_is_for_both_directions(servers: Servers, tmp_path: Path) -> None:
    asks = 'algorithm = "reno"\nworkload = "request-response"\nresponse = "64KiB"'
    text = SCENARIO.replace('algorithm = ["reno", "cubic"]', asks).replace("repeat = 2", "repeat = 1")
    (tmp_path / "asks.toml").write_text(text, encoding="utf-8")
    with data_network(servers.lab) as address:
        done = servers.knee(tmp_path / "asks.toml", *HOSTS, "--address", address, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    found = tcpknee.open(tmp_path / "run")
    assert found.meta["labs"][0]["addresses"] == {"sender": "10.78.1.2", "receiver": "10.78.2.2"}
    assert all(row["requests"] for row in found.flows.arrow().to_pylist())


@contextmanager
def under_way(servers: Servers, out: Path) -> Iterator[subprocess.Popen[str]]:
    """A run between both hosts that has a repetition finished and sends the next one."""
    words = servers.words(servers.folder / "path.toml", *HOSTS, "--out", out)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as knee:
        parts = out / "parts"
        until(lambda: parts.is_dir() and len(list(parts.iterdir())) >= 1, "one repetition is finished")
        until(lambda: len(helpers(servers.lab)) == 2, "both helpers run")
        until(lambda: is_sending(servers.lab), "the next one is under way")
        yield knee


def test_a_receiver_that_dies_ends_the_run_in_order_and_resume_goes_on(servers: Servers, tmp_path: Path) -> None:
    with under_way(servers, tmp_path / "run") as knee:
        os.kill(max(helpers(servers.lab)), signal.SIGKILL)
        _, stderr = knee.communicate(timeout=PATIENCE_SEC)
    assert knee.returncode == 2
    assert "before its work was done" in stderr
    assert "--resume" in stderr
    assert "Traceback" not in stderr
    until(lambda: not helpers(servers.lab), "the other helper is gone as well")
    kept = len(json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))["sessions"])
    assert kept == 1
    done = servers.knee("--resume", *HOSTS, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert tcpknee.open(tmp_path / "run").flows.arrow().num_rows == 4


def test_a_firewall_that_drops_data_is_named_with_the_port(servers: Servers, tmp_path: Path) -> None:
    probes.need_programs("nft")
    enter = ("ip", "netns", "exec", servers.lab.receiver)
    rules = "table ip fw { chain in { type filter hook input priority 0; tcp dport 7777 drop; }; }"
    run(*enter, "nft", rules)
    try:
        done = servers.knee(servers.folder / "path.toml", *HOSTS, "--port", 7777, "--out", tmp_path / "run")
    finally:
        run(*enter, "nft", "delete", "table", "ip", "fw")
    assert done.returncode == 2
    assert "no connection to 10.77.2.2:7777 within 5 s" in done.stderr
    assert "open TCP port 7777 there" in done.stderr


def test_a_host_key_that_is_unknown_is_told_in_the_words_of_ssh(servers: Servers, tmp_path: Path) -> None:
    known = servers.folder / "known"
    text = known.read_text(encoding="utf-8")
    known.write_text("", encoding="utf-8")
    try:
        done = servers.knee(servers.folder / "path.toml", *HOSTS, "--out", tmp_path / "run")
    finally:
        known.write_text(text, encoding="utf-8")
    assert done.returncode == 2
    assert "Host key verification failed" in done.stderr


def test_a_route_that_sets_another_algorithm_is_named(servers: Servers, tmp_path: Path) -> None:
    route = ("10.77.2.2", "via", "10.77.1.1", "congctl", "reno")
    run("ip", "-n", servers.lab.sender, "route", "add", *route)
    try:
        (tmp_path / "path.toml").write_text(SCENARIO.replace('["reno", "cubic"]', '"cubic"'), encoding="utf-8")
        done = servers.knee(tmp_path / "path.toml", *HOSTS, "--out", tmp_path / "run")
    finally:
        run("ip", "-n", servers.lab.sender, "route", "del", *route)
    assert done.returncode == 2
    assert 'flow.0.algorithm = "cubic": the connection ran "reno", which a route of that host sets' in done.stderr
