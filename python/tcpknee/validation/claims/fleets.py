"""The claims about fleets: many connections, of which some share a bottleneck."""

from __future__ import annotations

from types import MappingProxyType

from .claim import Claim, at, by_engine


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


def _cpu_of_bbr2(buffer: str, acks: str) -> str:
    """bbr2's processor time per byte over bbr1's. `acks`: how many SACKs the client may compress into one ACK."""
    return " / ".join(
        at(
            "total",
            "cpu_ns_per_byte",
            flow__0__algorithm=algorithm,
            path__buffer=buffer,
            receiver__tcp_comp_sack_nr=acks,
        )
        for algorithm in ("bbr2", "bbr1")
    )


_LIMITS = (
    "The article does not print its mix of paths. Ours is gallery/fleets/edge.toml, where the clients' own transfers "
    "are the only traffic at a bottleneck."
)
_TABLE = "docs/fleet-synthetic.md shows how each constant of the mix moves the result."


def _of_fleet(id: str, claim: str, shape: str, figure: str = "chart", because: str = "") -> Claim:
    """`because`: why it is not reproduced, or what its verdict depends on."""
    return Claim(
        id,
        "C",
        claim,
        shape,
        figure,
        engines=("sim",),
        has_scenario=False,
        check=id,
        unit="prefixes",
        limits=by_engine(sim=f"{_LIMITS} {because} {_TABLE}" if because else _LIMITS),
        needs=_MILLIONS,
    )


_MILLIONS = "It takes thousands of paths, which a lab would emulate one after the other in real time."

CLAIMS: tuple[Claim, ...] = (
    _of_fleet(
        "fleet-retrans",
        "retransmitted segments: cubic < bbr2 < bbr1",
        "bbr1 ÷ bbr2 of the share of all segments >= 2, bbr2 ÷ cubic >= 1",
        "v2 4 times below v1, 2 times above cubic",
        "The sizes of transfers decide this verdict, and we changed them after we had seen first results. With the "
        "earlier sizes, a median of 1.5 MB, bbr1 retransmits 1.72 times the share of bbr2 [1.51, 2.08], and the claim "
        "is not reproduced: short transfers are mostly STARTUP, which overshoots by as much in both versions. cubic "
        "loses little, because HyStart ends its slow start early.",
    ),
    _of_fleet(
        "fleet-throughput-low",
        "for slow clients bbr2 is like cubic",
        "bbr2 ÷ cubic of the delivery rate at P25 within 10 % of 1",
        because="Random loss, up to 1 % behind Wi-Fi in this mix, slows cubic but not bbr2. Without it both are "
        "equally fast.",
    ),
    _of_fleet(
        "fleet-throughput-high",
        "for fast clients bbr2 is like bbr1; median bandwidth cubic < bbr2 < bbr1",
        "delivery rate: cubic < bbr2 < bbr1 at P50; at P75 cubic < bbr2, and bbr1 within 10 % of bbr2",
        because="A flow that is alone at a bottleneck fills it with each of the three algorithms. The article's order "
        "appears at the median when CUBIC flows of other sites share the bottleneck.",
    ),
    _of_fleet(
        "fleet-inflight",
        "packets in flight: bbr2 far below bbr1, near cubic",
        "bbr1 ÷ bbr2 of the median over all samples >= 1.5, bbr2 ÷ cubic <= 1.05",
        "3 times lower",
        "A bbr1 flow that is alone drains its queue after each probe, and has about one BDP in flight. It reaches its "
        "limit of two BDP only beside other flows: the ratio grows with the number of CUBIC flows of other sites. "
        "CUBIC has less than bbr2 because random loss, up to 1 % behind Wi-Fi, keeps its window small.",
    ),
    _of_fleet(
        "inflight-vs-rtt",
        "what v1 has in flight grows with the RTT beyond need; v2's queue share does not",
        "slope of what is in flight on the smoothed RTT: bbr1 > bbr2",
        "charts",
        "What is in flight grows with the RTT for both, as the BDP does: access rates are the same at each distance. "
        "Beyond the BDP bbr1 has more than bbr2 at each RTT, but both have the less of it the longer the RTT is. Flows "
        "of different RTTs do not share a bottleneck here; in "
        "bbr-rtt-fairness two do, and there the far bbr1 flow has 12.5 times the goodput of the near one, and of bbr2 "
        "1.4 times.",
    ),
    _of_fleet(
        "fleet-rtt",
        "RTT: cubic ≤ bbr2 < bbr1",
        "median smoothed RTT: bbr2 < bbr1, and cubic at most 1.05 times bbr2",
        because="That bbr2 has a lower RTT than bbr1 is shown. CUBIC's is 1.04 to 1.08 times bbr2's with either seed, "
        "which lies at the limit. The article found CUBIC's lower still, and called that odd: CUBIC fills the buffer "
        "that it has to itself until it loses a packet, and bbr2 does not.",
    ),
    _of_fleet("rwnd-limited", "bbr2 spends less time limited by the receive window than bbr1", "bbr2 < bbr1", "charts"),
    _of_fleet(
        "reordering",
        "fewer reordering events with bbr2",
        "some paths reorder; bbr2 < bbr1, or no difference shown",
        "charts",
    ),
    _of_fleet(
        "minrtt-vs-bw",
        "min_rtt against bandwidth shows the path's distance and bands of access rates",
        "of at least 90 % of prefixes the band is found again from their delivery rates, and the distance from min_rtt",
    ),
    Claim(
        "ack-cpu",
        "C",
        "v2 did not change CPU use measurably",
        "CPU per byte of bbr2 within 5 % of that of bbr1, or no difference shown",
        "chart",
        tuple(
            (f"bbr2 ÷ bbr1, buffer {buffer}, {client} client", _cpu_of_bbr2(buffer, acks))
            for client, acks in (("Linux", "44"), ("other", "0"))
            for buffer in ("0.25bdp", "1bdp", "4bdp")
        ),
        quick=MappingProxyType({"repeat": "12", "duration": '"8s"'}),
        engines=("sim",),
        limits=by_engine(
            sim="The article shows the processor use of whole hosts over days; transfers are only a part of it. With a "
            "buffer of 0.25 BDP bbr1 loses 2.5 % of its packets. If the clients also acknowledge each arrival, bbr2 "
            "costs 5 % less, because it handles fewer SACKs. On Linux 6.18, with both as struct_ops, TCP's own pacing "
            "and a buffer of 1 BDP, bbr2 ÷ bbr1 was 1.07 [0.98, 1.17] in ten repetitions on a busy machine: no "
            "difference shown."
        ),
        needs="The scenario needs fq, which this kernel lacks.",
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
