"""`tcpknee.Dataset`: folders of tables, whatever wrote them."""

from __future__ import annotations

import io
import json
import pickle
import re
import shutil
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tcpknee
from support import SMALL, Ended, refused
from tcpknee import _core, imports, provenance
from tcpknee.datasets.dataset import Dataset
from tcpknee.datasets.partitions import _File
from tcpknee.errors import MissingTable, RunFolderError, UsageError

Call = Callable[..., Ended]

DUMP = (
    "Fri Aug 21 12:00:00 UTC 2026\nESTAB 0 36 10.1.2.3:443 192.0.2.77:50123\n\t cubic rtt:16/10 cwnd:106\n"
    "Fri Aug 21 12:01:00 UTC 2026\nESTAB 0 36 10.1.2.3:443 192.0.2.77:50123\n\t cubic rtt:18/10 cwnd:53\n"
)


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    (tmp_path / "dump.txt").write_text(DUMP)
    imports.write("ss", tmp_path / "dump.txt", tmp_path / "in", host="edge1")
    return tmp_path / "in"


@pytest.fixture
def recorded(call: Call, tmp_path: Path) -> Path:
    """A recording of a connection over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as near, server.accept()[0] as far:
            near.sendall(b"x" * 100_000)
            assert far.recv(1)
            words = ("--port", str(port), "--for", "300ms", "--every", "100ms", "--out", "rec", "--quiet")
            ended = call("record", *words)
    assert ended.code == 0, ended.err
    return tmp_path / "rec"


def test_a_run_says_what_it_is_and_where_it_comes_from(small_run: Path) -> None:
    found = Dataset(small_run)
    host = provenance.host()
    tables = ("cpu_time", "events", "flows", "host_costs", "queue", "runs", "samples")
    assert (found.kind, found.tables) == ("run", tables)
    told = found.provenance
    assert (told.host, told.boot_id, told.kernel) == (host["name"], host["boot_id"], host["kernel"])
    assert told.version == _core.version() and told.began is not None
    assert len(found.table("flows")) == 6
    opened = tcpknee.open(small_run)
    assert opened.dataset.tables == found.tables
    assert opened.flows.arrow().equals(found.table("flows").arrow())


def test_a_recording_knows_its_host_and_boot_by_its_rows(recorded: Path) -> None:
    found = Dataset(recorded)
    host = provenance.host()
    # What `knee assign` logs is a table of a recording too, but not of every one.
    assert (found.kind, set(found.tables)) == ("recording", set(_core.tables("recording")) - {"assignments"})
    told = found.provenance
    assert (told.host, told.boot_id, told.kernel) == (host["name"], host["boot_id"], host["kernel"])
    assert told.version == _core.version()
    assert told.began is not None and abs((datetime.now(timezone.utc) - told.began).total_seconds()) < 60
    assert found.sql("select count(*) as n from sockets")["n"][0].as_py() == len(found.table("sockets")) > 0


def test_an_import_notes_what_it_read_and_where_it_is_anonymised_neither_names_nor_key(imported: Path) -> None:
    found = Dataset(imported)
    assert (found.kind, found.tables) == ("import", ("sockets",))
    told = found.provenance
    assert (told.host, told.boot_id, told.importers) == ("edge1", None, ("ss",))
    assert told.began == datetime(2026, 8, 21, 12, tzinfo=timezone.utc)
    [about] = found.imports
    assert (about["from"], about["files"], about["rows"]) == (["dump.txt"], ["sockets-000001.parquet"], 2)
    assert (about["anonymize"], about["engine_version"]) == (None, _core.version())
    imports.write("ss", imported.parent / "dump.txt", imported.parent / "hidden", anonymize="hash:secret")
    said = (imported.parent / "hidden" / "import-sockets-000001.json").read_text()
    assert json.loads(said)["anonymize"] == "hash" and "secret" not in said and "dump" not in said


def test_two_imports_into_a_folder_are_an_import_and_one_beside_a_recording_is_none(
    imported: Path, recorded: Path, tmp_path: Path
) -> None:
    imports.write("ss", tmp_path / "dump.txt", imported, host="edge2")
    both = Dataset(imported)
    assert (both.kind, both.provenance.hosts, both.provenance.host) == ("import", ("edge1", "edge2"), None)
    imports.write("ss", tmp_path / "dump.txt", recorded, host="edge1")
    assert Dataset(recorded).kind == "recording"
    assert set(Dataset(recorded).provenance.hosts) == {"edge1", provenance.host()["name"]}


def test_columns_have_unit_and_meaning_from_the_file_or_else_from_the_registry(small_run: Path, tmp_path: Path) -> None:
    def srtt(folder: Path, table: str) -> tuple[str, str, str]:
        [column] = [column for column in Dataset(folder).schema(table) if column.name == "srtt_us"]
        assert column.doc and column.source
        return column.type, column.unit, column.doc

    of_run = srtt(small_run, "samples")
    assert of_run[1] == "us"
    bare = tmp_path / "bare"
    bare.mkdir()
    pq.write_table(pa.table({"srtt_us": [1], "mine": [2]}), bare / "sockets-000001.parquet")
    assert srtt(bare, "sockets") == ("int64", "us", of_run[2])
    assert Dataset(bare).schema("sockets")[1].unit == ""


def test_partitions_are_joined_in_order_with_what_an_unfinished_one_has(tmp_path: Path) -> None:
    for number, columns in ((2, {"x": [2], "y": ["new"]}), (1, {"x": [1]}), (10, {"x": [10], "y": ["newer"]})):
        pq.write_table(pa.table(columns), tmp_path / f"things-{number:06}.parquet")
    found = Dataset(tmp_path)
    table = found.table("things")
    assert (len(table), table.columns) == (3, ["x", "y"])
    assert table.arrow().to_pydict() == {"x": [1, 2, 10], "y": [None, "new", "newer"]}
    assert found.rows("things", ["y"], x=2).to_pydict() == {"y": ["new"]}

    flows = _core.parse(SMALL, "small.toml").run_cell(0, 0).flows
    writers = [_core.SegmentWriter(tmp_path, "flows", flows, 0) for _ in range(2)]
    for writer in writers:
        writer.write(flows)
    writers[0].finish()
    flows_of = Dataset(tmp_path).table("flows")
    assert len(flows_of) == 2 and flows_of["algorithm"].to_pylist() == ["cubic"] * 2
    assert flows_of.describe()["srtt_us_p50"]["unit"] == "us"
    with pytest.raises(UsageError, match="is being written, and cannot be pickled; expected whole files"):
        pickle.dumps(Dataset(tmp_path).table("flows"))


def test_columns_come_in_the_order_asked_for_and_one_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Of one file and of several, which are read in different ways."""
    for folder, parts in ((tmp_path / "one", 1), (tmp_path / "two", 2)):
        folder.mkdir()
        for part in range(1, parts + 1):
            pq.write_table(pa.table({"x": [1], "y": [2], "z": [3]}), folder / f"things-{part:06}.parquet")
        found = Dataset(folder)
        assert found.rows("things", ["z", "x"]).column_names == ["z", "x"]
        assert found.rows("things").column_names == ["x", "y", "z"]
        with pytest.raises(RunFolderError, match="mine"):
            found.rows("things", ["x", "mine"])


