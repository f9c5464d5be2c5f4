"""How a comparison in real time is laid out, so that a path that changes meanwhile favours nobody: blocks in which each
member is measured once, their order, and the test that says whether the path changed.

A drift that is the same for all members within a block is no matter of their comparison, which is made within blocks
(`verdicts`). What drifts within a block goes by a member's place in it, so places are exchanged: two blocks in a row
are each other's mirror image, as in ABBA. Over such a pair each member has the same mean time, and a linear drift
cancels in their sums to the last bit, whoever came first in the first of them, which is drawn from the seed. Verdicts
are of ratios, in which its square is left: of a rate that grows by 2 % from run to run, 0.04 % between two members.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import comb, exp

import numpy as np
import numpy.typing as npt

from .stats import Floats

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
    """What the test says of one quantity over blocks: the later blocks have more or less than the earlier, `after` of
    which come before the change, and `change` times their median (None: that is 0). `shown`: a steady path looks so in
    less than 5 % of cases, with all that was looked at."""

    what: str
    blocks: int
    after: int
    more: bool
    change: float | None
    chance: float
    shown: bool

    def json(self) -> dict[str, float | int | str | bool | None]:
        """The object of `--json`."""
        return {
            "what": self.what,
            "blocks": self.blocks,
            "after": self.after,
            "more": self.more,
            "change_pct": None if self.change is None else 100 * (self.change - 1),
            "chance": self.chance,
            "shown": self.shown,
        }


def least_to_tell(of: int) -> int:
    """Blocks from which on a drift of one of so many quantities can be told: where all earlier blocks have less than
    all later ones, one order of (n over n/2)/2 looks as one-sided, and that has to be rare enough."""
    blocks = 2
    while of * 2 / comb(blocks, blocks // 2) > _WRONG:
        blocks += 2
    return blocks


def drifts(series: Mapping[str, Floats]) -> list[Drift]:
    """Of each quantity, a value per block in the order of time (NaN: not known there), whether it changed: Pettitt's
    test (Applied Statistics 28(2), 1979), which finds steps and slopes alike, with its chance from shuffled blocks.
    Quantities share the 5 % that may be wrong (Bonferroni): all that have some number of blocks, the least that is
    enough for so many. The others are left out."""
    known = {what: values[~np.isnan(values)] for what, values in series.items()}
    for least in sorted({len(values) for values in known.values()}):
        told = {what: values for what, values in known.items() if len(values) >= least}
        if least >= least_to_tell(len(told)):
            return [_drift(what, values, len(told)) for what, values in told.items()]
    return []


def _drift(what: str, values: Floats, of: int) -> Drift:
    from scipy.stats import rankdata

    n, ranks = len(values), rankdata(values)
    sums = _one_sided(ranks[None, :])[0]
    after = int(np.argmax(np.abs(sums))) + 1
    most = abs(float(sums[after - 1]))
    before = float(np.median(values[:after]))
    change = float(np.median(values[after:])) / before if before > 0 else None
    chance = _by_shuffling(ranks, most) if n <= _MOST_SHUFFLED else min(1.0, 2 * exp(-6 * most**2 / (n**3 + n**2)))
    return Drift(what, n, after, bool(sums[after - 1] < 0), change, chance, chance * of <= _WRONG)


def _one_sided(ranks: Floats) -> Floats:
    """Of each row and each place that it may be cut at, how much the ranks before it are on one side."""
    n = ranks.shape[1]
    sums: npt.NDArray[np.float64] = 2 * np.cumsum(ranks, axis=1)[:, :-1] - np.arange(1, n) * (n + 1.0)
    return sums


def _by_shuffling(ranks: Floats, most: float) -> float:
    """The share of orders of the blocks that are at least as one-sided; the one that was measured is one of them."""
    drawn = np.random.default_rng(1979).permuted(np.tile(np.sort(ranks), (_SHUFFLES, 1)), axis=1)
    beyond = np.abs(_one_sided(drawn)).max(axis=1) >= most - 1e-9
    return float((1 + beyond.sum()) / (1 + _SHUFFLES))
