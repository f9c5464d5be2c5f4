"""Fewer points, the same picture: thinning of long series.

A series is a step function: a row says what holds from its time until the next
row's. Thinning keeps, of every pixel column, the least and the greatest value in
the order of their times, so that no spike is lost however narrow. Where a column
is followed by an empty one its last value is kept too, because it is the value
that holds over the gap.
"""

from __future__ import annotations

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


def column_means(t_ns: Ints, value: Floats, edges_ns: Ints, end_ns: int) -> Floats:
    """The mean over time of a step function within each column; NaN outside its life.

    `edges_ns` holds columns + 1 times; the function begins at its first row and
    ends at `end_ns`.
    """
    if len(value) == 0:
        return np.full(len(edges_ns) - 1, np.nan)
    stop = max(end_ns, int(t_ns[-1]))
    nodes = np.r_[t_ns, stop].astype(np.float64)
    area = np.r_[0.0, np.cumsum(np.diff(nodes) * value)]
    at = np.clip(edges_ns.astype(np.float64), nodes[0], nodes[-1])
    integral = np.interp(at, nodes, area)
    alive = np.diff(at)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(alive > 0, np.diff(integral) / alive, np.nan)
    # A function that ends where it begins (one row at the very end) still has a value.
    if stop == t_ns[0]:
        column = int(np.clip(np.searchsorted(edges_ns, stop, "right") - 1, 0, len(mean) - 1))
        mean[column] = value[-1]
    return mean


def column_extremes(t_ns: Ints, value: Floats, edges_ns: Ints, end_ns: int) -> tuple[Floats, Floats]:
    """The least and greatest value that a step function takes within each column,
    the value carried in from before included; NaN outside its life."""
    columns = len(edges_ns) - 1
    low = np.full(columns, np.nan)
    high = np.full(columns, np.nan)
    if len(value) == 0:
        return low, high
    # Each column sees the rows inside it, of which several may stand at its very edge, and the one that holds as it
    # begins.
    begin = np.minimum(np.searchsorted(t_ns, edges_ns[:-1], "right") - 1, np.searchsorted(t_ns, edges_ns[:-1], "left"))
    stop = np.searchsorted(t_ns, edges_ns[1:], "left")
    stop[-1] = len(value)
    begin = np.maximum(begin, 0)
    alive = (stop > begin) & (edges_ns[:-1] <= max(end_ns, int(t_ns[-1])))
    # reduceat takes every second range, [begin, stop); the row added at the end is in none of them.
    ranges = np.column_stack((begin[alive], stop[alive])).ravel()
    padded = np.append(value, value[-1])
    if len(ranges):
        low[alive] = np.minimum.reduceat(padded, ranges)[::2]
        high[alive] = np.maximum.reduceat(padded, ranges)[::2]
    return low, high
