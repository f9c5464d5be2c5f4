"""What is kept of a cohort's connections: counts by cluster and bin, and sums by cluster.

Everything later (quantiles, means, their intervals) is computed from these. Two tallies of different connections merge
by addition, in any order and over machines, to the tally of all of them.

Up to `BUCKETS` clusters are kept apart. Beyond that clusters are put into `BUCKETS` groups by their hash. Clusters are
independent, so such groups are too, and their variance estimates the same: it only has fewer terms, which leaves the
width of an interval uncertain by sqrt(1 / (2 * BUCKETS)), 1.6 %.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tcpknee.errors import UsageError

from .bins import Bins, Floats, Integers
from .hashes import Hashes, mixed

BUCKETS = 2048
"""Clusters that a tally keeps apart, and groups that it makes of more. A power of two."""

_GROUPS = np.arange(BUCKETS, dtype=np.uint64)

SMALLEST = 1024
"""Hashes that are kept to estimate the number of clusters: known to 1 / sqrt(SMALLEST), 3 %."""


@dataclass(frozen=True)
class Clusters:
    """The cluster of each row of a chunk, prepared once for all metrics of the chunk.

    `keys` are sorted and `codes` says which of them each row belongs to. `smallest` are mixed hashes of clusters.
    `spread` are those of all rows where clusters are `grouped`, for metrics that only some rows have; else it is empty.
    """

    keys: Hashes
    codes: npt.NDArray[np.intp]
    grouped: bool
    smallest: Hashes
    spread: Hashes

    @staticmethod
    def of(hashes: Hashes) -> Clusters:
        """From the hash of each row's cluster."""
        return Clusters._of_spread(mixed(np.asarray(hashes, dtype=np.uint64)))

    @staticmethod
    def _of_spread(spread: Hashes) -> Clusters:
        # A part of the rows with too many clusters spares sorting all of them.
        some = len(np.unique(spread[:: max(len(spread) // 65536, 1)]))
        if some > BUCKETS:
            return Clusters(_GROUPS, _bucket(spread), True, _smallest(spread, some), spread)
        keys, codes = np.unique(spread, return_inverse=True)
        if len(keys) > BUCKETS:
            return Clusters(_GROUPS, _bucket(spread), True, keys[:SMALLEST], spread)
        return Clusters(keys, codes, False, keys[:SMALLEST], spread[:0])

    def of_rows(self, known: npt.NDArray[np.bool_]) -> Clusters:
        """Those of some rows alone."""
        if self.grouped:
            return Clusters._of_spread(self.spread[known])
        held = np.bincount(self.codes[known], minlength=len(self.keys)) > 0
        keys, place = self.keys[held], np.cumsum(held) - 1
        return Clusters(keys, place[self.codes[known]], False, keys[:SMALLEST], self.spread)


@dataclass(frozen=True)
class Tally:
    """`n` and `total` are the sums of weights and of weight * value of each key; cell j holds the weight `count[j]` of
    key `row[j]` in bin `bin[j]`. Cells are sorted by (row, bin). `rows` are the observations, `missing` the values that
    were not known."""

    bins: Bins
    grouped: bool
    keys: Hashes
    n: Floats
    total: Floats
    row: Integers
    bin: Integers
    count: Floats
    rows: int
    missing: int
    smallest: Hashes

    @property
    def clusters(self) -> int:
        """How many clusters there are: exact while they are kept apart or fewer than 1024, else within some 3 %."""
        if not self.grouped:
            return len(self.keys)
        if len(self.smallest) < SMALLEST:
            return len(self.smallest)
        return round((len(self.smallest) - 1) / ((float(self.smallest[-1]) + 1) / 2.0**64))

    def __add__(self, other: Tally) -> Tally:
        if self.bins != other.bins:
            raise UsageError(
                f"tallies with bins of different errors: {self.bins.error} and {other.bins.error}; "
                "make both with the same bins"
            )
        both = [self, other]
        smallest = np.unique(np.concatenate([self.smallest, other.smallest]))[:SMALLEST]
        if self.grouped or other.grouped:
            both = [one.as_groups() for one in both]
        keys = np.unique(np.concatenate([one.keys for one in both]))
        places = [np.searchsorted(keys, one.keys) for one in both]
        n, total = np.zeros(len(keys)), np.zeros(len(keys))
        for one, place in zip(both, places, strict=True):
            n[place] += one.n
            total[place] += one.total
        rows = np.concatenate([place[one.row] for one, place in zip(both, places, strict=True)])
        row, bin_, count = _cells(
            rows, np.concatenate([one.bin for one in both]), np.concatenate([one.count for one in both]), len(keys)
        )
        merged = Tally(
            self.bins,
            both[0].grouped,
            keys,
            n,
            total,
            row,
            bin_,
            count,
            self.rows + other.rows,
            self.missing + other.missing,
            smallest,
        )
        return merged.as_groups() if len(keys) > BUCKETS else merged

    def as_groups(self) -> Tally:
        """The same with its clusters put into groups."""
        if self.grouped:
            return self
        place = _bucket(self.keys)
        row, bin_, count = _cells(place[self.row], self.bin, self.count, BUCKETS)
        return replace(
            self,
            grouped=True,
            keys=_GROUPS,
            n=sums(place, self.n, BUCKETS),
            total=sums(place, self.total, BUCKETS),
            row=row,
            bin=bin_,
            count=count,
        )

    def scaled(self, factor: float) -> Tally:
        """Each observation with `factor` times its weight: strata are reweighted by adding scaled tallies."""
        return replace(self, n=self.n * factor, total=self.total * factor, count=self.count * factor)

    @cached_property
    def distribution(self) -> tuple[Integers, Floats]:
        """The occupied bins, ascending, and the weight in each."""
        if not len(self.bin):
            return np.zeros(0, np.int32), np.zeros(0)
        least = int(self.bin.min())
        weights = sums(self.bin - least, self.count, 0)
        occupied = np.flatnonzero(weights)
        return (occupied + least).astype(np.int32), weights[occupied]

    @cached_property
    def cumulative(self) -> tuple[Integers, npt.NDArray[np.float32]]:
        """The occupied bins, ascending, and the weight of each key (a row) up to the upper edge of each (a column)."""
        occupied, _ = self.distribution
        if not len(occupied):
            return occupied, np.zeros((len(self.keys), 0), np.float32)
        least = int(occupied[0])
        column = np.zeros(int(occupied[-1]) - least + 1, np.int32)
        column[occupied - least] = np.arange(len(occupied))
        table = np.zeros((len(self.keys), len(occupied)), np.float32)
        table[self.row, column[self.bin - least]] = self.count
        return occupied, np.cumsum(table, axis=1)

    @cached_property
    def effective(self) -> float:
        """How many clusters of equal size would know as much; at most `BUCKETS`."""
        squares = float(self.n @ self.n)
        return float(self.n.sum()) ** 2 / squares if squares else 0.0

    def below(self, threshold: float) -> Floats:
        """The weight of each key's values below `threshold`, interpolated within the bin that holds it."""
        low, high = self.bins.edges(self.bin)
        width = np.where(high > low, high - low, 1.0)
        share = np.where(high > low, np.clip((threshold - low) / width, 0, 1), (low < threshold) * 1.0)
        return sums(self.row, self.count * share, len(self.keys))


def tally(
    values: Floats, clusters: Clusters | Hashes, *, weights: Floats | None = None, bins: Bins | None = None
) -> Tally:
    """The tally of values, one per connection; NaN where a connection has none.

    `clusters` are hashes of the connections' clusters (`cluster_hashes`), or `Clusters.of` them where several metrics
    of one chunk are tallied. Raises `UsageError` where the lengths differ.
    """
    bins = bins or Bins()
    values = np.asarray(values, dtype=np.float64)
    found = clusters if isinstance(clusters, Clusters) else Clusters.of(clusters)
    if len(values) != len(found.codes):
        raise UsageError(
            f"a tally of {len(values)} values with {len(found.codes)} clusters; give each value its cluster"
        )
    known = ~np.isnan(values)
    if not known.all():
        values, found = values[known], found.of_rows(known)
        weights = None if weights is None else weights[known]
    codes = found.codes
    size = len(found.keys)
    n = sums(codes, weights, size)
    total = sums(codes, values if weights is None else values * weights, size)
    row, bin_, count = _cells(codes, bins.index(values), weights, size)
    return Tally(
        bins,
        found.grouped,
        found.keys,
        n,
        total,
        row,
        bin_,
        count,
        len(values),
        len(known) - len(values),
        found.smallest,
    )


def tally_of_groups(
    clusters: Hashes, bin_: Integers, count: Floats, total: Floats, *, bins: Bins | None = None
) -> Tally:
    """The tally of what a query has grouped by cluster and bin: one row per group, with how many connections it has and
    the sum of their values. The bins are those of `Bins.index`, however the query computes them."""
    found = Clusters.of(clusters)
    if not len(found.codes) == len(bin_) == len(count) == len(total):
        raise UsageError(
            f"groups with {len(found.codes)} clusters, {len(bin_)} bins, {len(count)} counts and {len(total)} sums; "
            "give one of each per group"
        )
    size = len(found.keys)
    n, whole = sums(found.codes, count, size), sums(found.codes, total, size)
    row, place, weight = _cells(found.codes, np.asarray(bin_, np.int32), np.asarray(count, np.float64), size)
    rows = round(float(np.sum(count)))
    return Tally(bins or Bins(), found.grouped, found.keys, n, whole, row, place, weight, rows, 0, found.smallest)


def _smallest(spread: Hashes, distinct: int) -> Hashes:
    """The smallest of evenly spread hashes, each once; there are at least `distinct` different ones."""
    limit = np.uint64(min(2.0 * SMALLEST / distinct, 0.5) * 2.0**64)
    found = np.unique(spread[spread < limit])
    return found[:SMALLEST] if len(found) >= SMALLEST else np.unique(spread)[:SMALLEST]


def _bucket(keys: Hashes) -> npt.NDArray[np.intp]:
    """The group of each key."""
    places: npt.NDArray[np.intp] = (keys & np.uint64(BUCKETS - 1)).astype(np.intp)
    return places


def sums(places: npt.NDArray[Any], weights: Floats | None, size: int) -> Floats:
    """The sum of weights at each place; without weights how often it occurs."""
    return np.bincount(places, weights, size).astype(np.float64, copy=False)


def _cells(
    rows: npt.NDArray[np.intp], bins: Integers, weights: Floats | None, keys: int
) -> tuple[Integers, Integers, Floats]:
    """Rows and bins of the occupied cells, sorted, and the weight in each."""
    if not len(bins):
        return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0)
    least = int(bins.min())
    span = int(bins.max()) - least + 1
    flat = rows * span + (bins - least)
    # A table of all cells is fastest while it is not much larger than what is put into it.
    if keys * span <= 4 * len(flat) + 65536:
        counts = np.bincount(flat, weights, keys * span)
        cells = np.flatnonzero(counts)
        found = counts[cells].astype(np.float64)
    else:
        cells, place = np.unique(flat, return_inverse=True)
        found = sums(place, weights, len(cells))
    return (cells // span).astype(np.int32), (cells % span + least).astype(np.int32), found
