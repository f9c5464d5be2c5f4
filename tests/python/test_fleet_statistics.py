"""Tallies of clustered values merge exactly, and their intervals say what they claim."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom, norm

from tcpknee.errors import UsageError
from tcpknee.fleet import statistics
from tcpknee.fleet.statistics import Bins, Tally, tally
from tcpknee.fleet.statistics.hashes import mixed, poisson_weights


def fleet(seed: int, clusters: int = 60, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Values and cluster hashes: unequal clusters, heavy tails."""
    rng = np.random.default_rng(seed)
    sizes = 1 + rng.lognormal(2, 1, clusters).astype(int)
    own = np.repeat(rng.normal(0, 0.5, clusters), sizes)
    names = statistics.cluster_hashes([f"192.0.{number}.0/24" for number in range(clusters)])
    return np.exp(own + shift + rng.standard_t(4, len(own))), np.repeat(names, sizes)


def equal(a: Tally, b: Tally) -> bool:
    fields = ("grouped", "keys", "n", "row", "bin", "count", "rows", "missing", "smallest")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in fields) and np.allclose(a.total, b.total)


@pytest.mark.parametrize("clusters", [60, 5000])
def test_tallies_of_parts_add_up_to_the_tally_of_all_in_any_order(clusters: int) -> None:
    values, hashes = fleet(1, clusters)
    values[::7] = np.nan
    parts = [tally(values[number::3], hashes[number::3]) for number in range(3)]
    whole = tally(values, hashes)
    assert whole.grouped == (clusters > 2048)
    assert equal(parts[0] + parts[1] + parts[2], whole)
    assert equal(parts[2] + (parts[0] + parts[1]), whole)
    assert whole.clusters == pytest.approx(clusters, rel=0.1) and whole.missing == len(values[::7])


@pytest.mark.parametrize("few", [0, 1, 60])
def test_few_clusters_are_counted_exactly_also_beside_those_that_are_grouped(few: int) -> None:
    values, hashes = fleet(1, few)
    assert tally(values, hashes).as_groups().clusters == few
    compared = statistics.ratio(tally(*fleet(1, 5000)), tally(values, hashes), 0.5)
    assert compared.clusters == few


def test_a_quantile_is_within_a_bin_of_the_exact_one() -> None:
    values, hashes = fleet(2, 300)
    for error in (0.005, 0.05):
        made = tally(values, hashes, bins=Bins(error))
        for p in (0.25, 0.5, 0.75, 0.95, 0.99):
            assert statistics.quantile(made, p).value == pytest.approx(np.quantile(values, p), rel=2 * error)


@pytest.mark.parametrize(("clusters", "rows", "p"), [(2, 5, 0.5), (2, 5, 0.9), (4, 5, 0.9), (60, 1, 0.99)])
def test_an_interval_of_a_quantile_has_no_end_where_few_values_give_none(clusters: int, rows: int, p: float) -> None:
    rng, names = np.random.default_rng(5), statistics.cluster_hashes([str(number) for number in range(clusters)])
    truth = np.exp(norm.ppf(p) * np.hypot(0.3, 0.3))
    held = endless = 0
    for _ in range(200):
        own = np.repeat(rng.normal(0, 0.3, clusters), rows)
        found = statistics.quantile(tally(np.exp(own + rng.normal(0, 0.3, len(own))), np.repeat(names, rows)), p)
        held += found.low <= truth <= found.high
        endless += np.isinf(found.high)
    assert held >= binom.ppf(1e-4, 200, 0.93) and endless > 100


def test_bins_hold_what_they_say_below_and_above_zero() -> None:
    bins = Bins(0.01)
    values = np.array([-1e30, -3.0, -1e-12, 0.0, 1e-12, 1.0, 7.5, 1e30])
    low, high = bins.edges(bins.index(values))
    inner = np.abs(values) < 1e21
    assert np.all(low[inner] <= values[inner] + 1e-9) and np.all(values[inner] <= high[inner] + 1e-9)
    assert list(np.sign(bins.index(values))) == [-1, -1, 0, 0, 0, 1, 1, 1]


