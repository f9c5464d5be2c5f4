"""One interval as text or JSON, for what is not a terminal."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Any

from tcpknee import say
from tcpknee.live import exclusions

from .filters import Wanted
from .sample import LIMITED, Group, Sample, per_algorithm, take, total
from .view import COLUMNS, algorithms, cell, fitting, local, ordered, peer, peer_width, states, sums, titles

WIDE = 200
"""What a line of text may have where there is no terminal: a table that is cut could not be searched."""


def measured(wanted: Wanted, every_s: float) -> Sample:
    """Two samples, this far apart."""
    first = take(wanted, None)
    time.sleep(every_s)
    return take(wanted, first)


def as_text(sample: Sample, wanted: Wanted, by: str, descending: bool, rows: int | None) -> None:
    """Prints the totals, the algorithms and the first rows; without a socket, what the filters leave out."""
    wide = say.room() or WIDE
    say.line(states(sample, "", wide))
    say.line(sums(total(sample), wide))
    say.lines(algorithms(per_algorithm(sample), WIDE, wide))
    if not len(sample):
        say.line(exclusions.text(exclusions.count(wanted), wanted))
        return
    layout = fitting(wide, peer_width(sample))
    say.line(" ".join(titles(layout)).rstrip())
    for row in ordered(sample, by, descending)[:rows]:
        say.line(" ".join(cell(sample, int(row), column, width) for column, width in layout).rstrip())


def as_json(sample: Sample, wanted: Wanted, by: str, descending: bool, rows: int | None) -> None:
    """Prints one object; null: not known."""
    shown = ordered(sample, by, descending)[:rows]
    told = {
        "schema": 1,
        "elapsed_us": None if math.isnan(sample.elapsed_s) else round(1e6 * sample.elapsed_s),
        "sockets": len(sample),
        "left_out": None if len(sample) else exclusions.count(wanted),
        "states": sample.states.counts(),
        "total": _group(total(sample)),
        "algorithms": [_group(group) for group in per_algorithm(sample)],
        "connections": [_connection(sample, int(row)) for row in shown],
    }
    say.json(told)


def _group(group: Group) -> dict[str, Any]:
    return {
        key: _number(value) if isinstance(value, float) else value for key, value in dataclasses.asdict(group).items()
    }


def _connection(sample: Sample, row: int) -> dict[str, Any]:
    told: dict[str, Any] = {
        "cookie": int(sample.cookies[row]),
        "local": local(sample, row),
        "remote": peer(sample, row),
        "state": sample.states[row],
        "algorithm": sample.algorithms[row],
        "limited_by": LIMITED[sample.limited[row]] or None,
        "sent_bits_per_sec": _number(sample.values["sent_bits_per_sec"][row]),
    }
    named = {column.name for column in COLUMNS} - {"peer", "local_port", *told}
    return told | {name: _number(sample.values[name][row]) for name in sorted(named)}


def _number(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else float(value)
