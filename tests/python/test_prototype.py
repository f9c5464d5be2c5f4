"""Algorithms as classes in Python: the same as in C, slower, and named by line where they go wrong."""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tcpknee
from support import Ended, refused
from tcpknee.algorithms import building, compiler, prototype
from tcpknee.errors import UsageError

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

Call = Callable[..., Ended]

RENO = '''\
class Half:
    """Reno, in Python."""

    keep = 512

    def ssthresh(self, i, out):
        return max(i.snd_cwnd * self.keep // 1024, 2)

    def undo_cwnd(self, i, out):
        return max(i.snd_cwnd, i.prior_cwnd)

    def cong_avoid(self, i, out):
        if not i.is_cwnd_limited:
            return
        acked = i.acked
        if out.snd_cwnd < out.snd_ssthresh:
            grown = min(out.snd_cwnd + acked, out.snd_ssthresh)
            acked -= grown - out.snd_cwnd
            out.snd_cwnd = min(grown, i.snd_cwnd_clamp)
        if acked:
            w = out.snd_cwnd
            if out.snd_cwnd_cnt >= w:
                out.snd_cwnd_cnt = 0
                out.snd_cwnd += 1
            out.snd_cwnd_cnt += acked
            if out.snd_cwnd_cnt >= w:
                out.snd_cwnd += out.snd_cwnd_cnt // w
                out.snd_cwnd_cnt %= w
            out.snd_cwnd = min(out.snd_cwnd, i.snd_cwnd_clamp)
'''

BACKOFF = "return max(i.snd_cwnd * self.keep // 1024, 2)"

PATH = 'duration = "3s"\n[path]\nrate = "10Mbit/s"\nrtt = "20ms"\nloss = "1%"\n[[flow]]\n'


def written(old: str = "", new: str = "", *, file: str = "half.py") -> str:
    assert old in RENO
    Path(file).write_text(RENO.replace(old, new, 1) if old else RENO, encoding="utf-8")
    return f"./{file}"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("beta", [512, 900])
def test_a_prototype_gives_the_tables_of_the_same_algorithm_of_ours(beta: int) -> None:
    text = f'{PATH}count = 2\nalgorithm = ["{written()}", "reno"]\nhalf.keep = {beta}\nreno.beta = {beta / 1024}\n'
    run = tcpknee.run(text)
    drop = ["cell", "algorithm", "name"]
    for table in ("flows", "samples", "queue"):
        mine, ours = (run.rows(table, cell=cell) for cell in (0, 1))
        assert mine.drop([name for name in drop if name in mine.column_names]).equals(
            ours.drop([name for name in drop if name in ours.column_names])
        ), table


def test_two_implementations_part_at_an_ack_that_is_named(call: Call) -> None:
    words = ("--class", "no loss, deep buffer")
    assert call("against", written(), "reno", *words).code == 0
    parted = call("against", written("// 1024", "// 1000"), "reno", *words)
    assert parted.code == 1 and "in ssthresh()" in parted.out and ", ACK " in parted.out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("return 1 // i.lost_tx_lost", r"half.py:7: ZeroDivisionError"),
        ("raise SystemExit(0)", r"half.py:7: SystemExit: 0"),
        ("return input()", r"half.py:7: EOFError"),
        ("print('a\\n' * 9999); 1 // 0", r"half.py:7: ZeroDivisionError"),
        ("while True: pass", r"half.py:7: TimeoutError: took more than a second of processor time"),
        ("out.snd_cwnd = -1", r"half.py: ValueError: out.snd_cwnd: got -1; expected 0 to 4294967295"),
        ("out.snd_cwmd = 1", r"half.py: ValueError: out.snd_cwmd is no field of struct cc_out"),
        ("return i.snd_cwmd", r"half.py:7: AttributeError: .*snd_cwmd"),
    ],
)
def test_what_goes_wrong_is_named_by_its_line_and_ends_its_repetition(line: str, said: str, call: Call) -> None:
    path = written(BACKOFF, line)
    with pytest.raises(
        tcpknee.errors.AlgorithmFailed, match=rf"half raised an exception \(\./{said}.*\) in ssthresh, at [^\n]* s$"
    ):
        tcpknee.run(f'{PATH}algorithm = "./half.py"\n')
    ended = call("against", path, "reno")
    assert ended.code == 2 and re.search(rf"half.py raised an exception \(\./{said}.*\) in ssthresh", ended.err)
    assert "knee check" not in ended.err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("class Half:", "1 // 0\nclass Half:", r"raised an exception \(\./half\.py:1: ZeroDivisionError"),
        (BACKOFF, "import os; os._exit(0)", r"ended its process in ssthresh"),
    ],
    ids=[
        "at its begin",
        "without a word",
    ],
)
def test_a_prototype_that_is_gone_is_said_to_be(old: str, new: str, said: str, call: Call) -> None:
    path = written(old, new)
    for words in (("against", path, "reno"), ("compare", path, "reno", "--duration", "3s", "-q", "--repeat", "1")):
        ended = call(*words)
        assert ended.code and re.search(said, ended.err), ended.err


