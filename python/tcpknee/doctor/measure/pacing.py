"""What pacing and the qdisc cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcpknee.doctor.finding import Finding

from .experiment import ONE_CPU, VETH, Arm, Experiment
from .plan import Plan, always, number
from .quantities import CPU_PER_BYTE, CPU_PER_REQUEST, LATENCY
from .receiving import MOST_CPUS, served

REQUESTS = {
    "workload": "request-response",
    "request": "44B",
    "response": "5B",
    "depth": 4,
    "connections": 50,
}
STREAM = {"workload": "bulk", "write": "16KiB"}

KEEP = {**VETH, "super_packets": "keep"}

_FQ = {"pacing": "fq"}
_PACED = Arm("BBR paced by TCP's own timers", "bbr1")
_OVER_FQ = Arm("BBR over fq", "bbr1", sender=_FQ, receiver=_FQ)
_CUBIC = Arm("CUBIC, which paces nothing", "cubic")
_SMALL = "44-byte requests over 50 connections"

OVER_FQ = Experiment(_SMALL, CPU_PER_REQUEST, REQUESTS, _PACED, _OVER_FQ, KEEP, ONE_CPU)
REQUESTS_UNPACED = Experiment(_SMALL, CPU_PER_REQUEST, REQUESTS, _PACED, _CUBIC, KEEP, ONE_CPU)
STREAM_UNPACED = Experiment("a stream in writes of 16 KiB", CPU_PER_BYTE, STREAM, _PACED, _CUBIC, KEEP, ONE_CPU)

_PACING = always(
    "small requests and a stream under BBR: CPU with TCP's own timers, with fq, and under CUBIC",
    OVER_FQ,
    REQUESTS_UNPACED,
    STREAM_UNPACED,
)


def _queueing(finding: Finding) -> Sequence[Experiment]:
    wanted = str(finding.evidence["default_qdisc"])
    return [
        Experiment(
            "requests beside a transfer that fills the interface, 100 Mbit/s and 20 ms",
            LATENCY,
            {"workload": "request-response", "request": "100B", "response": "1kB"},
            Arm(str(finding.evidence["qdiscs"]), path={"queue": "fifo"}),
            Arm(wanted, path={"queue": wanted}),
            path={"backend": "user", "rate": "100Mbit/s", "rtt": "20ms", "buffer": "1000packets"},
            duration_ms=3000,
            warmup_ms=1000,
            where=("kernel", "simulator"),
            beside=({"algorithm": "cubic", "name": "transfer"},),
        )
    ]


def _roots(finding: Finding) -> Sequence[Experiment]:
    """The model knows the lock of fq alone, which stands for that of any root qdisc; a shaper holds its lock longer."""
    queues = min(number(finding, "tx_queues") or 0, MOST_CPUS)
    return _sent(queues, ("one fq for all queues", {"mq": False}), ("an fq for each queue", {"mq": True}))


def _chosen(finding: Finding) -> Sequence[Experiment]:
    queues = min(number(finding, "tx_queues") or 0, number(finding, "cpus") or 0, MOST_CPUS)
    return _sent(queues, ("XPS off", {"xps": False}), ("a queue for each processor", {"xps": True}))


def _sent(queues: int, *arms: tuple[str, Mapping[str, bool]]) -> Sequence[Experiment]:
    """Small requests to a server with as many processors as queues to send by."""
    if queues < 2:
        return []
    now, other = ((label, {"queues": queues, **_FQ, **keys}) for label, keys in arms)
    return [served(queues, now, other)]


PLANS = {
    "bbr-without-fq": _PACING,
    "mq-leaf-without-fq": _PACING,
    "one-root-for-many-queues": Plan(
        "small requests to the model's server: time per request with one fq and with one for each queue", _roots
    ),
    "xps-off": Plan("small requests to the model's server over fq: time per request with XPS off and on", _chosen),
    "default-qdisc-not-applied": Plan(
        "requests beside a transfer through the lab's link: latency with a FIFO and with the qdisc that is set",
        _queueing,
    ),
}
