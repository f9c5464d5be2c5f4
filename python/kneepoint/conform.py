"""How far the simulator and the host's own TCP stack are apart: the same scenarios on both, compared cell by cell.

Both engines are measured the same way: the smoothed RTT is the median over the samples of the steady part, not over
ACKs, which a kernel does not tell. The simulator is given the lab kernel's HZ, which no scenario can set there.
Repetitions marked as doubtful (the link fell behind, the processors had no time left) are told and not compared.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import api, engines
from .errors import EngineError
from .pool import Watcher
from .results import Run

_FOLDER = Path(__file__).parent / "conformance"

FULL = ("loss-free", "buffers", "loss", "shares")
QUICK = ("quick",)

GOODPUT_MEDIAN_PCT = 3.0
GOODPUT_WORST_PCT = 10.0
LOSSY_GOODPUT_MEDIAN_PCT = 20.0
SRTT_PCT = 10.0
RETRANSMIT_POINTS = 0.5
RETRANSMIT_FACTOR = 1.5
SHARE = 0.1


@dataclass(frozen=True)
class Compared:
    """One metric of one cell on both engines. `difference` is in per cent of the kernel's value, or in points or
    shares where `unit` says so; `ok` is None where only the median over cells is judged."""

    suite: str
    cell: int
    label: str
    metric: str
    sim: float
    kernel: float
    difference: float
    unit: str
    tolerance: str
    ok: bool | None


@dataclass(frozen=True)
class Verdict:
    """A tolerance over many cells."""

    what: str
    value: float
    unit: str
    limit: float
    cells: int

    @property
    def ok(self) -> bool:
        return self.value <= self.limit


@dataclass(frozen=True)
class Pair:
    """The two runs of a suite."""

    suite: str
    sim: Run
    kernel: Run


def suites(*, quick: bool) -> tuple[str, ...]:
    """Names of the scenarios that are run."""
    return QUICK if quick else FULL


def run(
    names: Sequence[str], out: Path, *, resume: bool, workers: int | None, watch: Callable[[], Watcher]
) -> list[Pair]:
    """Runs each suite on the kernel and then in the simulator, into folders below `out`.

    Raises `KernelUnsupported` where there can be no lab, else as `api.run` does.
    """
    pairs = []
    for name in names:
        text = (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
        kernel = _run(text, name, out, "kernel", resume, workers, watch())
        simulated = f"{text}\n[sender]\nhz = {_hz(kernel)}\n\n[receiver]\nhz = {_hz(kernel)}\n"
        sim = _run(simulated, name, out, "sim", resume, None, watch())
        pairs.append(Pair(name, sim, kernel))
    return pairs


def _run(text: str, name: str, out: Path, engine: str, resume: bool, workers: int | None, watcher: Watcher) -> Run:
    folder = out / f"{name}-{engine}"
    begun = resume and (folder / "run.json").is_file()
    return api.run_text(
        text,
        f"conformance/{name}.toml",
        out=folder,
        resume=begun,
        force=not begun,
        engine=engine,
        workers=workers or engines.default_workers(engine),
        watcher=watcher,
    )


def _hz(run: Run) -> int:
    """Of the kernel that ran the labs; 250, Linux's default, where it does not tell."""
    return next((int(lab["hz"]) for lab in run.meta.get("labs", []) if lab.get("hz")), 250)


def compare(pairs: Iterable[Pair]) -> list[Compared]:
    """Every metric of every cell."""
    return [found for pair in pairs for found in _compare(pair)]


def _compare(pair: Pair) -> list[Compared]:
    doubtful = {(doubt.cell, rep) for doubt in pair.kernel.doubts for rep in doubt.reps}
    measured = {"sim": _measure(pair.sim, doubtful), "kernel": _measure(pair.kernel, doubtful)}
    found = []
    for cell in pair.kernel.meta["cells"]:
        index = int(cell["index"])
        label = _label(cell)
        sim, kernel = measured["sim"].get(index), measured["kernel"].get(index)
        if sim is None or kernel is None:
            raise EngineError(f"{pair.suite}: cell {index} was not run on both engines; go on with --resume.")
        shared = len(cell["flows"]) > 1
        lossy = any(key == "path.loss" and value not in ("0%", "0.0%") for key, value in cell["axes"])

        def add(
            metric: str, unit: str, difference: float, tolerance: str, ok: bool | None, index: int = index,
            label: str = label, sim: Mapping[str, float] = sim, kernel: Mapping[str, float] = kernel,
        ) -> None:  # fmt: skip
            values = sim[metric], kernel[metric]
            found.append(Compared(pair.suite, index, label, metric, *values, difference, unit, tolerance, ok))

        if shared:
            apart = sim["share"] - kernel["share"]
            add("share", "", apart, f"±{SHARE}", abs(apart) <= SHARE)
            continue
        apart = _percent(sim["goodput_bits_per_sec"], kernel["goodput_bits_per_sec"])
        if lossy:
            add("goodput_bits_per_sec", "%", apart, f"median {LOSSY_GOODPUT_MEDIAN_PCT:g} %", None)
        else:
            add("goodput_bits_per_sec", "%", apart, f"±{GOODPUT_WORST_PCT:g} %", abs(apart) <= GOODPUT_WORST_PCT)
        apart = _percent(sim["srtt_us_p50"], kernel["srtt_us_p50"])
        add("srtt_us_p50", "%", apart, f"±{SRTT_PCT:g} %", abs(apart) <= SRTT_PCT)
        ours, theirs = sim["retransmit_pct"], kernel["retransmit_pct"]
        within = abs(ours - theirs) <= RETRANSMIT_POINTS or (
            min(ours, theirs) > 0 and max(ours, theirs) / min(ours, theirs) <= RETRANSMIT_FACTOR
        )
        tolerance = f"±{RETRANSMIT_POINTS:g} or ×{RETRANSMIT_FACTOR:g}"
        add("retransmit_pct", "points", ours - theirs, tolerance, within)
    return found


