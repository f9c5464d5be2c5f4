"""Columns of Arrow tables as numpy has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tcpknee.runs.arrays import numbers


@pytest.mark.parametrize("type_", [pa.int32(), pa.int64(), pa.uint64(), pa.float64()])
def test_numbers_of_several_chunks_and_of_a_part_keep_their_type_and_order(type_: pa.DataType) -> None:
    column = pa.chunked_array([[1, 2, 3], [], [4]], type_)
    assert numbers(column).tolist() == [1, 2, 3, 4]
    assert numbers(column).dtype == column.type.to_pandas_dtype()
    assert numbers(column.slice(1, 2)).tolist() == [2, 3]
    assert numbers(column.slice(0, 0)).tolist() == []


def test_null_is_nan_and_a_truth_is_0_or_1() -> None:
    found = numbers(pa.chunked_array([[7, None]], pa.int64()))
    assert found.dtype == np.float64
    assert found[0] == 7 and np.isnan(found[1])
    assert numbers(pa.chunked_array([[True, False]])).tolist() == [1.0, 0.0]
    assert np.isnan(numbers(pa.chunked_array([[None]], pa.float64()))).all()


def test_one_chunk_is_lent_and_not_copied() -> None:
    column = pa.chunked_array([list(range(100))], pa.int64())
    assert numbers(column).ctypes.data == column.chunk(0).buffers()[1].address
