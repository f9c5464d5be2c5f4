"""`knee sql`, end to end."""

from __future__ import annotations

import csv
import errno
import io
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tcpknee
from support import SMALL, Ended, refused
from tcpknee import _core, say
from tcpknee.datasets import sql
from tcpknee.datasets.dataset import Dataset

Call = Callable[..., Ended]


def test_sql_prints_tables_for_documents(call: Call, small_run: Path) -> None:
    query = 'select 1.5 as "a_b|c", \'x & 50%\' as "what", null as n'
    markdown = call("sql", query, small_run, "--format", "md").out.splitlines()
    assert markdown == ["| a\\_b\\|c | what | n |", "| --: | --- | --: |", "| 1.5 | x & 50% | - |"]
    latex = call("sql", query, small_run, "--format", "latex").out.splitlines()
    assert latex[0] == r"\begin{tabular}{rlr}" and latex[-1] == r"\end{tabular}"
    assert latex[2] == r"a\_b|c & what & n \\" and latex[4] == r"1.5 & x \& 50\% & - \\"
    assert call("sql", query, small_run, "--format", "md", "--csv").code == 2


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
    assert tcpknee.sql(query, small_run)["flows"].to_pylist() == [3, 3]


def test_json_of_sql_has_null_for_what_is_no_number_of_json(call: Call, small_run: Path) -> None:
    query = "select corr(cell, cell) as c, 'inf'::double as i, ['-inf'::double, 1.5] as l from flows where cell = 0"

    def never(found: str) -> None:
        raise AssertionError(f"{found} is no JSON")

    found = json.loads(call("sql", query, small_run, "--json").out, parse_constant=never)
    assert found["rows"] == [{"c": None, "i": None, "l": [None, 1.5]}]


def test_json_of_sql_loses_no_column_of_a_name_that_stands_twice(call: Call, small_run: Path) -> None:
    query = "select 1 as a, 2 as a"
    refused(call("sql", query, small_run, "--json"), '--json: got 2 columns "a"; expected a name for each', "--csv")
    assert call("sql", query, small_run, "--csv").out.splitlines() == ["a,a", "1,2"]


def test_sql_says_what_is_wrong_in_one_paragraph(call: Call, small_run: Path, tmp_path: Path) -> None:
    refused(call("sql", "select * from nope", small_run), "nope", "expected one of", "samples")
    refused(call("sql", "select nope from flows", small_run), "nope")
    refused(call("sql", "selec", small_run), "syntax error")
    refused(call("sql", "select 1", tmp_path / "gone"), "gone: is not there")
    refused(call("sql", "select 1", tmp_path), "holds no table")


@pytest.mark.parametrize("query", ["", " ;", "-- nothing"])
def test_a_query_without_a_statement_is_refused(call: Call, small_run: Path, query: str) -> None:
    for more in ((), ("--external",)):
        refused(call("sql", *more, "--", query, small_run), f'"{query.strip()}": got no statement; expected one')


def test_a_full_disk_is_told_by_its_error_of_the_system(small_run: Path) -> None:
    with sql.opened(Dataset(small_run), external=True) as database, Path("/dev/full").open("wb") as file:
        with pytest.raises(OSError, match="No space left on device") as caught:
            sql.write_csv(database, "samples", file)
        assert caught.value.errno == errno.ENOSPC


def test_a_statement_without_an_answer_is_an_empty_table(small_run: Path) -> None:
    assert tcpknee.sql("set variable a = 1", small_run).num_rows == 0


