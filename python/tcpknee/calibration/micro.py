"""The runs by which a host is calibrated, and those that are held back to check the result.

Both hosts of each are on this machine, joined by a veth pair. It passes packets whole, or the sending host cuts them in
software and the receiving one merges them again (`split`). `one` processor serves both, so that it is always busy and
its time is that of the work; with `two`, each host has its own, and wakes the other's.
"""

from __future__ import annotations

from dataclasses import dataclass

DURATION_MS = 700
WARMUP_MS = 200
SPLIT = ", split"
"""At the end of a run's name."""


@dataclass(frozen=True)
class Micro:
    """A short run. `per`: of what the cost is told: a request or a byte. `elapsed`: what is compared is time, and not a
    processor's. `split`: whether packets are cut and merged again."""

    name: str
    algorithm: str
    workload: str
    per: str
    cpus: str = "one"
    elapsed: bool = False
    split: bool = False

    def text(self, costs: str = "none") -> str:
        """Its scenario; `costs`: the profile of the simulator's hosts."""
        sender, receiver = ("0", "0") if self.cpus == "one" else ("0", "1")
        return "\n".join(
            [
                f'title = "{self.name}"',
                f'duration = "{DURATION_MS}ms"',
                f'warmup = "{WARMUP_MS}ms"',
                f'sample_interval = "{DURATION_MS}ms"',
                "samples = []",
                "[path]",
                'backend = "veth"',
                'rate = "unlimited"',
                'rtt = "0s"',
                f'super_packets = "{"split" if self.split else "keep"}"',
                *_host("sender", sender, costs, self.split),
                *_host("receiver", receiver, costs, self.split),
                "[[flow]]",
                f'algorithm = "{self.algorithm}"',
                self.workload,
                "",
            ]
        )


def _host(side: str, cpu: str, costs: str, merges: bool) -> list[str]:
    gro = f"gro = {str(merges).lower()}"
    return [f"[{side}]", f'app_cpus = "{cpu}"', gro, "cpus = 2", f'costs = "{costs}"']


def requests(
    size: int,
    algorithm: str = "cubic",
    *,
    more: str = "",
    cpus: str = "one",
    elapsed: bool = False,
    split: bool = False,
) -> Micro:
    """One request of `size` bytes after the other, each answered by as many."""
    workload = f'workload = "request-response"\nrequest = "{size}B"\nresponse = "{size}B"\n{more}'
    words = f", {more.replace(chr(10), ', ')}" if more else ""
    name = f"requests of {size} B{words}, {algorithm}, {cpus} cpu" + SPLIT * split
    return Micro(name, algorithm, workload, "request", cpus, elapsed, split)


def stream(size: int, algorithm: str = "cubic", *, split: bool = False) -> Micro:
    """Bytes without end, written `size` at a time."""
    workload = f'workload = "bulk"\nwrite = "{size}B"'
    return Micro(f"stream by {size} B, {algorithm}" + SPLIT * split, algorithm, workload, "byte", split=split)


CALIBRATED: tuple[Micro, ...] = (
    *(requests(size) for size in (1, 256, 1024, 8192, 65536)),
    requests(256, "bbr1"),
    *(requests(64, more=f"depth = {depth}") for depth in (8, 32)),
    *(requests(64, more=f"connections = {count}") for count in (4, 16, 64)),
    *(requests(size, cpus="two", elapsed=True) for size in (1, 1024)),
    *(stream(size) for size in (128, 1024, 16384, 131072)),
    *(requests(size, split=True) for size in (8192, 65536)),
    *(stream(size, split=True) for size in (16384, 131072)),
)
"""What the costs are fitted to."""

HELD_BACK: tuple[Micro, ...] = (
    *(requests(size, algorithm) for algorithm in ("cubic", "bbr1") for size in (64, 512, 2048, 4096, 16384, 32768)),
    *(stream(size) for size in (64, 256, 512, 4096, 8192, 65536)),
    *(requests(64, more=f"connections = {count}", cpus="two", elapsed=True) for count in (1, 8, 50, 100)),
    *(requests(size, split=True) for size in (4096, 32768)),
    *(stream(size, split=True) for size in (4096, 65536)),
)
"""What the fitted model is held against."""

DIFFERS: tuple[Micro, ...] = tuple(stream(size, "bbr1") for size in (1024, 131072))
"""Runs in which the model does something else than the kernel, as counters show (docs/host.md), so that their times say
nothing of costs: neither fitted to nor held back, but measured, for the error to be known."""
