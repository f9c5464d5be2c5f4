"""`knee recommend`: which algorithm for which path, and the numbers that decide."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tcpknee
from support import Ended
from tcpknee.doctor.recommend import (
    ROLES,
    Advice,
    Path,
    advised,
    by_namespace,
    decided,
    heaviest,
    of_groups,
    of_role,
    of_snapshot,
)
from tcpknee.doctor.snapshot import Snapshot
from tcpknee.errors import UsageError
from tcpknee.evidence import stats

Call = Callable[..., Ended]

FAR = Path("far", 100_000, 1.5, 20_000_000)

SOCKETS = {
    "netns": "net:[1]",
    "algorithm": "cubic",
    "srtt_us_p50": 90_000,
    "min_rtt_us_p50": 80_000,
    "bytes_sent": 2_000_000,
    "bytes_retrans": 20_000,
    "bytes_acked": 1_980_000,
    "delivery_rate_bits_per_sec_max": 30_000_000,
}


def advice(netns: str, algorithm: Any, weight: float) -> Advice:
    gain = stats.ratio([2.0, 2.0, 2.0])
    assert gain is not None
    return Advice(Path("p", 1, 0.0, 1, netns, weight=weight), algorithm, gain, "goodput")


def taken(*rows: dict[str, Any], kernel: str = "6.1.0", netns: str = "net:[1]") -> Snapshot:
    return Snapshot.of(
        0, {"host": [{"kernel": kernel, "netns": netns}], "sockets": [{**SOCKETS, **row} for row in rows]}
    )


@pytest.mark.parametrize(
    ("gains", "algorithm", "why"),
    [
        ((2.0, 2.1, 1.9), "bbr", "fq on the leaf that sends saves processor time; before Linux 4.13 BBR needs it."),
        ((1.02, 1.03, 1.02), "cubic", "no gain of 5 % that is certain, so the simpler one"),
        ((0.5, 2.0, 1.0), "cubic", "no gain of 5 % that is certain"),
        ((0.8, 0.81, 0.79), "cubic", "which is less"),
        ((1.0, 1.0, 1.0), "cubic", "no gain of 5 % that is certain"),
    ],
)
def test_bbr_needs_a_gain_that_is_certain(gains: tuple[float, ...], algorithm: str, why: str) -> None:
    gain = stats.ratio(gains)
    assert gain is not None
    found = decided(FAR, gain, "goodput")
    assert found.algorithm == algorithm
    assert why in found.why
    assert "BBR has" in found.why


def test_far_and_lossy_paths_want_bbr_and_a_data_centre_does_not() -> None:
    [far] = advised([FAR])
    [near] = advised(of_role("data-centre"))
    assert (far.algorithm, far.what) == ("bbr", "goodput")
    assert (near.algorithm, near.what) == ("cubic", "requests per second")
    assert far.gain.mean > 3


def test_a_virtual_machine_has_the_costs_of_one() -> None:
    near = {"remote": "private", "min_rtt_us_p50": 200}
    for hypervisor, costs in (("kvm", "published-vm"), ("none", "published"), (None, "published")):
        host = {"kernel": "4.19.0", "netns": "net:[1]", "hypervisor": hypervisor}
        [path] = of_snapshot(Snapshot.of(0, {"host": [host], "sockets": [{**SOCKETS, **near}]}))
        assert path.costs == costs
    # With a guest's timers, armed for every packet, BBR within a data centre costs what the article says.
    path = Path("near", 100, 0.0, 10_000_000_000, pacing_timer="every-packet")
    [bare], [guest] = advised([path]), advised([replace(path, costs="published-vm")])
    assert guest.gain.high is not None and guest.gain.high < bare.gain.mean < 1
    assert guest.json()["costs"] == "published-vm"


def test_each_namespace_has_the_default_that_most_of_its_bytes_want() -> None:
    found = [advice("", "cubic", 3), advice("", "bbr", 1), advice("web", "bbr", 5), advice("web", "bbr", 1)]
    host, web = by_namespace(found)
    assert (host.netns, host.default, len(host.others)) == ("", "cubic", 1)
    assert host.commands() == [
        "sysctl -w net.ipv4.tcp_congestion_control=cubic",
        "ip route change PREFIX … congctl bbr",
    ]
    assert web.commands() == ["ip netns exec web sysctl -w net.ipv4.tcp_congestion_control=bbr"]


@pytest.mark.parametrize("netns", ["28831", "/proc/28831/ns/net"])
def test_a_namespace_that_a_process_names_is_entered_by_its_file(netns: str) -> None:
    """`ip netns exec` takes no PID; a recording's may be another process's by now."""
    entered = "nsenter --net=/proc/28831/ns/net sysctl -w net.ipv4.tcp_congestion_control=bbr"
    live = advice(netns, "bbr", 1)
    assert [one.commands() for one in by_namespace([live])] == [[entered]]
    kept = replace(live, path=replace(live.path, known_from="recording"))
    [[remark, command]] = [one.commands() for one in by_namespace([kept])]
    assert command == entered
    assert remark == f"# {netns} named a process within the namespace then; name one that is in it now:"


def test_paths_of_a_snapshot_are_those_of_its_connections_but_to_itself() -> None:
    rows = [
        {"remote": "public"},
        {"remote": "private", "min_rtt_us_p50": 200, "bytes_acked": 9**9},
        {"remote": "loopback"},
    ]
    private, public = of_snapshot(taken(*rows))
    assert (public.rtt_us, public.loss_pct, public.rate_bits_per_sec) == (80_000, 1.0, 30_000_000)
    assert (public.remote, public.netns, public.pacing_timer) == ("public", "", "when-needed")
    assert private.is_in_data_centre
    assert not public.is_in_data_centre


@pytest.mark.parametrize(
    ("kernel", "rule"), [("4.19.1", "every-packet"), ("4.20.0", "when-needed"), ("4.12.0", "when-needed")]
)
def test_the_kernel_s_rule_of_pacing_timers_is_simulated(kernel: str, rule: str) -> None:
    [path] = of_snapshot(taken({"remote": "public"}, kernel=kernel))
    assert path.pacing_timer == rule


def test_groups_of_which_nothing_is_known_are_left_out() -> None:
    whole = {"netns": None, "remote": None, "rtt_us": 5000, "loss_pct": None, "rate_bits_per_sec": 10, "weight": 1}
    assert [path.loss_pct for path in of_groups([whole])] == [0.0]
    assert of_groups([{**whole, name: None} for name in ("rtt_us", "rate_bits_per_sec", "weight")]) == []


def test_the_command_tells_what_decided(call: Call, tmp_path: Any) -> None:
    file = tmp_path / "web7.json"
    taken({"remote": "public", "min_rtt_us_p50": 100_000, "bytes_retrans": 30_000}).write(file)
    told = call("recommend", "--from", file, "-q")
    assert told.code == 0
    assert told.out.splitlines()[0] == "Simulated, not measured: each path 5 times under CUBIC and under BBR."
    assert told.out.splitlines()[2] == "bbr    to public hosts at 100 ms (RTT 100 ms, loss 1.50 %, 30.0 Mbit/s)"
    assert "the goodput of CUBIC" in told.out
    assert "sysctl -w net.ipv4.tcp_congestion_control=bbr" in told.out
    found = json.loads(call("recommend", "--from", file, "--json").out)
    assert found["namespaces"] == [
        {"netns": "", "default": "bbr", "commands": ["sysctl -w net.ipv4.tcp_congestion_control=bbr"]}
    ]
    assert found["paths"][0]["bbr_over_cubic"]["n"] == 5


def test_the_placeholders_of_a_route_are_explained_where_there_are_some(call: Call) -> None:
    both = call("recommend", "--role", "public", "-q").out
    assert "ip route change PREFIX … congctl cubic" in both and "# PREFIX … is the route of these far ends" in both
    assert "congctl bbr" in both.splitlines()[-1]
    alike = call("recommend", "--role", "data-centre", "-q").out
    assert "PREFIX" not in alike and "net.ipv4.tcp_congestion_control=cubic" in alike


def test_what_says_no_path_is_refused(call: Call, tmp_path: Any) -> None:
    with pytest.raises(UsageError, match="expected one of data-centre, public"):
        of_role("edge")
    assert set(ROLES) == {"data-centre", "public"}
    file = tmp_path / "idle.json"
    taken().write(file)
    idle = call("recommend", "--from", file)
    assert (idle.code, "got no connection whose" in idle.err) == (2, True)
    both = call("recommend", "--from", file, "--role", "public")
    assert (both.code, "expected paths by one of them" in both.err) == (2, True)


RECORDED = {
    "t_unix_ns": 1_787_313_600_000_000_000,
    "t_mono_ns": 5_000_000_000,
    "sample": 0,
    "boot_id": "boot1",
    "host": "edge1",
    "netns": None,
    "final": False,
    "state": "ESTAB",
    "cookie": 1,
    "algorithm": "cubic",
    "local_addr": "10.0.0.1",
    "local_port": 443,
    "remote_addr": "192.0.2.77",
    "remote_port": 5000,
    "bytes_acked": 0,
    "bytes_sent": 0,
    "bytes_retrans": 0,
    "busy_us": 100_000,
    "srtt_us": 110_000,
    "min_rtt_us": 100_000,
    "delivery_rate_bits_per_sec": 20_000_000,
    "delivery_rate_app_limited": False,
}


def recorded(folder: File, *connections: Mapping[str, Any], name: str = "sockets-000001") -> File:
    """A folder as `knee record` writes it: two samples of each connection, between which its bytes were moved. `rates`:
    the delivery rate of each sample."""
    rows = []
    for cookie, more in enumerate(connections, 1):
        more = dict(more)
        rates = more.pop("rates", None)
        last = {"bytes_acked": 2_000_000, "bytes_sent": 2_040_000, "bytes_retrans": 30_000, **more}
        first = {**last, "bytes_acked": 0, "bytes_sent": 0, "bytes_retrans": 0}
        for at, row in enumerate((first, last)):
            later = {
                "sample": at,
                "boot_id": folder.name,
                "t_mono_ns": RECORDED["t_mono_ns"] + at * 10**9,
                "cookie": cookie,
                **({"delivery_rate_bits_per_sec": rates[at]} if rates else {}),
            }
            rows.append({**RECORDED, **row, **later, "t_unix_ns": RECORDED["t_unix_ns"] + at * 10**9})
    folder.mkdir(parents=True, exist_ok=True)
    texts = {name: pa.string() for name, value in RECORDED.items() if value is None or isinstance(value, str)}
    kinds = {**texts, "final": pa.bool_(), "delivery_rate_app_limited": pa.bool_(), "cookie": pa.uint64()}
    schema = pa.schema([(column, kinds.get(column, pa.int64())) for column in RECORDED])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / f"{name}.parquet")
    return folder


def told(ended: Ended) -> Any:
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_a_recording_has_a_path_for_each_distance_and_none_for_the_host_itself(call: Call, tmp_path: File) -> None:
    folder = recorded(
        tmp_path / "rec",
        {"bytes_retrans": 30_000},
        {"bytes_retrans": 10_200, "min_rtt_us": 120_000, "delivery_rate_bits_per_sec": 10_000_000},
        {"remote_addr": "10.0.0.9", "min_rtt_us": 200, "bytes_acked": 10_000_000, "bytes_sent": 10_000_000},
        {"remote_addr": "127.0.0.1", "min_rtt_us": 30, "bytes_acked": 10**12, "bytes_sent": 10**12},
        {"remote_addr": "::1", "min_rtt_us": 30, "bytes_acked": 10**12, "bytes_sent": 10**12},
    )
    near, far = told(call("recommend", "--from", folder, "--json", "-q"))["paths"]
    assert (near["rtt_us"], near["algorithm"], near["of"]) == (200, "cubic", "requests per second")
    assert (far["rtt_us"], far["rate_bits_per_sec"], far["weight"]) == (110_000, 20_000_000, 4_000_000)
    assert far["loss_pct"] == pytest.approx(100 * 40_200 / 4_080_000)
    assert far["algorithm"] == "bbr"


def test_a_path_has_the_highest_rate_that_a_sample_told(call: Call, tmp_path: File) -> None:
    folder = recorded(tmp_path / "rec", {"rates": (19_300_000, 1_000_000)}, {"rates": (2_000_000, 3_000_000)})
    [path] = told(call("recommend", "--from", folder, "--json", "-q"))["paths"]
    assert path["rate_bits_per_sec"] == 19_300_000


def test_a_rate_that_loss_alone_explains_is_told_to_say_nothing_of_the_link() -> None:
    gain = stats.ratio([1.02, 1.3, 1.01])
    assert gain is not None
    held = Path("lossy", 40_000, 3.0, 1_400_000)
    assert held.is_held_by_loss
    why = decided(held, gain, "goodput").why
    assert "losses alone hold CUBIC to about that on any link" in why
    assert why.endswith("knee compare cubic bbr1 --rate RATE --rtt 40ms --loss 3%")
    # By the formula 4.9 Mbit/s are what 0.52 % of loss allow.
    assert not Path("fast", 40_000, 0.52, 19_300_000).is_held_by_loss
    assert not Path("clean", 40_000, 0.0, 1_000_000).is_held_by_loss


def test_the_command_that_advice_names_is_whole() -> None:
    gain, without = stats.ratio([2.0, 2.1, 1.9]), stats.ratio([1.0, 1.01, 1.0])
    assert gain is not None
    why = decided(Path("full", 60_000, 0.5, 20_000_000, queue_us=30_000), gain, "goodput", without).why
    assert why.endswith("A recording tells which: knee whatif DIR --algorithms bbr1")


def test_losses_of_a_queue_that_a_flow_fills_are_no_reason_for_bbr(call: Call, tmp_path: File) -> None:
    """CUBIC through a buffer of two BDP, where nothing is lost but by the full queue; and through random losses."""
    for name, path, algorithm in (("full", 'buffer = "2bdp"', "cubic"), ("lossy", 'loss = "0.5%"', "bbr")):
        text = f'duration = "8s"\n[path]\nrate = "20Mbit/s"\nrtt = "60ms"\n{path}\n[[flow]]\nalgorithm = "cubic"\n'
        tcpknee.run(text, out=tmp_path / name)
        [found] = told(call("recommend", "--from", tmp_path / name, "--json", "-q"))["paths"]
        assert found["loss_pct"] > 0.05 and found["bbr_over_cubic"]["low"] > 1.05
        assert found["algorithm"] == algorithm, found["why"]
        if algorithm == "cubic":
            assert found["bbr_over_cubic_without_losses"]["high"] < 1.05 and found["queue_us"] > 20_000
            assert "a queue that a flow fills loses packets itself" in found["why"]


def test_namespaces_of_recordings_are_told_apart_and_the_host_s_own_has_no_name(call: Call, tmp_path: File) -> None:
    far = {"remote_addr": "198.51.100.9", "bytes_retrans": 60_000}
    near = {"min_rtt_us": 200, "srtt_us": 220, "bytes_retrans": 0}
    folders = [
        recorded(tmp_path / "own", {**near, "netns": "net:[4026531833]"}),
        recorded(tmp_path / "web", {**far, "netns": "web"}, {**near, "netns": "web", "bytes_acked": 1000}),
    ]
    given = [word for folder in folders for word in ("--from", folder)]
    found = told(call("recommend", *given, "--json", "-q"))
    assert [(path["netns"], path["algorithm"]) for path in found["paths"]] == [
        ("", "cubic"),
        ("web", "bbr"),
        ("web", "cubic"),
    ]
    own, web = found["namespaces"]
    assert own == {
        "netns": "",
        "default": "cubic",
        "commands": ["sysctl -w net.ipv4.tcp_congestion_control=cubic"],
    }
    assert web["commands"] == [
        "ip netns exec web sysctl -w net.ipv4.tcp_congestion_control=bbr",
        "ip netns exec web ip route change PREFIX … congctl cubic",
    ]


def test_a_run_is_data_as_well_and_a_snapshot_may_stand_beside_a_recording(call: Call, tmp_path: File) -> None:
    path = {"rate": "20Mbit/s", "rtt": "100ms", "loss": "1%"}
    tcpknee.run(duration="5s", path=path, flow=[{"algorithm": "cubic"}], out=tmp_path / "run")
    [lossy] = told(call("recommend", "--from", tmp_path / "run", "--json", "-q"))["paths"]
    assert 100_000 <= lossy["rtt_us"] < 110_000 and lossy["netns"] == ""
    assert 0.3 < lossy["loss_pct"] < 3 and lossy["algorithm"] == "bbr"
    file = tmp_path / "web7.json"
    taken({"remote": "private", "min_rtt_us_p50": 200}).write(file)
    both = told(call("recommend", "--from", tmp_path / "run", "--from", file, "--json", "-q"))
    assert {path["algorithm"] for path in both["paths"]} == {"bbr", "cubic"}


def test_namespaces_share_the_paths_that_are_simulated() -> None:
    many = [Path("p", 5000, 0.0, 10, netns, weight=weight) for netns in "abc" for weight in (9, 3, 1)]
    kept = heaviest([*many, Path("p", 5000, 0.0, 10, "d", weight=0.5)], 6)
    assert [(path.netns, path.weight) for path in kept] == [
        ("a", 9),
        ("a", 3),
        ("b", 9),
        ("b", 3),
        ("c", 9),
        ("d", 0.5),
    ]
    assert heaviest(many, 99) == many


def damaged(folder: File) -> File:
    file = recorded(folder, {}) / "sockets-000001.parquet"
    file.write_bytes(file.read_bytes()[:-40])
    return folder


def idle(folder: File) -> File:
    return recorded(folder, {"bytes_acked": 0, "bytes_sent": 0, "bytes_retrans": 0})


def only_itself(folder: File) -> File:
    return recorded(folder, {"remote_addr": "127.0.0.1"})


def empty(folder: File) -> File:
    folder.mkdir()
    return folder


def cut_off(folder: File) -> File:
    folder.mkdir()
    taken({"remote": "public"}).write(folder / "web7.json")
    (folder / "half.json").write_bytes((folder / "web7.json").read_bytes()[:100])
    return folder / "half.json"


def no_snapshot(folder: File) -> File:
    folder.mkdir()
    (folder / "a.txt").write_text("no snapshot")
    return folder / "a.txt"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (damaged, "sockets-000001.parquet"),
        (idle, "got no connection whose"),
        (only_itself, "got no connection whose"),
        (empty, "expected"),
        (cut_off, "is not JSON, or is cut off"),
        (no_snapshot, "is not JSON"),
        (lambda folder: folder, "is not there"),
    ],
    ids=["damaged", "idle", "to itself", "empty", "cut off", "no snapshot", "not there"],
)
def test_data_that_says_no_path_ends_with_what_is_wrong_with_it(
    call: Call, tmp_path: File, make: Callable[[File], File], said: str
) -> None:
    ended = call("recommend", "--from", make(tmp_path / "data"))
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err.replace("\n", " "), ended.err
    assert "Traceback" not in ended.err


def test_a_role_and_data_are_two_sources_of_paths(call: Call, tmp_path: File) -> None:
    both = call("recommend", "--role", "public", "--from", recorded(tmp_path / "rec", {}))
    assert (both.code, "got --role and --from; expected paths by one of them" in both.err) == (2, True)
    spaces = call("recommend", "--netns", "web", "--from", recorded(tmp_path / "rec2", {}))
    assert (spaces.code, "got --netns and --from; expected one of them" in spaces.err) == (2, True)
    unknown = call("recommend", "--role", "edge")
    assert (unknown.code, "expected one of data-centre, public" in unknown.err) == (2, True)
