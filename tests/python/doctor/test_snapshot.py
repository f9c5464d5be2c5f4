"""A snapshot is read as it was written, and what is none is refused with a reason."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from made import snapshot

from tcpknee import processors
from tcpknee.doctor.snapshot import VERSION, Snapshot, take
from tcpknee.doctor.snapshot.reader import Roots, cpus_of_list
from tcpknee.doctor.snapshot.tables import TABLES
from tcpknee.doctor.snapshot.take import name_as_kernel
from tcpknee.errors import UsageError


def test_a_snapshot_is_read_as_it_was_written(tmp_path: Path) -> None:
    before = snapshot()
    before.write(tmp_path / "a.json")
    after = Snapshot.read(tmp_path / "a.json")
    assert after.tables == before.tables and after.taken_unix_ns == before.taken_unix_ns
    assert set(json.loads((tmp_path / "a.json").read_text())["tables"]) == set(TABLES)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, '"format": "tcpknee-snapshot"'),
        ({"version": VERSION + 1}, "which a newer tcpknee wrote"),
        ({"version": True}, 'version: got "True"'),
        ({"taken_unix_ns": "now"}, "taken_unix_ns"),
        ({"tables": []}, "tables: expected an object"),
        ({"tables": {"hosts": []}}, 'Did you mean "host"?'),
        ({"tables": {"host": ["a"]}}, "tables.host[0]"),
        ({"tables": {"host": [{"cpu": 4}]}}, 'Did you mean "cpus"?'),
        ({"tables": {"host": [{"cpus": "four"}]}}, "tables.host[0].cpus: got \"'four'\"; expected integer"),
        ({"tables": {"host": [{"cpus": 1 << 70}]}}, "expected integer"),
        ({"tables": {"interfaces": [{"interface": "../../etc"}]}}, "a name that no kernel gives"),
        ({"missing": [3]}, "missing: expected a list"),
    ],
)
def test_what_is_no_snapshot_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(snapshot().json() | change))
    with pytest.raises(UsageError) as refused:
        Snapshot.read(file)
    assert said in str(refused.value) and str(refused.value).startswith(f"{file}: ")


def test_a_truncated_snapshot_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    whole = json.dumps(snapshot().json())
    for length in (0, 1, 20, len(whole) // 2, len(whole) - 1):
        file.write_text(whole[:length])
        with pytest.raises(UsageError, match="cut off"):
            Snapshot.read(file)
    file.write_text("[" * 100_000)
    with pytest.raises(UsageError, match="is not JSON"):
        Snapshot.read(file)


def test_this_host_is_taken_and_nothing_of_it_names_an_address() -> None:
    taken = take()
    assert taken.host["kernel"] == os.uname().release
    assert "lo" in {row["interface"] for row in taken.rows("interfaces")}
    assert taken.sysctl("net.ipv4.tcp_congestion_control")
    assert taken.counter("Tcp.OutSegs") is not None and taken.rows("softnet") and taken.rows("cpus")
    text = json.dumps(taken.json())
    assert "127.0.0.1" not in text and "tcp_fastopen_key" not in text
    assert Snapshot.of_json(json.loads(text)).tables == taken.tables


def test_an_ordinary_user_gets_a_snapshot_too() -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("becoming another user needs root and setpriv")
    program = "from tcpknee.doctor.snapshot import take; t = take(); print(t.host['root'], len(t.rows('interfaces')))"
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c", program]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/")
    if "Permission denied" in ended.stderr or "No module" in ended.stderr:
        pytest.skip("the tree is not readable for others")
    assert ended.stdout.split()[0] == "False" and int(ended.stdout.split()[1]) > 0, ended.stderr


def test_what_of_proc_and_sys_is_absent_is_named(tmp_path: Path) -> None:
    nothing = Roots(tmp_path / "proc", tmp_path / "sys", tmp_path, netlink=False)
    taken = take(roots=nothing)
    assert not taken.rows("sysctls") and not taken.rows("cpus") and taken.host["kernel"] is None
    assert {"sysctls", "counters", "processors"} <= {one.what for one in taken.missing}
    without_sys = take(roots=Roots(sys=tmp_path / "sys"))
    assert without_sys.rows("sysctls") and without_sys.rows("interfaces") and not without_sys.rows("queues")
    assert any("another network namespace" in one.why for one in without_sys.missing)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A root file system with the files of a host; a name ends with its text."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/net").symlink_to("net:[4026531840]")
    return tmp_path


SYSCTLS = """\
net.ipv4.tcp_rmem = 4096 131072 1
kernel.hostname = x
net.ipv4.tcp_fastopen_key = 0123-4567
net/ipv4/conf/eth0.7/forwarding=1
"""
WEAKER = """\
-net.core.somaxconn = 8192
# net.core.rmem_max = 1
net.ipv4.conf.*.rp_filter = 1
"""
PROFILE = "[main]\ninclude=base\n[sysctl]\nnet.ipv4.tcp_rmem=4096 87380 16777216\n"
BASE = """\
[main]
include=network-throughput
[sysctl]
net.core.somaxconn=2048
net.ipv4.tcp_fastopen_key=0123-4567
vm.dirty_ratio=1
"""
FILES = {
    "proc/sys/kernel/osrelease": "5.14.0-427.el9.x86_64\n",
    "proc/sys/kernel/hostname": "web\x1b[31m7\n",
    "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
    "proc/sys/net/ipv4/tcp_fastopen_key": "0123-4567\n",
    "proc/sys/net/ipv4/route/flush": "",
    "proc/stat": "cpu  900 0 100 0 0 0 0 0 0 0\ncpu0 100 0 100 700 0 0 50 50 0 0\ncpu1 broken\n",
    "proc/net/netstat": "TcpExt: ListenDrops PruneCalled\nTcpExt: 7 x\nIpExt: InOctets\n",
    "proc/net/sockstat": "sockets: used 100\nTCP: inuse 5 orphan 0 tw 3 alloc 9 mem 2\n",
    "proc/net/softnet_stat": "0000000a 00000001 00000002 0 0 0 0 0 0 00000003 00000004 0 00000005\ngarbage\n",
    "proc/net/stat/arp_cache": "entries allocs table_fulls\n00000010 00000002 00000001\n00000010 00000003 00000002\n",
    "proc/cmdline": "root=/dev/sda1 password=secret iommu=pt intel_idle.max_cstate=1\n",
    "proc/77/comm": "tuned\n",
    "proc/78/comm": "ksoftirqd/0\n",
    "proc/78/stat": "78 (ksoftirqd/0 ) x) S 2 0 0 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0\n",
    "etc/os-release": 'ID="rhel"\nVERSION_ID="9.4"\nBROKEN="\n',
    "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "etc/sysctl.d/10-a.conf": SYSCTLS,
    "usr/lib/sysctl.d/10-a.conf": "net.core.somaxconn = 1\n",
    "usr/lib/sysctl.d/50-b.conf": WEAKER,
    "etc/tuned/active_profile": "network-throughput\n",
    "usr/lib/tuned/network-throughput/tuned.conf": PROFILE,
    "usr/lib/tuned/base/tuned.conf": BASE,
}


def test_files_of_a_host_become_its_tables(files: Path) -> None:
    taken = take(roots=Roots(files / "proc", files / "sys", files, netlink=False))
    assert (taken.host["kernel"], taken.host["distribution"], taken.host["distribution_version"]) == (
        "5.14.0-427.el9.x86_64",
        "rhel",
        "9.4",
    )
    assert taken.host["boot_parameters"] == ["intel_idle.max_cstate=1", "iommu=pt"]
    assert "0123456789abcdef" not in json.dumps(taken.json()) and "0123-4567" not in json.dumps(taken.json())
    assert taken.sysctl("net.ipv4.tcp_rmem") == "4096 131072 6291456"
    assert taken.counter("TcpExt.ListenDrops") == 7 and taken.counter("TCP.tw") == 3
    assert taken.counter("arp_cache.entries") == 16 and taken.counter("arp_cache.table_fulls") == 3
    assert taken.counter("TcpExt.PruneCalled") is None
    cpu, broken = taken.rows("cpus")
    assert broken["busy_pct"] is None
    assert (cpu["cpu"], cpu["busy_pct"], cpu["softirq_pct"], cpu["steal_pct"]) == (0, 30.0, 5.0, 5.0)
    [softnet] = taken.rows("softnet")
    assert {name: softnet[name] for name in ("cpu", "processed", "dropped", "received_rps", "flow_limit_count")} == {
        "cpu": 5,
        "processed": 10,
        "dropped": 1,
        "received_rps": 3,
        "flow_limit_count": 4,
    }
    assert taken.host["ksoftirqd_us"] == 7 * 1_000_000 // os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("line", "has_fq"),
    [
        ("CONFIG_NET_SCH_FQ=y", True),
        ("CONFIG_NET_SCH_FQ=m", True),
        ("# CONFIG_NET_SCH_FQ is not set", False),
        ("CONFIG_NET_SCH_FQ_CODEL=y", False),
    ],
)
@pytest.mark.parametrize("name", ["proc/config.gz", "boot/config-5.14.0-427.el9.x86_64"])
def test_the_kernels_configuration_tells_whether_it_has_fq(files: Path, name: str, line: str, has_fq: bool) -> None:
    roots = Roots(files / "proc", files / "sys", files, netlink=False)
    assert take(roots=roots).host["has_fq"] is None
    text = f"CONFIG_NET=y\n{line}\nCONFIG_HZ=250\n".encode()
    (files / name).parent.mkdir(exist_ok=True)
    (files / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert take(roots=roots).host["has_fq"] is has_fq
    if name.endswith(".gz"):
        (files / name).write_bytes(text)
        assert take(roots=roots).host["has_fq"] is None


@pytest.mark.parametrize(
    ("name", "content", "version"),
    [
        ("module/tcp_bbr/version", b"3\n", "3"),
        ("kernel/btf/vmlinux", b"\x9f\xeb\0full_bw_reached\0has_seen_rtt\0", "1"),
        ("kernel/btf/tcp_bbr", b"\x9f\xeb\0full_bw_reached\0inflight_hi\0", "2 or 3"),
        ("kernel/btf/vmlinux", b"\x9f\xeb\0inflight_hi\0", None),
    ],
)
def test_the_module_or_the_kernels_types_tell_the_version_of_bbr(
    files: Path, name: str, content: bytes, version: str | None
) -> None:
    """BTF without a struct of BBR tells nothing: its module has types of its own."""
    (files / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
    (files / "sys" / name).write_bytes(content)
    assert take(roots=Roots(files / "proc", files / "sys", files, netlink=False)).host["bbr_version"] == version


def test_owners_are_told_with_what_holds_last(files: Path) -> None:
    taken = take(roots=Roots(files / "proc", files / "sys", files, netlink=False))
    assert [(row["owner"], row["name"], row["value"]) for row in taken.rows("owners")] == [
        ("tuned", None, None),
        ("sysctl.d", "net.ipv4.tcp_rmem", "4096 131072 1"),
        ("sysctl.d", "net.ipv4.conf.eth0/7.forwarding", "1"),
        ("sysctl.d", "net.core.somaxconn", "8192"),
        ("tuned", None, "network-throughput"),
        ("tuned", "net.core.somaxconn", "2048"),
        ("tuned", "net.ipv4.tcp_rmem", "4096 87380 16777216"),
    ]


@pytest.mark.parametrize(("text", "cpus"), [("0-3,8", [0, 1, 2, 3, 8]), ("", []), ("3-1", []), ("a", None)])
def test_a_list_of_processors_is_decoded(text: str, cpus: list[int] | None) -> None:
    assert cpus_of_list(text) == cpus


def test_a_name_that_is_no_utf8_is_the_one_that_python_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backslash in a name need not be an escape."""
    monkeypatch.setattr(socket, "if_indextoname", {2: "w\udcff", 3: "w\\x"}.__getitem__)
    names = ["eth0", "w\\xff", "w\\x"]
    tables: dict[str, list[dict[str, Any]]] = {
        "interfaces": [{"interface": name, "ifindex": at} for at, name in enumerate(names, 1)],
        "rings": [{"interface": name} for name in names],
        "host": [{}],
    }
    tables["interfaces"][0] |= {"master": "w\\xff", "lower": None}
    name_as_kernel(tables)
    assert [row["interface"] for row in tables["rings"]] == ["eth0", "w\udcff", "w\\x"]
    assert tables["interfaces"][0] == {"interface": "eth0", "ifindex": 1, "master": "w\udcff", "lower": None}


def test_times_of_processors_are_read_and_damage_is_left_out() -> None:
    text = "cpu  10 0 0 70 10 0 5 5 0 0\ncpu0 1 2\ncpu1 1 0 0 x 0 0 0 0\nintr 5\n"
    tick = 1_000_000 // os.sysconf("SC_CLK_TCK")
    assert processors.times_us(text) == {
        "cpu": {"time_us": 100 * tick, "busy_us": 20 * tick, "softirq_us": 5 * tick, "steal_us": 5 * tick}
    }
    assert processors.shares(processors.times_us(text)["cpu"]) == {
        "busy_pct": 20.0,
        "softirq_pct": 5.0,
        "steal_pct": 5.0,
    }
    assert processors.shares({"time_us": 0, "busy_us": 0, "softirq_us": 0, "steal_us": 0}) == {}
