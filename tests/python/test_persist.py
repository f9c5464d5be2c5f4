"""The files that make changes again after a boot: what they hold, whose they are, and that undoing removes them."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from tcpknee.cli import doctor_fix
from tcpknee.doctor import fix
from tcpknee.doctor.changes import (
    Change,
    Channels,
    Coalesce,
    Offload,
    Qdisc,
    Ring,
    RouteWindow,
    Rps,
    Sysctl,
    TxQueueLen,
)
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.journal import Entry, Journal, open_journal
from tcpknee.doctor.links import LEAST_VERSION, MOST_BYTES, Udev
from tcpknee.doctor.persist import SYSCTLS, UNIT_FILE, VALUES, Place, check_files, persisted, why_not
from tcpknee.errors import EngineError, UsageError

SOMAXCONN = Sysctl("net.core.somaxconn", "4096")
CHANGES = [SOMAXCONN, Sysctl("net.ipv4.tcp_rmem", "4096 131072 6291456"), Qdisc("eth0", "fq"), Rps("eth-1", 0, (1,))]


class Host:
    """An /etc, and what systemctl was asked."""

    def __init__(self, folder: Path, *, has_systemd: bool = True) -> None:
        self.etc = folder / "etc"
        (self.etc / "sysctl.d").mkdir(parents=True)
        self.asked: list[str] = []
        self.run = folder / "run"
        self.run.mkdir()
        self.version = 252
        udev = Udev(self.run, lambda: self.version)
        self.place = Place(self.etc, lambda: has_systemd, self._systemctl, udev)

    def _systemctl(self, words: Sequence[str]) -> str:
        self.asked.append(" ".join(words))
        return ""

    def has_link_file(self, name: str, match: str) -> None:
        """systemd-udevd gave this .link file to lo, which every machine has."""
        path = self.run / name
        path.write_text(f"# by netplan\n[Match]\n{match}\n\n[Link]\nName=lo\nWakeOnLan=off\nMTUBytes=1500\n")
        (self.run / f"n{socket.if_nametoindex('lo')}").write_text(f"I:17\nE:ID_NET_LINK_FILE={path}\nE:ID_BUS=pci\n")

    def files(self) -> dict[str, str]:
        return {str(path.relative_to(self.etc)): path.read_text() for path in self.etc.rglob("*") if path.is_file()}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def entered(journal: Journal, changes: Sequence[Change]) -> None:
    journal.entries += [Entry(one.json(), "a-rule", "a", "b", "boot", 0, "made", "b", persists=True) for one in changes]


def test_each_change_is_written_where_the_distribution_looks_for_it(host: Host, tmp_path: Path) -> None:
    with open_journal(tmp_path / "journal") as journal:
        entered(journal, CHANGES)
        assert persisted(journal, host.place) == []
    found = host.files()
    assert found.keys() == {SYSCTLS, VALUES, UNIT_FILE}
    assert "\nnet.core.somaxconn = 4096\nnet.ipv4.tcp_rmem = 4096 131072 6291456\n" in found[SYSCTLS]
    assert found[VALUES].endswith("\nw /sys/class/net/eth-1/queues/rx-0/rps_cpus - - - - 2\n")
    starts = [line for line in found[UNIT_FILE].splitlines() if line.startswith("ExecStart=")]
    assert starts[0].endswith("tc qdisc replace dev eth0 root handle 4b4e: fq")
    assert starts[1].endswith("systemd-tmpfiles --create /etc/tcpknee/settings.conf")
    assert "sys-subsystem-net-devices-eth\\x2d1.device" in found[UNIT_FILE]
    assert all("knee doctor --undo" in text.splitlines()[0] for text in found.values())
    folders = [path for path in host.etc.rglob("*") if path.is_dir()]
    assert folders and all(path.stat().st_mode & 0o777 == 0o755 for path in folders)
    assert host.asked == ["daemon-reload", "enable tcpknee-settings.service"]


def test_what_is_undone_leaves_no_file(host: Host, tmp_path: Path) -> None:
    with open_journal(tmp_path / "journal") as journal:
        entered(journal, CHANGES)
        persisted(journal, host.place)
        journal.entries.clear()
        host.asked.clear()
        assert persisted(journal, host.place) == []
        assert journal.files == []
    assert host.files() == {}
    assert host.asked == ["disable tcpknee-settings.service", "daemon-reload"]


UNDO = doctor_fix.Asked(fix=False, undo=True, persist=False, dry_run=True, yes=False, journal=None)


def test_a_look_at_what_would_be_undone_says_when_there_is_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor_fix, "_need_root", lambda *_: None)
    assert doctor_fix.undone(replace(UNDO, journal=tmp_path / "journal"), json=False) == 0
    assert capsys.readouterr().out == "There is nothing to undo.\n"


def test_undoing_without_root_promises_no_look_that_needs_root_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match=r"^knee doctor --undo: needs root; run it with sudo\.$"):
        doctor_fix.undone(UNDO, json=False)


@pytest.mark.parametrize(("outcome", "says"), [("made", True), ("refused", False)])
def test_the_way_back_is_told_only_where_something_was_made(
    outcome: Literal["made", "refused"],
    says: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(doctor_fix, "_need_root", lambda *_: None)
    monkeypatch.setattr(fix, "planned", lambda *_, **__: ([fix.Step(SOMAXCONN, "a-rule", "1", "4096")], []))
    monkeypatch.setattr(fix, "made", lambda *_, **__: [fix.Result(SOMAXCONN, "a-rule", outcome)])
    asked = replace(UNDO, fix=True, undo=False, yes=True, dry_run=False, journal=tmp_path / "journal")
    assert doctor_fix.fixed(asked, [], [], {}, named=False, json=False) == int(not says)
    assert ("To put it back: knee doctor --undo" in capsys.readouterr().out) is says


@pytest.mark.parametrize(("other", "code"), [("refused", 1), ("left", 1), ("unpaid", 0), ("there already", 0)], ids=str)
@pytest.mark.parametrize("dry_run", [False, True])
def test_the_exit_code_counts_what_is_not_in_the_plan_unless_it_does_not_pay(
    other: Literal["refused", "left", "unpaid", "there already"],
    code: int,
    dry_run: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    step = fix.Step(SOMAXCONN, "a-rule", "1", "4096")
    beside = [fix.Result(Sysctl("net.ipv4.tcp_sack", "1"), "a-rule", other)]
    monkeypatch.setattr(doctor_fix, "_need_root", lambda *_: None)
    monkeypatch.setattr(fix, "planned", lambda *_, **__: ([step], beside))
    monkeypatch.setattr(fix, "made", lambda *_, **__: [fix.Result(SOMAXCONN, "a-rule", "made")])
    asked = replace(UNDO, fix=True, undo=False, yes=True, dry_run=dry_run, journal=tmp_path / "journal")
    assert doctor_fix.fixed(asked, [], [], {}, named=False, json=False) == code


def test_a_file_of_somebody_else_with_our_name_is_left(host: Host, tmp_path: Path) -> None:
    (host.etc / SYSCTLS).write_text("net.core.somaxconn = 1\n")
    with open_journal(tmp_path / "journal") as journal:
        entered(journal, [SOMAXCONN])
        assert "somebody wrote it" in persisted(journal, host.place)[0]
    assert host.files() == {SYSCTLS: "net.core.somaxconn = 1\n"}


def test_a_file_that_was_edited_since_is_left_and_said(host: Host, tmp_path: Path) -> None:
    with open_journal(tmp_path / "journal") as journal:
        entered(journal, [SOMAXCONN])
        persisted(journal, host.place)
        (host.etc / SYSCTLS).write_text("edited")
        journal.entries.clear()
        assert "edited it since" in persisted(journal, host.place)[0]
        assert persisted(journal, host.place) == []
    assert host.files() == {SYSCTLS: "edited"}


def test_who_was_killed_while_a_file_was_written_still_removes_it(host: Host, tmp_path: Path) -> None:
    with open_journal(tmp_path / "journal") as journal:
        entered(journal, [SOMAXCONN])
        persisted(journal, host.place)
        text = host.files()[SYSCTLS]
    for present in (None, text):
        with open_journal(tmp_path / "journal") as journal:
            entered(journal, [SOMAXCONN])
            journal.files[:] = [type(journal.files[0])(str(host.etc / SYSCTLS), [None, text])] if journal.files else []
            journal.write()
            if present is None:
                (host.etc / SYSCTLS).unlink()
            journal.entries.clear()
            assert persisted(journal, host.place) == []
        assert host.files() == {}
        with open_journal(tmp_path / "journal") as journal:
            entered(journal, [SOMAXCONN])
            persisted(journal, host.place)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (Sysctl("net.core.somaxconn", "1", netns="web"), "namespace"),
        (RouteWindow("default", initcwnd=10), "routes"),
        (TxQueueLen("$(reboot)", 1), "cannot hold the word"),
        (TxQueueLen("a%b", 1), "cannot hold the word"),
        (TxQueueLen("-eth", 1), "cannot hold the word"),
    ],
    ids=str,
)
def test_what_cannot_persist_is_said_with_the_reason(host: Host, change: Change, why: str) -> None:
    assert why in why_not(change, host.place)


def test_without_systemd_only_sysctls_persist(tmp_path: Path) -> None:
    host = Host(tmp_path, has_systemd=False)
    assert [bool(why_not(change, host.place)) for change in CHANGES] == [False, False, True, True]


OF_DEVICE: dict[Change, str] = {
    Ring("lo", rx=4096, tx=512): "RxBufferSize=4096\nTxBufferSize=512",
    Channels("lo", combined=8): "CombinedChannels=8",
    Offload("lo", "gro", True): "GenericReceiveOffload=yes",
    Offload("lo", "tx", False): "TransmitChecksumOffload=no",
    Coalesce("lo", (("rx_usecs", 8), ("adaptive_rx", 0))): "RxCoalesceSec=8us\nUseAdaptiveRxCoalesce=no",
    TxQueueLen("lo", 1000): "TransmitQueueLength=1000",
}
DROP_IN = "systemd/network/10-netplan-lo.link.d/99-tcpknee.conf"


def test_a_device_with_a_link_file_of_its_own_gets_a_drop_in(host: Host, tmp_path: Path) -> None:
    host.has_link_file("10-netplan-lo.link", "PermanentMACAddress=02:00:5e:10:00:00")
    others = [Offload("lo", "sg", True), Offload("lo", "tso", True), Qdisc("lo", "pfifo"), Ring("eth0", rx=512)]
    with open_journal(tmp_path / "journal") as journal:
        entered(journal, [*OF_DEVICE, *others])
        assert persisted(journal, host.place) == []
        found = host.files()
        assert found.keys() == {DROP_IN, UNIT_FILE}
        assert found[DROP_IN].split("[Link]\n")[1].strip() == "\n".join(OF_DEVICE.values())
        assert found[UNIT_FILE].count("ExecStart=") == len(others)
        assert not [change for change in (*OF_DEVICE, *others) if why_not(change, host.place)]
        journal.entries.clear()
        assert persisted(journal, host.place) == []
        assert journal.files == []
    assert host.files() == {}
    assert not (host.etc / DROP_IN).parent.exists()


def test_a_drop_in_that_somebody_put_beside_ours_keeps_its_folder(host: Host, tmp_path: Path) -> None:
    host.has_link_file("10-netplan-lo.link", "Path=pci-0000:00:1f.6")
    with open_journal(tmp_path / "journal") as journal:
        entered(journal, [TxQueueLen("lo", 1000)])
        persisted(journal, host.place)
        theirs = (host.etc / DROP_IN).with_name("50-theirs.conf")
        theirs.write_text("[Link]\n")
        journal.entries.clear()
        assert persisted(journal, host.place) == []
    assert host.files().keys() == {str(theirs.relative_to(host.etc))}


@pytest.mark.parametrize(
    ("match", "version"),
    [
        ("OriginalName=*", 252),
        ("MACAddress=02:00:5e:10:00:00 02:00:5e:10:00:01", 252),
        ("Path=pci-0000:00:*", 252),
        ("Driver=ena", 252),
        ("MACAddress=02:00:5e:10:00:00", LEAST_VERSION - 1),
        ("MACAddress=02:00:5e:10:00:00", 0),
        ("[Match", 252),
    ],
)
def test_a_link_file_that_other_devices_may_have_too_gets_none(host: Host, match: str, version: int) -> None:
    host.has_link_file("73-usb.link", match)
    host.version = version
    assert host.place.udev.link_file("lo") is None
    assert Udev(host.run / "none", lambda: 252).link_file("lo") is None


def test_a_link_file_that_is_a_fifo_or_has_no_end_is_not_waited_for(host: Host) -> None:
    host.has_link_file("73-usb.link", "MACAddress=02:00:5e:10:00:00")
    assert host.place.udev.link_file("lo") is not None
    link = host.run / "73-usb.link"
    link.write_text(link.read_text() + "#" * MOST_BYTES)
    assert host.place.udev.link_file("lo") is None
    link.unlink()
    os.mkfifo(link)
    assert host.place.udev.link_file("lo") is None
    note = host.run / f"n{socket.if_nametoindex('lo')}"
    note.unlink()
    os.mkfifo(note)
    assert host.place.udev.link_file("lo") is None


def test_systemd_takes_the_unit_as_it_is_written(host: Host, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("not installed: systemd-analyze")
    changes = [*CHANGES, Ring("eth0", rx=4096), Coalesce("eth0.100", (("rx_usecs", 8),)), Offload("eth0", "gro", True)]
    with open_journal(tmp_path / "journal") as journal:
        entered(journal, changes)
        persisted(journal, host.place)
    # Programs that this machine lacks are no fault of the unit.
    unit = re.sub(r"ExecStart=-\S+", "ExecStart=-/bin/true", host.files()[UNIT_FILE])
    assert unit.count("ExecStart=-/bin/true ") == 5
    file = tmp_path / "tcpknee-settings.service"
    file.write_text(unit)
    ended = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", file], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, [line for line in ended.stderr.splitlines() if "tcpknee" in line]) == (0, [])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ('{"format": "another"}', "it is no journal"),
        ('{"format": "tcpknee-journal", "version": 2}', "its version is 2"),
        ('{"format": "tcpknee-journal", "version": 1, "entries": [{}], "files": []}', "damaged"),
        ('{"format": "tcpknee-journal", "version": 1, "entries": [], "files": [{"a": 1}]}', "damaged"),
    ],
)
def test_a_journal_that_cannot_be_read_is_refused_and_kept(tmp_path: Path, text: str, why: str) -> None:
    written_journal(tmp_path, text)
    with pytest.raises(EngineError, match=why), open_journal(tmp_path):
        pass
    assert (tmp_path / "journal.json").read_text() == text


def written_journal(folder: Path, text: str) -> None:
    """A journal of this text, as our own are: nobody else can have written it."""
    folder.chmod(0o700)
    (folder / "journal.json").write_text(text)
    (folder / "journal.json").chmod(0o600)


def naming(path: Path) -> str:
    """A journal that says that the file is ours and empty."""
    files = [{"path": str(path), "texts": [""]}]
    return json.dumps({"format": "tcpknee-journal", "version": 1, "entries": [], "files": files})


@pytest.mark.parametrize("name", ["victim", "../victim", "systemd/network/a.link.d/../../../99-tcpknee.conf"])
def test_a_journal_that_names_a_file_which_is_not_ours_is_refused(host: Host, tmp_path: Path, name: str) -> None:
    victim = host.etc / name
    victim.parent.mkdir(parents=True, exist_ok=True)
    victim.write_text("")
    written_journal(tmp_path, naming(victim))
    with open_journal(tmp_path) as journal, pytest.raises(EngineError, match="which --persist does not write"):
        check_files(journal, host.place)
    assert victim.read_text() == ""


def test_each_file_of_ours_is_taken_from_a_journal_and_its_removal_told(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor_fix, "_need_root", lambda *_: None)
    monkeypatch.setattr("tcpknee.doctor.persist.Place", lambda: host.place)
    undo = replace(UNDO, dry_run=False, journal=tmp_path)
    for name in (SYSCTLS, VALUES, UNIT_FILE, DROP_IN):
        file = host.etc / name
        for as_json in (True, False):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("")
            written_journal(tmp_path, naming(file))
            assert doctor_fix.undone(undo, json=as_json) == 0
            told = capsys.readouterr().out
            assert json.loads(told)["files"] == [str(file)] if as_json else told == f"{file}: removed\n"
            assert not file.exists()


def test_two_cannot_change_a_host_at_once(tmp_path: Path) -> None:
    with open_journal(tmp_path), pytest.raises(EngineError, match="another knee doctor"), open_journal(tmp_path):
        pass


class Kept:
    """A sysctl in a file of the test, whose writes can be refused."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.refuses = ""
        path.write_text("128\n")
        monkeypatch.setattr(Sysctl, "_file", lambda _: path)
        monkeypatch.setattr(Sysctl, "_apply", lambda _, state: self._write(state))

    def _write(self, state: str) -> None:
        if self.refuses:
            self.path.write_text(f"{self.refuses}\n")
            raise OSError(errno.EBUSY, "busy")
        self.path.write_text(f"{state}\n")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    return Kept(tmp_path / "somaxconn", monkeypatch)


