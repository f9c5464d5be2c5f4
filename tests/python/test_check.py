"""`knee new algorithm` and `knee check`."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from support import knee
from tcpknee import _core
from tcpknee.algorithms import building, compiler, for_kernel, naming, outline
from tcpknee.cli.check import _table
from tcpknee.runs import checking

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


IN_KERNEL = checking._in_kernel


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    # What is asked of the kernel is a test of tests/kernel.
    monkeypatch.setattr(checking, "_in_kernel", lambda named: checking.Finding("goes into this kernel", None, ""))
    monkeypatch.setattr(checking, "_equal", lambda named: checking.Finding("equal host and bytecode", None, ""))
    return tmp_path


def written(old: str = "", new: str = "") -> str:
    text = outline.of("mine")
    assert old in text
    Path("mine.c").write_text(text.replace(old, new, 1) if old else text, encoding="utf-8")
    return "./mine.c"


def test_a_new_algorithm_is_reno_under_its_own_name_and_overwrites_nothing(here: Path) -> None:
    assert knee("new", "algorithm", "mine", cwd=here).code == 0
    text = Path("mine.c").read_text(encoding="utf-8")
    assert "reno_ssthresh" not in text and "mine_ssthresh" in text and "cc_reno_cong_avoid" in text
    assert building.build("./mine.c").name == "mine"
    # What is said of Reno alone is to be said of mine: by its author.
    head = text[: text.index("#include")]
    assert text.count("To do") == 7 and "RFC" not in head.replace("To do: RFC", "")
    assert "million" not in text and "1990" not in text and " * Equations" in head
    old = os.umask(0)
    os.umask(old)
    assert Path("mine.c").stat().st_mode & 0o777 == 0o666 & ~old
    again = knee("new", "algorithm", "mine", cwd=here)
    assert again.code == 2 and "mine.c is there already" in again.err
    for name in ("reno", "bbr", "count", "Mine", "a/b"):
        assert knee("new", "algorithm", name, cwd=here).code == 2
    assert "or in C, as in mine" in knee("new", "algorithm", "int", cwd=here).err
    assert "cubic is one of ours" in knee("new", "algorithm", "cubic", cwd=here).err


def test_a_good_file_is_found_good(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder whose name JSON would write as two characters."""
    (here / "😀d").mkdir()
    monkeypatch.chdir(here / "😀d")
    found = checking.check(written(), 1)
    assert [one.asked for one in found] == list(checking._ASKED)
    assert [one.ok for one in found] == [True, True, True, True, None, None, None, True]
    assert "drawn calls" in found[3].words and found[7].words.startswith("on 8 paths")


UNDO = "out->ret = cc_reno_undo_cwnd(in, out);"
GROW = "cc_reno_cong_avoid(in, out, acked);"
WRONG = [
    ("division", "out->ret = in->snd_cwnd / in->lost;", r"\./mine\.c:\d+: division by zero"),
    ("overflow", "out->ret = (u32)((s32)in->snd_cwnd * (s32)in->lost);", r"\./mine\.c:\d+: signed integer overflow"),
    ("beyond", "out->ret = ((volatile u32 *)s)[in->lost % 64];", r"\./mine\.c:\d+: "),
    ("loop", "while (in->lost) *(volatile u32 *)&out->ret = 0;", "undo_cwnd does not end"),
    ("window", "out->snd_cwnd = in->lost / 2;", "undo_cwnd leaves a window of 0 segments"),
]


