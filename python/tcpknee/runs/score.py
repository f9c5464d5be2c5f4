"""`knee score`: how much better algorithms are than another one, over drawn paths, at a cost that is said before.

The score of an algorithm is its power beside that of the other on the same path: goodput over the median of the
smoothed RTT (Kleinrock 1979), whose maximum is the knee; the geometric mean over paths. Algorithms that are behind
the best are dropped as soon as that is sure, by intervals that hold however often one looks
(`stats.while_looking`). Those that stay are judged once more on paths that nothing was chosen by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tcpknee import _core, human, reading
from tcpknee.algorithms import naming
from tcpknee.errors import AlgorithmFailed, EngineError, ScenarioError, UsageError
from tcpknee.evidence.stats import LEAST_TO_LOOK, Estimate, while_looking

from . import api, calls, compose, engines
from .job import Job

SUITE = Path(__file__).with_name("suite.toml")
_ROUND = 8
"""Paths between two looks."""

_WORST, _BEST = math.log(0.01), math.log(100.0)
"""Of the logarithm of a power beside another: an algorithm that delivers nothing has no power, whose log is -inf."""

_HELD_OUT, _OTHER_CHANCE = 1 << 62, 1 << 31
"""What is added to the seeds of draws and of chance for the paths that are held out."""

MOST_SEED = _HELD_OUT - 1


@dataclass
class Scored:
    """What is known of an algorithm: logarithms of its power beside the other's, by path; nan where both have none."""

    name: str
    logs: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    dropped: str = ""
    """Why it runs no more; empty: it runs on."""
    call: dict[str, object] | None = None
    """What ended it, if that was one of its ops: `knee check --call` makes it again."""

    @property
    def score(self) -> Estimate | None:
        """On the paths that it was chosen by."""
        return _power(self.logs)

    @property
    def unseen(self) -> Estimate | None:
        """On the others."""
        return _power(self.held_out)

    @property
    def paths(self) -> int:
        """Of those that it was chosen by, how many tell the two apart."""
        return len(_told(self.logs))

    @property
    def left_out(self) -> int:
        """Paths on which both deliver nothing."""
        return sum(map(math.isnan, (*self.logs, *self.held_out)))

    @property
    def mean_log(self) -> float:
        """On the paths that it was chosen by; -inf where none tells."""
        return float(_told(self.logs).mean()) if self.paths else -math.inf

    def json(self) -> dict[str, Any]:
        """The object of `--json`."""
        found = {"score": self.score, "held_out": self.unseen}
        told = {name: value.json() if value else None for name, value in found.items()}
        return {
            "algorithm": self.name,
            **told,
            "paths": self.paths,
            "left_out_paths": self.left_out,
            "dropped": self.dropped or None,
            "call": self.call,
        }


def _told(logs: Sequence[float]) -> npt.NDArray[np.float64]:
    """Those of the paths on which one of the two delivers something."""
    every = np.array(logs, dtype=np.float64)
    return every[~np.isnan(every)]


def _power(logs: Sequence[float]) -> Estimate | None:
    found = while_looking(_told(logs))
    return found.map(math.exp) if found else None


