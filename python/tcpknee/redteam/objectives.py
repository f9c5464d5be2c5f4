"""What is looked for: each objective asks for some runs of a case, and says how far beyond a threshold they are.

The thresholds are ours: where a behaviour begins to be one that its author would want to know of. None is a standard's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from . import knobs
from .cases import Case
from .measured import Flow, Measured

STARVED_SHARE = 0.05
"""A flow that gets less than this part of an equal share starves."""
HARM_BEYOND = 0.3
"""Harm (Ware et al., HotNets 2019): the part of its goodput alone that the competitor loses; so much more than it loses
to one like itself."""
STUCK_RTOS = 15.0
"""Retransmission timeouts without anything delivered: as long as four lost in a row with a doubling each."""
STANDING_RTTS, STANDING_US = 2.0, 50_000.0
"""A queue stands where 95 % of the time the wait is more than this many base RTTs, and this long."""
WAKE_UP_US, WAKE_UP_RTTS = 100_000.0, 2.0
"""Data waits, nothing is under way, the far end has room, and nothing is sent for longer than both together, and what
the pacing rate explains."""
LOSS_PCT, LOSS_TIMES = 5.0, 3.0
"""Percent of what was sent that is sent again beyond what the path loses by itself, and how many times that of the one
it is compared with."""
SPURIOUS_PCT = 3.0
"""Percent of what was sent that is sent again though nothing was lost."""
HARMLESS_TIMES = 1.15
"""How much faster it may be without a setting that is somebody's default."""
STRESS_TIMES, STRESS_BEYOND = 2.0, 1.5
"""How much slower a disturbance may make it, and how many times more than the one it is compared with."""
_LEAST_SEGMENTS = 200
"""Sent, before a share of them says something."""

Found: TypeAlias = tuple[float, str]
"""The score, 1 at the threshold; and what was seen, as the end of a sentence that begins with the algorithm's name."""
NOTHING: Found = (0.0, "")


class Ask(Protocol):
    """Runs a case, by "own" or "other"; `alone`: only the flows that it meets. `crashes`: what "own" did where it ended
    a run."""

    @property
    def crashes(self) -> Mapping[Case, str]: ...

    def __call__(self, case: Case, who: str, *, alone: bool = False) -> Measured | None: ...


@dataclass(frozen=True)
class Objective:
    """`threshold`: in words. `wanted`: knobs without which it cannot be asked; each draw has those of one entry.
    `of_key`: it is about the first of them, which is undone. What a host setting costs depends on whose rules hold.
    `of_file`: only an algorithm of a file can do it."""

    name: str
    threshold: str
    wanted: tuple[tuple[str, ...], ...]
    judge: Callable[[Case, str, Ask], Found]
    of_key: bool = False
    of_file: bool = False


def _starvation(case: Case, key: str, ask: Ask) -> Found:
    seen = ask(case, "own")
    if seen is None or len(seen.flows) < 2 or "flow.workload" in case:
        return NOTHING
    equal = seen.goodput("first", "late", "other") / len(seen.flows)
    if not equal or _is_crowded(case, len(seen.flows)):
        return NOTHING
    least = min(seen.of("first", "late"), key=lambda flow: flow.row["goodput_bits_per_sec"])
    share = least.row["goodput_bits_per_sec"] / equal
    beside = " beside the one that it meets" if seen.of("other") else " beside its like"
    return STARVED_SHARE / max(share, 1e-3), f"starves{beside}: a flow gets {share:.1%} of an equal share"


def _is_crowded(case: Case, flows: int) -> bool:
    """Has the path room for less than four packets of each flow? No window is small enough then."""
    bdp = case.number("path.rate") * case.number("path.rtt") * 1e3 / 8
    return "path.trace" not in case and bdp * (1 + case.number("path.buffer")) < 4 * 1500 * flows


def _unfairness(case: Case, key: str, ask: Ask) -> Found:
    if "other.count" not in case:
        return NOTHING
    beside, like, alone = ask(case, "own"), ask(case, "other"), ask(case, "own", alone=True)
    if beside is None or like is None or alone is None or not (of_alone := alone.goodput("other")):
        return NOTHING
    harm, usual = (1 - one.goodput("other") / of_alone for one in (beside, like))
    words = f"takes {harm:.0%} of the goodput that {{other}} has alone, where its like takes {usual:.0%}"
    return (harm - max(usual, 0.0)) / HARM_BEYOND, words


