"""Synthetic fleets: a mix is read or refused, drawn and simulated as stated, the same for any number of workers, and
read as recordings are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from support import Ended
from tcpknee import _core
from tcpknee.errors import RunFolderError, UsageError
from tcpknee.fleet import connections, synthetic
from tcpknee.fleet.synthetic import plan

Call = Callable[..., Ended]

MIX = """\
seed     = 7
prefixes = 6
duration = "3s"
hosts    = 2
kernel   = "5.3.0"
design   = "ab"

[[arm]]
algorithm = "cubic"
share     = "75%"

[[arm]]
name      = "new"
algorithm = "bbr1"
share     = "25%"

[[clients]]
name        = "slow"
share       = "67%"
path.rate   = "4Mbit/s"
path.rtt    = "lognormal median 30ms sigma 0.5 from 5ms to 200ms"
path.buffer = "64KiB"
path.loss   = "uniform 0% to 1%"
flow.load   = "uniform 1Mbit/s to 5Mbit/s"
flow.sizes  = "lognormal median 40kB sigma 1 from 2kB to 1MB"

[[clients]]
name        = "fast"
share       = "33%"
path.rate   = "20Mbit/s"
path.rtt    = "10ms"
flow.load   = "6Mbit/s"
flow.sizes  = "lognormal median 40kB sigma 1 from 2kB to 1MB"
"""


def mix_of(tmp_path: Path, text: str = MIX) -> synthetic.Mix:
    path = tmp_path / "mix.toml"
    path.write_text(text)
    return synthetic.read(path)


def digests(folder: Path) -> dict[str, str]:
    """Of every file but the manifest, which has times."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "fleet.json"
    }


def test_a_fleet_is_the_same_for_any_number_of_workers_and_another_for_another_seed(tmp_path: Path) -> None:
    mix = mix_of(tmp_path)
    synthetic.write(mix, tmp_path / "one", workers=1)
    synthetic.write(mix, tmp_path / "three", workers=3)
    assert digests(tmp_path / "one") == digests(tmp_path / "three")
    assert len(digests(tmp_path / "one")) == 1 + 3 * 2
    synthetic.write(mix.changed(seed=8), tmp_path / "other", workers=1)
    changed = [
        name for name, digest in digests(tmp_path / "other").items() if digest != digests(tmp_path / "one")[name]
    ]
    assert len(changed) == len(digests(tmp_path / "one"))


def test_the_connections_of_a_fleet_are_those_that_were_simulated(tmp_path: Path) -> None:
    told = synthetic.write(mix_of(tmp_path), tmp_path / "fleet", workers=1)
    found = connections.read([tmp_path / "fleet"])
    assert found.num_rows == told["connections"] == sum(told["connections_by_arm"].values()) > 100
    counts = {arm: found["arm"].to_pylist().count(arm) for arm in ("cubic", "new")}
    assert counts == told["connections_by_arm"]
    assert {(row["arm"], row["algorithm"]) for row in found.select(["arm", "algorithm"]).to_pylist()} == {
        ("cubic", "cubic"),
        ("new", "bbr1"),
    }
    assert set(found["kernel"].to_pylist()) == {"5.3.0"}
    assert len(set(found["host_id"].to_pylist())) == 2
    assert set(found["remote_prefix"].to_pylist()) == {f"10.0.{number}.0/24" for number in range(6)}
    assert len(set(zip(found["boot_id"].to_pylist(), found["cookie"].to_pylist(), strict=True))) == found.num_rows
    # No connection was faster than its path, whose rate has 1448 of 1500 bytes of payload.
    rates = found["delivery_rate_bits_per_sec"].drop_null().to_numpy()
    assert 0 < rates.max() < 20e6


