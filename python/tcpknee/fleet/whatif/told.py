"""A prediction in words and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tcpknee import human
from tcpknee.say import aligned

from .model import is_held_back
from .predict import ABSOLUTE, Change, Outcomes, Prediction
from .recorded import MOST_HOURS, MOST_SEGMENTS, Recording
from .series import METRICS
from .unknown import Bounds, Judged

SCHEMA = 1
GOOD_MISFIT = 2.0
"""Steps up to which the simulator can do what was recorded."""
FEW = 30
"""Paths below which an interval is not to be trusted."""
LEAST_WELL_FITTED_PCT = 50.0
"""Share of the paths that are fitted well, below which a prediction is not to be trusted, and `--refuse` refuses."""
_LARGE = 9.0
"""An increase from which on it is told as a multiple."""
TOLERATED_PCT = 20.0
"""Share of the connections for which something that decides may be open, before `--refuse` refuses."""
WORDS = {
    "goodput_bits_per_sec": "goodput",
    "srtt_us_p50": "RTT p50",
    "srtt_us_p95": "RTT p95",
    "queue_delay_us_p95": "queueing p95",
    "retransmit_pct": "retransmit %",
}


@dataclass(frozen=True)
class Open:
    """What the recording cannot identify: for how many of the connections, and what it may be."""

    what: str
    connections_pct: float
    low: float | None
    high: float | None
    unit: str
    decides: bool
    """Does a prediction depend on it?"""

    @property
    def sentence(self) -> str:
        share = f"{self.what}: cannot be identified for {self.connections_pct:.0f} % of the connections"
        if self.low is None:
            return f"{share}."
        words = [human.quantity(self.unit, value) for value in (self.low, self.high) if value is not None]
        return f"{share}; for these it is at least {' to '.join(words)} (10th to 90th percentile of the bounds)."


@dataclass(frozen=True)
class FitTold:
    """How well simulations of the recorded algorithms agree with the recording."""

    paths: int
    connections: int
    explanations: dict[str, int]
    misfit_p50: float
    well_fitted_pct: float
    errors_pct: dict[str, float]
    """Median over the paths of each metric's error; of retransmissions in points."""
    noises_us: tuple[float, ...]
    """How late hosts send, in the mean: what was simulated, as likely as each other."""


def of_fit(found: Outcomes) -> FitTold:
    paths = found.paths
    errors = np.abs(found.recorded - found.now.mean(axis=1))
    medians = np.median(errors, axis=0)
    misfits = [path.fit.misfit for path in paths]
    return FitTold(
        len(paths),
        sum(len(path.fit.observed.connections) for path in paths),
        dict(Counter(path.fit.explanation for path in paths).most_common()),
        float(np.median(misfits)),
        well_fitted_pct(paths),
        {
            name: float(medians[place]) if name == ABSOLUTE else 100 * float(np.expm1(medians[place]))
            for place, name in enumerate(METRICS)
        },
        found.noises_us,
    )


def open_values(paths: Sequence[Judged]) -> list[Open]:
    """What the recording leaves open, the most frequent first."""
    found = [
        _open("bottleneck rate", paths, [path.rate for path in paths], "rate"),
        _open("buffer", paths, [path.buffer for path in paths], "time"),
        _share(
            "why packets were lost or delayed (more than one explanation)", paths, [len(p.names) > 1 for p in paths]
        ),
    ]
    no_policer = [path.fit.path.policer_rate_bits_per_sec is None for path in paths]
    found.append(_share("a policer above the rate that was sent", paths, no_policer, decides=False))
    held = [all(is_held_back(series) for series in path.fit.observed.connections) for path in paths]
    found.append(_share("the path of connections that their application or receiver held back", paths, held))
    return sorted((one for one in found if one.connections_pct > 0), key=lambda one: -one.connections_pct)


def well_fitted_pct(paths: Sequence[Judged]) -> float:
    """Share of the paths of which the simulator does what was recorded, as well as it can."""
    return 100 * float(np.mean([path.fit.misfit <= GOOD_MISFIT for path in paths]))


def refusal(found: Sequence[Open], paths: Sequence[Judged]) -> str | None:
    """Why `--refuse` ends instead of guessing."""
    fitted_pct = well_fitted_pct(paths)
    if fitted_pct < LEAST_WELL_FITTED_PCT:
        return (
            f"of {fitted_pct:.0f} % of the paths a simulation does what was recorded. Expected at least "
            f"{LEAST_WELL_FITTED_PCT:.0f} %: something is there that no explanation has (the host's own shaping, a "
            "rate that changes). Record elsewhere, or leave out --refuse and do not trust the intervals."
        )
    worst = [one for one in found if one.decides and one.connections_pct > TOLERATED_PCT]
    if not worst:
        return None
    listed = " ".join(one.sentence for one in worst)
    return (
        f"the recording says too little for a prediction. {listed} Expected at most {TOLERATED_PCT:.0f} % each. Record "
        "for longer, or connections that fill their path, or leave out --refuse: the intervals then hold what is open."
    )


