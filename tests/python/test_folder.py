"""The run folder: parts, merging, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import Ended, cell, refused
from tcpknee.datasets.dataset import Dataset
from tcpknee.errors import EngineError, MissingTable, RunFolderError
from tcpknee.runs import api, engines, manifest, tables
from tcpknee.runs.folder import RunFolder, Written, fresh, next_free
from tcpknee.runs.results import Run

SESSION = {"sessions": [{"started": "2026-05-04T03:02:01+00:00"}]}

META = {
    "status": "interrupted",
    "title": "t",
    "claim": None,
    "file": "t.toml",
    "scenario": "",
    "scenario_sha256": "0",
    "seed": 2**63 + 1,
    "repeat": 3,
    "engine": "sim",
    "engine_version": "0",
    "host": {"kernel": "Linux 6.12"},
    "command": "knee run t.toml",
    "sessions": [{"started": "2026-05-04T03:02:01+00:00"}],
    "cells": [cell(0, [], "cubic"), cell(1, [], "bbr1")],
}


def part(key: tuple[int, int], rows: int = 3, event: str = "open") -> dict[str, pa.Table]:
    """Six small tables, one of them with a dictionary that differs between parts."""
    field = pa.field("value", pa.int64(), metadata={"unit": "us", "doc": "d", "source": "s"})
    schema = pa.schema([field], metadata={"repetition": json.dumps({"data_packets": key[0] * 10 + key[1]})})
    table = pa.table({"value": [key[0] * 100 + key[1]] * rows}, schema=schema)
    flows = table.append_column("flow", pa.array(range(rows), pa.int32()))
    events = pa.table({"event": pa.array([event] * rows).dictionary_encode()})
    return {"flows": flows, "samples": table, "queue": table, "events": events, "cpu_time": table, "host_costs": table}


def test_parts_are_merged_in_the_order_of_the_matrix(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    for key in ((1, 0), (0, 1), (0, 0)):
        folder.write_part(key, part(key, event=f"e{key[0]}"))
    assert folder.parts() == [(0, 0), (0, 1), (1, 0)]
    folder.merge(META, folder.parts())
    assert Dataset(folder.path).rows("flows")["value"].to_pylist() == [0] * 3 + [1] * 3 + [100] * 3
    assert Dataset(folder.path).rows("events")["event"].to_pylist() == ["e0"] * 6 + ["e1"] * 3
    runs = Dataset(folder.path).rows("runs")
    assert runs["data_packets"].to_pylist() == [0, 1, 10]
    assert runs["seed"].to_pylist() == [2**63 + 1] * 3


def test_a_fact_of_many_cells_is_written_once_and_read_in_its_place(tmp_path: Path) -> None:
    both = [["path.rtt", "20ms", "base"], ["path.rate", "1Mbit/s", "rate"]]
    described = [both, [both[1]], [["path.rate", "2Mbit/s", "rate"], both[0]]]
    cells = [{**cell(i, [], "cubic"), "describe": facts} for i, facts in enumerate(described)]
    folder = RunFolder.create(tmp_path / "run")
    folder.write_json({**META, "cells": cells})
    written = json.loads((folder.path / "run.json").read_text())
    assert written["facts"] == [*both, ["path.rate", "2Mbit/s", "rate"]]
    assert [entry["describe"] for entry in written["cells"]] == [[0, 1], [1], [2, 0]]
    read = folder.read_json()
    assert [entry["describe"] for entry in read["cells"]] == described and "facts" not in read
    for damaged in ([7], ["a"], None, 3):
        written["cells"][1]["describe"] = damaged
        (folder.path / "run.json").write_text(json.dumps(written))
        with pytest.raises(RunFolderError, match=r"run\.json: cells: describe: got other than positions in facts"):
            folder.read_json()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"title": None}, "title: got None; expected text"),
        ({"seed": -1}, "seed: got -1; expected a whole number from 0 on"),
        ({"engine": "ns-3"}, 'engine: got \'ns-3\'; expected "sim" or "kernel"'),
        ({"cells": {}}, "cells: got {}; expected a list"),
        ({"cells": []}, "cells: got none; expected one at least"),
        ({"cells": [{**cell(0, [], "cubic"), "axes": 5}]}, "cells[0].axes: got 5; expected a list"),
        ({"cells": [cell(0, [("a",)], "cubic")]}, "cells[0].axes[0]: got ['a']; expected a list of 2"),
        ({"cells": [cell(0, [], "cubic", flows=[{}])]}, "cells[0].flows[0].group: got no such key; expected a whole"),
        ({"cells": [cell(0, [], "cubic", warmup_ns=float("nan"))]}, "cells[0].warmup_ns: got nan; expected a whole"),
        ({"cells": [cell(0, [], "cubic", bottleneck_hop="x")]}, "cells[0].bottleneck_hop: got 'x'; expected a whole"),
        ({"cells": [cell(1, [], "cubic")]}, "cells[0].index: got 1; expected 0"),
        ({"sessions": [{"started": "noon"}]}, "sessions[0].started: got 'noon'; expected a date and time"),
    ],
)
def test_a_description_of_another_shape_names_the_file_and_the_key(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"schema": 1, **META, **change}))
    with pytest.raises(RunFolderError) as caught:
        RunFolder.open(tmp_path).read_json()
    assert str(caught.value).startswith(f"{tmp_path}/run.json: {said}")


def test_a_description_nested_deeper_than_python_reads_is_refused(call: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("[" * 100_000)
    for words in (("report", "run"), ("run", "--resume", "--out", "run"), ("diff", "run", "run")):
        refused(call(*words), "run/run.json: cannot be read as JSON")


def test_merging_twice_and_in_any_order_of_arrival_gives_the_same_bytes(tmp_path: Path) -> None:
    written = []
    for name, order in (("a", [(0, 0), (0, 1), (1, 0)]), ("b", [(1, 0), (0, 1), (0, 0)])):
        folder = RunFolder.create(tmp_path / name)
        for key in order:
            folder.write_part(key, part(key, rows=1000 + key[0]))
        folder.merge(META, folder.parts())
        folder.merge(META, folder.parts())
        written.append([(folder.path / f"{table}.parquet").read_bytes() for table in tables.of_engine("sim")])
    assert written[0] == written[1]


def test_columns_keep_their_metadata_and_tables_are_compressed(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    folder.write_part((0, 0), part((0, 0)))
    folder.merge(META, folder.parts())
    field = Dataset(folder.path).rows("samples").schema.field("value")
    assert field.metadata == {b"unit": b"us", b"doc": b"d", b"source": b"s"}
    file = pq.ParquetFile(folder.path / "flows.parquet")
    assert file.metadata.row_group(0).column(0).compression == "LZ4"
    assert b"repetition" not in {**(file.schema_arrow.metadata or {}), **(file.metadata.metadata or {})}
    assert all(field.metadata[b"doc"] for field in Dataset(folder.path).rows("runs").schema)


def test_many_small_parts_share_row_groups_and_large_ones_are_split(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    for rep in range(10):
        folder.write_part((0, rep), part((0, rep)))
    folder.write_part((1, 0), part((1, 0), rows=300_000))
    folder.merge(META, folder.parts())
    metadata = pq.ParquetFile(folder.path / "flows.parquet").metadata
    assert metadata.num_rows == 300_030
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [30, 1 << 17, 1 << 17, 37_856]


def test_half_written_parts_are_no_parts(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    folder.write_part((0, 0), part((0, 0)))
    for name in (".c000000-r0001.flows.parquet.99.tmp", "c000000-r0001.samples.parquet", "c000000-r0001.queue.parquet"):
        (folder.path / "parts" / name).write_bytes(b"half")
    assert folder.parts() == [(0, 0)]
    with folder.writing_part((0, 1)) as under_way:
        for name, table in part((0, 1)).items():
            under_way.write(name, table)
    assert folder.parts() == [(0, 0)]
    folder.keep_part((0, 1), Written(under_way, {"data_packets": 7}))
    assert folder.parts() == [(0, 0), (0, 1)]
    assert folder.merge(META, folder.parts())[0, 1] == {"data_packets": 7}


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    folder.write_part((0, 0), part((0, 0)))
    for table in ("events", "flows"):
        file = folder.path / "parts" / f"c000000-r0000.{table}.parquet"
        file.write_bytes(file.read_bytes()[:100])
        with pytest.raises(RunFolderError, match=rf"c000000-r0000.{table}.parquet: cannot be read: .* --resume again"):
            folder.merge(META, folder.parts())
    assert not list(folder.path.glob("*.parquet")) and not list(folder.path.glob(".*.tmp"))


def test_foreign_files_are_never_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    for force in (False, True):
        with pytest.raises(RunFolderError, match="not a run folder"):
            RunFolder.create(tmp_path, force=force)
    with pytest.raises(RunFolderError, match="is a file"):
        RunFolder.create(tmp_path / "thesis.tex", force=True)


def test_force_replaces_a_run_and_leaves_what_is_beside_it(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    folder.write_json(META)
    folder.write_part((0, 0), part((0, 0)))
    folder.unlock()
    (folder.path / "notes.md").write_text("mine")
    (folder.path / "calls").mkdir()
    for name in ("12-3.json", "mine.json"):
        (folder.path / "calls" / name).write_text("{}")
    with pytest.raises(RunFolderError, match="already holds a run"):
        RunFolder.create(folder.path)
    again = RunFolder.create(folder.path, force=True)
    assert again.parts() == [] and any((folder.path / "parts").iterdir())
    again.begin()
    assert again.parts() == [] and not (folder.path / "parts").exists() and not (folder.path / "run.json").exists()
    assert [file.name for file in (folder.path / "calls").iterdir()] == ["mine.json"]
    assert (folder.path / "notes.md").read_text() == "mine"


@pytest.mark.parametrize("force", [False, True])
def test_a_run_that_is_taken_back_takes_nothing_of_others_with_it(tmp_path: Path, force: bool) -> None:
    path = tmp_path / "run"
    if force:
        RunFolder.create(path).write_json(META)
    folder = RunFolder.create(path, force=force)
    folder.begin()
    folder.write_json(META)
    theirs = [path / name for name in ("notes", "notes/thesis.tex", "parts/notes.md", "output", "output/mine.txt")]
    for name in ("notes", "parts", "output"):
        (path / name).mkdir()
    for file in theirs:
        file.is_dir() or file.write_text("years of work")
    ours = [path / name for name in ("parts/c000000-r0000.samples.parquet", "output/cell0-rep0-flow0-client.txt")]
    for file in ours:
        file.write_text("")
    folder.discard()
    assert sorted(path.rglob("*")) == sorted([*theirs, path / "parts"])


def test_a_run_that_is_taken_back_leaves_no_folder_that_it_made(tmp_path: Path) -> None:
    for exists in (False, True):
        path = tmp_path / "run"
        if exists:
            path.mkdir()
        folder = RunFolder.create(path)
        folder.write_json(META)
        with folder.writing_part((0, 0)):
            pass
        folder.discard()
        assert path.exists() == exists and not (exists and any(path.iterdir()))


def test_going_on_with_a_run_that_ends_before_its_first_repetition_removes_nothing(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **named: object) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "run"
    monkeypatch.setattr(api, "_execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        api.run(small, out=path)
    assert not path.exists(), "the run that began it"
    folder = RunFolder.create(path)
    text = small.read_text()
    folder.write_json(manifest.describe(api.parse(text, str(small)), text, str(small), "knee run") | SESSION)
    folder.unlock()
    (path / "notes" / "sub").mkdir(parents=True)
    (path / "notes" / "sub" / "thesis.tex").write_text("years of work")
    before = sorted(path.rglob("*"))
    with pytest.raises(KeyboardInterrupt):
        api.run(out=path, resume=True)
    assert sorted(path.rglob("*")) == before


@pytest.mark.parametrize("error", [EngineError("no such host"), KeyboardInterrupt()])
def test_a_run_that_cannot_begin_leaves_the_one_that_it_would_replace(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Ended], error: BaseException
) -> None:
    @contextmanager
    def refuses(*_: object) -> Iterator[None]:
        raise error
        yield

    words = ("run", str(small), "--out", "run", "-q")
    assert call(*words).code == 0
    before = {file: file.read_bytes() for file in (tmp_path / "run").iterdir()}
    engine = engines.of
    monkeypatch.setattr(engines, "of", refuses)
    ended = call(*words, "--force")
    assert ended.code == (2 if isinstance(error, EngineError) else 130)
    assert isinstance(error, EngineError) or "the run in run is as it was" in ended.err
    assert {file: file.read_bytes() for file in (tmp_path / "run").iterdir()} == before
    monkeypatch.setattr(engines, "of", engine)
    assert call(*words, "--force").code == 0
    assert (tmp_path / "run" / "run.json").read_bytes() != before[tmp_path / "run" / "run.json"]


def test_a_lock_that_another_takes_away_meanwhile_keeps_nobody_out(tmp_path: Path) -> None:
    """One opens the lock of a run that then ends and takes it away; a third makes a new one."""
    late, third = RunFolder.create(tmp_path), RunFolder(tmp_path)
    late.unlock()
    held = late._writing

    class Slow:
        def lock(self, name: str) -> object:
            found = held.lock(name)
            if third._lock is None:
                held.remove(name)
                third.lock()
            return found

    (tmp_path / ".lock").touch(0o600)
    late._held = Slow()  # type: ignore[assignment]
    with pytest.raises(RunFolderError, match="another process is writing"):
        late.lock()
    assert third._lock is not None and (tmp_path / ".lock").exists()


def test_two_processes_do_not_write_to_one_folder(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    folder.write_json(META)
    program = (
        "import sys, pathlib, tcpknee.runs.folder as f, tcpknee.errors as e\n"
        "try: f.RunFolder.open(pathlib.Path(sys.argv[1])).lock()\n"
        "except e.RunFolderError as error: print(error)"
    )
    other = subprocess.run([sys.executable, "-c", program, folder.path], capture_output=True, text=True, check=True)
    assert "another process is writing to it" in other.stdout


def test_what_is_missing_or_of_another_version_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="no such folder"):
        RunFolder.open(tmp_path / "none")
    with pytest.raises(RunFolderError, match=r"a folder without run\.json"):
        RunFolder.open(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"schema": 99}))
    with pytest.raises(RunFolderError, match="got 99; expected 1"):
        RunFolder.open(tmp_path).read_json()
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RunFolderError, match="cannot be read as JSON"):
        RunFolder.open(tmp_path).read_json()
    run = Run({"engine": "sim"}, tmp_path)
    with pytest.raises(MissingTable, match=r"flows\.parquet: no such table\. If the run was killed"):
        run.table("flows")
    with pytest.raises(MissingTable, match="got the table 'flow'; expected one of runs, flows"):
        run.rows("flow")
    (tmp_path / "run.json").unlink()
    (tmp_path / "flows.parquet").write_bytes(b"no parquet")
    with pytest.raises(RunFolderError, match=r"flows\.parquet: is damaged: .*Move it away"):
        Run({"engine": "sim"}, tmp_path).table("flows")


def test_two_commands_at_once_get_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = tmp_path / "runs"
    with fresh(runs, "demo") as first, fresh(runs, "demo") as second:
        # What another process takes after one has looked.
        monkeypatch.setattr("tcpknee.runs.folder._numbers", lambda *_: [])
        with fresh(runs, "demo") as third:
            assert [path.name for path in (first, second, third)] == ["demo-1", "demo-2", "demo-3"]
        RunFolder.create(second).write_json(META)
    assert [path.name for path in runs.iterdir()] == ["demo-2"]
    with fresh(tmp_path / "none", "demo"):
        pass
    assert not (tmp_path / "none").exists()


def test_a_folder_that_another_begins_is_not_called_foreign(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path)
    folder.write_part((0, 0), part((0, 0)))
    with pytest.raises(RunFolderError, match="another process is writing"):
        RunFolder.create(tmp_path)
    folder.discard()
    (tmp_path / ".lock").touch(0o600)
    RunFolder.create(tmp_path).unlock()
    assert not any(tmp_path.iterdir()), "a killed process left its lock"
    (tmp_path / ".lock").touch(0o600)
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunFolderError, match="not a run folder"):
        RunFolder.create(tmp_path, force=True)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_run_that_another_finished_meanwhile_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = RunFolder.lock

    def late(folder: RunFolder) -> None:
        (tmp_path / "run.json").write_text("{}")
        real(folder)

    monkeypatch.setattr(RunFolder, "lock", late)
    with pytest.raises(RunFolderError, match="already holds a run"):
        RunFolder.create(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def test_the_next_free_name_is_after_all_that_exist(tmp_path: Path) -> None:
    assert next_free(tmp_path / "runs", "demo") == tmp_path / "runs" / "demo-1"
    for name in ("demo-2", "demo-10", "demo-x", "other-44"):
        (tmp_path / name).mkdir()
    assert next_free(tmp_path, "demo") == tmp_path / "demo-11"


def test_rows_of_flows_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """They come as connections end."""
    folder = RunFolder.create(tmp_path / "run")
    found = part((0, 0), rows=5)
    found["flows"] = found["flows"].take([3, 0, 4, 2, 1])
    folder.write_part((0, 0), found)
    folder.write_part((0, 1), part((0, 1), rows=2))
    folder.merge(META, folder.parts())
    assert Dataset(folder.path).rows("flows")["flow"].to_pylist() == [0, 1, 2, 3, 4, 0, 1]
