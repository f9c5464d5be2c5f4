"""An experiment from its beginning to its end: `knee assign` and `knee record` into one folder, `knee fleet watch`
beside them, and `knee fleet compare` afterwards, with real sockets.

What a guard must find is made by the server: it sends at a rate that it chooses by the algorithm that a connection was
given. Which arm is worse, and by how much, is known therefore, whatever this machine does besides.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assigning import KNEE, Place, Seen, Server, clients, logged, placed, programs
from building import run
from tcpknee.fleet import connections
from tcpknee.fleet.assign import running
from waiting import PATIENCE_SEC, until

ARMS = ("treated:reno=50%", "control:cubic=50%")
SEED = ("--seed", "8")
GUARD = "goodput_bits_per_sec ratio >= 0.5"
WATCH = ("--guard", GUARD, "--planned", "60", "--every", "1s")
CONTROL_BYTES_PER_SEC = 1_000_000
SEND_BYTES = 60_000
PREFIXES = 120
"""Guards judge from 30 clusters of each arm on."""
AT_ONCE = 20


@pytest.fixture
def place(kernel: None) -> Iterator[Place]:
    with placed() as made:
        # Segments as on Ethernet: the first ten, which the kernel does not pace, would be everything else.
        run("ip", "-n", made.netns, "link", "set", "lo", "mtu", "1500")
        yield made


def transfers(server: Server, treated_bytes_per_sec: int) -> Seen:
    """To each prefix one, at the rate of the arm."""
    rates = {"reno": treated_bytes_per_sec, "cubic": CONTROL_BYTES_PER_SEC}
    all_of_them = clients(PREFIXES)
    return [
        one
        for at in range(0, PREFIXES, AT_ONCE)
        for one in server.connect(*all_of_them[at : at + AT_ONCE], send_bytes=SEND_BYTES, bytes_per_sec=rates)
    ]


def watching(out: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = (*KNEE, "fleet", "watch", str(out), *WATCH, *words)
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False)
    assert ended.returncode in (0, 1), f"exit code {ended.returncode}: {ended.stderr}"
    return ended


def compared(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*KNEE, "fleet", "compare", out, "--by", "arm", "--json"))
    return found


@pytest.mark.slow("120 transfers and a guard that judges each second")
@pytest.mark.timed
def test_a_guard_that_the_data_cross_ends_the_experiment(place: Place, tmp_path: Path) -> None:
    """Nobody but `knee fleet watch` ends it; then nothing is assigned any more, and compare reads what was."""
    out = tmp_path / "out"
    with place.server() as server:
        before = server.connect(*clients(1))[0][1]
        with place.assigning(out, *ARMS, *SEED, code=None) as assigner, place.recording(out):
            seen = transfers(server, CONTROL_BYTES_PER_SEC // 4)
            watched = watching(out)
            said, _ = assigner.communicate(timeout=PATIENCE_SEC)
            after = server.connect(*clients(PREFIXES))
    assert watched.returncode == 1, watched.stderr
    assert f"Crossed. treated: {GUARD} does not hold: 0.2" in watched.stdout
    assert f"`knee assign` is told to end: {out}" in watched.stdout
    assert assigner.returncode == 1
    assert f"Ended by a guard: treated: {GUARD} does not hold" in said
    about = running.read(out)
    assert about is not None and about["is_over"] and about["guard"].startswith(f"treated: {GUARD}")
    assert not programs()
    assert {algorithm for _, algorithm, _ in after} == {before}
    log = logged(out)
    assert set(log) == {cookie for _, _, cookie in seen}
    # What is compared are the connections that the server saw, with the arm of the algorithm that each had then.
    arms = {"reno": "treated", "cubic": "control"}
    rows = connections.read([out], ["cookie", "arm"], where="arm is not null").to_pylist()
    assert {row["cookie"]: row["arm"] for row in rows} == {cookie: arms[algorithm] for _, algorithm, cookie in seen}
    found = compared(out)
    counts = Counter(arms[algorithm] for _, algorithm, _ in seen)
    assert {name: one["kept"] for name, one in found["connections"]["cohorts"].items()} == counts
    [goodput] = [one for one in found["verdicts"] if one["metric"] == "goodput_bits_per_sec"]
    assert (goodput["cohort"], goodput["baseline"], goodput["verdict"]) == ("treated", "control", "worse")


@pytest.mark.slow("120 transfers and a guard that judges each second")
def test_an_experiment_that_harms_nothing_goes_on(place: Place, tmp_path: Path) -> None:
    """The guard is judged and holds; the assignment ends with whoever began it."""
    out = tmp_path / "out"
    with place.server() as server, place.assigning(out, *ARMS, *SEED), place.recording(out):
        transfers(server, CONTROL_BYTES_PER_SEC)

        def judged() -> bool:
            told = json.loads(watching(out, "--json", "--for", "1ms").stdout)
            return bool(told["guards"]) and told["guards"][0]["low"] is not None

        until(judged, "the guard is judged")
        watched = watching(out, "--for", "3s")
        assert watched.returncode == 0, watched.stdout
        assert "CROSSED" not in watched.stdout
        assert len(programs()) == 1
    about = running.read(out)
    assert about is not None and about["is_over"] and about["guard"] is None
