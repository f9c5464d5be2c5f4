"""Checks of claims that a scenario cannot say: each runs something real, and can fail.

A check is a function in a file of its own. It gets a `Request` and returns a `Found`; it raises `KernelUnsupported`
where this machine cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from .check import Found, Request

_MODULES = {
    "advice-lan-wan": "advice_lan_wan",
    "channels-unsupported": "channels_unsupported",
    "cwnd-trace": "cwnd_trace",
    "fleet-inflight": "fleet:inflight",
    "fleet-retrans": "fleet:retrans",
    "fleet-rtt": "fleet:rtt",
    "fleet-throughput-high": "fleet:throughput_high",
    "fleet-throughput-low": "fleet:throughput_low",
    "fq-qdisc-latency": "fq_qdisc_latency",
    "gro-window": "gro_window",
    "inflight-vs-rtt": "fleet:inflight_vs_rtt",
    "minrtt-vs-bw": "fleet:minrtt_vs_bw",
    "per-namespace-choice": "per_namespace_choice",
    "probe-rtt-dip": "probe_rtt_dip",
    "rate-sample-is-unused": "rate_sample_is_unused",
    "reordering": "fleet:reordering",
    "rps-mask": "rps_mask",
    "rwnd-limited": "fleet:rwnd_limited",
    "ss-old-and-new": "ss_old_and_new",
}
"""The file of each, and the function in it, if it is not `check`."""

NAMES = tuple(_MODULES)
"""Every check."""

Check = Callable[[Request], Found]


def find(name: str) -> Check:
    """The function that checks the claim of that name."""
    file, _, function = _MODULES[name].partition(":")
    return cast(Check, getattr(import_module(f".{file}", __package__), function or "check"))


def file_of(name: str) -> Path:
    """Where it stands."""
    return Path(__file__).parent / f"{_MODULES[name].partition(':')[0]}.py"
