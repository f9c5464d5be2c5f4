"""Writes the bundled rate traces, gallery/traces/*.up: `python tools/make_traces.py`.

They are synthetic: what such links are like, and no record of one. Every draw comes from a fixed seed, so the files
come out the same on every machine. The format is mahimahi's: a line per packet of 1504 bytes that may leave, with the
millisecond at which it may.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "gallery" / "traces"
PACKET_BITS = 1504 * 8


def cellular(draws: random.Random) -> Iterator[float]:
    """Mbit/s of each millisecond: 20 s of a moving phone, some 4 Mbit/s, as a scheduler gives them every 10 ms.

    The rate wanders as fading does (a mean-reverting walk of its logarithm, correlated over some 300 ms), and twice
    the phone changes its cell, which takes 150 ms.
    """
    walk = 0.0
    handovers = [(6_200, 6_350), (14_700, 14_850)]
    for ms in range(20_000):
        if ms % 10 == 0:
            walk += -walk * 10 / 300 + draws.gauss(0, 0.7) * math.sqrt(2 * 10 / 300)
        away = any(start <= ms < end for start, end in handovers)
        yield 0.0 if away else 6.0 * math.exp(walk - 0.245)


def wifi(draws: random.Random) -> Iterator[float]:
    """Mbit/s of each millisecond: 8 s of a busy wireless LAN, some 13 Mbit/s in bursts of up to 4 ms.

    The station sends an aggregate, then waits until the others have sent theirs; its modulation changes every second
    or so.
    """
    rates, rate = [30.0, 60.0, 90.0], 60.0
    ms = 0
    while ms < 8_000:
        if draws.random() < 0.008:
            rate = draws.choice(rates)
        sends, rests = draws.randint(1, 4), 1 + min(int(draws.expovariate(1 / 6)), 60)
        for turn in range(sends + rests):
            if ms < 8_000:
                yield rate if turn < sends else 0.0
            ms += 1


def satellite(draws: random.Random) -> Iterator[float]:
    """Mbit/s of each millisecond: 30 s of a low orbit, some 4 Mbit/s.

    Another satellite takes over every 15 s, with a gap of 60 ms and a rate of its own; within its time the rate
    ripples by some per cent.
    """
    for ms in range(30_000):
        if ms % 15_000 == 0:
            level = draws.uniform(2.5, 5.5)
        if ms % 20 == 0:
            ripple = draws.gauss(1, 0.08)
        yield 0.0 if ms % 15_000 < 60 else level * max(ripple, 0.0)


def opportunities(rates: Iterator[float]) -> list[int]:
    """The milliseconds at which packets may leave; what is not a whole packet yet is carried on."""
    found, bits, ms = [], 0.0, 0
    for ms, rate in enumerate(rates):
        bits += rate * 1_000
        while bits >= PACKET_BITS:
            bits -= PACKET_BITS
            found.append(ms)
    return [*found, ms + 1]


def main() -> None:
    """Writes every trace and prints its mean rate."""
    kinds: list[Callable[[random.Random], Iterator[float]]] = [cellular, wifi, satellite]
    for kind in kinds:
        found = opportunities(kind(random.Random(kind.__name__)))
        path = FOLDER / f"{kind.__name__}.up"
        path.write_text("".join(f"{ms}\n" for ms in found), encoding="ascii")
        mean = len(found) * PACKET_BITS / found[-1] / 1_000
        print(f"{path.name}: {len(found)} packets in {found[-1]} ms, {mean:.2f} Mbit/s")


if __name__ == "__main__":
    main()
