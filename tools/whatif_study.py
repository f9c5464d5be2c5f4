"""How well `knee whatif` predicts: records a population of mixed paths with one algorithm, predicts the other, records
that too, and compares.

    python tools/whatif_study.py --out runs/whatif-sim                     # 200 paths on the simulator
    python tools/whatif_study.py --out runs/whatif-kernel --engine kernel  # real time, about 35 minutes on two labs
    python tools/whatif_study.py --out runs/whatif-wide --mix wide         # paths that nothing was chosen by
    python tools/whatif_study.py --out runs/whatif-733 --seed 733 --each 6 # other paths of the same population
    python tools/whatif_study.py --out runs/whatif-many --mix many         # 12 to 60 connections on each path
    python tools/whatif_study.py --out runs/whatif-midway --mix midway     # 3 to 8, recorded from 4 s on
    python tools/whatif_study.py --out runs/whatif-paused --mix paused     # applications that pause

The prediction is given what a recorder would have seen: rows of `sockets`, without what the path is. The simulator that
records has other seeds and late hosts (`sender.noise`). docs/whatif.md has the figures. Beside the parts of
each interval stands what a perfect fit would leave: the true paths are simulated with other seeds.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from whatif_mixes import CLASSES, MIXES, Mix, population

from tcpknee.datasets.dataset import Dataset
from tcpknee.runs import api, engines
from tcpknee.runs.workers import OnAll, on_processes
from tcpknee.say import aligned
from tcpknee.whatif import observation, predict, render
from tcpknee.whatif.series import METRICS, Series, whole_goodput_bits_per_sec

AGAIN = 3
"""Simulations of the true paths."""
HALF = 1.96
"""Deviations that a half-width of 95 % has."""
WIDE_PCT = 15.0
"""The half-width that was asked for."""
DIRECTIONS = (("cubic", "bbr1"), ("bbr1", "cubic"))
NEW_OF = dict(DIRECTIONS)


def scenario(kind: str, mix: Mix, noise: str) -> str:
    """Both algorithms on every path of a class; what crosses is the same for both, and is not recorded."""
    crossing = f'[[flow]]\nworkload = "web"\nname = "hidden"\nalgorithm = "cubic"\n{mix.crossing}\n'
    transfers = "".join(
        f'[[flow]]\nalgorithm = ["cubic", "bbr1"]\nname = "recorded_{sort}"\nworkload = "transfer"\n'
        for sort in ("first", "second")
    )
    together = '[[zip]]\nkeys = ["flow.0.algorithm", "flow.1.algorithm", "flow.2.algorithm"]\n'
    return (
        f'duration = "{mix.seconds}s"\nsample_interval = "{mix.interval_ms}ms"\n'
        f'[sender]\nnoise = "{noise}"\n[receiver]\nnoise = "{noise}"\n'
        f'[[flow]]\nalgorithm = ["cubic", "bbr1"]\nname = "recorded"\n{mix.workload}'
        + (crossing if kind == "crossed" else "")
        + (transfers + together if mix.many else "")
        + f'[[sample]]\nfile = "{kind}.csv"\n'
    )


def record(out: Path, engine: str, mix: Mix, each: int, workers: int | None, seed: int | None = None) -> None:
    """Runs every class into a folder of its own; one that is there already is kept. `seed`: of all but the paths. Each
    path has another seed, or losses and cross traffic would come at the same time on all paths of a class."""
    seed = mix.seed if seed is None else seed
    seeds = count(1000 * seed)
    for kind, paths in population(each, mix).items():
        rows = [{**path.row(), "seed": str(next(seeds))} for path in paths]
        folder = out / kind
        if (folder / "run.json").exists():
            continue
        out.mkdir(parents=True, exist_ok=True)
        with (out / f"{kind}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        text = out / f"{kind}.toml"
        text.write_text(scenario(kind, mix, "0s" if engine == "kernel" else f"{mix.noise_us}us"))
        api.run(text, out=folder, engine=engine, workers=workers)


_SOCKETS = """
select concat('10.{number}.', json_extract_string(axes, '$."sample.0.row"'), '.', flow + 1) as remote_addr,
    cast({number} * 1000000 + cell * 100 + flow as ubigint) as cookie, {columns}
from samples join (select cell, rep, flow, algorithm, name, end_ns from flows) f using (cell, rep, flow)
    join runs using (cell, rep)
