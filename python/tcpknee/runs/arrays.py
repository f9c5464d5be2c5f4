"""Columns of Arrow tables as numpy has them.

pyarrow's own `to_numpy` imports pandas where that is installed, which takes longer than a short run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def numbers(column: pa.ChunkedArray | pa.Array) -> npt.NDArray[Any]:
    """Those of a column, in memory that Arrow lends; with nulls, or of truths, as floats in which null is NaN."""
    array = column
    if isinstance(column, pa.ChunkedArray):
        array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if array.null_count or not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        return np.array(array.to_pylist(), dtype=np.float64)
    return np.from_dlpack(array)
