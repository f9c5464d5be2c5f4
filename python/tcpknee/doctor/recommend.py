"""Which algorithm for whom: the paths that a host's connections take, each simulated under CUBIC and under BBR.

    for advice in advised(of_snapshot(snapshot)): ...

BBR needs a reason: it is advised where it carries clearly more. Within a data centre no path is the limit but the host,
so that requests per second on hosts whose work takes time decide there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tcpknee.errors import UsageError
from tcpknee.evidence import stats, written
from tcpknee.evidence.stats import MINIMAL_EFFECT, Estimate
from tcpknee.human import suggest
from tcpknee.live.which import inside, is_of_process
from tcpknee.runs import api
from tcpknee.runs.results import Run

from . import facts
from .snapshot import Snapshot

Algorithm = Literal["cubic", "bbr"]
KnownFrom = Literal["role", "now", "snapshot", "recording"]
"""Whence a path is known. Of "now" and "snapshot" its connections tell one instant, of "recording" all samples; what
"snapshot" and "recording" tell may be over."""

SEEDS = 5
DATA_CENTRE_RTT_US = 1_000
"""Up to here the path is one of a data centre: hosts are the limit, and queues are short."""
LEAST_RATE, MOST_RATE = 1_000_000, 1_000_000_000
"""Bounds of the simulated bottleneck in bit/s. Above, runs take long and a single flow is limited by its host."""
MSS_BYTES = 1_448
WAITS = 0.1
"""Share of the round trip that packets wait where a queue is being filled: a flow that losses hold fills none."""
HELD_BELOW = 2
"""Times the formula's rate: one instant's delivery rate lies about its mean as the window does, from half to once the
most, and random losses spread it further."""
BARE_METAL, GUEST = "published", "published-vm"
"""Profiles of hosts: what a timer or an interrupt costs a guest is several times what it costs a server."""


@dataclass(frozen=True)
class Path:
    """What a group of connections goes through."""

    name: str
    rtt_us: int
    loss_pct: float
    rate_bits_per_sec: int
    netns: str = ""
    remote: str = ""
    """private or public; "" where it is not known."""
    weight: float = 1.0
    """Bytes that went this way, or 1."""
    pacing_timer: str = "when-needed"
    """The kernel's rule for TCP's own pacing; "every-packet" from Linux 4.13 to 4.19."""
    costs: str = BARE_METAL
    """Profile of the host whose work takes time."""
    known_from: KnownFrom = "role"
    queue_us: int = 0
    """What its round trips take beyond the least of them, in the middle."""

    @property
    def may_fill_its_queue(self) -> bool:
        """Do packets wait so long that a full queue may be what loses them?"""
        return bool(self.loss_pct) and not self.is_in_data_centre and self.queue_us > WAITS * self.rtt_us

    @property
    def is_in_data_centre(self) -> bool:
        return self.rtt_us <= DATA_CENTRE_RTT_US

    @property
    def is_held_by_loss(self) -> bool:
        """Its rate is about what such losses let a loss-based algorithm have on any link, so that it tells nothing of
        this one: MSS / RTT · sqrt(3 / 2p), of Mathis et al., The Macroscopic Behavior of the TCP Congestion Avoidance
        Algorithm, CCR 27(3) 1997."""
        if self.is_in_data_centre or not self.loss_pct:
            return False
        most = MSS_BYTES * 8 / (self.rtt_us / 1e6) * math.sqrt(1.5 / (self.loss_pct / 100))
        return self.rate_bits_per_sec <= HELD_BELOW * most


ROLES: Mapping[str, tuple[Path, ...]] = {
    "data-centre": (Path("within the data centre", 100, 0.0, 10_000_000_000),),
    "public": (
        Path("near, wired", 20_000, 0.01, 100_000_000),
        Path("far, wired", 80_000, 0.1, 50_000_000),
        Path("far, lossy", 100_000, 1.5, 20_000_000),
    ),
}
"""Paths of a role whose connections are not known. Round figures, not a measured mix: `--from` has that."""


_FQ = "fq on the leaf that sends saves processor time; before Linux 4.13 BBR needs it."
"""As the rule `bbr-without-fq` has it: Linux 218af599fa63 (4.13, internal pacing)."""


@dataclass(frozen=True)
class Advice:
    """What is best for a path, and the numbers that decided it."""

    path: Path
    algorithm: Algorithm
    gain: Estimate
    """What BBR carries or answers, over what CUBIC does."""
    what: str
    """What `gain` compares."""
    without_losses: Estimate | None = None
    """The same where nothing is lost but by the queue; None: not asked, as losses are not the queue's."""

    @property
    def why(self) -> str:
        """The decision in a sentence."""
        ratio = _ratio(self.gain)
        if self.without_losses is not None and self.algorithm == "cubic":
            return (
                f"BBR has {ratio} the {self.what} of CUBIC if the {self.path.loss_pct:.3g} % were lost by chance. But "
                f"packets wait {self.path.queue_us / 1000:.3g} ms, and a queue that a flow fills loses packets itself: "
                f"without other losses BBR has {_ratio(self.without_losses)}. A recording tells which: knee whatif DIR "
                "--algorithms bbr1"
            )
        if self.algorithm == "bbr":
            return f"BBR has {ratio} the {self.what} of CUBIC. {_FQ}"
        if self.gain.high is not None and self.gain.high < 1:
            return f"BBR has {ratio} the {self.what} of CUBIC, which is less."
        if self.path.is_held_by_loss:
            path = f"--rtt {self.path.rtt_us / 1000:.3g}ms --loss {self.path.loss_pct:.3g}%"
            return (
                f"BBR has {ratio} the {self.what} of CUBIC on a link of that rate. But losses alone hold CUBIC to about"
                " that on any link: if this one has more, BBR carries more. Compare at its rate: knee compare cubic "
                f"bbr1 --rate RATE {path}"
            )
        return f"BBR has {ratio} the {self.what} of CUBIC: no gain of 5 % that is certain, so the simpler one."

    def json(self) -> dict[str, Any]:
        return {
            "path": self.path.name,
            "netns": self.path.netns,
            "remote": self.path.remote,
            "rtt_us": self.path.rtt_us,
            "loss_pct": self.path.loss_pct,
            "rate_bits_per_sec": self.path.rate_bits_per_sec,
            "weight": self.path.weight,
            "algorithm": self.algorithm,
            "queue_us": self.path.queue_us,
            "bbr_over_cubic": self.gain.json(),
            "bbr_over_cubic_without_losses": self.without_losses.json() if self.without_losses else None,
            "of": self.what,
            "costs": self.path.costs,
            "why": self.why,
        }


