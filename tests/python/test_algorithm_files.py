"""An algorithm from a user's own file: found, compiled, named, compared; and what is said of one that is no good."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tcpknee
from support import knee
from tcpknee import _core, reading
from tcpknee.algorithms import building, compiler, naming
from tcpknee.errors import RunFolderError, UsageError
from tcpknee.runs import compose, units

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

OURS = Path(building.HEADERS)
PATH = 'duration = "2s"\n[path]\nrate = "10Mbit/s"\nrtt = "20ms"\nloss = "1%"\n[[flow]]\n'

MINE = """\
#include "cc_algorithm.h"

#define MINE_PARAMS(P) P(beta, 512, 1, 1023, "1/1024", "window kept at a loss")

struct mine {
	CC_PARAM_FIELDS(MINE_PARAMS)
};

static void mine_ssthresh(struct mine *s, const struct cc_in *in, struct cc_out *out)
{
	(void)in;
	out->ret = cc_max((u32)((u64)out->snd_cwnd * s->beta / 1024), 2);
}

static void mine_cong_avoid(struct mine *s, const struct cc_in *in, struct cc_out *out)
{
	(void)s;
	cc_reno_cong_avoid(in, out, in->acked);
}

static void mine_undo_cwnd(struct mine *s, const struct cc_in *in, struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

#define MINE_OPS(OP) OP(mine, ssthresh) OP(mine, cong_avoid) OP(mine, undo_cwnd)
CC_ALGORITHM(mine, struct mine, MINE_PARAMS, MINE_OPS, 0, .summary = "mine", .source = "me", .use_when = "now",
	.year = 2026)
"""


@pytest.fixture(autouse=True)
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.c").write_text(MINE, encoding="utf-8")
    return tmp_path / "cache/tcpknee/algorithms"


def changed(old: str, new: str) -> Path:
    assert old in MINE
    path = Path("changed.c")
    path.write_text(MINE.replace(old, new, 1), encoding="utf-8")
    return path


@pytest.mark.slow("compiles 22 files, and runs each beside ours")
def test_each_of_ours_as_a_file_gives_the_tables_that_it_gives_built_in(tmp_path: Path) -> None:
    ours = [entry["name"] for entry in _core.algorithms()]
    for name in ours:
        shutil.copy(OURS / f"{name}.c", tmp_path)
        text = f'{PATH}algorithm = ["{name}", "./{name}.c"]\n'
        built_in, of_file = (_cell(tcpknee.run(text), cell) for cell in (0, 1))
        assert built_in == of_file, name
        assert built_in["flows"][0]["goodput_bits_per_sec"] > 0


def _cell(run: tcpknee.Run, cell: int) -> dict[str, list[dict[str, object]]]:
    """The rows of a cell, without its number and the algorithm's name."""
    found = {}
    for table in ("flows", "samples", "queue", "events"):
        rows = run.rows(table, cell=cell).to_pylist()
        drop = ("cell", "algorithm", "name")
        found[table] = [{key: value for key, value in row.items() if key not in drop} for row in rows]
    return found


def test_a_file_is_compiled_once_and_anew_when_it_changes(cached: Path) -> None:
    first = building.build("./mine.c")
    assert [entry.name for entry in cached.iterdir()] == [first.so_path.name]
    made = first.so_path.stat().st_mtime_ns
    assert building.build("./mine.c") == first and first.so_path.stat().st_mtime_ns == made
    Path("mine.c").write_text(MINE + "/* another */\n", encoding="utf-8")
    second = building.build("./mine.c")
    assert second.digest != first.digest and second.so_path != first.so_path
    assert (second.name, second.kind, list(second.sources)) == ("mine", "contract", ["mine.c"])


def test_what_a_file_includes_of_its_folder_belongs_to_it(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/beta.h").write_text('#include "more.h"\n', encoding="utf-8")
    (tmp_path / "parts/more.h").write_text("#define BETA 512\n", encoding="utf-8")
    path = changed('#include "cc_algorithm.h"', '#include "cc_algorithm.h"\n#include "parts/beta.h"')
    path.write_text(path.read_text(encoding="utf-8").replace("beta, 512", "beta, BETA"), encoding="utf-8")
    first = building.build("changed.c")
    assert list(first.sources) == ["changed.c", "parts/beta.h", "parts/more.h"]
    (tmp_path / "parts/more.h").write_text("#define BETA 600\n", encoding="utf-8")
    assert building.build("changed.c").digest != first.digest


def test_names_tell_files_from_ours_and_from_each_other() -> None:
    shutil.copy(OURS / "reno.c", "reno.c")
    shutil.copy(OURS / "reno.c", "other.c")
    shutil.copy(OURS / "reno.c", "reno_new.c")
    Path("old").mkdir()
    shutil.copy(OURS / "reno.c", "old/reno.c")
    files = '"./reno.c", "./other.c", "./mine.c", "./reno_new.c", "old/reno.c", "old/../reno.c"'
    text = f'{PATH}algorithm = ["reno", {files}]\nmine.beta = 0.7\nreno_other.beta = 0.6\n'
    run = tcpknee.run(text)
    names = [flow["algorithm"] for cell in run.meta["cells"] for flow in cell["flows"]]
    assert names == ["reno", "reno_file", "reno_other", "mine", "reno_new", "reno_old", "reno_file_2"]
    facts = {key: value for key, value, _ in _parsed(text).cells[3]["describe"]}
    assert facts["flow.0.mine.beta"] == "0.7002"


def _parsed(text: str) -> _core.Scenario:
    found = naming.of_scenario(text, "<text>", reading.program)
    return _core.parse(text, "<text>", algorithms=[one.for_core for one in found])


def test_a_path_is_relative_to_its_scenario(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    shutil.move("mine.c", "folder/mine.c")
    Path("folder/s.toml").write_text(f'{PATH}algorithm = "./mine.c"\n', encoding="utf-8")
    run = tcpknee.run("folder/s.toml")
    assert run.rows("flows").to_pydict()["algorithm"] == ["mine"]
    with pytest.raises(UsageError, match=r"\./mine\.c: cannot be read: there is no such file"):
        tcpknee.run(f'{PATH}algorithm = "./mine.c"\n')


def test_a_run_folder_keeps_the_source_and_goes_on_with_no_other(tmp_path: Path) -> None:
    text, out = f'{PATH}algorithm = "./mine.c"\n', tmp_path / "out"
    run = tcpknee.run(text, out=out)
    [kept] = run.meta["algorithm_files"]
    assert (kept["path"], kept["name"], kept["kind"], kept["sources"]) == (
        "./mine.c",
        "mine",
        "contract",
        {"mine.c": MINE},
    )
    assert tcpknee.run(text, out=out, resume=True).meta["cells"] == run.meta["cells"]
    Path("mine.c").write_text(MINE.replace("512", "513"), encoding="utf-8")
    with pytest.raises(RunFolderError, match="a file that the scenario names is another"):
        tcpknee.run(text, out=out, resume=True)


def test_another_host_gets_the_source() -> None:
    text = f'{PATH}algorithm = "./mine.c"\n'
    here = tcpknee.run(text)
    facts = [json.dumps(one) for one in here.meta["algorithm_files"]]
    Path("mine.c").unlink()
    shutil.rmtree("cache")
    scenario = units._parsed(text, "<text>", (), tuple(facts))
    assert scenario.cells[0]["hash"] == here.meta["cells"][0]["hash"]
    assert any(Path("cache/tcpknee/algorithms").iterdir())


def test_files_alone_are_compared_with_what_is_deployed() -> None:
    assert compose.with_baselines(["./mine.c"]) == ["./mine.c", "cubic", "bbr1", "bbr3"]
    assert compose.with_baselines(["./a.c:2", "b.c:2"]) == ["./a.c:2", "b.c:2", "cubic:2", "bbr1:2", "bbr3:2"]
    for as_they_are in (["./mine.c", "reno"], ["./mine.c:1,cubic:1"], ["reno"]):
        assert compose.with_baselines(as_they_are) == as_they_are
    short = ("--duration", "1s", "--repeat", "1", "--quiet", "--out", "run")
    assert "bbr3" in knee("compare", "./mine.c", *short, cwd=Path()).out
    assert "bbr3" not in knee("compare", "./mine.c", "--alone", "--force", *short, cwd=Path()).out


REFUSED: list[tuple[str, Callable[[], Path], str]] = [
    ("double", lambda: changed("(void)in;", "double x = 0.7;"), r'changed\.c:11: got "double"; expected integers'),
    ("number", lambda: changed("* s->beta / 1024", "* 0.7"), r'changed\.c:12: got "0\.7"; expected integers'),
    ("syntax", lambda: changed("(void)in;", "(void)in"), r"changed\.c:11: expected ';'"),
    ("unknown", lambda: changed("(void)in;", "nobody++;"), r"changed\.c:11: .*nobody"),
    (
        "signature",
        lambda: changed("mine_undo_cwnd(struct mine *s", "mine_undo_cwnd(int s"),
        r"changed\.c:\d+: .*mine_undo_cwnd",
    ),
    ("missing function", lambda: changed("OP(mine, undo_cwnd)", "OP(mine, undo)"), r"changed\.c:\d+: .*undo"),
    ("missing op", lambda: changed(" OP(mine, undo_cwnd)", ""), r"changed\.c: its list of ops has no undo_cwnd"),
    ("window", lambda: changed(" OP(mine, cong_avoid)", ""), "neither cong_avoid nor cong_control"),
    (
        "state",
        lambda: changed("(MINE_PARAMS)\n", "(MINE_PARAMS)\n\tu32 huge[1000];\n"),
        "state exceeds CC_STATE_MAX_BYTES",
    ),
    (
        "parameter",
        lambda: changed("beta, 512", "beta, 2000"),
        "its parameter beta is 2000 by default; expected 1 to 1023",
    ),
    ("libc", lambda: changed("#include", "#include <stdio.h>\n#include"), r"changed\.c:1: .*stdio\.h"),
    ("call", lambda: changed("(void)in;", "extern int foo(void); foo();"), "calls foo, which is not there"),
    ("nothing", lambda: changed(MINE[MINE.index("CC_ALGORITHM(mine") :], ""), r"got no CC_ALGORITHM\(…\)"),
    ("text", lambda: changed('.summary = "mine", ', ""), r"CC_ALGORITHM\(…\) says no \.summary"),
    (
        "size",
        lambda: changed("#include", "/*" + "x" * (10 << 20) + "*/\n#include"),
        r"got 10\.0 MiB in 1 file; expected 1 MiB",
    ),
    (
        "twice",
        lambda: changed("CC_ALGORITHM(", MINE[MINE.index("CC_ALGORITHM(mine") :] + "CC_ALGORITHM("),
        r"changed\.c:\d+: redef",
    ),
]


@pytest.mark.parametrize(("make", "said"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_bad_file_is_refused_in_its_own_lines(make: Callable[[], Path], said: str) -> None:
    path = make()
    with pytest.raises(UsageError, match=said) as refused:
        building.build(str(path))
    assert "/cc/" not in str(refused.value) and len(str(refused.value)) < 12_000


def test_an_error_in_one_of_our_headers_names_it_by_its_path() -> None:
    with pytest.raises(UsageError, match=rf"\({re.escape(str(building.HEADERS))}/cc[\w.]*:\d+\)$"):
        building.build(str(changed("#include", "#define now_us 3\n#include")))


def test_a_header_of_its_folder_goes_before_ours_of_that_name_but_for_the_contract(tmp_path: Path) -> None:
    for name in ("bbr1.c", "bbr1_model.h"):
        shutil.copy(OURS / name, tmp_path)
    (tmp_path / "cc.h").write_text("#error this is not the contract\n", encoding="utf-8")
    same = building.build(str(tmp_path / "bbr1.c"))
    assert list(same.sources) == ["bbr1.c", "bbr1_model.h"]
    header = tmp_path / "bbr1_model.h"
    changed_one = header.read_text(encoding="utf-8").replace("P(pacing_margin, 1,", "P(pacing_margin, 7,")
    header.write_text(changed_one, encoding="utf-8")
    changed_too = building.build(str(tmp_path / "bbr1.c"))
    assert changed_too.digest != same.digest
    params = _core.load_algorithm(changed_too.so_path, changed_too.digest, "bbr1_changed")["params"]
    assert next(param for param in params if param["name"] == "pacing_margin")["default"] == '"7%"'


def test_numbers_that_look_like_floats_are_none() -> None:
    path = changed(
        "(void)in;",
        '(void)in; /* 0.7 double */ u32 x = 0x1e5; (void)"1.5"; (void)x;',
    )
    assert building.build(str(path)).name == "mine"


def test_no_compiler_is_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(UsageError, match=r"got no C compiler \(no-such-compiler\).*apt install gcc"):
        building.build("./mine.c")


def test_control_characters_of_a_file_do_not_reach_the_terminal() -> None:
    path = changed("(void)in;", '#error "\x1b]0;owned\x07"')
    with pytest.raises(UsageError) as refused:
        building.build(str(path))
    assert "\x1b" not in str(refused.value) and "\x07" not in str(refused.value)


def test_words_of_a_file_outside_of_the_scenarios_folder_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "sent").mkdir()
    Path("secret.c").write_text("password hunter2;\nCC_ALGORITHM(\n", encoding="utf-8")
    Path("sent/s.toml").write_text(f'{PATH}algorithm = "../secret.c"\n', encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        tcpknee.run("sent/s.toml")
    assert "hunter2" not in str(refused.value) and "password" not in str(refused.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_root_compiles_nothing_of_somebody_else() -> None:
    os.chown("mine.c", 65534, 65534)
    with pytest.raises(UsageError, match="it belongs to the user 65534, and root runs nothing"):
        building.build("./mine.c")
    os.chown("mine.c", 0, 0)
    Path("mine.c").chmod(0o666)
    with pytest.raises(UsageError, match="it can be written by others"):
        building.build("./mine.c")


def test_a_shared_object_that_others_can_write_is_not_loaded(cached: Path) -> None:
    so_path = building.build("./mine.c").so_path
    so_path.chmod(0o666)
    with pytest.raises(UsageError, match="belongs to another user, or others may write it"):
        building.build("./mine.c")
    subprocess.run(["rm", "-r", str(cached)], check=True)
    assert building.build("./mine.c").so_path == so_path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('#include "../secret.h"', r'#include "\.\./secret\.h": lies outside of the algorithm\'s folder'),
        ('#include "@FOLDER/secret.h"', "lies outside of the algorithm's folder"),
        ("#include <@FOLDER/secret.h>", r"includes /.*secret\.h, which lies outside of its folder"),
        ("#define X <@FOLDER/secret.h>\n#include X", r'changed\.c:2: got "#include"; expected C alone'),
        ('#import "@FOLDER/secret.h"', r'changed\.c:1: got "#import"; expected C alone'),
        ("static const char x[] = {\n#embed </etc/hostname>\n};", r'changed\.c:2: got "#embed"; expected C alone'),
        ('__asm__(".byte 1");', r'changed\.c:1: got "__asm__"; expected C alone'),
        ('/*\\\n*/as\\\nm(".byte 1");', r'changed\.c:2: got "asm"; expected C alone'),
        ('char x[] __attribute__((section("a\\n.incbin \\"b\\"")));', r'changed\.c:1: got "\.incbin"'),
        ('char x[] __attribute__((section("a\\n.inc" "bin \\"b\\"")));', r'changed\.c:1: got "\.inc" "bin"'),
        ("asm_inline(x);", r'changed\.c:1: got "asm_inline"; expected C alone'),
        ("asm_volatile_goto(x);", r'changed\.c:1: got "asm_volatile_goto"; expected C alone'),
        ("%:define X <@FOLDER/secret.h>\n#ifdef MODULE\n%:include X\n#endif", r'changed\.c:3: got "%:include"'),
    ],
)
def test_what_lies_outside_of_its_folder_is_not_compiled(cached: Path, tmp_path: Path, line: str, said: str) -> None:
    Path("own").mkdir()
    Path("secret.h").write_text("hunter2;\n", encoding="utf-8")
    Path("own/changed.c").write_text(f"{line.replace('@FOLDER', str(tmp_path))}\n{MINE}", encoding="utf-8")
    with pytest.raises(UsageError, match=said) as refused:
        building.build("own/changed.c")
    assert "hunter2" not in str(refused.value)
    assert not cached.exists() or not any(cached.iterdir())


def test_words_of_assembly_in_comments_texts_and_names_of_headers_are_no_assembly() -> None:
    text = MINE.replace('"mine", .so', '"asm", .so')
    changed = f"#if 0\n#include <asm/byteorder.h>\n#endif\n/* asm */\n{text}"
    Path("changed.c").write_text(changed, encoding="utf-8")
    assert '"asm"' in changed and building.build("changed.c").name == "mine"


def test_a_part_may_include_one_of_the_folder_above_it(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/beta.h").write_text('#include "../more.h"\n', encoding="utf-8")
    (tmp_path / "more.h").write_text("#define BETA 512\n", encoding="utf-8")
    path = changed('#include "cc_algorithm.h"', '#include "cc_algorithm.h"\n#include "parts/beta.h"')
    assert list(building.build(str(path)).sources) == ["changed.c", "parts/beta.h", "more.h"]


@pytest.mark.parametrize("name", ["@args.c", "-dumpmachine", "a b.c", 'a".c', "mine.S"])
def test_no_name_of_a_file_is_an_option(name: str) -> None:
    Path(name).write_text(MINE, encoding="utf-8")
    if name in ("-dumpmachine", "mine.S"):
        assert building.build(f"./{name}").name == "mine"
        return
    with pytest.raises(UsageError, match=r"the name of a file: got .*; expected letters, digits and any of _ \. \+ -"):
        building.build(f"./{name}")


def test_sources_that_another_host_sends_stay_in_their_folder() -> None:
    for name in ("../mine.c", "/tmp/mine.c", "a/../../mine.c", ""):
        with pytest.raises(UsageError, match="the name of a file"):
            building.of_sources("./mine.c", {name: MINE})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(void)in;", "double hunter2 = 1.2;"),
        ("#include", '#include "hunter2.h"\n#include'),
        ("#include", '#include "../hunter2.h"\n#include'),
        ("#include", '#include "hunter2@.h"\n#include'),
    ],
)
def test_errors_quote_nothing_of_a_file_of_another_folder(old: str, new: str) -> None:
    Path("sent").mkdir()
    changed(old, new)
    Path("sent/s.toml").write_text(f'{PATH}algorithm = "../changed.c"\n', encoding="utf-8")
    reading.allow_foreign_files()
    try:
        with pytest.raises(UsageError) as refused:
            tcpknee.run("sent/s.toml")
    finally:
        reading._foreign_allowed = False
    said = str(refused.value)
    assert "hunter2" not in said and "double" not in said and "../changed.c" in said


def test_lines_of_files_that_are_not_its_own_are_not_shown() -> None:
    output = "/etc/shadow:1:1: error: unknown type name 'hunter2'\n/etc/shadow:2: note: hunter2\nended\n"
    assert compiler.said("./mine.c", {"mine.c": MINE}, output, True, "C").splitlines()[1:] == ["./mine.c: ended"]


def test_a_cache_is_the_users_own_whatever_his_umask(cached: Path) -> None:
    before = os.umask(0o002)
    try:
        so_path = building.build("./mine.c").so_path
        assert building.build("./mine.c").so_path == so_path
    finally:
        os.umask(before)
    assert (cached.stat().st_mode & 0o777, so_path.stat().st_mode & 0o777) == (0o700, 0o600)


def test_nothing_is_compiled_for_a_cache_that_others_can_write(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached.mkdir(parents=True)
    cached.chmod(0o777)
    monkeypatch.setattr(compiler, "compiled", lambda *_, **__: pytest.fail("it was compiled"))
    with pytest.raises(UsageError, match="belongs to another user, or others may write it"):
        building.build("./mine.c")


def test_what_a_compiler_starts_ends_with_it(tmp_path: Path) -> None:
    started = time.monotonic()
    script = "sleep 100 & echo $! > child; wait"
    assert compiler.run(["sh", "-c", script], tmp_path, seconds=3) == "took more than 3 s"
    assert time.monotonic() - started < 30
    child = Path(f"/proc/{int(Path('child').read_text(encoding='utf-8'))}/stat")
    while child.exists() and child.read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z":
        assert time.monotonic() - started < 30
        time.sleep(0.01)


def test_what_a_compiler_takes_is_bounded(tmp_path: Path) -> None:
    said = compiler.run(["sh", "-c", "ulimit -f; ulimit -t; ulimit -v; exit 1"], tmp_path, seconds=7)
    assert said is not None and said.split() == ["131072", "7", "2097152"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('"', "CC: No closing quotation; expected a C compiler"),
        ("true", "did not say what ./mine.c includes; expected gcc or clang"),
        ("./here", "did not say what ./mine.c includes; expected gcc or clang"),
        ("./no-program", "does not compile"),
    ],
)
def test_a_compiler_that_is_none_is_said(monkeypatch: pytest.MonkeyPatch, value: str, said: str) -> None:
    for name, text in (("here", "#!/bin/sh\n"), ("no-program", "\x7fELF")):
        Path(name).write_text(text, encoding="utf-8")
        Path(name).chmod(0o700)
    monkeypatch.setenv("CC", value)
    with pytest.raises(UsageError, match=re.escape(said)):
        building.build("./mine.c")


def test_a_path_with_a_nul_and_a_scenario_without_end_are_refused() -> None:
    with pytest.raises(UsageError, match="got a NUL in a path"):
        tcpknee.run(f'{PATH}algorithm = "./a\\u0000b/mine.c"\n')
    with pytest.raises(OSError, match="null"):
        reading.regular("a\0b")
    Path("changed.c").write_text(f'#include "a\0b.h"\n{MINE}', encoding="utf-8")
    with pytest.raises(UsageError, match="the name of a file"):
        building.build("changed.c")
    assert naming.of_scenario(f'x = "./mine.c"\ny = {"[" * 100_000}', "<text>", reading.program) == []


def test_a_scenario_that_names_no_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f'# of docs/guide.md\n{PATH}algorithm = "reno" # or a/b\nload = "uniform 0.5Mbit/s to 12 kB/s"\n'
    with monkeypatch.context() as unread:
        unread.setattr(naming, "_algorithms", lambda scenario: pytest.fail("it was read"))
        assert naming.of_scenario(text, "<text>", reading.program) == []
    for path in ("./mine.c", "mine.c", "\\u002e/mine\\u002ec"):
        assert len(naming.of_scenario(f'{PATH}algorithm = "{path}"\n', "<text>", reading.program)) == 1
