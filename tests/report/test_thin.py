"""Thinning keeps what the eye would have seen."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tcpknee.pages import thin
from tcpknee.pages.encode import Block, quantised

END_NS = 10_000_000

series = st.lists(st.tuples(st.integers(0, END_NS), st.integers(-(10**6), 10**9)), min_size=1, max_size=600).map(
    lambda rows: (np.array(sorted(t for t, _ in rows)), np.array([float(v) for _, v in rows]))
)


def held(t: np.ndarray, v: np.ndarray, at: int) -> float:
    """What a step function says at a time: the last row not after it."""
    return float(v[np.searchsorted(t, at, "right") - 1])


@settings(max_examples=300)
@given(series, st.integers(1, 80))
def test_every_pixel_column_keeps_its_least_and_greatest_value(rows, columns):
    t, v = rows
    thin_t, thin_v = thin.thin(t, v, 0, END_NS, columns)
    assert thin_v.min() == v.min() and thin_v.max() == v.max()
    before, after = (thin.columns_of(times, 0, END_NS, columns) for times in (t, thin_t))
    for column in np.unique(before):
        assert thin_v[after == column].min() == v[before == column].min()
        assert thin_v[after == column].max() == v[before == column].max()


@settings(max_examples=300)
@given(series, st.integers(1, 80))
def test_points_kept_are_points_of_the_series_in_their_order(rows, columns):
    t, v = rows
    thin_t, thin_v = thin.thin(t, v, 0, END_NS, columns)
    assert np.all(np.diff(thin_t) >= 0)
    pairs = list(zip(t.tolist(), v.tolist(), strict=True))
    at = 0
    for pair in zip(thin_t.tolist(), thin_v.tolist(), strict=True):
        at = pairs.index(pair, at) + 1


@settings(max_examples=300)
@given(series, st.integers(1, 80))
def test_at_most_three_points_a_column_remain(rows, columns):
    t, v = rows
    thin_t, _ = thin.thin(t, v, 0, END_NS, columns)
    if len(v) > 2 * columns:
        _, counts = np.unique(thin.columns_of(thin_t, 0, END_NS, columns), return_counts=True)
        assert counts.max() <= 3


@settings(max_examples=300)
@given(series, st.integers(1, 40))
def test_over_a_gap_the_value_that_holds_is_the_one_drawn(rows, columns):
    t, v = rows
    thin_t, thin_v = thin.thin(t, v, 0, END_NS, columns)
    occupied = set(thin.columns_of(t, 0, END_NS, columns).tolist())
    centres = [(k, int((k + 0.5) * END_NS / columns)) for k in range(columns)]
    for column, at in centres:
        # Empty columns after the first row show a held value: it must be the series' own.
        if column not in occupied and at >= t[0]:
            assert held(thin_t, thin_v, at) == held(t, v, at)


@settings(max_examples=200)
@given(series)
def test_dropping_repeated_values_changes_no_step(rows):
    t, v = rows
    v = np.round(v / 3e8)  # many repeats
    kept_t, kept_v = thin.steps(t, v)
    for at in t:
        assert held(kept_t, kept_v, int(at)) == held(t, v, int(at))


def band(t: np.ndarray, v: np.ndarray, edges: np.ndarray, end_ns: int) -> thin.Bands:
    """Of one function."""
    return thin.bands(np.zeros(len(t), dtype=np.int64), t, v, edges, np.full(len(t), end_ns))


@settings(max_examples=200)
@given(series, st.integers(1, 40))
def test_bands_reach_every_value_of_the_series(rows, columns):
    t, v = rows
    edges = np.linspace(0, END_NS, columns + 1).round().astype(np.int64)
    found = band(t, v, edges, END_NS)
    assert found.least.min() == v.min() and found.greatest.max() == v.max()
    assert found.column.tolist() == list(range(found.column[0], columns))
    slack = 1e-9 * max(1.0, np.abs(v).max())
    assert np.all(found.mean >= found.least - slack) and np.all(found.mean <= found.greatest + slack)
    # The mean over all columns is that of the series, over the time that it lives.
    lived = np.diff(np.clip(edges, t[0], END_NS))[found.column]
    area = (np.diff(np.r_[t, END_NS]) * v).sum()
    assert np.isclose((found.mean * lived).sum(), area, rtol=1e-9, atol=slack * END_NS)


@settings(max_examples=100)
@given(st.lists(series, min_size=1, max_size=5), st.integers(1, 20), st.data())
def test_bands_of_many_functions_are_those_of_each(functions, columns, data):
    edges = np.linspace(0, END_NS, columns + 1).round().astype(np.int64)
    ends = [data.draw(st.integers(0, END_NS)) for _ in functions]
    of = np.concatenate([np.full(len(t), number) for number, (t, _) in enumerate(functions)])
    t, v = (np.concatenate(parts) for parts in zip(*functions, strict=True))
    together = thin.bands(of, t, v, edges, np.array(ends)[of])
    for number, (t, v) in enumerate(functions):
        own = together.function == number
        alone = band(t, v, edges, ends[number])
        for name in ("column", "least", "mean", "greatest"):
            assert np.array_equal(getattr(together, name)[own], getattr(alone, name))


def test_a_spike_at_the_edge_of_a_column_that_the_next_row_ends_at_once_is_kept():
    t, v = np.array([0, 0, 50, 50]), np.array([9.0, 1.0, 7.0, 2.0])
    found = band(t, v, np.array([0, 50, 100]), 100)
    assert found.least.tolist() == [1.0, 2.0] and found.greatest.tolist() == [9.0, 7.0]


def test_column_means_are_weighted_by_time():
    t, v = np.array([0, 30]), np.array([10.0, 20.0])
    assert band(t, v, np.array([0, 40, 80]), 80).mean.tolist() == [12.5, 20.0]


def test_a_function_says_nothing_before_it_begins_nor_after_it_ends():
    found = band(np.array([50]), np.array([7.0]), np.array([0, 40, 80, 120, 160]), 100)
    assert found.column.tolist() == [1, 2] and found.mean.tolist() == [7.0, 7.0]


def test_a_function_that_ends_where_it_begins_has_a_value():
    found = band(np.array([80]), np.array([7.0]), np.array([0, 40, 80]), 80)
    assert (found.column.tolist(), found.mean.tolist()) == ([1], [7.0])


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-1e6, 1e6)), min_size=1, max_size=60), st.floats(0, 1))
def test_quantiles_by_column_are_those_of_each_columns_values(pairs, share):
    column, value = np.array([c for c, _ in pairs]), np.array([v for _, v in pairs])
    [found] = thin.quantiles_by_column(column, value, (share,))
    expected = [np.quantile(value[column == c], share) for c in np.unique(column)]
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-6)


def test_rows_without_a_value_are_no_rows():
    t, v = thin.steps(np.array([0, 1, 2]), np.array([np.nan, 4.0, np.nan]))
    assert t.tolist() == [1] and v.tolist() == [4.0]


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=200))
def test_encoded_numbers_are_within_half_a_step_of_their_range(values):
    column = np.array(values)
    span = column.max() - column.min()
    assert np.all(np.abs(quantised(column) - column) <= 0.51 * span / 65_535 + 1e-8 * np.abs(column).max() + 1e-9)


def test_the_extremes_of_an_encoded_column_keep_their_places():
    column = np.array([3.0, -1.0, 12.5, 4.0])
    rows = Block({"series": "a"}, {"v": column}).rows()
    assert [row["series"] for row in rows] == ["a"] * 4
    assert int(np.argmax([row["v"] for row in rows])) == 2 and int(np.argmin([row["v"] for row in rows])) == 1
