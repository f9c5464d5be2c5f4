"""Whom a scenario's programs run as, and what such a program has and can do."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import probes
from waiting import PATIENCE_SEC

NOBODY = 65534
SCENARIO = """\
title = "who am I"
duration = "10s"
repeat = 1
[path]
rate = "50Mbit/s"
rtt = "10ms"
[[flow]]
algorithm = "cubic"
workload = "programs"
client = "sh client.sh {server}"
"""
# What it finds out of itself, as JSON on its output.
CLIENT = """\
import json, os, socket, stat, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
listing = os.listdir("/proc/self/fd")
found = {
    "uid": os.getresuid(), "gid": os.getresgid(), "groups": sorted(os.getgroups()),
    "caps": [status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
    "no_new_privs": status["NoNewPrivs"].strip(),
    "fds": sorted(int(fd) for fd in listing if os.path.exists(f"/proc/self/fd/{fd}")),
    "cwd": os.getcwd(), "environment": dict(os.environ),
    "cwd_mode": oct(stat.S_IMODE(os.stat(".").st_mode)), "cwd_owner": os.stat(".").st_uid,
}
with socket.socket() as low:
    low.bind(("", 80))
with socket.socket() as high:
    high.bind(("", 8080))
for name, kind in (("ping", socket.SOCK_DGRAM), ("raw", socket.SOCK_RAW)):
    try:
        socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP).close()
        found[name] = True
    except PermissionError:
        found[name] = False