def test_rows_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [n * 0.1 for n in range(5_000)]}), tmp_path / "things.parquet", use_dictionary=False)
    whole = (tmp_path / "things.parquet").read_bytes()
    (tmp_path / "things.parquet").write_bytes(whole[:4] + bytes(200) + whole[204:])
    table = Dataset(tmp_path).table("things")
    assert (len(table), table.columns) == (5_000, ["x"])
    with pytest.raises(RunFolderError, match=r"things\.parquet: is damaged: .*Move it away"):
        table.arrow()


def test_a_killed_trace_and_foreign_tables_are_told_apart(tmp_path: Path) -> None:
    for name in ("acks", "events", "connections"):
        pq.write_table(pa.table({"cookie": [1]}), tmp_path / f"{name}-000001.parquet")
    assert Dataset(tmp_path).kind == "trace"
    assert Dataset(tmp_path).provenance.host is None
    (tmp_path / "acks-000001.parquet").unlink()
    assert Dataset(tmp_path).kind == "tables"


def test_what_is_no_dataset_is_said_in_one_paragraph(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="gone: is not there; expected a folder with tables"):
        Dataset(tmp_path / "gone")
    with pytest.raises(RunFolderError, match="holds no table; expected Parquet files"):
        Dataset(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="file: is no folder"):
        Dataset(tmp_path / "file")
    (tmp_path / "run.json").write_text(json.dumps({"schema": 1}))
    with pytest.raises(RunFolderError, match=r"the run was interrupted or is under way\. `knee run --resume"):
        Dataset(tmp_path)
    (tmp_path / "run.json").unlink()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "flows.parquet")
    with pytest.raises(MissingTable, match="got the table 'samples'; expected one of flows"):
        Dataset(tmp_path).table("samples")
    for content, said in (("{", "cannot be read as JSON"), ('{"schema": 2}', "got 2; expected 1. It is of another")):
        for name in ("run.json", "trace.json", "import-flows.json"):
            for other in ("run.json", "trace.json", "import-flows.json"):
                (tmp_path / other).unlink(missing_ok=True)
            (tmp_path / name).write_text(content)
            with pytest.raises(RunFolderError, match=f"{name}: .*{said}"):
                Dataset(tmp_path)
    (tmp_path / name).write_text('{"schema": 1, "files": 3}')
    with pytest.raises(RunFolderError, match="files: got no list; expected that of the segments"):
        Dataset(tmp_path)