def test_the_log_has_the_columns_that_knee_assign_writes_and_so_has_the_copy_beside_connections(tmp_path: Path) -> None:
    synthetic.write(mix_of(tmp_path), tmp_path / "fleet", workers=1)
    connections.write([tmp_path / "fleet"], tmp_path / "out")
    declared = [column["name"] for column in _core.tables("recording")["assignments"]]
    for path in (tmp_path / "fleet/host-01/assignments-000001.parquet", tmp_path / "out/assignments.parquet"):
        assert pq.read_schema(path).names == declared


def test_connections_of_a_prefix_share_its_bottleneck_and_prefixes_draw_transfers_of_their_own(tmp_path: Path) -> None:
    synthetic.write(mix_of(tmp_path), tmp_path / "fleet", workers=1)
    found = connections.read([tmp_path / "fleet"], ["remote_prefix", "bytes_acked"])
    sizes: dict[str, list[int]] = {}
    for row in found.to_pylist():
        sizes.setdefault(row["remote_prefix"], []).append(row["bytes_acked"])
    same = {frozenset(values) for values in sizes.values()}
    assert len(same) == 6 and len({len(values) for values in sizes.values()}) > 1


@pytest.mark.parametrize("design", ["ab", "cluster"])
def test_other_traffic_takes_its_share_of_a_bottleneck_and_is_not_recorded(design: str, tmp_path: Path) -> None:
    """Its load is drawn, so that it is found by its name however many arms there are."""
    sizes = "lognormal median 100kB sigma 0.5 from 10kB to 1MB"
    cross = f'cross.algorithm = "cubic"\ncross.load = "uniform 1Mbit/s to 3Mbit/s"\ncross.sizes = "{sizes}"\n'
    told, rates = {}, {}
    for name, more in (("alone", ""), ("shared", cross)):
        text = MIX.replace('name        = "slow"\n', f'name = "slow"\n{more}')
        told[name] = synthetic.write(mix_of(tmp_path, text).changed(design=design), tmp_path / name, workers=1)
        found = connections.read([tmp_path / name], ["cookie", "algorithm", "arm", "goodput_bits_per_sec"])
        assert found.num_rows == told[name]["connections"]
        assert set(found["arm"].to_pylist()) <= {"cubic", "new"}
        rates[name] = np.nanmedian(found["goodput_bits_per_sec"].to_numpy())
    assert told["alone"]["connections"] == told["shared"]["connections"]
    assert rates["shared"] < 0.95 * rates["alone"]
    paths = (tmp_path / "shared" / "paths.csv").read_text().splitlines()
    assert "cross.load" in paths[0] and "flow.1" not in paths[0]


def test_what_is_drawn_of_a_flow_holds_for_every_arm(tmp_path: Path) -> None:
    limit = 'flow.max_pacing_rate = "uniform 300kbit/s to 400kbit/s"\nflow.load '
    synthetic.write(mix_of(tmp_path, MIX.replace("flow.load ", limit)), tmp_path / "fleet", workers=1)
    # What is larger than an initial window, which is not paced.
    rates = {
        arm: connections.read(
            [tmp_path / "fleet"], ["goodput_bits_per_sec"], where=f"arm = '{arm}' and bytes_acked > 50000"
        )["goodput_bits_per_sec"].to_numpy()
        for arm in ("cubic", "new")
    }
    assert all(len(found) and np.all(found < 1e6) for found in rates.values())


def test_a_path_is_that_of_its_kind_and_kinds_have_their_shares(tmp_path: Path) -> None:
    mix = mix_of(tmp_path).changed(prefixes=300)
    found = plan.prefixes(mix)
    assert [prefix.clients.name for prefix in found].count("slow") == 201
    losses = [float(prefix.path["path.loss"].rstrip("%")) for prefix in found if prefix.clients.name == "slow"]
    assert 0 <= min(losses) < 0.05 and 0.95 < max(losses) <= 1
    assert abs(np.mean(losses) - 0.5) < 4 * np.sqrt(1 / 12 / 201)
    assert found[0].text == "10.0.0.0/24" and found[299].text == "10.1.43.0/24"


