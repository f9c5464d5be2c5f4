"""The claims about what hosts spend: articles A, E and F."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .claim import Alike, Claim, OnKernel, at, by_engine

_SHORT = MappingProxyType({"repeat": "3"})


def _total(metric: str, **axes: str) -> str:
    """The same of a whole cell."""
    return at("total", metric, **axes)


_MODEL = "It takes a NIC with queues, rings and interrupts; a lab's hosts have a veth pair."
_NEW_TIMER = (
    "A kernel since 4.20 arms a timer only for a packet that has to wait, and answers to requests do not wait: the "
    "cause of the claim is gone (pacing-timer and timer-rule show it)."
)


def _alike(*ratios: str) -> Mapping[str, Alike]:
    return MappingProxyType(
        {
            "kernel": Alike(
                ratios,
                0.1,
                "BBR costs what CUBIC does, within 10 %: less than a quarter of the article's least effect, 43 % fewer "
                "requests and 1.55 times the system time.",
            )
        }
    )


def _redis(**axes: str) -> tuple[tuple[str, str], ...]:
    """Requests per second at two numbers of connections."""
    return tuple(
        (f"{name}, {count} connections", at(name, "requests_per_sec", flow__0__connections=count, **axes))
        for count in ("8", "100", "400")
        for name in ("cubic", "bbr1")
    )


_SPLIT = tuple(
    (f"{name}, {what}", _total(metric, flow__0__algorithm=name, flow__0__connections="100"))
    for name in ("cubic", "bbr1")
    for what, metric in (("user", "cpu_user_share"), ("softirq", "cpu_softirq_share"))
)


def _over_system(algorithm: str) -> str:
    """User over system time, of which softirqs are a part."""
    user, system, softirq = (
        _total(metric, flow__0__algorithm=algorithm)
        for metric in ("cpu_user_share", "cpu_system_share", "cpu_softirq_share")
    )
    return f"({user} / ({system} + {softirq}))"


_USER_TO_SYSTEM = f"{_over_system('cubic')} / {_over_system('bbr1')}"


def _transaction(**axes: str) -> tuple[tuple[str, str], ...]:
    """Processor time of the smallest transaction."""
    size = {"flow__0__request": "1B", "flow__0__response": "1B"}
    return tuple(
        (f"{name}, 1 B", _total("cpu_ns_per_request", flow__0__algorithm=name, **axes, **size))
        for name in ("cubic", "bbr1")
    )


def _stream(**axes: str) -> tuple[tuple[str, str], ...]:
    """Processor time per byte of BBR over that of CUBIC, by the size of writes."""
    return tuple(
        (
            f"bbr1 ÷ cubic, {size}",
            " / ".join(
                _total("cpu_ns_per_byte", flow__0__algorithm=name, flow__0__write=size, **axes)
                for name in ("bbr1", "cubic")
            ),
        )
        for size in ("64B", "512B", "1KiB", "4KiB", "64KiB")
    )


_OVER_FQ = (
    "bbr1 over fq ÷ cubic, 512B",
    " / ".join(
        _total("cpu_ns_per_byte", flow__0__algorithm=name, flow__0__write="512B", sender__pacing=pacing)
        for name, pacing in (("bbr1", "fq"), ("cubic", "internal"))
    ),
)


def _rps(mask: str, **axes: str) -> str:
    return _total("softirq_share_of_busiest_cpu", receiver__rps_cpus=mask, **axes)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "redis-cubic-vs-bbr",
        "A",
        "a Redis-like request/response service loses throughput under BBR",
        "requests/s of bbr1 without fq at most 0.95 of cubic's from 16 connections on; the gap opens at 8 and is "
        "below 5 % before",
        "above 140,000 and above 80,000 operations/s at 400 connections",
        _redis(sender__pacing_timer="every-packet"),
        quick=_SHORT,
        on_kernel=OnKernel(_redis()),
        alike=_alike("bbr1.requests_per_sec / cubic.requests_per_sec"),
        limits=by_engine(kernel=_NEW_TIMER),
    ),
    Claim(
        "redis-cpu-split",
        "A",
        "BBR spends more kernel time for the same load",
        "user ÷ system time of cubic over that of bbr1 > 1.3; the kernel's share of the processors grows with "
        "connections",
        "1.55 to 1.86",
        _SPLIT,
        quick=_SHORT,
        on_kernel=OnKernel(_SPLIT),
        alike=_alike(_USER_TO_SYSTEM),
        limits=by_engine(kernel=_NEW_TIMER),
    ),
    Claim(
        "netperf-rr-cpu",
        "A",
        "TCP_RR (one connection, request = response, several sizes) costs more CPU under bbr1",
        "CPU per transaction bbr1 ÷ cubic ≥ 1.05 at every size",
        "charts",
        _transaction(sender__pacing_timer="every-packet"),
        on_kernel=OnKernel(_transaction()),
        alike=_alike(" / ".join(_total("cpu_ns_per_request", flow__0__algorithm=name) for name in ("bbr1", "cubic"))),
        limits=by_engine(kernel=_NEW_TIMER),
    ),
    Claim(
        "netperf-stream-cpu",
        "A",
        "TCP_STREAM by send size: the gap depends on send size",
        "CPU per byte bbr1 ≥ cubic within 5 % at every size, ≥ 1.05 times at 512 B and 1 KiB, larger there than at 64 "
        "KiB; over fq ≤ 1.15 times",
        "1,024 B: 98.20 % and 51.69 %; over fq 512 B: 69 % and 61 %",
        (*_stream(sender__pacing="internal"), _OVER_FQ),
        on_kernel=OnKernel(_stream()),
        limits=by_engine(
            sim="At 4 KiB BBR costs half of CUBIC. Its pacing lets writes gather in the send buffer, so that they "
            "leave in larger packets; each write of CUBIC leaves alone, because the model has no autocorking, by "
            "which Linux lets small writes gather while the NIC has packets of the connection. On a kernel BBR costs "
            "more at every size.",
            kernel="At 1 KiB CUBIC has two modes, of about 3.6 and 9 ns per byte, and a run stays in one; BBR has one, "
            "of about 7.",
        ),
    ),
    Claim(
        "pacing-timer",
        "A",
        "the cause is one high-resolution timer per paced data segment",
        "pacing timers per data skb: cubic 0; bbr1 with internal pacing about one; bbr1 with fq 0",
        "perf stacks",
        tuple(
            (
                f"bbr1, {pacing}, 1 Gbit/s",
                _total(
                    "timer_fires_per_data_skb",
                    flow__0__algorithm="bbr1",
                    path__rate="1Gbit/s",
                    sender__pacing_timer="when-needed",
                    sender__pacing=pacing,
                ),
            )
            for pacing in ("internal", "fq")
        ),
        on_kernel=OnKernel(
            tuple(
                (
                    f"{name}, {rate}",
                    _total("timer_fires_per_data_skb", flow__0__algorithm=name, path__rate=rate),
                )
                for rate in ("100Mbit/s", "600Mbit/s")
                for name in ("cubic", "bbr1")
            ),
            measure=("timers", "packets"),
        ),
    ),
    Claim(
        "fq-removes-the-timer",
        "A",
        "with the fq qdisc BBR costs about what CUBIC does",
        "CPU bbr1 over fq ÷ cubic ≤ 1.15; requests/s within 5 %, where without fq they are more than 5 % fewer",
        "Redis within 5 %",
        (
            (
                "CPU per request, bbr1 over fq ÷ cubic",
                " / ".join(
                    _total("cpu_ns_per_request", flow__0__algorithm=name, sender__pacing=pacing)
                    for name, pacing in (("bbr1", "fq"), ("cubic", "internal"))
                ),
            ),
        ),
        engines=("sim",),
        needs="This kernel has no fq.",
    ),
    Claim(
        "interrupt-per-packet",
        "E",
        "one interrupt per packet wastes the CPU at a high rate; NAPI fixes it, and polling wastes CPU at a low rate",
        "CPU per packet against packet rate for interrupts, NAPI and busy polling: the curves cross",
        "",
        tuple(
            (f"{how}, {rate}", _total("cpu_ns_per_byte", path__rate=rate, receiver__reception=how))
            for rate in ("10Mbit/s", "10Gbit/s")
            for how in ("interrupts", "napi", "busy-poll")
        ),
        engines=("sim",),
        needs=_MODEL,
    ),
    Claim(
        "multi-queue",
        "E",
        "two queues raise the packet rate by 50 to 100 % over one, four more",
        "saturated packet rate: 1.5 to 2 times, and with four queues more, but less than 1.9 times that of two",
        "+50 to 100 %",
        (
            ("2 queues ÷ 1", f"{_total('goodput', receiver__queues='2')} / {_total('goodput', receiver__queues='1')}"),
            ("4 queues ÷ 2", f"{_total('goodput', receiver__queues='4')} / {_total('goodput', receiver__queues='2')}"),
        ),
        quick=MappingProxyType({"repeat": "6"}),
        engines=("sim",),
        needs=_MODEL,
        limits=by_engine(
            sim="One queue takes 3.4 million packets a second, where hosts take 1 to 1.5: a thread has nearly every "
            "socket that is read, so that TCP's work is done on its processor, not on the interrupted one.",
        ),
    ),
    Claim(
        "ring-size",
        "E",
        "a ring of 256 descriptors drops packets under bursts, one of 2,048 does not",
        "packets dropped: some with 256, none with 2,048, at the same burst",
        "256, then 2,048",
        tuple((f"drops, {size}", _total("ring_drops", receiver__rx_ring=size)) for size in ("256", "2048")),
        engines=("sim",),
        needs=_MODEL,
    ),
    Claim(
        "rps-spreads",
        "E",
        "RPS moves softirq work of a single queue over several cores",
        "softirq share per CPU: one-sided, then spread, throughput unchanged; one stream stays on one processor",
        "softirq 0.22 and 2.67 %, with RPS 0.00 and 2.57 %: its own table does not show it; 272.8 and 273.8 Mbit/s",
        (
            ("mask 0", _rps("0", flow__0__count="16")),
            ("mask 3", _rps("3", flow__0__count="16")),
            ("mask 3, one stream", _rps("3", flow__0__count="1")),
        ),
        on_kernel=OnKernel((("mask 0", _rps("0")), ("mask 3", _rps("3")))),
        limits=by_engine(
            kernel="The shares are of the whole machine's softirqs, the sender's included, counted by its tick."
        ),
    ),
    Claim(
        "rfs-locality",
        "E",
        "RFS puts softirq on the consumer's core",
        "fewer packets read on another processor than with RPS alone",
        "",
        tuple(
            (name, _total("cross_cpu_reads_per_skb", receiver__rps_sock_flow_entries=entries))
            for name, entries in (("RPS", "0"), ("RPS and RFS", "4096"))
        ),
        engines=("sim",),
        needs=_MODEL,
    ),
    Claim(
        "fifo-length",
        "E",
        "a longer FIFO has fewer tail drops, more delay and jitter; under sustained overload both drop",
        "monotone curves",
        engines=("sim",),
        needs="In real time its five lengths take 45 minutes.",
    ),
    Claim(
        "timer-rule",
        "F",
        "the pacing timer's rule of 4.20 removed most of BBR's CPU cost for request and response",
        "CPU per transaction: a timer per packet ÷ today's rule ≥ 1.05",
        "about +10 % TCP_RR",
        (
            (
                "1 B",
                " / ".join(
                    _total(
                        "cpu_ns_per_request",
                        sender__pacing_timer=rule,
                        receiver__pacing_timer=rule,
                        flow__0__request="1B",
                    )
                    for rule in ("every-packet", "when-needed")
                ),
            ),
        ),
        engines=("sim",),
        needs="This kernel has the new rule alone.",
    ),
    Claim(
        "cpu-steal",
        "F",
        "BBR collapses when the VM's CPU is contended, CUBIC does not",
        "goodput bbr1 ÷ cubic < 0.5 at 50 % steal in slices of ms",
        "capped below 10 to 20 Mbit/s",
        tuple((name, at(name, "goodput", sender__steal="50%")) for name in ("cubic", "bbr1", "bbr3")),
        quick=_SHORT,
        engines=("sim",),
        needs="No hypervisor here takes time away when it is asked to.",
    ),
)
"""In the order of the articles."""