def lines(recording: Recording, fit: FitTold, open_ones: Sequence[Open], predicted: Sequence[Prediction]) -> list[str]:
    """What `knee whatif` prints."""
    errors = ", ".join(f"{WORDS[name]} {_error(name, error)}" for name, error in fit.errors_pct.items())
    told = [
        f"{recording.connections} connections, {recording.short} of them too short to tell anything of their path.",
        *_impossible(recording),
        *_long(recording),
        f"{fit.connections} connections on {fit.paths} paths were fitted: "
        + ", ".join(f"{name} {count}" for name, count in fit.explanations.items())
        + ".",
        f"Simulated on these paths, what was recorded is off by (median): {errors}; {fit.well_fitted_pct:.0f} % of the "
        "paths are fitted well.",
        f"Simulated hosts send late by {min(fit.noises_us):.0f} to {max(fit.noises_us):.0f} us in the mean, which the "
        "RTTs leave open.",
        *(one.sentence[:1].upper() + one.sentence[1:] for one in open_ones),
    ]
    if fit.well_fitted_pct < LEAST_WELL_FITTED_PCT:
        told.append("Few paths are fitted well: what is predicted of the others is not to be trusted.")
    if fit.paths < FEW:
        told.append(f"Only {fit.paths} paths: with fewer than {FEW} the intervals are not to be trusted.")
    rows = [["algorithm", "adoption", "of", "metric", "change", "95 % interval", "on these paths", "naive replay"]]
    for one in predicted:
        groups = [("all", one.everyone)]
        if one.stayed:
            groups += [("moved", one.moved), ("others", one.stayed)]
        for name, group in groups:
            for metric, change in group.items():
                rows.append([one.algorithm, f"{one.adoption_pct:g} %", name, WORDS[metric], *_change(metric, change)])
    return [*told, "", *aligned(rows, left=(True, False, True, True, False, False, False, False))]


def _impossible(recording: Recording) -> list[str]:
    if not recording.impossible:
        return []
    return [
        f"{human.counted(recording.impossible, 'connection')} left out whose counters run backwards or are no such "
        "numbers: sockets with the same cookie, or another unit."
    ]


def _long(recording: Recording) -> list[str]:
    """What is left out of paths that carried much."""
    if not recording.late and not recording.cut:
        return []
    return [
        f"Of each path, what it carried until its connections had sent {MOST_SEGMENTS:,} segments together, or for "
        f"{MOST_HOURS} hours: of "
        f"{human.counted(recording.cut, 'connection')} only the begin is used, and {recording.late} came later."
    ]


def as_json(
    recording: Recording, fit: FitTold, open_ones: Sequence[Open], predicted: Sequence[Prediction]
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "connections": recording.connections,
        "too_short": recording.short,
        "impossible": recording.impossible,
        "cut": recording.cut,
        "too_late": recording.late,
        "fit": asdict(fit),
        "open": [asdict(one) for one in open_ones],
        "predictions": [asdict(one) for one in predicted],
    }


def _open(what: str, paths: Sequence[Judged], bounds: Sequence[Bounds], unit: str) -> Open:
    lows = [bound.low for bound in bounds if not bound.identified]
    low, high = (float(value) for value in np.percentile(lows, [10, 90])) if lows else (None, None)
    share = _share(what, paths, [not bound.identified for bound in bounds]).connections_pct
    return Open(what, share, low, high, unit, decides=True)


def _share(what: str, paths: Sequence[Judged], which: Sequence[bool], *, decides: bool = True) -> Open:
    sizes = [len(path.fit.observed.connections) for path in paths]
    share = 100 * sum(size for size, one in zip(sizes, which, strict=True) if one) / sum(sizes)
    return Open(what, share, None, None, "", decides)


def _error(name: str, error: float) -> str:
    return f"{error:.2f} points" if name == ABSOLUTE else f"{error:.1f} %"


def _change(metric: str, change: Change) -> list[str]:
    def words(value: float) -> str:
        if metric == ABSOLUTE:
            return f"{value:+.2f} points"
        return f"{100 * value:+.1f} %" if value < _LARGE else f"x {1 + value:,.0f}"

    ends = ((change.low, change.high), (change.low_here, change.high_here))
    return [words(change.value), *(f"{words(low)} to {words(high)}" for low, high in ends), words(change.naive)]
