"""`knee score`: how much better algorithms are than another one, over drawn paths, at a cost that is said before.

The score of an algorithm is its power beside that of the other on the same path: goodput over the median of the
smoothed RTT (Kleinrock 1979), whose maximum is the knee; the geometric mean over paths. Algorithms that are behind
the best are dropped as soon as that is sure, by intervals that hold however often one looks
(`stats.while_looking`). Those that stay are judged once more on paths that nothing was chosen by.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tcpknee import _core
from tcpknee.algorithms import naming
from tcpknee.errors import EngineError, UsageError
from tcpknee.evidence.stats import Estimate, while_looking

from . import api, engines
from .job import Job

SUITE = Path(__file__).with_name("suite.toml")
_ROUND = 8
"""Paths between two looks."""

_WORST, _BEST = math.log(0.01), math.log(100.0)
"""Of the logarithm of a power beside another: an algorithm that delivers nothing has no power."""

_HELD_OUT = "held out"


@dataclass
class Scored:
    """What is known of an algorithm: logarithms of its power beside the other's, by path."""

    name: str
    logs: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    dropped: str = ""
    """Why it runs no more; empty: it runs on."""

    @property
    def score(self) -> Estimate | None:
        """On the paths that it was chosen by."""
        return _power(self.logs)

    @property
    def unseen(self) -> Estimate | None:
        """On the others."""
        return _power(self.held_out)

    def json(self) -> dict[str, Any]:
        """The object of `--json`."""
        found = {"score": self.score, "held_out": self.unseen}
        told = {name: value.json() if value else None for name, value in found.items()}
        return {"algorithm": self.name, **told, "paths": len(self.logs), "dropped": self.dropped or None}


def _power(logs: Sequence[float]) -> Estimate | None:
    found = while_looking(np.array(logs))
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
        names, of_files = naming.chosen("knee score", self.words)
        [self.against], of_base = naming.chosen("--against", [self.against])
        self.names = list(dict.fromkeys(names))
        self.files = {one.name: one for one in (*of_files, *of_base)}
        naming.note(list(self.files.values()))
        self.named_files = api.parse(self._text("cubic", self.seed), self.suite_file).files

    def _text(self, word: str, seed: int) -> str:
        return scenario(self.suite, self.suite_file, word, seed, self.paths)

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
        held_out = min(_ROUND * 2, self.paths, self._affordable(len(final)))
        if final and held_out > 0:
            self._add(final, 0, held_out, held_out=True)
        return sorted(every, key=lambda one: (bool(one.dropped), -np.mean(one.logs) if one.logs else math.inf))

    def _affordable(self, racing: int) -> int:
        """Paths that what is left pays for, with the one that all are measured by."""
        return (self.most_cells - self.cells) // (racing + 1)

    def _add(self, racing: Sequence[Scored], first: int, count: int, *, held_out: bool) -> None:
        base = self._powers(self.against, first, count, held_out=held_out)
        for one in racing:
            try:
                mine = self._powers(one.name, first, count, held_out=held_out)
            except EngineError as error:
                one.dropped = str(error)
                continue
            logs = np.clip(np.array(mine) - np.array(base), _WORST, _BEST)
            (one.held_out if held_out else one.logs).extend(float(each) for each in logs)

    def _powers(self, name: str, first: int, count: int, *, held_out: bool) -> list[float]:
        """The logarithm of an algorithm's power on each of these paths."""
        of_file = self.files.get(name)
        text = self._text(of_file.built.path if of_file else name, _seed(self.seed, held_out))
        self.cells += count
        algorithms = [of_file.for_core] if of_file else []
        job = Job(_core.parse(text, self.suite_file, self.named_files, algorithms=algorithms), text, self.suite_file)
        with engines.of("sim", job) as engine, ThreadPoolExecutor(engines.default_workers("sim")) as pool:
            every = pool.map(lambda cell: engine.run_cell(cell, 0), range(first, first + count))
            return [_log_power(found["flows"].slice(0, 1).to_pylist()[0]) for found in every]

    def _drop(self, every: Sequence[Scored]) -> None:
        """Drops who is behind the best for sure."""
        racing = [one for one in every if not one.dropped]
        if len(racing) < 2:
            return
        best = max(racing, key=lambda one: float(np.mean(one.logs)))
        for one in racing:
            behind = while_looking(np.array(best.logs) - np.array(one.logs), of=len(every)) if one is not best else None
            if behind and behind.low is not None and behind.low > 0:
                one.dropped = f"behind {best.name} after {len(one.logs)} paths"


def _log_power(row: dict[str, Any]) -> float:
    goodput, srtt = row["goodput_bits_per_sec"] or 0.0, row["srtt_us_p50"] or 0.0
    return math.log(goodput / srtt) if goodput > 0 and srtt > 0 else _WORST * 10


def _seed(seed: int, held_out: bool) -> int:
    """Of the draws: those that are held out are of another stream, that no seed of a user's names."""
    if not held_out:
        return seed
    return int.from_bytes(hashlib.blake2b(f"{_HELD_OUT} {seed}".encode(), digest_size=6).digest(), "little")


def scenario(suite: str, file: str, word: str, seed: int, paths: int) -> str:
    """The suite's text with an algorithm for its first flow, and so many drawn paths. Raises `UsageError`."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        parsed = tomllib.loads(suite)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}. Expected a scenario without algorithms, as a suite is.") from None
    samples, flows = parsed.get("sample"), parsed.get("flow")
    if not (isinstance(samples, list) and len(samples) == 1 and isinstance(flows, list) and flows):
        raise UsageError(
            f"{file}: got no single [[sample]], or no [[flow]]; expected both in a suite (docs/your-algorithm.md)."
        )
    for table, names in ((samples[0], ("count", "seed")), (flows[0], ("algorithm",)), (parsed, ("repeat", "seed"))):
        if taken := next((name for name in names if name in table), None):
            raise UsageError(f"{file}: sets {taken}, which `knee score` sets itself; take it out of the suite.")
    lines = suite.splitlines()
    put = {
        "[[flow]]": [f"algorithm = {json.dumps(word)}"],
        "[[sample]]": [f"count = {paths}", f"seed = {seed}"],
    }
    for header, more in put.items():
        place = next((number for number, line in enumerate(lines) if line.split("#")[0].strip() == header), None)
        if place is None:
            raise UsageError(f"{file}: got no line {header}; expected it by itself in a suite.")
        lines[place + 1 : place + 1] = more
    return "\n".join(["repeat = 1", f"seed = {seed % (1 << 32)}", *lines, ""])