def _silence(case: Case, flow: Flow, waits: np.ndarray, column: str) -> tuple[float, int]:
    """The longest time in which a condition holds and a count stays, us; and the sample at which it begins. A sample
    holds until the next one, and the last until the end of the run."""
    if not len(flow.t_us):
        return 0.0, 0
    goes_on = waits[1:] & waits[:-1] & (np.diff(flow.samples[column]) == 0)
    begins = np.flatnonzero(np.append(True, ~goes_on))
    lengths = np.diff(np.append(flow.t_us[begins], case.duration * 1e3)) * waits[begins]
    longest = int(np.argmax(lengths))
    return float(lengths[longest]), int(begins[longest])


def _stuck(case: Case, key: str, ask: Ask) -> Found:
    best = NOTHING
    seen = ask(case, "own")
    if seen is None or _is_crowded(case, len(seen.flows)):
        return NOTHING
    for flow in seen.of("first", "late"):
        waits = (flow.samples["unacked"] > 0) | (flow.samples["notsent_bytes"] > 0)
        length, place = _silence(case, flow, waits, "bytes_read")
        length -= case.number("path.outage") * 1e3
        rto = max(float(flow.samples["rto_us"][place]) if len(flow.t_us) else 0.0, 200_000.0)
        words = (
            f"is stuck: nothing is delivered for {length / 1e6:.2g} s, {length / rto:.0f} RTOs, though there is data"
        )
        best = max(best, (length / rto / STUCK_RTOS, words))
    return best


def _wake_up(case: Case, key: str, ask: Ask) -> Found:
    best = NOTHING
    seen = ask(case, "own")
    # A processor that is away, and a pacing rate of a few packets per second, explain a silence.
    away = sum(case.number(f"{end}.steal_slice", 5.0) * 2e3 for end in ("sender", "receiver") if f"{end}.steal" in case)
    for flow in seen.of("first", "late") if seen else ():
        waits = (flow.samples["unacked"] == 0) & (flow.samples["notsent_bytes"] >= 1448)
        length, place = _silence(case, flow, waits & (flow.samples["snd_wnd_bytes"] >= 9000), "bytes_sent")
        allowed = WAKE_UP_US + away
        if length:
            allowed += WAKE_UP_RTTS * max(float(flow.samples["srtt_us"][place]), case.number("path.rtt") * 1e3)
            rate = float(flow.samples["pacing_rate_bits_per_sec"][place])
            allowed += 2 * case.mtu_bytes * 8e6 / rate if rate > 0 else 0.0
        words = f"sleeps for {length / 1e3:.0f} ms with data to send, nothing under way and room at the far end"
        best = max(best, (length / allowed, words))
    return best


def _standing_queue(case: Case, key: str, ask: Ask) -> Found:
    seen = ask(case, "own")
    if seen is None or len(seen.queue_us) < 20 or "other.count" in case:
        return NOTHING
    wait, rtt = float(np.percentile(seen.queue_us, 5)), case.number("path.rtt") * 1e3
    words = (
        f"keeps a standing queue: 95 % of the time the wait is above {wait / 1e3:.0f} ms, {wait / rtt:.1f} base RTTs"
    )
    return wait / max(STANDING_RTTS * rtt, STANDING_US), words


def _excess_pct(seen: Measured) -> float:
    sent = seen.sum("data_segs_out", "first", "late")
    if sent < _LEAST_SEGMENTS:
        return 0.0
    again, lost = seen.sum("total_retrans", "first", "late"), seen.sum("path_lost_pkts", "first", "late")
    return 100 * max(again - lost, 0.0) / sent


def _loss(case: Case, key: str, ask: Ask) -> Found:
    own, like = ask(case, "own"), ask(case, "other")
    if own is None or like is None:
        return NOTHING
    dropped = own.sum("queue_dropped_pkts", "first", "late")
    pct, usual = (
        min(_excess_pct(own), 100 * dropped / max(own.sum("data_segs_out", "first", "late"), 1)),
        _excess_pct(like),
    )
    words = f"loses {pct:.1f} % of what it sends by its own doing, and {{other}} {usual:.1f} %"
    return min(pct / LOSS_PCT, (pct + 0.1) / (usual + 0.1) / LOSS_TIMES), words


