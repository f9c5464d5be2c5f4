"""Tallies of clustered values merge exactly, and their intervals say what they claim."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from kneepoint.errors import UsageError
from kneepoint.fleet import statistics
from kneepoint.fleet.statistics import Bins, Tally, tally


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


def test_a_quantile_is_within_a_bin_of_the_exact_one() -> None:
    values, hashes = fleet(2, 300)
    for error in (0.005, 0.05):
        made = tally(values, hashes, bins=Bins(error))
        for p in (0.25, 0.5, 0.75, 0.95, 0.99):
            assert statistics.quantile(made, p).value == pytest.approx(np.quantile(values, p), rel=2 * error)


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
