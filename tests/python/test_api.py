"""The Python API: runs in memory and in folders, tables without copies, errors of one family."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tcpknee
from support import SMALL, tables_of
from tcpknee.errors import ScenarioError
from tcpknee.runs import compose


@pytest.fixture(scope="module")
def run() -> tcpknee.Run:
    """A run in memory."""
    return tcpknee.run(SMALL)


def test_a_run_in_memory_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = tcpknee.run(SMALL)
    assert run.folder is None and run.complete
    assert len(run.runs) == len(run.flows) == 6
    assert list(tmp_path.iterdir()) == []


def test_memory_and_folder_hold_the_same_tables(run: tcpknee.Run, small_run: Path) -> None:
    stored = tcpknee.open(small_run)
    for name in ("runs", "flows", "samples", "queue", "events"):
        assert run.table(name).arrow().to_pylist() == stored.table(name).arrow().to_pylist()
        assert run.table(name).describe() == stored.table(name).describe()
    metrics, of_stored = (
        [[cell["metrics"] for cell in found.json()["cells"]], [verdict.text for verdict in found.summary.verdicts]]
        for found in (run, stored)
    )
    assert metrics == of_stored


def test_every_column_has_its_meaning(run: tcpknee.Run) -> None:
    for name in ("runs", "flows", "samples", "queue", "events"):
        for column, about in run.table(name).describe().items():
            assert set(about) == {"unit", "doc", "source"}, column
            assert about["doc"]


def test_arrow_memory_is_the_engines_own() -> None:
    """The same address through two imports: neither made a copy."""
    from tcpknee import _core
    from tcpknee.runs.tables import as_table

    output = _core.parse(SMALL, "t").run_cell(0, 0)
    for column in ("snd_cwnd", "t_ns", "cell"):
        addresses = {as_table(output.samples)[column].chunk(0).buffers()[1].address for _ in range(2)}
        assert len(addresses) == 1


def test_pandas_and_polars_see_the_same_memory(run: tcpknee.Run) -> None:
    pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    samples = run.samples.arrow()
    addresses = [chunk.buffers()[1].address for chunk in samples["snd_cwnd"].chunks]
    frame = run.samples.to_pandas()
    assert [
        chunk.buffers()[1].address for chunk in pa.chunked_array(frame["snd_cwnd"].array.__arrow_array__()).chunks
    ] == addresses
    series = run.samples.to_polars()["snd_cwnd"]
    assert isinstance(series, polars.Series)
    assert [chunk.to_arrow().buffers()[1].address for chunk in series.get_chunks()] == addresses


def test_tables_speak_the_arrow_interface(run: tcpknee.Run) -> None:
    assert pa.table(run.queue).num_rows == len(run.queue)
    assert run.flows["algorithm"].to_pylist()[:3] == ["cubic"] * 3
    assert "goodput_bits_per_sec" in run.flows.columns


def test_keywords_are_a_scenario(run: tcpknee.Run) -> None:
    other = tcpknee.run(
        title="Small",
        duration="2s",
        warmup="500ms",
        repeat=3,
        seed=7,
        path={"rate": "10Mbit/s", "rtt": "20ms", "loss": "1%"},
        flow=[{"algorithm": ["cubic", "bbr1"]}],
    )
    assert other.flows.arrow().equals(run.flows.arrow())


def test_compare_pairs_its_algorithms() -> None:
    run = tcpknee.compare("cubic", "reno", rate="10Mbit/s", rtt="20ms", loss="1%", duration="2s", warmup="0s", repeat=2)
    assert [group.algorithm for group in run.summary.groups] == ["cubic", "reno"]
    assert {(verdict.a, verdict.b) for verdict in run.summary.verdicts} == {("cubic", "reno")}
    mixed = tcpknee.compare("cubic:1,reno:2", rate="10Mbit/s", duration="1s", warmup="0s", repeat=1)
    assert [group.count for group in mixed.summary.groups] == [1, 2]


def test_the_command_of_a_comparison_runs_it_again() -> None:
    given = {"rate": ["10Mbit/s", "20Mbit/s"], "duration": "1s", "repeat": 1, "seed": 0, "set": {"sender.initcwnd": 4}}
    run = tcpknee.compare("cubic", "reno", **given)
    assert run.meta["command"] == (
        "tcpknee.compare('cubic', 'reno', duration='1s', repeat=1, seed=0, set={'sender.initcwnd': 4}, "
        "rate=['10Mbit/s', '20Mbit/s'])"
    )
    again = eval(run.meta["command"], {"tcpknee": tcpknee})
    assert again.meta["scenario"] == run.meta["scenario"] and again.flows.arrow().equals(run.flows.arrow())


def test_a_comparison_replaces_a_run_only_by_force(tmp_path: Path) -> None:
    given = {"duration": "1s", "repeat": 1, "out": tmp_path / "r"}
    tcpknee.compare("cubic", **given)
    with pytest.raises(tcpknee.RunFolderError, match=r"Choose another folder, .*In Python .* `force=True`"):
        tcpknee.compare("reno", **given)
    assert tcpknee.compare("reno", force=True, **given).flows["algorithm"].to_pylist() == ["reno"]


def test_resume_needs_a_folder_that_it_keeps(small_run: Path) -> None:
    with pytest.raises(tcpknee.UsageError, match="resume: got it with no out; expected the folder of the run"):
        tcpknee.run(SMALL, resume=True)
    with pytest.raises(tcpknee.UsageError, match="resume: got it with force; expected one of them"):
        tcpknee.run(SMALL, out=small_run, resume=True, force=True)


def test_one_repetition_of_several_is_told_from_one_alone(run: tcpknee.Run) -> None:
    first = {key: part for key, part in run._parts.items() if key[1] == 0}
    [said] = [line for line in tcpknee.Run(run.meta, None, first).summary.warnings if "One repetition" in line]
    assert said == "One repetition: no intervals and no verdicts; all 3 of the scenario would give them."
    [said] = tcpknee.Run({**run.meta, "repeat": 1}, None, first).summary.warnings
    assert said.endswith("`repeat = 5` in the scenario would give them.")


def test_a_ratio_of_json_is_b_over_a_whoever_is_greater() -> None:
    text = SMALL.replace("repeat = 3", "repeat = 5")
    run = tcpknee.run(text.replace('["cubic", "bbr1"]', '["bbr1", "cubic"]'))
    values = {group.algorithm: group.values for group in run.summary.groups}
    ratios = [verdict for verdict in run.json()["verdicts"] if "ratio" in verdict]
    for verdict in ratios:
        a, b = (values[verdict[side]][verdict["metric"]] for side in "ab")
        assert verdict["ratio"]["mean"] == pytest.approx(np.exp(np.log(b / a).mean()))
    [goodput] = [verdict for verdict in ratios if verdict["metric"] == "goodput_bits_per_sec"]
    assert (goodput["a"], goodput["b"]) == ("bbr1", "cubic") and goodput["ratio"]["mean"] < 1
    assert goodput["text"].startswith("goodput: bbr1 is 1.")


def test_retransmitted_handshakes_are_in_total_retrans_and_not_in_bytes_retrans() -> None:
    """As docs/tables.md has it."""
    flow = {"algorithm": "cubic", "workload": "web", "load": "1Mbit/s", "sizes": "pareto shape 1.5 from 2kB to 20kB"}
    path = {"rate": "10Mbit/s", "rtt": "20ms", "loss": "10%"}
    run = tcpknee.run(duration="5s", path=path, flow=[flow])
    of_handshakes = [row for row in run.rows("flows").to_pylist() if row["total_retrans"] and not row["bytes_retrans"]]
    assert of_handshakes and all(row["retransmit_pct"] > 0 for row in of_handshakes)


def test_workers_change_nothing_in_memory(run: tcpknee.Run) -> None:
    assert tcpknee.run(SMALL, workers=1).samples.arrow().equals(run.samples.arrow())


def test_a_run_resumes_through_the_api(tmp_path: Path) -> None:
    """What a killed run leaves: `run.json` that says interrupted, and parts."""
    from tcpknee import _core
    from tcpknee.runs import tables
    from tcpknee.runs.folder import RunFolder

    tcpknee.run(SMALL, out=tmp_path / "whole")
    meta = RunFolder.open(tmp_path / "whole").read_json()
    folder = RunFolder.create(tmp_path / "killed")
    folder.write_json({**meta, "status": "interrupted"})
    folder.write_part((1, 1), tables.of_simulator(_core.parse(SMALL, "t").run_cell(1, 1)))
    folder.unlock()
    run = tcpknee.run(out=tmp_path / "killed", resume=True)
    assert run.complete
    assert run.meta["sessions"][-1]["repetitions"] == 5
    assert tables_of(tmp_path / "killed") == tables_of(tmp_path / "whole")
    assert (run.meta["file"], run.meta["command"]) == ("<text>", "tcpknee.run(scenario)")


@pytest.mark.parametrize("in_folder", [True, False])
def test_a_run_and_its_tables_are_pickled(run: tcpknee.Run, small_run: Path, in_folder: bool) -> None:
    found = tcpknee.open(small_run) if in_folder else run
    unread, flows = found.samples, found.flows
    assert flows.arrow().num_rows == 6 and found.rows("queue").num_rows > 0 and found.summary.verdicts
    again = pickle.loads(pickle.dumps(found))
    assert again.flows.arrow().equals(flows.arrow())
    assert [verdict.text for verdict in again.summary.verdicts] == [one.text for one in found.summary.verdicts]
    assert pickle.loads(pickle.dumps(unread))["snd_cwnd"].equals(found.samples["snd_cwnd"])
    assert pickle.loads(pickle.dumps(flows)).describe() == flows.describe()


def test_a_dataset_is_pickled_after_its_tables_were_read(small_run: Path) -> None:
    found = tcpknee.Dataset(small_run)
    assert found.rows("flows", cell=0).num_rows == 3
    again = pickle.loads(pickle.dumps(found))
    assert again.rows("flows", cell=0).equals(found.rows("flows", cell=0))


@pytest.mark.parametrize("in_folder", [True, False])
def test_an_unknown_column_is_a_missing_column(run: tcpknee.Run, small_run: Path, in_folder: bool) -> None:
    found = tcpknee.open(small_run) if in_folder else run
    said = r"flows: got the column 'x'; expected one of cell, rep, "
    for ask in (
        lambda: found.rows("flows", ["cell", "x"]),
        lambda: found.rows("flows", x=0),
        lambda: found.batches("flows", ["x", "cell"]),
    ):
        with pytest.raises(tcpknee.MissingColumn, match=said):
            ask()
    assert [batch.num_rows for batch in found.batches("flows", ["cell"])] != []


def test_a_dataset_says_which_column_it_has_not(small_run: Path) -> None:
    found = tcpknee.Dataset(small_run)
    with pytest.raises(tcpknee.MissingColumn, match="flows: got the column 'x'"):
        found.rows("flows", x=0)
    with pytest.raises(tcpknee.MissingColumn, match="flows: got the column 'x'"):
        found.batches("flows", ["x"])


def test_errors_are_of_one_family(tmp_path: Path) -> None:
    with pytest.raises(tcpknee.ScenarioError, match=r"<text>:1: "):
        tcpknee.run("duration = 1")
    with pytest.raises(tcpknee.ScenarioError, match=r"none\.toml: there is no such file"):
        tcpknee.run(tmp_path / "none.toml")
    with pytest.raises(tcpknee.ScenarioError, match=r"(?m)^run\(\): paht: unknown key"):
        tcpknee.run(duration="1s", paht={"rate": "1Mbit/s"})
    with pytest.raises(tcpknee.UsageError, match="got a scenario and settings"):
        tcpknee.run(SMALL, duration="1s")
    with pytest.raises(tcpknee.UsageError, match="expected a scenario"):
        tcpknee.run()
    with pytest.raises(tcpknee.UsageError, match="workers: got 0"):
        tcpknee.run(SMALL, workers=0)
    with pytest.raises(tcpknee.UsageError, match=r"path\.rate: got None"):
        tcpknee.run(path={"rate": None})
    with pytest.raises(tcpknee.RunFolderError):
        tcpknee.open(tmp_path)
    with pytest.raises(tcpknee.MissingTable):
        tcpknee.run(SMALL).table("flow")
    for error in (tcpknee.ScenarioError, tcpknee.EngineError, tcpknee.UsageError, tcpknee.RunFolderError):
        assert issubclass(error, tcpknee.TcpkneeError)
    assert issubclass(tcpknee.MissingTable, tcpknee.RunFolderError)
    assert issubclass(tcpknee.MissingColumn, tcpknee.RunFolderError)
    assert issubclass(tcpknee.KernelUnsupported, tcpknee.EngineError)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda run: tcpknee.compare(["cubic", "bbr1"]),
            r"algorithms\[0\]: got \['cubic', 'bbr1'\]; expected the name",
        ),
        (lambda run: tcpknee.compare(None), r"algorithms\[0\]: got None; expected the name of one"),
        (lambda run: tcpknee.compare("cubic", set="a=1"), "set: got 'a=1'; expected a dict of keys and values"),
        (lambda run: tcpknee.compare("cubic", duration=5), "duration: "),
        (lambda run: tcpknee.run({"duration": "1s"}), r"scenario: got .*; expected a path.*run\(\*\*keys\)"),
        (lambda run: tcpknee.run(b"s.toml"), "scenario: got b's.toml'; expected a path"),
        (lambda run: tcpknee.run(SMALL, kernel=6.12), r"kernel: got 6\.12; expected a release such as"),
        (lambda run: tcpknee.run(SMALL, kernel=[]), r"kernel: got \[\]; expected a release such as"),
        (lambda run: tcpknee.run(SMALL, workers="2"), "workers: got '2'; expected a whole number"),
        (lambda run: tcpknee.run(SMALL, workers=1.5), r"workers: got 1\.5; expected a whole number"),
        (lambda run: tcpknee.run(SMALL, workers=True), "workers: got True; expected a whole number"),
        (
            lambda run: tcpknee.run(title="a\ud800b", duration="1s"),
            r"title: got 'a\\ud800b'; expected whole characters",
        ),
        (
            lambda run: tcpknee.sql("select 1", run),
            r"folder: got <tcpknee run .*; expected the path .*run\.dataset\.sql",
        ),
        (lambda run: tcpknee.sql(None, "."), "query: got None; expected text"),
        (lambda run: tcpknee.Dataset(None), "path: got None; expected a path"),
        (lambda run: tcpknee.open(None), "folder: got None; expected a path"),
        (lambda run: tcpknee.diff(run, None), "b: got None; expected a run, or the path of its folder"),
        (lambda run: tcpknee.figure(run, None), "name: got None; expected text"),
        (lambda run: tcpknee.figure(None, "goodput"), "run: got None; expected a run"),
        (lambda run: tcpknee.figures(None), "run: got None; expected a run"),
    ],
)
def test_an_argument_of_a_wrong_type_is_refused_by_its_name(
    run: tcpknee.Run, small_run: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., object], said: str
) -> None:
    monkeypatch.chdir(small_run)
    with pytest.raises((tcpknee.UsageError, tcpknee.ScenarioError), match=said):
        call(run)


def test_numbers_of_numpy_are_numbers() -> None:
    path = {"rate": "10Mbit/s", "rtt": "20ms"}
    keys = {"duration": "1s", "flow": [{"algorithm": "cubic", "count": np.int64(2)}]}
    run = tcpknee.run(repeat=np.int64(2), path=path, workers=np.int64(1), **keys)
    assert len(run.flows) == 4
    assert run.json()["schema"] and run.meta["sessions"][0]["workers"] == 1
    assert compose.toml({"a": np.float64(1.5), "b": [np.float32(0.5), np.uint8(3)]}) == "a = 1.5\nb = [0.5, 3]\n"
    assert compose.toml({"a": np.True_, "b": np.array([1, 2])}) == "a = true\nb = [1, 2]\n"


def test_a_comparison_leaves_out_a_sixth_of_its_duration_but_no_more_than_5_s() -> None:
    def warmup(**given: str | list[str]) -> str:
        return compose.comparison(["cubic"], rate="1Mbit/s", rtt="1ms", **given).split('warmup = "')[1].split('"')[0]

    assert warmup() == "5s"
    assert warmup(duration="3s") == "500ms"
    assert warmup(duration="2min") == "5s"
    assert warmup(duration=["30s", "3s"]) == "500ms"
    assert warmup(duration="3s", warmup="1s") == "1s"
    with pytest.raises(ScenarioError, match="duration"):
        tcpknee.compare("cubic", rate="1Mbit/s", rtt="1ms", duration="soon")
