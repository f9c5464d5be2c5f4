"""What is measured: the cells of each suite, in the words of a scenario file (docs/scenario.md).

A cell has the settings of its path and hosts, one or more flows that share the path, and the number of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

ALGORITHMS = (
    *("reno", "cubic", "bbr1", "vegas", "veno", "westwood", "yeah", "htcp", "highspeed"),
    *("hybla", "illinois", "scalable", "bic", "cdg", "lp", "nv", "dctcp"),
)
"""All that Linux 6.1 and 6.12 have."""

HOSTS = {
    "path.mtu": "1500B",
    "sender.gro": "false",
    "sender.rx_coalesce": "0s",
    "receiver.gro": "false",
    "receiver.rx_coalesce": "0s",
    "flow.write": "128KiB",
}
"""How every host is set: as its kernel has it, without GRO, as a veth has none."""


@dataclass(frozen=True)
class Cell:
    """`group`: the row of the suite's table that it counts in."""

    suite: str
    group: str
    settings: dict[str, str]
    flows: tuple[dict[str, str], ...]
    runs: int


def _flow(algorithm: str, **settings: str) -> dict[str, str]:
    return {"flow.algorithm": algorithm, **{f"flow.{key}": value for key, value in settings.items()}}


def _far_end(algorithm: str) -> dict[str, str]:
    """DCTCP needs an end that tells it of every mark, which one that runs DCTCP does."""
    return {"receiver.algorithm": "dctcp"} if algorithm == "dctcp" else {}


def algorithms() -> Iterator[Cell]:
    """Every algorithm alone behind drop-tail, on nine paths; three runs where chance decides."""
    paths = (
        ("20Mbit/s", "40ms", "1bdp", "0%"),
        ("50Mbit/s", "40ms", "0.5bdp", "0%"),
        ("20Mbit/s", "100ms", "4bdp", "0%"),
        ("50Mbit/s", "100ms", "1bdp", "0%"),
        ("50Mbit/s", "10ms", "2bdp", "0%"),
        ("20Mbit/s", "10ms", "4bdp", "0%"),
        ("50Mbit/s", "40ms", "1bdp", "0.1%"),
        ("20Mbit/s", "40ms", "1bdp", "1%"),
        ("20Mbit/s", "10ms", "1bdp", "3%"),
    )
    for algorithm in ALGORITHMS:
        for rate, rtt, buffer, loss in paths:
            path = {"path.rate": rate, "path.rtt": rtt, "path.buffer": buffer, "path.loss": loss}
            length = {"duration": "30s", "warmup": "8s"}
            yield Cell(
                "algorithms",
                algorithm,
                {**length, **path, **_far_end(algorithm)},
                (_flow(algorithm),),
                3 if loss != "0%" or algorithm in _DRAWING else 1,
            )


# CDG backs off by chance, NV forgets its RTT at random times, LP reads timestamps, which begin at a random number.
_DRAWING = ("cdg", "nv", "lp")


def queues() -> Iterator[Cell]:
    """Four algorithms behind each queue, DCTCP with ECN. The flow begins a second after its queue: PIE's timer first
    runs after half a second. Three runs where the queue draws."""
    for group, settings in _QUEUES.items():
        for rate, rtt in (("50Mbit/s", "20ms"), ("50Mbit/s", "100ms"), ("20Mbit/s", "10ms"), ("20Mbit/s", "40ms")):
            # RED's thresholds are more than 20 Mbit/s x 10 ms hold.
            if group == "red" and (rate, rtt) == ("20Mbit/s", "10ms"):
                continue
            for algorithm in _SENDERS.get(group, ("reno", "cubic", "bbr1", "dctcp")):
                path = {"path.rate": rate, "path.rtt": rtt, "path.buffer": "1000packets", **settings}
                if algorithm == "dctcp" and group in ("codel", "pie", "red"):
                    path[f"path.{group}.ecn"] = "true"
                if group == "cake":
                    path["path.cake.bandwidth"] = rate
                if group == "policer":
                    path |= {"path.rate": _TWICE[rate], "path.policer_rate": rate}
                yield Cell(
                    "queues",
                    group,
                    {"duration": "26s", "warmup": "6s", **path, **_far_end(algorithm)},
                    (_flow(algorithm, start="1s"),),
                    3 if group in ("pie", "red") else 1,
                )


_QUEUES = {
    "fq_codel": {"path.queue": "fq_codel"},
    "codel": {"path.queue": "codel"},
    "cake": {"path.queue": "cake"},
    "policer": {"path.policer_burst": "125kB"},
    "red": {"path.queue": "red", "path.red.min": "30kB", "path.red.max": "90kB", "path.red.burst": "50"},
    # Linux' timer takes a jiffy more than the 16 ms that HZ 250 makes of PIE's 15 ms.
    "pie": {"path.queue": "pie", "path.pie.tupdate": "20ms"},
    "step": {"path.queue": "fq_codel", "path.fq_codel.ce_threshold": "1ms"},
}

