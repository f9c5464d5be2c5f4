"""`knee sql`, end to end."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import kneepoint
from support import Ended

Call = Callable[..., Ended]


def refused(ended: Ended, *parts: str) -> None:
    """Exit 2, nothing on stdout, one paragraph on stderr that says these things."""
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1 and "Traceback" not in ended.err
    for part in parts:
        assert part in ended.err


def test_sql_asks_runs_too_and_prints_a_table_json_or_csv(call: Call, small_run: Path) -> None:
    query = "select algorithm, count(*) as flows, null as nothing from flows group by all order by algorithm"
    assert call("sql", query, small_run).out.splitlines() == [
        "algorithm  flows  nothing",
        "---------  -----  -------",
        "bbr1           3        -",
        "cubic          3        -",
    ]
    listed = list(csv.reader(call("sql", query, small_run, "--csv").out.splitlines()))
    assert listed == [["algorithm", "flows", "nothing"], ["bbr1", "3", ""], ["cubic", "3", ""]]
    assert json.loads(call("sql", query, small_run, "--json").out)["rows"][0] == {
        "algorithm": "bbr1",
        "flows": 3,
        "nothing": None,
    }
    assert kneepoint.sql(query, small_run)["flows"].to_pylist() == [3, 3]


def test_sql_says_what_is_wrong_in_one_paragraph(call: Call, small_run: Path, tmp_path: Path) -> None:
    refused(call("sql", "select * from nope", small_run), "nope", "Its tables are", "samples")
    refused(call("sql", "select nope from flows", small_run), "nope")
    refused(call("sql", "selec", small_run), "syntax error")
    refused(call("sql", "select 1", tmp_path / "gone"), "gone: is not there")
    refused(call("sql", "select 1", tmp_path), "holds no table")


def test_a_statement_without_an_answer_is_an_empty_table(small_run: Path) -> None:
    assert kneepoint.sql("set threads = 1", small_run).num_rows == 0


def test_sql_reads_folders_whose_name_is_a_pattern(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "a[1]*'b"
    folder.mkdir()
    for number, columns in enumerate(({"x": [1]}, {"x": [2], "y": ["new"]}), 1):
        pq.write_table(pa.table(columns), folder / f"things-{number:06}.parquet")
    assert call("sql", "from things order by x", folder, "--csv").out == "x,y\n1,\n2,new\n"


def test_sql_leaves_parts_of_other_programs_alone(call: Call, small_run: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "acks.parquet")
    for name in (".acks.parquet.part", "acks.parquet.part"):
        (tmp_path / name).write_bytes(b"under way")
    assert call("sql", "select count(*) from acks", tmp_path).code == 0
    assert (
        (tmp_path / ".acks.parquet.part").read_bytes() == (tmp_path / "acks.parquet.part").read_bytes() == b"under way"
    )
