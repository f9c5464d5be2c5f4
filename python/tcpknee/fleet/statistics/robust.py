"""Least squares whose errors are clustered, for few clusters: the variance CR2 and the degrees of freedom of Bell and
McCaffrey (Survey Methodology 28(2), 2002; Imbens and Kolesar, Review of Economics and Statistics 98(4), 2016)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tcpknee.evidence.stats import t_quantile

from .bins import Floats
from .intervals import Interval


def contrast(columns: Floats, outcome: Floats, clusters: npt.NDArray[np.intp], of: Floats) -> Interval:
    """The combination `of` of the coefficients of least squares, with its 95 % interval and p-value against 0.

    `columns` has a row per unit and a column per coefficient; `clusters` numbers the cluster of each unit from 0. NaN
    where the columns cannot tell it.
    """
    from scipy.special import stdtr

    units, count = len(columns), len(np.unique(clusters))
    nothing = Interval(math.nan, math.nan, math.nan, units, count, float(count), math.nan, math.nan, p_value=math.nan)
    if not units:
        return nothing
    inverse = np.linalg.pinv(columns.T @ columns)
    # What the columns cannot tell apart is no combination of their rows.
    if not np.allclose(of @ inverse @ columns.T @ columns, of, atol=1e-8):
        return nothing
    solution = inverse @ columns.T @ outcome
    value = float(of @ solution)
    # Rounding is no difference.
    nothing_apart = 1e-12 * float(np.abs(outcome).max())
    value = value if abs(value) > nothing_apart else 0.0
    bent = _bent(columns, clusters, inverse, of)
    scores = np.bincount(clusters, bent * (outcome - columns @ solution))
    error = math.sqrt(float(scores @ scores))
    degrees = _degrees(columns, clusters, inverse, bent)
    if error <= nothing_apart or degrees < 1 - 1e-6:
        return Interval(value, math.nan, math.nan, units, count, float(count), math.nan, math.nan, p_value=math.nan)
    half = t_quantile(max(degrees, 1.0)) * error
    p_value = float(2 * stdtr(degrees, -abs(value) / error))
    return Interval(value, value - half, value + half, units, count, float(count), error, degrees, p_value=p_value)


def _bent(columns: Floats, clusters: npt.NDArray[np.intp], inverse: Floats, of: Floats) -> Floats:
    """What each unit's residual adds to its cluster's score: its weight in the estimate, made larger by what the fit
    took from the residuals of its cluster."""
    weights: Floats = columns @ inverse @ of
    taken = np.einsum("ij,jk,ik->i", columns, inverse, columns)
    left = np.maximum(1 - taken, 0)
    bent = np.where(left > 1e-10, weights / np.sqrt(np.where(left > 1e-10, left, 1)), 0)
    for members in _several(clusters):
        part = columns[members]
        bent[members] = _inverse_root(np.eye(len(members)) - part @ inverse @ part.T) @ weights[members]
    return bent


def _several(clusters: npt.NDArray[np.intp]) -> list[npt.NDArray[np.intp]]:
    """The units of each cluster that has more than one."""
    joined = np.flatnonzero(np.bincount(clusters)[clusters] > 1)
    order = joined[np.argsort(clusters[joined], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(clusters[order])) + 1) if len(order) else []


def _degrees(columns: Floats, clusters: npt.NDArray[np.intp], inverse: Floats, bent: Floats) -> float:
    """(tr P)^2 / tr(P^2) of the covariance P of the scores if all units were alike: what each cluster has by itself,
    less what the fit ties together."""
    own = np.bincount(clusters, bent**2)
    tied = np.stack([np.bincount(clusters, bent * column) for column in columns.T], axis=1)
    product = inverse @ (tied.T @ tied)
    trace = float(own.sum() - np.trace(product))
    shared = np.einsum("ij,jk,ik->i", tied, inverse, tied)
    squares = float(own @ own - 2 * own @ shared + np.trace(product @ product))
    return trace**2 / squares if squares > 0 else 0.0


def _inverse_root(matrix: Floats) -> Floats:
    """The symmetric inverse square root; directions in which the matrix is 0 are left out."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > 1e-10
    scale = np.zeros(len(values))
    scale[kept] = values[kept] ** -0.5
    root: Floats = (vectors * scale) @ vectors.T
    return root
