"""`gro-window`: the window of a short transfer with GRO at the receiver against the one without, from the samples."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from . import steps
from .check import Found, Request, fact, smaller, text_of

_BELOW_SHARE = 0.9
"""Of the time that both transfers last, the window with GRO is at most the other one: "lies below"."""

_MSS_BYTES = 1448
_POINTS = 2000


def check(request: Request) -> Found:
    """At each RTT: the peak before completion, and how long the one lies below the other."""
    pairs: dict[tuple[str, int], dict[str, steps.Steps]] = defaultdict(dict)
    for found in steps.of(request.of_scenario, "snd_cwnd"):
        pairs[found.axes["path.rtt"], found.rep][found.axes["receiver.gro"]] = found
    outcomes, ours = [], []
    for rtt in dict.fromkeys(rtt for rtt, _ in pairs):
        both = [pair for (where, _), pair in pairs.items() if where == rtt and len(pair) == 2]
        peaks = {gro: np.array([_peak(pair[gro]) for pair in both]) for gro in ("true", "false")}
        below = [_share_below(pair["true"], pair["false"]) for pair in both]
        outcomes.append(smaller(f"peak cwnd with GRO < without, {rtt}", peaks["true"], peaks["false"]))
        shares = (
            f"at or below it in {100 * min(below):.0f} % of the time or more" if below else "no repetition has both"
        )
        outcomes.append(fact(f"cwnd(t) with GRO lies below, {rtt}", bool(below) and min(below) >= _BELOW_SHARE, shares))
        ours += [
            (f"peak, GRO {word}, {rtt}", text_of(peaks[gro] * _MSS_BYTES / 1e3, "kB"))
            for word, gro in (("on", "true"), ("off", "false"))
        ]
    return Found(outcomes, ours)


def _peak(found: steps.Steps) -> float:
    end = found.end_ns if found.end_ns is not None else found.t_ns[-1]
    return float(found.values[found.t_ns <= end].max())


def _share_below(on: steps.Steps, off: steps.Steps) -> float:
    """Of the time until the first of both is complete; where both are the same all the time none lies below."""
    ends = [end for end in (on.end_ns, off.end_ns) if end is not None] or [on.t_ns[-1]]
    times = np.linspace(0, min(ends), _POINTS)
    windows = on.at(times), off.at(times)
    if not (windows[0] < windows[1]).any():
        return 0.0
    return float((windows[0] <= windows[1]).mean())
