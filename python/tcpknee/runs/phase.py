"""Whether the shares of flows depend on a phase that no real network keeps.

Where transmission and round-trip times are exact, the packet of the same flow meets the full queue again and again
(Floyd, Jacobson: On Traffic Phase Effects in Packet-Switched Gateways, 1992): shares of two flows behind drop-tail then
differ by several times between round-trip times that differ by a per cent. One repetition more, with hosts that are
late by half a packet's time in the mean, shows it: where a flow's share is then outside of what its repetitions say,
the figures are those of a phase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tcpknee import _core, human
from tcpknee.errors import AlgorithmFailed
from tcpknee.evidence import stats

from . import calls, pool, tables
from .arrays import numbers

if TYPE_CHECKING:
    import pyarrow as pa

    from .job import Job
    from .results import Run

Shares = npt.NDArray[np.float64]

LEAST_SHARE = 0.05
"""A share that moves by less is no other result."""


class Late:
    """The simulator with late hosts, as the pool takes it."""

    def __init__(self, scenario: _core.Scenario, run: Callable[..., Any] | None = None) -> None:
        self.cells = scenario.cells
        self._run = run or scenario.run_late

    def run_cell(self, index: int, rep: int, *, cancel: Any = None, progress: Any = None) -> pa.Table:
        """The flows of one repetition."""
        noise_ns = self.cells[index]["phase_noise_ns"]
        return tables.as_table(self._run(index, rep, noise_ns, cancel=cancel))


@contextmanager
def late_hosts(scenario: _core.Scenario, text: str, file: str) -> Iterator[Late]:
    """`Late`, with processes of their own for algorithms of files."""
    if not scenario.algorithm_files:
        yield Late(scenario)
        return
    from . import isolated

    with isolated.Isolated(scenario, text, file) as engine:
        yield Late(scenario, engine.run_late)


RunLate = Callable[[Sequence[pool.Key]], Mapping[pool.Key, "pa.Table | AlgorithmFailed"]]
"""Runs units with late hosts and returns the flows of each, or how an algorithm from a file ended it."""


def pooled(job: Job, workers: int) -> RunLate:
    """Runs them on this host."""

    def run(keys: Sequence[pool.Key]) -> Mapping[pool.Key, pa.Table | AlgorithmFailed]:
        late: dict[pool.Key, pa.Table] = {}
        with late_hosts(job.scenario, job.text, job.file) as engine:
            failures = pool.execute(engine, keys, late.__setitem__, cancel=_core.Cancel(), workers=workers)
        return {**late, **failures}

    return run


def cautions(run: Run, run_late: RunLate, watcher: pool.Watcher) -> dict[int, str]:
    """What is to be said of each cell whose shares depend on the phase.

    A cell is looked at when its flows may have a phase and it has several repetitions: without an interval there is
    nothing that a further repetition could be outside of.
    """
    chosen = {cell["index"]: cell for cell in run.meta["cells"] if cell["phase_noise_ns"] is not None}
    if not chosen or run.meta["repeat"] < 2:
        return {}
    with watcher.phase("Repeating cells with late hosts"):
        late = run_late([(cell, 0) for cell in chosen])
    columns = [numbers(run.flows[name]) for name in ("cell", "rep", "goodput_bits_per_sec")]
    found = {}
    for cell, about in chosen.items():
        of_late, noise_ns = late[cell, 0], about["phase_noise_ns"]
        if isinstance(of_late, AlgorithmFailed):
            found[cell] = (
                f"whether the shares depend on the phase is not known: where hosts are late by {_mean(noise_ns)}, "
                f"{calls.words(of_late)}"
            )
            continue
        _, reps, goodput = (column[columns[0] == cell] for column in columns)
        usual = np.array([_shares(goodput[reps == rep]) for rep in np.unique(reps)])
        shares = _shares(numbers(of_late["goodput_bits_per_sec"]))
        names = [about["flows"][group]["name"] for group in of_late["group"].to_pylist()]
        text = _judge(usual, shares, names, noise_ns)
        if text:
            found[cell] = text
    return found


def _judge(usual: Shares, late: Shares, names: Sequence[str], noise_ns: int) -> str:
    """Says which flow moves most, if one does; `usual` has a row for each repetition."""
    mean = usual.mean(axis=0)
    # Where one further repetition lies in 95 of 100 cases.
    spread = stats.t_quantile(len(usual) - 1) * usual.std(axis=0, ddof=1) * np.sqrt(1 + 1 / len(usual))
    beyond = np.abs(late - mean) - np.maximum(spread, LEAST_SHARE)
    # Of two flows one loses what the other gains, but for rounding: the first is told.
    flow = int(beyond.round(9).argmax())
    if beyond[flow] <= 0:
        return ""
    return (
        f"the shares depend on the phase: {names[flow]} (flow {flow}) has {mean[flow]:.2f} of the goodput, and "
        f"{late[flow]:.2f} where hosts are late by {_mean(noise_ns)}; set sender.noise and "
        "receiver.noise, or path.jitter, to have figures that do not"
    )


def _mean(noise_ns: int) -> str:
    return f"{human.quantity('time', noise_ns / 1e3)} in the mean, half a packet's time"


def _shares(goodput: npt.NDArray[np.float64]) -> Shares:
    """Each flow's share."""
    total = goodput.sum()
    return goodput / total if total else np.full(len(goodput), 1 / len(goodput))
