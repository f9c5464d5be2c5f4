"""Arms, designs and plans of `knee assign`, without a kernel."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from tcpknee import _core, provenance
from tcpknee.algorithms import for_kernel, naming, outline
from tcpknee.cli.until import until_ctrl_c
from tcpknee.errors import KernelUnsupported, RunFolderError, UsageError
from tcpknee.fleet.assign import cgroup, running
from tcpknee.fleet.assign.arms import parse
from tcpknee.fleet.assign.designs import DESIGNS, arm_of_period
from tcpknee.fleet.assign.plan import Plan, instant, make
from tcpknee.live.record import stop_signals

SECOND_NS = 1_000_000_000
NOW_NS = 1_767_225_600 * SECOND_NS
PREFIXES = [f"198.{18 + number // 256}.{number % 256}.0/24" for number in range(512)]


def plan(*texts: str, **given: object) -> Plan:
    return make(texts or ("bbr1", "cubic"), **{"seed": 7, "now_unix_ns": NOW_NS, **given})  # type: ignore[arg-type]


def shares(made: Plan, after_sec: float) -> tuple[tuple[float, ...], ...]:
    return made.phase(NOW_NS + int(after_sec * SECOND_NS)).shares_pct


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_an_arm_may_be_a_file_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[naming.Named] = []
    monkeypatch.setattr(for_kernel, "add", lambda one, compiled: added.append(one))
    monkeypatch.chdir(tmp_path)
    Path("mine.c").write_text(outline.of("mine"), encoding="utf-8")
    found = parse(["./mine.c=10%", "new:mine.c=30%", "cubic"])
    assert [(arm.name, arm.algorithm, arm.share_pct) for arm in found] == [
        ("mine", "mine", 10),
        ("new", "mine_file", 30),
        ("cubic", "cubic", 60),
    ]
    assert [one.name for one in added] == ["mine", "mine_file"], "the loader knows them"
    with pytest.raises(UsageError, match=r"\./none\.c: cannot be read"):
        parse(["./none.c", "cubic"])


def test_arms_have_names_algorithms_and_shares() -> None:
    assert [(arm.name, arm.algorithm, arm.share_pct) for arm in parse(["new:bbr3=10%", "cubic=60%", "reno"])] == [
        ("new", "bbr3", 10),
        ("cubic", "cubic", 60),
        ("reno", "reno", 30),
    ]
    assert [arm.share_pct for arm in parse(["a:cubic", "b:cubic"])] == [50, 50]


def test_linux_name_of_an_algorithm_gives_ours_and_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    """The kernel's own bbr, or with --bpf our build of it, for which there is nothing called bbr to load."""
    arms = parse(["bbr", "old:bbr", "cubic"])
    assert [(arm.name, arm.algorithm) for arm in arms] == [("bbr1", "bbr1"), ("old", "bbr1"), ("cubic", "cubic")]
    assert capsys.readouterr().err == "Note: bbr is Linux's name of bbr1, and bbr1 is what it is called here.\n"
    with pytest.raises(UsageError, match='"bbr1" twice'):
        parse(["bbr", "bbr1"])


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["bbr1"], "got 1; expected 2 to 8"),
        (["cubic", "cubic"], '"cubic" twice'),
        (["bbr1=60%", "cubic=60%"], "120% together"),
        (["bbr1=60%", "cubic=30%"], "90% together"),
        (["bbr1=100%", "cubic"], "something left for it"),
        (["bbr1=0.5", "cubic"], "such as"),
        (["bbr1=101%", "cubic"], "from 0% to 100%"),
        (["BBR1", "cubic"], '"BBR1"'),
        (["cubic;reno", "bbr1"], '"cubic;reno"'),
    ],
)
def test_arms_that_make_no_experiment_are_refused(texts: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(texts)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"design": "switchback"}, "^period: is missing"),
        ({"design": "cluster", "period": "1min"}, "^period: is not for"),
        ({"design": "ramp", "period": "1min"}, "^steps: is missing"),
        ({"design": "ramp", "period": "1min", "steps": "10%,5%"}, "expected shares that grow"),
        ({"design": "ramp", "period": "1ms", "steps": "10%,50%"}, 'at least "1s"'),
        ({"design": "paired-link", "links": ["eth0=95%"]}, "expected two"),
        ({"design": "paired-link", "links": ["eth0", "eth1=5%"]}, '^link: got "eth0"'),
        ({"design": "cluster", "unit": "connection"}, "assigns by prefix or host"),
        ({"design": "switchback", "period": "1min", "unit": "prefix"}, "assigns by host"),
        ({"prefix": "24"}, '^prefix: got "24"'),
        ({"prefix": "33,48"}, '^prefix: got "33,48"'),
        ({"design": "ab", "unit": "host", "prefix": "16,32"}, "is for --unit prefix"),
        ({"ports": ["0"]}, '^port: got "0"'),
        ({"ports": ["90-80"]}, '^port: got "90-80"'),
        ({"netns": "nowhere"}, "there is no /run/netns/nowhere"),
    ],
)
def test_options_that_do_not_fit_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        plan(**given)


