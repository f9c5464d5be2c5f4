"""Changes of a host's settings: what is refused, what a person sees, what the kernel is given. tests/kernel/test_fix.py
has those that need a kernel."""

from __future__ import annotations

import json
import struct
from dataclasses import fields

import pytest

from tcpknee.doctor.changes import (
    KINDS,
    BootFile,
    Change,
    Channels,
    Coalesce,
    IrqAffinity,
    NotPersistent,
    Offload,
    Qdisc,
    RfsEntries,
    Ring,
    RouteWindow,
    Rps,
    RpsFlows,
    Sysctl,
    SysctlLine,
    TxQueueLen,
    Xps,
    change_of,
    netlink,
)
from tcpknee.doctor.changes.qdisc import FQ_CE_THRESHOLD, FQ_NO_CE_THRESHOLD, codel_told_us, given_back
from tcpknee.doctor.changes.rfs import power_of_two
from tcpknee.doctor.cpus import mask_like, of_mask
from tcpknee.errors import UsageError

EXAMPLES: dict[Change, str] = {
    Sysctl("net.ipv4.tcp_rmem", "4096 131072 6291456"): "sysctl -w 'net.ipv4.tcp_rmem=4096 131072 6291456'",
    Sysctl("net.core.somaxconn", "4096", netns="web"): "ip netns exec web sysctl -w net.core.somaxconn=4096",
    Sysctl("net.core.somaxconn", "4096", netns="28831"): "nsenter --net=/proc/28831/ns/net sysctl -w "
    "net.core.somaxconn=4096",
    Qdisc("eth0", "fq", (("flow_limit", 200), ("horizon", 5))): (
        "tc qdisc replace dev eth0 root handle 4b4e: fq flow_limit 200 horizon 5us"
    ),
    Ring("eth0", rx=4096, tx=512): "ethtool -G eth0 rx 4096 tx 512",
    Channels("eth0", combined=8): "ethtool -L eth0 combined 8",
    Offload("eth0", "gro", True): "ethtool -K eth0 gro on",
    Coalesce("eth0", (("rx_usecs", 8), ("adaptive_rx", 0))): "ethtool -C eth0 rx-usecs 8 adaptive-rx off",
    TxQueueLen("eth0", 1000): "ip link set dev eth0 txqueuelen 1000",
    Rps("eth0", 0, (0, 33)): "echo 2,00000001 | tee /sys/class/net/eth0/queues/rx-0/rps_cpus",
    RpsFlows("eth0", 0, 4096): "echo 4096 | tee /sys/class/net/eth0/queues/rx-0/rps_flow_cnt",
    Xps("eth0", 1, (1,)): "echo 2 | tee /sys/class/net/eth0/queues/tx-1/xps_cpus",
    IrqAffinity(24, (2,), netns="web"): "echo 4 | tee /proc/irq/24/smp_affinity",
    RouteWindow("default", "eth0", initcwnd=10, congctl="cubic"): (
        "ip -4 route change default via GATEWAY dev eth0 initcwnd 10 congctl cubic"
    ),
    RfsEntries(32768): "sysctl -w net.core.rps_sock_flow_entries=32768",
}


def test_every_kind_of_change_has_an_example_here() -> None:
    assert {type(change) for change in EXAMPLES} == set(KINDS)
    assert len({kind.kind for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("change", EXAMPLES, ids=str)
def test_a_change_shows_the_command_of_the_same_effect(change: Change) -> None:
    assert change.shown() == [EXAMPLES[change]]


@pytest.mark.parametrize("change", EXAMPLES, ids=str)
def test_a_journal_gives_back_the_change_that_it_was_given(change: Change) -> None:
    assert change_of(json.loads(json.dumps(change.json()))) == change


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "interface" in {field.name for field in fields(kind)}])
@pytest.mark.parametrize("name", ["", "..", "../../etc", "a b", "sixteen-letters-", "a/b", "eth0\n", "a:1"])
def test_what_no_interface_can_be_called_is_refused(kind: type[Change], name: str) -> None:
    example = next(change for change in EXAMPLES if type(change) is kind)
    with pytest.raises(UsageError, match="expected 1 to 15 bytes"):
        change_of({**example.json(), "interface": name})


def test_a_hostile_interface_name_is_quoted_where_a_person_would_paste_it() -> None:
    assert TxQueueLen("$(reboot);'`", 1).shown() == ["""ip link set dev '$(reboot);'"'"'`' txqueuelen 1"""]


@pytest.mark.parametrize(
    "name", ["kernel.panic", "net.core", "net../.core.x", "net.core.a b", "net.ipv4.ip_forward", "net.ipv4.route.flush"]
)
def test_sysctls_outside_the_network_or_with_side_effects_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"sysctl|could not be undone"):
        Sysctl(name, "1")


