"""The files that make changes again after a boot: what they hold, whose they are, and that undoing removes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kneepoint.doctor.changes import Change, Qdisc, RouteWindow, Rps, Sysctl, TxQueueLen
from kneepoint.doctor.journal import Entry, Journal, open_journal
from kneepoint.doctor.persist import SYSCTLS, UNIT_FILE, VALUES, Place, persisted, why_not

SOMAXCONN = Sysctl("net.core.somaxconn", "4096")
CHANGES = [SOMAXCONN, Sysctl("net.ipv4.tcp_rmem", "4096 131072 6291456"), Qdisc("eth0", "fq"), Rps("eth-1", 0, (1,))]


class Host:
    """An /etc, and what systemctl was asked."""

    def __init__(self, folder: Path, *, has_systemd: bool = True) -> None:
        self.etc = folder / "etc"
        (self.etc / "sysctl.d").mkdir(parents=True)
        self.asked: list[str] = []
        self.place = Place(self.etc, lambda: has_systemd, self._systemctl)

    def _systemctl(self, words: Sequence[str]) -> str:
        self.asked.append(" ".join(words))
        return ""

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
    assert starts[1].endswith("systemd-tmpfiles --create /etc/kneepoint/settings.conf")
    assert "sys-subsystem-net-devices-eth\\x2d1.device" in found[UNIT_FILE]
    assert all("knee doctor --undo" in text.splitlines()[0] for text in found.values())
    assert host.asked == ["daemon-reload", "enable kneepoint-settings.service"]


def test_what_is_undone_leaves_no_file(host: Host, tmp_path: Path) -> None:
    with open_journal(tmp_path / "journal") as journal:
        entered(journal, CHANGES)
        persisted(journal, host.place)
        journal.entries.clear()
        host.asked.clear()
        assert persisted(journal, host.place) == []
        assert journal.files == []
    assert host.files() == {}
    assert host.asked == ["disable kneepoint-settings.service", "daemon-reload"]


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


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "cannot be read"),
        ('{"format": "another"}', "it is no journal"),
        ('{"format": "kneepoint-journal", "version": 2}', "its version is 2"),
        ('{"format": "kneepoint-journal", "version": 1, "entries": [{}], "files": []}', "damaged"),
        ('{"format": "kneepoint-journal", "version": 1, "entries": [], "files": [{"a": 1}]}', "damaged"),
    ],
)
def test_a_journal_that_cannot_be_read_is_refused_and_kept(tmp_path: Path, text: str, why: str) -> None:
    from kneepoint.errors import EngineError

    tmp_path.chmod(0o700)
    (tmp_path / "journal.json").write_text(text)
    with pytest.raises(EngineError, match=why), open_journal(tmp_path):
        pass
    assert (tmp_path / "journal.json").read_text() == text


def test_two_cannot_change_a_host_at_once(tmp_path: Path) -> None:
    from kneepoint.errors import EngineError

    with open_journal(tmp_path), pytest.raises(EngineError, match="another knee doctor"), open_journal(tmp_path):
        pass