@dataclass
class Race:
    """Algorithms and the one that they are measured by, on paths of a suite. `most_cells`: simulations at most."""

    words: Sequence[str]
    against: str
    suite: str
    suite_file: str
    seed: int
    paths: int
    most_cells: int
    tell: Callable[[str], object] = lambda _: None
    cells: int = 0

    def __post_init__(self) -> None:
        """Raises `UsageError`, `ScenarioError` for the suite as for any scenario of its place."""
        parsed = self._read()
        self.named_files, self.of_suite = parsed.files, naming.used_by(parsed)
        (*names, self.against), of_files = naming.chosen("knee score", [*self.words, self.against], self.of_suite)
        self.names = list(dict.fromkeys(names))
        naming.note(of_files)
        # The same words in a suite are of its own folder.
        self.files = {
            one.name: naming.load(replace(one, built=replace(one.built, path=str(Path(one.built.path).absolute()))))
            for one in of_files
        }
        self.held_out = min(LEAST_TO_LOOK, self.paths)
        least = 2 * self.held_out * (len(self.names) + 1)
        if self.most_cells < least:
            raise UsageError(
                f"--cells: got {self.most_cells}; expected {least} or more: {self.held_out} paths to choose by and "
                f"{self.held_out} that are held out, each with {human.counted(len(self.names), 'algorithm')} and "
                f"{self.against}."
            )

    def _read(self) -> _core.Scenario:
        """The suite, read as any scenario is. Refuses what is none."""
        text, lines = scenario(self.suite, self.suite_file, "cubic", self.seed, self.paths)
        try:
            parsed = api.parse(text, self.suite_file)
        except ScenarioError as error:
            mistakes = [(lines[line - 1], key, said) for line, key, said in error.mistakes]
            raise ScenarioError.of(self.suite_file, mistakes) if mistakes else error from None
        if len(parsed.cells) > self.paths:
            axes = [key for key, _ in parsed.cells[0]["axes"]]
            raise UsageError(
                f"{self.suite_file}: has axes ({', '.join(axes[: axes.index('sample.0.row')])}); expected one value of "
                "each key in a suite, whose [[sample]] alone draws paths. Score each value with a suite of its own."
            )
        return parsed

    def run(self) -> list[Scored]:
        """All of them, the best first. Raises `UsageError`."""
        every = [Scored(name) for name in self.names]
        for place in range(0, self.paths, _ROUND):
            racing = [one for one in every if not one.dropped]
            count = min(_ROUND, self.paths - place, self._affordable(len(racing)))
            if not racing or count <= 0:
                break
            self._add(racing, place, count, held_out=False)
            self._drop(every)
            self.tell(f"{place + count} paths, {sum(not one.dropped for one in every)} of {len(every)} race on")
        final = [one for one in every if not one.dropped]
        if final:
            self._add(final, 0, self.held_out, held_out=True)
        return sorted(every, key=lambda one: (bool(one.dropped), -one.mean_log))

    def _affordable(self, racing: int) -> int:
        """Paths that what is left pays for, with the one that all are measured by, beside those that are held out."""
        return (self.most_cells - self.cells) // (racing + 1) - self.held_out

    def _add(self, racing: Sequence[Scored], first: int, count: int, *, held_out: bool) -> None:
        base = self._powers(self.against, first, count, held_out=held_out)
        for one in racing:
            try:
                mine = self._powers(one.name, first, count, held_out=held_out)
            except AlgorithmFailed as error:
                # Without the place in the suite, whose scenario is ours.
                one.dropped, one.call = calls.words(error), error.call
                continue
            except EngineError as error:
                one.dropped = str(error)
                continue
            with np.errstate(invalid="ignore"):
                logs = np.clip(np.array(mine) - np.array(base), _WORST, _BEST)
            (one.held_out if held_out else one.logs).extend(float(each) for each in logs)

    def _powers(self, name: str, first: int, count: int, *, held_out: bool) -> list[float]:
        """The logarithm of an algorithm's power on each of these paths."""
        of_file = self.files.get(name)
        word = of_file.built.path if of_file else name
        text, _ = scenario(self.suite, self.suite_file, word, self.seed, self.paths, held_out=held_out)
        self.cells += count
        algorithms = [one.for_core for one in (*self.of_suite, *([of_file] if of_file else []))]
        job = Job(_core.parse(text, self.suite_file, self.named_files, algorithms=algorithms), text, self.suite_file)
        with engines.of("sim", job) as engine, ThreadPoolExecutor(engines.default_workers("sim")) as pool:
            every = pool.map(lambda path: engine.run_cell(path, path), range(first, first + count))
            return [_log_power(found["flows"].slice(0, 1).to_pylist()) for found in every]

    def _drop(self, every: Sequence[Scored]) -> None:
        """Drops who is behind the best for sure."""
        racing = [one for one in every if not one.dropped]
        if len(racing) < 2:
            return
        best = max(racing, key=lambda one: one.mean_log)
        for one in racing:
            behind = while_looking(_ahead(best.logs, one.logs), of=len(every)) if one is not best else None
            if behind and behind.low is not None and behind.low > 0:
                one.dropped = f"behind {best.name} after {len(one.logs)} paths"


def _ahead(best: Sequence[float], other: Sequence[float]) -> npt.NDArray[np.float64]:
    """By path, without those on which neither delivers anything. Who alone delivers nothing is the equal there of the
    algorithm that both are measured by: nan counts as 0."""
    both = np.array([best, other])
    first, second = np.nan_to_num(both[:, ~np.isnan(both).all(axis=0)])
    return np.asarray(first - second)


def _log_power(rows: Sequence[dict[str, Any]]) -> float:
    """Of the first flow. One that never began, such as a visit to a web site, has none."""
    goodput, srtt = (rows[0][name] or 0.0 if rows else 0.0 for name in ("goodput_bits_per_sec", "srtt_us_p50"))
    return math.log(goodput / srtt) if goodput > 0 and srtt > 0 else -math.inf


def scenario(
    suite: str, file: str, word: str, seed: int, paths: int, *, held_out: bool = False
) -> tuple[str, Sequence[int]]:
    """The suite's text with an algorithm for its first flow, and so many drawn paths; and of each line, which one of
    the suite it is of. Raises `UsageError`, `ScenarioError`."""
    try:
        parsed = reading.toml(suite)
    except ValueError as error:
        # The parser says where.
        api.parse(suite, file)
        raise UsageError(f"{file}: {error}. Expected a scenario without algorithms, as a suite is.") from None
    samples, flows = (_tables(parsed.get(name)) for name in ("sample", "flow"))
    if len(samples) != 1 or not flows:
        raise UsageError(
            f"{file}: got no single [[sample]], or no [[flow]]; expected both in a suite (docs/your-algorithm.md)."
        )
    for table, names in ((samples[0], ("count", "seed")), (flows[0], ("algorithm",)), (parsed, ("repeat", "seed"))):
        if taken := next((name for name in names if name in table), None):
            raise UsageError(f"{file}: sets {taken}, which `knee score` sets itself; take it out of the suite.")
    lines = [(line, number) for number, line in enumerate(suite.split("\n"), start=1)]
    draws, chance = seed + held_out * _HELD_OUT, seed % _OTHER_CHANCE + held_out * _OTHER_CHANCE
    put = {
        "[[flow]]": [f"algorithm = {compose.quoted(word)}"],
        "[[sample]]": [f"count = {paths}", f"seed = {draws}"],
    }
    for header, more in put.items():
        place = next((at for at, (line, _) in enumerate(lines) if line.split("#")[0].strip() == header), None)
        if place is None:
            raise UsageError(f"{file}: got no line {header}; expected it by itself in a suite.")
        lines[place + 1 : place + 1] = [(line, lines[place][1]) for line in more]
    # Number k of every cell has the same luck, so that each path takes another number.
    lines = [(f"repeat = {paths}", 1), (f"seed = {chance}", 1), *lines]
    return "\n".join([*(line for line, _ in lines), ""]), [number for _, number in lines]


def _tables(found: object) -> list[dict[str, Any]]:
    """Those of `[[headers]]`; none where another value stands."""
    return found if isinstance(found, list) and all(isinstance(one, dict) for one in found) else []