def test_a_window_of_a_prototype_that_lets_nothing_through_is_said_to_be_that(call: Call) -> None:
    written(BACKOFF, "out.snd_cwnd = 0; return 2")
    with pytest.raises(tcpknee.errors.AlgorithmFailed, match=r"half left a window of 0 segments in ssthresh, at "):
        tcpknee.run(f'{PATH}algorithm = "./half.py"\n')


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import time; time.sleep(99)", "half.py:7: TimeoutError: took too long, waiting (an op has 5 s)) in ssthresh"),
        ("return sum(range(10**12))", "half.py ended its process in ssthresh"),
    ],
    ids=["waiting", "where Python cannot raise"],
)
def test_a_prototype_that_comes_to_no_end_is_given_up(line: str, said: str, call: Call) -> None:
    assert said in call("against", written(BACKOFF, line), "reno").err


def test_what_a_prototype_prints_harms_no_terminal(call: Call) -> None:
    ended = call(
        "against", written(BACKOFF, rf"print('\x1b[2J'); {BACKOFF}"), "reno", "--class", "no loss, deep buffer"
    )
    assert ended.code == 0
    assert r"\x1b[2J" in ended.err and "\x1b" not in ended.err + ended.out


def until(holds: Callable[[], object], what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.05)


HOSTILE = "import os; os.close(os.open(os.environ['RAN'], os.O_CREAT)); os._exit(7)\n"


def test_nothing_of_the_folder_runs_but_the_prototype(tmp_path: Path) -> None:
    """Which may be anybody's, and root calls."""
    for name in ("ast", "runpy", "struct", "typing"):
        Path(f"{name}.py").write_text(HOSTILE)
    words = ["against", written(), "reno", "--class", "no loss, deep buffer"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ended = subprocess.run(
        [Path(sys.executable).with_name("knee"), *words],
        env=environment | {"RAN": str(tmp_path / "ran")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0 and not (tmp_path / "ran").exists(), ended.stderr


@pytest.mark.parametrize("signals", [signal.SIGINT, signal.SIGKILL])
def test_a_prototype_ends_with_the_command(tmp_path: Path, signals: signal.Signals) -> None:
    told = tmp_path / "pid"
    path = written(BACKOFF, f"import os, time; open({str(told)!r}, 'w').write(f'{{os.getpid()}}.'); time.sleep(99)")
    with subprocess.Popen(
        [sys.executable, "-m", "tcpknee", "against", path, "reno"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as command:
        until(lambda: told.exists() and told.read_text().endswith("."), "no op was called")
        pid = int(told.read_text()[:-1])
        if signals == signal.SIGINT:
            # As a terminal does.
            os.killpg(command.pid, signals)
        else:
            command.send_signal(signals)
        _, said = command.communicate(timeout=30)
        until(lambda: not Path(f"/proc/{pid}").exists(), "it is still there", seconds=5)
    assert "Traceback" not in said, said


NAMES = ("default", "int", "connection", "asm", "linux", "in_", "s")


def test_names_that_c_has_for_itself_are_names_like_others() -> None:
    fields = "\n    ".join(f"{name}: int = {number}" for number, name in enumerate(NAMES))
    for cls in ("Int", "Linux", "Asm", "Cc"):
        path = written('class Half:\n    """Reno, in Python."""\n', f"class {cls}:\n    {fields}\n    connection = 2\n")
        built = building.build(path)
        assert built.name == cls.lower()
        about = tcpknee._core.load_algorithm(built.so_path, built.digest)
        params = {param["name"]: int(param["default"]) for param in about["params"]}
        assert params == {name: number for number, name in enumerate(NAMES)} | {"keep": 512}
    run = tcpknee.run(f'{PATH}algorithm = "{path}"\ncc.default = 7\n')
    assert run.rows("flows").column("goodput_bits_per_sec")[0].as_py() > 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("class Half:", "class Half", r"half\.py:1: .*; expected a class in Python"),
        ("ssthresh", "sshtresh", "got 0 classes with a method ssthresh; expected one"),
        ("undo_cwnd", "undo", r"half\.py:1: Half has no undo_cwnd"),
        ("cong_avoid", "avoid", "Half has neither cong_avoid nor cong_control"),
        ("class Half:", "class Hälf:", r"half\.py:1: got the class"),
    ],
)
def test_what_is_no_prototype_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        building.build(written(old, new))


def test_only_simulations_run_a_prototype(call: Call) -> None:
    path = written()
    for words in (("load", path), ("check", path), ("whatif", "pantheon", "--algorithms", path, "-q")):
        refused(call(*words), "prototype in Python; expected")


def test_the_layout_is_that_of_the_compiler(tmp_path: Path) -> None:
    lines = ['#include "cc.h"', "#include <stddef.h>", "int printf(const char *, ...);", "int main(void) {"]
    expected = []
    for block in ("cc_in", "cc_out"):
        layout, fields = prototype._layout(block)
        lines.append(f'printf("%zu\\n", sizeof(struct {block}));')
        expected.append(layout.size)
        codes = [code for code in layout.format.lstrip("@") if code.isalpha()]
        lines += [f'printf("%zu\\n", offsetof(struct {block}, {field}));' for field in fields]
        formats = layout.format.removesuffix("0Q")
        expected += [
            struct.calcsize(f"{formats[: place + 2]}") - struct.calcsize(f"={codes[place]}")
            for place in range(len(fields))
        ]
    Path("size.c").write_text("\n".join([*lines, "}"]), encoding="utf-8")
    assert compiler.run([*compiler.command("x"), f"-I{building.HEADERS}", "size.c", "-o", "size"], tmp_path) is None
    said = compiler.run(["./size"], tmp_path, of_compiler=False)
    assert said is not None and [int(each) for each in said.split()] == expected