where f.algorithm = '{algorithm}' and f.name like 'recorded%' and {where}
"""


def in_classes(out: Path, algorithm: str, columns: str, where: str) -> Any:
    """Columns of the samples of one algorithm, of all classes: no path, and nobody who crosses it."""
    parts = []
    for number, kind in enumerate(CLASSES):
        if (out / kind / "flows.parquet").exists():
            query = _SOCKETS.format(number=number, columns=columns, algorithm=algorithm, where=where)
            parts.append(Dataset(out / kind).sql(query))
    return pa.concat_tables(parts)


def recording(out: Path, algorithm: str, to: Path, mix: Mix) -> None:
    """What a recorder would have written of one algorithm's cells; what is there already is kept."""
    if to.exists():
        return
    columns = ", ".join((*observation.COUNTERS, *observation.GAUGES, "rwnd_limited_us", "delivery_rate_app_limited"))
    found = in_classes(
        out,
        algorithm,
        f"""'study' as boot_id, f.algorithm, t_ns as t_mono_ns, f.end_ns is not null as final,
            cast(1448 as bigint) as snd_mss_bytes, {columns}""",
        f"t_ns >= {mix.from_ms * 1_000_000} order by cookie, t_mono_ns",
    )
    to.mkdir(parents=True, exist_ok=True)
    pq.write_table(found, to / "sockets-000001.parquet")


@dataclass(frozen=True)
class Truth:
    """What was recorded of an algorithm."""

    paths: dict[str, observation.Observed]
    lives: dict[tuple[str, int], float]
    """Of each path and connection on it, the logarithm of the goodput of its whole life: also of one that was over
    before the recorder began, or sent too little."""


def truth(out: Path, algorithm: str, mix: Mix) -> Truth:
    folder = out / f"sockets-{algorithm}"
    recording(out, algorithm, folder, mix)
    goodput = "8e6 * max(bytes_acked) / greatest(max(busy_us), 1) as goodput"
    lives = {
        (observation.prefix(row["remote_addr"]), row["cookie"] % 100): math.log(
            max(row["goodput"], predict.LEAST_BITS_PER_SEC)
        )
        for row in in_classes(out, algorithm, goodput, "true group by all").to_pylist()
    }
    return Truth({path.key: path for path in observation.read([folder]).paths}, lives)


def exactly(out: Path, mix: Mix, each: int, new: str, workers: int | None) -> list[Truth]:
    """What simulations of the true paths, with a few other seeds, recorded of each path. What is off then is chance,
    and how far the simulator is from what recorded."""
    folders = [out / f"again-{number}" for number in range(1, AGAIN + 1)]
    for number, folder in enumerate(folders, start=1):
        record(folder, "sim", mix, each, workers, mix.seed + number)
    return [truth(folder, new, mix) for folder in folders]


def flow_of(series: Series) -> int:
    """Its number on its path, from the cookie that `recording` gave it."""
    return int(series.key.split("/")[1]) % 100


def changed(before: observation.Observed, after: Truth) -> Any:
    """How much each metric changed in the mean over the connections that say something in both recordings; the goodput
    of the others is that of their whole lives."""
    known, others = (
        {flow_of(series): series for series in path.connections} for path in (before, after.paths[before.key])
    )
    both = [flow for flow in known if flow in others]
    change = predict.mean_of([others[flow] for flow in both]) - predict.mean_of([known[flow] for flow in both])
    lives = [
        after.lives[before.key, flow]
        - math.log(max(whole_goodput_bits_per_sec(known[flow]), predict.LEAST_BITS_PER_SEC))
        for flow in known
        if flow not in others
    ]
    goodput = METRICS.index("goodput_bits_per_sec")
    change[goodput] = (len(both) * change[goodput] + sum(lives)) / len(known)
    return change


def doubtful(out: Path) -> str:
    """How many recordings say of themselves that the machine disturbed them."""
    runs = [api.open(out / kind) for kind in CLASSES if (out / kind / "flows.parquet").exists()]
    doubts = sum(len({doubt.cell for doubt in run.doubts}) for run in runs)
    return f"{doubts} of {sum(len(run.meta['cells']) for run in runs)} recordings are in doubt by their own checks."


def class_of(path: observation.Observed) -> str:
    return CLASSES[int(path.key.split(".")[1])]


