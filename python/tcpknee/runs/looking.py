"""A run in real time that may end before its last repetition, looked at after each block.

A block is a repetition of every cell. It is begun when the longest so far still fits the budget, and then finished, if
need be by a later session, so that what is compared has as many repetitions. What was decided while one looked has
intervals that allow for it (`evidence.stats.while_looking`); a budget decides nothing by what was measured, and leaves
intervals as they are.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tcpknee import human
from tcpknee.errors import UsageError
from tcpknee.evidence.stats import LEAST_TO_LOOK

from . import engines, tables

if TYPE_CHECKING:
    import pyarrow as pa

    from .ending import Ending
    from .pool import Key

TABLES = ("flows", "programs")
"""What a repetition is judged by."""


def check(asked: Ending, engine: str, cells: Sequence[Mapping[str, Any]], repeat: int, expects: int) -> None:
    """Refuses what cannot be. Raises `UsageError`."""
    if not asked:
        return
    if not engines.in_real_time(engine):
        what = next(name for name in ("until_decided", "budget", "pause") if getattr(asked, name))
        raise UsageError(
            f"{what}: got it with the engine {engine}; expected one in real time, whose repetitions take as "
            "long as they say. What is simulated has all its repetitions, so that it is the same again."
        )
    most_sec, _ = asked.most
    # Of a pause that is none, a complaint comes now.
    block_sec = engines.real_seconds(cells, [(int(cell["index"]), 0) for cell in cells], 1, asked.pause_sec)
    if most_sec is not None and block_sec > most_sec:
        raise UsageError(
            f"budget: got {human.duration(round(most_sec * 1e9))}; expected "
            f"{human.duration(round(block_sec * 1e9))} or more, which is what each cell takes once. A "
            "shorter duration in the scenario makes it less."
        )
    if asked.until_decided and repeat < LEAST_TO_LOOK:
        raise UsageError(
            f"until_decided: got {human.counted(repeat, 'repetition')}; expected {LEAST_TO_LOOK} at least, from "
            "which on an interval holds while one looks. Set `repeat` to the most that it may take, such as 100."
        )
    if asked.until_decided and expects:
        raise UsageError(
            "until_decided: got a scenario with [[expect]]; expected one without, because these are judged by "
            "intervals of a number of repetitions that is known before."
        )


@dataclass
class Looking:
    """A run that may end early: what its blocks gave and cost so far."""

    ending: Ending
    cells: Sequence[Mapping[str, Any]]
    kept: dict[Key, Mapping[str, pa.Table]] = field(default_factory=dict)
    by: str = "repeat"
    """What ended it: "repeat", "decided", "time" or "bytes"."""

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._most_sec, self._most_bytes = self.ending.most
        self._longest_sec = self._pause_sec = 0.0
        self._sent_bytes: Counter[int] = Counter()

    def take(self, key: Key, found: Mapping[str, pa.Table]) -> None:
        """A repetition was finished, in this session or before."""
        import pyarrow.compute as pc

        self.kept[key] = {name: found[name] for name in TABLES if name in found}
        _, note = tables.take_note(found["flows"])
        path_bytes = note.get("lab", {}).get("measured", {}).get("path_bytes", 0)
        self._sent_bytes[key[1]] += (pc.sum(found["flows"]["bytes_sent"]).as_py() or 0) + round(path_bytes)

    def blocks(self, keys: Iterable[Key]) -> Iterator[list[Key]]:
        """What to run next, until one ends it. A block that an earlier session began is run in any case."""
        begun = {rep for _, rep in self.kept}
        for rep, block in groupby(keys, key=lambda key: key[1]):
            self.by = "repeat" if rep in begun else self._why()
            if self.by != "repeat":
                return
            time.sleep(self._pause_sec)
            before_sec = time.monotonic()
            yield list(block)
            self._longest_sec = max(self._longest_sec, time.monotonic() - before_sec)
            self._pause_sec = self.ending.pause_sec
        if self._is_decided():
            self.by = "decided"

    def _why(self) -> str:
        """What ends it before the next block."""
        if self._is_decided():
            return "decided"
        after_sec = time.monotonic() - self._began + self._pause_sec + self._longest_sec
        if self._most_sec is not None and after_sec > self._most_sec:
            return "time"
        sent = self._sent_bytes.values()
        if self._most_bytes is not None and sum(sent) + max(sent, default=0) > self._most_bytes:
            return "bytes"
        return "repeat"

    def _is_decided(self) -> bool:
        if not self.ending.until_decided or len({rep for _, rep in self.kept}) < LEAST_TO_LOOK:
            return False
        from . import summary

        flows, programs = map(self._table, TABLES)
        return summary.is_decided(flows, self.cells, programs)

    def _table(self, name: str) -> Any:
        import pyarrow as pa

        found = [tables[name] for _, tables in sorted(self.kept.items()) if name in tables]
        if not found:
            return None
        return pa.concat_tables([table.replace_schema_metadata(None) for table in found]).unify_dictionaries()

    def told(self) -> dict[str, Any]:
        """For `run.json`."""
        return {
            "until_decided": self.ending.until_decided,
            "budget": self.ending.budget,
            "pause": self.ending.pause,
            "by": self.by,
            "blocks": len({rep for _, rep in self.kept}),
        }
