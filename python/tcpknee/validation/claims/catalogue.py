"""The claims, one entry each: what an article says, the shape that must hold, what the article printed, and what can
run it.

The shapes were written down before anything was run. A claim that does not hold is reported as such: neither its shape
nor a constant of a model is changed for it.
"""

from __future__ import annotations

from types import MappingProxyType

from . import fleets, hosts
from .claim import Claim, at, by_engine

ARTICLES = {
    "A": "BBR and CUBIC in a data centre: a cloud's Linux team, Redis, kernel 4.19",
    "B": "few ACKs and the window of CUBIC: a cloud team, kernels 3.10 and 4.14",
    "C": "BBR 2 at the edge of a storage company, kernels 4.15 and 5.3",
    "D": "loss and distance: 10 Gbit/s VMs, kernel 5.8, netem",
    "E": "interrupts, queues and cores: kernel network tuning",
    "F": "found since, in the literature and in commits of Linux",
}


def _gro(flow: str, metric: str, **axes: str) -> tuple[tuple[str, str], ...]:
    """A metric at 4 ms with GRO, and without."""
    return tuple(
        (f"GRO {word}", at(flow, metric, path__rtt="4ms", receiver__gro=value, **axes))
        for word, value in (("on", "true"), ("off", "false"))
    )


_TRAIN = (
    "At 1 ms HyStart ends slow start of a transfer with GRO: ACKs come in two lumps a round, 500 us apart, and an ACK "
    "train that is longer than half of the least RTT is its sign of a full path. Without HyStart (cubic.hystart = 0), "
    "or with its delay sign alone (2), both take 10.5 ms. How growth is counted has no part in it."
)
_NOISE = (
    "A link in user space delays packets by tens of microseconds, which at these distances is a part of each round: "
    "five or ten repetitions on a virtual machine are few."
)
_SHORT = MappingProxyType({"repeat": "3"})
_BOTH_BBR1 = {"flow__0__algorithm": "bbr1", "flow__1__algorithm": "bbr1"}
_BOTH_BBR2 = {"flow__0__algorithm": "bbr2", "flow__1__algorithm": "bbr2"}


def _compensated(*values: str, **axes: str) -> str:
    """Goodput of bbr1 with compensation over without, or the other way."""
    return " / ".join(at("bbr1", "goodput", flow__0__bbr1__ack_aggregation=value, **axes) for value in values)


