"""Least squares whose errors are clustered, for few clusters: the variance CR2 and the degrees of freedom of Bell and
McCaffrey (Survey Methodology 28(2), 2002; Imbens and Kolesar, Review of Economics and Statistics 98(4), 2016)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .bins import Floats
from .intervals import Interval, t_quantile


def contrast(columns: Floats, outcome: Floats, clusters: npt.NDArray[np.intp], of: Floats) -> Interval:
    """The combination `of` of the coefficients of least squares, with its 95 % interval and p-value against 0.

    `columns` has a row per unit and a column per coefficient; `clusters` numbers the cluster of each unit from 0. NaN
    where the columns cannot tell it.
    """
    from scipy.special import stdtr

    units = len(columns)
    count = len(np.unique(clusters))
    rank = np.linalg.matrix_rank(columns) if units else 0
    estimable = rank and np.allclose(of @ np.linalg.pinv(columns) @ columns, of, atol=1e-8)
    if not estimable:
        return Interval(math.nan, math.nan, math.nan, units, count, float(count), math.nan, math.nan, p_value=math.nan)
    inverse = np.linalg.pinv(columns.T @ columns)
    solution = inverse @ columns.T @ outcome
    value = float(of @ solution)
    residuals = outcome - columns @ solution
    scores, directions = np.zeros(count), np.zeros((units, count))
    for g, members in enumerate(_members(clusters)):
        part = columns[members]
        bent = _inverse_root(np.eye(len(members)) - part @ inverse @ part.T) @ part @ inverse @ of
        scores[g] = bent @ residuals[members]
        directions[members, g] += bent
        directions[:, g] -= columns @ (inverse @ (part.T @ bent))
    squares = directions.T @ directions
    error = math.sqrt(float(scores @ scores))
    both = float(np.sum(squares * squares))
    degrees = float(np.trace(squares)) ** 2 / both if both > 0 else 0.0
    if not error or degrees < 0.5:
        return Interval(value, math.nan, math.nan, units, count, float(count), math.nan, math.nan, p_value=math.nan)
    half = t_quantile(degrees) * error
    p_value = float(2 * stdtr(degrees, -abs(value) / error))
    return Interval(value, value - half, value + half, units, count, float(count), error, degrees, p_value=p_value)


def _members(clusters: npt.NDArray[np.intp]) -> list[npt.NDArray[np.intp]]:
    order = np.argsort(clusters, kind="stable")
    starts = np.flatnonzero(np.diff(clusters[order])) + 1
    return np.split(order, starts)


def _inverse_root(matrix: Floats) -> Floats:
    """The symmetric inverse square root; directions in which the matrix is 0 are left out."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > 1e-10
    scale = np.zeros(len(values))
    scale[kept] = values[kept] ** -0.5
    root: Floats = (vectors * scale) @ vectors.T
    return root
