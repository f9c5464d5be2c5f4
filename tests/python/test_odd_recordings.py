"""`knee whatif` and `knee fleet compare` on recordings as no kernel should write them: an answer or a refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import odd_recordings
from support import Ended, refused
from tcpknee.whatif import fit, host_noise, predict, render, surrogate

Call = Callable[..., Ended]

SEEDS = range(0, 66, 3)
"""Of a hundred that were tried by hand, since each takes half a second."""


def no_number(name: str) -> Any:
    raise AssertionError(f"{name} in JSON")


def is_answer(ended: Ended) -> bool:
    """Else it is a refusal of one paragraph."""
    if ended.code == 0:
        return isinstance(json.loads(ended.out, parse_constant=no_number), dict)
    refused(ended)
    return False


@pytest.mark.filterwarnings("error")
def test_odd_recordings_get_an_answer_or_a_refusal(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As little search as there can be.
    for name, value in (
        ("_AGAIN", 0),
        ("_CANDIDATES", 1),
        ("_RUNGS", (1.2,)),
        ("_STARTS", 1),
    ):
        monkeypatch.setattr(fit, name, value)
    monkeypatch.setattr(surrogate, "_MOST_STEPS", 0)
    monkeypatch.setattr(host_noise, "TRIED_US", (50.0, 200.0))
    monkeypatch.setattr(predict, "MOST_REHEARSALS", 1)
    # So little search explains no path well, and what is left out is not predicted.
    monkeypatch.setattr(render, "GOOD_MISFIT", float("inf"))
    predicted = compared = 0
    for seed in SEEDS:
        folder = tmp_path / str(seed)
        odd_recordings.write(folder, seed)
        whatif = ("whatif", folder, "--algorithms", "bbr1", "--adoption", "50,100", "--workers", "1")
        predicted += is_answer(call(*whatif, "--json", "-q"))
        compared += is_answer(call("fleet", "compare", folder, "--partial", "--json", "-q"))
    # Some of both, or nothing was tried but the refusals.
    assert 1 < predicted < 12 and 2 < compared < 20, (predicted, compared)


def test_a_column_that_is_missing_or_holds_no_numbers_is_named(call: Call, tmp_path: Path) -> None:
    columns = odd_recordings.sane(odd_recordings.generator(1))
    whatif, compare = ("whatif", "rec", "--algorithms", "bbr1"), ("fleet", "compare", "rec")
    for name, as_type, by_whatif, by_compare in (
        ("busy_us", pa.string(), "sockets: got busy_us as string; expected numbers", "got busy_us as VARCHAR"),
        ("t_mono_ns", pa.float64(), None, "sockets: got t_mono_ns as DOUBLE; expected whole numbers"),
        ("cookie", None, "sockets: got no column cookie", "sockets: got no column cookie"),
    ):
        table = odd_recordings.table(columns)
        place = table.column_names.index(name)
        if as_type is None:
            table = table.remove_column(place)
        else:
            table = table.set_column(place, name, table.column(place).cast(as_type))
        (tmp_path / "rec").mkdir(exist_ok=True)
        pq.write_table(table, tmp_path / "rec" / odd_recordings.FILE)
        if by_whatif is not None:
            refused(call(*whatif), by_whatif)
        refused(call(*compare), by_compare)


def test_connections_that_cannot_be_are_left_out_and_counted(call: Call, tmp_path: Path) -> None:
    columns = odd_recordings.sane(odd_recordings.generator(1))
    rows = [place for place, cookie in enumerate(columns["cookie"]) if cookie == 1]
    for name in ("delivered", "data_segs_out"):
        values = [columns[name][place] for place in rows]
        for place, value in zip(rows, reversed(values), strict=True):
            columns[name][place] = value
    (tmp_path / "rec").mkdir()
    odd_recordings.keep(columns, rows)
    pq.write_table(odd_recordings.table(columns), tmp_path / "rec" / odd_recordings.FILE)
    refused(call("whatif", "rec", "--algorithms", "bbr1"), "got 1 connections", "and 1 whose counters run backwards")