def test_each_design_assigns_what_it_says(tmp_path: Path) -> None:
    mix = mix_of(tmp_path, MIX.replace("prefixes = 6", "prefixes = 400\nperiods = 4"))
    for design, arms in (("ab", {2}), ("cluster", {1}), ("switchback", {1}), ("paired-link", {2})):
        given = mix.changed(design=design)
        rows = list(plan.rows(given, plan.prefixes(given)))
        assert {len(row.arms) for row in rows} == arms and len(rows) == 1600
        assert [row.number for row in rows] == list(range(1600))
        by_prefix: dict[int, list[tuple[int, float]]] = {}
        for row in rows:
            by_prefix.setdefault(row.prefix.number, []).append(row.arms[-1])
        if design == "cluster":
            assert all(len(set(chosen)) == 1 for chosen in by_prefix.values())
            treated = sum(chosen[0][0] for chosen in by_prefix.values())
            assert abs(treated - 100) < 4 * np.sqrt(400 * 0.25 * 0.75)
        if design == "switchback":
            first = [[arm for arm, _ in chosen] for chosen in by_prefix.values()]
            assert all(sorted(order[:2]) == sorted(order[2:]) == [0, 1] for order in first)
            assert all(order == first[0] for order in first)
        if design == "paired-link":
            shares = {row.prefix.link: row.arms[1][1] for row in rows}
            assert shares == {"1": 0.25, "2": 0.75}
            assert rows[0].prefix.path == rows[4].prefix.path and rows[0].prefix.number != rows[4].prefix.number


def test_a_switchback_tells_the_arm_of_each_connection_by_its_period(tmp_path: Path) -> None:
    mix = mix_of(tmp_path, MIX.replace("prefixes = 6", "prefixes = 2\nperiods = 4")).changed(design="switchback")
    synthetic.write(mix, tmp_path / "fleet", workers=1)
    found = connections.read([tmp_path / "fleet"], ["arm", "algorithm", "period", "design"]).to_pylist()
    assert len({(row["arm"], row["period"]) for row in found}) == 4
    assert {row["design"] for row in found} == {"switchback"} and {row["period"] for row in found} == {0, 1, 2, 3}
    assert all(row["algorithm"] == {"cubic": "cubic", "new": "bbr1"}[row["arm"]] for row in found)


def test_fleets_of_one_mix_with_other_arms_are_worlds_of_their_own_with_the_same_transfers(tmp_path: Path) -> None:
    mix = mix_of(tmp_path)
    for name in ("cubic", "reno"):
        synthetic.write(mix.changed(design="cluster", arms=[f"{name}=100%"]), tmp_path / name, workers=1)
    rows = connections.read([tmp_path / "cubic", tmp_path / "reno"]).to_pylist()
    assert all(row["arm"] == row["algorithm"] for row in rows)
    ended = [
        sorted((row["remote_prefix"], row["cookie"]) for row in rows if row["algorithm"] == name)
        for name in ("cubic", "reno")
    ]
    assert len(rows) == 2 * len(ended[0]) and ended[0] == ended[1]


