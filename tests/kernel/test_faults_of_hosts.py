"""What goes wrong on a host that ssh leads to: a paragraph that says so, both hosts as before, finished blocks kept."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import probes
import tcpknee
from building import run
from lab import Lab
from test_between_hosts import HOSTS, RATE_BITS_PER_SEC, SCENARIO, Servers, helpers, listening, servers, under_way  # noqa: F401
from test_far_settings import all_settings, scenario
from waiting import PATIENCE_SEC, until

ODD = ("--engine", "hosts", "--sender", "a", "--receiver", "c", "-q")
AS_NOBODY = f"setpriv --reuid {probes.NOBODY} --regid {probes.NOBODY} --clear-groups env HOME=/nonexistent"
AHEAD = """
import os, re
while said := os.read(0, 1 << 16):
    if said.startswith(b'{"pong"'):
        said = re.sub(rb'(?<="realtime_ns":)[0-9]+', lambda found: b"%d" % (int(found[0]) + 3600 * 10**9), said)
    while said:
        said = said[os.write(1, said) :]
"""


@contextmanager
def odd(servers: Servers, *script: str) -> Iterator[None]:  # noqa: F811
    """Host c, on which these lines of shell run in front of every command."""
    file = servers.folder / "odd.sh"
    file.write_text("\n".join(script) + "\n", encoding="utf-8")
    with listening(servers.lab.receiver, servers.folder, 2223, f"-oForceCommand=/bin/sh {file}"):
        yield


def of_reno(path: Path, text: str) -> Path:
    """The scenario without a congestion control that a host may keep for root."""
    own, other = '[receiver]\nalgorithm = "reno"\n', text.partition("[receiver]\n")
    text = other[0] + own + other[2] if other[1] else text.replace("[[flow]]", f"{own}[[flow]]")
    path.write_text(text.replace('["reno", "cubic"]', '"reno"'), encoding="utf-8")
    return path


def in_mounts_of_its_own(*lines: str) -> str:
    """Shell that runs the command in front of which it stands, with these mounts."""
    inner = "; ".join([*lines, 'exec $as sh -c "$SSH_ORIGINAL_COMMAND"'])
    return f"exec unshare --mount sh -ec '{inner}'"


def full(*folders: str) -> str:
    """A disk of less than the helper takes, at each of these."""
    return "; ".join(f"mount -t tmpfs -o size=1M,mode=1777 tmpfs {folder}" for folder in folders)


def test_hosts_whose_disks_are_full_are_told_so(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    before = all_settings(servers.lab)
    with odd(servers, "unset XDG_RUNTIME_DIR", in_mounts_of_its_own(full("/tmp", "/var/tmp", "/root"))):
        done = servers.knee(servers.folder / "path.toml", *ODD, "--out", tmp_path / "run")
    assert done.returncode == 2
    assert re.search(
        r"receiver c: the helper cannot be put there: it has no folder with room for \d+ bytes", done.stderr
    )
    assert "Make room below /tmp, /var/tmp or $HOME" in done.stderr
    assert all_settings(servers.lab) == before


def test_a_folder_that_is_full_or_another_users_is_passed_over(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    """An ordinary user, who has root's XDG_RUNTIME_DIR behind `su`."""
    (tmp_path / "roots").mkdir(mode=0o700)
    as_nobody = f'export as="{AS_NOBODY}" XDG_RUNTIME_DIR={tmp_path}/roots'
    path = of_reno(tmp_path / "path.toml", SCENARIO)
    with odd(servers, as_nobody, in_mounts_of_its_own(full("/tmp"))):
        done = servers.knee(path, *ODD, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    lab = json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))["labs"][0]
    assert (lab["sender"]["uid"], lab["receiver"]["uid"]) == (0, probes.NOBODY)
    assert not list((tmp_path / "roots").iterdir())


