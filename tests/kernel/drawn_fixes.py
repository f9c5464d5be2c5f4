"""Draws states of a namespace and changes of random rules, makes them and takes them back: run in that namespace.

    drawn_fixes.py FOLDER whole|killed|foreign SEED...
    drawn_fixes.py FOLDER every < CHANGES

For each seed the state of the devices is drawn anew on top of what the last one left, by ip, tc, ethtool and files.
Then rules are drawn, whose changes are those of the host on which the rule fires, with devices of this namespace; and
further changes with drawn values. Prints a JSON object with the number of seeds, of changes and of kills, and what went
wrong.

    whole     all are made and undone
    killed    a process that makes them, and then one that undoes them, is killed at a drawn point
    foreign   another program writes a value between the two
    every     the changes on stdin; killed at every point of making them, and at every point of undoing them
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python/doctor"))

from made import snapshot
from rule_cases import CASES

import dying
from dying import finding_of, make, undo
from tcpknee.doctor import fix
from tcpknee.doctor.changes import (
    Change,
    Channels,
    Offload,
    Qdisc,
    RouteWindow,
    Rps,
    RpsFlows,
    Sysctl,
    TxQueueLen,
    Xps,
    change_of,
)
from tcpknee.doctor.journal import open_journal
from tcpknee.doctor.rules import RULES
from tcpknee.doctor.snapshot import take

DEVICES = ("veth0", "veth1")
QUEUES = 4
SNAPSHOT_EVERY = 10
POINTS = 6
"""Least number of points of a change where a process can be killed: around two writes of the journal and the act."""
OF_SNAPSHOT: dict[str, set[str]] = {
    "interfaces": {"interface", "mtu_bytes", "txqueuelen_pkts", "rx_queues", "tx_queues", "operstate"},
    "qdiscs": {"interface", "kind", "handle", "parent", "options"},
    **{one: set() for one in ("sysctls", "rings", "channels", "offloads", "coalescing", "queues", "routes")},
}
"""Tables of a snapshot that hold settings, and their columns; none: all."""
OF_THE_MACHINE = {"tcp_challenge_ack_limit", "tcp_available_congestion_control", "tcp_allowed_congestion_control"}
"""What every namespace shows of the machine: which algorithms are loaded, which other tests do meanwhile."""

FOREIGN = {"somaxconn": "4321", "tcp_notsent_lowat": "54321", "tx_queue_len": "321", "rps_flow_cnt": "65536"}
"""What another program writes into these files."""


@dataclass
class Tally:
    seeds: int = 0
    changes: int = 0
    kills: int = 0
    foreign: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def run(*words: object) -> str:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True).stdout


def by_chance(chance: random.Random, *words: object) -> None:
    """Half of the time; what this kernel or device refuses stays as it is."""
    if chance.random() < 0.5:
        subprocess.run([str(word) for word in words], capture_output=True, check=False)


def mask(chance: random.Random) -> str:
    return f"{chance.randrange(1 << min(os.cpu_count() or 1, 8)):x}"


def draw_state(chance: random.Random) -> None:
    """What somebody has set up before us."""
    for device in DEVICES:
        by_chance(chance, "tc", "qdisc", "del", "dev", device, "root")
        kind = chance.choice(["pfifo", "bfifo", "mq", "mq", "fq_codel", "fq"])
        handle = f"{chance.randrange(1, 200):x}:"
        limit = ("limit", chance.randrange(1, 5000)) if kind in ("pfifo", "bfifo") else ()
        by_chance(chance, "tc", "qdisc", "replace", "dev", device, "root", "handle", handle, kind, *limit)
        for queue in range(1, QUEUES + 1):
            leaf = ("handle", f"{0x300 + queue:x}:", "pfifo", "limit", chance.randrange(1, 99))
            by_chance(chance, "tc", "qdisc", "replace", "dev", device, "parent", f"{handle}{queue}", *leaf)
        for feature in ("gro", "gso", "tso", "tx", "sg", "rx-gro-list"):
            by_chance(chance, "ethtool", "-K", device, feature, chance.choice(["on", "off"]))
        by_chance(chance, "ip", "link", "set", device, "txqueuelen", chance.randrange(1, 9999))
        for queue in range(QUEUES):
            for name in (f"rx-{queue}/rps_cpus", f"tx-{queue}/xps_cpus"):
                write_by_chance(chance, Path("/sys/class/net", device, "queues", name), mask(chance))
            flows = 1 << chance.randrange(12)
            write_by_chance(chance, Path("/sys/class/net", device, f"queues/rx-{queue}/rps_flow_cnt"), str(flows))
    for change in draw_sysctls(chance):
        write_by_chance(chance, Path("/proc/sys", *change.name.split(".")), change.value)
    window = ("initcwnd", chance.randrange(1, 40), "mtu", chance.randrange(1300, 1500))
    by_chance(chance, "ip", "route", "replace", "default", "via", "10.9.0.2", "dev", "veth0", *window)


def write_by_chance(chance: random.Random, path: Path, text: str) -> None:
    if chance.random() < 0.5:
        with suppress(OSError):
            path.write_text(text)


def draw_sysctls(chance: random.Random) -> list[Sysctl]:
    rising = sorted(chance.randrange(8192, 1 << 26) for _ in range(3))
    return [
        Sysctl("net.ipv4.tcp_rmem", " ".join(map(str, rising))),
        Sysctl("net.ipv4.tcp_wmem", " ".join(str(one // 2) for one in rising)),
        Sysctl("net.ipv4.tcp_congestion_control", chance.choice(["reno", "cubic"])),
        Sysctl("net.ipv4.tcp_slow_start_after_idle", str(chance.randrange(2))),
        Sysctl("net.ipv4.tcp_notsent_lowat", str(chance.randrange(1 << 32))),
        Sysctl("net.ipv4.tcp_sack", str(chance.randrange(2))),
        Sysctl("net.core.somaxconn", str(chance.randrange(1, 65536))),
        Sysctl("net.ipv4.ip_local_port_range", f"{chance.randrange(1024, 9999)} {chance.randrange(10_000, 65_535)}"),
        Sysctl("net.ipv4.conf.veth0.rp_filter", str(chance.randrange(3))),
    ]


def of_rules(chance: random.Random) -> Iterator[Change]:
    """The changes of a random subset of the rules."""
    for rule in chance.sample(RULES, chance.randrange(len(RULES))):
        for finding in rule.check(snapshot(CASES[rule.name].fires)):
            for change in finding.changes:
                # What belongs to the whole machine is not a test's to change.
                if change.is_of_namespace:
                    yield here(change, chance)


def here(change: Change, chance: random.Random) -> Change:
    """With a device of this namespace."""
    if "interface" not in {one.name for one in fields(change)}:
        return change
    device = "veth0" if isinstance(change, RouteWindow) else chance.choice(DEVICES)
    return replace(change, interface=device)  # type: ignore[call-arg]


def draw_changes(chance: random.Random) -> list[Change]:
    device = chance.choice(DEVICES)
    queue, cpus = chance.randrange(QUEUES), tuple(cpu for cpu in range(os.cpu_count() or 1) if chance.random() < 0.5)
    own: list[Change] = [
        *draw_sysctls(chance),
        Qdisc(device, "pfifo", (("limit", chance.randrange(1, 999)),), leaves=chance.choice([0, QUEUES])),
        Qdisc(device, "bfifo", (("limit", chance.randrange(2000, 99_999)),)),
        Channels(device, rx=chance.randrange(1, QUEUES + 1), tx=chance.randrange(1, QUEUES + 1)),
        *(Offload(device, name, chance.random() < 0.5) for name in ("gro", "tso", "gso", "sg", "tx", "rx")),
        TxQueueLen(device, chance.randrange(1, 99_999)),
        Rps(device, queue, cpus),
        Xps(device, queue, cpus),
        RpsFlows(device, queue, chance.randrange(9999)),
        RouteWindow("default", initcwnd=chance.randrange(1, 50), congctl=chance.choice([None, "reno"])),
        RouteWindow("10.9.0.0/24", initrwnd=chance.randrange(1, 50)),
        RouteWindow("fd00:9::/64", initcwnd=chance.randrange(1, 50)),
    ]
    chosen = [*of_rules(chance), *chance.sample(own, chance.randrange(1, len(own)))]
    chance.shuffle(chosen)
    return chosen


def settings() -> dict[str, str]:
    """What programs of others, and the files below /proc and /sys, say of all there is to change."""
    found = {"qdisc": run("tc", "-d", "qdisc", "show"), "link": run("ip", "-d", "link", "show")}
    for family in ("-4", "-6"):
        found[f"routes {family}"] = run("ip", "-d", family, "route", "show", "table", "all")
    for device in DEVICES:
        for letter in "kl":
            found[f"{device} -{letter}"] = run("ethtool", f"-{letter}", device)
    for folder in ("/proc/sys/net/core", "/proc/sys/net/ipv4", *(f"/sys/class/net/{one}/queues" for one in DEVICES)):
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and path.name not in OF_THE_MACHINE and "statistics" not in path.parts:
                found[str(path)] = text_of(path)
    return found


def text_of(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        return type(error).__name__


def pictured() -> dict[str, str]:
    """The settings in a snapshot, by table and row."""
    tables = take().json()["tables"]
    found = {}
    for table, columns in OF_SNAPSHOT.items():
        for number, row in enumerate(tables.get(table, [])):
            if str(row.get("name", "")).rpartition(".")[2] in OF_THE_MACHINE:
                continue
            chosen = {name: value for name, value in row.items() if not columns or name in columns}
            found[f"snapshot {table} {number}"] = json.dumps(chosen, sort_keys=True)
    return found


def looked() -> dict[str, str]:
    return settings() | pictured()


def difference(before: dict[str, str], after: dict[str, str]) -> str:
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return "; ".join(f"{name}: {before.get(name)!r} became {after.get(name)!r}" for name in names)


def killed(act: Callable[[], object], point: int) -> bool:
    """Does it in a process of its own, which is killed at that point; False: it came to its end before."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            dying.mortals(point)
            act()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the child failed"
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def file_of(change: Change) -> Path | None:
    """The file that holds the setting of some changes, which other programs write as easily."""
    if isinstance(change, Sysctl):
        return Path("/proc/sys", *change.name.split("."))
    if isinstance(change, TxQueueLen):
        return Path("/sys/class/net", change.interface, "tx_queue_len")
    return Path(change.commands()[0][1]) if isinstance(change, RpsFlows) else None