@dataclass(frozen=True)
class Judged:
    """How near the predictions of one algorithm from another one's recording came."""

    rows: list[list[str]]
    parts: list[list[str]]
    metrics: int
    inside: int
    half_widths_pct: list[float]
    off: list[float]
    """Errors of the metrics of classes, in deviations of their intervals."""
    claimed: int
    signs_right: int
    errors: dict[str, tuple[float, float]]

    def lines(self) -> list[str]:
        widths = np.array(self.half_widths_pct)
        off = math.sqrt(np.mean(np.square(self.off)))
        near = sum(model <= 10 for model, _ in self.errors.values())
        naive_too = sum(model <= naive / 2 for model, naive in self.errors.values())
        return [
            *_table(self.rows),
            "",
            *_table(self.parts),
            f"inside their 95 % interval: {self.inside} of {self.metrics} metrics of classes "
            f"({100 * self.inside / self.metrics:.0f} %)",
            f"errors are {off:.2f} times what the intervals hold of them (root mean square; 1 is right)",
            f"half-widths: median {np.median(widths):.1f} %, {100 * np.mean(widths <= WIDE_PCT):.0f} % of them at most "
            f"{WIDE_PCT:.0f} %",
            f"sign right in {self.signs_right} of {self.claimed} claimed differences",
            f"median error of goodput and RTT p95: at most 10 % in {near} of {len(self.errors)} metrics of classes, at "
            f"most half of the naive replay's in {naive_too}",
        ]


def _table(rows: list[list[str]]) -> list[str]:
    return aligned(rows, left=(True, True, *[False] * (len(rows[0]) - 2)))


def judge(
    out: Path,
    mix: Mix,
    old: str,
    new: str,
    first: int,
    exact: list[Truth],
    on_all: OnAll,
) -> Judged:
    """Predicts `new` from the recording of `old` alone, and compares with the recording of `new`. `exact`: what
    simulations of the true paths recorded."""
    recording(out, old, out / f"sockets-{old}", mix)
    before, after = observation.read([out / f"sockets-{old}"]), truth(out, new, mix)
    paths = [
        path
        for path in before.paths
        if all(path.key in known.paths for known in (after, *exact)) and int(path.key.split(".")[2]) <= first
    ]
    started = time.monotonic()
    fits = predict.fit_all(paths, on_all)
    fitted = time.monotonic()
    found = predict.outcomes(fits, [new], [100.0], seed=1, on_all=on_all)
    print(f"{len(paths)} paths fitted in {fitted - started:.0f} s, simulated in {time.monotonic() - fitted:.0f} s")
    then = found.moved[new, 100.0]
    true = found.recorded + np.array([changed(path, after) for path in paths])
    classes = np.array([class_of(path) for path in paths])
    print("\n".join(render.lines(before, render.of_fit(found), render.open_values(fits), [])))
    for place, (path, kind) in enumerate(zip(fits, classes, strict=True)):
        changes = predict.differences_of(found, then)[place, 0], (true - found.recorded)[place, 0]
        said, was = (100 * math.expm1(change) for change in changes)
        words = " ".join(str(path.fit.path).split())
        print(f"  {kind} {path.fit.observed.key} goodput {said:+.0f} %, true {was:+.0f} %: {path.names}: {words}")
    again = np.array([np.mean([changed(path, other) for other in exact], axis=0) for path in paths])
    return judged_classes(found, then, true, classes, new, found.recorded + again - true)


def parts_of(found: predict.Outcomes, then: Any, kept: Any, new: str, chance: Any) -> list[list[str]]:
    """For each metric that changes by a ratio: the half-width in % that each part of the interval alone would give it,
    that which a perfect fit of every path would leave, and how many paths of the class would give 15 %."""
    places = np.flatnonzero(kept)
    parts = {
        name: 100 * HALF * deviation
        for name, deviation in predict.errors_in(found, then, found.wrong[new], places).parts().items()
    }
    perfect = 100 * HALF * np.sqrt(np.mean(chance[places] ** 2, axis=0) / len(places))
    of_paths = parts["draws and rehearsals"] ** 2 + parts["misfits"] ** 2
    common = sum(part**2 for part in parts.values()) - of_paths
    rows = []
    for place, metric in enumerate(METRICS):
        if metric == predict.ABSOLUTE:
            continue
        left = WIDE_PCT**2 - common[place]
        needed = f"{math.ceil(len(places) * of_paths[place] / left)}" if left > 0 else "none"
        figures = [
            math.sqrt(of_paths[place] + common[place]),
            *(part[place] for part in parts.values()),
            perfect[place],
        ]
        rows.append([metric, *(f"{figure:.1f}" for figure in figures), needed])
    return rows