# A policer stands before a link of twice its rate, so that what it lets through is spread again.
_TWICE = {"20Mbit/s": "40Mbit/s", "50Mbit/s": "100Mbit/s"}

# A step is for DCTCP; a policer drops and never marks.
_SENDERS = {"step": ("dctcp",), "policer": ("reno", "cubic", "bbr1")}


def two_flows() -> Iterator[Cell]:
    """Two flows behind drop-tail: different algorithms on one path, one algorithm on paths of 20 and 80 ms.

    Where round-trip times and the transmission of a packet are exact, which flow's packet finds the queue full is a
    matter of phase (Floyd, Jacobson: On Traffic Phase Effects, 1992). So the last also run with jitter, three times.
    """
    for rate, buffer, start in product(("20Mbit/s", "50Mbit/s"), ("0.5bdp", "1bdp", "2bdp"), ("0s", "3s")):
        path = {**_LONG, "path.rate": rate, "path.buffer": buffer}
        for second in ("bbr1", "reno", "dctcp"):
            flows = (_flow("cubic"), _flow(second, start=start))
            yield Cell("two-flows", f"cubic+{second}", {**path, "path.rtt": "40ms"}, flows, 1)
        for algorithm in ("reno", "cubic", "bbr1"):
            # A BDP is that of 80 ms.
            unequal = {**path, "path.rtt": "80ms"}
            flows = (_flow(algorithm, rtt="20ms"), _flow(algorithm, rtt="80ms", start=start))
            yield Cell("two-flows", f"{algorithm} 20+80 ms", unequal, flows, 1)
            if start == "0s":
                group = f"{algorithm} 20+80 ms, jitter"
                yield Cell("two-flows", group, {**unequal, "path.jitter": "1ms"}, flows, 3)


_LONG = {"duration": "60s", "warmup": "15s"}


def marks() -> Iterator[Cell]:
    """ECN, classic (`tcp_ecn` 1) and accurate (3, from Linux 7.0 on), behind DualPI2 with its defaults and behind
    FQ-CoDel. Three runs where DualPI2 draws."""
    for queue, rtt in product(("dualpi2", "fq_codel"), ("10ms", "40ms")):
        for algorithm in ("reno", "cubic", "dctcp"):
            for ecn in ("1", "3"):
                path = {"path.rate": "50Mbit/s", "path.rtt": rtt, "path.buffer": "10000packets", "path.queue": queue}
                hosts = {"sender.tcp_ecn": ecn, "receiver.tcp_ecn": ecn, **_far_end(algorithm)}
                yield Cell(
                    "marks",
                    f"{queue}, tcp_ecn {ecn}",
                    {"duration": "26s", "warmup": "6s", **path, **hosts},
                    (_flow(algorithm, start="1s"),),
                    3 if queue == "dualpi2" else 1,
                )


def transfers() -> Iterator[Cell]:
    """Short transfers: goodput is that of the whole transfer, so that its time is compared. Eight runs where packets
    are lost. The link is tcpknee's own: netem's path takes the time of a full packet for a SYN, too, which is 1.5 % of
    the shortest transfer."""
    for size, rtt in product(("10kB", "100kB", "1MB"), ("10ms", "100ms")):
        for algorithm, loss in product(("reno", "cubic", "bbr1"), ("0%", "2%")):
            path = {"path.rate": "50Mbit/s", "path.rtt": rtt, "path.buffer": "1bdp", "path.backend": "user"}
            path["path.loss"] = loss
            flow = _flow(algorithm, workload="transfer", bytes=size)
            yield Cell("transfers", size, {"duration": "20s", **path}, (flow,), 8 if loss != "0%" else 1)


def pairs() -> Iterator[Cell]:
    """Two flows as distributions: twenty draws of a jitter of 1 ms, which takes the phases away that decide a single
    run of `two_flows`. Different algorithms on one path, one algorithm on paths of 20 and 80 ms, and one that comes
    later."""
    path = {"duration": "25s", "warmup": "5s", "path.rate": "10Mbit/s", "path.jitter": "1ms"}
    for first, second, buffer in (
        ("cubic", "bbr1", "0.5bdp"),
        ("cubic", "bbr1", "2bdp"),
        ("cubic", "reno", "1bdp"),
        ("reno", "bbr1", "1bdp"),
    ):
        flows = (_flow(first), _flow(second))
        yield Cell("pairs", f"{first}+{second}", {**path, "path.rtt": "40ms", "path.buffer": buffer}, flows, 20)
    for algorithm in ("reno", "cubic", "bbr1"):
        # A BDP is that of 80 ms.
        flows = (_flow(algorithm, rtt="20ms"), _flow(algorithm, rtt="80ms"))
        unequal = {**path, "path.rtt": "80ms", "path.buffer": "1bdp"}
        yield Cell("pairs", f"{algorithm} 20+80 ms", unequal, flows, 20)
    late = (_flow("cubic"), _flow("cubic", start="3s"))
    yield Cell("pairs", "cubic, and one 3 s later", {**path, "path.rtt": "40ms", "path.buffer": "1bdp"}, late, 20)


