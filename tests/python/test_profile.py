"""`knee profile` without privileges, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import tcpknee
from tcpknee import _core
from tcpknee.cli import profile as verb
from tcpknee.cli.app import app
from tcpknee.errors import RunFolderError, UsageError
from tcpknee.live import profile
from tcpknee.pages import functions, palette, profile_page, profile_text


def typed(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["profile", *words])
    return found.exit_code, found.output + (str(found.exception) if found.exception else "")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> profile.Profile:
    """A profile that needs no privilege."""
    folder = tmp_path_factory.mktemp("profile") / "plain"
    return profile.take(folder, seconds=0.2, chosen=profile.without_bpf())


def with_stacks(folder: Path, stacks: list[tuple[str, int, str]], seconds: float) -> profile.Profile:
    """A profile with these stacks."""
    profile.take(folder, seconds=0.0, chosen=[])
    rows = [{"cell": 0, "rep": 0, "stack": stack, "samples": count, "class": kind} for stack, count, kind in stacks]
    pq.write_table(pa.Table.from_pylist(rows), folder / "stacks.parquet")
    about = json.loads((folder / "profile.json").read_text())
    (folder / "profile.json").write_text(json.dumps({**about, "seconds": seconds}))
    return profile.read(folder)


def test_the_verb_has_an_option_for_each_instrument_of_the_core() -> None:
    assert list(verb._INSTRUMENTS) == profile.instruments()
    assert profile.without_bpf() == ["softnet"]


def test_a_profile_takes_as_long_as_it_says(tmp_path: Path) -> None:
    began = time.monotonic()
    found = profile.take(tmp_path / "timed", seconds=0.2, chosen=profile.without_bpf())
    assert 0.2 <= found.about["seconds"] <= time.monotonic() - began


def test_without_bpf_there_are_processors_threads_and_backlogs(plain: profile.Profile) -> None:
    assert len(plain.rows("processors")) == os.cpu_count()
    assert {"context_switches", "backlog_drops", "retransmits"} <= plain.costs.keys()
    assert "data_skbs_sent" not in plain.costs and not plain.rows("stacks")


def test_a_thread_that_works_is_in_the_table_of_its_process(tmp_path: Path) -> None:
    until = time.thread_time() + 0.05

    def work(so_far: float) -> None:
        # Of this thread's own time, which a busy machine takes longer to give.
        while time.thread_time() < until:
            pass

    found = profile.take(tmp_path / "own", seconds=0.2, pid=os.getpid(), chosen=[], progress=work)
    rows = found.rows("threads")
    assert {row["pid"] for row in rows} == {os.getpid()}
    assert rows[0]["run_ns"] > 20e6


def test_a_profile_is_a_dataset_whose_columns_say_what_they_are(plain: profile.Profile) -> None:
    found = tcpknee.Dataset(plain.folder)
    assert found.kind == "profile" and set(found.tables) == set(profile.TABLES)
    registry = _core.tables("profile")
    for name in profile.TABLES:
        assert [column.name for column in found.schema(name)] == [column["name"] for column in registry[name]]
    assert found.provenance.kernels == (f"Linux {os.uname().release}",)
    assert found.sql("select value from host_costs where counter = 'interrupts'").num_rows == 1


def test_the_text_says_how_busy_the_processors_were(plain: profile.Profile) -> None:
    assert re.search(r"s; \d+ processors? busy for [\d.]+ %", profile_text.answer(plain))
    assert [row[0] for row in profile_text.counts(plain)] == [name for name, value in plain.costs.items() if value]


def test_what_was_not_seen_once_is_named_in_one_line(plain: profile.Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = {"interrupts": 3, "acks_sent": 0, "softirqs_hrtimer": 0}
    monkeypatch.setitem(plain.__dict__, "costs", counted)
    assert [row[0] for row in profile_text.counts(plain)] == ["interrupts"]
    assert profile_text.never(plain) == [("not seen once", "acks_sent, softirqs_hrtimer")]
    assert "<dd>acks_sent, softirqs_hrtimer</dd>" in profile_page.page(plain)
    monkeypatch.setitem(plain.__dict__, "costs", {"interrupts": 3})
    assert not profile_text.never(plain)


def test_what_the_machine_did_has_no_ratio_to_packets_of_one_place(tmp_path: Path) -> None:
    profile.take(tmp_path, seconds=0.0, chosen=[])
    (file,) = tmp_path.glob("host_costs*.parquet")
    rows = pq.read_table(file)
    counted = {"interrupts": 30, "acks_sent": 20, "data_skbs_sent": 10}
    made = [{**rows.to_pylist()[0], "counter": name, "value": value} for name, value in counted.items()]
    pq.write_table(pa.Table.from_pylist(made, schema=rows.schema), file)

    def ratios() -> dict[str, str]:
        return {row[0]: row[3] for row in profile_text.counts(profile.read(tmp_path))}

    about = json.loads((tmp_path / "profile.json").read_text())
    (tmp_path / "profile.json").write_text(json.dumps({**about, "seconds": 1.0}))
    assert ratios() == {"interrupts": "3.00", "acks_sent": "2.00", "data_skbs_sent": "-"}
    narrow = {**about, "seconds": 1.0, "asked": {**about["asked"], "netns": "web"}}
    (tmp_path / "profile.json").write_text(json.dumps(narrow))
    assert ratios() == {"interrupts": "-", "acks_sent": "2.00", "data_skbs_sent": "-"}


def test_every_class_has_a_colour() -> None:
    listed = Path("crates/collect/src/stacks/classes.txt")
    text = (Path(__file__).parents[2] / listed).read_text()
    named = set(re.findall(r"^\[(.+)\]$", text, re.MULTILINE)) - {"idle", "caller"}
    assert named | {"user", "other"} == palette.CLASSES.keys()


def test_hostile_names_stay_text_in_the_page(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>\u202e"
    found = with_stacks(tmp_path / "evil", [(f"{evil};f_[k]", 3, "other")], 1.0)
    page = profile_page.page(found)
    assert "<script>alert" not in page and "\u202e" not in page
    assert "\\u003cscript" in page


def test_beside_another_profile_stacks_are_scaled_to_the_same_length(tmp_path: Path) -> None:
    before = with_stacks(tmp_path / "before", [("a;b_[k]", 10, "skb")], 1.0)
    now = with_stacks(tmp_path / "now", [("a;b_[k]", 60, "skb"), ("a", 3, "user")], 3.0)
    data = profile_page.data(now, before)
    assert data["graphs"][data["beside"]]["stacks"] == [("a;b_[k]", 30.0, "skb")]
    rows = {row[0]: row[1:] for row in profile_text.beside(before, now)}
    assert rows["samples of skb"] == ["10", "20", "2.00 x"]
    assert rows["samples of user"][0] == "-"


def test_functions_are_listed_by_share_and_beside_another_profile_by_change(tmp_path: Path) -> None:
    before = with_stacks(tmp_path / "before", [("a;f_[k];g_[k]", 10, "skb"), ("a;main", 10, "user")], 1.0)
    now = with_stacks(tmp_path / "now", [("a;f_[k];g_[k]", 30, "skb"), ("a;f_[k]", 10, "skb")], 1.0)
    assert profile_text.functions_of(now, None) == [["g [k]", "75.00", "75.00"], ["f [k]", "25.00", "100.00"]]
    assert profile_text.functions_of(now, before) == [
        ["main", "50.00", "-", "-50.00", "50.00", "-"],
        ["f [k]", "-", "25.00", "+25.00", "50.00", "100.00"],
        ["g [k]", "50.00", "75.00", "+25.00", "50.00", "75.00"],
    ]


def test_who_calls_a_function_is_told_with_shares_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    calls = [("a;f_[k];g_[k];h_[k]", 1, "skb"), ("a;e_[k];g_[k]", 2, "skb"), ("a;g_[k];g_[k]", 1, "skb")]
    now = with_stacks(tmp_path / "now", calls, 1.0)
    before = with_stacks(tmp_path / "before", [("a;f_[k];g_[k]", 1, "skb"), ("a", 1, "user")], 1.0)
    heads, rows = functions.callers("g", now.stacks)
    assert heads == ["caller", "share %"]
    assert rows == [["e [k]", "50.00"], ["a", "25.00"], ["f [k]", "25.00"], ["g [k]", "25.00"]]
    found = CliRunner().invoke(
        app, ["report", str(now.folder), "--against", str(before.folder), "--function", "g", "-q"]
    )
    assert found.exit_code == 0 and re.search(r"f \[k\] +50\.00 +25\.00 +-25\.00", found.output), found.output
    page = (now.folder / "profile.html").read_text()
    assert "Who calls g" in page and page.index("Who calls g") < page.index("Functions, as shares")
    found = CliRunner().invoke(app, ["report", str(now.folder), "--function", "hh", "-q"])
    assert isinstance(found.exception, UsageError) and 'Did you mean "h"?' in str(found.exception)


def test_each_processor_has_its_line_as_mpstat_prints_it(tmp_path: Path) -> None:
    profile.take(tmp_path, seconds=0.0, chosen=[])
    (file,) = tmp_path.glob("processors*.parquet")
    schema = pq.read_table(file).schema
    times = {"user_us": 20, "system_us": 10, "irq_us": 0, "softirq_us": 5, "steal_us": 5, "idle_us": 60}
    idle = {**dict.fromkeys(times, 0), "idle_us": 100}
    rows = [{"cpu": 1, **times}, {"cpu": 0, **idle}, {"cpu": 2, **idle}]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file)
    found = profile.read(tmp_path)
    assert profile_text.processors(found) == [
        ["all", "6.67", "3.33", "0.00", "1.67", "1.67", "86.67"],
        ["0", "0.00", "0.00", "0.00", "0.00", "0.00", "100.00"],
        ["1", "20.00", "10.00", "0.00", "5.00", "5.00", "60.00"],
        ["2", "0.00", "0.00", "0.00", "0.00", "0.00", "100.00"],
    ]
    assert [row[0] for row in profile_text.processors(found, 1)] == ["all", "1"]
    page = profile_page.page(found)
    assert "Each processor" in page and '<td class="number">86.67</td>' in page


def test_the_functions_fit_a_terminal_of_80_columns(tmp_path: Path) -> None:
    long = "std::vector<std::unordered_map<int, std::string>>::operator()(unsigned long) const"
    now = with_stacks(tmp_path / "now", [(f"a;{long}", 1, "user")], 1.0)
    before = with_stacks(tmp_path / "before", [("a;f_[k]", 1, "skb")], 1.0)
    for other in (None, before):
        lines = list(profile_text.stack_lines(now, other, None))
        assert len(lines) > 2 and max(map(len, lines)) <= 80
    assert long in profile_page.page(now).replace("&lt;", "<").replace("&gt;", ">")


def test_stacks_of_perf_script_are_drawn_and_laid_beside_others(tmp_path: Path) -> None:
    sample = Path(__file__).parents[2] / "crates/import/tests/data/perf/perf-6.1.txt"
    for name in ("before", "after"):
        found = CliRunner().invoke(app, ["import", str(sample), "--out", str(tmp_path / name), "-q"])
        assert found.exit_code == 0, found.output
    assert profile.is_profile(tmp_path / "after")
    words = ["report", str(tmp_path / "after"), "--against", str(tmp_path / "before"), "-q"]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    assert " [k]  " in found.output and "change %" in found.output
    assert "Call stacks of after" in (tmp_path / "after" / "profile.html").read_text()
    one = profile.read(tmp_path / "after")
    graphs = profile_page.data(one, profile.read(tmp_path / "before"))["graphs"]
    assert graphs[0]["stacks"] == graphs[1]["stacks"]


def test_the_share_without_a_class_is_told(tmp_path: Path) -> None:
    found = with_stacks(tmp_path / "p", [("a;b_[k]", 1, "other"), ("a", 3, "user")], 1.0)
    assert any(
        "25.0 % of the busy samples could not be put into a class" in line for line in profile_text.warnings(found)
    )


def test_the_report_of_a_profile_is_its_page(plain: profile.Profile, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    found = CliRunner().invoke(app, ["report", str(plain.folder), "--out", str(out), "-q"])
    assert found.exit_code == 0, found.output
    assert "tcpknee profile" in out.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pid", "4194304", "--no-bpf", "--for", "1s"], "no such process"),
        (["--netns", "no-such", "--no-bpf", "--for", "1s"], '--netns: got "no-such"'),
        (["--for", "soon", "--no-bpf"], "--for"),
        (["--against", "no-such"], "no-such"),
    ],
)
def test_what_cannot_be_profiled_is_refused(words: list[str], said: str, tmp_path: Path) -> None:
    code, output = typed(*words, "--out", str(tmp_path / "out"), "-q")
    assert code != 0 and said in output
    assert not (tmp_path / "out").exists()


def test_an_instrument_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'got "timer"; .*timers'):
        profile.take(tmp_path / "out", seconds=0.1, chosen=["timer"])


def test_a_folder_that_holds_something_is_refused_and_left_alone(plain: profile.Profile) -> None:
    with pytest.raises(RunFolderError, match="not empty"):
        profile.take(plain.folder, seconds=0.1, chosen=[])


def test_a_damaged_description_is_refused(tmp_path: Path) -> None:
    (tmp_path / "profile.json").write_text('{"schema": 1, "began": 5}')
    with pytest.raises(RunFolderError, match=r"profile\.json: began: got 5; expected text"):
        profile.read(tmp_path)
