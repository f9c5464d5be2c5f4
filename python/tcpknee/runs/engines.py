"""The engines: what can run the repetitions of a scenario. A run names one; both fill the same tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpknee import human, workloads
from tcpknee.errors import EngineError

if TYPE_CHECKING:
    import pyarrow as pa

    from tcpknee import _core

    from .folder import RunFolder, Written
    from .run_as import User

NAMES = ("sim", "kernel")
"""sim: the packet-level simulator, the default. kernel: the host's own TCP stack in a lab."""

LAB_SECONDS = 1.5
"""What a lab needs beside its scenario's duration: interpreters, namespaces, the end of connections."""


@dataclass(frozen=True)
class Job:
    """What is run: a scenario that was read, its text and name, and where programs may leave what they print.

    `parts`: the folder that a simulated repetition's rows go to while it runs; None keeps them in memory. `bpf`: the
    kernel engine takes our build of an algorithm also where the kernel has its own. `user`: who the scenario's programs
    run as; None where it has none. `allow_host_settings`: what the kernel has for the whole machine may be set.
    `measure`: instruments for what a repetition costs the host, of the kernel engine.
    """

    scenario: _core.Scenario
    text: str
    file: str
    output: Path | None = None
    parts: RunFolder | None = None
    bpf: bool = False
    user: User | None = None
    allow_host_settings: bool = False
    measure: tuple[str, ...] = ()


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
    if name == "sim":
        yield Streaming(job.scenario, job.parts) if job.parts else Simulator(job.scenario)
        return
    from . import kernel

    with kernel.engine(job) as found:
        yield found


@contextmanager
def algorithms(scenario: _core.Scenario, file: str, *, bpf: bool) -> Iterator[dict[str, str]]:
    """What the kernel calls each algorithm of a scenario, by its name and the parameters that are set; it has all of
    them until the end.

    `bpf`: our build also where the kernel has its own. Raises `KernelUnsupported`, `EngineError` where that cannot be.
    """
    from tcpknee import _core

    try:
        loaded = _core.load_for_run(scenario, ours=bpf)
    except EngineError as error:
        raise type(error)(f"{file}: {error}") from None
    with loaded:
        yield dict(loaded.names)


def default_workers(name: str) -> int:
    """How many repetitions run at once: one per processor that this process may use; one on the kernel, where they
    would take time from each other that the clock does not stop for."""
    return len(os.sched_getaffinity(0)) if name == "sim" else 1


def runs_programs(cells: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a flow is made by programs of the scenario's own."""
    return any(workloads.of(flow["workload"])["counts"] == "programs" for cell in cells for flow in cell["flows"])


def expectation(
    name: str,
    cells: Sequence[Mapping[str, Any]],
    keys: Sequence[tuple[int, int]],
    workers: int,
    user: User | None = None,
) -> str:
    """What to say before a run of those repetitions begins; empty where it takes as long as it takes. `user`: who runs
    its programs."""
    if name == "sim" or not keys:
        return ""
    seconds = real_seconds(cells, keys, workers)
    kinds = [workloads.of(flow["workload"]) for cell in cells for flow in cell["flows"]]
    endless = all(kind["counts"] == "goodput" or kind["draws"] for kind in kinds)
    text = f"in real time, {'about' if endless else 'at most'} {human.duration(round(seconds * 1e9))}"
    if workers > 1:
        text += f"; {workers} labs at once share the processors and may disturb each other"
    if user is not None:
        text += f"; its programs run as {user.words}"
    return text


def real_seconds(cells: Sequence[Mapping[str, Any]], keys: Sequence[tuple[int, int]], workers: int) -> float:
    """How long labs take for those repetitions."""
    lengths = {int(cell["index"]): int(cell["duration_ns"]) for cell in cells}
    return sum(lengths[cell] / 1e9 + LAB_SECONDS for cell, _ in keys) / max(min(workers, len(keys)), 1)