def written_by_another(chance: random.Random, made: Sequence[Change]) -> tuple[Change, Path, str] | None:
    """Writes another value over one of ours, as another program would. Returns the change, its file and that value."""
    # Queues that come anew have their settings anew.
    if any(isinstance(one, Channels) for one in made):
        made = [one for one in made if isinstance(one, Sysctl)]
    files = [(one, path, FOREIGN[path.name]) for one in made if (path := file_of(one)) and path.name in FOREIGN]
    if not files:
        return None
    change, path, value = chance.choice(files)
    path.write_text(value)
    return change, path, value


def whole(chance: random.Random, changes: Sequence[Change], journal: Path, tally: Tally) -> str:
    made = make(changes, journal)
    for result in made:
        tally.outcomes[result.outcome] = tally.outcomes.get(result.outcome, 0) + 1
    undone = undo(journal)
    ours = {json.dumps(one.change.json(), sort_keys=True) for one in made if one.outcome == "made"}
    back = {json.dumps(one.change.json(), sort_keys=True) for one in undone if one.outcome == "undone"}
    return "" if ours == back else f"made {sorted(ours - back)} and did not undo it"


def cut(chance: random.Random, changes: Sequence[Change], journal: Path, tally: Tally) -> str:
    """Killed while it makes them; then, half of the time, killed again while that is undone."""
    steps = len(fix.planned([finding_of(changes)])[0])
    if steps:
        tally.kills += killed(lambda: make(changes, journal), chance.randrange(1, POINTS * steps + 1))
    if chance.random() < 0.5 and (entries := noted(journal)):
        tally.kills += killed(lambda: undo(journal), chance.randrange(1, POINTS * entries + 1))
    odd = [result for result in undo(journal) if result.outcome != "undone"]
    return "".join(f"{one.change.target}: {one.outcome}: {one.said}" for one in odd)


