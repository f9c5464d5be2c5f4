"""How well `knee whatif` predicts: records a population of mixed paths with one algorithm, predicts the other, records
that too, and compares.

    python tools/whatif_study.py --out runs/whatif-sim                     # 200 paths on the simulator
    python tools/whatif_study.py --out runs/whatif-kernel --engine kernel  # real time, about 35 minutes on two labs

The prediction is given what a recorder would have seen: rows of `sockets`, without what the path is. The simulator that
records has other seeds and late hosts (`sender.noise`). docs/whatif.md has the figures.
"""

from __future__ import annotations

import argparse
import csv
import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kneepoint.datasets.dataset import Dataset
from kneepoint.fleet.whatif import predict, recorded, told
from kneepoint.runs import api, engines
from kneepoint.say import aligned

SEED = 20
SECONDS = 8
EACH = 25
CLASSES = ("plain", "shallow", "bloated", "lossy", "policed", "bursty", "shared", "crossed")
DIRECTIONS = (("cubic", "bbr1"), ("bbr1", "cubic"))
NEW_OF = dict(DIRECTIONS)


@dataclass(frozen=True)
class Drawn:
    """A path of the population, in the words of a scenario."""

    rate: float
    rtt_ms: float
    buffer_ms: float
    loss_pct: float = 0.0
    policer_rate: float | None = None
    policer_kb: float = 0.0
    aggregate_ms: float = 0.0
    flows: int = 1

    def row(self) -> dict[str, str]:
        return {
            "path.rate": f"{self.rate:.0f}bit/s",
            "path.rtt": f"{self.rtt_ms:.2f}ms",
            "path.buffer": f"{self.buffer_ms:.2f}ms",
            "path.loss": f"{self.loss_pct:.3f}%",
            "path.aggregate": f"{self.aggregate_ms:.2f}ms",
            "flow.0.count": str(self.flows),
            **self._policer(),
        }

    def _policer(self) -> dict[str, str]:
        if self.policer_rate is None:
            return {}
        return {"path.policer_rate": f"{self.policer_rate:.0f}bit/s", "path.policer_burst": f"{self.policer_kb:.0f}kB"}


def drawn(kind: str, rng: np.random.Generator) -> Drawn:
    """A path of that class."""

    def log(low: float, high: float) -> float:
        return float(math.exp(rng.uniform(math.log(low), math.log(high))))

    rate, rtt_ms = log(2e6, 40e6), log(10, 120)
    # A few packets at least: below, the path is a link that cannot be used.
    least_ms = 6 * 1500 * 8 / rate * 1e3
    bdps = {"shallow": (0.1, 0.4), "bloated": (4, 10), "lossy": (0.8, 3), "policed": (1, 3)}.get(kind, (0.5, 3))
    buffer_ms = min(max(log(*bdps) * rtt_ms, least_ms), 600)
    path = {"rate": rate, "rtt_ms": rtt_ms, "buffer_ms": buffer_ms}
    if kind == "lossy":
        return Drawn(**path, loss_pct=log(0.05, 1.5))
    if kind == "policed":
        return Drawn(**path, policer_rate=rate * rng.uniform(0.2, 0.6), policer_kb=log(50, 400))
    if kind == "bursty":
        return Drawn(**path, aggregate_ms=log(2, 10))
    return Drawn(**path, flows=2 if kind == "shared" else 1)


def population(each: int) -> dict[str, list[Drawn]]:
    """By class, drawn from the study's seed."""
    rng = np.random.default_rng(SEED)
    return {kind: [drawn(kind, rng) for _ in range(each)] for kind in CLASSES}


def scenario(kind: str, noise: str) -> str:
    """Both algorithms on every path of a class; what crosses is the same for both, and is not recorded."""
    crossing = (
        'workload = "web"\nname = "hidden"\nalgorithm = "cubic"\narrivals = "2/s"\n'
        'sizes = "lognormal median 60kB sigma 1.2 from 5kB to 2MB"\n'
    )
    return (
        f'duration = "{SECONDS}s"\nsample_interval = "100ms"\nseed = {SEED}\n'
        f'[sender]\nnoise = "{noise}"\n[receiver]\nnoise = "{noise}"\n'
        '[[flow]]\nalgorithm = ["cubic", "bbr1"]\nname = "recorded"\n'
        + (f"[[flow]]\n{crossing}" if kind == "crossed" else "")
        + f'[[sample]]\nfile = "{kind}.csv"\n'
    )


