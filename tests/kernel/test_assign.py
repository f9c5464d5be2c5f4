"""`knee assign`: connections of a cgroup get the algorithms of their arms, are logged, and nothing stays."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from assigning import ARMS, KNEE, Place, clients, logged, placed, programs
from building import run
from lab import available
from tcpknee.algorithms import outline
from tcpknee.fleet import connections
from tcpknee.fleet.assign import running
from tcpknee.fleet.assign.arms import parse
from tcpknee.fleet.assign.designs import arm_of_period
from tcpknee.fleet.following import following
from tcpknee.fleet.following.guards import parse as parse_guard
from waiting import PATIENCE_SEC, until

PINS = Path("/sys/fs/bpf/tcpknee")


@pytest.fixture
def place(kernel: None) -> Iterator[Place]:
    with placed() as made:
        yield made


def arms_told(words: Sequence[str], addresses: Sequence[str]) -> dict[str, str]:
    """What `--dry-run` says of clients: no kernel is asked, so any host says the same."""
    which = [word for address in addresses for word in ("--which", address)]
    said = run(*KNEE, "assign", *words, "--dry-run", "--json", *which)
    found: dict[str, str] = json.loads(said)["which"]
    return found


def test_each_prefix_gets_the_arm_that_any_host_tells_for_the_seed(place: Place, tmp_path: Path) -> None:
    """The program in the kernel and the same plan without a kernel agree for 300 prefixes."""
    words = ("cubic=30%", "reno=70%", "--seed", "11")
    expected = arms_told(words, [client for client, _ in clients(300)])
    with place.server() as server, place.assigning(tmp_path / "out", *words):
        seen = server.connect(*clients(300))
    assert {client: algorithm for client, algorithm, _ in seen} == expected
    assert 60 <= sum(algorithm == "cubic" for _, algorithm, _ in seen) <= 120
    log = logged(tmp_path / "out")
    assert len(log) == 300
    for client, algorithm, cookie in seen:
        row = log[cookie]
        assert (row["arm"], row["algorithm"]) == (algorithm, algorithm)
        assert row["unit"] == client.rpartition(".")[0] + ".0/24"
        assert (row["design"], row["seed"], row["errno"], row["period"]) == ("cluster", 11, None, None)
        assert row["allocation_pct"] == pytest.approx({"cubic": 30, "reno": 70}[algorithm])
        assert row["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert abs(row["t_unix_ns"] - time.time_ns()) < 60e9


def test_clients_of_ipv6_and_of_both_families_sockets_have_arms(place: Place, tmp_path: Path) -> None:
    sixes = [f"2001:db8:{number:x}::7" for number in range(1, 41)]
    for address in sixes:
        run("ip", "-n", place.netns, "address", "add", f"{address}/128", "dev", "lo", "nodad")
    words = (*ARMS, "--seed", "3")
    fours = [client for client, _ in clients(40)]
    expected = arms_told(words, [*sixes, *fours])
    with place.server("AF_INET6", "::") as server, place.assigning(tmp_path / "out", *words):
        seen = server.connect(*((six, sixes[0]) for six in sixes), *clients(40))
    got = {client.removeprefix("::ffff:"): algorithm for client, algorithm, _ in seen}
    assert got == expected
    assert set(expected.values()) == {"reno", "cubic"}
    units = {row["unit"] for row in logged(tmp_path / "out").values()}
    assert "2001:db8:28::/48" in units and "127.10.3.0/24" in units


def test_the_user_who_called_sudo_owns_the_log_and_the_folders_that_were_made_for_it(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", "65534")
    monkeypatch.setenv("SUDO_GID", "65534")
    made, of_root = tmp_path / "results/rec", tmp_path / "root"
    of_root.mkdir()
    for out, owner in ((made, 65534), (of_root, 0)):
        with place.server() as server, place.assigning(out, *ARMS):
            server.connect(*clients(3))
            until(lambda out=out: list(out.glob("assignments-*")), "a log")  # type: ignore[misc]
            until(lambda out=out, owner=owner: owners(out) == {owner}, "all are its owner's")  # type: ignore[misc]
        assert len(logged(out)) == 3
        assert owners(out) == {owner}
    assert made.parent.stat().st_uid == 65534


def owners(folder: Path) -> set[int]:
    """Of the folder and its files."""
    return {path.stat().st_uid for path in (folder, *folder.iterdir())}


@pytest.mark.alone
def test_nothing_is_left_after_kill_9(place: Place, tmp_path: Path) -> None:
    """No program, link, pin or algorithm; new connections are as before, and the log can be read.

    Alone, as it loads algorithms that other tests load too."""
    words = ("new:bbr1=100%", "old:cubic=0%", "--bpf", "--seed", "1")
    with place.server() as server:
        before = server.connect(*clients(1))[0][1]
        with place.assigning(tmp_path / "out", *words, code=None) as process:
            assert {"knee_bbr1", "knee_cubic"} <= set(available())
            assert len(programs()) == 1
            seen = server.connect(*clients(30))
            assert {algorithm for _, algorithm, _ in seen} == {"knee_bbr1"}
            # What is two seconds old is with the kernel.
            time.sleep(3.5)
            process.kill()
            process.wait()
        until(lambda: not programs(), "no program of ours")
        assert not PINS.exists()
        assert not {"knee_bbr1", "knee_cubic"} & set(available())
        assert run("bpftool", "cgroup", "show", str(place.cgroup)).strip() == ""
        assert [algorithm for _, algorithm, _ in server.connect(*clients(5))] == [before] * 5
    log = logged(tmp_path / "out")
    assert {cookie for _, _, cookie in seen} == set(log)
    assert {row["arm"] for row in log.values()} == {"new"}


def test_only_what_the_filters_let_through_is_assigned(place: Place, tmp_path: Path) -> None:
    with place.server() as one, place.server() as other:
        default = one.connect(*clients(1))[0][1]
        target = next(name for name in ("reno", "cubic") if name != default)
        words = (f"{target}=100%", f"{default}=0%", "--port", str(one.port), "--netns", place.netns)
        with place.assigning(tmp_path / "out", *words):
            wanted, unwanted = one.connect(*clients(5)), other.connect(*clients(5))
        assert {algorithm for _, algorithm, _ in wanted} == {target}
        assert {algorithm for _, algorithm, _ in unwanted} == {default}
        elsewhere = (f"{target}=100%", f"{default}=0%", "--netns", str(os.getpid()))
        with place.assigning(tmp_path / "elsewhere", *elsewhere):
            assert {algorithm for _, algorithm, _ in one.connect(*clients(5))} == {default}
    assert set(logged(tmp_path / "out")) == {cookie for _, _, cookie in wanted}
    assert not list((tmp_path / "elsewhere").glob("*.parquet*"))


def test_an_arm_may_be_a_file_of_ones_own(place: Place, tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text(outline.of("mine"), encoding="utf-8")
    words = (f"{tmp_path}/mine.c=100%", "cubic=0%", "--bpf")
    with place.server() as server, place.assigning(tmp_path / "out", *words):
        seen = server.connect(*clients(5))
        assert "knee_mine" in available()
    assert {algorithm for _, algorithm, _ in seen} == {"knee_mine"}
    assert {row["algorithm"] for row in logged(tmp_path / "out").values()} == {"knee_mine"}
    until(lambda: "knee_mine" not in available(), "it is gone")


def test_connections_of_one_client_are_drawn_one_by_one_as_units(place: Place, tmp_path: Path) -> None:
    words = (*ARMS, "--design", "ab", "--unit", "connection", "--seed", "5")
    with place.server() as server, place.assigning(tmp_path / "out", *words):
        seen = server.connect(*(clients(1) * 200))
    assert 70 <= sum(algorithm == "reno" for _, algorithm, _ in seen) <= 130
    log = logged(tmp_path / "out")
    assert all(log[cookie]["unit"] == str(cookie) for _, _, cookie in seen)


@pytest.mark.timed
def test_a_switchback_gives_a_period_one_arm(place: Place, tmp_path: Path) -> None:
    """Periods are of the wall clock, so hosts agree on them too."""
    words = (*ARMS, "--design", "switchback", "--period", "1s", "--seed", "9")
    with place.server() as server, place.assigning(tmp_path / "out", *words):
        deadline = time.monotonic() + 6
        while time.monotonic() < deadline:
            server.connect(*clients(5))
            time.sleep(0.02)
    log = list(logged(tmp_path / "out").values())
    arms = parse(ARMS)
    assert len({row["period"] for row in log}) >= 5
    assert {row["arm"] for row in log} == {"reno", "cubic"}
    for row in log:
        assert row["arm"] == arms[arm_of_period(arms, 9, row["period"])].name
        assert row["allocation_pct"] == 100
    late = [row["t_unix_ns"] / 1e9 - row["period"] for row in log]
    assert min(late) > -0.01, "a connection was assigned before its period"


@pytest.mark.timed
def test_a_ramp_keeps_what_it_treated(place: Place, tmp_path: Path) -> None:
    words = ("cubic", "reno", "--design", "ramp", "--steps", "20%,60%,100%", "--period", "2s", "--seed", "2")
    rounds = []
    with place.server() as server, place.assigning(tmp_path / "out", *words):
        deadline = time.monotonic() + 6.5
        while time.monotonic() < deadline:
            rounds.append({client: algorithm for client, algorithm, _ in server.connect(*clients(60))})
            time.sleep(0.3)
    assert set(rounds[-1].values()) == {"cubic"}
    for before, after in pairwise(rounds):
        treated = {client for client, algorithm in before.items() if algorithm == "cubic"}
        assert treated <= {client for client, algorithm in after.items() if algorithm == "cubic"}
    shares = {
        row["period"]: row["allocation_pct"] for row in logged(tmp_path / "out").values() if row["arm"] == "cubic"
    }
    assert shares == {0: 20, 1: 60, 2: 100}


def test_a_pair_of_links_has_shares_of_its_own(place: Place, tmp_path: Path) -> None:
    """By prefix of the local address, and by device."""
    run("ip", "-n", place.netns, "link", "add", "eth7", "type", "veth", "peer", "name", "eth8")
    run("ip", "-n", place.netns, "address", "add", "10.7.0.1/24", "dev", "eth7")
    run("ip", "-n", place.netns, "link", "set", "eth7", "up")
    links = ("--link", "127.1.0.0/16=100%", "--link", "eth7=0%")
    words = ("cubic", "reno", "--design", "paired-link", *links, "--netns", place.netns, "--seed", "4")
    with place.server() as server, place.assigning(tmp_path / "out", *words):
        first = server.connect(*((f"127.9.{number}.1", "127.1.0.1") for number in range(20)))
        second = server.connect(*((f"127.9.{number}.1", "10.7.0.1") for number in range(20)))
        neither = server.connect(("127.9.0.1", "127.2.0.1"))
    assert {algorithm for _, algorithm, _ in first} == {"cubic"}
    assert {algorithm for _, algorithm, _ in second} == {"reno"}
    log = logged(tmp_path / "out")
    assert {log[cookie]["link"] for _, _, cookie in first} == {"127.1.0.0/16"}
    assert {log[cookie]["link"] for _, _, cookie in second} == {"eth7"}
    assert neither[0][2] not in log


def test_recorded_connections_have_their_arms(place: Place, tmp_path: Path) -> None:
    """One folder for both: the log joins the recording, and `knee fleet watch` counts the connections that ended."""
    out = tmp_path / "out"
    with place.server() as server, place.assigning(out, *ARMS, "--seed", "6"):
        with place.recording(out):
            seen = server.connect(*clients(40))
            time.sleep(1)
        guards = [parse_guard("srtt_us ratio <= 100")]
        # The log is seconds behind while it is written.
        until(lambda: sum(following.look([out], guards).connections.values()) == 40, "40 connections that ended")
    rows = connections.read([out], ["cookie", "arm", "algorithm", "remote_prefix", "final"]).to_pylist()
    arms = {row["cookie"]: row["arm"] for row in rows}
    assert {cookie: algorithm for _, algorithm, cookie in seen} == {cookie: arms[cookie] for _, _, cookie in seen}
    # The clients' ends are of another cgroup.
    assert sum(arm is not None for arm in arms.values()) == 40 < len(arms)


def test_a_guard_ends_it_with_exit_code_1(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with place.assigning(out, *ARMS, code=None) as process:
        assert running.end(out, "retransmit_pct ratio 1.4")
        said, _ = process.communicate(timeout=PATIENCE_SEC)
    assert process.returncode == 1
    assert "Ended by a guard: retransmit_pct ratio 1.4" in said
    about = running.read(out)
    assert about is not None and about["is_over"] and about["guard"] == "retransmit_pct ratio 1.4"
    # What is over cannot be ended, and the next one in the folder is not ended by what was meant for this one.
    assert not running.end(out, "again")
    (out / running.ABOUT).unlink()
    with place.assigning(out, *ARMS):
        time.sleep(2)


def test_two_of_them_do_not_write_to_one_folder(place: Place, tmp_path: Path) -> None:
    with place.assigning(tmp_path / "out", *ARMS):
        words = (*KNEE, "assign", *ARMS, "--cgroup", str(place.cgroup), "--out", str(tmp_path / "out"))
        ended = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False)
    assert ended.returncode == 2
    assert "another `knee assign` writes there" in ended.stderr


def test_what_is_not_there_is_refused(place: Place, tmp_path: Path) -> None:
    for words, said in (
        ((*ARMS, "--cgroup", "no/such.slice"), "is no cgroup v2"),
        (("cubci=50%", "reno=50%", "--cgroup", str(place.cgroup)), "there is no such algorithm"),
        ((*ARMS, "--cgroup", str(place.cgroup), "--netns", "nowhere"), "there is no /run/netns/nowhere"),
    ):
        command = (*KNEE, "assign", *words, "--out", str(tmp_path / "out"), "--for", "1s")
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False)
        assert ended.returncode == 2 and said in ended.stderr, ended.stderr
        assert "Traceback" not in ended.stderr