def _ratio(gain: Estimate) -> str:
    """`2.27× [1.99, 2.58]`."""
    return " ".join(filter(None, written.ratio(gain))).rstrip()


def _is_gain(gain: Estimate) -> bool:
    """Is it certain to be 5 % or more?"""
    return (gain.low if gain.low is not None else gain.mean) >= 1 + MINIMAL_EFFECT


def of_role(name: str) -> Sequence[Path]:
    """The paths of a role. Raises UsageError."""
    if name not in ROLES:
        raise UsageError(f'--role: got "{name}"; {suggest(name, list(ROLES), "expected one of")}')
    return ROLES[name]


def of_snapshot(snapshot: Snapshot, known_from: KnownFrom = "snapshot") -> list[Path]:
    """The paths of a snapshot's connections; those to itself, and those of which nothing is known, are left out.
    `known_from`: "now", or of a file."""
    version = facts.kernel(snapshot)
    is_old = version is not None and (4, 13) <= version < (4, 20)
    paths = of_groups(
        {
            "netns": snapshot.netns or "",
            "remote": row["remote"],
            "rtt_us": row["min_rtt_us_p50"] or row["srtt_us_p50"],
            "loss_pct": _share_pct(row["bytes_retrans"], row["bytes_sent"]),
            "rate_bits_per_sec": row["delivery_rate_bits_per_sec_max"],
            "weight": row["bytes_acked"],
            "queue_us": (row["srtt_us_p50"] or 0) - (row["min_rtt_us_p50"] or row["srtt_us_p50"] or 0),
        }
        for row in snapshot.rows("sockets")
        if row["remote"] != "loopback"
    )
    costs, timer = costs_of(snapshot), "every-packet" if is_old else "when-needed"
    return [replace(path, pacing_timer=timer, costs=costs, known_from=known_from) for path in paths]


def costs_of(snapshot: Snapshot) -> str:
    """The profile that fits a host: a guest's where it is one."""
    hypervisor = next((row["hypervisor"] for row in snapshot.rows("host")), None)
    return BARE_METAL if hypervisor in (None, "", "none") else GUEST


def of_groups(rows: Iterable[Mapping[str, Any]]) -> list[Path]:
    """Paths of rows with netns, remote, rtt_us, loss_pct, rate_bits_per_sec and weight, heaviest first; queue_us may
    be among them."""
    paths = []
    for row in rows:
        if row["rtt_us"] and row["rate_bits_per_sec"] and row["weight"]:
            words = ("to", row["remote"] or "all", "hosts at", f"{row['rtt_us'] / 1000:.3g} ms")
            rate = int(row["rate_bits_per_sec"])
            # The kernel's count of what was sent again is what the sender took for lost.
            loss = min(row["loss_pct"] or 0.0, 50.0)
            where, queue_us = (row["netns"] or "", row["remote"] or ""), max(int(row.get("queue_us") or 0), 0)
            known = (" ".join(words), int(row["rtt_us"]), loss, rate, *where, float(row["weight"]))
            paths.append(Path(*known, queue_us=queue_us))
    return sorted(paths, key=lambda path: (path.netns, -path.weight))


def heaviest(paths: Sequence[Path], most: int) -> list[Path]:
    """At most `most` paths: the heaviest of each namespace, then the next of each. In the order of `of_groups`."""
    places: dict[str, int] = {}
    ranked = []
    for path in sorted(paths, key=lambda path: -path.weight):
        places[path.netns] = places.get(path.netns, 0) + 1
        ranked.append((places[path.netns], path))
    kept = [path for _, path in sorted(ranked, key=lambda one: one[0])[:most]]
    return sorted(kept, key=lambda path: (path.netns, -path.weight))