def _percent(ours: float, theirs: float) -> float:
    return (ours - theirs) / theirs * 100 if theirs else 0.0


def _label(cell: Mapping[str, Any]) -> str:
    return " ".join(f"{key.split('.')[-1]}={value}" for key, value in cell["axes"])


def _measure(run: Run, doubtful: set[tuple[int, int]]) -> dict[int, dict[str, float]]:
    """Means over repetitions, by cell. Those whose lab was not what was asked are left out, on both engines, unless
    there is no other."""
    flows = run.flows.arrow()
    columns = {
        name: flows.column(name).to_numpy(zero_copy_only=False)
        for name in ("cell", "rep", "group", "goodput_bits_per_sec", "total_retrans", "data_segs_out")
    }
    samples = run.samples.arrow()
    at = {name: samples.column(name).to_numpy(zero_copy_only=False) for name in ("cell", "rep", "t_ns", "srtt_us")}
    found = {}
    for cell in run.meta["cells"]:
        here = columns["cell"] == cell["index"]
        if not here.any():
            continue
        sound = [rep for rep in np.unique(columns["rep"][here]) if (cell["index"], int(rep)) not in doubtful]
        if sound:
            here &= np.isin(columns["rep"], sound)
        goodput = columns["goodput_bits_per_sec"][here]
        reps = len(np.unique(columns["rep"][here]))
        sent = int(columns["data_segs_out"][here].sum())
        first = goodput[columns["group"][here] == 0].sum()
        taken = np.isin(at["rep"], np.unique(columns["rep"][here]))
        steady = (at["cell"] == cell["index"]) & taken & (at["t_ns"] >= cell["warmup_ns"]) & (at["srtt_us"] > 0)
        medians = [float(np.median(at["srtt_us"][steady & (at["rep"] == rep)])) for rep in np.unique(at["rep"][steady])]
        found[int(cell["index"])] = {
            "goodput_bits_per_sec": float(goodput.sum()) / reps,
            "srtt_us_p50": statistics.fmean(medians) if medians else 0.0,
            "retransmit_pct": int(columns["total_retrans"][here].sum()) * 100 / sent if sent else 0.0,
            "share": float(first / goodput.sum()) if goodput.sum() else 0.0,
        }
    return found


def verdicts(compared: Sequence[Compared]) -> list[Verdict]:
    """What is judged over many cells: goodput without loss and with it, and how many cells are outside."""
    goodput = [found for found in compared if found.metric == "goodput_bits_per_sec"]
    clean = [abs(found.difference) for found in goodput if found.ok is not None]
    lossy = [abs(found.difference) for found in goodput if found.ok is None]
    judged = []
    if clean:
        judged.append(
            Verdict("goodput without loss, median", statistics.median(clean), "%", GOODPUT_MEDIAN_PCT, len(clean))
        )
        judged.append(Verdict("goodput without loss, worst", max(clean), "%", GOODPUT_WORST_PCT, len(clean)))
    if lossy:
        median = statistics.median(lossy)
        judged.append(Verdict("goodput under loss, median", median, "%", LOSSY_GOODPUT_MEDIAN_PCT, len(lossy)))
    for metric, what in (("srtt_us_p50", "srtt p50"), ("retransmit_pct", "retransmissions"), ("share", "shares")):
        cells = [found for found in compared if found.metric == metric]
        if cells:
            outside = sum(not found.ok for found in cells)
            judged.append(Verdict(f"{what}, cells outside", outside, "", 0, len(cells)))
    return judged
