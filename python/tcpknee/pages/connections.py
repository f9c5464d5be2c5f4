"""Series of the connections of any dataset that has some: those that sent most, thinned to what a figure can show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpknee.datasets import sql

from . import palette, thin
from .encode import Block
from .sources import Panel, Source

if TYPE_CHECKING:
    from tcpknee.datasets.dataset import Dataset

    from .run import Condition

SHOWN_AT_MOST = 12
"""Connections that can be told apart; those that sent most are shown."""
POINTS_AT_MOST = 120_000
"""Of all lines together: what a browser draws at once."""
COLUMNS_AT_LEAST, COLUMNS_AT_MOST = 120, 1_000
RATE_COLUMNS = 200
"""Of a rate that a counter tells: each is a mean over its width, and narrower ones show single ACKs."""
NO_VALUE_FROM = {"ssthresh": float(0x7FFFFFFF), "pacing": 1e15, "delivery": 1e15}
"""Linux says "none" with the greatest number."""
HOW_TO_LOOK = "Click a name to single it out; drag to move along time, Shift + wheel to zoom, double-click to go back."
ZERO_IS_NONE = frozenset({"srtt", "delivery"})
"""These are 0 before the first measurement."""

Steps = tuple[NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True)
class Connection:
    """A connection that is shown."""

    key: tuple[Any, ...]
    label: str
    begin_ns: int
    end_ns: int


class Connections:
    """What the figure over time draws of a recording, an import or a trace. Raises RunFolderError (a damaged table)."""

    as_bands = False

    def __init__(self, dataset: Dataset, source: Source, panels: tuple[Panel, ...] | None = None) -> None:
        self.dataset, self.source = dataset, source
        held = set(dataset.table(source.table).columns)
        self._key = tuple(name for name in source.key if name in held)
        self._sent = source.sent if source.sent in held else None
        self.panels = tuple(panel for panel in panels or source.panels if panel.column in held)
        """Those that the table has."""

    @cached_property
    def shown(self) -> list[Connection]:
        """Those that sent most; where none sent, those with most rows."""
        query = f"select * from ({self._ranked()}) as ranked where place < {SHOWN_AT_MOST} order by place"
        labels: dict[str, int] = {}
        found = []
        for row in self.dataset.sql(query).to_pylist():
            key = tuple(row[name] for name in self._key)
            label = self._label(key)
            labels[label] = labels.get(label, 0) + 1
            if labels[label] > 1:
                label = f"{label} ({labels[label]})"
            found.append(Connection(key, label, int(row["first_ns"]), int(row["last_ns"])))
        return found

    @cached_property
    def total(self) -> int:
        """Connections that have a row with a time."""
        keys = ", ".join(self._key)
        query = f"select count(*) as n from (select distinct {keys} from {self.source.table} where {self._is_timed})"
        return int(self.dataset.sql(query)["n"][0].as_py())

    @cached_property
    def begin_ns(self) -> int:
        """What the time axis begins with: its source's zero, or the first row of those shown."""
        return min((one.begin_ns for one in self.shown), default=0) if self.source.is_wall_time else 0

    @cached_property
    def end_ns(self) -> int:
        """The end of the time axis, from its beginning."""
        seconds = (self.dataset.manifest or {}).get("seconds")
        told = int(seconds * 1e9) if isinstance(seconds, (int, float)) else 0
        return max([told, *(one.end_ns - self.begin_ns for one in self.shown), 1])

    @property
    def columns(self) -> int:
        """Pixel columns that a line is thinned to."""
        lines = max(len(self.panels) * len(self.shown), 1)
        return int(np.clip(POINTS_AT_MOST // (3 * lines), COLUMNS_AT_LEAST, COLUMNS_AT_MOST))

    def looks(self) -> Iterator[tuple[str, str, int]]:
        """(label, colour, place in the palette) of each line."""
        for k, one in enumerate(self.shown):
            yield one.label, palette.base(k), palette.turn(k)

    def lines(self, condition: Condition | None = None) -> dict[str, list[Block]]:
        """panel -> a block per connection: t in seconds, v in the panel's unit. There is one condition."""
        return self._lines

    @cached_property
    def _lines(self) -> dict[str, list[Block]]:
        blocks: dict[str, list[Block]] = {panel.name: [] for panel in self.panels}
        for place, panel, steps in self._steps():
            t_ns, value = thin.thin(*steps, 0, self.end_ns, self.columns)
            label = self.shown[place].label
            words = {"series": label, "entrant": label}
            blocks[panel.name].append(Block(words, {"t": t_ns * 1e-9, "v": value * panel.scale}))
        return blocks

    def _steps(self) -> Iterator[tuple[int, Panel, Steps]]:
        """(place, panel, steps) of each line that has a value. What holds at a connection's last row is drawn up to
        there."""
        gathered: dict[tuple[int, str], list[Steps]] = {}
        last_ns: dict[int, int] = {}
        for rows in self._batches():
            places = rows["place"]
            cuts = np.r_[0, np.flatnonzero(places[1:] != places[:-1]) + 1, len(places)]
            for begin, stop in pairwise(cuts.tolist()):
                place = int(places[begin])
                last_ns[place] = int(rows["t_ns"][stop - 1])
                for panel in self.panels:
                    t_ns = rows[_since(panel)][begin:stop]
                    value = _known(panel, rows[panel.name][begin:stop])
                    # What was before a source's zero is no part of what it measured.
                    value[t_ns < 0] = np.nan
                    kept = thin.steps(t_ns, value) if not panel.is_counter else _finite(t_ns, value)
                    gathered.setdefault((place, panel.name), []).append(kept)
        for place in range(len(self.shown)):
            for panel in self.panels:
                parts = gathered.get((place, panel.name), [])
                t_ns = np.concatenate([part[0] for part in parts]) if parts else np.zeros(0, np.int64)
                value = np.concatenate([part[1] for part in parts]) if parts else np.zeros(0)
                if panel.is_counter:
                    t_ns, value = self._rate(t_ns, value)
                t_ns, value = thin.steps(t_ns, value)
                if len(value):
                    yield place, panel, (np.r_[t_ns, max(last_ns[place], t_ns[-1])], np.r_[value, value[-1]])

    def _rate(self, t_ns: NDArray[np.int64], value: NDArray[np.float64]) -> Steps:
        """The increase of a counter per second."""
        if len(value) < 2 or t_ns[-1] == t_ns[0]:
            return t_ns[:0], value[:0]
        count = min(RATE_COLUMNS, len(value)) + 1
        edges = np.unique(np.linspace(t_ns[0], t_ns[-1], count).round().astype(np.int64))
        # Of rows at one time the last says how far the counter came.
        last = np.r_[t_ns[1:] != t_ns[:-1], True]
        rate = np.diff(np.interp(edges, t_ns[last], value[last])) / np.diff(edges) * 1e9
        return edges[:-1], rate

    def _batches(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Rows of those shown, connection by connection in the order of their times; memory holds a few at a time."""
        time = self.source.time
        same = " and ".join(f"rows.{name} is not distinct from ranked.{name}" for name in self._key)
        times = {_since(panel): f"coalesce({panel.since}, {time})" for panel in self.panels if panel.since}
        times["t_ns"] = time
        values = {panel.name: _value(panel) for panel in self.panels}
        columns = ", ".join(
            [
                *self._key,
                *(f"({when} - {self.begin_ns})::bigint as {name}" for name, when in times.items()),
                *(f"{value} as {name}" for name, value in values.items()),
            ]
        )
        names = ["place", *times, *values]
        query = f"""
            select {", ".join(names)}
            from (select {columns} from {self.source.table} where {self._is_timed}) as rows
            join ({self._ranked()}) as ranked on {same}
            where place < {SHOWN_AT_MOST}
            order by place, t_ns
        """
        with sql.opened(self.dataset) as database:
            for batch in filter(len, database.sql(query).to_arrow_reader()):
                yield {name: batch.column(name).to_numpy(zero_copy_only=False) for name in names}

    def _ranked(self) -> str:
        """A query for the connections with their `place`, 0 for the one that sent most."""
        keys = ", ".join(self._key)
        rows, sent = "count(*)", "0"
        if self._sent:
            sent = f"max({self._sent}) - min({self._sent})" if self.source.sent_is_counter else f"sum({self._sent})"
        else:
            # Such a table has series that nobody draws as well.
            rows = f"count(coalesce({', '.join(map(_value, self.panels))}))"
        return f"""
            select *, row_number() over (order by sent desc, n desc, {keys}) - 1 as place
            from (
                select {keys}, {rows} as n, coalesce({sent}, 0) as sent,
                       min({self.source.time}) as first_ns, max({self.source.time}) as last_ns
                from {self.source.table} where {self._is_timed} group by {keys}
            )
            where n > 0
            qualify sent > 0 or max(sent) over () = 0
        """

    @property
    def _is_timed(self) -> str:
        return f"{self.source.time} is not null"

    def _label(self, key: tuple[Any, ...]) -> str:
        own = dict(zip(self._key, key, strict=True))
        if self.source.named_in != self.source.table:
            own |= self._ends.get(key, {})
        if not all(name in own and own[name] is not None for name in self.source.ends):
            return ", ".join(f"{name} {value}" for name, value in own.items() if value is not None) or "a connection"
        return ends(*(own[name] for name in self.source.ends))

    @cached_property
    def _ends(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The ends of each connection, where another table tells them."""
        if self.source.named_in not in self.dataset.tables:
            return {}
        rows = self.dataset.rows(self.source.named_in, [*self._key, *self.source.ends]).to_pylist()
        return {tuple(row[name] for name in self._key): {name: row[name] for name in self.source.ends} for row in rows}


def _value(panel: Panel) -> str:
    """A panel's value in a row, in SQL."""
    value = f"{panel.column}::double"
    return f"case when units = '{panel.units}' then {value} end" if panel.units else value


def _since(panel: Panel) -> str:
    """Where a row has the time from which on that value holds."""
    return f"since_{panel.name}" if panel.since else "t_ns"


def ends(source: str, source_port: int, destination: str, destination_port: int) -> str:
    """A connection as tables and figures call it."""
    return f"{_end(source, source_port)} to {_end(destination, destination_port)}"


def _end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _known(panel: Panel, value: NDArray[Any]) -> NDArray[np.float64]:
    """NaN where there is no value."""
    value = value.astype(np.float64)
    if panel.name in ZERO_IS_NONE and not panel.is_counter:
        value[value == 0] = np.nan
    if panel.name in NO_VALUE_FROM:
        value[value >= NO_VALUE_FROM[panel.name]] = np.nan
    return value


def _finite(t_ns: NDArray[np.int64], value: NDArray[np.float64]) -> Steps:
    known = np.isfinite(value)
    return t_ns[known], value[known]
