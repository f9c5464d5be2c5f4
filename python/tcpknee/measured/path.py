"""The path that somebody else's transfers saw: fitted by simulation where a connection was recorded over time, else
what their figures bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpknee.human import digits
from tcpknee.runs.beside import bounds
from tcpknee.whatif import render
from tcpknee.whatif.fit import HELD_BACK, fit
from tcpknee.whatif.identifiability import judged

if TYPE_CHECKING:
    from tcpknee.whatif.observation import Observed


def fitted(observed: Observed) -> dict[str, Any]:
    """What a simulation of its connections looks most alike on (`knee whatif`), and how sure that is."""
    one = judged(fit(observed))
    found, series = one.fit.path, observed.connections
    retransmit_pct = 100 * sum(each.retransmitted for each in series) / max(sum(each.segments for each in series), 1.0)
    if one.fit.explanation == HELD_BACK or not render.well_fitted([one]):
        least_us = min(each.least_rtt_us for each in series)
        why = HELD_BACK if one.fit.explanation == HELD_BACK else "no simulated path looks like it"
        carried = max(each.acked * 8e6 / max(each.elapsed_us, 1.0) for each in series)
        return {**bounded(least_us, carried, retransmit_pct, why), "misfit": one.fit.misfit}
    rtt, rate, loss = float(found.rtt_us), one.rate, float(found.loss_pct)
    sure = "other rates look less alike" if rate.identified else "open: other rates look as alike"
    words = (
        f"base RTT {bounds('time', rtt, rtt)}, rate {bounds('rate', rate.low, rate.high)} ({sure}), random loss "
        f"{digits(loss, 2)} %. Fitted by simulation, {digits(one.fit.misfit, 2)} steps off (about 1 is as near as "
        f"chance allows); what it is explained by: {' or '.join(one.names)}."
    )
    return {
        "fitted": True,
        "misfit": one.fit.misfit,
        "rtt_us": {"low": rtt, "high": rtt},
        "rate_bits_per_sec": {"low": float(rate.low), "high": None if rate.high is None else float(rate.high)},
        "loss_pct": {"low": loss, "high": loss},
        "words": words,
    }


def bounded(
    rtt_us: float | None, rate_bits_per_sec: float | None, retransmit_pct: float | None, why: str
) -> dict[str, Any]:
    """What is known without a simulation: a path's RTT is no more than the least that was measured, its rate no less
    than what it carried, its loss hardly more than what was sent again. `why` it was not fitted."""
    parts = []
    if rtt_us is not None:
        parts.append(f"base RTT {bounds('time', None, rtt_us)}")
    if rate_bits_per_sec is not None:
        parts.append(f"rate {bounds('rate', rate_bits_per_sec, None)}")
    if retransmit_pct is not None:
        parts.append(f"loss at most {digits(retransmit_pct, 2)} %, its share of retransmissions")
    return {
        "fitted": False,
        "rtt_us": {"low": None, "high": rtt_us},
        "rate_bits_per_sec": {"low": rate_bits_per_sec, "high": None},
        "loss_pct": {"low": None, "high": retransmit_pct},
        "words": f"{', '.join(parts) or 'nothing'}. These are bounds: {why}.",
    }
