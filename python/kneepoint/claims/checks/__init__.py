"""Checks of claims that a scenario cannot say: each runs something real, and can fail.

A check is a function in a file of its own. It gets an `Asked` and returns a `Found`; it raises `KernelUnsupported`
where this machine cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from .asked import Asked, Found

_MODULES = {
    "advice-lan-wan": "advice_lan_wan",
    "channels-unsupported": "channels_unsupported",
    "cwnd-trace": "cwnd_trace",
    "gro-window": "gro_window",
    "per-namespace-choice": "per_namespace_choice",
    "probe-rtt-dip": "probe_rtt_dip",
    "rate-sample-is-unused": "rate_sample_is_unused",
    "rps-mask": "rps_mask",
    "ss-old-and-new": "ss_old_and_new",
}

NAMES = tuple(_MODULES)
"""Every check."""

Check = Callable[[Asked], Found]


def find(name: str) -> Check:
    """The function `check` of the file with that name."""
    return cast(Check, import_module(f".{_MODULES[name]}", __package__).check)


def file_of(name: str) -> Path:
    """Where it stands."""
    return Path(__file__).parent / f"{_MODULES[name]}.py"