def judged_classes(found: predict.Outcomes, then: Any, truth: Any, classes: Any, new: str, chance: Any) -> Judged:
    rows = [["class", "metric", "true change", "predicted", "95 % interval", "naive", "error", "naive error"]]
    common = ("common rehearsed", "common misfit", "late hosts", "simulator")
    parts = [
        ["class", "metric", "half-width", "draws, rehearsals", "misfits", *common, "perfect fit", "paths for 15 %"]
    ]
    inside = metrics = claimed = right = 0
    widths: list[float] = []
    off: list[float] = []
    worst: dict[str, tuple[float, float]] = {}
    naive = found.naive[new] - found.recorded
    for kind in dict.fromkeys(classes):
        kept = classes == kind
        told_changes = predict.changes(found, then, naive, found.wrong[new], 1, kept=kept)
        parts += [[kind, *row] for row in parts_of(found, then, kept, new, chance)]
        for place, (metric, change) in enumerate(told_changes.items()):
            points = metric == predict.ABSOLUTE
            true = float(np.mean((truth - found.recorded)[kept, place]))
            true = true if points else math.expm1(true)
            model_error, naive_error = (
                float(np.median(np.abs(guess)))
                for guess in (
                    (found.recorded + predict.differences_of(found, then) - truth)[kept, place],
                    (found.naive[new] - truth)[kept, place],
                )
            )
            if not points:
                model_error, naive_error = 100 * math.expm1(model_error), 100 * math.expm1(naive_error)
                widths.append(100 * (change.high_here - change.low_here) / 2 / (1 + change.value))
            scale = float if points else math.log1p
            low, high, said = (scale(end) for end in (change.low_here, change.high_here, change.value))
            off.append(2 * HALF * (scale(true) - said) / (high - low))
            metrics += 1
            inside += change.low_here <= true <= change.high_here
            if change.low_here > 0 or change.high_here < 0:
                claimed += 1
                right += change.value * true > 0
            if metric in ("goodput_bits_per_sec", "srtt_us_p95"):
                worst[f"{kind} {metric}"] = (model_error, naive_error)
            unit, factor = (" points", 1.0) if points else (" %", 100.0)
            interval = f"{factor * change.low_here:+.1f} to {factor * change.high_here:+.1f}"
            figures = [f"{factor * value:+.1f}{unit}" for value in (true, change.value)]
            rows.append(
                [kind, metric, *figures, interval, f"{factor * change.naive:+.1f}{unit}"]
                + [f"{error:.1f}{unit}" for error in (model_error, naive_error)]
            )
    return Judged(rows, parts, metrics, inside, widths, off, claimed, right, worst)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--engine", choices=("sim", "kernel"), default="sim")
    parser.add_argument("--mix", choices=list(MIXES), default="study")
    parser.add_argument("--seed", type=int, help="of paths and of chance, in place of the mix's own")
    parser.add_argument("--each", type=int, help="paths of each class, in place of the mix's own number")
    parser.add_argument("--first", type=int, help="fit only so many paths of each class")
    parser.add_argument("--old", choices=list(NEW_OF), help="only the direction from this algorithm")
    parser.add_argument("--recorded", action="store_true", help="judge the classes that are there, record nothing")
    parser.add_argument("--workers", type=int, help="recordings at once")
    asked = parser.parse_args()
    mix = MIXES[asked.mix] if asked.seed is None else replace(MIXES[asked.mix], seed=asked.seed)
    each = asked.each or mix.each
    if not asked.recorded:
        record(asked.out, asked.engine, mix, each, asked.workers)
    workers = engines.default_workers("sim")
    print(doubtful(asked.out))
    with on_processes(workers) as on_all:
        for old, new in DIRECTIONS if asked.old is None else ((asked.old, NEW_OF[asked.old]),):
            print(f"\n{new} predicted from a recording of {old}:")
            exact = exactly(asked.out, mix, each, new, asked.workers)
            judged = judge(asked.out, mix, old, new, asked.first or each, exact, on_all)
            print("\n".join(judged.lines()), flush=True)


if __name__ == "__main__":
    main()