def test_shares_stand_in_one_place() -> None:
    with pytest.raises(UsageError, match="expected arms without shares"):
        plan("bbr1=50%", "cubic=50%", design="ramp", period="1min", steps="1%,10%")


def test_prefixes_are_the_units_unless_said_otherwise_and_connections_never() -> None:
    assert plan().unit == "prefix"
    assert {name: design.units[0] for name, design in DESIGNS.items()} == {
        "ab": "prefix",
        "cluster": "prefix",
        "switchback": "host",
        "paired-link": "prefix",
        "ramp": "prefix",
    }


def test_the_same_seed_gives_a_prefix_the_same_arm_wherever_and_whenever_it_is_asked() -> None:
    """Hosts know nothing of each other; arms, seed and prefix decide."""
    first = plan().arms_of(PREFIXES, NOW_NS)
    elsewhere = plan(ports=["443"], now_unix_ns=NOW_NS + 86_400 * SECOND_NS)
    assert elsewhere.arms_of(PREFIXES, NOW_NS + 90_000 * SECOND_NS) == first
    assert plan().arms_of([prefix.replace(".0/24", ".77") for prefix in PREFIXES], NOW_NS) == first
    assert 0.4 < first.count("bbr1") / len(first) < 0.6
    other = plan(seed=8).arms_of(PREFIXES, NOW_NS)
    assert 0.4 < sum(a != b for a, b in zip(first, other, strict=True)) / len(first) < 0.6


def test_these_prefixes_have_these_arms_for_good() -> None:
    """An experiment that goes on after an update keeps its arms."""
    found = plan().arms_of(["192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8:1::/48"], NOW_NS)
    assert found == ["bbr1", "cubic", "cubic", "bbr1"]


def test_a_longer_prefix_divides_what_a_shorter_one_holds_together() -> None:
    together = plan(prefix="16,32").arms_of(PREFIXES, NOW_NS)
    assert len(set(together[:256])) == 1
    assert len(set(plan().arms_of(PREFIXES[:256], NOW_NS))) == 2


def test_where_the_client_does_not_decide_its_arm_is_not_told() -> None:
    with pytest.raises(UsageError, match="does not decide"):
        plan(design="ab", unit="connection").arms_of(["192.0.2.1"], NOW_NS)


def test_a_switchback_has_every_arm_as_often_as_its_share_in_each_block() -> None:
    arms = parse(["bbr1=25%", "cubic=75%"])
    orders = set()
    for block in range(200):
        order = tuple(arm_of_period(arms, 3, 4 * block + place) for place in range(4))
        assert sorted(order) == [0, 1, 1, 1]
        orders.add(order)
    assert len(orders) == 4
    assert [arm_of_period(arms, 3, period) for period in range(400)] != [
        arm_of_period(arms, 4, period) for period in range(400)
    ]


def test_periods_are_of_the_wall_clock_so_that_hosts_agree() -> None:
    early = plan(design="switchback", period="10min")
    late = plan(design="switchback", period="10min", now_unix_ns=NOW_NS + 1234 * SECOND_NS)
    for after in range(0, 7200, 97):
        assert early.phase(NOW_NS + after * SECOND_NS) == late.phase(NOW_NS + after * SECOND_NS)
    phase = early.phase(NOW_NS)
    assert phase.ends_unix_ns == NOW_NS + 600 * SECOND_NS
    assert sorted(phase.shares_pct[0]) == [0, 100]