def test_sql_reads_folders_whose_name_is_a_pattern(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "a[1]*'b"
    folder.mkdir()
    for number, columns in enumerate(({"x": [1]}, {"x": [2], "y": ["new"]}), 1):
        pq.write_table(pa.table(columns), folder / f"things-{number:06}.parquet")
    assert call("sql", "from things order by x", folder, "--csv").out == "x,y\n1,\n2,new\n"


def test_a_long_query_draws_no_progress_among_its_answer(small_run: Path) -> None:
    found = tcpknee.sql("select current_setting('enable_progress_bar') as drawn", small_run)
    assert found["drawn"].to_pylist() == [False]


def test_sql_leaves_parts_of_other_programs_alone(call: Call, small_run: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "acks.parquet")
    for name in (".acks.parquet.part", "acks.parquet.part"):
        (tmp_path / name).write_bytes(b"under way")
    assert call("sql", "select count(*) from acks", tmp_path).code == 0
    assert (
        (tmp_path / ".acks.parquet.part").read_bytes() == (tmp_path / "acks.parquet.part").read_bytes() == b"under way"
    )


REACHES_OUT = (
    "from read_text('{secret}')",
    "from read_csv('{secret}')",
    "from read_blob('/proc/self/environ')",
    "from glob('{folder}/../*')",
    "attach '{secret}.db'",
    "copy things to '{secret}.csv'",
    "copy (select 1) to '{segment}' (format parquet, use_tmp_file false)",
    "explain analyze copy (select 1) to '{segment}' (format parquet, use_tmp_file false)",
    "prepare p as copy (select 1) to '{segment}' (format parquet, use_tmp_file false)",
    "export database '{folder}/out'",
    "install httpfs",
    "load httpfs",
    "set enable_external_access = true",
    "set temp_directory = '{folder}'",
    "create persistent secret s (type s3)",
)


def test_a_query_reads_the_tables_of_its_folder_and_nothing_else(call: Call, tmp_path: Path) -> None:
    folder, secret = tmp_path / "rec", tmp_path / "secret"
    folder.mkdir()
    secret.write_text("a,b\n1,hidden\n")
    segment = folder / "things-000001.parquet"
    pq.write_table(pa.table({"x": [1]}), segment)
    before = (segment.read_bytes(), sorted(tmp_path.rglob("*")))
    for form in REACHES_OUT:
        query = form.format(folder=folder, secret=secret, segment=segment)
        ended = call("sql", query, folder)
        refused(ended)
        assert "hidden" not in ended.err
        assert (segment.read_bytes(), sorted(tmp_path.rglob("*"))) == before, query
    refused(call("sql", f"from read_csv('{secret}')", folder), "--external")
    answer = call("sql", f"select b from read_csv('{secret}')", folder, "--external", "--csv")
    assert answer.out == "b\nhidden\n"
    assert tcpknee.sql(f"from read_csv('{secret}')", folder, external=True)["b"].to_pylist() == ["hidden"]


def test_what_a_query_makes_in_memory_is_allowed(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "things.parquet")
    query = "create temp table y as select x + 1 as z from things; explain analyze from y; select sum(z) as s from y"
    assert tcpknee.sql(query, tmp_path)["s"].to_pylist() == [5]


def cut(whole: bytes) -> bytes:
    return whole[: len(whole) // 2]


def zeroed(whole: bytes) -> bytes:
    """The pages of the first column."""
    return whole[:4] + bytes(200) + whole[204:]


@pytest.mark.parametrize("damage", [cut, zeroed, lambda _: b"", lambda _: b"no Parquet at all" * 40])
def test_a_damaged_segment_is_one_line_that_names_it_and_other_tables_can_be_asked(
    damage: Callable[[bytes], bytes], call: Call, tmp_path: Path
) -> None:
    rows = pa.table({"x": [n * 0.1 for n in range(5_000)]})
    for name in ("things-000001", "things-000002", "others-000001"):
        pq.write_table(rows, tmp_path / f"{name}.parquet", use_dictionary=False)
    bad = tmp_path / "things-000002.parquet"
    bad.write_bytes(damage(bad.read_bytes()))
    refused(call("sql", "select sum(x) from things", tmp_path), f"{bad}: is damaged", "Move it away")
    assert call("sql", "select count(*) as n from others where x >= 0", tmp_path, "--csv").out == "n\n5000\n"
    bad.unlink()
    assert call("sql", "select count(*) as n from things where x >= 0", tmp_path, "--csv").out == "n\n5000\n"


def test_an_unfinished_segment_is_seen_beside_whole_ones_and_nothing_changes(call: Call, tmp_path: Path) -> None:
    flows = _core.parse(SMALL, "small.toml").run_cell(0, 0).flows
    for _ in range(2):
        writer = _core.SegmentWriter(tmp_path, "flows", flows, 0)
        writer.write(flows)
        writer.finish()
    writer = _core.SegmentWriter(tmp_path, "flows", flows, 0)
    writer.write(flows)
    empty = _core.SegmentWriter(tmp_path, "samples", flows, 10_000)
    empty.write(flows)

    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    before = files()
    query = "select count(*) as n, min(algorithm) as a from flows"
    # While its writers live, and when they are gone.
    assert tcpknee.sql(query, tmp_path).to_pylist() == [{"n": 3, "a": "cubic"}]
    assert tcpknee.sql("from samples", tmp_path).num_rows == 0
    del writer, empty
    assert tcpknee.sql(query, tmp_path).to_pylist() == [{"n": 3, "a": "cubic"}]
    assert call("sql", "describe samples", tmp_path).code == 0
    assert files() == before


def test_a_recording_without_sockets_has_every_table(call: Call, tmp_path: Path) -> None:
    recorded = call("record", "--port", "1", "--for", "50ms", "--every", "50ms", "--out", "rec", "--quiet")
    assert recorded.code == 0, recorded.err
    assert {name for (name,) in csv.reader(call("sql", "show tables", "rec", "--csv").out.splitlines()[1:])} == {
        *_core.tables("recording")
    } - {"assignments"}  # which `knee assign` writes
    assert call("sql", "select count(*) as n from sockets", "rec", "--csv").out == "n\n0\n"
    assert "srtt_us" in call("sql", "describe sockets", "rec").out


def test_what_does_not_fit_memory_goes_to_a_folder_of_its_own(call: Call, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": list(range(100_000))}), tmp_path / "things.parquet")
    before = sorted(tmp_path.iterdir())
    told = tcpknee.sql("select current_setting('temp_directory') as folder from things limit 1", tmp_path)
    folder = Path(told["folder"][0].as_py())
    assert folder.parent == Path(tempfile.gettempdir()) and not folder.exists()
    assert sorted(tmp_path.iterdir()) == before


def test_an_unfinished_segment_whose_pages_are_damaged_is_named(call: Call, tmp_path: Path) -> None:
    flows = _core.parse(SMALL, "small.toml").run_cell(0, 0).flows
    writer = _core.SegmentWriter(tmp_path, "flows", flows, 0)
    writer.write(flows)
    del writer
    part = tmp_path / "flows-000001.parquet.part"
    part.write_bytes(b"PAR1" + bytes(len(part.read_bytes()) - 4))
    refused(call("sql", "from flows", tmp_path), str(part))


def test_names_of_files_are_no_sql(call: Call, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "things.parquet")
    for name in ('a"; drop view things; --', "b c", "tcp-sockets"):
        (tmp_path / f"{name}-000001.parquet.part").write_bytes(b"PAR1")
        (tmp_path / f"{name}-000001.parquet.groups").write_bytes(b"")
        pq.write_table(pa.table({"x": [1]}), tmp_path / f"{name}-000002.parquet")
    assert call("sql", "show tables", tmp_path, "--csv").out == "name\nthings\n"


def test_csv_of_every_table_has_no_formula_and_no_harmful_character(call: Call, tmp_path: Path) -> None:
    """Ordinary users name devices, cgroups and processes."""
    from test_say import FORMULAS

    harmful = [chr(code) for code in (*range(1, 32), *range(127, 160), 0x61C, 0x200E, 0x202E, 0x2028, 0x2066)]
    texts = [*FORMULAS, *(f"a{one}" for one in harmful), *harmful, "-5", "plain", None]
    numbers = pa.array([-1.5] * len(texts))
    columns = {"interface": pa.array(texts), "=1+1": numbers, "list": pa.array([[text] for text in texts])}
    columns["blob"] = pa.array([b"=1"] * len(texts))
    folder = tmp_path / "things"
    folder.mkdir()
    for name in ("things", "others"):
        pq.write_table(pa.table(columns), folder / f"{name}-000001.parquet")
    assert call("export", folder, "--format", "csv", "--out", "out", "-q").code == 0
    for name in ("things", "others"):
        text = (tmp_path / "out" / f"{name}.csv").read_text()
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u2028\u202e\u2066]", text)
        header, *rows = csv.reader(io.StringIO(text, newline=""))
        assert header == ["interface", "'=1+1", "list", "blob"]
        assert [row[0] for row in rows] == [say.csv_cell(text or "") for text in texts]
        assert {row[1] for row in rows} == {"-1.5"} and {row[3] for row in rows} == {"'=1"}