def test_a_port_that_is_taken_is_told_with_what_to_do(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    done = servers.knee(servers.folder / "path.toml", *HOSTS, "--port", 2222, "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "receiver b: cannot listen at port 2222: EADDRINUSE" in done.stderr
    assert "leave --port out, or name another" in done.stderr
    until(lambda: not helpers(servers.lab), "the helpers are gone")


@pytest.mark.slow("four repetitions over ssh")
@pytest.mark.timed
def test_clocks_that_are_off_by_an_hour_change_no_figure_and_are_told(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    (servers.folder / "ahead.py").write_text(AHEAD, encoding="utf-8")
    script = (
        'unshare --time --monotonic 3600 --boottime 3600 --fork sh -c "$SSH_ORIGINAL_COMMAND" | '
        f"{sys.executable} {servers.folder}/ahead.py"
    )
    with odd(servers, script):
        done = servers.knee(servers.folder / "path.toml", *ODD, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "receiver c: its time of day is 60 min 0 s ahead of this machine's" in done.stdout
    assert "Warning: sender" not in done.stdout
    found = tcpknee.open(tmp_path / "run")
    # How near it comes to the rate, a machine that is late decides; an hour would be off by a factor of a thousand.
    for row in found.flows.arrow().to_pylist():
        assert row["goodput_bits_per_sec"] == pytest.approx(RATE_BITS_PER_SEC * 1448 / 1514, rel=0.2)
    assert max(found.samples.arrow()["t_ns"].to_pylist()) < 2e9
    assert {row["rcvbuf_bytes"] is None for row in found.samples.arrow().to_pylist()[10:]} == {False}


def test_a_user_without_root_is_refused_settings_and_neither_host_keeps_one(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    before = all_settings(servers.lab)
    path = of_reno(tmp_path / "reno.toml", scenario(tmp_path).read_text(encoding="utf-8"))
    with odd(servers, f'exec {AS_NOBODY} sh -c "$SSH_ORIGINAL_COMMAND"'):
        done = servers.knee(path, *ODD, "--allow-host-settings", "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "receiver c: settings cannot be made there: nobody is not root, and `sudo -n true` is refused" in done.stderr
    assert not (tmp_path / "run").exists()
    assert all_settings(servers.lab) == before


@pytest.mark.slow("root is asked for over ssh, twice")
def test_a_user_whom_sudo_lets_be_root_is_given_settings(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    probes.need_programs("sudo")
    before = all_settings(servers.lab)
    sudoers = servers.folder / "sudoers"
    sudoers.write_text("nobody ALL=(ALL) NOPASSWD: ALL\n", encoding="utf-8")
    sudoers.chmod(0o440)
    mounts = in_mounts_of_its_own(f"mount --bind {sudoers} /etc/sudoers")
    path = of_reno(tmp_path / "reno.toml", scenario(tmp_path).read_text(encoding="utf-8"))
    with odd(servers, f'export as="{AS_NOBODY}"', mounts):
        done = servers.knee(path, *ODD, "--allow-host-settings", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    meta = json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))
    assert meta["labs"][0]["receiver"]["uid"] == probes.NOBODY
    made = {one["setting"]: one["is"] for one in meta["labs"][0]["receiver"]["settings"]}
    assert made["net.ipv4.tcp_rmem"].endswith(" 7340032")
    assert meta["sessions"][0]["hosts"]["receiver"]["as_before"] is True
    assert all_settings(servers.lab) == before


@contextmanager
def gone(lab: Lab) -> Iterator[None]:
    """The receiver is off, as a host without power is: it says nothing more, and forgets what ran on it."""
    device = ("ip", "-n", lab.receiver, "link", "set", "veth0")
    run(*device, "down")
    try:
        for pid in run("ip", "netns", "pids", lab.receiver).split():
            # But for the sshd that the test itself has started, which is there behind a start as well.
            if f"PPid:\t{os.getpid()}\n" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8"):
                os.kill(int(pid), signal.SIGKILL)
        yield
    finally:
        run(*device, "up")
        run("ip", "-n", lab.receiver, "route", "add", "default", "via", "10.77.2.1")


@pytest.mark.slow("ssh takes 20 s to notice that a host says nothing")
def test_a_receiver_without_power_ends_the_run_in_order_and_resume_goes_on(servers: Servers, tmp_path: Path) -> None:  # noqa: F811
    before = all_settings(servers.lab)
    with under_way(servers, tmp_path / "run") as knee, gone(servers.lab):
        _, stderr = knee.communicate(timeout=PATIENCE_SEC)
    assert knee.returncode == 2
    assert "receiver b: the helper, or the connection to it, ended before its work was done" in stderr
    assert "The host may have been restarted, or is out of reach. What was finished is kept" in stderr
    assert "Traceback" not in stderr
    until(lambda: not helpers(servers.lab), "the other helper is gone as well")
    assert all_settings(servers.lab) == before
    kept = tcpknee.open(tmp_path / "run").flows.arrow().num_rows
    assert kept >= 1
    done = servers.knee("--resume", *HOSTS, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert tcpknee.open(tmp_path / "run").flows.arrow().num_rows == 4