def test_shares_that_no_short_block_can_have_are_refused() -> None:
    with pytest.raises(UsageError, match="come true in 100 periods"):
        plan("bbr1=1%", "cubic=99%", design="switchback", period="1min")


def test_a_ramp_goes_step_by_step_and_stays_at_the_last() -> None:
    made = plan(design="ramp", period="1h", steps="1%,10%,50%")
    assert [shares(made, hours * 3600) for hours in (0, 0.99, 1, 2, 3, 30)] == [
        ((1, 99),),
        ((1, 99),),
        ((10, 90),),
        ((50, 50),),
        ((50, 50),),
        ((50, 50),),
    ]
    assert made.phase(NOW_NS).ends_unix_ns == NOW_NS + 3600 * SECOND_NS
    assert made.phase(NOW_NS + 7200 * SECOND_NS).ends_unix_ns is None
    begun = plan(design="ramp", period="1h", steps="1%,10%,50%", begin_unix_ns=NOW_NS - 3600 * SECOND_NS)
    assert shares(begun, 0) == ((10, 90),)


def test_a_prefix_that_a_ramp_treats_stays_treated() -> None:
    made = plan(design="ramp", period="1h", steps="5%,20%,60%,100%")
    steps = [made.arms_of(PREFIXES, NOW_NS + hour * 3600 * SECOND_NS) for hour in range(4)]
    treated = [{prefix for prefix, arm in zip(PREFIXES, step, strict=True) if arm == "bbr1"} for step in steps]
    assert all(before < after for before, after in pairwise(treated))
    assert len(treated[-1]) == len(PREFIXES)


def test_links_are_devices_prefixes_and_namespaces() -> None:
    made = plan(design="paired-link", links=["eth0=95%", "192.0.2.7/24=5%"])
    told = json.loads(made.told)["links"]
    assert [link["interface"] for link in told] == ["eth0", None]
    assert told[1]["local"] == ["192.0.2.0", 24]
    assert made.phase(NOW_NS).shares_pct == ((95, 5), (5, 95))
    own = plan(design="paired-link", links=[f"netns:{os.getpid()}=90%", "2001:db8::/32=10%"])
    assert json.loads(own.told)["links"][0]["netns"] == f"/proc/{os.getpid()}/ns/net"


def test_times_have_their_zone() -> None:
    assert instant("2026-01-01T00:00Z") == NOW_NS == instant("2026-01-01T09:00+09:00")
    for text in ("2026-01-01T00:00", "tomorrow"):
        with pytest.raises(UsageError, match="with its zone"):
            instant(text)


@pytest.mark.parametrize("client", ["::1%eth0", "fe80::%eth0/64", "192.0.2.0/33", "host"])
def test_a_client_is_an_address_or_a_prefix_and_has_no_zone(client: str) -> None:
    with pytest.raises(UsageError) as refused:
        plan().arms_of([client], NOW_NS)
    assert f'which: got "{client}"; expected an address without a zone' in str(refused.value)


@pytest.mark.parametrize(
    ("client", "unit", "longer"),
    [("10.1.0.0/16", 24, "16,48"), ("10.1.0.0/23", 24, "23,48"), ("2001:db8::/47", 48, "24,47"), ("::/0", 48, "24,0")],
)
def test_a_client_is_no_prefix_that_holds_many_units(client: str, unit: int, longer: str) -> None:
    with pytest.raises(UsageError, match=f'which: got "{client}", which holds many units of /{unit}, .* or longer'):
        plan().arms_of([client], NOW_NS)
    assert len(plan(prefix=longer).arms_of([client], NOW_NS)) == 1


V1 = "25 1 0:22 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"