def made_in(journal: Journal) -> None:
    steps, _ = fix.planned([Finding("a-rule", "advice", "host", "", {}, "", changes=[SOMAXCONN])])
    assert [one.outcome for one in fix.made(steps, journal)] == ["made"]


@pytest.mark.parametrize("half_way", ["4096", "77"])
def test_what_could_not_be_put_back_is_kept_for_the_next_time(
    kept: Kept, host: Host, tmp_path: Path, half_way: str
) -> None:
    with open_journal(tmp_path / "journal") as journal:
        made_in(journal)
        journal.entries[0].persists = True
        persisted(journal, host.place)
        kept.refuses = half_way
        [result] = fix.undone(journal)
        assert (result.outcome, kept.path.read_text()) == ("failed", f"{half_way}\n")
        persisted(journal, host.place)
        # Its file is removed: the next boot takes it back.
        assert host.files() == {}
    kept.refuses = ""
    with open_journal(tmp_path / "journal") as journal:
        assert [one.outcome for one in fix.undone(journal)] == ["undone"]
        assert journal.entries == []
    assert kept.path.read_text() == "128\n"


def test_what_somebody_else_wrote_after_it_could_not_be_put_back_stays(kept: Kept, tmp_path: Path) -> None:
    with open_journal(tmp_path / "journal") as journal:
        made_in(journal)
        kept.refuses = "77"
        fix.undone(journal)
        kept.refuses = ""
        kept.path.write_text("4096\n")
        assert [one.outcome for one in fix.undone(journal)] == ["left"]
        assert journal.entries == []


