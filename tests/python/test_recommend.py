"""`knee recommend`: which algorithm for which path, and the numbers that decide."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kneepoint.doctor.recommend import (
    ROLES,
    Advice,
    Path,
    advised,
    by_namespace,
    decided,
    of_groups,
    of_role,
    of_snapshot,
)
from kneepoint.doctor.snapshot import Snapshot
from kneepoint.errors import UsageError
from kneepoint.evidence import stats
from support import Ended

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
        ((2.0, 2.1, 1.9), "bbr", "It needs fq on the leaf that sends."),
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


def test_each_namespace_has_the_default_that_most_of_its_bytes_want() -> None:
    found = [advice("", "cubic", 3), advice("", "bbr", 1), advice("web", "bbr", 5), advice("web", "bbr", 1)]
    host, web = by_namespace(found)
    assert (host.netns, host.default, len(host.others)) == ("", "cubic", 1)
    assert host.commands() == [
        "sysctl -w net.ipv4.tcp_congestion_control=cubic",
        "ip route change PREFIX … congctl bbr",
    ]
    assert web.commands() == ["ip netns exec web sysctl -w net.ipv4.tcp_congestion_control=bbr"]


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
    assert told.out.splitlines()[0] == "bbr    to public hosts at 100 ms (RTT 100 ms, loss 1.50 %, 30.0 Mbit/s)"
    assert "the goodput of CUBIC" in told.out
    assert "sysctl -w net.ipv4.tcp_congestion_control=bbr" in told.out
    found = json.loads(call("recommend", "--from", file, "--json").out)
    assert found["namespaces"] == [
        {"netns": "", "default": "bbr", "commands": ["sysctl -w net.ipv4.tcp_congestion_control=bbr"]}
    ]
    assert found["paths"][0]["bbr_over_cubic"]["n"] == 5


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