def test_names_hash_as_duckdb_computes_them() -> None:
    names = ["192.0.2.0/24", "2001:db8::/48", ""]
    asked = "SELECT ('0x' || left(md5(name), 16))::UBIGINT FROM (SELECT unnest(?) AS name)"
    assert [row[0] for row in duckdb.execute(asked, [names]).fetchall()] == list(statistics.cluster_hashes(names))


def test_a_tally_refuses_what_does_not_fit() -> None:
    values, hashes = fleet(3)
    with pytest.raises(UsageError, match="give each value its cluster"):
        tally(values, hashes[1:])
    with pytest.raises(UsageError, match="make both with the same bins"):
        tally(values, hashes) + tally(values, hashes, bins=Bins(0.01))


@pytest.mark.parametrize("p", [0.5, 0.95])
def test_a_cohort_against_itself_differs_by_nothing_because_clusters_share_their_weights(p: float) -> None:
    values, hashes = fleet(4)
    whole = tally(values, hashes)
    same = statistics.difference(whole, tally(values, hashes), p)
    assert (same.value, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    scaled = statistics.ratio(tally(values * 1.2, hashes), whole, p)
    apart = statistics.ratio(tally(values * 1.2, hashes + np.uint64(1)), whole, p)
    assert scaled.high / scaled.low < 1.03 < apart.high / apart.low


def test_a_ratio_turned_round_is_its_inverse() -> None:
    a, b = (tally(*fleet(seed)) for seed in (5, 6))
    there, back = statistics.ratio(a, b, 0.5).inverted(), statistics.ratio(b, a, 0.5)
    assert (there.value, there.low, there.high) == pytest.approx((back.value, back.low, back.high), rel=0.02)
    with pytest.raises(UsageError, match="only a ratio can be inverted"):
        statistics.difference(a, b, 0.5).inverted()


def test_clusters_widen_an_interval_that_rows_alone_would_make_narrow() -> None:
    values, hashes = fleet(7, 100)
    by_cluster = statistics.quantile(tally(values, hashes), 0.5)
    by_row = statistics.quantile(tally(values, np.arange(len(values), dtype=np.uint64)), 0.5)
    assert by_cluster.high - by_cluster.low > 1.2 * (by_row.high - by_row.low)
    assert by_cluster.clusters == 100 and by_cluster.effective < 100


def test_groups_of_clusters_give_the_intervals_of_clusters() -> None:
    values, hashes = fleet(8, 2000)
    kept = tally(values, hashes)
    grouped = kept.as_groups()
    assert grouped.grouped and not kept.grouped
    for p in (0.5, 0.95):
        one, other = statistics.quantile(kept, p), statistics.quantile(grouped, p)
        assert one.value == other.value
        assert other.high - other.low == pytest.approx(one.high - one.low, rel=0.15)


def test_without_two_clusters_there_is_no_interval_and_no_error() -> None:
    values, hashes = fleet(9)
    whole = tally(values, hashes)
    empty = tally(np.full(5, np.nan), hashes[:5])
    one = tally(values[:5], np.zeros(5, np.uint64))
    for poor in (empty, one):
        for found in (
            statistics.quantile(poor, 0.5),
            statistics.mean(poor),
            statistics.share_below(poor, 1.0),
            statistics.ratio(poor, whole, 0.5),
            statistics.difference(whole, poor),
        ):
            assert np.isnan(found.low) and np.isnan(found.high) and found.few
    assert empty.missing == 5 and empty.clusters == 0


def test_of_one_cluster_the_values_are_known_and_their_intervals_are_not() -> None:
    values, hashes = fleet(9)
    whole, one = tally(values, hashes), tally(values, np.zeros(len(values), np.uint64))
    for p in (0.25, 0.5, 0.99):
        assert statistics.quantile(one, p).value == statistics.quantile(whole, p).value
    middle = float(np.median(values))
    assert statistics.share_below(one, middle).value == pytest.approx(0.5, abs=0.01)
    assert statistics.mean(one).value == pytest.approx(values.mean())
    ratio, apart = statistics.ratio(one, whole, 0.5), statistics.difference(one, whole)
    assert ratio.value == pytest.approx(1) and apart.value == pytest.approx(0, abs=1e-9 * values.mean())
    for found in (statistics.quantile(one, 0.5), statistics.mean(one), ratio, apart):
        assert np.isnan(found.low) and np.isnan(found.high) and np.isnan(found.error) and found.clusters == 1


@pytest.mark.parametrize("clusters", [2, 3, 5, 10])
def test_few_clusters_leave_a_mean_its_interval_though_some_resamples_draw_none_of_them(clusters: int) -> None:
    made = tally(*fleet(9, clusters))
    assert not poisson_weights(made.keys, 3, 40_000).any(axis=1).all()
    found = statistics.mean(made, seed=3, resamples=40_000)
    assert found.low < found.value < found.high and found.error > 0 and found.few


@pytest.mark.parametrize("clusters", [2, 3, 4])
def test_resamples_that_draw_no_cluster_say_nothing_of_a_ratio_of_quantiles(clusters: int) -> None:
    """With three clusters a cohort 5 % of them do; they stood for the least value that could be seen."""
    rng = np.random.default_rng(5)
    truth_held, factors = 0, []
    for _ in range(40):
        cohorts = []
        for _ in range(2):
            sizes = rng.integers(200, 400, clusters)
            own = np.repeat(rng.normal(0, 0.1, clusters), sizes)
            hashes = np.repeat(rng.integers(1, 2**62, clusters).astype(np.uint64), sizes)
            cohorts.append(tally(np.exp(own + rng.normal(0, 0.5, len(own))), hashes))
        found = statistics.ratio(*cohorts, 0.5)
        truth_held += found.low <= 1 <= found.high
        factors.append(found.high / found.low)
    # At 95 % fewer come once in 1,400 times; Student's t of two clusters a cohort is a factor of 2.7.
    assert truth_held >= 33 and np.median(factors) < 3.5


@pytest.mark.parametrize(("clusters", "is_known"), [(2, False), (3, False), (4, True)])
def test_clusters_that_agree_tell_no_more_than_their_number(clusters: int, is_known: bool) -> None:
    """Two against two in any order: once in three. Four against four: once in 35."""
    names = np.arange(1, 2 * clusters + 1, dtype=np.uint64) << np.uint64(32)
    one, other = (
        tally(np.full(clusters, value), part) for value, part in zip((13.0, 10.0), np.split(names, 2), strict=True)
    )
    for p in (None, 0.5):
        for found in (statistics.ratio(one, other, p), statistics.difference(one, other, p)):
            assert found.value == pytest.approx(1.3 if found.logarithmic else 3.0, rel=0.02)
            assert np.isnan(found.low) == np.isnan(found.p_value) == (not is_known)


@pytest.mark.parametrize("clusters", [2, 3])
def test_clusters_of_both_cohorts_count_once(clusters: int) -> None:
    """Hosts that each have both cohorts, which do not differ: at most 5 % of 400 pairs may be called different."""
    rng = np.random.default_rng(8)
    called = 0
    for _ in range(400):
        hashes = np.repeat(rng.integers(1, 2**62, clusters).astype(np.uint64), 40)
        own = np.repeat(rng.normal(0, 0.3, clusters), 40)
        apart = np.repeat(rng.normal(0, 0.1, (2, clusters)), 40, axis=1)
        made = [tally(np.exp(own + one + rng.normal(0, 0.2, len(own))), hashes) for one in apart]
        found = statistics.ratio(*made)
        called += not found.low <= 1 <= found.high
        assert found.degrees <= clusters - 1
    # With as many degrees of freedom as for clusters of its own each cohort would have, 20 and 15 % are.
    assert called <= 0.11 * 400


def test_most_values_zero_leave_a_quantile_at_zero_and_no_ratio() -> None:
    values, hashes = fleet(10)
    values[values < np.quantile(values, 0.8)] = 0
    made = tally(values, hashes)
    middle = statistics.quantile(made, 0.5)
    assert (middle.value, middle.low, middle.high) == (0, 0, 0)
    assert np.isnan(statistics.ratio(made, made, 0.5).value)
    assert statistics.difference(made, made, 0.5).p_value == 1
    assert statistics.quantile(made, 0.95).value > 0


def test_strata_are_reweighted_by_adding_scaled_tallies() -> None:
    values, hashes = fleet(11)
    near = values < 1
    parts = [tally(values[side], hashes[side]) for side in (near, ~near)]
    # Twice the weight of one stratum is the same as having its rows twice.
    weighed = parts[0] + parts[1].scaled(2)
    doubled = tally(np.r_[values, values[~near]], np.r_[hashes, hashes[~near]])
    assert statistics.quantile(weighed, 0.75).value == pytest.approx(statistics.quantile(doubled, 0.75).value)
    assert statistics.mean(weighed).value == pytest.approx(statistics.mean(doubled).value)
    # The unit of the weights says nothing.
    whole, small = tally(values, hashes), tally(values, hashes).scaled(1e-3)
    for one, other in (
        (statistics.quantile(whole, 0.75), statistics.quantile(small, 0.75)),
        (statistics.share_below(whole, 1.0), statistics.share_below(small, 1.0)),
        (statistics.mean(whole), statistics.mean(small)),
    ):
        assert (one.low, one.high, one.degrees) == pytest.approx((other.low, other.high, other.degrees), rel=1e-3)


def test_the_seed_alone_decides_what_is_drawn() -> None:
    a, b = (tally(*fleet(seed)) for seed in (12, 13))
    assert statistics.ratio(a, b, 0.5, seed=1) == statistics.ratio(a, b, 0.5, seed=1)
    assert statistics.ratio(a, b, 0.5, seed=1).low != statistics.ratio(a, b, 0.5, seed=2).low


def test_weights_are_poisson_and_independent_of_who_else_is_there() -> None:
    keys = np.arange(400, dtype=np.uint64)
    drawn = poisson_weights(keys, 3, 2000).astype(np.float64)
    assert drawn.shape == (2000, 400)
    assert drawn.mean() == pytest.approx(1, abs=0.005) and drawn.var() == pytest.approx(1, abs=0.01)
    assert np.mean(drawn == 0) == pytest.approx(np.exp(-1), abs=0.002)
    between = np.corrcoef(drawn.T)[~np.eye(400, dtype=bool)]
    assert abs(between.mean()) < 0.001 and np.abs(between).max() < 0.15
    assert np.array_equal(poisson_weights(keys[100:], 3, 500), drawn[:500, 100:])


def test_groups_that_a_query_counted_make_the_tally_of_the_rows() -> None:
    """By the words of docs/fleet-statistics.md, in DuckDB. A value at a bin's edge may fall to either side."""
    values, hashes = fleet(14, 300)
    values[::5] = 0
    values[::7] *= -1
    rows = pa.table({"cluster": hashes, "value": values})
    page = (Path(__file__).resolve().parents[2] / "docs/fleet-statistics.md").read_text()
    query = page.split("```sql\n")[1].split("```")[0]
    with duckdb.connect() as connection:
        connection.register("connections", rows)
        groups = connection.sql(query).to_arrow_table()
    columns = (groups[name].to_numpy() for name in ("cluster", "bin", "count", "total"))
    counted, direct = statistics.tally_of_groups(*columns), tally(values, hashes)
    assert counted.clusters == direct.clusters and counted.rows == direct.rows
    assert np.allclose(counted.total, direct.total)
    for p in (0.1, 0.5, 0.95):
        one, other = statistics.quantile(counted, p), statistics.quantile(direct, p)
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), rel=0.01)