def test_a_value_that_cannot_be_read_is_kept_and_one_that_is_not_there_is_gone(kept: Kept, tmp_path: Path) -> None:
    with open_journal(tmp_path / "journal") as journal:
        made_in(journal)
        kept.path.unlink()
        kept.path.mkdir()
        assert [one.outcome for one in fix.undone(journal)] == ["failed"]
        kept.path.rmdir()
        assert [one.outcome for one in fix.undone(journal)] == ["gone"]
        assert journal.entries == []
        absent = [TxQueueLen("no-such", 1), Qdisc("no-such", "fq"), Rps("no-such", 0, (0,)), Ring("no-such", rx=1)]
        entered(journal, [*absent, RouteWindow("192.0.2.77/32", "no-such", initcwnd=10)])
        assert {one.outcome for one in fix.undone(journal)} == {"gone"}


def test_a_change_that_failed_half_way_and_stays_so_is_kept_and_the_way_back_told(
    kept: Kept, host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor_fix, "_need_root", lambda *_: None)
    monkeypatch.setattr("tcpknee.doctor.persist.Place", lambda: host.place)
    kept.refuses = "4096"
    finding = Finding("a-rule", "advice", "host", "", {}, "", changes=[SOMAXCONN])
    asked = replace(UNDO, fix=True, undo=False, yes=True, dry_run=False, journal=tmp_path / "journal")
    assert doctor_fix.fixed(asked, [finding], [], {}, named=False, json=False) == 1
    told = capsys.readouterr().out
    assert "net.core.somaxconn: NOT PUT BACK: busy. It could not be put back: " in told
    assert "To put it back: knee doctor --undo" in told
    undo = replace(asked, fix=False, undo=True)
    assert doctor_fix.undone(undo, json=False) == 1
    kept.refuses = ""
    assert doctor_fix.undone(undo, json=False) == 0
    assert "net.core.somaxconn: put back" in capsys.readouterr().out
    assert kept.path.read_text() == "128\n"
