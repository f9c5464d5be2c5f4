"""200 malformed scenario files: each mistake is one paragraph with file and line, exit 2, no traceback, no folder."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from support import SMALL, Ended, knee, refused
from tcpknee.runs import scenarios

COUNT = 200

GOOD = [scenarios.path(name).read_text(encoding="utf-8") for name in scenarios.names()]

ALONE = [
    b"",
    b"\x00\x01\x02",
    b"\xff\xfe[\x00p\x00",
    b'title = "\xc3"\n',
    b'[path]\nrate = "50Mbit/s"\n',
    b"just words\n",
    b'{"path": {"rate": "50Mbit/s"}}\n',
    b"[[[[[[\n",
    b"a." * 5000 + b"b = 1\n",
    b"duration = " + b"[" * 3000 + b"]" * 3000 + b"\n",
    b'duration = "' + b"9" * 5000 + b's"\n',
    b'title = "' + b"x" * 100_000 + b"\n",
    b"[path\nrate = 1\n",
    b"flow = 3\n",
    b'path = "fast"\n',
    b'[flow]\nalgorithm = "cubic"\n',
    b"\xef\xbb\xbf\xef\xbb\xbftitle = 1\n",
]
"""Files that no mutation of a good one would give."""

Mutation = Callable[[random.Random, str], str]


def _line(rng: random.Random, text: str, pattern: str) -> tuple[str, re.Match[str], str]:
    """The text before, the match of one random line's part, the text after."""
    found = rng.choice(list(re.finditer(pattern, text, re.M)))
    return text[: found.start()], found, text[found.end() :]


def _cut(rng: random.Random, text: str) -> str:
    """Ends within a quoted value."""
    before, found, _ = _line(rng, text, r'^\w+ *= *"[^"\n]+')
    return before + found[0]


def _unknown_key(rng: random.Random, text: str) -> str:
    before, found, after = _line(rng, text, r"^(?=[a-z_]+ *=)")
    return f"{before}{found[0]}{''.join(rng.sample('abcdefghijkl', 8))} = 1\n{after}"


def _no_unit(rng: random.Random, text: str) -> str:
    before, found, after = _line(rng, text, r'^((?:duration|rate|rtt) *= *"\d+)[A-Za-z/]+"')
    return f'{before}{found[1]}"{after}'


def _bare_number(rng: random.Random, text: str) -> str:
    before, found, after = _line(rng, text, r'^((?:duration|rate|rtt) *= *)"(\d+)[A-Za-z/]+"')
    return before + found[1] + found[2] + after


def _wrong_unit(rng: random.Random, text: str) -> str:
    before, found, after = _line(rng, text, r'^((?:duration|rate|rtt) *= *"\d+)[A-Za-z/]+"')
    return f'{before}{found[1]}{rng.choice(["parsecs", "%", "bdp", "KiB", "Mbps", "µs"])}"{after}'


def _negative(rng: random.Random, text: str) -> str:
    before, found, after = _line(rng, text, r'^((?:duration|rate|rtt) *= *")(\d+)')
    return f"{before}{found[1]}-{found[2]}{after}"


def _huge(rng: random.Random, text: str) -> str:
    before, found, after = _line(rng, text, r'^((?:duration|rate|rtt) *= *")(\d+)')
    return before + found[1] + found[2] + "0" * rng.randint(25, 60) + after


def _wrong_type(rng: random.Random, text: str) -> str:
    before, found, after = _line(rng, text, r"^((?:duration|rate|rtt|algorithm) *= *).*$")
    return before + found[1] + rng.choice(["true", "{ a = 1 }", "1979-05-27", "[]", "nan", '[["a"]]']) + after


def _unknown_algorithm(rng: random.Random, text: str) -> str:
    before, found, after = _line(rng, text, r'^(algorithm *= *\[?").')
    return before + found[1] + rng.choice("wxyz") + after


def _unknown_table(rng: random.Random, text: str) -> str:
    return f'{text}\n[{rng.choice(["paht", "sendr", "hop.x", "recevier"])}]\nrate = "1Mbit/s"\n'


def _twice(rng: random.Random, text: str) -> str:
    before, found, after = _line(rng, text, r"^(?:duration|rate|rtt) *= *.*\n")
    return before + found[0] * 2 + after


def _lost_quote(rng: random.Random, text: str) -> str:
    before, found, after = _line(rng, text, r'^(\w+ *= *"[^"\n]+)"')
    return before + found[1] + after


def _bad_expectation(rng: random.Random, text: str) -> str:
    wrong = ["cubic.godput > 1Mbit/s", "nobody.goodput > 1Mbit/s", "total.goodput > 20ms", "total.goodput >", "1 < 2"]
    return f'{text}\n[[expect]]\nassert = "{rng.choice(wrong)}"\n'


def _zero(rng: random.Random, text: str) -> str:
    before, found, after = _line(rng, text, r'^((?:duration|rate) *= *")\d+')
    return before + found[1] + "0" + after


