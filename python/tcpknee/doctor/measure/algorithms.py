"""What an algorithm costs where it is used."""

from __future__ import annotations

from collections.abc import Sequence

from tcpknee import _core, algorithms
from tcpknee.doctor.finding import Finding

from .experiment import Arm, Experiment
from .pacing import REQUESTS_UNPACED
from .plan import Plan, always, number
from .quantities import COMPLETION, TIME_PER_BYTE

RATE = "50Mbit/s"
"""Rate of the lossy path: so high that losses bound a loss-based algorithm."""

_OLD_CUBIC = "e73ebb0881ea"


def _lossy(finding: Finding) -> Sequence[Experiment]:
    name = algorithms.ours(finding.subject)
    rtt_us = number(finding, "srtt_us_p50")
    if rtt_us is None or name not in {one["name"] for one in _core.algorithms()}:
        return []
    loss = float(finding.evidence["retransmit_pct"])
    return [
        Experiment(
            f"one transfer over {RATE}, {rtt_us / 1000:.0f} ms and {loss:.2g} % loss",
            TIME_PER_BYTE,
            {"workload": "bulk"},
            Arm(finding.subject, name),
            Arm("BBR", "bbr1"),
            path={"rate": RATE, "rtt": f"{rtt_us}us", "loss": f"{loss:.4f}%", "buffer": "1bdp"},
            duration_ms=5000,
            warmup_ms=2000,
            where=("kernel", "simulator"),
        )
    ]


def _stolen(finding: Finding) -> Sequence[Experiment]:
    steal = {"steal": f"{float(finding.evidence['steal_pct']):.2f}%"}
    return [
        Experiment(
            f"one transfer over 1 Gbit/s and 20 ms, with {steal['steal']} of the processor stolen",
            TIME_PER_BYTE,
            {"workload": "bulk"},
            Arm("BBR", "bbr1"),
            Arm("CUBIC", "cubic"),
            path={"rate": "1Gbit/s", "rtt": "20ms", "buffer": "1bdp"},
            host=steal,
            duration_ms=3000,
            warmup_ms=1000,
            # A lab cannot take processors away.
            where=("model",),
        )
    ]


def _defect(finding: Finding) -> Sequence[Experiment]:
    """CUBIC before Linux 4.0, the one old version that we have, beside its successor. A kernel has only one of them."""
    if finding.evidence["commit"] != _OLD_CUBIC:
        return []
    return [
        Experiment(
            "16 MiB over 100 Mbit/s and 10 ms, with GRO",
            COMPLETION,
            {"workload": "transfer", "bytes": "16MiB", "write": "128B"},
            Arm("CUBIC before Linux 4.0", "cubic_preack"),
            Arm("CUBIC since", "cubic"),
            # As gallery/gro-four-ways.toml: half a BDP, and GRO that merges what came within 5 ms.
            path={"rate": "100Mbit/s", "rtt": "10ms", "buffer": "64KiB"},
            host={"rx_coalesce": "5ms"},
            duration_ms=8000,
            warmup_ms=0,
            where=("simulator",),
        )
    ]


PLANS = {
    "loss-based-on-lossy-path": Plan(
        "one transfer at the round-trip time and loss that were found: time per byte under both algorithms", _lossy
    ),
    "bbr-inside-data-centre": always("small requests: CPU under BBR and under CUBIC", REQUESTS_UNPACED),
    "bbr-where-cpu-is-stolen": Plan(
        "one transfer with the share of stolen time that was found: time per byte under BBR and CUBIC", _stolen
    ),
    "algorithm-defect": Plan("of CUBIC before 4.0: 16 MiB by the old version and by the new one", _defect),
}