@pytest.mark.parametrize(("line", "said"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_drawn_calls_find_what_no_algorithm_may_do(line: str, said: str) -> None:
    path = written(UNDO, line)
    sources = building.build(path).sources
    ok, words = compiler.sanitized(path, sources, building.HEADERS, 2)
    assert ok is False
    assert re.match(said, words), words


def test_what_the_user_has_loaded_is_left_alone(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (named,) = naming.named([building.build(written())])
    Path("available").write_text("reno cubic knee_mine\n", encoding="utf-8")
    monkeypatch.setattr(checking, "_AVAILABLE", Path("available"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in ("load", "unload"):
        monkeypatch.setattr(_core, name, lambda *given: pytest.fail("the kernel's is touched"))
    found = IN_KERNEL(named)
    assert (found.ok, found.words) == (None, "because knee_mine is loaded: knee unload mine takes it out")


@pytest.mark.parametrize(
    ("said", "ok", "words"),
    [
        (
            "mine: 20 sequences equal, 9000 ops, 8000 of them changed something\ncode 0\n",
            True,
            "9,000 calls of 20 drawn",
        ),
        ("out + 4 bytes: host 0x1, kernel 0x2\ncc_replay: mine: they differ\ncode 1\n", False, "mine: they differ"),
        ("cc_replay: cannot load object: Operation not permitted\ncode 2\n", None, "cannot load object: Operation not"),
        ("mine: 20 sequences equal, 9000 ops, 7 of them changed something\ncode 3\n", None, "7 of 9,000 drawn calls"),
        ("mine: 20 sequences equal, 9000 ops, 7 of them changed something\ncode 139\n", None, "could not be run"),
        ("took more than 60 s", None, "took more than 60 s"),
        ("code 127\n", None, "it said nothing"),
    ],
)
def test_only_a_difference_is_one(said: str, ok: bool | None, words: str) -> None:
    found = for_kernel.answer(said)
    assert found[0] is ok and words in found[1]


def test_what_hangs_on_a_failure_is_not_asked(here: Path) -> None:
    found = checking.check(written(UNDO, "double x = 1;"), 1)
    assert [one.ok for one in found] == [False, *[None] * 7]
    ended = knee("check", "./mine.c", "--json", cwd=here)
    assert ended.code == 1
    assert [one["ok"] for one in json.loads(ended.out)["findings"]] == [False, *[None] * 7]


def test_what_does_not_compile_is_answered_there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("tcp_x.c").write_text("struct tcp_congestion_ops x;\nint broken(void) { return y; }\n", encoding="utf-8")
    written(UNDO, "out->ret = nowhere; out->ret = elsewhere;")
    for file, answers in (("./mine.c", [True, False]), ("./tcp_x.c", [None, False])):
        found = checking.check(file, 1)
        assert [one.ok for one in found] == [*answers, *[None] * 6], found
    wide = _table(checking.check("./mine.c", 1), None)
    assert any(re.fullmatch(r"compiles +NO .*nowhere.*; .*elsewhere.*", line) for line in wide), wide
    narrow = _table(checking.check("./mine.c", 1), 60)
    assert all(len(line) <= 60 for line in narrow[: narrow.index("")])
    assert any("elsewhere" in line for line in narrow[narrow.index("") :])


def test_what_cannot_be_asked_is_no_answer(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = knee("check", "./none.c", cwd=here)
    assert (missing.code, missing.out) == (2, "") and "there is no such file" in missing.err
    written()
    monkeypatch.setenv("CC", "/no/such/cc")
    ended = knee("check", "./mine.c", cwd=here)
    assert (ended.code, ended.out) == (2, "") and "got no C compiler" in ended.err


def test_what_goes_wrong_on_a_path_is_said_with_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "sanitized", lambda *given: (True, ""))
    found = checking.check(written(GROW, "out->snd_cwnd += acked / (in->lost + s->hystart);"), 1)
    assert found[7].ok is False
    assert re.match(
        r"mine divides by zero in cong_avoid, at [\d.]+ s, where path\.rate = .*, path\.rtt = .*, path\.loss = ",
        found[7].words,
    ), found[7].words


def test_an_algorithm_that_stands_still_is_seen() -> None:
    path = written(GROW, "(void)acked; out->snd_cwnd = 1;")
    found = checking.check(path, 1)
    assert found[7].ok is False and "stands still" in found[7].words


def test_a_call_that_a_run_wrote_down_is_made_again(here: Path) -> None:
    path = written(GROW, "out->snd_cwnd += acked / (in->lost + s->hystart);").removeprefix("./")
    text = 'duration = "4s"\n[path]\nrate = "10Mbit/s"\nrtt = "20ms"\n[[flow]]\nalgorithm = "./mine.c"\n'
    Path("s.toml").write_text(text, encoding="utf-8")
    assert knee("run", "s.toml", "--out", "out", "-q", cwd=here).code == 2
    again = knee("check", path, "--call", "out/calls/0-0.json", cwd=here)
    assert (again.code, again.out) == (
        1,
        "mine divides by zero in cong_avoid. `knee check mine.c` names the line.\n",
    )
    scores = {"schema": 1, "scores": [{"call": None}, {"call": json.loads(Path("out/calls/0-0.json").read_text())}]}
    Path("scores.json").write_text(json.dumps(scores), encoding="utf-8")
    assert knee("check", path, "--call", "scores.json", cwd=here) == again
    written()
    mended = knee("check", path, "--call", "out/calls/0-0.json", cwd=here)
    assert mended.code == 0 and mended.out.startswith("mine returns from cong_avoid: snd_cwnd 10 -> ")
    Path("other.json").write_text("{}", encoding="utf-8")
    assert knee("check", path, "--call", "other.json", cwd=here).code == 2
    assert "--seconds: got it with --call" in knee("check", path, "--call", "o", "--seconds", "60", cwd=here).err
