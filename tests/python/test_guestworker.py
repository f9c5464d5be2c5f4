"""Modules of users' files, which go into a guest's kernel alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcpknee import _core
from tcpknee.errors import KernelUnsupported
from tcpknee.runs import guestworker


def test_this_host_s_kernel_gets_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "load_module", lambda *given: pytest.fail("it is loaded here"))
    with pytest.raises(KernelUnsupported, match=r"^\./x\.c: this kernel is no guest's"):
        guestworker._load("x.ko", "", "./x.c")


def test_why_a_guest_does_not_take_a_module_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nvendor_id\t: User Mode Linux\n")
    monkeypatch.setattr(guestworker, "_CPUINFO", tmp_path / "cpuinfo")
    with pytest.raises(KernelUnsupported, match=r"does not take its module with a=1: No such file .*\. Expected"):
        guestworker._load(str(tmp_path / "none.ko"), "a=1", "./x.c")
