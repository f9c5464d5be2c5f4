"""Designs of experiments: which share each arm has, and when.

Everything depends on the plan and the wall clock alone, so hosts with the same plan do the same at the same time.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from tcpknee.errors import UsageError

from .arms import Arm

PREFIX, CONNECTION, HOST = "prefix", "connection", "host"
UNITS = (PREFIX, CONNECTION, HOST)
"""What gets one algorithm for all its connections."""

BLOCK_MAX = 20
"""Periods of a balanced block at most: with more, an experiment ends before its shares come true."""


@dataclass(frozen=True)
class Phase:
    """What holds for a while."""

    shares_pct: tuple[tuple[float, ...], ...]
    """Of each link the share of each arm."""
    period: int | None = None
    """Its number, where the design has periods or steps."""
    ends_unix_ns: int | None = None
    """None: it holds to the end."""


@dataclass(frozen=True)
class Timing:
    """What the designs need to know besides the arms."""

    seed: int
    begin_unix_ns: int
    period_ns: int | None = None
    steps_pct: tuple[float, ...] = ()
    links_pct: tuple[float, ...] = ()
    """Share of the first arm on each link."""


class Design(ABC):
    """One way to assign."""

    name: str
    summary: str
    units: tuple[str, ...] = (PREFIX, HOST)
    """What it can assign; the first unless said otherwise."""
    needs: tuple[str, ...] = ()
    """Of the options period, steps, link: those it must have. It takes no other."""
    arms_max: int | None = None

    def check(self, arms: Sequence[Arm], timing: Timing) -> None:
        """Raises UsageError for what the design cannot do."""
        if self.arms_max is not None and len(arms) > self.arms_max:
            raise UsageError(f"design: got {len(arms)} arms for {self.name}; expected {self.arms_max}.")

    @abstractmethod
    def phase(self, arms: Sequence[Arm], timing: Timing, now_unix_ns: int) -> Phase:
        """What holds at that time."""


class _Constant(Design):
    """The shares of the arms hold throughout."""

    def phase(self, arms: Sequence[Arm], timing: Timing, now_unix_ns: int) -> Phase:
        return Phase((tuple(arm.share_pct for arm in arms),))


class Ab(_Constant):
    name = "ab"
    summary = "arms side by side; what shares a bottleneck may be in both"
    units = (PREFIX, CONNECTION, HOST)


class Cluster(_Constant):
    name = "cluster"
    summary = "arms side by side, drawn by what shares a bottleneck: client prefixes or hosts"


class Switchback(Design):
    name = "switchback"
    summary = "all new connections have one arm, which alternates from period to period"
    units = (HOST,)
    needs = ("period",)

    def check(self, arms: Sequence[Arm], timing: Timing) -> None:
        super().check(arms, timing)
        _block(arms)

    def phase(self, arms: Sequence[Arm], timing: Timing, now_unix_ns: int) -> Phase:
        assert timing.period_ns is not None
        period = now_unix_ns // timing.period_ns
        chosen = arm_of_period(arms, timing.seed, period)
        shares = tuple(100.0 if number == chosen else 0.0 for number in range(len(arms)))
        return Phase((shares,), period, (period + 1) * timing.period_ns)


class PairedLink(Design):
    name = "paired-link"
    summary = "two alike links, one mostly treated and one mostly not"
    needs = ("link",)
    arms_max = 2

    def check(self, arms: Sequence[Arm], timing: Timing) -> None:
        super().check(arms, timing)
        if len(timing.links_pct) != 2:
            raise UsageError(f"link: got {len(timing.links_pct)}; expected two, such as eth0=95% and eth1=5%.")

    def phase(self, arms: Sequence[Arm], timing: Timing, now_unix_ns: int) -> Phase:
        return Phase(tuple((share, 100 - share) for share in timing.links_pct))


class Ramp(Design):
    name = "ramp"
    summary = "the share of the first arm grows in steps, each a period long"
    needs = ("period", "steps")
    arms_max = 2

    def check(self, arms: Sequence[Arm], timing: Timing) -> None:
        super().check(arms, timing)
        if any(later <= before for before, later in zip(timing.steps_pct, timing.steps_pct[1:], strict=False)):
            told = ",".join(f"{step:g}%" for step in timing.steps_pct)
            raise UsageError(f'steps: got "{told}"; expected shares that grow: a unit that was treated stays so.')

    def phase(self, arms: Sequence[Arm], timing: Timing, now_unix_ns: int) -> Phase:
        assert timing.period_ns is not None
        last = len(timing.steps_pct) - 1
        step = min(max(0, now_unix_ns - timing.begin_unix_ns) // timing.period_ns, last)
        share = timing.steps_pct[step]
        ends = timing.begin_unix_ns + (step + 1) * timing.period_ns if step < last else None
        return Phase(((share, 100 - share),), step, ends)


DESIGNS: dict[str, Design] = {design.name: design for design in (Ab(), Cluster(), Switchback(), PairedLink(), Ramp())}


def arm_of_period(arms: Sequence[Arm], seed: int, period: int) -> int:
    """The arm of a period of a switchback, by its number.

    Each block of periods has every arm as often as its share asks, in an order drawn by the seed and the block.
    """
    block = _block(arms)
    number, place = divmod(period, len(block))

    def drawn(slot: int) -> bytes:
        return hashlib.blake2b(f"{seed}/{number}/{slot}".encode(), digest_size=16).digest()

    return block[sorted(range(len(block)), key=drawn)[place]]


def _block(arms: Sequence[Arm]) -> list[int]:
    """The arms of a block's periods, before they are put in order."""
    shares = [Fraction(arm.share_pct / 100).limit_denominator(1000) for arm in arms]
    length = lcm(*(share.denominator for share in shares))
    if length > BLOCK_MAX or sum(shares) != 1:
        told = ", ".join(f"{arm.name} {arm.share_pct:g}%" for arm in arms)
        raise UsageError(
            f"ARMS: got {told}, which come true in {length} periods at the earliest; expected shares that "
            f"{BLOCK_MAX} periods can have, such as 50% and 50%."
        )
    return [number for number, share in enumerate(shares) for _ in range(int(share * length))]
