"""What an algorithm from a file does wrong ends its own repetition alone, is named, and can be played again."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

import tcpknee
from support import knee
from tcpknee.algorithms import building, compiler, statics
from tcpknee.errors import AlgorithmFailed, EngineError, RunFolderError, UsageError
from tcpknee.runs import api, calls, isolated, tables

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

BAD = """\
#include "cc_algorithm.h"
#define BAD_PARAMS(P) P(after, 0, 0, 100000, "", "calls before it does what no algorithm may")
struct bad {
	CC_PARAM_FIELDS(BAD_PARAMS)
	u32 calls;
	u32 zero;
};

static u32 deeper(volatile u32 *depth)
{
	volatile u32 here[64];

	here[0] = *depth + 1;
	return deeper(here) + here[0] + deeper(here);
}

static void bad_ssthresh(struct bad *s, const struct cc_in *in, struct cc_out *out)
{
	(void)s; (void)in; (void)deeper;
	out->ret = cc_max(out->snd_cwnd / 2, 2);
}

static void bad_cong_avoid(struct bad *s, const struct cc_in *in, struct cc_out *out)
{
	cc_reno_cong_avoid(in, out, in->acked);
	if (++s->calls > s->after && s->after && in->random != 1) {
		DO_IT;
	}
}

static void bad_undo_cwnd(struct bad *s, const struct cc_in *in, struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

#define BAD_OPS(OP) OP(bad, ssthresh) OP(bad, cong_avoid) OP(bad, undo_cwnd)
CC_ALGORITHM(bad, struct bad, BAD_PARAMS, BAD_OPS, 0, .summary = "bad", .source = "none", .use_when = "never",
	.year = 2026)
"""

PATH = (
    'duration = "2s"\nrepeat = 2\n[path]\nrate = "10Mbit/s"\nrtt = "20ms"\n[[flow]]\nalgorithm = ["cubic", "./bad.c"]\n'
)

MIX = """\
seed = 1
prefixes = 2
duration = "3s"
hosts = 2
[[arm]]
algorithm = "./worse.c"
share = "100%"
[[clients]]
name = "fast"
share = "100%"
path.rate = "20Mbit/s"
path.rtt = "10ms"
flow.load = "6Mbit/s"
flow.sizes = "lognormal median 40kB sigma 1 from 2kB to 1MB"
"""

CASES = [
    ("loop", "for (;;) *(volatile u32 *)&s->zero = 0", "took more than a second of processor time"),
    ("pointer", "*(volatile u32 *)8 = 1", r"uses memory that is not its own \(SIGSEGV\)"),
    ("recursion", "out->ret = deeper(&s->calls)", r"uses memory that is not its own \(SIGSEGV\)"),
    ("state", "((volatile u32 *)s)[4] = 7", "wrote outside of its state"),
    ("inputs", "*(volatile u32 *)&in->snd_una += 7", "changed what the stack shows"),
    ("window", "out->snd_cwnd = 0", "left a window of 0 segments"),
]
if platform.machine() == "x86_64":
    CASES.append(("division", "out->ret = in->snd_cwnd / s->zero", "divides by zero"))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bad(how: str) -> None:
    Path("bad.c").write_text(BAD.replace("DO_IT", how), encoding="utf-8")


@pytest.mark.parametrize(("how", "said"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_bad_call_is_named_and_ends_its_own_repetitions_alone(how: str, said: str, here: Path) -> None:
    bad(how)
    Path("a folder").mkdir()
    shutil.move("bad.c", "a folder/bad.c")
    Path("a folder/s.toml").write_text(PATH + "bad.after = [0, 40]\n", encoding="utf-8")
    ended = knee("run", "a folder/s.toml", "--out", "out", "-q", cwd=here)
    assert ended.code == 1, ended.err
    assert "cubic" in ended.out and "failed: bad " in ended.out
    meta = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    assert [(one["cell"], one["rep"]) for one in meta["failed"]] == [(2, 0), (2, 1)]
    for one in meta["failed"]:
        assert re.search(said, one["words"]) and "knee check" not in one["words"], one["words"]
        assert " in cong_avoid, at " in one["words"]
        call = json.loads(Path("out", one["call"]).read_text(encoding="utf-8"))
        assert (call["algorithm"], call["op"], call["path"], call["seed"]) == ("bad", "cong_avoid", "./bad.c", 1)
        assert call["in"]["snd_cwnd"] == call["out"]["snd_cwnd"] > 0
        # The parameter, and the calls before this one.
        assert call["state"][:16] == "28000000" + "28000000"
    assert ended.err.endswith("That call again: knee check 'a folder/bad.c' --call out/calls/2-0.json\n"), ended.err
    run = tcpknee.open("out")
    assert "In 1 of 3 cells every repetition failed." in run.summary.warnings
    assert not any("no repetition yet" in warning for warning in run.summary.warnings)
    assert sorted(set(zip(*run.rows("flows", ["cell", "rep"]).to_pydict().values(), strict=True))) == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]


@pytest.mark.parametrize("window", ["0xffffffffu", "0x7fffffffu", "100000000u"])
def test_a_window_of_any_size_is_no_call_that_ends_it(window: str, here: Path) -> None:
    bad(f"out->snd_cwnd = {window}")
    path = {"rate": "20Mbit/s", "rtt": "40ms", "loss": "0.1%"}
    found = tcpknee.run(duration="2s", path=path, flow=[{"algorithm": "./bad.c", "bad.after": 40}])
    [flow] = found.flows.arrow().to_pylist()
    assert found.meta.get("failed", []) == []
    assert flow["retransmit_pct"] > 5, "far more than the path carries"


def test_a_run_of_nothing_but_failures_is_an_error_that_keeps_the_call(here: Path) -> None:
    bad("*(volatile u32 *)8 = 1")
    Path("s.toml").write_text(PATH.replace('"cubic", ', "") + "bad.after = 40\n", encoding="utf-8")
    ended = knee("run", "s.toml", "--out", "out", "-q", cwd=here)
    assert ended.code == 2 and "uses memory that is not its own" in ended.err and "Traceback" not in ended.err
    assert "knee check ./bad.c --call out/calls/0-0.json" in ended.err
    assert Path("out/calls/0-0.json").is_file()
    with pytest.raises(AlgorithmFailed, match="uses memory that is not its own"):
        tcpknee.run("s.toml")


def test_a_run_names_the_calls_that_it_wrote_alone(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_MOST", 1)
    failure = AlgorithmFailed("s.toml: cell 0, repetition 0 (seed 1): bad divides by zero", {"path": "./bad.c"})
    failures = {(0, 1): failure, (0, 0): failure}
    first, second = calls.write(here / "run", failures)
    assert first == {"cell": 0, "rep": 0, "words": "bad divides by zero", "call": "calls/0-0.json"}
    assert "call" not in second and [file.name for file in (here / "run/calls").iterdir()] == ["0-0.json"]
    for file, path in (("s.toml", "./bad.c"), ("a/s.toml", "a/bad.c"), ("./s.toml", "./bad.c"), ("<text>", "./bad.c")):
        assert calls.again(Path("run"), file, failures).endswith(f": knee check {path} --call run/calls/0-0.json")


def test_rows_of_another_process_are_those_of_this_one(here: Path) -> None:
    bad("")
    text = PATH.replace('"cubic", "./bad.c"', '"./bad.c"')
    scenario = api.parse(text, "<text>")
    with isolated.Isolated(scenario, text, "<text>") as apart:
        for rep in (0, 1):
            there, here_ = apart.run_cell(0, rep), tables.of_simulator(scenario.run_cell(0, rep))
            assert there.keys() == here_.keys() and there["samples"].num_rows
            for name, table in there.items():
                assert table.equals(here_[name]), name


def test_what_an_algorithm_keeps_beside_its_state_does_not_reach_the_next_repetition(here: Path) -> None:
    bad("")
    assert not statics.has_some(building.build("./bad.c").so_path)
    # A window that is halved in each call after a number of calls that all connections share.
    bad("static u32 calls; if (++calls > 150) out->snd_cwnd = cc_max(out->snd_cwnd / 2, 2)")
    assert statics.has_some(building.build("./bad.c").so_path)
    text = PATH.replace('"cubic", "./bad.c"', '"./bad.c"') + "bad.after = 1\n"
    scenario = api.parse(text, "<text>")

    def last_of(*repetitions: int) -> int:
        with isolated.Isolated(scenario, text, "<text>") as apart:
            flows = [apart.run_cell(0, one)["flows"] for one in repetitions]
        return int(flows[-1]["bytes_acked"][0].as_py())

    assert last_of(0, 1) == last_of(1) > 0


def test_a_fleet_is_simulated_apart(here: Path) -> None:
    bad("*(volatile u32 *)8 = 1")
    shutil.copy("bad.c", "worse.c")
    text = Path("worse.c").read_text(encoding="utf-8").replace("P(after, 0,", "P(after, 40,")
    Path("worse.c").write_text(text, encoding="utf-8")
    Path("mix.toml").write_text(MIX, encoding="utf-8")
    ended = knee("fleet", "synthesize", "mix.toml", "--out", "f", "-q", cwd=here)
    assert ended.code == 2 and "uses memory that is not its own" in ended.err, ended


def test_a_full_temporary_folder_and_the_last_words_are_said(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match=r"the temporary file for the tables: .*\. Make room"):
        bad("")
        scenario = api.parse(PATH, "<text>")
        with Path("/dev/full").open("r+b", buffering=0) as full, isolated.Isolated(scenario, PATH, "<text>") as apart:
            monkeypatch.setattr(tempfile, "TemporaryFile", lambda: full)
            apart.run_cell(1, 0)
    monkeypatch.undo()
    monkeypatch.chdir(here)
    words = f"import sys; sys.stderr.write('x' * {2 * isolated._MOST_WORDS} + chr(10) + 'the end')"
    monkeypatch.setattr(isolated, "_COMMAND", (sys.executable, "-c", words))
    with isolated.Isolated(scenario, PATH, "<text>") as apart, pytest.raises(EngineError, match="exit code 0: the end"):
        apart.run_cell(1, 0)


def test_a_stored_run_does_not_decide_what_is_compiled_here(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad("")
    Path("s.toml").write_text(PATH, encoding="utf-8")
    tcpknee.run("s.toml", out="out")
    shutil.rmtree("cache")
    monkeypatch.setattr(compiler, "cached", lambda *given: pytest.fail("something is compiled"))
    with pytest.raises(
        UsageError, match=r"\./bad\.c: is an algorithm's file that a stored run names; .*knee run SCENARIO"
    ):
        tcpknee.run(out="out", resume=True)
    with pytest.raises(UsageError, match="that a stored run names"):
        tcpknee.run(out="out", resume=True, kernel="6.12")
    ended = knee("export", "out", "--format", "pcapng", "--out", "p.pcapng", cwd=here)
    assert ended.code == 2 and r"out: has algorithms of files (./bad.c)" in ended.err
    assert not Path("cache").exists()


def test_the_packets_of_a_file_are_simulated_in_a_process_of_its_own(here: Path) -> None:
    bad("*(volatile u32 *)8 = 1")
    export = ("export", "s.toml", "--format", "pcapng", "--cell", "1", "--out", "p.pcapng")
    Path("s.toml").write_text(PATH, encoding="utf-8")
    assert knee(*export, cwd=here).code == 0
    assert Path("p.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    Path("s.toml").write_text(PATH + "bad.after = 40\n", encoding="utf-8")
    ended = knee(*export, "--force", cwd=here)
    assert ended.code == 2 and "bad " in ended.err and "cong_avoid" in ended.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root refuses the folders of others")
def test_what_makes_and_simulates_a_file_may_write_into_a_folder_of_another(here: Path) -> None:
    theirs = here / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    refusal = knee("new", "algorithm", "mine", cwd=theirs)
    assert refusal.code == 2 and "--allow-foreign-folder" in refusal.err
    assert knee("new", "algorithm", "mine", "--allow-foreign-folder", cwd=theirs).code == 0
    bad("")
    Path("s.toml").write_text(PATH, encoding="utf-8")
    export = ("export", "s.toml", "--format", "pcapng", "--cell", "1", "--out", "theirs/p.pcapng")
    assert "belongs to another user" in knee(*export, cwd=here).err
    ended = knee(*export, "--allow-foreign-folder", cwd=here)
    assert ended.code == 0, ended.err
    assert sorted(file.name for file in theirs.iterdir()) == ["mine.c", "p.pcapng"]


def test_what_a_run_says_of_its_files_and_failures_is_looked_at(here: Path) -> None:
    bad("*(volatile u32 *)8 = 1")
    Path("s.toml").write_text(PATH + "bad.after = [0, 40]\n", encoding="utf-8")
    assert tcpknee.run("s.toml", out="out").meta["failed"]
    file = Path("out/run.json")
    meta = json.loads(file.read_text(encoding="utf-8"))
    for changed, said in (
        ({"failed": [{"cell": "0"}]}, r"failed\[0\]\.cell"),
        ({"failed": {}}, "failed"),
        ({"algorithm_files": [{"path": 1}]}, r"algorithm_files\[0\]\.path"),
    ):
        file.write_text(json.dumps({**meta, **changed}), encoding="utf-8")
        with pytest.raises(RunFolderError, match=said):
            tcpknee.open("out")
