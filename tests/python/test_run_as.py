"""Whom a scenario's programs run as is decided by who calls, and by no invalid name."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tcpknee.errors import KernelUnsupported, UsageError
from tcpknee.runs import run_as


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As root in a namespace that has every user, called without sudo."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(run_as, "_is_mapped", lambda kind, number: True)
    for name in ("SUDO_UID", "SUDO_GID"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_root_alone_is_nobody(root: pytest.MonkeyPatch) -> None:
    found = run_as.of_programs(as_root=False)
    assert (found.name, found.groups, found.home, found.other) == ("nobody", (), None, True)
    assert found.uid != 0


def test_the_caller_of_sudo_has_their_groups_and_home(root: pytest.MonkeyPatch) -> None:
    entry = pwd.struct_passwd(("ada", "x", 1234, 1235, "", "/home/ada", "/bin/sh"))
    root.setattr(pwd, "getpwuid", lambda uid: entry)
    root.setattr(os, "getgrouplist", lambda name, gid: [gid, 27])
    root.setenv("SUDO_UID", "1234")
    root.setenv("SUDO_GID", "1235")
    found = run_as.of_programs(as_root=False)
    assert (found.words, found.gid, found.groups, found.home) == ("ada (uid 1234)", 1235, (1235, 27), "/home/ada")
    assert found.note == {"user": "ada", "uid": 1234, "gid": 1235, "groups": [1235, 27]}


def test_a_caller_without_a_name_has_their_number_and_one_group(root: pytest.MonkeyPatch) -> None:
    root.setenv("SUDO_UID", "4000000001")
    root.setenv("SUDO_GID", "4000000002")
    found = run_as.of_programs(as_root=False)
    assert (found.uid, found.gid, found.groups) == (4000000001, 4000000002, (4000000002,))


def test_the_private_folder_is_theirs_alone_and_goes(root: pytest.MonkeyPatch) -> None:
    owned: list[tuple[str, int, int]] = []
    root.setattr(os, "chown", lambda *words: owned.append(words))
    user = run_as.of_programs(as_root=False)
    with user.place() as place:
        assert place is not None
        private = Path(place["private"])
        assert owned == [(str(private), user.uid, user.gid)]
        assert private.stat().st_mode & 0o777 == 0o700
        assert place["folder"] is None
    assert not private.exists()


@pytest.mark.parametrize("name", ["SUDO_UID", "SUDO_GID"])
@pytest.mark.parametrize("given", ["root", "-1", "4294967295", "1 ", "\u0661"])
def test_a_number_that_is_none_is_refused(root: pytest.MonkeyPatch, name: str, given: str) -> None:
    root.setenv("SUDO_UID", "1")
    root.setenv(name, given)
    with pytest.raises(UsageError, match=f'^{name}: got "'):
        run_as.of_programs(as_root=False)


def test_an_ordinary_user_s_programs_are_that_user_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    # It says nothing to them.
    monkeypatch.setenv("SUDO_UID", "0")
    found = run_as.of_programs(as_root=False)
    assert (found.uid, found.other) == (1000, False)
    with found.place() as place:
        assert place is None
    with pytest.raises(UsageError, match="--programs-as-root: got it from an ordinary user"):
        run_as.of_programs(as_root=True)


def test_a_user_that_the_namespace_lacks_is_refused(root: pytest.MonkeyPatch) -> None:
    root.setattr(run_as, "_is_mapped", lambda kind, number: kind != "gid")
    with pytest.raises(KernelUnsupported, match="does not have the gid"):
        run_as.of_programs(as_root=False)


def test_maps_of_users_are_read_as_the_kernel_writes_them() -> None:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is missing (Debian: util-linux)")
    program = "from tcpknee.runs import run_as; print(*(run_as._is_mapped('uid', n) for n in (0, 1, 65534)))"
    words = ["unshare", "--map-root-user", sys.executable, "-c", program]
    if subprocess.run([*words[:2], "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespace can be made here")
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert told.split() == ["True", "False", "False"]
