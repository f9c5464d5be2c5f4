"""Paths that others have calibrated, in the place of a recording: Pantheon's six, and profiles of iBox.

Nothing was recorded on them here, so their predictions compare two simulations and have no error of a fit.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path as File
from typing import Any

from tcpknee import reading
from tcpknee.errors import UsageError

from .fit import CALIBRATED, Fit, Tried
from .identifiability import Judged, judged
from .model import Flow, Load, Path, simulate
from .observation import Observed
from .series import Starved
from .trial import Trial

NAMES = ("pantheon",)
"""Those that come with tcpknee."""
_PACKET_BYTES = 1500
_SECONDS = 30.0
"""As long as an experiment of Pantheon."""
_INTERVAL_US = 100_000.0


def named(name: str) -> list[tuple[str, Path]]:
    """The paths of a population that comes with tcpknee, each with its name."""
    text = files("tcpknee.whatif").joinpath(f"{name}.csv").read_text()
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return [
        (
            row["path"],
            Path(
                float(row["rate_bits_per_sec"]),
                float(row["rtt_us"]),
                float(row["queue_pkts"]) * _PACKET_BYTES,
                float(row["loss_pct"]),
            ),
        )
        for row in rows
    ]


def is_ibox(folder: File) -> bool:
    """Does a folder hold profiles of iBox?"""
    return folder.is_dir() and any(_profiles(folder))


def ibox(folder: File) -> list[tuple[str, Path]]:
    """The profiles below a folder. Their cross traffic, a rate that does not react, is a load that does here, of the
    same mean. Raises UsageError (a profile that is damaged)."""
    return [(str(file.relative_to(folder)), _of_profile(file)) for file in _profiles(folder)]


def as_recorded(name: str, path: Path, algorithm: str) -> Judged:
    """The path with what a recorder would see there of a connection that always has data."""
    load = Load((Flow(algorithm, 0.0, ""),), _SECONDS * 1e6, _INTERVAL_US, 0.0)
    (series,) = simulate(path, load)
    if isinstance(series, Starved):
        raise UsageError(f"{name}: got a path on which {algorithm} delivers nothing; expected one that carries data.")
    observed = Observed(name, (series,), _INTERVAL_US)
    best = Tried(path, CALIBRATED, 0.0)
    return judged(Fit(observed, load, Trial(observed, load), best, (best,)))


def _profiles(folder: File) -> Sequence[File]:
    return sorted(file for file in folder.rglob("network-profile-*.json") if file.is_file())


def _of_profile(file: File) -> Path:
    try:
        link: dict[str, Any] = reading.json_of(file)["config"]["uplink"]
        cross = [_at_least_0(rate) for rate in link["cross_traffic_pattern"]]
        rate_kbit_per_sec = _at_least_0(link["bottleneck_bandwidth"])
        if not rate_kbit_per_sec:
            raise ValueError("a bottleneck_bandwidth of 0")
        # The way back has the profile's other delay, which iBox leaves at 0 where it is not known.
        return Path(
            rate_bits_per_sec=rate_kbit_per_sec * 1e3,
            rtt_us=_at_least_0(link["propagation_delay"]) * 1e3,
            buffer_bytes=_at_least_0(link["buffer_size_bytes"]),
            hidden_load_bits_per_sec=sum(cross) / len(cross) * 1e3 if cross else 0.0,
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise UsageError(
            f"{file}: got {type(error).__name__}: {error}; expected a profile of iBox, with config.uplink and in it "
            "bottleneck_bandwidth above 0, propagation_delay, buffer_size_bytes and a list cross_traffic_pattern, "
            "none of them negative. Correct it, or move it away."
        ) from None


def _at_least_0(value: object) -> float:
    """A number of JSON. Raises TypeError (it is none), ValueError (it is negative, or not finite), OverflowError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r:.40} in the place of a number")
    if not 0 <= float(value) < math.inf:
        raise ValueError(f"{value!r:.40} in the place of a number that is at least 0")
    return float(value)
