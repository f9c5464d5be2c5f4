"""The engines: what can run the repetitions of a scenario. A run names one, or several; all fill the same tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tcpknee import human, workloads

if TYPE_CHECKING:
    import pyarrow as pa

    from tcpknee import _core

    from .folder import RunFolder, Written
    from .job import Job
    from .run_as import User

NAMES = ("sim", "kernel", "guest", "hosts")
"""sim: the packet-level simulator, the default. kernel: the host's own TCP stack in a lab. guest: that of another
kernel, in a lab within a guest of virtual time. hosts: those of two hosts of the user's, over the path between them."""

OF_KERNELS = NAMES[1:]
"""Those that run the TCP of real kernels. What the simulator did it can do again."""

PREPARING = {
    "sim": "Starting the simulator",
    "kernel": "Loading the algorithms into the kernel",
    "guest": "Preparing the guest kernels",
    "hosts": "Connecting to the hosts",
}
"""What each does before its first repetition."""

LAB_SECONDS = 1.5
"""What a lab needs beside its scenario's duration: interpreters, namespaces, the end of connections."""


class Simulator:
    """The simulator in this process; each thread that calls it uses a processor of its own."""

    def __init__(self, scenario: _core.Scenario) -> None:
        self.scenario = scenario
        self.cells = scenario.cells

    def run_cell(
        self, index: int, rep: int, *, cancel: Any = None, progress: Callable[[int], object] | None = None
    ) -> dict[str, pa.Table]:
        """The tables of one repetition."""
        from . import tables

        return tables.of_simulator(self.scenario.run_cell(index, rep, cancel=cancel, progress=progress))


class Streaming:
    """The same with the rows of a repetition written into its part while it runs."""

    def __init__(self, scenario: _core.Scenario, parts: RunFolder) -> None:
        self.scenario, self.parts = scenario, parts
        self.cells = scenario.cells

    def run_cell(
        self, index: int, rep: int, *, cancel: Any = None, progress: Callable[[int], object] | None = None
    ) -> Written:
        """The part of one repetition. Raises RunFolderError where it cannot be written."""
        from .folder import Written

        with self.parts.writing_part((index, rep)) as part:
            packets = self.scenario.run_cell_into(part, index, rep, cancel=cancel, progress=progress)
        return Written(part, {"data_packets": packets})


@contextmanager
def of(name: str, job: Job) -> Iterator[Any]:
    """The engine of that name, ready to run the job's repetitions, with what it needs of the host until the end."""
    if name == "sim" and job.scenario.algorithm_files:
        from . import isolated

        with isolated.Isolated(job.scenario, job.text, job.file) as found:
            yield found
        return
    if name == "sim":
        yield Streaming(job.scenario, job.parts) if job.parts else Simulator(job.scenario)
        return
    from . import between, guest, kernel

    made = {"kernel": kernel.engine, "guest": guest.engine, "hosts": between.engine}
    with made[name](job) as found:
        yield found


def in_real_time(name: str) -> bool:
    """Whether its clock does not stop, so that repetitions take time from each other, and what a path does meanwhile is
    in them."""
    return name in ("kernel", "hosts")


def default_workers(name: str) -> int:
    """How many repetitions run at once: one per processor that this process may use; one in real time."""
    return 1 if in_real_time(name) else len(os.sched_getaffinity(0))


def expectation(
    name: str,
    cells: Sequence[Mapping[str, Any]],
    keys: Sequence[tuple[int, int]],
    workers: int,
    user: User | None = None,
    pause_sec: float = 0.0,
) -> str:
    """What to say before a run of those repetitions begins; empty where it takes as long as it takes. `user`: who runs
    its programs. `pause_sec`: between blocks."""
    if not in_real_time(name) or not keys:
        return ""
    seconds = real_seconds(cells, keys, workers, pause_sec)
    kinds = [workloads.of(flow["workload"]) for cell in cells for flow in cell["flows"]]
    endless = all(kind["counts"] == "goodput" or kind["draws"] for kind in kinds)
    text = f"in real time, {'about' if endless else 'at most'} {human.duration(round(seconds * 1e9))}"
    if workers > 1:
        text += f"; {workers} labs at once share the processors and may disturb each other"
    if user is not None:
        text += f"; its programs run as {user.words}"
    return text


def real_seconds(
    cells: Sequence[Mapping[str, Any]], keys: Sequence[tuple[int, int]], workers: int, pause_sec: float = 0.0
) -> float:
    """How long labs take for those repetitions, with a pause between blocks."""
    lengths = {int(cell["index"]): int(cell["duration_ns"]) for cell in cells}
    pauses_sec = pause_sec * max(len({rep for _, rep in keys}) - 1, 0)
    return sum(lengths[cell] / 1e9 + LAB_SECONDS for cell, _ in keys) / max(min(workers, len(keys)), 1) + pauses_sec