def test_a_relative_folder_whose_name_looks_like_a_uri_is_a_folder(call: Call, small: Path, tmp_path: Path) -> None:
    ended = call("run", small, "--out", "a:b", "-q")
    assert ended.code == 0, ended.err
    assert call("sql", "select count(*) as n from flows", "a:b", "--csv").out == "n\n6\n"
    assert tcpknee.open("a:b").rows("samples", ["t_ns"], cell=0, rep=0).num_rows > 0
    assert call("report", "a:b", "--figure", "timeseries", "-q").code == 0
    assert (tmp_path / "a:b" / "timeseries.svg").is_file()


@pytest.mark.parametrize(
    ("table", "column", "change", "said"),
    [
        ("cpu_time", "name", None, "cpu_time: got the column name 2 times; expected it once"),
        ("queue", "rep", pa.string(), "queue: got the column rep as string; expected int32"),
        ("queue", "sent_bytes", pa.list_(pa.int64()), "queue: got the column sent_bytes as list.*; expected int64"),
        ("flows", "algorithm", pa.int64(), "flows: got the column algorithm as int64; expected text"),
    ],
)
def test_a_column_that_is_there_twice_or_of_another_type_is_named(
    call: Call, small_run: Path, tmp_path: Path, table: str, column: str, change: pa.DataType | None, said: str
) -> None:
    odd = tmp_path / "odd"
    shutil.copytree(small_run, odd)
    rows = pq.read_table(odd / f"{table}.parquet")
    if change is None:
        rows = rows.append_column(column, rows[column])
    else:
        rows = rows.set_column(rows.schema.get_field_index(column), column, pa.nulls(len(rows), change))
    pq.write_table(rows, odd / f"{table}.parquet")
    for words in (("report", odd), ("run", "--resume", "--out", odd, "-q")):
        ended = call(*words)
        refused(ended)
        assert re.search(said, ended.err)
    assert call("sql", f"select count(*) from {table}", odd).code == 0


def test_a_recording_whose_times_are_text_is_refused_where_it_is_asked_when_it_began(tmp_path: Path) -> None:
    for name, times in (("sockets", [1]), ("counters", ["now"])):
        pq.write_table(pa.table({"t_unix_ns": times}), tmp_path / f"{name}-000001.parquet")
    with pytest.raises(RunFolderError, match="counters: got the column t_unix_ns as string; expected int64"):
        _ = Dataset(tmp_path).provenance


def test_whole_numbers_that_another_program_wrote_as_floats_are_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"snd_cwnd": [1.0, None]}), tmp_path / "sockets-000001.parquet")
    assert Dataset(tmp_path).rows("sockets")["snd_cwnd"].to_pylist() == [1.0, None]


def test_threads_that_read_an_unfinished_file_at_once_read_what_they_ask_for() -> None:
    """Arrow moves to a place and reads there in two calls, and asks for the size in four."""

    class Content:
        data = bytes(range(251)) * 400

        def __len__(self) -> int:
            return len(self.data)

        def read_at(self, size: int, at: int) -> bytes:
            return self.data[at : at + size]

    class Slow(_File):
        def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
            found = super().seek(offset, whence)
            time.sleep(0)
            return found

    content = Content()
    file = pa.PythonFile(Slow(content), mode="r")

    def read(number: int) -> bool:
        at = number * 37 % 100_000
        return bool(file.size() == len(content) and file.read_at(64, at) == content.data[at : at + 64])

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(read, range(2_000)))
