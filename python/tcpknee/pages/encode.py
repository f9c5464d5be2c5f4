"""How data stands in the page: columns, 16 bits a number, base64.

A block is a piece of one series: constants and columns of equal length. A number is
stored as low + k * step with k of 16 bits, so it is exact to 1/65,535 of its block's
range: a tenth of a pixel on the tallest screen. `page.js` is the decoder.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS = 65_535


@dataclass(frozen=True)
class Block:
    """Rows that share `constants`; `columns` hold finite numbers of equal count."""

    constants: Mapping[str, Any]
    columns: Mapping[str, NDArray[Any]]

    def rows(self) -> list[dict[str, Any]]:
        """The rows as plain objects: what the page's decoder makes of the block."""
        lists = {name: quantised(column).tolist() for name, column in self.columns.items()}
        count = len(next(iter(lists.values()))) if lists else 0
        return [{**self.constants, **{name: values[k] for name, values in lists.items()}} for k in range(count)]

    def packed(self) -> dict[str, Any]:
        """The block as JSON: {"c": constants, "v": {column: [low, step, base64]}}."""
        return {"c": dict(self.constants), "v": {name: _pack(column) for name, column in self.columns.items()}}


def _levels(column: NDArray[Any]) -> tuple[float, float, NDArray[np.uint16]]:
    values = np.asarray(column, dtype=np.float64)
    if len(values) == 0:
        return 0.0, 0.0, np.zeros(0, dtype=np.uint16)
    low, high = float(values.min()), float(values.max())
    step = float(f"{(high - low) / LEVELS:.6g}")
    if step == 0:
        return low, 0.0, np.zeros(len(values), dtype=np.uint16)
    return low, step, np.clip(np.rint((values - low) / step), 0, LEVELS).astype(np.uint16)


def _pack(column: NDArray[Any]) -> list[Any]:
    low, step, levels = _levels(column)
    return [float(f"{low:.9g}"), step, base64.b64encode(levels.astype("<u2").tobytes()).decode("ascii")]


def quantised(column: NDArray[Any]) -> NDArray[np.float64]:
    """The column as the reader will see it."""
    low, step, levels = _levels(column)
    return np.round(float(f"{low:.9g}") + levels * step, 9)


def packed(sets: Mapping[str, Sequence[Block]]) -> dict[str, list[dict[str, Any]]]:
    """Data sets by name, as the page has them."""
    return {name: [block.packed() for block in blocks] for name, blocks in sets.items()}


def rounded(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Small tables stand as plain JSON, to six significant digits; NaN becomes null."""
    return [{key: _round(value) for key, value in row.items()} for row in rows]


def _round(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value
