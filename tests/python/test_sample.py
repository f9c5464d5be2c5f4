"""Scenarios whose paths are rows of a table: read from Parquet, run, told in tables, sent to workers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from dask_here import dask
from support import Ended, knee, tables_of
from tcpknee import _core
from tcpknee.errors import RunFolderError, ScenarioError
from tcpknee.evidence.expressions import parse, terms_of
from tcpknee.runs import api, named_files, parquet, units
from tcpknee.runs.terms import OfCells

PATHS = pa.table(
    {
        "path.rate": ["10Mbit/s", "20Mbit/s", "2Mbit/s", "50Mbit/s"],
        "path.rtt": ["20ms", "43.2ms", "100ms", "5ms"],
        "flow.0.count": pa.array([1, 2, 1, 3], pa.int32()),
    }
)

SCENARIO = """\
title = "Measured paths"
duration = "1s"
repeat = 2
[[flow]]
algorithm = ["cubic", "bbr1"]
[[sample]]
file = "paths.parquet"
rows = "2..4"
"""
"""Three paths, six cells."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """SCENARIO, with its table beside it."""
    pq.write_table(PATHS, tmp_path / "paths.parquet")
    file = tmp_path / "s.toml"
    file.write_text(SCENARIO)
    return file


def test_rows_of_a_parquet_table_are_run_and_told_with_their_values(file: Path) -> None:
    ended = knee("run", "s.toml", "--out", "run", "-q", "--json", cwd=file.parent)
    assert ended.code == 0, ended.err
    runs = pq.read_table(file.parent / "run" / "runs.parquet").to_pylist()
    assert len(runs) == 12
    axes = json.loads(next(row["axes"] for row in runs if row["cell"] == 1))
    assert axes == {
        "flow.0.algorithm": "cubic",
        "sample.0.row": "3",
        "path.rate": "2Mbit/s",
        "path.rtt": "100ms",
        "flow.0.count": "1",
    }
    assert {row["rtt_ns"] for row in runs} == {43_200_000, 100_000_000, 5_000_000}
    assert {row["algorithms"] for row in runs if row["cell"] == 2} == {"cubic:3"}


def test_a_row_with_a_seed_of_its_own_has_its_own_luck(tmp_path: Path) -> None:
    flows = 'duration = "2s"\n[path]\nloss = "1%"\n[[flow]]\nalgorithm = ["cubic", "reno"]\n'
    row = "20Mbit/s,20ms"
    (tmp_path / "paths.csv").write_text(f"path.rate,path.rtt,seed\n{row},3\n{row},4\n{row},3\n")
    (tmp_path / "s.toml").write_text(f'{flows}[[sample]]\nfile = "paths.csv"\n')
    (tmp_path / "alone.toml").write_text(
        "seed = 4\n" + flows.replace("[path]\n", '[path]\nrate = "20Mbit/s"\nrtt = "20ms"\n')
    )
    sampled, alone = (api.run(tmp_path / name, out=tmp_path / Path(name).stem) for name in ("s.toml", "alone.toml"))
    seeds = {row["cell"]: row["seed"] for row in sampled.rows("runs").to_pylist()}
    lives = [(row["bytes_sent"], row["path_lost_pkts"]) for row in sampled.rows("flows").to_pylist()]
    # Cubic on the three rows, then reno.
    assert [seeds[cell] for cell in range(6)] == [3, 4, 3] * 2
    assert lives[0:6:3] == lives[2:6:3] != lives[1:6:3]
    assert lives[1:6:3] == [(row["bytes_sent"], row["path_lost_pkts"]) for row in alone.rows("flows").to_pylist()]


def test_sql_groups_by_the_values_of_rows(file: Path) -> None:
    assert knee("run", "s.toml", "--out", "run", "-q", cwd=file.parent).code == 0
    query = "select rtt_ns, count(*) as n from runs group by rtt_ns order by rtt_ns"
    ended = knee("sql", query, "run", "--json", cwd=file.parent)
    assert ended.code == 0, ended.err
    counted = [(5_000_000, 4), (43_200_000, 4), (100_000_000, 4)]
    assert [(row["rtt_ns"], row["n"]) for row in json.loads(ended.out)["rows"]] == counted


def test_a_parquet_table_means_what_the_same_csv_does(file: Path) -> None:
    from pyarrow import csv

    csv.write_csv(PATHS, file.parent / "paths.csv")
    of_parquet = api.parse(SCENARIO, str(file))
    of_csv = api.parse(SCENARIO.replace(".parquet", ".csv"), str(file))
    assert [cell["hash"] for cell in of_parquet.cells] == [cell["hash"] for cell in of_csv.cells]


@pytest.mark.parametrize("words", [("--dry-run",), ("--out", "run", "-q")])
def test_a_table_is_read_once(
    file: Path, call: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    read, as_csv = [], parquet.as_csv
    monkeypatch.setattr(parquet, "as_csv", lambda table, **most: read.append(table) or as_csv(table, **most))
    assert call("run", file, *words).code == 0
    assert len(read) == 1


def test_the_table_travels_as_text(file: Path) -> None:
    scenario = api.parse(SCENARIO, str(file))
    (file.parent / "paths.parquet").unlink()
    there = units._parsed(SCENARIO, str(file), tuple(scenario.files.items()), ())
    assert [cell["hash"] for cell in there.cells] == [cell["hash"] for cell in scenario.cells]
    lone = _core.read_cell(scenario.write_cell(5), "cell.json")
    assert lone.facts["axes"] == scenario.cells[5]["axes"]


def test_a_cluster_runs_a_sample_as_one_process_does(file: Path) -> None:
    with dask(file.parent / "dask") as found:
        for name, options in (("one", ()), ("many", ("--cluster", found.address))):
            ended = knee("run", "s.toml", "--out", name, "-q", *options, cwd=file.parent)
            assert ended.code == 0, ended.err
    assert tables_of(file.parent / "one") == tables_of(file.parent / "many")


def test_a_run_is_not_resumed_with_another_table(file: Path) -> None:
    api.run(file, out=file.parent / "run")
    pq.write_table(PATHS.slice(1), file.parent / "paths.parquet")
    with pytest.raises(ScenarioError, match="expected rows up to 3"):
        api.run(file, out=file.parent / "run", resume=True)
    pq.write_table(pa.concat_tables([PATHS.slice(1), PATHS.slice(0, 1)]), file.parent / "paths.parquet")
    with pytest.raises(RunFolderError, match="a file that the scenario names is another"):
        api.run(file, out=file.parent / "run", resume=True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no such file"),
        (b"path.rate,path.rtt\n", "Parquet magic bytes not found"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(file: Path, content: bytes | None, said: str) -> None:
    table = file.parent / "paths.parquet"
    table.unlink() if content is None else table.write_bytes(content)
    with pytest.raises(ScenarioError) as refused:
        api.parse(SCENARIO, str(file))
    assert f"{file}:7: sample.0.file: {table}: cannot be read: " in str(refused.value)
    assert said in str(refused.value)


def test_no_more_of_a_parquet_table_is_read_than_of_any_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of its bytes nor of what they unfold into: many equal values take next to no room."""
    large = pa.table({**{name: PATHS[name].to_pylist()[:1] * 40_000 for name in PATHS.column_names}})
    pq.write_table(large, file.parent / "paths.parquet", compression="zstd")
    assert (file.parent / "paths.parquet").stat().st_size < 10_000
    monkeypatch.setattr(named_files, "_MOST_BYTES", 1 << 18)
    with pytest.raises(ScenarioError, match=r"it has more than 0 MiB of values\."):
        api.parse(SCENARIO, str(file))
    monkeypatch.setattr(named_files, "_MOST_BYTES", 100)
    with pytest.raises(ScenarioError, match=r"it has more than 0 MiB\."):
        api.parse(SCENARIO, str(file))


