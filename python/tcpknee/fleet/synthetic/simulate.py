"""Runs the rows of a plan: many paths in one matrix, on all processors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpknee import _core
from tcpknee.errors import ScenarioError
from tcpknee.evidence import expressions
from tcpknee.runs import api, compose, engines, pool
from tcpknee.runs.job import Job

from .mix import Mix
from .plan import Row, in_scenario, refused, scenario_of, seed_of

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 256
"""Rows of one matrix, whose tables are in memory together."""

SAMPLES = (
    "ca_state",
    "snd_cwnd",
    "snd_ssthresh",
    "inflight",
    "unacked",
    "sacked",
    "lost",
    "retrans",
    "total_retrans",
    "data_segs_out",
    "srtt_us",
    "rttvar_us",
    "min_rtt_us",
    "rto_us",
    "backoff",
    "pacing_rate_bits_per_sec",
    "delivery_rate_bits_per_sec",
    "delivery_rate_app_limited",
    "delivered",
    "delivered_ce",
    "bytes_sent",
    "bytes_retrans",
    "bytes_acked",
    "notsent_bytes",
    "busy_us",
    "rwnd_limited_us",
    "sndbuf_limited_us",
    "reordering",
    "reord_seen",
    "dsack_dups",
)
"""What a sample has of a recorded socket, by the same names in both."""


@dataclass(frozen=True)
class Simulated:
    """What came of a row: the tables `flows` and `samples` of its connections, which `samples` numbers by their rows in
    `flows`. A flow's `group` is the position of its arm in the row."""

    row: Row
    flows: pa.Table
    samples: pa.Table


def run(mix: Mix, rows: Sequence[Row], *, workers: int, watcher: pool.Watcher) -> Iterator[list[Simulated]]:
    """The rows of each matrix in turn, in an order that no number of workers changes. Raises UsageError, EngineError;
    what pool.execute raises."""
    watcher.start(mix.title or mix.file, len(rows), 0)
    try:
        for matrix in _matrices(rows):
            scenario, text = _scenario(mix, matrix)
            cells = _cells(mix, matrix)
            found: dict[pool.Key, dict[str, pa.Table]] = {}
            keys = [(cells[at], at) for at in range(len(matrix))]
            with engines.of("sim", Job(scenario, text, mix.file)) as engine:
                failures = pool.execute(
                    engine, keys, found.__setitem__, cancel=_core.Cancel(), workers=workers, watcher=watcher
                )
            if failures:
                raise failures[min(failures)]
            yield [
                _of_arms(row, found[key]["flows"], found[key]["samples"]) for row, key in zip(matrix, keys, strict=True)
            ]
    finally:
        watcher.stop()


def _of_arms(row: Row, flows: pa.Table, samples: pa.Table) -> Simulated:
    """Without other traffic: it ends at hosts of other sites, which nobody records."""
    import pyarrow as pa

    kept = flows["group"].to_numpy() < len(row.arms)
    if kept.all():
        return Simulated(row, flows, samples)
    flow = samples["flow"].to_numpy()
    chosen = np.flatnonzero(kept[flow])
    at = samples.schema.get_field_index("flow")
    field = samples.schema.field(at)
    numbers = pa.array((np.cumsum(kept) - 1)[flow[chosen]], field.type)
    return Simulated(row, flows.filter(pa.array(kept)), samples.take(chosen).set_column(at, field, numbers))


def _matrices(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows of the same kind of clients and the same arms: their scenarios differ in values alone."""

    def alike(row: Row) -> tuple[str, int]:
        return row.prefix.clients.name, len(row.arms)

    for _, group in groupby(sorted(rows, key=alike), alike):
        members = list(group)
        for begin in range(0, len(members), AT_ONCE):
            yield members[begin : begin + AT_ONCE]


def _values(mix: Mix, row: Row) -> dict[str, str]:
    """Each key that differs between rows of a matrix, with the row's value: arms share the prefix's load."""
    values = {
        name: value
        for key, value in row.prefix.path.items()
        if key != "flow.load"
        for name in in_scenario(key, arms=len(row.arms))
    }
    load = row.prefix.path.get("flow.load", row.prefix.clients.settings.get("flow.load"))
    bits = float(expressions.parse_figure(str(load)).quantity.values[0])
    for at, (arm, share) in enumerate(row.arms):
        values[f"flow.{at}.algorithm"] = mix.arms[arm].algorithm
        values[f"flow.{at}.load"] = f"{max(round(bits * share), 1)}bit/s"
    return values


def _cells(mix: Mix, matrix: Sequence[Row]) -> list[int]:
    """The cell of each row: periods of a prefix with the same arms share one, as repetitions of it."""
    known: dict[tuple[str, ...], int] = {}
    return [known.setdefault(tuple(_values(mix, row).values()), len(known)) for row in matrix]


def _scenario(mix: Mix, matrix: Sequence[Row]) -> tuple[_core.Scenario, str]:
    """The scenario of a matrix, and its text: a cell for each set of values that some rows have. Each row has a
    repetition of its own, so that no two draw the same transfers and losses."""
    distinct = list(dict.fromkeys(tuple(_values(mix, row).items()) for row in matrix))
    first = matrix[0]
    found = scenario_of(mix, first.prefix.clients, [mix.arms[arm].algorithm for arm, _ in first.arms])
    found |= {
        "repeat": len(matrix),
        "seed": seed_of(mix.seed, "rows", first.number, first.prefix.clients.name),
        "samples": list(SAMPLES),
    }
    keys = [key for key, _ in distinct[0]]
    for at, key in enumerate(keys):
        values = [cell[at][1] for cell in distinct]
        _put(found, key, values if len(distinct) > 1 else values[0])
    if len(distinct) > 1:
        found["zip"] = [{"keys": keys}]
    text = compose.toml(found)
    try:
        return api.parse(text, mix.file), text
    except ScenarioError as error:
        raise refused(mix, first.prefix.clients, error) from None


def _put(scenario: dict[str, Any], key: str, value: Any) -> None:
    room, _, name = key.partition(".")
    if room == "flow":
        at, _, name = name.partition(".")
        scenario["flow"][int(at)][name] = value
    else:
        scenario.setdefault(room, {})[name] = value