def _share_pct(part: int | None, whole: int | None) -> float:
    return 100.0 * part / whole if part and whole else 0.0


def advised(paths: Sequence[Path], *, seed: int = 1, tell: Callable[[str], object] | None = None) -> list[Advice]:
    """The best algorithm for each path, by simulation. Raises EngineError."""
    found = []
    for path in paths:
        if tell is not None:
            tell(f"simulating {path.name}")
        gain, what = _requests(path, seed) if path.is_in_data_centre else _transfers(path, seed)
        without = None
        if path.may_fill_its_queue and _is_gain(gain):
            without, _ = _transfers(replace(path, loss_pct=0.0), seed)
        found.append(decided(path, gain, what, without))
    return found


def decided(path: Path, gain: Estimate, what: str, without_losses: Estimate | None = None) -> Advice:
    """BBR where its gain is certain to be 5 % or more, and where losses may be the queue's also without them, else
    CUBIC."""
    is_gain = _is_gain(gain) and (without_losses is None or _is_gain(without_losses))
    return Advice(path, "bbr" if is_gain else "cubic", gain, what, without_losses)


def _transfers(path: Path, seed: int) -> tuple[Estimate, str]:
    """One transfer without end at a time, through a buffer of one BDP."""
    seconds = min(max(100 * path.rtt_us / 1e6, 2.0), 20.0)
    run = api.run(
        duration=f"{seconds:.3f}s",
        warmup=f"{seconds / 10:.3f}s",
        repeat=SEEDS,
        seed=seed,
        samples=[],
        path={
            "rate": f"{min(max(path.rate_bits_per_sec, LEAST_RATE), MOST_RATE)}bit/s",
            "rtt": f"{path.rtt_us}us",
            "loss": f"{path.loss_pct:.4f}%",
            "buffer": "1bdp",
        },
        flow=[{"algorithm": ["cubic", "bbr1"]}],
    )
    return _gain(run, "goodput_bits_per_sec"), "goodput"


def _requests(path: Path, seed: int) -> tuple[Estimate, str]:
    """Small requests to a server whose only processor is the limit."""
    run = api.run(
        duration="600ms",
        warmup="200ms",
        repeat=SEEDS,
        seed=seed,
        samples=[],
        path={"rate": "10Gbit/s", "rtt": f"{path.rtt_us}us", "buffer": "1MiB", "loss": f"{path.loss_pct:.4f}%"},
        sender={"costs": path.costs, "pacing_timer": path.pacing_timer},
        flow=[
            {
                "algorithm": ["cubic", "bbr1"],
                "workload": "request-response",
                "request": "44B",
                "response": "5B",
                "depth": 4,
                "connections": 50,
                "service_time": "1us",
            }
        ],
    )
    return _gain(run, "requests_per_sec"), "requests per second"


def _gain(run: Run, column: str) -> Estimate:
    """Of each repetition what the second cell has over the first."""
    totals: dict[tuple[int, int], float] = {}
    for row in run.flows.arrow().select(["cell", "rep", column]).to_pylist():
        key = (row["cell"], row["rep"])
        totals[key] = totals.get(key, 0.0) + (row[column] or 0.0)
    found = stats.ratio([totals[1, rep] / max(totals[0, rep], 1.0) for cell, rep in totals if cell == 0])
    if found is None:
        # Nothing arrived under BBR either: no reason for it.
        return Estimate(1.0, None, None, SEEDS)
    return found


@dataclass(frozen=True)
class OfNamespace:
    """What one network namespace should do: its default, and the paths that want the other algorithm."""

    netns: str
    default: Algorithm
    others: Sequence[Advice]
    is_of_file: bool = False
    """It is known from what was written, and may be gone."""

    def commands(self) -> list[str]:
        """For a person, whose routes we do not know. A line that begins with # is a remark."""
        prefix = f"{inside(self.netns)} " if self.netns else ""
        lines = []
        if self.is_of_file and is_of_process(self.netns):
            lines.append(f"# {self.netns} named a process within the namespace then; name one that is in it now:")
        lines.append(f"{prefix}sysctl -w net.ipv4.tcp_congestion_control={self.default}")
        lines += sorted({f"{prefix}ip route change PREFIX … congctl {advice.algorithm}" for advice in self.others})
        return lines


def by_namespace(found: Sequence[Advice]) -> list[OfNamespace]:
    """For each namespace the algorithm that most of its bytes want."""
    spaces = []
    for netns in dict.fromkeys(advice.path.netns for advice in found):
        own = [advice for advice in found if advice.path.netns == netns]
        weights: dict[Algorithm, float] = {"cubic": 0.0, "bbr": 0.0}
        for advice in own:
            weights[advice.algorithm] += advice.path.weight
        default: Algorithm = "bbr" if weights["bbr"] > weights["cubic"] else "cubic"
        is_of_file = any(advice.path.known_from in ("snapshot", "recording") for advice in own)
        others = [advice for advice in own if advice.algorithm != default]
        spaces.append(OfNamespace(netns, default, others, is_of_file))
    return spaces
