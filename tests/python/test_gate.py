"""`knee gate`: what it separates, what it says of bad input, and that two runs give the same bytes."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from support import SUITE, Ended, knee
from tcpknee.cli.app import app
from tcpknee.errors import ScenarioError
from tcpknee.evidence import expect, metrics
from tcpknee.evidence.expressions import Quantity, Term
from tcpknee.gate import candidates, judging, report, suite
from tcpknee.pages import gate_page
from tcpknee.runs import api

ROOT = Path(__file__).parents[2]

UNFAIR = Path(__file__).parent / "unfair"

ROWS = ("loss", "starvation", "coexistence")
"""Of the suite of RFC 9743, those that tell a bad neighbour."""

LONG = 'duration = "60s"\nwarmup   = "20s"\nrepeat   = 5'
SHORT = 'duration = "20s"\nwarmup   = "8s"\nrepeat   = 3'

FEWER = {'["20ms", "80ms"]': '["20ms"]', '["0.25bdp", "0.5bdp", "1bdp"]': '["0.25bdp"]'}

CRASHES = "\t*(volatile u32 *)8 = 1;\n"
"""Put before what an op answers."""

TWO = SUITE.replace('rtt  = "10ms"', 'rtt  = "10ms"\nbuffer = "1bdp"')


def suite_of(folder: Path, text: str) -> str:
    (folder / "suite.toml").write_text(text, encoding="utf-8")
    return "./suite.toml"


def gated(folder: Path, algorithm: str, *words: str, text: str = TWO, out: str = "out") -> tuple[Ended, dict[str, Any]]:
    done = knee("gate", algorithm, "--suite", suite_of(folder, text), "-q", "--out", out, *words, cwd=folder)
    assert "Traceback" not in done.err
    kept = folder / out / "gate.json"
    return done, json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}


def neighbours() -> str:
    """The rows of the suite of RFC 9743 that tell a bad neighbour."""
    text = (suite.FOLDER / "rfc9743.toml").read_text(encoding="utf-8")
    head, *rows = text.split("[[row]]\n")
    chosen = [row for row in rows if row.split('"')[1] in ROWS]
    assert len(chosen) == len(ROWS)
    return "[[row]]\n".join([head, *chosen])


def told_from_good_ones(folder: Path, text: str, algorithm: str, fails: set[str]) -> None:
    done, found = gated(folder, algorithm, text=text)
    rows = {row["name"]: row for row in found["rows"]}
    assert {name for name, row in rows.items() if row["verdict"] == "not ok"} == fails, done.out
    assert done.code == bool(fails)
    for name in fails:
        assert rows[name]["worst"] and (folder / "out" / rows[name]["reproducer"]).exists()


@pytest.mark.parametrize(
    ("algorithm", "fails"),
    [("reno", set()), ("bbr1", {"loss", "coexistence"}), (str(UNFAIR / "never_backs_off.c"), set(ROWS))],
    ids=["reno", "bbr1", "never_backs_off"],
)
def test_bad_neighbours_are_told_from_good_ones(tmp_path: Path, algorithm: str, fails: set[str]) -> None:
    text = neighbours()
    assert LONG in text
    for key, fewer in FEWER.items():
        assert key in text
        text = text.replace(key, fewer)
    told_from_good_ones(tmp_path, text.replace(LONG, SHORT), algorithm, fails)


@pytest.mark.long
@pytest.mark.parametrize(
    ("algorithm", "fails"),
    [
        ("reno", set()),
        ("cubic", set()),
        ("dctcp", set()),
        ("bbr1", set(ROWS)),
        ("bbr3", {"coexistence"}),
        ("vegas", {"starvation"}),
        (str(UNFAIR / "never_backs_off.c"), set(ROWS)),
        (str(UNFAIR / "fixed_window.c"), set(ROWS)),
        (str(UNFAIR / "doubles_on_loss.c"), set(ROWS)),
    ],
    ids=["reno", "cubic", "dctcp", "bbr1", "bbr3", "vegas", "never_backs_off", "fixed_window", "doubles_on_loss"],
)
def test_they_are_told_apart_as_the_literature_does(tmp_path: Path, algorithm: str, fails: set[str]) -> None:
    told_from_good_ones(tmp_path, neighbours(), algorithm, fails)


def test_a_finding_is_shown_by_its_scenario(tmp_path: Path) -> None:
    head, *rows = neighbours().split("[[row]]\n")
    alone = "[[row]]\n".join([head, *(row for row in rows if row.split('"')[1] == "loss")]).replace(
        *[*FEWER.items()][1]
    )
    gated(tmp_path, str(UNFAIR / "never_backs_off.c"), text=alone)
    finding = tmp_path / "out" / "finding-loss.toml"
    text = finding.read_text(encoding="utf-8")
    assert len(text.split("\n")) < 30
    commands = [part.split() for part in re.findall(r"knee ([^;\n]+)", text)]
    assert [words[0] for words in commands] == ["run", "export"]
    run, export = (knee(*words, "-q", cwd=tmp_path / "out") for words in commands)
    assert run.code == 1 and "new.retransmit_pct <= 5%" in run.out, run.err
    assert export.code == 0 and (tmp_path / "out" / "finding.pcapng").stat().st_size > 100_000, export.err


def test_two_runs_give_the_same_bytes(tmp_path: Path) -> None:
    mine = tmp_path / "mine.c"
    mine.write_text((UNFAIR / "never_backs_off.c").read_text(encoding="utf-8"), encoding="utf-8")
    outs = [gated(tmp_path, "./mine.c", "--junit", f"{name}.xml", out=name)[0].out for name in ("a", "b")]
    assert outs[0] == outs[1]
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert {"gate.json", "report.html", "report.md", "junit.xml", "badge.json", "one.toml"} <= {str(f) for f in files}
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file
    (whole,) = {(tmp_path / name).read_bytes() for name in ("a.xml", "b.xml", "a/junit.xml")}
    assert len(ElementTree.fromstring(whole).findall("testsuite/testcase")) == 2


def test_an_algorithm_that_crashes_ends_its_row_and_not_the_report(tmp_path: Path) -> None:
    text = (UNFAIR / "never_backs_off.c").read_text(encoding="utf-8")
    before = "\tout->ret = cc_max("
    assert before in text
    (tmp_path / "crashing.c").write_text(text.replace(before, CRASHES + before), encoding="utf-8")
    rows = TWO.split("[[row]]\n")
    again = rows[1].replace('"one"', '"calm"').replace('duration = "1s"', 'duration = "15ms"')
    done, found = gated(tmp_path, "./crashing.c", text="[[row]]\n".join([rows[0], rows[1], again, rows[2]]))
    one, calm, two = found["rows"]
    assert one["verdict"] == "crashed" and "ssthresh" in one["worst"], one
    assert calm["verdict"] != "crashed" and two["verdict"] == "prose wanted"
    assert done.code == 1 and "one (crashed)" in done.out


def test_a_base_that_crashes_is_no_fault_of_the_algorithm(tmp_path: Path) -> None:
    text = (UNFAIR / "never_backs_off.c").read_text(encoding="utf-8")
    before = "\tout->ret = cc_max("
    (tmp_path / "crashing.c").write_text(text.replace(before, CRASHES + before), encoding="utf-8")
    alone = TWO.replace('[[flow]]\nname      = "old"\nalgorithm = "BASE"\n', "")
    assert alone != TWO
    rows = [
        TWO.partition("[[row]]")[0],
        alone.split("[[row]]\n")[1],
        TWO.split("[[row]]\n")[1].replace('"one"', '"beside"'),
    ]
    done, found = gated(tmp_path, "reno", "--against", "./crashing.c", text="[[row]]\n".join(rows))
    one, beside = found["rows"]
    assert (one["verdict"], one["base"], one["change"]) == ("ok", "crashed", None), one
    assert beside["verdict"] == "undecided" and done.code == 0 and "base crashed: " in done.out


def of_flow(metric: str, **runs: Sequence[float]) -> judging.Harm:
    term = Term("old", (), metric)
    kind = metrics.BY_NAME[metric].kind
    of = {name: Quantity.of_metric(kind, np.array(values)) for name, values in runs.items()}
    return judging._harmed(term, {}, of)


@pytest.mark.filterwarnings("error")
def test_harm_to_a_flow_that_loses_nothing_alone_is_seen() -> None:
    """Its share is 1 for any loss, also beside the base."""
    found = of_flow("retransmit_pct", alone=[0, 0], new=[24.5, 24.6], base=[1.5, 1.4])
    assert found.verdict == "fails" and "24.5" in found.text and "instead of 1.45 %" in found.text
    assert found.bound == "old.retransmit_pct <= 2.45%"
    assert of_flow("retransmit_pct", alone=[0, 0], new=[2.1, 2.1], base=[1.5, 1.5]).verdict == "holds"
    assert of_flow("queue_delay_us_mean", alone=[0, 0], new=[900, 901], base=[1, 2]).verdict == "holds"


@pytest.mark.filterwarnings("error")
def test_a_flow_that_is_starved_to_nothing_is_harmed() -> None:
    nothing = [math.nan, math.nan]
    found = of_flow("latency_us_p95", alone=[100, 110], new=nothing, base=[100, 110])
    assert (found.verdict, found.new.mean) == ("fails", 1.0)
    assert of_flow("latency_us_p95", alone=[100, 110], new=[100, math.nan], base=[100, 110]).verdict == "undecided"
    assert of_flow("latency_us_p95", alone=[100, 110], new=nothing, base=nothing).verdict != "fails"


def test_one_repetition_decides_nothing(tmp_path: Path) -> None:
    once = TWO.replace("repeat   = 2", "repeat   = 1").replace("goodput >= 1Mbit/s", "goodput >= 1Gbit/s")
    one = gated(tmp_path, "reno", "--against", "bbr1", text=once)[1]["rows"][0]
    assert (one["verdict"], one["change"]) == ("undecided", "undecided")


def test_a_value_that_one_repetition_lacks_is_no_difference(tmp_path: Path) -> None:
    row = suite.find(str(tmp_path / suite_of(tmp_path, TWO))).rows[0]
    some, none, ones = (
        Quantity.of_metric("pct", values)
        for values in (np.array([1.0, 1.0, 1.0, math.nan]), np.full(4, math.nan), np.ones(4))
    )
    assert judging._change(row, {}, some, ones).verdict == "undecided"
    assert judging._change(row, {}, none, ones).verdict == "worse"
    grown = judging._change(row, {}, ones, Quantity.of_metric("pct", np.zeros(4)))
    assert grown.told.startswith(f"{row.measure} 1.00 % instead of 0 %"), grown.told


UNFINISHED = """
[[row]]
name     = "unfinished"
question = "Is a transfer as fast?"
measure  = "old.completion_us_p50"
better   = "less"
harm     = "old"
scenario = '''
duration = "3s"
warmup   = "1s"
repeat   = 3
[path]
rate   = "2Mbit/s"
rtt    = "100ms"
buffer = "1bdp"
loss   = "3%"
[[flow]]
name      = "old"
algorithm = "BASE"
workload  = "transfer"
bytes     = "200kB"
[[flow]]
name      = "new"
algorithm = "NEW"
'''
"""


def test_a_transfer_that_one_repetition_does_not_complete_decides_nothing(tmp_path: Path) -> None:
    text = TWO[: TWO.index("[[row]]")] + UNFINISHED
    row = gated(tmp_path, "bbr1", "--against", "cubic", text=text)[1]["rows"][0]
    assert row["change"] == "undecided"
    assert row["changes"][0]["text"].endswith("has no value in 1 of 3 repetitions, with the base in 0")
    [harm] = [one for one in row["harm"] if one["metric"] == "completion"]
    assert harm["verdict"] == "undecided" and 0 < harm["new"]["mean"] < 1
    # A share is from 0 to 1, and so is its interval.
    assert 0 <= harm["new"]["low"] < harm["new"]["high"] <= 1


BY_HARM = """
[[row]]
name     = "by-harm"
question = "Is it a good neighbour?"
harm     = "old"
scenario = '''
duration = "4s"
warmup   = "1s"
repeat   = 3
[path]
rate   = "10Mbit/s"
rtt    = "20ms"
jitter = "1ms"
buffer = ["1bdp", "2bdp"]
[sender]
initcwnd = [10, 12]
[[flow]]
name      = "old"
algorithm = "BASE"
[[flow]]
name      = "new"
algorithm = "NEW"
'''
[[row]]
name     = "by-limit"
question = "Is it as fast as no link is?"
limits   = ["new.goodput >= 1Gbit/s"]
why      = "None: it must fail."
scenario = '''
duration = "500ms"
repeat   = 2
[path]
rate = ["10Mbit/s", "5Mbit/s"]
rtt  = ["10ms", "20ms"]
[[flow]]
name      = "new"
algorithm = "NEW"
[[zip]]
keys = ["path.rate", "path.rtt"]
'''
"""


def test_every_finding_ends_with_1(tmp_path: Path) -> None:
    """Where harm alone fails, where values are numbers, and where lists vary together."""
    _, found = gated(tmp_path, str(UNFAIR / "never_backs_off.c"), text=TWO.partition("[[row]]")[0] + BY_HARM)
    rows = {row["name"]: row for row in found["rows"]}
    assert {row["verdict"] for row in rows.values()} == {"not ok"}
    assert rows["by-limit"]["limits"][0]["at"] == "rate 5Mbit/s, rtt 20ms", "where it holds least"
    for row in rows.values():
        shown = (tmp_path / "out" / row["reproducer"]).read_text(encoding="utf-8")
        assert not re.search(r"^[a-z]+ *= *\[", shown, re.MULTILINE), shown
        done = knee("run", tmp_path / "out" / row["reproducer"], "-q", "--out", row["name"], cwd=tmp_path)
        assert done.code == 1, (shown, done.out, done.err)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert " object at 0x" not in page
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(re.findall(r'id="([^"]+)"', page))
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    for row in rows.values():
        assert f"Shown by `knee run {row['reproducer']}`" in text
    for told in (page.replace("&#34;", '"'), text.replace("\\", "")):
        assert '"old" is cubic' in told and "0 nothing, 1 all" in told


def test_a_page_has_no_link_to_what_was_not_run_and_begins_with_what_failed() -> None:
    rows = [
        {"name": "aside", "scenario": None, "reproducer": None},
        {"name": "good", "scenario": "good.toml", "reproducer": None},
        {"name": "bad", "scenario": "bad.toml", "reproducer": "finding-bad.toml"},
    ]
    plain = {"section": "1", "must": False, "stress": False, "verdict": "ok", "change": None, "worst": "", "limits": []}
    plain |= {"question": "?", "thresholds": {}, "base": None, "changes": [], "harm": []}
    gate = {"title": "x", "why": "", "counts": "", "legend": "", "base": "cubic", "facts": {}, "would_change": []}
    page = gate_page.render({**gate, "rows": [{**plain, **row} for row in rows]})
    assert re.findall(r'href="#([^"]+)"', page) == ["row-good", "row-bad"]
    assert re.findall(r'id="(row-[^"]+)"', page) == ["row-bad", "row-good"]


def test_a_finding_is_where_something_fails(tmp_path: Path) -> None:
    row = suite.find(str(tmp_path / suite_of(tmp_path, TWO))).rows[0]
    there, here = {"path.rtt": "1ms"}, {"path.rtt": "9ms"}
    limit = judging.Limit(expect.Outcome("new.goodput >= 1Mbit/s", 1, "undecided", "left is 1 Mbit/s"), there)
    worse = judging.Change("worse", here, None, "new.goodput 0.5×")
    found = judging._finding(judging.Judged(row, "sim", "undecided", changes=[worse], limits=[limit]))
    assert found == {"worst": "new.goodput 0.5× at rtt 9ms", "place": here}


def test_junit_has_a_suite_per_engine(tmp_path: Path) -> None:
    mine = suite.find(str(tmp_path / suite_of(tmp_path, TWO)))
    one = candidates.Candidate("reno", "reno", '"reno"')
    gates = [judging.Gate(mine, one, one, tmp_path, engine=engine) for engine in ("sim", "guest")]
    found = [judging.Judged(mine.rows[0], "sim", judging.OK)]
    whole = ElementTree.fromstring(report.junit([(gate, found) for gate in gates], by_criteria=True))
    assert [len(each) for each in whole.findall("testsuite")] == [1, 1]


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("./mine.c@HEAD~1", "./mine.c"),
        ("./a@b/mine.c", "./a@b/mine.c"),
        ("./a@b/mine.c@HEAD", "./a@b/mine.c"),
        ("cubic", "cubic"),
    ],
)
def test_a_path_may_have_an_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, path: str) -> None:
    (tmp_path / "a@b").mkdir()
    (tmp_path / "a@b/mine.c").touch()
    monkeypatch.chdir(tmp_path)
    assert candidates.path_of(word) == path


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('measure  = "new.goodput"', 'measure  = "nobody.goodput"', 'measure: got "nobody"'),
        ('better   = "more"', 'better   = "more"\nharm = "nobody"', 'harm: got "nobody"'),
        ('better   = "more"', 'better   = "more"\nharm = "new"', 'harm: got "new"'),
        ('rtt  = "10ms"', 'rtt  = "10m"', "path.rtt"),
    ],
)
def test_a_mistake_in_a_later_row_ends_the_gate_before_anything_runs(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    head, first, rest = TWO.split("[[row]]\n")
    assert old in first
    later = first.replace('"one"', '"later"').replace(old, new)
    mine = suite.find(str(tmp_path / suite_of(tmp_path, "[[row]]\n".join([head, first, later, rest]))))
    one = candidates.Candidate("reno", "reno", '"reno"')
    with pytest.raises(ScenarioError, match=re.escape(said)) as raised:
        judging.Gate(mine, one, one, tmp_path / "out").run()
    assert "row later" in str(raised.value) and not (tmp_path / "out").exists()


def test_a_file_of_a_revision_is_compared_with_what_it_became(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    mine = tmp_path / "mine.c"
    text = (UNFAIR / "never_backs_off.c").read_text(encoding="utf-8")
    mine.write_text(
        text.replace("out->ret = cc_max(out->snd_cwnd,", "out->ret = cc_max(out->snd_cwnd / 2,"), encoding="utf-8"
    )
    for words in (["init", "-q"], ["add", "mine.c"], ["commit", "-qm", "halves"]):
        subprocess.run([*git, *words], check=True)
    mine.write_text(text, encoding="utf-8")
    changed = TWO.replace('"new.goodput"', '"old.goodput"').replace('duration = "1s"', 'duration = "5s"')
    changed = changed.replace("repeat   = 2", "repeat   = 6")
    done, found = gated(tmp_path, "./mine.c", "--against", "./mine.c@HEAD", text=changed)
    assert done.code == 1 and found["rows"][0]["change"] == "worse", done.out
    shown = (tmp_path / "out" / found["rows"][0]["reproducer"]).read_text(encoding="utf-8")
    assert 'assert = "old.goodput >= ' in shown
    assert "stubborn (new)" in done.out and "mine.c@HEAD" in found["facts"]["against"]
    assert mine.read_text(encoding="utf-8") == text
    same, _ = gated(tmp_path, "./mine.c@HEAD", "--against", "./mine.c@HEAD~0", text=changed, out="same")
    assert same.code == 0, same.out


def test_what_there_was_no_time_for_is_said_and_fails(tmp_path: Path) -> None:
    done, found = gated(tmp_path, "reno", "--budget", "0s")
    assert done.code == 1 and "no time for 1 row: one" in done.out
    assert [row["verdict"] for row in found["rows"]] == ["no time", "prose wanted"]


def test_a_row_that_no_engine_could_run_fails_too(tmp_path: Path) -> None:
    row = suite.find(str(tmp_path / suite_of(tmp_path, TWO))).rows[0]
    found = [judging.Judged(row, "guest", judging.NOT_RUN, worst="it does not compile")]
    assert report.verdict(found, by_criteria=False) == (False, "Not passed: could not be run: one.")


def test_a_row_of_stress_never_decides_alone(tmp_path: Path) -> None:
    hard = TWO.replace("goodput >= 1Mbit/s", "goodput >= 1Gbit/s")
    assert gated(tmp_path, "reno", "--against", "reno", text=hard)[1]["rows"][0]["verdict"] == "not ok"
    stress = hard.replace('better   = "more"', 'better   = "more"\nstress   = true')
    done, found = gated(tmp_path, "reno", "--against", "bbr1", text=stress, out="stress")
    assert found["rows"][0]["verdict"] == "not ok" and done.code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nosuch"], 'got "nosuch"'),
        (["reno", "--against", "nosuch"], '--against: got "nosuch"'),
        (["./nosuch.c"], "there is no such file"),
        (["./nosuch.c@HEAD"], "git says: "),
        (["reno", "--budget", "10"], "expected a length of time"),
        (["reno", "--rfc9743"], "--rfc9743: got it with --suite"),
        (["reno", "--engine", "hosts"], '--engine: got "hosts"; expected some of sim, kernel, guest.'),
        (["reno", "--engine", "kernel", "--kernel", "7.2"], "--kernel: got it with --engine kernel; expected"),
        (["reno", "--engine", "sim,kernel", "--kernel", "7.2", "--against-kernel", "6.1"], "--against-kernel: got it"),
        (["reno", "--engine", "sim,guest"], "row one: kernel: got none; expected one of `knee kernel list`"),
        (["reno", "--kernel", "9.9"], "9.9"),
        (["./mine.c", "--kernel", "9.9"], "9.9"),
        (["./mine.c", "--against", "./nosuch.c"], "there is no such file"),
        (["./mine.c", "--against", "./mine.c@nosuch"], "git says: "),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_no_folder(tmp_path: Path, words: list[str], said: str) -> None:
    shutil.copy(UNFAIR / "never_backs_off.c", tmp_path / "mine.c")
    done, _ = gated(tmp_path, words[0], *words[1:])
    assert done.code == 2 and said in done.err and not re.search(r"[.?]\.\s", done.err), done.err
    assert not (tmp_path / "out").exists()


def test_a_wrong_key_is_refused_with_the_right_one(tmp_path: Path) -> None:
    done, _ = gated(tmp_path, "reno", text=TWO.replace("measure  =", "mesure   ="))
    assert done.code == 2 and 'Did you mean "measure"?\n' in done.err, done.err


def test_sources_lie_beside_the_scenarios_that_name_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(UNFAIR / "never_backs_off.c", tmp_path / "mine.c")
    new, base = candidates.of("knee gate", "./mine.c", "reno")
    # As the command has it where several engines are asked for.
    judging.Gate(suite.find(suite_of(tmp_path, TWO)), new, base, tmp_path / "out" / "sim").run()
    Path("mine.c").unlink()
    done = knee("run", "out/sim/one.toml", "-q", cwd=tmp_path)
    assert done.code == 0, done.err


def test_a_row_whose_measure_means_nothing_is_refused_with_its_line(tmp_path: Path) -> None:
    done, _ = gated(tmp_path, "reno", text=TWO.replace('"new.goodput >= 1Mbit/s"', '"nwe.goodput >= 1Mbit/s"'))
    assert done.code == 2 and "suite.toml:8: " in done.err and '"nwe"' in done.err, done.err


def test_no_old_finding_stays_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/finding-one.toml").write_text("", encoding="utf-8")
    done, _ = gated(tmp_path, "reno")
    assert done.code == 2 and "--out: out is not empty" in done.err
    done, _ = gated(tmp_path, "reno", "--junit", "suite.toml", out="new")
    assert done.code == 2 and "--junit: suite.toml is there already" in done.err


def test_markdown_is_for_a_comment(tmp_path: Path) -> None:
    done, _ = gated(tmp_path, "reno", "--format", "md")
    mark, head, *_ = done.out.split("\n")
    assert mark == "<!-- knee gate: mine reno -->"
    assert head.startswith("### knee gate: reno beside cubic") and "| section | row |" in done.out


def test_nothing_in_a_report_is_markdown_of_its_own() -> None:
    told = report._cell("@us [x](y) ![z] `a` | *b* #1 ~~c~~ <!-- \\\n")
    assert told == "@&#8203;us \\[x\\](y) \\!\\[z\\] \\`a\\` \\| \\*b\\* #&#8203;1 \\~\\~c\\~\\~ &lt;\\!-- \\\\ "


GH = """#!/bin/sh
printf "%s\\n" "$*" >> asked
case "$*" in *--paginate*) cat comments ;; esac
"""


@pytest.mark.parametrize(
    ("comments", "asked"),
    [
        ("", "--method POST repos/us/it/issues/7/comments"),
        # Of a coverage tool with the same token, of a suite beside ours, and of somebody who copied ours.
        (
            "1\tgithub-actions[bot]\t## Coverage\n2\tgithub-actions[bot]\t<!-- knee gate: mine bbr1 -->\n"
            "3\tann\t<!-- knee gate: mine reno -->\n",
            "--method POST repos/us/it/issues/7/comments",
        ),
        (
            "4\tgithub-actions[bot]\t<!-- knee gate: mine reno -->\n5\tgithub-actions[bot]\t## Coverage\n",
            "--method PATCH repos/us/it/issues/comments/4",
        ),
        (None, None),
    ],
)
def test_the_action_edits_its_own_comment_alone(tmp_path: Path, comments: str | None, asked: str | None) -> None:
    action = (ROOT / ".github/actions/gate/action.yml").read_text(encoding="utf-8")
    script = textwrap.dedent(action.partition("- name: Comment\n")[2].partition("run: |\n")[2])
    assert "${{" not in script
    (tmp_path / "gh").write_text(GH, encoding="utf-8")
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "comments").write_text(comments or "", encoding="utf-8")
    body = "" if comments is None else "<!-- knee gate: mine reno -->\n### knee gate\n"
    (tmp_path / "knee-gate.md").write_text(body, encoding="utf-8")
    of_github = {"RUNNER_TEMP": ".", "GITHUB_REPOSITORY": "us/it", "NUMBER": "7", "PATH": f".:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], cwd=tmp_path, env={**os.environ, **of_github}, check=False
    )
    assert done.returncode == 0
    if asked is None:
        assert not (tmp_path / "asked").exists(), "a gate that told nothing"
    else:
        found = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
        assert found[0].startswith("api --paginate repos/us/it/issues/7/comments")
        assert found[1:] == [f"api --silent {asked} -F body=@./knee-gate.md"]


def test_the_action_runs_the_gate_and_says_what_came_of_it(tmp_path: Path) -> None:
    action = (ROOT / ".github/actions/gate/action.yml").read_text(encoding="utf-8")
    script = textwrap.dedent(action.partition("run: |\n")[2].partition("    - name:")[0])
    assert "${{" not in script
    suite_of(tmp_path, TWO)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/knee").symlink_to(Path(sys.executable).with_name("knee"))
    given = {"ALGORITHM": "reno", "AGAINST": "reno", "SUITE": "./suite.toml", "OPTIONS": "--seed 3"}
    of_github = {"RUNNER_TEMP": ".", "GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "output"}
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env={**os.environ, **given, **of_github, "PATH": path}, check=False
    )
    assert done.returncode == 0
    (folder,) = tmp_path.glob("knee-gate-*/")
    told = (tmp_path / "output").read_text(encoding="utf-8")
    assert told == f"folder=./{folder.name}\npassed=true\n"
    assert "| one | ok | same |" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert json.loads((folder / "gate.json").read_text(encoding="utf-8"))["facts"]["seed"] == "3"


def test_a_finding_names_the_kernel_whose_rules_it_had(tmp_path: Path) -> None:
    hard = TWO.replace("goodput >= 1Mbit/s", "goodput >= 1Gbit/s")
    done, found = gated(tmp_path, "reno", "--against", "bbr1", "--kernel", "4.15,6.12", text=hard)
    one = found["rows"][0]
    assert len(one["changes"]) == 2 and "Linux 4.15, Linux 6.12" in done.out
    shown = (tmp_path / "out" / one["reproducer"]).read_text(encoding="utf-8")
    assert re.search(r'^kernel ?= "(4\.15|6\.12)"$', shown, re.MULTILINE), shown


def test_this_hosts_own_kernel_stands_beside_those_of_the_simulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulator stands for it, too."""
    asked, real = list[tuple[str, object]](), api.run_text

    def simulated(text: str, file: str, **settings: Any) -> api.Run:
        asked.append((settings["engine"], settings["scenario"].cells[0]["kernel"]))
        return real(text, file, **{**settings, "engine": "sim", "out": None})

    monkeypatch.setattr(judging.api, "run_text", simulated)
    monkeypatch.chdir(tmp_path)
    words = ["--suite", suite_of(tmp_path, TWO), "--engine", "sim,kernel", "--kernel", "7.2", "--out", "out", "-q"]
    done = CliRunner().invoke(app, ["gate", "reno", "--against", "reno", *words])
    assert done.exit_code == 0, done.output
    assert asked == [("sim", "7.2"), ("kernel", None)]