def record(out: Path, engine: str, each: int, workers: int | None) -> None:
    """Runs every class into a folder of its own; one that is there already is kept."""
    for kind, paths in population(each).items():
        folder = out / kind
        if (folder / "run.json").exists():
            continue
        out.mkdir(parents=True, exist_ok=True)
        with (out / f"{kind}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(paths[0].row()))
            writer.writeheader()
            writer.writerows(path.row() for path in paths)
        text = out / f"{kind}.toml"
        text.write_text(scenario(kind, "0s" if engine == "kernel" else "200us"))
        api.run(text, out=folder, engine=engine, workers=workers)


def recording(out: Path, algorithm: str, to: Path) -> None:
    """What a recorder would have written of one algorithm's cells: no path, and nobody who crosses it."""
    parts = []
    columns = ", ".join((*recorded.COUNTERS, *recorded.GAUGES, "rwnd_limited_us", "delivery_rate_app_limited"))
    for number, kind in enumerate(CLASSES):
        if not (out / kind / "flows.parquet").exists():
            continue
        run = Dataset(out / kind)
        found = run.sql(
            f"""
            select 'study' as boot_id, cast({number} * 1000000 + cell * 100 + flow as ubigint) as cookie,
                concat('10.{number}.', json_extract_string(axes, '$."sample.0.row"'), '.', flow + 1) as remote_addr,
                f.algorithm, t_ns as t_mono_ns, false as final, cast(1448 as bigint) as snd_mss_bytes, {columns}
            from samples join (select cell, rep, flow, algorithm, "group" from flows) f using (cell, rep, flow)
                join runs using (cell, rep)
            where f.algorithm = '{algorithm}' and f."group" = 0 order by cookie, t_mono_ns
            """
        )
        parts.append(found)
    to.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.concat_tables(parts), to / "sockets-000001.parquet")


def doubtful(out: Path) -> str:
    """How many recordings say of themselves that the machine disturbed them."""
    runs = [api.open(out / kind) for kind in CLASSES if (out / kind / "flows.parquet").exists()]
    doubts = sum(len({doubt.cell for doubt in run.doubts}) for run in runs)
    return f"{doubts} of {sum(len(run.meta['cells']) for run in runs)} recordings are in doubt by their own checks."


def class_of(path: recorded.Observed) -> str:
    return CLASSES[int(path.key.split(".")[1])]


@dataclass(frozen=True)
class Judged:
    """How near the predictions of one algorithm from another one's recording came."""

    rows: list[list[str]]
    metrics: int
    inside: int
    half_widths_pct: list[float]
    claimed: int
    signs_right: int
    errors: dict[str, tuple[float, float]]

    def lines(self) -> list[str]:
        widths = np.array(self.half_widths_pct)
        near = sum(model <= 10 for model, _ in self.errors.values())
        naive_too = sum(model <= naive / 2 for model, naive in self.errors.values())
        return [
            *aligned(self.rows, left=(True, True, *[False] * (len(self.rows[0]) - 2))),
            f"inside their 95 % interval: {self.inside} of {self.metrics} metrics of classes "
            f"({100 * self.inside / self.metrics:.0f} %)",
            f"half-widths: median {np.median(widths):.1f} %, {100 * np.mean(widths <= 15):.0f} % of them at most 15 %",
            f"sign right in {self.signs_right} of {self.claimed} claimed differences",
            f"median error of goodput and RTT p95: at most 10 % in {near} of {len(self.errors)} metrics of classes, at "
            f"most half of the naive replay's in {naive_too}",
        ]


