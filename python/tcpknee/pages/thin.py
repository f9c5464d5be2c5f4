"""Fewer points, the same picture: thinning of long series.

A series is a step function: a row says what holds from its time until the next
row's. Thinning keeps, of every pixel column, the least and the greatest value in
the order of their times, so that no spike is lost however narrow. Where a column
is followed by an empty one its last value is kept too, because it is the value
that holds over the gap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def columns_of(t_ns: Ints, begin_ns: int, end_ns: int, columns: int) -> Ints:
    """The pixel column of each time, 0 … columns - 1."""
    width = max(end_ns - begin_ns, 1)
    column = (t_ns - begin_ns).astype(np.float64) * columns / width
    return np.clip(column.astype(np.int64), 0, columns - 1)


def steps(t_ns: Ints, value: Floats) -> tuple[Ints, Floats]:
    """The rows at which the value changes. Lossless for a step function.

    Rows without a value (NaN) are left out first; of rows at one time the last counts
    for what holds, and the others are kept, since they happened.
    """
    known = np.isfinite(value)
    t_ns, value = t_ns[known], value[known]
    if len(value) == 0:
        return t_ns, value
    changed = np.ones(len(value), dtype=bool)
    changed[1:] = value[1:] != value[:-1]
    return t_ns[changed], value[changed]


def thin(t_ns: Ints, value: Floats, begin_ns: int, end_ns: int, columns: int) -> tuple[Ints, Floats]:
    """At most three points per pixel column: least and greatest in time order, and
    the last where nothing follows in the next column.

    `t_ns` must not decrease and `value` must be finite (see `steps`). A series that
    is already short enough is returned as it is.
    """
    if len(value) <= 2 * columns:
        return t_ns, value
    column = columns_of(t_ns, begin_ns, end_ns, columns)
    first = np.flatnonzero(np.r_[True, column[1:] != column[:-1]])
    last = np.r_[first[1:], len(value)] - 1
    keep = np.zeros(len(value), dtype=bool)
    for extreme in (np.minimum, np.maximum):
        best = extreme.reduceat(value, first)
        hits = np.flatnonzero(value == np.repeat(best, last - first + 1))
        _, where = np.unique(column[hits], return_index=True)
        keep[hits[where]] = True
    gap_follows = np.r_[column[first[1:]] > column[last[:-1]] + 1, True]
    keep[last[gap_follows]] = True
    return t_ns[keep], value[keep]


class Bands(NamedTuple):
    """What each of many functions does in each column that it lives in, by function and column."""

    function: Ints
    column: Ints
    least: Floats
    mean: Floats
    """Over the time that it lives there."""
    greatest: Floats


def bands(function: Ints, t_ns: Ints, value: Floats, edges_ns: Ints, ends_ns: Ints) -> Bands:
    """Least, mean over time and greatest of many step functions, within each column.

    Rows are in the order of their functions and then of their times. `edges_ns` holds columns + 1 times; a function
    lives from its first row to `ends_ns`, given for each row, and its value is carried over columns without a row. A
    row at a column's very edge is of the column that begins there.
    """
    last = len(edges_ns) - 2
    until = np.append(t_ns[1:], 0)
    is_last = np.append(function[1:] != function[:-1], True) if len(t_ns) else np.zeros(0, dtype=bool)
    until = np.where(is_last, np.maximum(ends_ns, t_ns), until)
    begin = np.clip(np.searchsorted(edges_ns, t_ns, "right") - 1, 0, last)
    # What lasts to an edge has no part of the column behind it.
    stop = np.clip(np.searchsorted(edges_ns, np.maximum(until - 1, t_ns), "right") - 1, begin, last)
    count = stop - begin + 1
    row = np.repeat(np.arange(len(t_ns)), count)
    column = begin[row] + np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    held = np.minimum(until[row], edges_ns[column + 1]) - np.maximum(t_ns[row], edges_ns[column])
    held = np.maximum(held, 0).astype(np.float64)
    of, here = function[row], value[row]
    if len(row) == 0:
        return Bands(of, column, here, here, here)
    first = np.flatnonzero(np.r_[True, (of[1:] != of[:-1]) | (column[1:] != column[:-1])])
    area, time = np.add.reduceat(here * held, first), np.add.reduceat(held, first)
    # A function that lives for no time in a column still has a value there, its last.
    lasting = here[np.r_[first[1:], len(row)] - 1]
    mean = np.divide(area, time, out=lasting, where=time > 0)
    return Bands(of[first], column[first], np.minimum.reduceat(here, first), mean, np.maximum.reduceat(here, first))


def quantiles_by_column(column: Ints, value: Floats, shares: tuple[float, ...]) -> list[Floats]:
    """Of the values of each column that has any, in its order: an array per share, 0 to 1, interpolated linearly."""
    order = np.lexsort((value, column))
    column, value = column[order], value[order]
    first = np.flatnonzero(np.r_[True, column[1:] != column[:-1]])
    more = np.diff(np.r_[first, len(column)]) - 1
    found = []
    for share in shares:
        at = first + share * more
        below = at.astype(np.int64)
        above = np.minimum(below + 1, first + more)
        found.append(value[below] + (value[above] - value[below]) * (at - below))
    return found