def test_a_host_without_cgroups_v2_is_told_how_to_have_them(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(V1)
    with pytest.raises(KernelUnsupported, match="mount -t cgroup2"):
        cgroup.folder(None, mounts)


def test_the_whole_hierarchy_is_found_before_a_part_of_it(tmp_path: Path) -> None:
    root = tmp_path / "uni fied"
    (root / "web.slice").mkdir(parents=True)
    (root / "web.slice/cgroup.procs").touch()
    escaped = str(root).replace(" ", "\\040")
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"{V1}26 1 0:23 /docker/1 /a/part rw - cgroup2 cgroup2 rw\n27 1 0:23 / {escaped} rw - cgroup2 cgroup2 rw\n"
    )
    assert cgroup.folder(None, mounts) == root
    assert cgroup.folder("/web.slice", mounts) == cgroup.folder(str(root / "web.slice"), mounts) == root / "web.slice"
    with pytest.raises(UsageError, match=r"none\.slice is no cgroup v2"):
        cgroup.folder("none.slice", mounts)


def test_only_the_assignment_that_is_meant_is_ended(tmp_path: Path) -> None:
    about = {"schema": 1, "began": "2026-01-01T00:00:00+00:00", "is_over": False}
    assert not running.end(tmp_path, "why")
    (tmp_path / running.ABOUT).write_text(json.dumps(about))
    assert running.end(tmp_path, "too many losses")
    assert running.stopped(tmp_path, about["began"]) == "too many losses"  # type: ignore[arg-type]
    assert running.stopped(tmp_path, "2026-01-02T00:00:00+00:00") is None
    (tmp_path / running.STOP).write_text("{")
    assert running.stopped(tmp_path, about["began"]) is None  # type: ignore[arg-type]
    (tmp_path / running.ABOUT).write_text(json.dumps({**about, "is_over": True}))
    assert not running.end(tmp_path, "again")


def test_a_log_whose_last_rows_cannot_be_written_is_no_assignment_that_ended_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise RunFolderError("the disk is full")

    taken = SimpleNamespace(rows=[], assigned=[0, 0], refused=0, lost=0)
    assigner = SimpleNamespace(algorithms={}, take=lambda: taken, end=lambda: None)
    folder = running._core.Folder(tmp_path)
    monkeypatch.setattr(running, "_core", SimpleNamespace(Assigner=lambda *_: assigner))
    assignment = running._Running(plan(), tmp_path, tmp_path, folder, running.Heir(folder))
    assignment.writer = SimpleNamespace(write=lambda _: None, finish=full)  # type: ignore[assignment]
    with pytest.raises(RunFolderError, match="the disk is full"):
        assignment.run(0.0, running.threading.Event(), None)
    about = json.loads((tmp_path / running.ABOUT).read_text(encoding="utf-8"))
    assert (about["is_over"], about["error"]) == (True, "the disk is full")


def test_an_assignment_that_was_killed_is_over_once_its_lock_is_free(tmp_path: Path) -> None:
    about = {"schema": 1, "began": "2026-01-01T00:00:00+00:00", "is_over": False, "host": provenance.host()}
    (tmp_path / running.ABOUT).write_text(json.dumps(about))

    def is_over() -> bool:
        found = running.read(tmp_path)
        assert found is not None
        return bool(found["is_over"])

    assert not is_over(), "without a lock nothing is known"
    lock = _core.Folder(tmp_path).lock(running._LOCK)
    assert lock is not None and not is_over()
    lock.release()
    assert is_over() and not running.end(tmp_path, "why")
    assert _core.Folder(tmp_path).lock(running._LOCK) is not None, "who looks does not keep it"
    # A copy of another host's folder has the file, and not the lock.
    (tmp_path / running.ABOUT).write_text(json.dumps(about | {"host": {"boot_id": "another"}}))
    assert not is_over()


@pytest.mark.parametrize("ignored", [False, True])
def test_a_terminal_that_goes_away_ends_a_measurement_but_under_nohup(ignored: bool) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        with until_ctrl_c() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert stop.is_set() is not ignored
        with stop_signals() as woken:
            signal.raise_signal(signal.SIGHUP)
            assert bool(select.select([woken], [], [], 0)[0]) is not ignored, "of a recording likewise"
    finally:
        signal.signal(signal.SIGHUP, before)