def test_the_base_has_a_kernel_of_its_own(tmp_path: Path) -> None:
    """The same algorithm by the rules of two releases, of which the older finds losses by counting duplicates."""
    lossy = TWO.replace('buffer = "1bdp"', 'buffer = "1bdp"\nloss = "2%"')
    words = ("--kernel", "3.10", "--against-kernel", "7.2")
    done, found = gated(tmp_path, "cubic", "--against", "cubic", *words, text=lossy)
    assert found["facts"]["engine"] == "sim, Linux 3.10 beside Linux 7.2" and "(sim, Linux 3.10 beside" in done.out
    assert found["rows"][0]["changes"][0]["ratio_better"]["mean"] != 1, "both had the rules of one kernel"


def test_a_kernel_for_the_base_alone_is_refused(tmp_path: Path) -> None:
    done, _ = gated(tmp_path, "cubic", "--against-kernel", "6.12")
    assert done.code == 2 and "--against-kernel 6.12: got no kernels for --kernel; expected one." in done.err


def test_a_row_is_run_by_itself(tmp_path: Path) -> None:
    done, found = gated(tmp_path, "reno", "--row", "loss", text=neighbours())
    assert [row["name"] for row in found["rows"]] == ["loss"], done.err
    assert found["facts"]["rows"] == "1 of 3"
    refused, _ = gated(tmp_path, "reno", "--row", "lose", text=neighbours(), out="other")
    assert refused.code == 2 and '--row: got "lose"; expected rows of' in refused.err and "loss" in refused.err


