"""Compares the simulator with the host's own TCP stack: the same scenarios on both, cell by cell.

Both engines are measured the same way: the smoothed RTT is the median over the samples of the steady part, not over
ACKs, which a kernel does not tell. The simulator is given the lab kernel's HZ, which no scenario can set there.
Repetitions marked as doubtful (the link fell behind, the processors had no time left) are told and not compared.

What cannot be compared is a disagreement: a cell or a repetition that one engine lacks, a value that is missing on
one side, a goodput, a round-trip time or a flow's share of zero. Only retransmissions may be zero.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tcpknee import _core, human
from tcpknee.errors import RunFolderError
from tcpknee.runs import api, engines, pool
from tcpknee.runs.folder import RunFolder
from tcpknee.runs.pool import Watcher
from tcpknee.runs.results import Run

_FOLDER = Path(__file__).parent

FULL = ("loss-free", "buffers", "loss", "shares")
QUICK = ("quick",)

GOODPUT_MEDIAN_PCT = 3.0
GOODPUT_WORST_PCT = 10.0
SRTT_PCT = 10.0
RETRANSMIT_POINTS = 0.5
RETRANSMIT_FACTOR = 1.5
SHARE = 0.1


@dataclass(frozen=True)
class Compared:
    """One metric of one cell on both engines; None where an engine has no value. `difference` is in per cent of the
    kernel's value, or in points or shares where `unit` says so, and None where it cannot be told."""

    suite: str
    cell: int
    label: str
    lossy: bool
    metric: str
    sim: float | None
    kernel: float | None
    difference: float | None
    unit: str
    tolerance: str
    ok: bool


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
    names: Sequence[str],
    out: Path,
    *,
    resume: bool,
    workers: int | None,
    say: Callable[[str], None],
    watch: Callable[[], Watcher],
) -> list[Pair]:
    """Runs each suite on the kernel and then in the simulator, into folders below `out`; `say` gets how long all of
    them take.

    Raises `RunFolderError` where `out` holds no run to go on with, or runs that would be replaced; `KernelUnsupported`
    where there can be no lab; else as `api.run` does.
    """
    _check(names, out, resume=resume)
    say(expectation(names, out, workers=workers))
    pairs = []
    for name in names:
        text = _text(name)
        kernel = _run(text, name, out, "kernel", workers, watch())
        simulated = f"{text}\n[sender]\nhz = {_hz(kernel)}\n\n[receiver]\nhz = {_hz(kernel)}\n"
        sim = _run(simulated, name, out, "sim", None, watch())
        pairs.append(Pair(name, sim, kernel))
    return pairs


def _run(text: str, name: str, out: Path, engine: str, workers: int | None, watcher: Watcher) -> Run:
    folder = out / f"{name}-{engine}"
    return api.run_text(
        text,
        f"conformance/{name}.toml",
        out=folder,
        resume=(folder / "run.json").is_file(),
        engine=engine,
        workers=workers or engines.default_workers(engine),
        watcher=watcher,
    )


def _check(names: Sequence[str], out: Path, *, resume: bool) -> None:
    held = [name for name in (*FULL, *QUICK) if _begun(out, name)]
    if resume and not any(name in held for name in names):
        got = f"runs of the suites {', '.join(held)}" if held else "no run of a suite" if out.is_dir() else "no folder"
        form = " with --quick" if held and names != QUICK else " without --quick" if held else ""
        raise RunFolderError(
            f"{out}: got {got}; expected runs of {', '.join(names)}, as `knee conform` writes them. "
            + (f"Go on{form}." if form else "Give the folder of an earlier `knee conform`, or leave out --resume.")
        )
    if held and not resume:
        raise RunFolderError(
            f"{out}: already holds runs of {', '.join(held)}. Finish them with --resume, or choose another --out."
        )


