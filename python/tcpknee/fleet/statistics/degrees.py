"""How well a variance over clusters is known: its degrees of freedom."""

from __future__ import annotations

import numpy as np

from .bins import Floats


def degrees_of(n: Floats, deviation: Floats, rows: int, spread: float | None) -> float:
    """Degrees of freedom of the variance of a weighted mean over clusters.

    `n` are the clusters' weights, `deviation` what each cluster's sum is off what the mean would make it, `spread` the
    variance of single rows (None: not known, rows of a cluster are taken to be all the same).

    The lesser of two answers. That of the sizes: what Bell and McCaffrey (2002) and Imbens and Kolesar (2016) compute
    from a model of equal variances within and between clusters, which is fitted here. And that of the deviations: a few
    that outweigh all others, as those of a far quantile do, make their sum of squares less certain than the sizes say.
    """
    size = float(n.sum())
    if size <= 0 or not deviation.any() or len(n) < 3:
        return max(len(n) - 1.0, 1.0)
    # Rows may have been reweighted: sizes are counted in rows of average weight.
    sizes, deviation = n * (rows / size), deviation * (rows / size)
    squares = float(deviation @ deviation)
    fourth = float(np.sum(deviation**4)) - squares**2 / len(n)
    told = 2 * squares**2 / fourth if fourth > 0 else len(n) - 1.0
    return max(min(told, _of_sizes(sizes, _correlation(sizes, deviation, spread)), len(n) - 1.0), 1.0)


def _correlation(sizes: Floats, deviation: Floats, spread: float | None) -> float:
    """The correlation within clusters, from 0 to 1."""
    rows = float(sizes.sum())
    pairs = float(sizes @ sizes) - rows
    if spread is None or spread <= 0 or pairs <= 0:
        return 1.0
    bent = float(np.sum(deviation**2 / np.maximum(1 - sizes / rows, 1e-9)))
    return min(max((bent / spread - rows) / pairs, 0.0), 1.0)


def _of_sizes(sizes: Floats, correlation: float) -> float:
    """(tr B)^2 / tr(B^2) of the covariance B of the clusters' bent deviations: diagonal and two columns."""
    share = sizes / sizes.sum()
    variance = correlation * sizes**2 + (1 - correlation) * sizes
    bend = 1 / np.sqrt(np.maximum(1 - share, 1e-9))
    diagonal = bend**2 * variance
    columns = np.stack([bend * share, bend * variance], axis=1)
    core = np.array([[variance.sum(), -1.0], [-1.0, 0.0]])
    inner = core @ (columns.T @ columns)
    trace = diagonal.sum() + np.trace(inner)
    crossed = core @ (columns.T @ (columns * diagonal[:, None]))
    both = np.sum(diagonal**2) + 2 * np.trace(crossed) + np.trace(inner @ inner)
    return float(trace**2 / both)