def test_a_gate_of_a_slow_engine_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator stands for the guests, which take minutes a row."""
    mine = suite.find(str(tmp_path / suite_of(tmp_path, TWO)))
    new, base = (candidates.Candidate(name, name, f'"{name}"') for name in ("reno", "cubic"))
    real, begun = api.run_text, list[tuple[str, bool]]()

    def simulated(text: str, file: str, **settings: Any) -> api.Run:
        begun.append((settings["out"].name, settings["resume"]))
        if len(begun) == 2:
            raise KeyboardInterrupt
        return real(text, file, **{**settings, "engine": "sim"})

    monkeypatch.setattr(judging.api, "run_text", simulated)
    with pytest.raises(KeyboardInterrupt):
        judging.Gate(mine, new, base, tmp_path / "out", engine="guest", kernels=["6.12"], workers=1).run()
    assert [one.parent.name for one in (tmp_path / "out").glob("runs/*/run.json")] == ["one-new"]
    resumed = judging.Gate(
        mine, new, base, tmp_path / "out", engine="guest", kernels=["6.12"], workers=1, resume=True
    ).run()
    assert begun == [("one-new", False), ("one-base", False), ("one-new", True), ("one-base", False)]
    sessions = json.loads((tmp_path / "out/runs/one-new/run.json").read_text())["sessions"]
    assert [one["repetitions"] for one in sessions] == [2], "nothing was run twice"
    whole = judging.Gate(mine, new, base, tmp_path / "whole", engine="guest", kernels=["6.12"], workers=1).run()
    assert [one.json() for one in resumed] == [one.json() for one in whole]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--resume: got it with the engine sim"),
        (("--engine", "guest"), "--resume: there is no folder out"),
    ],
)
def test_what_cannot_be_resumed_is_told(tmp_path: Path, words: Sequence[str], said: str) -> None:
    done, _ = gated(tmp_path, "reno", "--resume", *words)
    assert done.code == 2 and said in done.err


def test_an_interrupted_gate_says_how_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(gate: judging.Gate, tell: object) -> None:
        kept = gate.folder / judging.RUNS / "one-new"
        kept.mkdir(parents=True)
        (kept / "run.json").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(judging.Gate, "run", interrupted)
    monkeypatch.chdir(tmp_path)
    words = ["gate", "reno", "--row", "loss,ecn", "--rfc9743", "--engine", "kernel", "--out", "out"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 130
    assert "knee gate reno --row loss,ecn --rfc9743 --engine kernel --resume --out out" in done.output