@pytest.mark.parametrize("clusters", [40, 5000])
def test_a_tally_travels_as_bytes(clusters: int) -> None:
    made = tally(*fleet(15, clusters))
    back = statistics.unpacked(statistics.packed(made))
    assert equal(back, made) and back.bins == made.bins
    assert equal(back + made, made + made)


def test_bytes_that_are_no_tally_are_refused() -> None:
    made = tally(*fleet(16))
    data = statistics.packed(made)
    for wrong in (b"", b"no tally", data[:200]):
        with pytest.raises(UsageError, match="no tally"):
            statistics.unpacked(wrong)
    for changes, said in (
        ({"count": made.count * 2}, "do not add up"),
        ({"row": made.row + 1}, "a cell of cluster 60 of 60"),
        ({"keys": made.keys[::-1]}, "not in order"),
        ({"n": made.n[1:]}, "differ in length"),
    ):
        with pytest.raises(UsageError, match=said):
            statistics.unpacked(statistics.packed(replace(made, **changes)))


def test_a_resample_is_the_fleet_with_each_cluster_as_often_as_its_weight_says() -> None:
    sides = [fleet(seed, 50) for seed in (17, 18)]
    apart = [(values, hashes + np.uint64(side)) for side, (values, hashes) in enumerate(sides)]
    tallies = [tally(values, hashes, bins=Bins(1e-5)) for values, hashes in apart]
    drawn = []
    for (values, hashes), made in zip(apart, tallies, strict=True):
        weights = poisson_weights(made.keys, 5, 300)[:, np.searchsorted(made.keys, mixed(hashes))]
        drawn.append([np.quantile(np.repeat(values, often), 0.75, method="inverted_cdf") for often in weights])
    found = statistics.difference(*tallies, 0.75, seed=5, resamples=300)
    # The variance among n draws is (n - 1) / n of what they are drawn from.
    n = found.effective
    assert found.error == pytest.approx(np.std(np.subtract(*drawn)) * np.sqrt(n / (n - 1)), rel=1e-3)


