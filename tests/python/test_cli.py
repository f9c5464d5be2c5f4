"""The command line, end to end on small scenarios."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import tcpknee
from support import SMALL, Ended, knee, refused, tables_of
from tcpknee import _core
from tcpknee.cli.app import SECTIONS, VERBS, app
from tcpknee.cli.list import LISTED
from tcpknee.errors import EngineError
from tcpknee.evidence import metrics
from tcpknee.live import which
from tcpknee.runs import kernel as engine_of_kernels

Call = Callable[..., Ended]


def test_a_run_prints_its_table_first_and_writes_its_folder(call: Call, small: Path, tmp_path: Path) -> None:
    ended = call("run", small)
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0] == "Small"
    assert (
        lines[1]
        == "rate 10.0 Mbit/s · rtt 20.0 ms · BDP 24.4 KiB · buffer 24.4 KiB (1.00 BDP) · 2 s · 3 repetitions, seed 7"
    )
    assert lines[3].split("  ")[0] == "flow" and "goodput" in lines[3] and "limited by" in lines[3]
    assert "Mbit/s" in lines[4]
    assert lines[6].startswith("cubic") and lines[7].startswith("bbr1")
    assert "Verdicts" in lines
    assert lines[-1] == "Run folder: runs/small-1"
    assert "3 of" in ended.err or "6 of 6 repetitions done" in ended.err
    folder = tmp_path / "runs" / "small-1"
    assert sorted(file.name for file in folder.iterdir()) == [
        "cpu_time.parquet",
        "events.parquet",
        "flows.parquet",
        "host_costs.parquet",
        "queue.parquet",
        "run.json",
        "runs.parquet",
        "samples.parquet",
    ]
    assert call("run", small).out.splitlines()[-1] == "Run folder: runs/small-2"


def test_run_json_says_what_was_asked_and_on_what(call: Call, small: Path, tmp_path: Path) -> None:
    call("run", small, "--out", "out", "--workers", "2")
    found = json.loads((tmp_path / "out" / "run.json").read_text())
    assert found["schema"] == 1
    assert found["status"] == "complete"
    assert found["scenario"] == SMALL
    assert (found["file"], found["seed"], found["repeat"]) == (str(small), 7, 3)
    assert [cell["axes"] for cell in found["cells"]] == [[["flow.0.algorithm", name]] for name in ("cubic", "bbr1")]
    assert any(found["facts"][position][0] == "path.bdp_bytes" for position in found["cells"][0]["describe"])
    assert set(found["host"]) == {"name", "boot_id", "kernel", "machine", "cpu", "cpus"}
    assert {"tcpknee", "python", "pyarrow"} <= set(found["versions"])
    assert found["command"] == f"knee run {small}"
    [session] = found["sessions"]
    assert (session["workers"], session["repetitions"]) == (2, 6)


def test_tables_do_not_depend_on_the_number_of_workers(call: Call, small: Path, tmp_path: Path) -> None:
    for workers in ("1", "2", "4"):
        assert call("run", small, "--out", f"out{workers}", "--workers", workers, "-q").code == 0
    one, two, four = (tables_of(tmp_path / f"out{workers}") for workers in (1, 2, 4))
    assert one == two == four


def test_json_is_the_object_of_the_design(call: Call, small: Path) -> None:
    ended = call("run", small, "--json", "-q")
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert found["schema"] == 1
    assert [(cell["engine"], cell["algorithm"], cell["flow"]) for cell in found["cells"]] == [
        ("sim", "cubic", "cubic"),
        ("sim", "bbr1", "bbr1"),
    ]
    for cell in found["cells"]:
        assert cell["axes"] == {"flow.0.algorithm": cell["algorithm"]}
        assert {"goodput_bits_per_sec", "retransmit_pct", "srtt_us_p50", "srtt_us_p95", "min_rtt_us"} <= set(
            cell["metrics"]
        )
        assert {"queue_delay_us_mean", "queue_delay_us_p95", "snd_cwnd_mean"} <= set(cell["metrics"])
        assert "completion_us_p50" not in cell["metrics"]
        assert set(cell["metrics"]["limited_by"]) == {"cwnd", "rwnd", "sndbuf", "pacing", "app", "other"}
        assert sum(cell["metrics"]["limited_by"].values()) == pytest.approx(1, abs=0.02)
        for name, value in cell["metrics"].items():
            if name != "limited_by":
                assert set(value) == {"mean", "low", "high", "n"}
                assert name in metrics.BY_NAME
                assert value["low"] <= value["mean"] <= value["high"]
                assert value["n"] == 3
    verdict = found["verdicts"][0]
    assert (verdict["metric"], verdict["a"], verdict["b"]) == ("goodput_bits_per_sec", "cubic", "bbr1")
    assert set(verdict["ratio"]) == {"mean", "low", "high", "n"}
    assert found["runs"][0]["folder"] == "runs/small-1"


def test_a_single_repetition_has_no_interval_in_json(call: Call, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(SMALL.replace("repeat = 3", "repeat = 1"))
    found = json.loads(call("run", "one.toml", "--json", "-q").out)
    value = found["cells"][0]["metrics"]["goodput_bits_per_sec"]
    assert (value["low"], value["high"], value["n"]) == (None, None, 1)
    assert found["verdicts"][0]["decision"] == "single"


def test_several_scenarios_give_one_object_and_a_folder_each(call: Call, small: Path, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(SMALL.replace("Small", "Other"))
    found = json.loads(call("run", small, "other.toml", "--out", "both", "--json", "-q").out)
    assert [run["folder"] for run in found["runs"]] == ["both/small", "both/other"]
    assert [cell["scenario"] for cell in found["cells"]] == [str(small)] * 2 + ["other.toml"] * 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", "hosts/a.json", "--function", "f"), "--function: got f, and hosts/a.json is no profile"),
        (("report", "hosts", "--function", "f"), "--function: got f, and hosts is no profile"),
        (("report", ".", "--against", "hosts", "--condition", "3"), "--condition: got 3 with --against"),
    ],
)
def test_options_that_a_report_does_not_have_are_refused(
    call: Call, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "a.json").write_text("{}")
    refused(call(*words), said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--engine", "sim,kernel", "--cluster", "tls://10.0.0.5:8786"), "cluster: got it with the engine kernel"),
        (("--engine", "sim,kernel", "--budget", "10foo"), 'budget: got "10foo"'),
        (("--engine", "sim,kernel", "--until-decided"), "--until-decided: got 3 repetitions"),
        (("--engine", "sim,hosts"), "--sender: got none with the engine hosts"),
        (("--engine", "sim,kernel", "--out", "taken"), "taken/kernel: already holds a run"),
        (("other.toml", "--out", "taken"), "taken/other: already holds a run"),
    ],
)
def test_what_a_later_run_would_be_refused_for_is_refused_before_the_first(
    call: Call, small: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "other.toml").write_text(SMALL)
    for name in ("kernel", "other"):
        (tmp_path / "taken" / name).mkdir(parents=True)
        (tmp_path / "taken" / name / "run.json").write_text("{}")
    refused(call("run", small, *words, "-q"), said)
    assert [file.parent.name for file in tmp_path.rglob("run.json")] == ["kernel", "other"]


def test_what_was_finished_is_shown_though_a_later_run_fails(
    call: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(job: object) -> None:
        raise EngineError("kernel: no.")

    monkeypatch.setattr(engine_of_kernels, "engine", fail)
    ended = call("run", small, "--engine", "sim,kernel", "--json", "-q")
    assert ended.code != 0 and "kernel: no." in ended.err
    assert [run["folder"] for run in json.loads(ended.out)["runs"]] == ["runs/small-1/sim"]
    ended = call("run", small, "--engine", "sim,kernel", "-q")
    assert ended.code != 0 and ended.out.splitlines()[-1] == "Run folder: runs/small-2/sim"


@pytest.mark.parametrize(("assertion", "code", "word"), [("> 1kbit/s", 0, "holds"), ("> 1Gbit/s", 1, "fails")])
def test_exit_code_says_whether_expectations_hold(
    call: Call, tmp_path: Path, assertion: str, code: int, word: str
) -> None:
    (tmp_path / "e.toml").write_text(f'{SMALL}[[expect]]\nassert = "cubic.goodput {assertion}"\n')
    ended = call("run", "e.toml", "-q")
    assert ended.code == code
    assert f"  {word}: cubic.goodput {assertion}  (left is " in ended.out
    ended = call("run", "e.toml", "-q", "--json")
    assert ended.code == code
    assert json.loads(ended.out)["expectations"][0]["verdict"] == word


def test_dry_run_prints_the_matrix_and_runs_nothing(call: Call, small: Path, tmp_path: Path) -> None:
    ended = call("run", small, "--dry-run")
    assert ended.code == 0
    assert ended.out.splitlines()[0] == "Small: 2 cells x 3 repetitions = 6 runs, 12 s simulated"
    assert re.search(
        r"0 +flow\.0\.algorithm=cubic +cubic:1 +10\.0 Mbit/s +20\.0 ms +24\.4 KiB +24\.4 KiB \(1\.00 BDP\)", ended.out
    )
    plan = json.loads(call("run", small, "--dry-run", "--json").out)["plans"][0]
    assert [cell["bdp_bytes"] for cell in plan["cells"]] == [25000, 25000]
    assert not (tmp_path / "runs").exists()


def test_dry_run_tells_what_sources_of_transfers_ask_of_the_network(call: Call, tmp_path: Path) -> None:
    web = '[[flow]]\nalgorithm = "cubic"\nworkload = "web"\nload = {}\nsizes = "web-search"\n'
    (tmp_path / "one.toml").write_text(SMALL + web.format('"8Mbit/s"'))
    said = call("run", "one.toml", "--dry-run").out.splitlines()
    assert re.fullmatch(r"Asked of the network by flow\.1: 8\.00 Mbit/s in 0\.\d+ transfers per second\.", said[-1])
    (tmp_path / "two.toml").write_text(SMALL + web.format('["8Mbit/s", "16Mbit/s"]'))
    said = call("run", "two.toml", "--dry-run").out.splitlines()
    assert [line[:41] for line in said[-2:]] == [
        "First in cell 0: flow.1: 8.00 Mbit/s in 0",
        "First in cell 1: flow.1: 16.0 Mbit/s in 1",
    ]


def test_compare_runs_each_algorithm_in_a_cell_of_its_own(call: Call, tmp_path: Path) -> None:
    words = ["cubic", "reno", "--rate", "10Mbit/s", "--rtt", "10ms,20ms", "--duration", "2s", "--warmup", "0s"]
    ended = call("compare", *words, "--repeat", "2", "-q", "--json")
    found = json.loads(ended.out)
    assert [(cell["axes"]["path.rtt"], cell["algorithm"]) for cell in found["cells"]] == [
        (rtt, name) for rtt in ("10ms", "20ms") for name in ("cubic", "reno")
    ]
    assert found["runs"][0]["folder"] == "runs/compare-1"
    command = json.loads((tmp_path / "runs" / "compare-1" / "run.json").read_text())["command"]
    assert command.startswith("knee compare cubic reno --rate 10Mbit/s --rtt 10ms,20ms ")


def test_a_mix_shares_one_cell(call: Call) -> None:
    ended = call(
        "compare", "cubic:1,bbr1:2", "--rate", "10Mbit/s", "--duration", "2s", "--warmup", "0s", "--repeat", "2", "-q"
    )
    assert ended.code == 0
    assert "bbr1 ×2" in ended.out and "Jain" in ended.out and "goodput per flow" in ended.out


def test_any_key_of_a_scenario_can_be_set(call: Call, tmp_path: Path) -> None:
    words = ["compare", "cubic", "--workload", "transfer", "--set", "flow.bytes=100kB", "--set", "sender.initcwnd=4"]
    found = json.loads(call(*words, "--rate", "10Mbit/s", "--repeat", "2", "-q", "--json").out)
    assert found["cells"][0]["metrics"]["completion_us_p50"]["n"] == 2
    scenario = json.loads((tmp_path / "runs" / "compare-1" / "run.json").read_text())["scenario"]
    assert "[sender]\ninitcwnd = 4\n" in scenario


def test_the_folder_is_refused_when_it_is_not_empty(call: Call, small: Path, tmp_path: Path) -> None:
    assert call("run", small, "--out", "out", "-q").code == 0
    before = tables_of(tmp_path / "out")
    refused(call("run", small, "--out", "out", "-q"), "out: already holds a run", "--resume", "--force")
    assert tables_of(tmp_path / "out") == before
    assert call("run", small, "--out", "out", "-q", "--force").code == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    refused(call("run", small, "--out", "mine", "--force"), "mine: is not empty and holds no run.json")


def test_unwritable_places_are_named_and_nothing_is_left(call: Call, small: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(call("run", small, "--out", "file/run"), "file/run: cannot be written: Not a directory")
    refused(call("run", small, "--out", "/proc/nowhere"), "/proc/nowhere: cannot be written")


def test_a_kernel_is_refused_where_this_host_s_own_runs_alone(call: Call, small: Path) -> None:
    for words in (("run", small), ("compare", "cubic")):
        refused(
            call(*words, "--engine", "kernel", "--kernel", "7.2"), "--kernel: got it with --engine kernel; expected"
        )


def test_resume_is_refused_for_another_scenario_and_without_a_folder(call: Call, small: Path, tmp_path: Path) -> None:
    refused(call("run", small, "--resume"), "expected --out DIR")
    refused(call("run", "--resume", "--out", "none"), "none: got no such folder")
    refused(call("run", small, "--kernel", "9.9"), '--kernel: got "9.9"; expected a release of Linux')
    assert call("run", small, "--out", "out", "-q").code == 0
    (tmp_path / "other.toml").write_text(SMALL.replace("seed = 7", "seed = 8"))
    refused(
        call("run", "other.toml", "--resume", "--out", "out"), "the scenario differs from the one that began this run"
    )
    meta = json.loads((tmp_path / "out" / "run.json").read_text())
    (tmp_path / "out" / "run.json").write_text(json.dumps({**meta, "engine_version": "0.0.1"}))
    refused(call("run", "--resume", "--out", "out"), "begun by tcpknee 0.0.1")


def test_resuming_what_is_complete_shows_it_again(call: Call, small: Path, tmp_path: Path) -> None:
    first = call("run", small, "--out", "out", "-q")
    before = tables_of(tmp_path / "out")
    refused(call("run", "--resume", "--out", "out", "--engine", "sim,kernel"), "as in out/sim")
    again = call("run", "--resume", "--out", "out", "-q")
    assert (again.code, again.out) == (0, first.out)
    assert tables_of(tmp_path / "out") == before


def test_unknown_names_are_refused_with_a_suggestion(call: Call, small: Path, tmp_path: Path) -> None:
    refused(call("rnu"), "No such command 'rnu'", "Did you mean 'run'?")
    refused(call("compare", "cubci"), '"cubci"', 'Did you mean "cubic"?')
    refused(call("compare", "cubic", "--queue", "ffio"), '"ffio"', 'Did you mean "fifo"?')
    refused(call("run", small, "--wrokers", "2"), "--workers")
    refused(call("list", "algorithm"), "algorithms")
    refused(call("gallery", "demmo"), 'Did you mean "demo"?')
    refused(call("run", "demo.toml"), "demo.toml: there is no such file", "Did you mean `knee gallery demo`?")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compare"], "ALGO"),
        (["compare", "cubic", "--rate", "50"], "rate"),
        (["compare", "cubic:0"], "expected ALGORITHM or ALGORITHM:COUNT"),
        (["compare", "cubic", "bbr1:2"], "different counts"),
        (["compare", "cubic,bbr1", "reno"], "one mix alone"),
        (["compare", "cubic", "cubic"], 'got "cubic" twice'),
        (["compare", "cubic", "--set", "initcwnd"], "expected KEY=VALUE"),
        (["compare", "cubic", "--set", "sender.initcwdn=3"], "initcwnd"),
        (["compare", "cubic", "--repeat", "0"], "--repeat"),
        (["compare", "cubic", "--rate", "20Mbit/s", "--set", "path.rate=9Mbit/s"], "got --rate and --set path.rate"),
        (["compare", "cubic", "--seed", "1", "--set", "seed=1"], "got --seed and --set seed"),
        (
            ["compare", "cubic", "--workload", "bulk", "--set", "flow.workload=web"],
            "--workload and --set flow.workload",
        ),
        (["compare", "cubic", "--set", "flow.algorithm=reno"], "algorithms (cubic) and a set of flow.algorithm"),
        (["compare", "cubic:2", "--set", "flow.count=3"], "counts (cubic:2) and a set of flow.count"),
        (["compare", "cubic", "--set", "path.mtu=1400B", "--set", "path.mtu=900B"], "got path.mtu twice"),
        (["shell", "--ack-loss", "1%", "--set", "path.ack_loss=2%"], "got --ack-loss and --set path.ack_loss"),
        (["shell", "--algorithm", "reno", "--set", "flow.algorithm=cubic"], "--algorithm and --set flow.algorithm"),
        (
            ["shell", "--set", "duration=3s"],
            "expected one of path, sender or receiver, or a parameter of the algorithm",
        ),
        (["run"], "got no scenario"),
        (["run", "a.toml", "--workers", "0"], "--workers"),
        (["report", "none"], "none: is not there"),
        (["export", "none", "--format", "csv", "--out", "x"], "none: is not there"),
    ],
)
def test_bad_usage_is_one_paragraph(call: Call, tmp_path: Path, words: list[str], message: str) -> None:
    refused(call(*words), message)
    assert list(tmp_path.iterdir()) == []


def test_the_help_of_shell_says_which_keys_it_takes(call: Call) -> None:
    told = " ".join(call("shell", "--help").out.split())
    assert "A key of [path], [sender] or [receiver], or a parameter of the algorithm, as in path.mtu" in told


def test_a_key_that_an_option_has_a_default_of_can_be_set(call: Call) -> None:
    words = ["--set", "path.rate=9Mbit/s", "--set", "repeat=2", "--set", "flow.count=3", "--set", "flow.cubic.beta=0.7"]
    told = call("compare", "cubic", *words, "--dry-run")
    assert told.code == 0 and "9.00 Mbit/s" in told.out and "2 repetitions" in told.out and "cubic:3" in told.out


def test_linux_name_of_an_algorithm_is_ours_with_a_note(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = "Note: bbr is Linux's name of bbr1, and bbr1 is what it is called here."
    quick = ["--rate", "5Mbit/s", "--duration", "1s", "--repeat", "2"]
    compared = call("compare", "cubic", "bbr", "--set", "flow.bbr.cwnd_gain=2.5", *quick)
    assert compared.code == 0 and note in compared.err and "cubic and bbr1 are" in compared.out
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'duration = "1s"\n[path]\nrate = "5Mbit/s"\nrtt = "10ms"\n[[flow]]\nalgorithm = ["cubic", "bbr"]\n'
        '[[expect]]\nassert = "bbr.goodput > 0Mbit/s"\n'
    )
    ran = call("run", scenario, "--dry-run")
    assert ran.code == 0 and note in ran.err and "algorithm=bbr1" in ran.out
    refused(call("compare", "bbr", "bbr1"), 'got "bbr1" twice in a list')
    assert note in call("whatif", "none", "--algorithms", "bbr").err
    monkeypatch.setattr(_core, "load", lambda name, default_in: (f"knee_{name}", False))
    loaded = call("load", "bbr")
    assert note in loaded.err and loaded.out.startswith("bbr1 is loaded: sockets can choose knee_bbr1 ")


def test_where_nothing_on_the_path_is_random_intervals_are_said_to_hold_little(call: Call) -> None:
    words = ["compare", "cubic", "bbr1", "--rate", "5Mbit/s", "--duration", "1s", "--repeat", "3"]
    said = "Nothing on this path is random"
    assert said in call(*words).out and said not in call(*words, "--loss", "1%").out


def test_tables_are_folded_to_the_width_of_the_terminal(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["compare", "cubic", "bbr1", "--rate", "5Mbit/s", "--duration", "1s", "--repeat", "2"]
    whole = call(*words).out
    monkeypatch.setenv("COLUMNS", "60")
    folded = call(*words).out.split("\nVerdicts")[0]
    assert max(map(len, whole.splitlines())) > 60
    table = [line for line in folded.splitlines() if line.startswith(("flow", "cubic ", "bbr1 ", "-----"))]
    assert max(map(len, table)) <= 60
    assert sum(line.startswith("flow ") for line in table) > 1, "each part begins with the flows"
    assert set(whole.split("\nVerdicts")[0].split()) == set(folded.split())


def test_lists_say_what_there_is(call: Call) -> None:
    overview = call("list")
    assert overview.code == 0
    for word in ("cubic", "fifo", "random", "jitter", "bulk", "flows", "demo"):
        assert word in overview.out
    registries = ("metrics", "counters", "prometheus", "claims", "importers", "sizes")
    for what in (
        "algorithms",
        "queues",
        "losses",
        "impairments",
        "workloads",
        "keys",
        "scenarios",
        "tables",
        *registries,
    ):
        text = call("list", what)
        assert text.code == 0 and text.out
        found = json.loads(call("list", what, "--json").out)
        assert found["schema"] == 1 and found[what]
    assert "use when" in call("list", "algorithms").out
    assert "goodput_bits_per_sec" in call("list", "tables").out
    assert "tcpknee_tcp_sent_bytes_total" in call("list", "prometheus").out
    assert "verdict: reproduced (seed 1, seed 2)" in call("list", "claims", "loss-1.5").out
    assert "count prefixes: " in call("list", "importers", "nginx").out


def test_tables_are_listed_by_the_verb_that_writes_them(call: Call) -> None:
    found = json.loads(call("list", "tables", "trace", "record.sockets", "flows", "--json").out)["tables"]
    assert list(found) == ["trace.acks", "trace.events", "trace.connections", "record.sockets", "flows"]
    assert all(
        {"name", "type", "unit", "doc", "source"} <= set(column) for columns in found.values() for column in columns
    )
    for verb in ("record", "import", "trace", "profile", "fleet", "snapshot"):
        assert call("list", "tables", verb).out.startswith(f"{verb}.")
    assert "  of real kernels only: --engine kernel, guest or hosts" in call("list", "tables", "links").out.splitlines()
    assert "with --engine kernel only" not in call("list", "tables", "queue", "record").out
    refused = call("list", "tables", "trace.akcs")
    assert refused.code == 2 and 'Did you mean "trace.acks"?' in refused.err


def test_csv_has_every_table_with_units_in_its_names(call: Call, small_run: Path, tmp_path: Path) -> None:
    assert call("export", small_run, "--format", "csv", "--out", "csv").code == 0
    tables = ["cpu_time", "events", "flows", "host_costs", "queue", "runs", "samples"]
    assert sorted(file.stem for file in (tmp_path / "csv").iterdir()) == tables
    with (tmp_path / "csv" / "flows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    assert float(rows[0]["goodput_bits_per_sec"]) > 0
    refused(call("export", small_run, "--format", "csv", "--out", "csv"), "csv: is not empty")
    # Every row, in order, with the values that the table has; null is nothing.
    told = pyarrow.csv.read_csv(
        tmp_path / "csv" / "samples.csv", convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=False)
    )
    samples = tcpknee.open(small_run).samples.arrow()
    assert told.column_names == samples.column_names and len(told) == len(samples) > 500
    for name in samples.column_names:
        found = samples[name].cast(pa.string()) if pa.types.is_dictionary(samples[name].type) else samples[name]
        assert told[name].cast(found.type).equals(found), name


def test_csv_is_of_what_was_imported_too(call: Call, tmp_path: Path) -> None:
    data = Path(__file__).parents[2] / "crates/import/tests/data/iperf3"
    assert call("import", "iperf3", data / "v3.12-bidir.json", "--out", "in").code == 0
    ended = call("export", "in", "--format", "csv", "--out", "o'ut")
    assert (ended.code, ended.err) == (0, "")
    assert sorted(file.name for file in (tmp_path / "o'ut").iterdir()) == ["iperf3_intervals.csv", "iperf3_streams.csv"]
    with (tmp_path / "o'ut" / "iperf3_intervals.csv").open() as file:
        rows = list(csv.DictReader(file))
    intervals = tcpknee.import_iperf3(data / "v3.12-bidir.json").intervals.to_pylist()
    for name in ("bytes", "snd_cwnd_bytes", "srtt_us", "sender"):
        written = [None if row[name] is None else str(row[name]).lower() for row in intervals]
        assert [row[name] or None for row in rows] == written
    (tmp_path / "in" / "run.json").write_text("[]")
    refused(call("export", "in", "--format", "csv", "--out", "again"), "in/run.json: got a list; expected an object")
    assert not (tmp_path / "again").exists()


def test_pcapng_is_of_one_repetition(call: Call, small_run: Path, tmp_path: Path) -> None:
    assert call("export", small_run, "--format", "pcapng", "--out", "a.pcapng", "--cell", "1", "--rep", "2").code == 0
    assert (tmp_path / "a.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    refused(
        call("export", small_run, "--format", "pcapng", "--out", "b.pcapng", "--cell", "2"),
        "--cell: got 2; expected 0 to 1",
    )
    refused(
        call("export", small_run, "--format", "pcapng", "--out", "a.pcapng/c.pcapng"),
        "a.pcapng/c.pcapng: cannot be written",
    )
    assert [file.name for file in tmp_path.iterdir()] == ["a.pcapng"]


def test_mahimahi_trace_of_a_run_has_the_rate_of_every_second_within_a_packet(
    call: Call, small_run: Path, tmp_path: Path
) -> None:
    assert call("export", small_run, "--format", "mahimahi", "--out", "a.down", "--cell", "1", "--rep", "2").code == 0
    times_ms = [int(line) for line in (tmp_path / "a.down").read_text().splitlines()]
    assert times_ms == sorted(times_ms)
    queue = tcpknee.open(small_run).queue.arrow().to_pylist()
    rows = {row["t_ns"]: row["sent_bytes"] for row in queue if (row["cell"], row["rep"]) == (1, 2)}
    assert len(rows) == 200
    for t_ns, sent_bytes in rows.items():
        packets = sum(ms <= t_ns / 1e6 for ms in times_ms)
        assert packets == pytest.approx(sent_bytes / 1504, abs=1), t_ns
    (tmp_path / "again.toml").write_text(SMALL.replace('"10Mbit/s"', '"trace a.down"').replace('"1%"', '"0%"'))
    again = call("export", "again.toml", "--format", "mahimahi", "--out", "b.down")
    assert again.code == 0, again.err
    assert (tmp_path / "b.down").read_text() == (tmp_path / "a.down").read_text()


def test_mahimahi_trace_of_a_scenario_is_what_it_asks_for(
    call: Call, small: Path, small_run: Path, tmp_path: Path
) -> None:
    ended = call("export", small, "--format", "mahimahi", "--out", "c.down")
    # 10 Mbit/s for 2 s.
    assert ended.out == "mahimahi: c.down (the rate that cell 0 asks for: 1,662 packets of 1504 bytes in 2 s)\n"
    assert (tmp_path / "c.down").read_text().startswith("2\n3\n4\n5\n7\n")
    refused(
        call("export", small, "--format", "mahimahi", "--out", "d.down", "--cell", "2"),
        "--cell: got 2; expected 0 to 1",
    )
    refused(
        call("export", small_run, "--format", "mahimahi", "--out", "d.down", "--rep", "3"),
        "--rep: got 3; expected 0 to 2",
    )
    for rate, why in (("unlimited", "is unlimited"), ("1kbit/s", "lets no packet leave"), ("10Tbit/s", "more than")):
        small.write_text(SMALL.replace('"10Mbit/s"', f'"{rate}"\nbuffer = "10packets"'))
        refused(call("export", small, "--format", "mahimahi", "--out", "d.down"), why)
    assert not (tmp_path / "d.down").exists()


def test_the_report_is_written_into_the_folder(call: Call, small: Path, tmp_path: Path) -> None:
    ended = call("run", small, "--report", "-q")
    assert ended.out.splitlines()[-1] == "Report: runs/small-1/report.html"
    assert (tmp_path / "runs" / "small-1" / "report.html").stat().st_size > 1000


def test_one_figure_is_written_alone(call: Call, small_run: Path, tmp_path: Path) -> None:
    ended = call("report", small_run, "--figure", "goodput", "--out", "goodput.svg")
    assert (ended.code, ended.out) == (0, "Figure: goodput.svg\n")
    assert "<svg" in (tmp_path / "goodput.svg").read_text()
    refused(call("report", small_run, "--figure", "godput"), 'Did you mean "goodput"?')


@pytest.mark.parametrize("engine", ["sim", "kernel"])
@pytest.mark.parametrize("form", ["flent", "mahimahi", "pcapng"])
def test_what_was_not_run_is_not_exported(call: Call, small_run: Path, tmp_path: Path, form: str, engine: str) -> None:
    """pcapng of the simulator is made again, and needs no repetition."""
    shutil.copytree(small_run, tmp_path / "run")
    meta = json.loads((tmp_path / "run" / "run.json").read_text())
    host = {"engine": engine, "capture": "1MB", "labs": [], "repetitions": []}
    (tmp_path / "run" / "run.json").write_text(json.dumps({**meta, **(host if engine != "sim" else {})}))
    for name in ("runs", "flows", "queue"):
        table = pq.read_table(tmp_path / "run" / f"{name}.parquet")
        pq.write_table(table.filter(pc.less(table["rep"], 2)), tmp_path / "run" / f"{name}.parquet")
    ended = call("export", "run", "--format", form, "--out", f"x.{form}", "--cell", "1", "--rep", "2", "-q")
    if (form, engine) == ("pcapng", "sim"):
        assert ended.code == 0
    else:
        refused(ended, "--rep: got 2; expected 0, 1, because repetition 2 of cell 1 was not run.")


def test_a_figure_over_time_is_written_for_the_condition_asked(call: Call, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(SMALL.replace('rtt = "20ms"', 'rtt = ["20ms", "80ms"]').replace("= 3", "= 1"))
    assert call("run", "m.toml", "--out", "run", "-q").code == 0
    figure = ("report", "run", "--figure", "timeseries")
    for condition in ("0", "1"):
        assert call(*figure, "--condition", condition, "--out", f"{condition}.svg").code == 0
    call(*figure, "--out", "first.svg")
    texts = [(tmp_path / f"{name}.svg").read_text() for name in ("0", "1", "first")]
    # The renderer numbers its clip paths on from drawing to drawing.
    drawn = [re.sub(r"clip\d+", "clip", text) for text in texts]
    assert drawn[0] == drawn[2] != drawn[1]
    refused(call(*figure, "--condition", "2"), "expected 0 to 1: 0 is RTT 20ms, 1 is RTT 80ms")
    refused(call("report", "run", "--figure", "goodput", "--condition", "1"), 'the figure "goodput", which shows every')
    refused(call("report", "run", "--condition", "1"), "expected --figure NAME beside it")


def test_help_is_the_answer_to_no_command(call: Call) -> None:
    bare = call()
    assert bare.code == 2
    assert "compare" in bare.err
    assert "compare" in call("--help").out
    assert call("--version").out.startswith("tcpknee 0.")


def test_the_help_has_each_verb_once_by_what_it_is_for_a_line_each(call: Call) -> None:
    assert len(VERBS) == sum(map(len, SECTIONS.values()))
    sections = call("--help").out.split("\n\n")[-len(SECTIONS) :]
    assert [section.partition(":\n")[0] for section in sections] == list(SECTIONS)
    for section, verbs in zip(sections, SECTIONS.values(), strict=True):
        assert [line.split()[0] for line in section.splitlines()[1:]] == list(verbs)


def test_help_and_list_import_nothing_heavy(tmp_path: Path) -> None:
    """Time depends on the machine; what is imported does not."""
    import subprocess
    import sys

    program = (
        "import sys\nfrom tcpknee.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'pyarrow', 'numpy', 'scipy', 'rich', 'altair', 'pandas', 'textual'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    for words in (["--help"], ["list"], ["list", "keys"], ["run", "--help"]):
        ended = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
        assert ended.stderr == "[]\n"


def test_a_run_has_no_threads_of_linear_algebra_and_tells_nobody_of_it() -> None:
    """numpy's OpenBLAS starts one per further processor when it is loaded; a library's user keeps them."""
    import os
    import subprocess
    import sys

    count = "import os, sys; print(len(os.listdir('/proc/self/task')), os.environ.get('OPENBLAS_NUM_THREADS'))"
    program = f"from tcpknee.cli import blas\nblas.import_numpy()\n{count}"
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    said = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["1", "None"]
    told = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split()[1] == "2"


def test_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    import subprocess
    import sys

    command = f"{sys.executable} -m tcpknee list keys | head -1"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "Traceback" not in ended.stderr and "BrokenPipe" not in ended.stderr


def test_the_module_runs_as_the_command(tmp_path: Path, small: Path) -> None:
    ended = knee("run", small, cwd=tmp_path)
    assert ended.code == 0
    assert "Small: 6 repetitions" in ended.err
    assert "6 of 6 repetitions done" in ended.err


SIZED = """\
duration = "4s"
repeat = 2
[path]
rate = "20Mbit/s"
rtt = "20ms"
[[flow]]
algorithm = "cubic"
name = "web"
workload = "web"
arrivals = "50/s"
sizes = "pareto shape 1.1 from 2kB to 1MB"
[[expect]]
assert = "web.slowdown_p50_below_10kB >= 1 and web.transfers_below_10kB > 50"
[[expect]]
assert = "web.completion_us_p50_below_10kB < web.completion_us_p50_10kB_to_100kB"
"""


def test_transfers_are_told_by_size(call: Call, tmp_path: Path) -> None:
    (tmp_path / "web.toml").write_text(SIZED)
    ended = call("run", "web.toml", "--out", "run", "-q")
    assert (ended.code, ended.out.count("holds:")) == (0, 2)
    lines = ended.out.split("Transfers by size\n")[1].splitlines()
    assert lines[0].split()[:3] == ["flow", "size", "transfers"]
    sizes = [line.removeprefix("web (cubic)").strip().split("  ")[0] for line in lines[3:6]]
    assert sizes == ["< 10 kB", "10 to 100 kB", "100 kB to 1 MB"] and lines[6].split()[2] == "all"
    told = json.loads(call("run", "web.toml", "--out", "again", "-q", "--json").out)["cells"][0]["metrics"]
    flows = tcpknee.open(tmp_path / "run").flows.arrow().to_pylist()
    small = [row for row in flows if row["transfer_bytes"] < 10_000]
    assert told["transfers_below_10kB"]["mean"] == len(small) / 2
    by_rep = [sorted(row["completion_us"] or math.inf for row in small if row["rep"] == rep) for rep in (0, 1)]
    medians = [float(np.median(times)) for times in by_rep]
    assert told["completion_us_p50_below_10kB"]["mean"] == pytest.approx(np.mean(medians))
    (tmp_path / "web.toml").write_text(SIZED.replace("web.slowdown_p50_below_10kB", "web.slowdown_p50_below_10KB"))
    refused(call("run", "web.toml"), "with _below_10kB, _10kB_to_100kB", 'Did you mean "slowdown_p50_below_10kB"?')


def test_every_help_has_an_example_of_its_command() -> None:
    """And `--allow-foreign-folder`, which every command that writes has, takes one line of it."""

    def walk(group: click.Group, above: click.Context) -> None:
        for name, command in group.commands.items():
            context = click.Context(command, parent=above, info_name=name, terminal_width=80)
            text = command.get_help(context)
            body = " ".join(text.partition("Options:")[0].split("\n\n", 1)[1].split())
            assert f"{context.command_path} " in body, f"{context.command_path} --help shows no example"
            assert "folders of other users.\n" in text or "--allow-foreign-folder" not in text
            if isinstance(command, click.Group):
                walk(command, context)

    walk(app, click.Context(app, info_name="knee", terminal_width=80))


def test_list_says_what_a_file_of_your_own_has(call: Call, tmp_path: Path) -> None:
    assert call("new", "algorithm", "mine").code == 0
    ended = call("list", "algorithms", "./mine.c", "cubic")
    assert ended.code == 0, ended.err
    assert "mine.beta = 0.5 (0.001 to 0.999, counted in 1/1024)" in ended.out
    assert "cubic.beta" in ended.out
    (tmp_path / "mine.c").rename(tmp_path / "reno.c")
    source = (tmp_path / "reno.c").read_text(encoding="utf-8")
    (tmp_path / "reno.c").write_text(source.replace("CC_ALGORITHM(mine", "CC_ALGORITHM(reno"), encoding="utf-8")
    assert "reno_file.beta = 0.5 " in call("list", "algorithms", "./reno.c").out, "as --set takes it"


def test_help_of_what_can_be_listed_says_the_command(call: Call) -> None:
    refused(call("help", "keys"), "knee list keys")
    refused(call("help", "algorithms", "bbr1"), "knee list algorithms bbr1")
    refused(call("help", "nonsense"), "No such command 'nonsense'")
    assert not {*LISTED} & {*app.found()}, "none of these is a verb"


def test_an_axis_of_one_algorithms_own_parameter_has_a_column_and_verdicts(call: Call) -> None:
    words = ("compare", "cubic", "bbr1", "--set", "flow.bbr1.cwnd_gain=1,2.5", "--duration", "2s", "--repeat", "2")
    out = call(*words, "--rate", "10Mbit/s", "--loss", "1%", "-q").out
    rows = [line.split()[:2] for line in out.splitlines() if " bbr1 " in line and "Mbit" not in line]
    assert ["1", "bbr1"] in rows and ["2.5", "bbr1"] in rows
    for value in ("1", "2.5"):
        assert re.search(rf"goodput: .*bbr1.* cubic .*\(flow\.0\.bbr1\.cwnd_gain {value}\)", out), out
    verdicts = json.loads(call(*words, "--rate", "10Mbit/s", "--loss", "1%", "-q", "--json").out)["verdicts"]
    assert {verdict["axes"]["flow.0.bbr1.cwnd_gain"] for verdict in verdicts} == {"1", "2.5"}


def test_a_verdict_says_whose_algorithms_it_compares_where_several_flows_have_some(call: Call, tmp_path: Path) -> None:
    flows = 'name = "up"\nalgorithm = ["cubic", "reno"]\n[[flow]]\nname = "down"\nalgorithm = ["cubic", "reno"]'
    text = f'duration = "1s"\n[path]\nrate = "10Mbit/s"\nrtt = "20ms"\n[[flow]]\n{flows}\n'
    (tmp_path / "two.toml").write_text(text, encoding="utf-8")
    lines = call("run", "two.toml", "-q").out.splitlines()
    told = [line for line in lines if "goodput: " in line and "beside" not in line and "per flow" not in line]
    assert [line.rpartition("  (")[2] for line in told] == [
        f"{flow}, flow.{other}.algorithm {algorithm})"
        for algorithm in ("cubic", "reno")
        for flow, other in (("up", 1), ("down", 0))
    ], told


@pytest.mark.parametrize("unit", ["knee-record.service", "knee-exporter.service"])
def test_units_let_a_socket_be_closed_on_each_processor(call: Call, tmp_path: Path, unit: str) -> None:
    """Which tells that the kernel has told of all connections that closed (crates/live/src/record/marks.rs)."""
    assert call("export", "--systemd", tmp_path).code == 0
    lines = (tmp_path / unit).read_text(encoding="utf-8").splitlines()
    [families] = [line for line in lines if line.startswith("RestrictAddressFamilies=")]
    assert {"AF_NETLINK", "AF_INET"} <= set(families.partition("=")[2].split())
    filters = [line.partition("=")[2] for line in lines if line.startswith("SystemCallFilter=")]
    assert filters.index("sched_setaffinity") > filters.index("~@privileged @resources"), "the last word holds"


@pytest.mark.parametrize("cookie", ["sk:0", "sk:0000"])
def test_cookie_0_is_no_connection_and_not_every_one(call: Call, cookie: str) -> None:
    ended = call("trace", cookie, "--for", "1s")
    assert ended.code == 2 and f'got "{cookie}", and no socket has cookie 0; expected the far end' in ended.err
    assert which.connection("sk:1a2b") == {"cookie": 0x1A2B}


def test_a_network_namespace_with_several_names_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(which, "NAMED", tmp_path)
    (tmp_path / "ours").symlink_to("/proc/self/ns/net")
    for name in ("one", "two"):
        (tmp_path / name).touch()
    (tmp_path / "two-again").hardlink_to(tmp_path / "two")
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    assert which.namespaces(None) == [(None, None), ("one", tmp_path / "one"), ("two", tmp_path / "two")]