MUTATIONS: list[Mutation] = [
    _cut,
    _unknown_key,
    _no_unit,
    _bare_number,
    _wrong_unit,
    _negative,
    _huge,
    _wrong_type,
    _unknown_algorithm,
    _unknown_table,
    _twice,
    _lost_quote,
    _bad_expectation,
    _zero,
]


def malformed() -> list[bytes]:
    """The 200 files, always the same."""
    files = list(ALONE)
    number = 0
    while len(files) < COUNT:
        rng = random.Random(number)
        mutate = MUTATIONS[number % len(MUTATIONS)]
        files.append(mutate(rng, rng.choice(GOOD)).encode())
        number += 1
    return files


def check(ended: Ended, number: int) -> None:
    assert ended.code == 2, (number, ended)
    assert ended.out == ""
    assert ended.err.endswith("\n") and 1 <= ended.err.count("\n") <= 21, ended.err
    lines = []
    for paragraph in ended.err.splitlines():
        match = re.match(r"bad\.toml:(\d+): \S", paragraph)
        assert match, ended.err
        lines.append(int(match[1]))
        assert len(paragraph) < 1500, paragraph
    assert lines == sorted(lines), ended.err
    assert "Traceback" not in ended.err and "panicked" not in ended.err


def test_200_malformed_scenarios_are_one_paragraph_for_each_mistake(call: Callable[..., Ended], tmp_path: Path) -> None:
    files = malformed()
    assert len(files) == COUNT
    for number, content in enumerate(files):
        (tmp_path / "bad.toml").write_bytes(content)
        check(call("run", "bad.toml"), number)
        assert [file.name for file in tmp_path.iterdir()] == ["bad.toml"]


@pytest.mark.parametrize("number", range(0, COUNT, 40))
def test_they_are_refused_alike_by_the_real_command(number: int, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(malformed()[number])
    check(knee("run", "bad.toml", cwd=tmp_path), number)


def test_a_named_file_without_end_is_refused(call: Callable[..., Ended], tmp_path: Path) -> None:
    text = 'duration = "1s"\n[path]\nrate = "trace zero.up"\nrtt = "10ms"\n[[flow]]\nalgorithm = "cubic"\n'
    (tmp_path / "s.toml").write_text(text)
    with (tmp_path / "zero.up").open("wb") as file:
        file.truncate(1 << 40)
    ended = call("run", "s.toml", "--dry-run")
    refused(ended, "s.toml:3: path.rate: zero.up: cannot be read: it has more than 256 MiB")
    # A device that the user names himself is read as far.
    ended = call("compare", "cubic", "--rate", "trace /dev/zero", "--dry-run")
    refused(ended, "--rate: /dev/zero: cannot be read: it has more than 256 MiB")


def test_the_line_is_the_line_of_the_mistake(call: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('title = "t"\nduration = "1s"\n[path]\nrate = "1Mbit/s"\nrtt = "20"\n')
    assert "\nbad.toml:5: path.rtt: " in call("run", "bad.toml").err


def test_all_mistakes_of_a_file_come_at_once_those_of_its_expectations_too(
    call: Callable[..., Ended], tmp_path: Path
) -> None:
    text = SMALL + '[[expect]]\nassert = "cubci.goodput > 1Mbit/s"\n[[expect]]\nassert = "cubic.goodput > 1ms"\n'
    text += '[[published]]\nvalue = "cubic.godput"\nfigure = "1Mbit/s"\nsource = "s"\n'
    (tmp_path / "bad.toml").write_text(text)
    said = call("run", "bad.toml").err.splitlines()
    assert [line.split(": ")[1] for line in said] == ["expect.0.assert", "expect.1.assert", "published.0.value"]
    (tmp_path / "bad.toml").write_text(text.replace('rate = "10Mbit/s"', 'rate = "10Mb"').replace("= 3", '= "3"'))
    said = call("run", "bad.toml").err.splitlines()
    assert [line.split(": ")[1] for line in said] == ["repeat", "path.rate"], "no cell, so nobody knows what it has"
    (tmp_path / "bad.toml").write_text(text.replace("= 3", '= "3"').replace(" > ", " is more than "))
    again = call("run", "bad.toml").err.splitlines()
    assert [line.split(": ")[1] for line in again] == ["repeat", "expect.0.assert", "expect.1.assert"]
    assert said[1].endswith('Did you mean "10Mbit/s" or, if these are bytes, "80Mbit/s"?')


def test_of_many_wrong_expectations_the_first_20_are_listed(call: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(SMALL + '[[expect]]\nassert = "1 < 2"\n' * 30)
    said = call("run", "bad.toml").err.splitlines()
    assert len(said) == 21 and "only the first 20 mistakes are listed" in said[20]


def test_a_mistake_in_the_last_of_several_files_is_said_before_the_first_runs(
    call: Callable[..., Ended], small: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.toml").write_text("duration = 1\n")
    check(call("run", small, "bad.toml"), 0)
    assert not (tmp_path / "runs").exists()
