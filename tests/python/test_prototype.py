"""Algorithms as classes in Python: the same as in C, slower, and named by line where they go wrong."""

from __future__ import annotations

import re
import shutil
import struct
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
        ("while True: pass", r"half.py:7: TimeoutError: took more than a second of processor time"),
        ("out.snd_cwnd = -1", r"half.py: ValueError: out.snd_cwnd: got -1; expected 0 to 4294967295"),
        ("out.snd_cwmd = 1", r"half.py: ValueError: out.snd_cwmd is no field of struct cc_out"),
        ("return i.snd_cwmd", r"half.py:7: AttributeError: .*snd_cwmd"),
    ],
)
def test_what_goes_wrong_is_named_by_its_line_and_ends_its_repetition(
    line: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("half.py").write_text(RENO.replace("return max(i.snd_cwnd * self.keep // 1024, 2)", line), encoding="utf-8")
    with pytest.raises(tcpknee.errors.AlgorithmFailed, match=r"half does what C leaves undefined .* in ssthresh"):
        tcpknee.run(f'{PATH}algorithm = "./half.py"\n')
    assert re.search(said, capfd.readouterr().err)


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