def test_what_a_recording_has_of_a_socket_grows_and_ends_once(tmp_path: Path) -> None:
    synthetic.write(mix_of(tmp_path), tmp_path / "fleet", workers=1)
    rows = pq.read_table(tmp_path / "fleet" / "host-01" / "sockets-000001.parquet").to_pandas()
    for _, one in rows.sort_values("t_mono_ns").groupby("cookie"):
        assert one.bytes_acked.is_monotonic_increasing and one.data_segs_out.is_monotonic_increasing
        assert not one.final.iloc[:-1].any() and one.remote_addr.nunique() == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('share     = "25%"', 'share     = "35%"', "arm: got shares of 110 % together"),
        ('design   = "ab"', 'design   = "a/b"', 'design: got "a/b"'),
        ("hosts    = 2", "host    = 2", 'Did you mean "hosts"?'),
        ("hosts    = 2", 'hosts    = "2"', "hosts: got '2'; expected a whole number"),
        ('"uniform 1Mbit/s to 5Mbit/s"', '"uniform 1Mbit/s to 5s"', "clients slow: flow.load"),
        ('path.rtt    = "10ms"', 'path.rtt    = "10"', "clients fast: path.rtt"),
        ('path.rtt    = "10ms"', 'path.rt    = "10ms"', "path.rt"),
        ('flow.load   = "6Mbit/s"\n', "", "flow.load: got nothing"),
        ('path.rtt    = "10ms"', 'path.rtt = "10ms"\ncross.load = "1Mbit/s"', "cross.algorithm: got nothing"),
        ('path.rtt    = "10ms"', 'path.rtt = "10ms"\ncross.algorithm = "new"', "clients fast: cross.load: missing"),
        ('name        = "fast"', 'name        = "slow"', 'the name "slow" twice'),
        ("seed     = 7", "seed     = ", "cannot be read as TOML"),
        ("seed     = 7", "seed     = -1", "seed: got -1; expected 0 to 9,223,372,036,854,775,807"),
        ("seed     = 7", "seed     = 9223372036854775808", "seed: got 9223372036854775808"),
        ("seed     = 7", f"seed     = {'[' * 5000}", "nested too deeply"),
        ('algorithm = "bbr1"', 'algorithm = "bbr17"', 'arm new: unknown algorithm "bbr17"'),
        ('name        = "fast"', 'name = "fast"\nduration = "2s"', 'clients.1: got the key "duration"'),
        ('name        = "fast"', 'name = "fast"\nevery.load = "2s"', 'clients.1: got the key "every.load"'),
    ],
)
def test_a_mix_that_is_no_good_is_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in MIX
    with pytest.raises(UsageError) as refused:
        synthetic.write(mix_of(tmp_path, MIX.replace(old, new, 1)), tmp_path / "fleet")
    assert said in str(refused.value), refused.value
    assert not (tmp_path / "fleet").exists()


def test_the_mixes_that_come_with_tcpknee_can_be_drawn() -> None:
    assert synthetic.shipped()
    for name in synthetic.shipped():
        mix = synthetic.read(name)
        assert len(plan.prefixes(mix)) == mix.prefixes


def test_the_command_writes_a_fleet_and_not_over_another(call: Call, tmp_path: Path) -> None:
    mix_of(tmp_path)
    words = ("fleet", "synthesize", "mix.toml", "--out", "f", "-q", "--prefixes", "3", "--arm", "reno=100%")
    ended = call(*words)
    assert ended.code == 0, ended.err
    assert "connections simulated (reno " in ended.out and "behind 3 bottlenecks, to 2 hosts: f" in ended.out
    again = call(*words)
    assert again.code == 2 and "already holds a fleet" in again.err
    wrong = call("fleet", "synthesize", "mix.toml", "--out", "g", "--seed", "9223372036854775808")
    assert wrong.code == 2 and "expected a whole number from 0 to 9223372036854775807" in wrong.err
    assert not Path("g").exists()
    wrong = call("fleet", "synthesize", "dem", "--out", "g")
    assert wrong.code == 2 and 'Did you mean "demo"?' in wrong.err
    wrong = call("fleet", "synthesize", "mix.toml", "--out", "g", "--arm", "reno")
    assert wrong.code == 2 and "expected ALGORITHM=SHARE" in wrong.err


def test_a_fleet_is_not_written_over_another(tmp_path: Path) -> None:
    synthetic.write(mix_of(tmp_path).changed(prefixes=1), tmp_path / "fleet", workers=1)
    with pytest.raises(RunFolderError, match="already holds a fleet"):
        synthetic.write(mix_of(tmp_path), tmp_path / "fleet")