def noted(journal: Path) -> int:
    with open_journal(journal) as book:
        return len(book.entries)


def every(journal: Path, changes: Sequence[Change], tally: Tally) -> None:
    """Killed at each point of making the changes, one after the other, and then at each point of undoing them."""
    before = settings()
    for what in ("making", "undoing"):
        for point in itertools.count(1):
            if what == "making":
                died = killed(lambda: make(changes, journal), point)
            else:
                make(changes, journal)
                died = killed(lambda: undo(journal), point)
            undo(journal)
            if (after := settings()) != before:
                tally.wrong.append(f"{what}, killed at point {point}: {difference(before, after)}")
                return
            if not died:
                break
            tally.kills += 1
    tally.changes = len(changes)


def foreign(chance: random.Random, changes: Sequence[Change], journal: Path, tally: Tally) -> str:
    first = {change.target: text_of(path) for change in changes if (path := file_of(change))}
    made = [one.change for one in make(changes, journal) if one.outcome == "made"]
    written = written_by_another(chance, made)
    left = [one for one in undo(journal) if one.outcome == "left"]
    if written is None:
        return "".join(f"{one.change.target}: {one.said}" for one in left)
    tally.foreign += 1
    change, path, value = written
    if [one.change for one in left] != [change] or "Somebody else changed it" not in left[0].said:
        return f"{change.target} was written by another, and left is {[one.change.target for one in left]}"
    if path.read_text().split() != value.split():
        return f"{path}: another wrote {value}, and it is {path.read_text()}"
    path.write_text(first[change.target])
    return ""


MODES = {"whole": whole, "killed": cut, "foreign": foreign}


def main(folder: Path, mode: str, seeds: Sequence[int]) -> Tally:
    tally = Tally()
    for seed in seeds:
        chance = random.Random(f"{mode} {seed}")
        draw_state(chance)
        changes = draw_changes(chance)
        look = looked if seed % SNAPSHOT_EVERY == 0 else settings
        before = look()
        with tempfile.TemporaryDirectory(dir=folder) as journal:
            why = MODES[mode](chance, changes, Path(journal), tally)
        after = look()
        if why or before != after:
            tally.wrong.append(f"{mode} {seed}: {why} {difference(before, after)}")
        tally.seeds, tally.changes = tally.seeds + 1, tally.changes + len(changes)
    return tally


if __name__ == "__main__":
    if sys.argv[2] == "every":
        tally = Tally()
        every(Path(sys.argv[1]), [change_of(one) for one in json.load(sys.stdin)], tally)
        print(json.dumps(vars(tally)))
        sys.exit()
    print(json.dumps(vars(main(Path(sys.argv[1]), sys.argv[2], [int(word) for word in sys.argv[3:]]))))