def test_the_degrees_of_freedom_are_those_of_equal_clusters_and_fewer_for_unequal_ones() -> None:
    rng = np.random.default_rng(19)
    equal_sizes = np.repeat(np.arange(80, dtype=np.uint64), 20)
    alike = statistics.quantile(tally(rng.normal(10, 1, 1600), equal_sizes), 0.5)
    assert alike.clusters == alike.effective == 80 and 60 < alike.degrees <= 79
    sizes = np.where(np.arange(80) < 2, 800, 20)
    unequal = np.repeat(np.arange(80, dtype=np.uint64), sizes)
    level = rng.normal(0, 1, 80)[unequal]
    few = statistics.quantile(tally(10 + level + rng.normal(0, 0.1, len(unequal)), unequal), 0.5)
    assert few.effective < 10 and few.degrees < 5 and few.few and not alike.few


def test_clusters_without_a_known_value_are_none_of_the_metric() -> None:
    values, hashes = fleet(20, 5000)
    of_chunk = statistics.Clusters.of(hashes)
    few = np.isin(hashes, np.unique(hashes)[:40])
    rare = tally(np.where(few, values, np.nan), of_chunk)
    assert equal(replace(rare, missing=0), tally(values[few], hashes[few]))
    assert rare.clusters == 40 and not rare.grouped and rare.missing == np.sum(~few)
    half = np.isin(hashes, np.unique(hashes)[:3000])
    assert tally(np.where(half, values, np.nan), of_chunk).clusters == pytest.approx(3000, rel=0.1)


def test_an_interval_and_its_p_value_never_contradict_each_other() -> None:
    """Also where few clusters have anything but 0, so that the interval ends beyond what resamples show."""
    rng = np.random.default_rng(2)
    prefixes = np.array([f"10.0.{number}.0/24" for number in range(80)])
    few = 0
    for rare in (0.0, 0.0, 0.02, 0.3) * 8:
        nodes = [statistics.cluster_hashes(rng.choice(prefixes, 900)) for _ in range(2)]
        values = [
            np.where(rng.random(900) < share, rng.lognormal(-1.5, 1.3, 900), 0.0) for share in (rare, max(rare, 0.02))
        ]
        found = statistics.difference(tally(values[0], nodes[0]), tally(values[1], nodes[1]), seed=1)
        assert found.p_value is not None
        assert (found.p_value >= 0.05) == (found.low <= 0 <= found.high), found
        few += found.degrees < 5
    assert few > 3
