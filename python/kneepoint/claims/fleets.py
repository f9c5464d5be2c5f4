"""The claims about fleets: many connections, of which some share a bottleneck."""

from __future__ import annotations

from types import MappingProxyType

from .claim import Claim, at


def _mixed(who: str, treated: int) -> str:
    """Goodput of a group when so many of the ten flows have BBR and the others CUBIC."""
    return at(
        who,
        "goodput",
        flow__0__algorithm="bbr1",
        flow__0__count=str(treated),
        flow__1__algorithm="cubic",
        flow__1__count=str(10 - treated),
    )


def _uniform(algorithm: str, first: int) -> str:
    """Goodput of the link when all ten flows have one algorithm; `first` of them are in the first group."""
    return at(
        "total",
        "goodput",
        flow__0__algorithm=algorithm,
        flow__0__count=str(first),
        flow__1__algorithm=algorithm,
        flow__1__count=str(10 - first),
    )


_LIMITS = (
    "The article's mix of paths is not known. The fleet is that of gallery/fleets/edge.toml, whose constants were "
    "written down before it was simulated."
)


def _of_fleet(id: str, claim: str, shape: str, figure: str = "chart") -> Claim:
    return Claim(
        id, "C", claim, shape, figure, engines=("sim",), has_scenario=False, check=id, limits=_LIMITS, needs=_MILLIONS
    )


_MILLIONS = "It takes thousands of paths, which a lab would emulate one after the other in real time."

CLAIMS: tuple[Claim, ...] = (
    _of_fleet(
        "fleet-retrans",
        "retransmitted segments: cubic < bbr2 < bbr1",
        "bbr1 ÷ bbr2 of the mean share >= 2, bbr2 ÷ cubic >= 1",
        "v2 4 times below v1, 2 times above cubic",
    ),
    _of_fleet("fleet-throughput-low", "for slow clients bbr2 is like cubic", "P25 of the delivery rate alike"),
    _of_fleet(
        "fleet-throughput-high",
        "for fast clients bbr2 is like bbr1; median bandwidth cubic < bbr2 < bbr1",
        "delivery rate at P50 and P75: cubic < bbr2 < bbr1",
    ),
    _of_fleet(
        "fleet-inflight",
        "packets in flight: bbr2 far below bbr1, near cubic",
        "bbr1 ÷ bbr2 of the median >= 1.5",
        "3 times lower",
    ),
    _of_fleet(
        "inflight-vs-rtt",
        "what v1 has in flight grows with the RTT beyond need; v2's queue share does not",
        "slope of what is in flight beyond the BDP on the least RTT: bbr1 > bbr2",
        "charts",
    ),
    _of_fleet("fleet-rtt", "RTT: cubic ≤ bbr2 < bbr1", "median smoothed RTT: bbr2 < bbr1"),
    _of_fleet("rwnd-limited", "bbr2 spends less time limited by the receive window than bbr1", "bbr2 < bbr1", "charts"),
    _of_fleet("reordering", "fewer reordering events with bbr2", "bbr2 < bbr1, or no difference shown", "charts"),
    _of_fleet(
        "minrtt-vs-bw",
        "min_rtt against bandwidth shows the path's distance and bands of access rates",
        "the band of at least 90 % of prefixes is found again from their delivery rates",
    ),
    Claim(
        "ack-cpu",
        "C",
        "v2 did not change CPU use measurably",
        "CPU per byte of bbr2 within 5 % of that of bbr1, or no difference shown",
        "chart",
        (
            (
                "bbr2 ÷ bbr1",
                " / ".join(
                    at("total", "cpu_ns_per_byte", flow__0__algorithm=algorithm) for algorithm in ("bbr2", "bbr1")
                ),
            ),
        ),
        quick=MappingProxyType({"repeat": "3", "duration": '"2s"'}),
        engines=("sim",),
        limits="The article shows processors of whole hosts over days, of which transfers are a part.",
        needs="This kernel has no bbr2 of its own and no fq.",
    ),
    Claim(
        "ab-bias",
        "F",
        "an A/B test by connection on a shared bottleneck misjudges, even in sign",
        "treatment ÷ control per flow > 1.3 at 10 % allocation and < 0.8 at 90 % (or the other way), while all-on ÷ "
        "all-off is within 5 %",
        "+150 % and -75 %, identical when used by all",
        (
            *(
                (
                    f"{10 * treated} % treated",
                    f"{_mixed('treatment', treated)} / {_mixed('control', treated)} * {factor}",
                )
                for treated, factor in ((1, "9"), (5, "1"), (9, "0.1111"))
            ),
            ("all ÷ none", f"{_uniform('bbr1', 9)} / {_uniform('cubic', 1)}"),
        ),
        quick=MappingProxyType({"repeat": "3", "duration": '"60s"', "warmup": '"20s"'}),
    ),
)
