"""Numbers from names: hashes of clusters, and the bootstrap weights that come of them.

A weight is a function of (seed, cluster, resample) alone. So no generator is kept, two machines that meet the same
cluster give it the same weights, and so do two cohorts that share it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

SEED_MAX = (1 << 63) - 1
"""Of seeds that tables have, too: 64 bits with a sign."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def cluster_hashes(names: Sequence[str]) -> Hashes:
    """The 64-bit hash of each name: the first 16 hexadecimal digits of its MD5.

    MD5, because every engine of queries has it: `('0x' || left(md5(name), 16))::UBIGINT` in DuckDB,
    `conv(left(md5(name), 16), 16, 10)` in Spark. Nothing here has to withstand an attack.
    """
    digests = [hashlib.md5(name.encode(), usedforsecurity=False).digest()[:8] for name in names]
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)


def mixed(values: Hashes) -> Hashes:
    """A bijection of 64-bit numbers after which all bits depend on all bits (splitmix64, Steele et al., 2014)."""
    with np.errstate(over="ignore"):
        values = values + _STEP
        values = (values ^ (values >> np.uint64(30))) * _FIRST
        values = (values ^ (values >> np.uint64(27))) * _SECOND
        last: Hashes = values ^ (values >> np.uint64(31))
    return last


def poisson_weights(keys: Hashes, seed: int, resamples: int) -> npt.NDArray[np.uint8]:
    """Poisson(1) draws, one row per resample and one column per key.

    Four draws come of one hash, each by comparing 16 of its bits with the distribution: a probability is off by at
    most 2^-17.
    """
    blocks = mixed(np.arange(-(-resamples // 4), dtype=np.uint64) ^ mixed(np.array([seed], dtype=np.uint64)))
    draws = mixed(mixed(np.asarray(keys, dtype=np.uint64))[None, :] ^ blocks[:, None])
    lanes = draws.view(np.uint16).reshape(len(blocks), len(keys), 4)
    weights: npt.NDArray[np.uint8] = _POISSON[lanes].transpose(0, 2, 1).reshape(-1, len(keys))[:resamples]
    return weights


def _poisson_table() -> npt.NDArray[np.uint8]:
    """The draw that belongs to each value of 16 bits."""
    steps = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(12)])
    return np.searchsorted(steps, (np.arange(1 << 16) + 0.5) / (1 << 16), side="right").astype(np.uint8)


_POISSON = _poisson_table()