def _spurious(case: Case, key: str, ask: Ask) -> Found:
    seen = ask(case, "own")
    if seen is None or (sent := seen.sum("data_segs_out", "first", "late")) < _LEAST_SEGMENTS:
        return NOTHING
    lost = sum(seen.sum(name, "first", "late") for name in ("path_lost_pkts", "queue_dropped_pkts"))
    pct = 100 * max(seen.sum("total_retrans", "first", "late") - lost, 0.0) / sent
    words = f"sends {pct:.1f} % again that was not lost"
    return pct / SPURIOUS_PCT, words


def _collapse(case: Case, key: str, ask: Ask) -> Found:
    if key not in case:
        return NOTHING
    without = case.undone(key)
    own, own_without = ask(case, "own"), ask(without, "own")
    if own is None or own_without is None:
        return NOTHING
    groups = ("first", "late")
    times = _times(own_without.goodput(*groups), own.goodput(*groups))
    words = f"is {_times_words(times)} as fast without {{key}}"
    if key in knobs.HARMLESS:
        return (times - 1) / (HARMLESS_TIMES - 1), words
    like, like_without = ask(case, "other"), ask(without, "other")
    if like is None or like_without is None:
        return NOTHING
    usual = _times(like_without.goodput(*groups), like.goodput(*groups))
    words += f", where {{other}} is {_times_words(usual)} as fast"
    return min(times / STRESS_TIMES, times / max(usual, 1.0) / STRESS_BEYOND), words


def _times(a: float, b: float) -> float:
    return min(a / b, 1e3) if b > 0 else 1e3 if a > 0 else 1.0


def _times_words(times: float) -> str:
    return "more than 100 times" if times > 100 else f"{times:.2g} times"


def _crash(case: Case, key: str, ask: Ask) -> Found:
    ask(case, "own")
    words = ask.crashes.get(case)
    return (1.0, f"ends its run: it {words}") if words else NOTHING


_LIKE = (("late.count",), ("flow.count",), ("other.count",))

EVERY: tuple[Objective, ...] = (
    Objective("crash", "a run that it ends", (), _crash, of_file=True),
    Objective(
        "starvation",
        f"a flow of the algorithm gets less than {100 * STARVED_SHARE:g} % of an equal share",
        _LIKE,
        _starvation,
    ),
    Objective(
        "unfairness",
        f"its competitor loses {100 * HARM_BEYOND:g} percentage points more of the goodput that it has alone than it "
        "loses to its like (harm: Ware et al., HotNets 2019)",
        (("other.count",), ("other.count", "receiver.algorithm")),
        _unfairness,
    ),
    Objective(
        "stuck",
        f"nothing is delivered for {STUCK_RTOS:g} retransmission timeouts though there is data",
        (),
        _stuck,
    ),
    Objective(
        "lost-wake-up",
        "data waits, nothing is under way, the far end has room, and nothing is sent for "
        f"{WAKE_UP_US / 1e3:g} ms, {WAKE_UP_RTTS:g} round trips and what two packets take at its pacing rate",
        (),
        _wake_up,
    ),
    Objective(
        "standing-queue",
        f"95 % of the time the wait is above {STANDING_RTTS:g} base RTTs and {STANDING_US / 1e3:g} ms",
        (),
        _standing_queue,
    ),
    Objective(
        "loss",
        f"{LOSS_PCT:g} % of what it sends is dropped by the queue and sent again, and {LOSS_TIMES:g} times what the "
        "other loses there",
        (),
        _loss,
    ),
    Objective(
        "spurious-retransmission",
        f"{SPURIOUS_PCT:g} % of what it sends is sent again though it was not lost",
        (),
        _spurious,
    ),
    Objective(
        "collapse",
        f"it is {STRESS_TIMES:g} times as fast without one disturbance, and gains {STRESS_BEYOND:g} times what the "
        "other gains",
        tuple((name,) for name in sorted(knobs.STRESS)),
        _collapse,
        of_key=True,
    ),
    Objective(
        "costly-setting",
        f"it is {HARMLESS_TIMES:g} times as fast without a host setting that is somebody's default",
        tuple((name, "kernel", *knobs.BESIDE.get(name, ())) for name in sorted(knobs.HARMLESS)),
        _collapse,
        of_key=True,
    ),
)

BY_NAME = {one.name: one for one in EVERY}
