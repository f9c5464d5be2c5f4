"""`rate-sample-is-unused`: CUBIC is shown two connections that differ in nothing but the rate samples.

The connections are drawn: ACKs of 1 to 44 packets, losses, timeouts, idle time. bbr1, which lives on rate samples, is
shown the same: were its answers alike too, the samples would not have been perturbed and the check would say nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tcpknee import _core

from .check import Found, Request, fact

_CONNECTIONS = 40
_CONNECTIONS_QUICK = 5
_ACKS = 1000
_MSS_BYTES = 1448

_HALF_WORD = 2**31
_SAMPLE = {
    "rs_interval_us": (-1, 2**40),
    "rs_rtt_us": (-1, 2**32),
    "rs_prior_mstamp_us": (0, 2**40),
    "rs_prior_delivered": (0, 2**32 - 1),
    "rs_delivered": (-1, _HALF_WORD - 1),
    "rs_delivered_ce": (0, _HALF_WORD - 1),
    "rs_acked_sacked": (0, 2**16),
    "rs_losses": (0, 2**16),
    "rs_prior_in_flight": (0, 2**16),
    "rs_snd_interval_us": (0, 2**32 - 1),
    "rs_rcv_interval_us": (0, 2**32 - 1),
    "rs_last_end_seq": (0, 2**32 - 1),
    "rs_is_app_limited": (0, 1),
    "rs_is_retrans": (0, 1),
    "rs_is_ack_delayed": (0, 1),
    "rs_has_tx": (0, 1),
    "rs_tx_in_flight": (0, 2**16),
    "rs_lost": (0, 2**16),
}
"""Every field of a rate sample in `struct cc_in`, with the bounds of what it is perturbed to."""

Answers = tuple[int, ...]
Call = Callable[[str, dict[str, int]], Answers]

_FLIGHT_MOST = 2**20
"""Packets, so that bytes in flight fit into the 32 bits that the stack has for them."""


def check(request: Request) -> Found:
    """CUBIC's answers are the same, all of them; bbr1's are not."""
    count = _CONNECTIONS_QUICK if request.quick else _CONNECTIONS
    outcomes, differing = [], {}
    for name in ("cubic", "bbr1"):
        differ = total = 0
        for number in range(count):
            seed = request.seed * 1_000_003 + number
            answers = zip(_answers(name, seed, None), _answers(name, seed, seed + 1), strict=True)
            compared = [plain == perturbed for plain, perturbed in answers]
            differ, total = differ + compared.count(False), total + len(compared)
        differing[name] = f"{differ:,} of {total:,} answers differ"
        holds = differ == 0 if name == "cubic" else differ > 0
        words = "are identical" if name == "cubic" else "differ, so that the perturbation is one"
        outcomes.append(fact(f"answers of {name} {words}", holds, differing[name]))
    return Found(outcomes, list(differing.items()))


def _answers(name: str, seed: int, perturbed_by: int | None) -> Iterator[Answers]:
    """What an algorithm answers to each op of a connection that `seed` draws; `perturbed_by` draws its rate samples."""
    draws, noise = random.Random(seed), random.Random(perturbed_by)
    algorithm = _core.Algorithm(name)
    rtt_us = draws.choice([200, 1_000, 10_000, 40_000, 100_000])
    now_us, delivered, una = 5_000_000, 1, draws.randrange(2**32)
    state = {
        "now_us": now_us,
        "clock_ns": now_us * 1000,
        "max_pacing_rate": 2**64 - 1,
        "jiffies": 5_000,
        "lsndtime": 5_000,
        "hz": 1000,
        "snd_cwnd": 10,
        "snd_cwnd_clamp": 2**32 - 1,
        "snd_ssthresh": 0x7FFF_FFFF,
        "min_rtt_us": 2**32 - 1,
        "mss_bytes": _MSS_BYTES,
        "gso_max_bytes": 65536,
        "is_cwnd_limited": 1,
        "delivered": delivered,
    }

    def call(op: str, given: dict[str, int]) -> Answers:
        if perturbed_by is not None:
            given = {**given, **{key: noise.randint(*bounds) for key, bounds in _SAMPLE.items()}}
        return tuple(algorithm.call(op, given).values())

    yield call("init", state)
    cwnd = 10
    for _ in range(_ACKS):
        now_us += draws.randrange(rtt_us // 4 + 1) if draws.random() < 0.995 else 5_000_000
        acked = draws.choice([1, 2, 2, draws.randint(1, 44)])
        sample_us = rtt_us + draws.randrange(rtt_us // 4 + 1)
        delivered, una = delivered + acked, (una + acked * _MSS_BYTES) % 2**32
        flight = min(cwnd, _FLIGHT_MOST)
        shown = {
            "now_us": now_us,
            "clock_ns": now_us * 1000,
            "wstamp_ns": now_us * 1000,
            "jiffies": now_us // 1000,
            "lsndtime": now_us // 1000,
            "random": draws.randrange(2**32),
            "acked": acked,
            "ack_rtt_us": sample_us,
            "srtt_us": sample_us,
            "min_rtt_us": rtt_us,
            "delivered": delivered,
            "snd_una": una,
            "snd_nxt": (una + flight * _MSS_BYTES) % 2**32,
            "packets_out": flight,
            "max_packets_out": flight,
            "ack_in_flight_bytes": flight * _MSS_BYTES,
            # What a stack would measure; `call` puts others in their place.
            "rs_interval_us": rtt_us,
            "rs_rtt_us": sample_us,
            "rs_delivered": flight,
            "rs_acked_sacked": acked,
            "rs_prior_in_flight": flight,
            "rs_prior_delivered": max(delivered - flight, 0),
            "rs_prior_mstamp_us": now_us - sample_us,
        }
        for op in ("pkts_acked", "in_ack_event", "cong_avoid", "cong_control"):
            answers = call(op, shown)
            yield answers
        cwnd = answers[1]
        if draws.random() < 0.005:
            yield from _loss(call, cwnd, times_out=draws.random() < 0.2)
    yield call("undo_cwnd", {"prior_cwnd": cwnd})


def _loss(call: Call, cwnd: int, *, times_out: bool) -> Iterator[Answers]:
    """A loss that fast recovery repairs, seen from its end, or a timeout, as Linux enters it."""
    told = call("ssthresh", {"prior_cwnd": cwnd})
    yield told
    threshold = told[-1]
    if times_out:
        yield call("cwnd_event", {"event": 3})
        yield call("set_state", {"state": 4, "ca_state": 4, "snd_cwnd": 1, "snd_ssthresh": threshold})
    else:
        yield call("set_state", {"state": 3, "ca_state": 3, "snd_cwnd": max(threshold, 1), "snd_ssthresh": threshold})
        yield call("cwnd_event", {"event": 2})
    yield call("set_state", {"state": 0, "ca_state": 0})