print(json.dumps(found))
"""


@pytest.fixture(autouse=True)
def _needs_root() -> None:
    probes.need_root("becoming another user")
    probes.need_lab()


@pytest.fixture
def asks() -> Iterator[str]:
    """The scenario whose client says what it is; its file lies where every user may read."""
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
    if python is None:
        pytest.skip("the system has no Python that other users may run")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        program = Path(folder, "client.py")
        program.write_text(CLIENT)
        yield SCENARIO.replace("sh client.sh {server}", f"{python} {program}")


@pytest.fixture
def user() -> pwd.struct_passwd:
    """An ordinary user of this system, with a name."""
    found = next((entry for entry in pwd.getpwall() if entry.pw_uid not in (0, NOBODY)), None)
    if found is None:
        pytest.skip("this system has no user but root and nobody")
    return found


def knee(folder: Path, text: str, *options: str, code: int = 0, **sudo: str) -> subprocess.CompletedProcess[str]:
    (folder / "s.toml").write_text(text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    ended = subprocess.run(
        [sys.executable, "-m", "tcpknee", "run", "s.toml", "--engine", "kernel", "--out", "run", *options],
        cwd=folder,
        env={**environment, "A_SECRET": "of root's", "KNEE_TOLD": "all", **sudo},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SEC,
        check=False,
    )
    assert ended.returncode == code, ended.stderr + ended.stdout
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended


def found(folder: Path) -> dict[str, Any]:
    """What the client found out."""
    [output] = (folder / "run/output").glob("*client.txt")
    assert output.stat().st_uid == 0
    told: dict[str, Any] = json.loads(output.read_text())
    return told


def note(folder: Path) -> dict[str, Any]:
    [lab] = json.loads((folder / "run/run.json").read_text())["labs"]
    ran_as: dict[str, Any] = lab["programs_ran_as"]
    return ran_as


def test_root_s_programs_run_as_nobody_without_any_right(tmp_path: Path, asks: str) -> None:
    ended = knee(tmp_path, asks)
    client = found(tmp_path)
    assert client["uid"] == client["gid"] == [NOBODY] * 3
    assert client["groups"] == []
    assert set(client["caps"]) == {"0" * 16}
    assert (client["no_new_privs"], client["fds"]) == ("1", [0, 1, 2])
    assert (client["ping"], client["raw"]) == (True, False)
    assert (client["cwd_mode"], client["cwd_owner"]) == ("0o700", NOBODY)
    environment = client["environment"]
    assert environment["HOME"] == environment["TMPDIR"] == client["cwd"]
    assert (environment["USER"], environment["KNEE_TOLD"]) == ("nobody", "all")
    assert "A_SECRET" not in environment and "PYTHONPATH" not in environment
    # The folder is gone with the run, and whom they ran as is told and kept.
    assert not Path(client["cwd"]).exists()
    assert "its programs run as nobody (uid 65534)" in ended.stderr
    assert "programs as nobody (uid 65534)" in ended.stdout
    assert note(tmp_path) == {"user": "nobody", "uid": NOBODY, "gid": NOBODY, "groups": []}


def test_they_run_as_who_called_sudo_where_that_user_may_be(tmp_path: Path, asks: str, user: pwd.struct_passwd) -> None:
    sudo = {"SUDO_UID": str(user.pw_uid), "SUDO_GID": str(user.pw_gid), "SUDO_USER": "root"}
    groups = sorted(os.getgrouplist(user.pw_name, user.pw_gid))
    ended = knee(tmp_path, asks, **sudo)
    client = found(tmp_path)
    assert (client["uid"], client["gid"]) == ([user.pw_uid] * 3, [user.pw_gid] * 3)
    assert client["groups"] == groups
    assert set(client["caps"]) == {"0" * 16} and client["no_new_privs"] == "1"
    assert (client["environment"]["HOME"], client["environment"]["USER"]) == (user.pw_dir, user.pw_name)
    # Theirs alone, as the folder that knee was called in is closed to them.
    assert (client["cwd_mode"], client["cwd_owner"]) == ("0o700", user.pw_uid)
    assert f"its programs run as {user.pw_name} (uid {user.pw_uid})" in ended.stderr
    assert note(tmp_path)["groups"] == groups
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    knee(tmp_path, asks, "--force", **sudo)
    assert found(tmp_path)["cwd"] == str(tmp_path)


def test_root_runs_them_as_root_when_told_to(tmp_path: Path, asks: str) -> None:
    ended = knee(tmp_path, asks, "--programs-as-root", SUDO_UID="1", SUDO_GID="1")
    client = found(tmp_path)
    assert (client["uid"], client["cwd"]) == ([0] * 3, str(tmp_path))
    assert (client["fds"], client["raw"]) == ([0, 1, 2], True)
    assert client["environment"]["A_SECRET"] == "of root's"
    assert client["caps"][2] != "0" * 16
    assert "its programs run as root (uid 0)" in ended.stderr
    assert note(tmp_path)["user"] == "root"


def test_root_s_own_sudo_is_nobody(tmp_path: Path, asks: str) -> None:
    knee(tmp_path, asks, SUDO_UID="0", SUDO_GID="0")
    assert found(tmp_path)["uid"] == [NOBODY] * 3


@pytest.mark.parametrize("given", ["root", "-1", "4294967295", "1 "])
def test_a_caller_who_is_no_number_is_refused(tmp_path: Path, given: str) -> None:
    ended = knee(tmp_path, SCENARIO, code=2, SUDO_UID=given)
    assert f'SUDO_UID: got "{given}"' in ended.stderr
    assert not (tmp_path / "run").exists()


def test_a_program_that_the_user_may_not_run_is_told_with_the_way_out(tmp_path: Path) -> None:
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    ended = knee(tmp_path, SCENARIO.replace("sh client.sh {server}", str(program)), code=2)
    assert "Permission denied" in ended.stderr
    assert "it runs as nobody" in ended.stderr and "--programs-as-root" in ended.stderr


def test_the_option_is_for_root_and_a_lab(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO)
    words = [sys.executable, "-m", "tcpknee", "run", str(tmp_path / "s.toml"), "--programs-as-root"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 2 and "expected one that runs them: kernel, guest or hosts" in ended.stderr


@pytest.mark.parametrize(
    "prints", ["head -c 1500000000 /dev/zero", "python3 -c 'import os, time; os.ftruncate(1, 1 << 43); time.sleep(60)'"]
)
def test_a_program_that_fills_the_disk_is_stopped_and_said(prints: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO.replace("sh client.sh {server}", prints))
    words = ["run", "s.toml", "--engine", "kernel", "--out", "out", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "tcpknee", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SEC,
        check=False,
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "it printed more than 64 MiB; expected less" in done.stderr
    assert all(file.stat().st_size <= 64 << 20 for file in tmp_path.rglob("*.txt"))


def test_a_program_cannot_read_what_was_printed_before_nor_write_over_it(tmp_path: Path) -> None:
    tries = "import os; print('first', flush=True); os.lseek(1, 0, 0); os.write(1, b'second'); os.read(1, 9)"
    (tmp_path / "s.toml").write_text(SCENARIO.replace("sh client.sh {server}", f'python3 -c \\"{tries}\\"'))
    words = ["run", "s.toml", "--engine", "kernel", "--out", "out", "-q"]
    subprocess.run(
        [sys.executable, "-m", "tcpknee", *words], cwd=tmp_path, capture_output=True, timeout=PATIENCE_SEC, check=False
    )
    (printed,) = (tmp_path / "out").rglob("*client.txt")
    assert printed.read_text().startswith("first\nsecond") and "Bad file descriptor" in printed.read_text()
