"""A prediction in words and as JSON."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tcpknee import human
from tcpknee.say import aligned

from .identifiability import Bounds, Judged
from .model import is_held_back
from .observation import MOST_HOURS, MOST_SEGMENTS, Recording
from .predict import ABSOLUTE, Change, Outcomes, Prediction
from .series import METRICS

SCHEMA = 1
GOOD_MISFIT = 2.0
"""Steps up to which the simulator can do what was recorded."""
FEW = 30
"""Paths below which an interval is not to be trusted."""
LEAST_WELL_FITTED_PCT = 50.0
"""Share of the paths that are fitted well, below which nothing is predicted."""
TOLERATED_PCT = 20.0
"""Share of the connections for which something that decides may be open, before that is warned of."""
WIDTH = 100
_LARGE = 9.0
"""An increase from which on it is told as a multiple."""
_WIDE = 4.0
"""By how much the ends of an interval may differ, as a ratio, before it tells nothing."""
_WIDE_POINTS = 5.0
"""The same of a percentage, in points."""
SHORT = ("goodput_bits_per_sec", "srtt_us_p50", "retransmit_pct")
"""Metrics of the short answer."""
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
    """That are fitted well: predictions are of these."""
    connections: int
    explanations: dict[str, int]
    misfit_p50: float
    well_fitted_pct: float
    errors_pct: dict[str, float]
    """Median over the paths of each metric's error; of retransmissions in points."""
    noises_us: tuple[float, ...]
    """How late hosts send, in the mean: what was simulated, as likely as each other."""
    unfitted: int = 0
    """Paths that no explanation fits well."""


def of_fit(found: Outcomes, unfitted: int = 0) -> FitTold:
    paths = found.paths
    errors = np.abs(found.recorded - found.now.mean(axis=1))
    medians = np.median(errors, axis=0)
    misfits = [path.fit.misfit for path in paths]
    return FitTold(
        len(paths),
        sum(len(path.fit.observed.connections) for path in paths),
        dict(Counter(path.fit.explanation for path in paths).most_common()),
        float(np.median(misfits)),
        100 * len(paths) / (len(paths) + unfitted),
        {
            name: float(medians[place]) if name == ABSOLUTE else 100 * float(np.expm1(medians[place]))
            for place, name in enumerate(METRICS)
        },
        found.noises_us,
        unfitted,
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


def well_fitted(paths: Sequence[Judged]) -> list[Judged]:
    """Paths of which the simulator does what was recorded, as well as it can."""
    return [path for path in paths if path.fit.misfit <= GOOD_MISFIT]


def refusal(fitted: int, paths: int) -> str | None:
    """Why nothing is predicted, as few of the paths are fitted well."""
    if 100 * fitted >= LEAST_WELL_FITTED_PCT * paths and fitted:
        return None
    return (
        f"nothing can be predicted from this recording: of {human.counted(paths, 'path')} a simulation does on "
        f"{fitted or 'none'} what was recorded; expected at least {LEAST_WELL_FITTED_PCT:.0f} %. Record connections "
        "that send for 10 s and more, as fast as their path lets them, with `knee record --every 100ms`, over other "
        "paths or at another time: no explanation has a host's own shaping, or a rate that changes."
    )


def summary(
    recording: Recording, fit: FitTold, open_ones: Sequence[Open], predicted: Sequence[Prediction]
) -> list[str]:
    """The answer in short: what was used, what fits, what would change, what speaks against it, what to do next."""
    most = max((one.adoption_pct for one in predicted), default=100.0)
    rows = [[f"at {most:g} % adoption", *(WORDS[metric] for metric in SHORT)]]
    rows += [
        [one.algorithm, *(_shown(metric, one.everyone[metric]) for metric in SHORT)]
        for one in predicted
        if one.adoption_pct == most
    ]
    return [
        *_wrapped([*_used(recording), _fits(fit)]),
        "",
        *aligned(rows, left=(True, False, False, False)),
        "",
        *_wrapped(warning(fit, open_ones)),
        *_wrapped([_next(predicted)]),
    ]


def _used(recording: Recording) -> list[str]:
    return [
        f"{recording.connections} connections, {recording.short} of them too short to tell anything of their path.",
        *_impossible(recording),
        *_long(recording),
    ]


def _fits(fit: FitTold) -> str:
    explanations = ", ".join(f"{name} {count}" for name, count in fit.explanations.items())
    left = f"; {human.counted(fit.unfitted, 'other')} left out, which no explanation fits" if fit.unfitted else ""
    goodput = fit.errors_pct["goodput_bits_per_sec"]
    return (
        f"Fitted well: {human.counted(fit.connections, 'connection')} on {human.counted(fit.paths, 'path')} "
        f"({explanations}), off by {goodput:.1f} % of goodput in the median{left}."
    )


def warning(fit: FitTold, open_ones: Sequence[Open]) -> list[str]:
    """What speaks against the answer, if anything does."""
    said = (
        [f"only {human.counted(fit.paths, 'path')}: fewer than {FEW} make no interval to trust"]
        if fit.paths < FEW
        else []
    )
    worst = [one for one in open_ones if one.decides and one.connections_pct > TOLERATED_PCT]
    said += [f"{one.what} cannot be identified for {one.connections_pct:.0f} % of the connections" for one in worst[:2]]
    return [f"warning: {'; '.join(said)}."] if said else []


def _next(predicted: Sequence[Prediction]) -> str:
    algorithm = predicted[0].algorithm if predicted else "ALGORITHM"
    return f"Next: `knee assign {algorithm}=10% ...` tries it on some clients; --all prints the rest."


def _shown(metric: str, change: Change) -> str:
    """The change with its interval, or that it cannot be told."""
    value, interval, *_ = _change(metric, change)
    if not change.low <= 0 <= change.high:
        return f"{value} ({interval})"
    if metric == ABSOLUTE:
        is_wide = change.high - change.low > _WIDE_POINTS
    else:
        is_wide = (1 + change.high) > _WIDE * max(1 + change.low, 1e-9)
    return f"{'cannot be told' if is_wide else 'no change shown'} ({interval})"


def _wrapped(told: Sequence[str]) -> list[str]:
    return [line for one in told for line in textwrap.wrap(one, WIDTH, subsequent_indent="  ")]


def lines(recording: Recording, fit: FitTold, open_ones: Sequence[Open], predicted: Sequence[Prediction]) -> list[str]:
    """All of it, for `--all`."""
    errors = ", ".join(f"{WORDS[name]} {_error(name, error)}" for name, error in fit.errors_pct.items())
    told = [
        *_used(recording),
        _fits(fit),
        f"Simulated on these paths, what was recorded is off by (median): {errors}.",
        f"Simulated hosts send late by {min(fit.noises_us):.0f} to {max(fit.noises_us):.0f} us in the mean, which the "
        "RTTs leave open.",
        *(one.sentence[:1].upper() + one.sentence[1:] for one in open_ones),
        *warning(fit, open_ones),
    ]
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