@pytest.mark.parametrize("value", ["", "1\n2", "1\0", "x" * 201, "é"])
def test_values_that_are_no_line_of_a_sysctl_are_refused(value: str) -> None:
    with pytest.raises(UsageError, match="printable ASCII"):
        Sysctl("net.core.somaxconn", value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "ring", "interface": "eth0", "rx": 0},
        {"kind": "ring", "interface": "eth0", "rx": True},
        {"kind": "qdisc", "interface": "eth0", "qdisc": "htb"},
        {"kind": "qdisc", "interface": "eth0", "qdisc": "fq", "options": [["quantum", 1]]},
        {"kind": "coalesce", "interface": "eth0", "settings": [["adaptive_rx", 2]]},
        {"kind": "irq-affinity", "irq": 1, "cpus": []},
        {"kind": "rps", "interface": "eth0", "queue": 0, "cpus": [-1]},
        {"kind": "rps-flows", "interface": "eth0", "queue": 0, "flows": 1 << 40},
        {"kind": "route-window", "destination": "192.0.2.1/24"},
        {"kind": "route-window", "destination": "default", "initcwnd": 0},
        {"kind": "route-window", "destination": "default", "congctl": "cubic; reboot"},
        {"kind": "offload", "interface": "eth0", "feature": "-K", "on": True},
    ],
    ids=str,
)
def test_values_that_no_kernel_takes_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        change_of(wrong)


def test_a_qdisc_below_each_queue_is_a_command_for_each() -> None:
    assert Qdisc("eth0", "fq", leaves=2).shown() == [
        "tc qdisc replace dev eth0 root handle 4b4e: mq",
        "tc qdisc replace dev eth0 parent 4b4e:1 handle 4b4f: fq",
        "tc qdisc replace dev eth0 parent 4b4e:2 handle 4b50: fq",
    ]


def test_how_a_change_persists_is_told_from_that_it_does_not() -> None:
    assert Sysctl("net.core.somaxconn", "9").persistence() == SysctlLine("net.core.somaxconn", "9")
    assert Rps("eth0", 0, (0,)).persistence() == BootFile("/sys/class/net/eth0/queues/rx-0/rps_cpus", "1")
    assert isinstance(Sysctl("net.core.somaxconn", "9", netns="web").persistence(), NotPersistent)
    interrupt = IrqAffinity(24, (2,)).persistence()
    assert isinstance(interrupt, NotPersistent) and "another device" in interrupt.why


def test_masks_keep_the_width_that_the_kernel_prints() -> None:
    assert mask_like("00000000,00000000", [0, 40]) == "00000100,00000001"
    assert of_mask("00000100,00000001") == [0, 40]
    assert mask_like("0", []) == "0"


def test_tables_of_flows_are_rounded_up_as_the_kernel_does() -> None:
    assert [power_of_two(count) for count in (0, 1, 2, 3, 4096, 4097)] == [0, 1, 2, 4, 4096, 8192]


@pytest.mark.parametrize("us", [1, 4_999, 5_000, 99_999, 100_000])
def test_durations_of_codel_are_given_back_so_that_they_are_told_the_same(us: int) -> None:
    told = codel_told_us(us)
    given = given_back("fq_codel", netlink.packed([(1, struct.pack("=I", told)), (2, struct.pack("=I", 10_240))]))
    (target, limit) = netlink.attributes(given)
    assert codel_told_us(struct.unpack("=I", target[1])[0]) == told
    assert limit == (2, struct.pack("=I", 10_240))


def test_fq_without_a_threshold_is_not_given_the_number_that_stands_for_none() -> None:
    none = netlink.packed([(1, struct.pack("=I", 10_000)), (FQ_CE_THRESHOLD, struct.pack("=I", FQ_NO_CE_THRESHOLD))])
    assert netlink.attributes(given_back("fq", none)) == [(1, struct.pack("=I", 10_000))]


def test_a_state_is_told_in_words() -> None:
    """As `--undo --dry-run` shows it."""
    gro = Offload("eth0", "gro", True)
    assert gro.told({"rx-gro": False}) == "off"
    assert gro.told({"a": True, "b": False}) == "a on, b off"
    assert Ring("eth0", rx=4096).told({"rx": 512, "tx": 512}) == "rx 512, tx 512"
    assert Sysctl("net.core.somaxconn", "4096").told("128") == "128"
    fq = {"kind": "fq", "handle": 0x80010000, "parent": 0xFFFFFFFF, "options": "00"}
    assert Qdisc("eth0", "fq").told([fq]) == "fq 8001:"