def pauses() -> Iterator[Cell]:
    """Stops and restarts: a sender that writes for 2 s and pauses, for less than an RTO and for more, with and without
    the fall to the initial window after it."""
    for algorithm, off, falls in product(("reno", "cubic", "bbr1"), ("150ms", "1s"), ("true", "false")):
        path = {"path.rate": "20Mbit/s", "path.rtt": "40ms", "path.buffer": "1bdp"}
        hosts = {"sender.tcp_slow_start_after_idle": falls}
        flow = _flow(algorithm, workload="on-off", on="2s", off=off)
        yield Cell("pauses", algorithm, {"duration": "16s", "warmup": "1s", **path, **hosts}, (flow,), 1)


def timeouts() -> Iterator[Cell]:
    """What a timer finds. A transfer whose n-th packets are lost, SYN and ACK counted: the last one (tail loss probe),
    two of a window of few, every second one (retransmissions lost again, RTO); a link that stops, for less than an RTO
    and for more, with a queue that overflows meanwhile."""
    path = {"path.rate": "20Mbit/s", "path.rtt": "40ms", "path.buffer": "1bdp"}
    for algorithm in ("reno", "cubic", "bbr1"):
        for group, loss, packets in (
            ("the last packet is lost", "periodic 10%", 8),
            ("the last packet is lost", "periodic 5%", 18),
            ("every fifth", "periodic 20%", 13),
            ("every fourth", "periodic 25%", 30),
            ("every second", "periodic 50%", 12),
        ):
            flow = _flow(algorithm, workload="transfer", bytes=f"{packets * 1448}B")
            yield Cell("timeouts", group, {"duration": "60s", **path, "path.loss": loss}, (flow,), 1)
        for outage in ("4s for 150ms", "4s for 1s", "4s for 3s"):
            settings = {"duration": "15s", "warmup": "1s", **path, "path.outage": outage}
            yield Cell("timeouts", "a link that stops", settings, (_flow(algorithm),), 1)


def reordering() -> Iterator[Cell]:
    """Packets that overtake others, by less than a quarter of the least RTT and by more, which is the time that RACK
    gives them first. Eight draws. The link is tcpknee's own, which has other packets overtake than netem."""
    path = {"path.rate": "20Mbit/s", "path.rtt": "40ms", "path.buffer": "1bdp", "path.backend": "user"}
    for algorithm in ("reno", "cubic", "bbr1"):
        for share, earlier in (("1%", "3ms"), ("1%", "15ms"), ("10%", "15ms")):
            settings = {**path, "path.reorder": share, "path.reorder_delay": earlier}
            yield Cell(
                "reordering",
                f"{share} by {earlier}",
                {"duration": "20s", "warmup": "4s", **settings},
                (_flow(algorithm),),
                8,
            )


def bursts() -> Iterator[Cell]:
    """Losses one by one, and in bursts of ten at the same rate: what one recovery mends, and what is counted as one
    congestion. Eight draws, of tcpknee's own link."""
    path = {"path.rate": "20Mbit/s", "path.rtt": "40ms", "path.buffer": "1bdp", "path.backend": "user"}
    for algorithm, (group, loss) in product(
        ("reno", "cubic", "bbr1"), (("one by one", "0.5%"), ("in bursts of ten", "gilbert 0.5% burst 10"))
    ):
        settings = {"duration": "20s", "warmup": "4s", **path, "path.loss": loss}
        yield Cell("bursts", group, settings, (_flow(algorithm),), 8)


def windows() -> Iterator[Cell]:
    """Small receive windows: a receive buffer that may not grow beyond what an eighth to twice of the path holds."""
    for algorithm, rtt, most in product(("cubic", "bbr1"), ("10ms", "100ms"), ("16KiB", "64KiB", "256KiB")):
        path = {"path.rate": "20Mbit/s", "path.rtt": rtt, "path.buffer": "100packets"}
        hosts = {"receiver.tcp_rmem_max": most, "receiver.tcp_rmem_default": "16KiB"}
        yield Cell("windows", most, {"duration": "10s", "warmup": "2s", **path, **hosts}, (_flow(algorithm),), 1)


SUITES: dict[str, Callable[[], Iterator[Cell]]] = {
    "algorithms": algorithms,
    "queues": queues,
    "two-flows": two_flows,
    "marks": marks,
    "transfers": transfers,
    "pairs": pairs,
    "pauses": pauses,
    "timeouts": timeouts,
    "windows": windows,
    "reordering": reordering,
    "bursts": bursts,
}
