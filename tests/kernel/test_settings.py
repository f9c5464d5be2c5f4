"""What the host is set to, as a recording has it, against what sysctl, tc, ip and ethtool say."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import probes
import tcpknee
import waiting
from leftovers import new_namespace, noted
from tcpknee.errors import RunFolderError, UsageError
from waiting import PATIENCE_SEC

COMMAND = [sys.executable, "-m", "tcpknee", "record"]
MACHINE_ID = Path("/etc/machine-id")

Row = dict[str, Any]


def settings(folder: Path) -> list[Row]:
    """Every row, in the order of the files."""
    return [row for path in sorted(folder.glob("settings-*.parquet")) for row in pq.read_table(path).to_pylist()]


def run(*words: object) -> str:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def netns() -> Iterator[str]:
    """A network namespace with a pair of devices, veth0 and veth1."""
    probes.need_root("a network namespace to set things in")
    probes.need_programs("ip", "tc", "ethtool")
    name = new_namespace("s")
    with noted("netns", name):
        run("ip", "netns", "add", name)
        try:
            run("ip", "-n", name, "link", "add", "veth0", "type", "veth", "peer", "name", "veth1")
            run("ip", "-n", name, "link", "set", "veth0", "up")
            yield name
        finally:
            run("ip", "netns", "del", name)


def within(netns: str, *words: object) -> str:
    return run("ip", "netns", "exec", netns, *words)


@contextmanager
def recording(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """`knee record` under way, its settings written once."""
    command = [*COMMAND, "--out", str(folder), "--json", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until(process, folder, "cause = 'start'")
        yield process
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=PATIENCE_SEC)
        assert process.returncode == 0, complaints
    finally:
        process.kill()
        process.communicate()


def until(process: subprocess.Popen[str], folder: Path, *conditions: str) -> None:
    """Waits until a row of `settings` has been written for which each of them holds."""

    def is_there(condition: str) -> bool:
        assert process.poll() is None, process.communicate()[1]
        return rows_where(folder, condition) > 0

    for condition in conditions:
        waiting.until(lambda condition=condition: is_there(condition), f"a row where {condition}")  # type: ignore[misc]


def rows_where(folder: Path, condition: str) -> int:
    """As they are in the tables so far, of which there may be none yet, or none that has rows."""
    with suppress(RunFolderError, UsageError):
        (found,) = tcpknee.sql(f"select count(*) as n from settings where {condition}", folder).to_pylist()
        return int(found["n"])
    return 0


def of(rows: list[Row], kind: str, name: str, interface: str | None = None) -> list[Any]:
    """(cause, value) of a setting in the order of its rows."""
    return [
        (row["cause"], row["value"])
        for row in rows
        if (row["kind"], row["name"], row["interface"]) == (kind, name, interface)
    ]


@pytest.mark.slow("it waits twice for the recorder's next look at settings")
def test_what_is_set_while_recording_has_a_row_when_it_changes(netns: str, tmp_path: Path) -> None:
    within(netns, "tc", "qdisc", "replace", "dev", "veth0", "root", "pfifo", "limit", 11)
    rmem = within(netns, "cat", "/proc/sys/net/ipv4/tcp_rmem").split()
    with recording(tmp_path, "--netns", netns, "--every", "100ms") as process:
        within(netns, "sh", "-c", "echo 4096 20000 30000 >/proc/sys/net/ipv4/tcp_rmem")
        within(netns, "tc", "qdisc", "replace", "dev", "veth0", "root", "pfifo", "limit", 12)
        within(netns, "ethtool", "-K", "veth0", "tso", "off")
        if os.cpu_count() != 1:
            within(netns, "ethtool", "-L", "veth0", "rx", 1, "tx", 2)
        within(netns, "ip", "link", "set", "veth0", "mtu", 1400)
        changed = ["tcp_rmem", "limit", "tx-tcp-segmentation", "mtu", *(["tx"] if os.cpu_count() != 1 else [])]
        until(process, tmp_path, *(f"cause = 'change' and name like '%{name}'" for name in changed))
        within(netns, "ip", "link", "del", "veth0")
        until(process, tmp_path, "missing = 'gone'")
    rows = settings(tmp_path)
    assert of(rows, "sysctl", "net.ipv4.tcp_rmem") == [("start", " ".join(rmem)), ("change", "4096 20000 30000")]
    assert of(rows, "offload", "tx-tcp-segmentation", "veth0") == [("start", "on"), ("change", "off"), ("change", None)]
    assert of(rows, "link", "mtu", "veth0") == [("start", "1500"), ("change", "1400"), ("change", None)]
    assert of(rows, "qdisc", "limit", "veth0")[:2] == [("start", "11"), ("change", "12")]
    if os.cpu_count() != 1:
        assert of(rows, "channels", "tx", "veth0") == [("start", "1"), ("change", "2"), ("change", None)]
    gone = [row for row in rows if row["interface"] == "veth1" and row["missing"] == "gone"]
    # The other end goes with it; each of its settings says so.
    assert {row["kind"] for row in gone} >= {"link", "driver", "offload"}
    assert all(row["value"] is None and row["unit"] is None for row in gone)
    assert {row["netns"] for row in rows} == {netns}


def test_what_a_namespace_is_not_shown_is_null_and_says_why(netns: str, tmp_path: Path) -> None:
    subprocess.run([*COMMAND, "--out", str(tmp_path), "--for", "50ms", "--netns", netns], check=True)
    shown = within(netns, "ls", "/proc/sys/net/core").split()
    rows = {row["name"]: row for row in settings(tmp_path) if row["kind"] == "sysctl"}
    for name in ("default_qdisc", "netdev_budget", "rmem_max"):
        row = rows[f"net.core.{name}"]
        assert (row["value"] is None) == (name not in shown)
        assert (row["missing"] is None) == (name in shown)


def test_every_sysctl_of_tcp_is_there_as_the_file_has_it_and_no_key_is(tmp_path: Path) -> None:
    subprocess.run([*COMMAND, "--out", str(tmp_path), "--for", "50ms"], check=True)
    found = {row["name"]: row["value"] for row in settings(tmp_path) if row["kind"] == "sysctl"}
    files = [path for path in Path("/proc/sys/net/ipv4").glob("tcp_*") if path.name != "tcp_fastopen_key"]
    assert files
    for path in files:
        assert found[f"net.ipv4.{path.name}"] == " ".join(path.read_text().split()), path
    assert found["kernel.osrelease"] == os.uname().release
    assert not [name for name in found if name.endswith("_key")]


SET_AS_TC_SAYS = {
    "tbf": ("tbf", "rate", "10mbit", "burst", "20kb", "limit", "60000"),
    "htb": ("htb", "default", "10"),
    "prio": ("prio", "bands", "4"),
    "pfifo_fast": ("pfifo_fast",),
    "bfifo": ("bfifo", "limit", "40000"),
    "fq": ("fq", "limit", "5000", "maxrate", "10mbit"),
    "fq_codel": ("fq_codel", "limit", "500", "target", "7ms"),
    "cake": ("cake", "bandwidth", "10mbit"),
}
# Names of ours whose value tc has under another name, or tells in another unit: (tc's name, times).
TC_NAMES = {
    "tbf": {"rate": ("rate", 8), "burst": ("burst", 1)},
    "htb": {"r2q": ("r2q", 1), "direct_qlen": ("direct_qlen", 1)},
    "prio": {"bands": ("bands", 1)},
    "pfifo_fast": {"bands": ("bands", 1)},
    "bfifo": {"limit": ("limit", 1)},
    "fq": {"limit": ("limit", 1), "maxrate": ("maxrate", 8), "quantum": ("quantum", 1), "buckets": ("buckets", 1)},
    "fq_codel": {name: (name, 1) for name in ("limit", "target", "interval", "flows", "quantum")},
    "cake": {"bandwidth": ("bandwidth", 8), "rtt": ("rtt", 1)},
}


def test_options_of_a_qdisc_are_those_that_tc_tells(netns: str, tmp_path: Path) -> None:
    compared = set()
    for kind, asked in SET_AS_TC_SAYS.items():
        words = ("tc", "qdisc", "replace", "dev", "veth0", "root", *asked)
        tried = subprocess.run(["ip", "netns", "exec", netns, *words], capture_output=True, text=True)
        # Few kernels have all kinds.
        if "qdisc kind is unknown" not in tried.stderr:
            assert tried.returncode == 0, tried.stderr
            (told,) = json.loads(within(netns, "tc", "-j", "qdisc", "show", "dev", "veth0", "root"))
            compare_qdisc(netns, told, tmp_path / kind)
            compared.add(kind)
    # These are built into every kernel that has qdiscs.
    assert compared >= {"pfifo_fast", "bfifo"}


def compare_qdisc(netns: str, told: dict[str, Any], folder: Path) -> None:
    subprocess.run([*COMMAND, "--out", str(folder), "--for", "50ms", "--netns", netns], check=True)
    found = {row["name"]: row for row in settings(folder) if (row["kind"], row["interface"]) == ("qdisc", "veth0")}
    kind = told["kind"]
    assert found["kind"]["value"] == kind
    assert {row["handle"] for row in found.values()} == {told["handle"]}
    assert {row["parent"] for row in found.values()} == {"root"}
    for name, (theirs, times) in TC_NAMES[kind].items():
        assert int(found[name]["value"]) == told["options"][theirs] * times, name


def test_offloads_are_those_that_ethtool_tells(netns: str, tmp_path: Path) -> None:
    subprocess.run([*COMMAND, "--out", str(tmp_path), "--for", "50ms", "--netns", netns], check=True)
    rows = [row for row in settings(tmp_path) if row["interface"] == "veth0"]
    ours = {row["name"]: row["value"] for row in rows if row["kind"] == "offload"}
    # The lines of single offloads are indented below those that stand for several.
    said = dict(re.findall(r"^\s*([\w.-]+): (on|off)", within(netns, "ethtool", "-k", "veth0"), re.M))
    named = {"rx-gro": "generic-receive-offload", "rx-lro": "large-receive-offload", "rx-checksum": "rx-checksumming"}
    named |= {"tx-generic-segmentation": "generic-segmentation-offload", "rx-hashing": "receive-hashing"}
    assert len(ours) > 10
    for name, value in ours.items():
        assert said[named.get(name, name)] == value, name
    driver = re.findall(r"^driver: (\S+)", within(netns, "ethtool", "-i", "veth0"), re.M)
    assert [row["value"] for row in rows if (row["kind"], row["name"]) == ("driver", "driver")] == driver
    # veth has no rings and no coalescing: it has no rows of them, not zeros.
    assert not [row for row in rows if row["kind"] == "coalesce"]


def test_every_segment_begins_with_all_settings(tmp_path: Path) -> None:
    options = ("--for", "4s", "--every", "200ms", "--rotate", "1s")
    subprocess.run([*COMMAND, "--out", str(tmp_path), *options], check=True)
    files = [pq.read_table(path).to_pylist() for path in sorted(tmp_path.glob("settings-*.parquet"))]
    assert len(files) >= 2
    causes = ["start", *["repeat"] * (len(files) - 1)]
    for rows, cause in zip(files, causes, strict=True):
        whole = [row for row in rows if row["t_mono_ns"] == rows[0]["t_mono_ns"]]
        assert {row["cause"] for row in whole} <= {cause, "change"}
        assert len(whole) > 100


def test_a_cookie_leads_to_its_boot_and_host(tmp_path: Path) -> None:
    options = ("--for", "150ms", "--every", "100ms", "--state", "all")
    with connection():
        subprocess.run([*COMMAND, "--out", str(tmp_path), *options], check=True)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    host_id = MACHINE_ID.read_text().strip() if MACHINE_ID.exists() else ""
    query = """
        select distinct boot_id, host_id
        from sockets join (select distinct boot_id, host_id from settings) using (boot_id)
    """
    found = tcpknee.sql(query, tmp_path).to_pylist()
    assert [row["boot_id"] for row in found] == [boot_id]
    if re.fullmatch("[0-9a-f]{32}", host_id):
        assert [row["host_id"] for row in found] == [host_id]
    for table in ("counters", "cpu", "nic", "qdisc"):
        told = tcpknee.sql(f"select distinct boot_id from {table}", tmp_path).to_pylist()
        assert [row["boot_id"] for row in told] == [boot_id], table


@pytest.mark.parametrize("how", ["hash:a key", "truncate"])
def test_ids_are_hashed_with_the_addresses_and_stay_the_same(tmp_path: Path, how: str) -> None:
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    host_id = MACHINE_ID.read_text().strip() if MACHINE_ID.exists() else boot_id
    ids = []
    for number in "12":
        folder = tmp_path / number
        with connection():
            options = ("--for", "150ms", "--every", "100ms", "--anonymize", how)
            subprocess.run([*COMMAND, "--out", str(folder), *options], check=True)
        for path in folder.iterdir():
            assert boot_id.encode() not in path.read_bytes() and host_id.encode() not in path.read_bytes(), path
        (row,) = tcpknee.sql("select distinct boot_id, host_id from settings", folder).to_pylist()
        assert tcpknee.sql("select distinct boot_id from sockets", folder).to_pylist() == [{"boot_id": row["boot_id"]}]
        ids.append(row)
    assert ids[0] == ids[1]
    assert re.fullmatch("h[0-9a-f]{16}", ids[0]["boot_id"])


@contextmanager
def connection() -> Iterator[None]:
    """A connection over loopback meanwhile."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()):
        yield


def test_without_the_host_s_tables_there_are_no_settings_but_the_boot(tmp_path: Path) -> None:
    with connection():
        subprocess.run([*COMMAND, "--out", str(tmp_path), "--for", "50ms", "--no-host"], check=True)
    assert {path.name.rsplit("-", 1)[0] for path in tmp_path.iterdir()} == {"sockets"}
    assert tcpknee.sql("select count(*) as n from sockets where boot_id is null", tmp_path).to_pylist() == [{"n": 0}]
