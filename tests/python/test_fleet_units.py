"""The unit of inference is what the assignment log says was drawn: prefixes of any length, hosts, periods."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawn_fleets import HOUR, NOON, fleet, written
from tcpknee import fleet as fleets
from tcpknee.fleet.connections import assignment, write
from tcpknee.fleet.following import following
from tcpknee.fleet.following.guards import parse
from test_fleet_connections import recording, rows_of, sample

RATE = "goodput_bits_per_sec"


def experiment(*, units: int, of_unit: int, connections: int, seed: int = 4) -> tuple[dict[str, Any], dict[str, Any]]:
    """Connections of `units` /20, each with `of_unit` /24, and the log of an experiment that drew the /20: what differs
    between prefixes differs between /20, so that their /24 are no further evidence. With this seed no unit is an
    outlier, for which the bootstrap widens intervals further than a textbook does."""
    draw = np.random.default_rng(seed)
    columns = fleet(connections, seed=seed)
    unit = draw.integers(0, units, connections)
    third = 16 * (unit % 16) + draw.integers(0, of_unit, connections)
    treated = draw.permutation(units)[unit] % 2 == 1
    columns["remote_prefix"] = [f"10.{one // 16}.{two}.0/24" for one, two in zip(unit, third, strict=True)]
    columns["algorithm"] = np.where(treated, "bbr1", "cubic").tolist()
    columns[RATE] = 5e6 * np.exp(draw.normal(0, 0.6, units)[unit] + draw.normal(0, 0.2, connections))
    columns |= {"host_id": ["edge"] * connections, "host": ["edge"] * connections, "boot_id": ["boot"] * connections}
    log = {
        "t_unix_ns": columns["begin_unix_ns"],
        "host_id": columns["host_id"],
        "boot_id": columns["boot_id"],
        "cookie": columns["cookie"],
        "unit": [f"10.{one // 16}.{16 * (one % 16)}.0/20" for one in unit],
        "arm": np.where(treated, "treatment", "control").tolist(),
        "algorithm": columns["algorithm"],
        "design": ["cluster"] * connections,
        "allocation_pct": [50.0] * connections,
    }
    return columns, log


def by_hand(values: Any, clusters: list[str]) -> float:
    """Half of the 95 % interval of a mean over connections, from the sums of its clusters (linearised)."""
    _, place = np.unique(clusters, return_inverse=True)
    sums, counts = np.bincount(place, values), np.bincount(place)
    apart = sums - values.mean() * counts
    return float(1.96 * np.sqrt((apart**2).sum() * len(sums) / (len(sums) - 1)) / len(values))


def test_intervals_are_as_wide_as_the_prefixes_that_were_drawn_demand(tmp_path: Path) -> None:
    columns, log = experiment(units=100, of_unit=12, connections=6000)
    data = written(tmp_path / "data", columns)
    naive = fleets.compare(data, by="algorithm").values["bbr1"][RATE]["mean"]
    written(data, log, "assignments")
    found = fleets.compare(data, by="arm")
    assert found.clusters == "client prefix of /20, as assigned"
    own = found.values["treatment"][RATE]["mean"]
    treated = np.array(columns["algorithm"]) == "bbr1"
    rates = np.array(columns[RATE])[treated]
    units, prefixes = (
        [one for one, is_treated in zip(names, treated, strict=True) if is_treated]
        for names in (log["unit"], columns["remote_prefix"])
    )
    assert own.clusters == len(set(units)) == 50
    assert (own.high - own.low) / 2 == pytest.approx(by_hand(rates, units), rel=0.2)
    # What the /24 behind them would say is wrong by a factor.
    assert (naive.high - naive.low) / 2 == pytest.approx(by_hand(rates, prefixes), rel=0.2)
    assert own.high - own.low > 2 * (naive.high - naive.low)
    # The total effect of the design is over the same units.
    [effect] = [one.effect for one in found.effects if one.metric.name == RATE]
    assert effect.total is not None and effect.total.clusters == 100
    # Who says otherwise has it otherwise.
    assert fleets.compare(data, by="arm", cluster="prefix").values["treatment"][RATE]["mean"].clusters > 500


def test_a_guard_is_judged_by_the_prefixes_that_were_drawn(tmp_path: Path) -> None:
    columns, log = experiment(units=100, of_unit=12, connections=6000)
    data = written(written(tmp_path / "data", columns | {"final": [True] * 6000}), log, "assignments")
    look = following.look([data], [parse(f"{RATE} ratio >= 0.5")], control="control")
    assert look.clusters == "client prefix of /20, as assigned"
    assert look.judged["treatment"][0].interval.clusters == 50


def addresses(draw: np.random.Generator, count: int) -> list[str]:
    """Clients of one /24 and one /48."""
    v6 = [str(ipaddress.IPv6Address("2001:db8:1::") + int(k)) for k in draw.permutation(1 << 16)[: count // 2]]
    return [f"198.51.100.{k}" for k in draw.permutation(254)[: count // 2] + 1] + v6


@pytest.mark.parametrize("has_cookies", [True, False])
def test_single_addresses_that_were_drawn_are_clusters_and_do_not_interfere(has_cookies: bool, tmp_path: Path) -> None:
    """`--prefix 32,128`; with a log that names no connection the address finds its unit."""
    clients = addresses(np.random.default_rng(1), 160)
    samples, log = [], []
    for cookie, client in enumerate(client for client in clients for _ in range(3)):
        algorithm = ("cubic", "bbr1")[clients.index(client) % 2]
        samples += [sample(at, cookie, remote_addr=client, algorithm=algorithm, final=at == 2) for at in range(3)]
        log.append(
            {
                "t_unix_ns": NOON - 1,
                "host_id": "edge1",
                "boot_id": "boot1",
                "cookie": cookie if has_cookies else None,
                "unit": f"{client}/{32 if '.' in client else 128}",
                "arm": algorithm,
                "algorithm": algorithm,
                "design": "cluster",
                "allocation_pct": 50.0,
            }
        )
    data = recording(tmp_path / "rec", samples)
    plain = fleets.compare(data)
    assert [one for one in plain.warnings if one.startswith("interference: 100 %")]
    unique = {one["unit"]: one for one in log}.values() if not has_cookies else log
    pq.write_table(pa.Table.from_pylist(list(unique)), data / "assignments.parquet")
    found = fleets.compare(data, by="arm", baseline="cubic")
    assert found.clusters == "client prefix of /32 or /128, as assigned"
    assert found.tallies["bbr1"]["srtt_us"].clusters == 80
    assert not [one for one in found.warnings if one.startswith(("interference", "sample-ratio", "bbr1 has"))]
    look = following.look([data], [parse("srtt_us ratio <= 1.5")], control="cubic")
    assert look.judged["bbr1"][0].interval.clusters == 80
    # A table of connections that a host sends alone keeps the units.
    write([data], tmp_path / "conn")
    assert rows_of(tmp_path / "conn") == rows_of(data)


def test_the_prefix_that_holds_the_client_and_was_assigned_last_counts(tmp_path: Path) -> None:
    clients = ["192.0.33.7", "::ffff:192.0.33.8", "192.0.48.1", "2001:db8:12ff::1", "2001:db8:1200:0:5::2", "h1f0c33"]
    samples = [sample(at, c, remote_addr=client) for at in (0, 1) for c, client in enumerate(clients)]
    plain = {"t_unix_ns": NOON - 9, "host_id": "edge1", "boot_id": "boot1", "cookie": None, "design": "cluster"}
    log = [
        {**plain, "unit": "192.0.32.0/20", "arm": "a", "t_unix_ns": NOON - 5},
        {**plain, "unit": "192.0.33.0/24", "arm": "earlier"},
        {**plain, "unit": "192.0.33.0/24", "arm": "too late", "t_unix_ns": NOON + 9 * HOUR},
        {**plain, "unit": "2001:db8:1200::/40", "arm": "b"},
        {**plain, "unit": "192.0.48.0/20", "arm": "elsewhere", "host_id": "edge2"},
    ]
    data = recording(tmp_path / "rec", samples)
    pq.write_table(pa.Table.from_pylist(log), data / "assignments.parquet")
    told = [(row["arm"], row["unit"]) for row in rows_of(data)]
    assert told == [*[("a", "192.0.32.0/20")] * 2, (None, None), *[("b", "2001:db8:1200::/40")] * 2, (None, None)]


def test_networks_are_those_of_ipaddress() -> None:
    import duckdb

    draw = np.random.default_rng(7)
    v4 = [ipaddress.IPv4Address(int(one)) for one in draw.integers(0, 1 << 32, 300)]
    # With runs of zeros, which are written as ::.
    groups = draw.integers(0, 1 << 16, (300, 8)) * (draw.random((300, 8)) < 0.4)
    v6 = [ipaddress.IPv6Address(b"".join(int(g).to_bytes(2, "big") for g in one)) for one in groups]
    for family, found in ((4, v4), (6, v6)):
        listed = pa.table({"address": [str(one) for one in found]})  # noqa: F841
        for bits in range(33) if family == 4 else range(0, 129, 3):
            query = f"select {assignment.network('address', family, bits)} from listed"
            keys = [row[0] for row in duckdb.sql(query).fetchall()]
            networks = [ipaddress.ip_network((one, bits), strict=False) for one in found]
            assert len(set(zip(keys, networks, strict=True))) == len(set(keys)) == len(set(networks)), (family, bits)
            assert None not in keys


def test_hosts_and_periods_are_units_where_they_were_drawn_and_connections_never(tmp_path: Path) -> None:
    columns, log = experiment(units=100, of_unit=12, connections=4000)
    draw = np.random.default_rng(1)
    host, period = draw.integers(0, 12, 4000), draw.integers(0, 40, 4000)
    for name, wanted, clusters, unit, more in (
        ("host", "host, as assigned", 6, ["host"] * 4000, {"treated": host % 2}),
        ("switchback", "period, as assigned", 20, ["host"] * 4000, {"treated": period % 2, "period": period}),
        ("ab", "client prefix", None, [str(one) for one in columns["cookie"]], {"treated": draw.integers(0, 2, 4000)}),
    ):
        treated = more.pop("treated") == 1
        names = [f"edge{one}" for one in host] if name == "host" else ["edge"] * 4000
        arms = np.where(treated, "treatment", "control").tolist()
        algorithms = np.where(treated, "bbr1", "cubic").tolist()
        own = columns | {"host_id": names, "algorithm": algorithms}
        if name == "switchback":
            own["begin_unix_ns"] = NOON + period * HOUR
            own["end_unix_ns"] = own["begin_unix_ns"] + 10**9
        design = {"design": ["cluster" if name == "host" else name] * 4000, "t_unix_ns": own["begin_unix_ns"], **more}
        data = written(tmp_path / name, own)
        written(
            data, log | design | {"host_id": names, "unit": unit, "arm": arms, "algorithm": algorithms}, "assignments"
        )
        found = fleets.compare(data, by="arm")
        assert found.clusters == wanted
        if clusters is not None:
            assert found.tallies["treatment"][RATE].clusters == clusters
        else:
            assert [one for one in found.warnings if one.startswith("interference")]


def test_what_clusters_were_like_before_is_of_the_prefixes_that_were_drawn(tmp_path: Path) -> None:
    columns, log = experiment(units=100, of_unit=12, connections=6000)
    past = columns | {name: columns[name] - 48 * HOUR for name in ("begin_unix_ns", "end_unix_ns")}
    past[RATE] = columns[RATE] * np.random.default_rng(2).uniform(0.9, 1.1, 6000)
    data = written(written(tmp_path / "now", columns), log, "assignments")
    before = written(tmp_path / "past", past)
    found = fleets.compare(data, by="arm", before=[str(before)])
    [rate] = [one for one in found.adjusted if one.metric.name == RATE]
    plain = found.verdict(RATE).difference
    assert rate.known == 1 and rate.difference.clusters == 50
    assert rate.difference.high - rate.difference.low < 0.2 * (plain.high - plain.low)