def expectation(names: Sequence[str], out: Path, *, workers: int | None) -> str:
    """Estimates how long all suites take on the kernel, less what `out` holds of them."""
    cells, labs, seconds = 0, 0, 0.0
    for name in names:
        scenario = _core.parse(_text(name), f"conformance/{name}.toml")
        missing = pool.order(len(scenario.cells), scenario.repeat, _kept(out / f"{name}-kernel"))
        cells += len(scenario.cells)
        labs += len(missing)
        count = workers or engines.default_workers("kernel")
        seconds += engines.real_seconds(scenario.cells, missing, count)
    asked = f"{len(names)} suite{'s' if len(names) > 1 else ''}, {cells} cells"
    if not labs:
        return f"{asked}: every lab is kept from before"
    length = human.duration(round(seconds * 1e9))
    return f"{asked}: {labs} repetitions in labs, in real time, about {length}, and as many in the simulator"


def _kept(folder: Path) -> Sequence[tuple[int, int]]:
    """Counts the repetitions that need not run again."""
    if not (folder / "run.json").is_file():
        return []
    meta = RunFolder.open(folder).read_json()
    if meta["status"] != "complete":
        return RunFolder(folder).parts()
    return pool.order(len(meta["cells"]), int(meta["repeat"]))


def _begun(out: Path, name: str) -> bool:
    return any((out / f"{name}-{engine}" / "run.json").is_file() for engine in ("kernel", "sim"))