def judge(out: Path, old: str, new: str, first: int, workers: int) -> Judged:
    """Predicts `new` from the recording of `old` alone, and compares with the recording of `new`."""
    for name in (old, new):
        if not (out / f"sockets-{name}").exists():
            recording(out, name, out / f"sockets-{name}")
    before = recorded.read([out / f"sockets-{old}"])
    after = {path.key: path for path in recorded.read([out / f"sockets-{new}"]).paths}
    paths = [path for path in before.paths if path.key in after and int(path.key.split(".")[2]) <= first]
    started = time.monotonic()
    fits = predict.fit_all(paths, workers)
    fitted = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = predict.outcomes(fits, [new], [100.0], Path(folder), seed=1, workers=workers)
    print(f"{len(paths)} paths fitted in {fitted - started:.0f} s, simulated in {time.monotonic() - fitted:.0f} s")
    then = found.moved[new, 100.0]
    truth = np.array([predict.mean_of(after[path.key].connections) for path in paths])
    classes = np.array([class_of(path) for path in paths])
    print("\n".join(told.lines(before, told.of_fit(found), told.open_values(fits), [])))
    for place, (path, kind) in enumerate(zip(fits, classes, strict=True)):
        changes = (then - found.now).mean(axis=1)[place, 0], (truth - found.recorded)[place, 0]
        said, true = (100 * math.expm1(change) for change in changes)
        words = " ".join(str(path.fit.path).split())
        print(f"  {kind} {path.fit.observed.key} goodput {said:+.0f} %, true {true:+.0f} %: {path.names}: {words}")
    return judged_classes(found, then, truth, classes, new)


def judged_classes(found: predict.Outcomes, then: Any, truth: Any, classes: Any, new: str) -> Judged:
    rows = [["class", "metric", "true change", "predicted", "95 % interval", "naive", "error", "naive error"]]
    inside = metrics = claimed = right = 0
    widths: list[float] = []
    worst: dict[str, tuple[float, float]] = {}
    naive = found.naive[new] - found.recorded
    for kind in dict.fromkeys(classes):
        kept = classes == kind
        told_changes = predict.changes(found, then, naive, 1, kept=kept, these_paths=True)
        for place, (metric, change) in enumerate(told_changes.items()):
            points = metric == predict.ABSOLUTE
            true = float(np.mean((truth - found.recorded)[kept, place]))
            true = true if points else math.expm1(true)
            model_error, naive_error = (
                float(np.median(np.abs(guess)))
                for guess in (
                    (found.recorded[:, place] + (then - found.now).mean(axis=1)[:, place] - truth[:, place])[kept],
                    (found.naive[new] - truth)[kept, place],
                )
            )
            if not points:
                model_error, naive_error = 100 * math.expm1(model_error), 100 * math.expm1(naive_error)
                widths.append(100 * (change.high - change.low) / 2 / (1 + change.value))
            metrics += 1
            inside += change.low <= true <= change.high
            if change.claimed:
                claimed += 1
                right += change.value * true > 0
            if metric in ("goodput_bits_per_sec", "srtt_us_p95"):
                worst[f"{kind} {metric}"] = (model_error, naive_error)
            unit, factor = (" points", 1.0) if points else (" %", 100.0)
            interval = f"{factor * change.low:+.1f} to {factor * change.high:+.1f}"
            figures = [f"{factor * value:+.1f}{unit}" for value in (true, change.value)]
            rows.append(
                [kind, metric, *figures, interval, f"{factor * change.naive:+.1f}{unit}"]
                + [f"{error:.1f}{unit}" for error in (model_error, naive_error)]
            )
    return Judged(rows, metrics, inside, widths, claimed, right, worst)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--engine", choices=("sim", "kernel"), default="sim")
    parser.add_argument("--each", type=int, default=EACH, help="paths of each class")
    parser.add_argument("--first", type=int, help="fit only so many paths of each class")
    parser.add_argument("--old", choices=list(NEW_OF), help="only the direction from this algorithm")
    parser.add_argument("--recorded", action="store_true", help="judge the classes that are there, record nothing")
    parser.add_argument("--workers", type=int, help="recordings at once")
    asked = parser.parse_args()
    if not asked.recorded:
        record(asked.out, asked.engine, asked.each, asked.workers)
    workers = engines.default_workers("sim")
    print(doubtful(asked.out))
    for old, new in DIRECTIONS if asked.old is None else ((asked.old, NEW_OF[asked.old]),):
        print(f"\n{new} predicted from a recording of {old}:")
        print("\n".join(judge(asked.out, old, new, asked.first or asked.each, workers).lines()), flush=True)


if __name__ == "__main__":
    main()