def test_a_value_that_is_no_good_names_table_row_and_column(file: Path) -> None:
    pq.write_table(PATHS.set_column(1, "path.rtt", [["20ms", "43ms", "fast", None]]), file.parent / "paths.parquet")
    with pytest.raises(ScenarioError) as refused:
        api.parse(SCENARIO, str(file))
    first, second = str(refused.value).splitlines()
    assert first.startswith(
        f'{file}:7: sample.0: paths.parquet: row 3: path.rtt: got "fast"; expected a length of time'
    )
    assert second.startswith(f'{file}:7: sample.0: paths.parquet: row 4: path.rtt: got ""; expected a length of time')


def test_an_expectation_is_asked_of_each_row_and_of_no_other_combination(file: Path) -> None:
    cells = list(api.parse(SCENARIO, str(file)).cells)
    meanings = OfCells(cells)
    terms = terms_of(parse("bbr1.goodput > cubic.goodput"))
    places = meanings.places(terms)
    assert [place["sample.0.row"] for place in places] == ["2", "3", "4"]
    assert [place["path.rtt"] for place in places] == ["43.2ms", "100ms", "5ms"]
    assert [meanings.find(terms[0], place) for place in places] in ([(3, 0), (4, 0), (5, 0)], [(0, 0), (1, 0), (2, 0)])


def test_what_is_an_axis_of_some_cells_alone_is_combined_with_all_of_the_others() -> None:
    values = '[path]\nrate = "1Mbit/s"\nrtt = "90ms"\n'
    two = 'duration = "1s"\n' + values + '[[flow]]\nalgorithm = ["cubic", "bbr1"]\n'
    text = two + "cubic.beta = [0.5, 0.7]\nbbr1.cwnd_gain = [1.5, 2.5]\n"
    meanings = OfCells(list(api.parse(text, "s.toml").cells))
    places = meanings.places(terms_of(parse("bbr1.goodput > cubic.goodput")))
    found = [(place["flow.0.cubic.beta"], place["flow.0.bbr1.cwnd_gain"]) for place in places]
    assert found == [("0.5", "1.5"), ("0.5", "2.5"), ("0.7", "1.5"), ("0.7", "2.5")]