def _text(name: str) -> str:
    return (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def _hz(run: Run) -> int:
    """Of the kernel that ran the labs; 250, Linux's default, where it does not tell."""
    return next((int(lab["hz"]) for lab in run.meta.get("labs", []) if lab.get("hz")), 250)


def compare(pairs: Iterable[Pair]) -> list[Compared]:
    """Compares every metric of every cell."""
    return [found for pair in pairs for found in _compare(pair)]


def _compare(pair: Pair) -> list[Compared]:
    sim, kernel = (_measure(run, _compared_reps(pair)) for run in (pair.sim, pair.kernel))
    cells = {int(cell["index"]): cell for run in (pair.sim, pair.kernel) for cell in run.meta["cells"]}
    return [
        _judge(pair.suite, cell, metric, sim.get(index, {}).get(metric), kernel.get(index, {}).get(metric))
        for index, cell in sorted(cells.items())
        for metric in (_OF_SHARED if len(cell["flows"]) > 1 else _OF_ONE)
    ]


_OF_ONE = ("goodput_bits_per_sec", "srtt_us_p50", "retransmit_pct")
_OF_SHARED = ("share",)


def _judge(suite: str, cell: Mapping[str, Any], metric: str, sim: float | None, kernel: float | None) -> Compared:
    lossy = any(key == "path.loss" and value not in ("0%", "0.0%") for key, value in cell["axes"])
    difference: float | None = None
    ok = False
    if metric in ("goodput_bits_per_sec", "srtt_us_p50"):
        limit = SRTT_PCT if metric == "srtt_us_p50" else GOODPUT_WORST_PCT
        unit, tolerance = "%", f"±{limit:g} %"
        if sim and kernel:
            difference = (sim - kernel) / kernel * 100
            ok = abs(difference) <= limit
    elif metric == "share":
        unit, tolerance = "", f"±{SHARE}"
        if sim and kernel:
            difference = sim - kernel
            ok = abs(difference) <= SHARE
    else:
        unit, tolerance = "points", f"±{RETRANSMIT_POINTS:g} or ×{RETRANSMIT_FACTOR:g}"
        if sim is not None and kernel is not None:
            difference = sim - kernel
            less, more = sorted((sim, kernel))
            ok = abs(difference) <= RETRANSMIT_POINTS or more <= less * RETRANSMIT_FACTOR
    return Compared(
        suite, int(cell["index"]), _label(cell), lossy, metric, sim, kernel, difference, unit, tolerance, ok
    )


def _label(cell: Mapping[str, Any]) -> str:
    return " ".join(f"{key.split('.')[-1]}={value}" for key, value in cell["axes"])


def _compared_reps(pair: Pair) -> dict[int, set[int]]:
    """Selects the repetitions to compare, by cell: all except those with a doubtful lab, or all if every one is
    doubtful."""
    doubtful = {(doubt.cell, rep) for doubt in pair.kernel.doubts for rep in doubt.reps}
    asked = set(range(int(pair.kernel.meta["repeat"])))
    cells = (int(cell["index"]) for cell in pair.kernel.meta["cells"])
    return {cell: {rep for rep in asked if (cell, rep) not in doubtful} or asked for cell in cells}


def _measure(run: Run, compared: Mapping[int, set[int]]) -> dict[int, dict[str, float | None]]:
    """Averages those repetitions by cell: no cell if a repetition is missing, None if a value is."""
    flows = run.flows.arrow()
    columns = {
        name: flows.column(name).to_numpy(zero_copy_only=False)
        for name in ("cell", "rep", "group", "goodput_bits_per_sec", "total_retrans", "data_segs_out")
    }
    at = {name: run.samples[name].to_numpy(zero_copy_only=False) for name in ("cell", "rep", "t_ns", "srtt_us")}
    found = {}
    for cell in run.meta["cells"]:
        index = int(cell["index"])
        reps = compared.get(index, set())
        here = (columns["cell"] == index) & np.isin(columns["rep"], list(reps))
        if not reps or set(columns["rep"][here].tolist()) != reps:
            continue
        goodput = columns["goodput_bits_per_sec"][here]
        steady = (at["cell"] == index) & (at["t_ns"] >= cell["warmup_ns"]) & (at["srtt_us"] > 0)
        srtts = [at["srtt_us"][steady & (at["rep"] == rep)] for rep in sorted(reps)]
        sent = float(columns["data_segs_out"][here].sum())
        first = float(goodput[columns["group"][here] == 0].sum())
        found[index] = {
            "goodput_bits_per_sec": _known(float(goodput.sum()) / len(reps)),
            "srtt_us_p50": statistics.fmean(map(np.median, srtts)) if all(map(len, srtts)) else None,
            "retransmit_pct": _known(float(columns["total_retrans"][here].sum()) * 100 / sent) if sent else None,
            # A flow that carried nothing has no share, and the others none of interest.
            "share": first / float(goodput.sum()) if (goodput > 0).all() else None,
        }
    return found


def _known(value: float) -> float | None:
    """Maps NaN, which nulls lead to, to None."""
    return value if math.isfinite(value) else None


def verdicts(compared: Sequence[Compared]) -> list[Verdict]:
    """What is judged over many cells: goodput without loss and with it, how many cells are outside, and how many values
    could not be compared."""
    judged = []
    for lossy, what in ((False, "without loss"), (True, "under loss")):
        goodput = [
            abs(found.difference)
            for found in compared
            if found.metric == "goodput_bits_per_sec" and found.lossy == lossy and found.difference is not None
        ]
        if goodput:
            n, median = len(goodput), statistics.median(goodput)
            judged.append(Verdict(f"goodput {what}, median", median, "%", GOODPUT_MEDIAN_PCT, n))
            judged.append(Verdict(f"goodput {what}, worst", max(goodput), "%", GOODPUT_WORST_PCT, n))
    for metric, what in (("srtt_us_p50", "srtt p50"), ("retransmit_pct", "retransmissions"), ("share", "shares")):
        cells = [found for found in compared if found.metric == metric]
        if cells:
            outside = sum(not found.ok for found in cells)
            judged.append(Verdict(f"{what}, cells outside", outside, "", 0, len(cells)))
    untold = sum(found.difference is None for found in compared)
    # Nothing compared is no agreement.
    judged.append(Verdict("values that cannot be compared", untold if compared else 1, "", 0, len(compared)))
    return judged