CLAIMS: tuple[Claim, ...] = (
    *hosts.CLAIMS,
    *fleets.CLAIMS,
    Claim(
        "fq-qdisc-latency",
        "C",
        "the time that a packet spends in the qdisc is observable, and departure-time stamps removed the RTT jitter "
        "that fq used to add",
        "P99 of the smoothed RTT: stamps at the handover > at the departure; on a kernel a histogram of waits, right "
        "where they are known beforehand",
        'a picture without figures; its "2716 ns latency" is how late fq\'s timer let packets go',
        tuple(
            (
                f"P99 of the RTT at {rate}, handover ÷ departure",
                " / ".join(
                    at("bbr1", "srtt_us_p99", path__rate=rate, sender__send_stamps=stamps)
                    for stamps in ("handover", "departure")
                ),
            )
            for rate in ("10Mbit/s", "100Mbit/s")
        ),
        scenario_engines=("sim",),
        check="fq-qdisc-latency",
        quick=MappingProxyType({"repeat": "3", "duration": '"6s"'}),
        limits=by_engine(
            sim="The time in fq of a steadily paced transfer is nearly constant: it moves the RTT by 7 ms at "
            "10 Mbit/s and 3 ms at 100 Mbit/s, and its variation by 1 to 3 % only. Kernels before 4.20 also paced "
            "by fq's own clock and quantum, which delayed small requests (ab408b6dc744; from memory: P99 of TCP_RR "
            "from 3,825 to 63 us). Here packets depart by today's rule in both cases; only the stamp differs.",
        ),
    ),
    Claim(
        "per-namespace-choice",
        "A",
        "the algorithm can be set per network namespace",
        "two namespaces on one host run different algorithms at once, each with its own qdisc",
        engines=("kernel",),
        has_scenario=False,
        check="per-namespace-choice",
    ),
    Claim(
        "advice-lan-wan",
        "A",
        "inside a data centre: cubic; serving the public: bbr with fq",
        "`knee recommend` says so from the path (RTT, loss), with the numbers that decided it",
        engines=("sim",),
        has_scenario=False,
        check="advice-lan-wan",
    ),
    Claim(
        "rps-mask",
        "E",
        "the mask of RPS names processors as bits, and 0 switches it off",
        "the doctor decodes masks to processors, and prints the command that sets one",
        "`echo 3`",
        engines=("sim",),
        has_scenario=False,
        check="rps-mask",
    ),
    Claim(
        "channels-unsupported",
        "E",
        "not every NIC can change its queues",
        "the doctor tells it as a fact, and as no error",
        engines=("sim",),
        has_scenario=False,
        check="channels-unsupported",
    ),
    Claim(
        "gro-on-old-cubic",
        "B",
        "pre-4.0 CUBIC (one growth unit per ACK) finishes later with receiver GRO on than off",
        "completion time on ÷ off ≥ 1.05",
        "GRO on with 3.10: 57 ms, with 4.14: 44 ms; on and off with 3.10 in one trace: 62 and 44 ms",
        _gro("cubic_preack", "completion_us"),
        quick=_SHORT,
    ),
    Claim(
        "gro-window",
        "B",
        "because the window grows more slowly",
        "peak and mean cwnd before completion: on ≤ 0.95 of off; cwnd(t) with GRO lies below",
        "about 40 kB and more than 80 kB",
        engines=("sim",),
        check="gro-window",
        quick=_SHORT,
    ),
    Claim(
        "gro-on-new-cubic",
        "B",
        "with credit per packet (`acked`) GRO on is not slower",
        "completion on ≤ 1.05 × off, with HyStart and without",
        "GRO on with 4.14: about 44 ms; writes of 128 B: about 11, without a unit (its program prints us per read)",
        _gro("cubic", "completion_us", flow__0__cubic__hystart="3"),
        quick=_SHORT,
        limits=by_engine(sim=_TRAIN, kernel=_NOISE),
    ),
    Claim(
        "acked-is-the-cause",
        "B",
        "removing only the `acked` credit from the new algorithm brings the problem back",
        "the two builds differ in that one rule, without HyStart in both: on ÷ off ≥ 1.05 returns",
        "",
        _gro("cubic", "completion_us", flow__0__cubic__per_ack="true", flow__0__cubic__slow_start_per_ack="true"),
        quick=_SHORT,
        limits=by_engine(sim=_TRAIN, kernel=_NOISE),
    ),
    Claim(
        "initcwnd-100",
        "B",
        "a larger initial window hides it, for both kernels",
        "completion with initcwnd 100 ≤ 0.95 of that with 10, GRO on and off",
        "the fix that was chosen",
        tuple(
            (
                f"initcwnd {size}",
                at("cubic", "completion_us", path__rtt="4ms", receiver__gro="true", sender__initcwnd=size),
            )
            for size in ("10", "100")
        ),
        quick=_SHORT,
        limits=by_engine(kernel=_NOISE),
    ),
    Claim(
        "bulk-hides-it",
        "B",
        "long iperf-style bulk does not show it",
        "GRO on and off differ by less than 2 % in 10 s of bulk goodput",
        "no difference",
        (
            (
                "on ÷ off, 1 ms",
                " / ".join(
                    at("cubic_preack", "goodput", path__rtt="1ms", receiver__gro=value) for value in ("true", "false")
                ),
            ),
        ),
        quick=MappingProxyType({"path.rtt": '["1ms"]'}),
        limits=by_engine(
            kernel=_NOISE + " One of ten repetitions at 4 ms with GRO off was marked as not kept up with by the link."
        ),
    ),
    Claim(
        "cwnd-trace",
        "B",
        "tracing cwnd per ACK in the live kernel shows it (the article's SystemTap script)",
        "`knee trace` has t, snd_una, cwnd, ssthresh and srtt per ACK",
        engines=("kernel",),
        has_scenario=False,
        check="cwnd-trace",
    ),
    Claim(
        "rate-sample-is-unused",
        "B",
        "CUBIC does not use the rate sample, so delivery-rate code cannot be the cause",
        "CUBIC's output is identical with rate samples perturbed",
        engines=("sim",),
        has_scenario=False,
        check="rate-sample-is-unused",
    ),
    Claim(
        "kernel-matters",
        "C",
        "the same bbr1 is faster with ACK-aggregation compensation and departure-time pacing (4.15 to 5.3)",
        "bbr1 by the rules of 5.3 against 4.15, with fq, on an aggregating (Wi-Fi) path: goodput gain > 5 %",
        "about 15 %",
        (("5.3 ÷ 4.15", " / ".join(at("bbr1", "goodput", kernel=name) for name in ("5.3", "4.15"))),),
        engines=("sim",),
        quick=MappingProxyType({"repeat": "3", "duration": '"15s"', "warmup": '"5s"'}),
    ),
    Claim(
        "bbr1-shallow-buffer",
        "C",
        "the loss of v1 is high when the buffer is below 1.5 BDP",
        "retransmitted share falls steeply as the buffer crosses about 1.5 BDP",
        "",
        tuple((f"{size} BDP", at("bbr1", "retransmit_pct", path__buffer=f"{size}bdp")) for size in ("1", "2")),
        quick=MappingProxyType(
            {"repeat": "3", "duration": '"90s"', "warmup": '"20s"', "path.buffer": '["0.5bdp", "1bdp", "2bdp", "3bdp"]'}
        ),
    ),
    Claim(
        "bbr1-vs-cubic-share",
        "C",
        "cubic gets little against bulk bbr1 in shallow buffers, bbr1 loses in deep ones",
        "bbr1 ahead at 0.5 BDP, behind at 16 BDP, by 5 % and more; the share beside the published model",
        "",
        tuple(
            (
                f"bbr1 ÷ cubic, {size} BDP",
                " / ".join(at(a, "goodput", path__buffer=f"{size}bdp") for a in ("bbr1", "cubic")),
            )
            for size in ("0.5", "16")
        ),
        quick=MappingProxyType(
            {"repeat": "5", "duration": '"60s"', "path.buffer": '["0.5bdp", "1bdp", "4bdp", "16bdp"]'}
        ),
    ),
    Claim(
        "bbr-rtt-fairness",
        "C",
        "v1 flows with a long RTT win; v2 is fairer",
        "ratio of goodputs 80 ms ÷ 20 ms: 1.05 and more for bbr1, and 1.05 times that of bbr2",
        "",
        tuple(
            (name, f"{at('far', 'goodput', **both)} / {at('near', 'goodput', **both)}")
            for name, both in (("bbr1", _BOTH_BBR1), ("bbr2", _BOTH_BBR2))
        ),
        quick=MappingProxyType({"repeat": "3", "duration": '"30s"', "warmup": '"10s"'}),
    ),
    Claim(
        "probe-rtt-dip",
        "C",
        "PROBE_RTT of v1 (cwnd 4) dips throughput; that of v2 (half BDP) dips less",
        "depth and duration of the dip: bbr1 > bbr2",
        check="probe-rtt-dip",
        quick=MappingProxyType({"duration": '"30s"'}),
    ),
    Claim(
        "wifi-aggregation",
        "C",
        "aggregated ACKs starve v1 without compensation",
        "goodput without ÷ with compensation: < 0.95 where ACKs come in lumps, > 0.95 where they do not",
        "",
        tuple(
            (
                f"without ÷ with, {rtt}",
                _compensated("false", "true", path__rtt=rtt, path__ack_rate="trace wifi"),
            )
            for rtt in ("2ms", "5ms")
        ),
        quick=MappingProxyType({"repeat": "3", "duration": '"15s"', "warmup": '"5s"', "path.rtt": '["2ms", "5ms"]'}),
    ),
    Claim(
        "ecn-dctcp",
        "C",
        "fine-grained ECN (DCTCP) keeps the queue short; classic ECN halves",
        "queue p95: dctcp and bbr2 with ECN ≤ 0.95 of cubic with classic ECN (CoDel), that ≤ 0.95 of cubic on "
        "drop-tail; goodput of dctcp ≥ 95 %",
        "",
        (
            (
                "dctcp",
                at("dctcp", "queue_delay_us_p95", path__queue="step", receiver__algorithm="dctcp"),
            ),
            (
                "bbr2 with ECN",
                at("bbr2", "queue_delay_us_p95", path__queue="step", receiver__algorithm="dctcp"),
            ),
            (
                "cubic with ECN, CoDel",
                at("cubic", "queue_delay_us_p95", path__queue="codel", receiver__algorithm="cubic"),
            ),
            (
                "cubic with ECN, DCTCP's threshold",
                at("cubic", "queue_delay_us_p95", path__queue="step", receiver__algorithm="cubic"),
            ),
            (
                "drop-tail",
                at("cubic", "queue_delay_us_p95", path__queue="fifo", receiver__algorithm="cubic"),
            ),
        ),
        quick=MappingProxyType({"repeat": "3", "duration": '"1500ms"', "warmup": '"500ms"'}),
    ),
    Claim(
        "dctcp-unfair",
        "C",
        "DCTCP beside classic flows on a shared queue is unfair",
        "share of DCTCP > 0.8",
        "",
        tuple(
            (
                f"share beside {name}",
                " / ".join(at(who, "goodput", flow__1__algorithm=name) for who in ("dctcp", "total")),
            )
            for name in ("cubic", "reno")
        ),
        quick=MappingProxyType({"repeat": "3", "duration": '"3s"', "warmup": '"1s"'}),
    ),
    Claim(
        "l4s-vs-classic",
        "C",
        "a dual queue isolates L4S from classic traffic",
        "Prague's p99 of the wait < 2 ms while cubic shares, both ≥ 30 %",
        "",
        (
            ("p99", "prague.queue_delay_us_p99"),
            ("share of prague", "prague.goodput / total.goodput"),
        ),
        engines=("sim",),
        quick=MappingProxyType({"repeat": "20", "duration": '"30s"', "warmup": '"10s"'}),
        needs="Prague needs Accurate ECN, which a kernel has from Linux 7.0 on.",
    ),
    Claim(
        "ss-old-and-new",
        "C",
        "newer `ss` prints far more; both must be parsed",
        "both sample lines parse; absent fields are null",
        "the two lines",
        engines=("sim",),
        has_scenario=False,
        check="ss-old-and-new",
    ),
    Claim(
        "lan-single-flow",
        "D",
        "no added delay: one flow fills what the VM allows",
        "≥ 95 % of the rate",
        "4.98 Gbit/s",
        (("goodput", "cubic.goodput"),),
        engines=("sim",),
        quick=MappingProxyType({"repeat": "3", "duration": '"1s"'}),
        needs="The link of a lab in user space does not carry 5 Gbit/s.",
    ),
    Claim(
        "distance-100ms",
        "D",
        "100 ms RTT, no loss: cubic ≈ bbr1, both capped far below the link by socket buffers",
        "within 5 % of each other; the run says sndbuf- or rwnd-limited",
        "611 and 609 Mbit/s; buffers not stated",
        (("cubic", "cubic.goodput"), ("bbr1", "bbr1.goodput")),
        quick=_SHORT,
    ),
    Claim(
        "loss-1.5",
        "D",
        "1.5 % loss at 100 ms",
        "cubic < 3 % of its rate without loss; bbr1 ÷ cubic ≥ 20",
        "10.5 and 333 Mbit/s; netem on the sender, which drops TSO packets",
        tuple(
            (f"{name}, {what}", at(name, "goodput", path__loss=loss))
            for what, loss in (("TSO packets lost", "super-packets 1.5%"), ("single packets lost", "1.5%"))
            for name in ("cubic", "bbr1")
        ),
        quick=MappingProxyType({"repeat": "80"}),
    ),
    Claim(
        "loss-1.5-bbr2",
        "D",
        "bbr2 is slower than bbr1 here, far faster than cubic",
        "cubic < bbr2 < bbr1, each by 5 % and more",
        "a chart",
        tuple((name, f"{name}.goodput") for name in ("cubic", "bbr2", "bbr1")),
        quick=MappingProxyType({"duration": '"20s"'}),
    ),
    Claim(
        "loss-matrix",
        "D",
        "eleven algorithms × RTT {0, 70, 140 ms} × loss {0, 1.5, 3 %}",
        "bbr1 first by 5 % and more in every cell with loss and RTT ≥ 70 ms",
        "a table",
        tuple((name, at(name, "goodput", path__rtt="70ms", path__loss="1.5%")) for name in ("bbr1", "bbr3", "cubic")),
        quick=MappingProxyType(
            {
                "path.rtt": '["70ms", "140ms"]',
                "path.loss": '["1.5%", "3%"]',
            }
        ),
    ),
    Claim(
        "bufferbloat",
        "D",
        "loss-based control fills a deep FIFO, BBR does not",
        "median RTT over base: cubic at 8 BDP > 4; bbr1 < 2.5",
        "",
        (("cubic", "cubic.srtt_us_p50 / 40ms"), ("bbr1", "bbr1.srtt_us_p50 / 40ms")),
        quick=_SHORT,
    ),
    Claim(
        "bbr-retransmits",
        "D",
        "BBR retransmits more than cubic in shallow buffers",
        "retransmitted share: bbr1 ≥ 1.05 × cubic, at each buffer below 1 BDP",
        "",
        tuple((name, at(name, "retransmit_pct", path__buffer="0.25bdp")) for name in ("cubic", "bbr1")),
        quick=MappingProxyType({"repeat": "3", "duration": '"15s"'}),
    ),
    Claim(
        "upload-only",
        "D",
        "the sender's algorithm is what matters; the two ends may differ",
        "the receiver's choice changes nothing for one-way data",
        "",
        (
            (
                "cubic, receiver bbr1 ÷ cubic",
                " / ".join(at("cubic", "goodput", receiver__algorithm=name) for name in ("bbr1", "cubic")),
            ),
        ),
        quick=MappingProxyType({"repeat": "3", "duration": '"12s"'}),
    ),
)


def by_id() -> dict[str, Claim]:
    """Each claim by its id."""
    return {claim.id: claim for claim in CLAIMS}
