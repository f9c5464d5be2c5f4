"""How a comparison in real time is laid out, so that a path that changes meanwhile favours nobody: blocks in which each
member is measured once, their order, and the test that says whether the path changed.

A drift that is the same for all members within a block is no matter of their comparison, which is made within blocks
(`verdicts`). What drifts within a block goes by a member's place in it, so places are exchanged: two blocks in a row
are each other's mirror image, as in ABBA. Over such a pair each member has the same mean time, and a linear drift
cancels to the last bit, whoever came first in the first of them, which is drawn from the seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import exp

import numpy as np
import numpy.typing as npt

from .stats import Floats

LEAST_TO_TELL = 8
"""Blocks from which on a drift can be told: of six that rose in the middle, one order of ten looks as one-sided."""
_WRONG = 0.05
"""Share of steady paths that are said to drift, at most, over all that is looked at of one path."""
_SHUFFLES = 9_999
_MOST_SHUFFLED = 400
"""Blocks up to which the test shuffles; beyond, its limit for many blocks is as good."""


def order(members: int, block: int, seed: int) -> list[int]:
    """In which order the members are measured in that block; the same on every machine."""
    drawn = sorted(range(members), key=lambda member: _draw(seed, block // 2, member))
    return drawn[::-1] if block % 2 else drawn


def _draw(seed: int, pair: int, member: int) -> bytes:
    """A number of its own, by which members of a pair of blocks are sorted."""
    return hashlib.blake2b(f"{seed}/{pair}/{member}".encode(), digest_size=16).digest()


@dataclass(frozen=True)
class Drift:
    """What the test says of one quantity over blocks: the later blocks have `change` times the median of the earlier,
    `after` of which come before the change. `shown`: a steady path looks so in less than 5 % of cases, with all that
    was looked at."""

    what: str
    blocks: int
    after: int
    change: float
    chance: float
    shown: bool

    def json(self) -> dict[str, float | int | str | bool]:
        """The object of `--json`."""
        return {
            "what": self.what,
            "blocks": self.blocks,
            "after": self.after,
            "change_pct": 100 * (self.change - 1),
            "chance": self.chance,
            "shown": self.shown,
        }


def drifts(series: Mapping[str, Floats]) -> list[Drift]:
    """Of each quantity, a positive value per block in the order of time (NaN: not known there), whether it changed:
    Pettitt's test (Applied Statistics 28(2), 1979), which finds steps and slopes alike, with its chance from
    shuffled blocks. Quantities share the 5 % that may be wrong (Bonferroni). Those of less than `LEAST_TO_TELL` blocks
    are left out."""
    known = {what: values[~np.isnan(values)] for what, values in series.items()}
    told = {what: values for what, values in known.items() if len(values) >= LEAST_TO_TELL and np.all(values > 0)}
    return [_drift(what, values, len(told)) for what, values in told.items()]


def _drift(what: str, values: Floats, of: int) -> Drift:
    from scipy.stats import rankdata

    n, ranks = len(values), rankdata(values)
    steps = np.abs(_one_sided(ranks[None, :])[0])
    after, most = int(np.argmax(steps)) + 1, float(steps.max())
    change = float(np.median(values[after:]) / np.median(values[:after]))
    chance = _by_shuffling(ranks, most) if n <= _MOST_SHUFFLED else min(1.0, 2 * exp(-6 * most**2 / (n**3 + n**2)))
    return Drift(what, n, after, change, chance, chance * of <= _WRONG)


def _one_sided(ranks: Floats) -> Floats:
    """Of each row and each place that it may be cut at, how much the ranks before it are on one side."""
    n = ranks.shape[1]
    sums: npt.NDArray[np.float64] = 2 * np.cumsum(ranks, axis=1)[:, :-1] - np.arange(1, n) * (n + 1.0)
    return sums


def _by_shuffling(ranks: Floats, most: float) -> float:
    """The share of orders of the blocks that are at least as one-sided; the one that was measured is one of them."""
    drawn = np.random.default_rng(1979).permuted(np.tile(ranks, (_SHUFFLES, 1)), axis=1)
    beyond = np.abs(_one_sided(drawn)).max(axis=1) >= most - 1e-9
    return float((1 + beyond.sum()) / (1 + _SHUFFLES))
