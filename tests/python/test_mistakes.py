"""What a newcomer gets wrong in each command: one paragraph that names the option or the file and says what to do."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tcpknee
from support import SMALL, Ended, refused, tables_of
from tcpknee import writing
from tcpknee.human import suggest
from tcpknee.runs import output

Call = Callable[..., Ended]
ONE = SMALL.replace("repeat = 3", "repeat = 1")
RATES = '"50Mbit/s" (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s) or "unlimited"'
TIMES = '"100ms" (ns, us, ms, s, min, h)'


@pytest.fixture
def place(tmp_path: Path, call: Call) -> Path:
    """A folder with a scenario, an empty file, an empty folder, and a run."""
    (tmp_path / "s.toml").write_text(SMALL)
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "dir").mkdir()
    call("run", "s.toml", "--out", "r", "-q")
    return tmp_path


def lines_of(ended: Ended) -> list[str]:
    assert ended.code == 2 and ended.out == "" and "Traceback" not in ended.err, ended
    return ended.err.splitlines()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "compare cubic --rate 200Mb",
            f'--rate: got "200Mb", whose unit "Mb" is unknown here; expected a rate such as {RATES}. '
            'Did you mean "200Mbit/s" or, if these are bytes, "1600Mbit/s"?',
        ),
        (
            "compare cubic --rate 10G",
            f'--rate: got "10G", whose unit "G" is unknown here; expected a rate such as {RATES}. '
            'Did you mean "10Gbit/s" or, if these are bytes, "80Gbit/s"?',
        ),
        (
            "compare cubic --rtt 100",
            f'--rtt: got "100", a bare number; expected a length of time such as {TIMES}. '
            "Write the unit behind the number.",
        ),
        (
            "compare cubic --loss 1.5",
            '--loss: got "1.5", a bare number; expected a share such as "1.5%". Write the unit',
        ),
        ("compare cubic --queue fifoo", '--queue: unknown queue "fifoo"; known: '),
        ("compare cubic --buffer 100", '--buffer: got "100", a bare number; '),
        ("compare cubic --duration 1s --warmup 5s", '--warmup: got "5s"; expected less than the duration, "1s". '),
        ("compare cubci", 'ALGO: unknown algorithm "cubci"; known: '),
        ("compare cubic --workload blk", '--workload: unknown workload "blk"; '),
        (
            "compare cubic --workload transfer",
            '--set flow.bytes: missing; expected how much workload "transfer" carries. '
            "Add --set flow.bytes=1MB or another amount.",
        ),
        (
            "compare cubic --workload web",
            '--set flow.load: missing; expected how much traffic workload "web" makes. '
            "Add --set flow.load=20Mbit/s, or --set flow.arrivals=50/s.",
        ),
        (
            "compare cubic --workload programs",
            '--set flow.client: missing; expected the command that workload "programs" runs. '
            "Add --set 'flow.client=redis-benchmark -h {server}' or another command.",
        ),
        ("compare cubic --set path.rtt=100", "--set path.rtt: got the bare number 100; "),
        ("compare cubic --set sender.initcwdn=1", "--set sender.initcwdn: unknown key; "),
        ("compare cubic --set seed.x=1", "--set seed.x: got a key of seed, which is a value and no table. "),
        ("compare cubic --repeat 0", '--repeat: got "0"; expected a whole number from 1 to 10000. '),
        ("compare cubic --repeat five", '--repeat: got "five"; expected a whole number from 1 to 10000. '),
        (
            "compare cubic --seed 9223372036854775808",
            '--seed: got "9223372036854775808"; expected a whole number from 0 to 9223372036854775807. ',
        ),
        ("compare cubic --set", "Option '--set' requires an argument. `knee compare --help` says"),
        ("shell --rate 5Mb true", '--rate: got "5Mb", whose unit "Mb" is unknown here; '),
        ("shell --ack-loss 3 true", '--ack-loss: got "3", a bare number; '),
        ("shell --algorithm cubci true", '--algorithm: unknown algorithm "cubci"; '),
        ("shell --set path.mtuu=1B true", "--set path.mtuu: unknown key; "),
        ("trace --port 0", '--port: got "0"; expected a whole number from 1 to 65535. '),
        ("watch --rows 3", "--rows is for --once; "),
    ],
)
def test_an_error_of_an_option_names_the_command_and_the_option(call: Call, words: str, said: str) -> None:
    [line] = lines_of(call(*words.split()))
    assert line.startswith(f"knee {words.split()[0]}: {said}")
    assert "[[" not in line and "quotes" not in line, "there are neither tables nor quotes on a command line"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "record --out x --for 1",
            f'--for: got "1", a bare number; expected a length of time such as {TIMES}. Write the unit',
        ),
        ("record --out x --for 0s", '--for: got "0s"; expected more than that, such as "1s".'),
        ("record --out x --keep 10G", '--keep: got "10G", whose unit "G" is unknown here; '),
        ("record --out x --min-bytes 10", '--min-bytes: got "10", a bare number; '),
        ("record --out x --port http", '--port: got "http"; expected a port such as 443'),
        ("watch --once --state foo", '--state: got "foo"; expected connected, listening, all, or one of '),
        ("export --prometheus :0 --every 5", '--every: got "5", a bare number; '),
        ("export --prometheus :0 --by foo", '--by: got "foo"; expected port=443,8000-8100, '),
        ("export r --format flent --out x.flent --step 1", '--step: got "1", a bare number; '),
        ("export r --format flent --out x.flent --cell 99", "--cell: got 99; expected 0 to 1, because r has 2 cells."),
        ("export r --format pcapng --out x --rep 9", "--rep: got 9; expected 0 to 2, because r has 3 repetitions"),
        ("report r --figure goodputt --out x.svg", '--figure: got "goodputt"; expected one of '),
        ("run s.toml --bpf", "--bpf: got it with the engine sim; expected the engine kernel, which loads our builds."),
        ("run s.toml --bpf --dry-run", "--bpf: got it with the engine sim; "),
    ],
)
def test_an_error_of_an_argument_of_the_api_is_told_as_one_of_the_option(
    call: Call, place: Path, words: str, said: str
) -> None:
    [line] = lines_of(call(*words.split()))
    assert line.startswith(said), line


def test_all_mistakes_of_a_command_line_come_at_once(call: Call) -> None:
    said = lines_of(call("compare", "cubci", "--rate", "10G", "--rtt", "5", "--set", "sender.initcwnd=x"))
    assert [line.split(": ")[1] for line in said] == ["--rate", "--rtt", "ALGO", "--set sender.initcwnd"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run nosuch.toml", "nosuch.toml: there is no such file. Give the path of a scenario file."),
        ("run /dev/zero", "/dev/zero: has more than 16 MiB; expected a scenario file."),
        ("run demo", "demo: there is no such file. Did you mean `knee gallery demo`?"),
        ("run loss-1.5", "loss-1.5: there is no such file. Did you mean `knee gallery loss-1.5`?"),
        ("run dir", "dir: is a folder; expected a scenario file."),
        ("run r", "r: is a folder; expected a scenario file. `knee run --resume --out r` goes on with the run in it."),
        ("run empty.toml", "empty.toml:1: duration: missing; "),
        ("report s.toml", "s.toml: is not JSON, or is cut off ("),
        (
            "report nosuch",
            "nosuch: is not there; expected a folder with tables, as `knee record` and `knee run` write it.",
        ),
        ("export r --format csv --out s.toml", "s.toml: is a file; expected a folder, or a name that is free. "),
        ("export s.toml --format flent --out x", "s.toml: got a file; expected a run folder"),
    ],
)
def test_a_missing_file_or_one_of_another_kind_is_said_to_be_that(
    call: Call, place: Path, words: str, said: str
) -> None:
    assert lines_of(call(*words.split()))[0].startswith(said)


def test_an_empty_scenario_is_told_all_that_it_must_say(call: Call, place: Path) -> None:
    said = [line.split(": ")[1] for line in lines_of(call("run", "empty.toml"))]
    assert said == ["duration", "path.rate", "path.rtt", "flow"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("export r --format csv --out x --cell 99", "--cell is not for csv, which has every cell. "),
        ("export r --format csv --out x --rep 0", "--rep is not for csv, which has every cell. "),
        ("export s.toml --format mahimahi --out x --rep 1", "--rep is not for a scenario, of which nothing "),
        ("report r --format png", "--format: got png without --figure NAME; expected both. "),
        ("run --resume --out r --force", "got --resume and --force; expected one of them. "),
        ("run --resume --out r --dry-run", "got --resume and --dry-run; expected one of them. "),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(call: Call, place: Path, words: str, said: str) -> None:
    [line] = lines_of(call(*words.split()))
    assert line.startswith(f"knee {words.split()[0]}: {said}")
    assert not (place / "x").exists()


@pytest.mark.parametrize(
    ("words", "stem"),
    [
        ("conform --quick", "conform"),
        ("gallery --only loss-1.5", "gallery"),
        ("gate cubic --engine kernel", "gate-cubic"),
        ("run small.toml", "small"),
    ],
)
def test_resume_without_a_folder_names_the_newest(call: Call, words: str, stem: str) -> None:
    said = f"knee {words.split()[0]} --resume: got no folder; expected --out DIR, the folder to go on with. "
    none = call(*words.split(), "--resume")
    assert (none.code, none.err) == (2, f"{said}There is none in runs/: leave out --resume.\n")
    for number in (2, 10):
        Path("runs", f"{stem}-{number}").mkdir(parents=True)
    Path("runs/other-11").mkdir()
    several = call(*words.split(), "--resume")
    assert (several.code, several.err) == (2, f"{said}The newest is runs/{stem}-10.\n")
    assert len(list(Path("runs").iterdir())) == 3


def test_a_kernel_that_one_engine_cannot_have_is_refused_before_another_runs(call: Call, place: Path) -> None:
    (place / "old.toml").write_text(f'kernel = "5.10"\n{ONE}')
    refused(
        call("run", "old.toml", "--engine", "sim,kernel", "--out", "two"), "old.toml: kernel: got 5.10 with the engi"
    )
    refused(call("run", "s.toml", "old.toml", "--engine", "kernel", "--out", "two"), "old.toml: kernel: got 5.10")
    assert not (place / "two").exists()


def test_two_scenarios_of_one_name_are_refused_before_the_first_runs(call: Call, place: Path) -> None:
    (place / "dir" / "s.toml").write_text(SMALL)
    [line] = lines_of(call("run", "s.toml", "dir/s.toml", "--out", "two"))
    assert line.startswith('knee run: got two scenarios called "s", which would both go to two/s; ')
    assert not (place / "two").exists()


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (OSError(28, "No space left on device"), "Make room, or choose another place."),
        (OSError(122, "Disk quota exceeded"), "Make room, or choose another place."),
        (PermissionError(13, "Permission denied"), "Ask for the right to write there, or choose another place."),
        (OSError(30, "Read-only file system"), "Choose another place."),
        (FileNotFoundError(2, "No such file or directory"), "Choose another place."),
        (NotADirectoryError(20, "Not a directory"), "Choose another place."),
    ],
)
def test_what_to_do_about_a_place_that_cannot_be_written_depends_on_why(error: OSError, advice: str) -> None:
    assert str(writing.cannot_write(Path("x"), error)) == f"x: cannot be written: {error.strerror}. {advice}"


def test_one_repetition_has_no_interval_to_speak_of_and_is_one(call: Call, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(ONE.replace('["cubic", "bbr1"]', '"cubic"'))
    ended = call("run", "one.toml")
    assert ended.code == 0
    assert "±" not in ended.out and "95 %" not in ended.out
    assert ended.err.startswith("Small: 1 repetition\n1 of 1 repetition done in ")
    assert call("run", "one.toml", "--dry-run").out.startswith("Small: 1 cell x 1 repetition = 1 run, 2 s simulated\n")
    assert not re.search(r"\b1 \w+s\b(?! simulated)", ended.out.replace("1 s", "")), ended.out


@pytest.mark.parametrize("text", [SMALL, ONE, SMALL + 'workload = "transfer"\nbytes = "1kB"\n'])
def test_the_interval_is_explained_where_there_is_one(text: str) -> None:
    out = "\n".join(output.lines(tcpknee.run(text)))
    assert ("± is the 95 % interval" in out) == bool(re.search(r"\d ±\d", out)), out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rate": "10G"}, 'compare(): rate: got "10G", whose unit "G" is unknown here; '),
        ({"rtt": ["10ms", "x"]}, 'compare(): rtt: got "x"; '),
        ({"duration": "soon"}, 'compare(): duration: got "soon"; '),
        ({"workload": "blk"}, 'compare(): workload: unknown workload "blk"; '),
        ({"set": {"sender.initcwdn": 3}}, 'compare(): set["sender.initcwdn"]: unknown key; '),
        ({"set": {"flow.count": "x"}}, 'compare(): set["flow.count"]: got "x"; '),
    ],
)
def test_an_error_of_the_api_names_the_function_and_the_argument(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(tcpknee.ScenarioError) as refused:
        tcpknee.compare("cubic", **arguments)  # type: ignore[arg-type]
    assert str(refused.value).startswith(said)


def test_an_unknown_argument_of_the_api_is_refused_by_the_name_of_the_function() -> None:
    with pytest.raises(tcpknee.UsageError, match=r'^compare\(\): got repat=…; expected .*Did you mean "repeat"\?$'):
        tcpknee.compare("cubic", repat=3)
    with pytest.raises(tcpknee.ScenarioError, match=r'^compare\(\): algorithms: unknown algorithm "cubci"; '):
        tcpknee.compare("cubci")
    with pytest.raises(tcpknee.ScenarioError, match=r"^run\(\): path\.rtt: missing; "):
        tcpknee.run(duration="1s", path={"rate": "1Mbit/s"}, flow=[{"algorithm": "cubic"}])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sql", "r", "select 1"], "knee sql: got the folder r before the query; expected it behind: knee sql 'select"),
        (["sql", "select * from trace_events", "r"], 'r: got the table "trace_events"; expected one of cpu_time,'),
        (["sql", "select * from flow", "r"], 'r: got the table "flow"; expected one of '),
        (["doctor", "--fix", "--undo"], "knee doctor: got --fix and --undo; expected one of them."),
        (["doctor", "--explain", "bbr_without_fq"], 'knee doctor: got the rule "bbr_without_fq"; expected one of '),
        (["doctor", "nosuch"], 'knee doctor: got the rule "nosuch"; expected one of `knee list rules`.'),
        (["gallery", "nosuch"], 'knee gallery: got "nosuch"; expected one of `knee list scenarios`.'),
        (["gallery", "--only", "nosuch"], 'knee gallery: --only: got "nosuch"; expected claims: '),
        (["list", "foo"], 'knee list: got "foo"; expected one of algorithms, queues, losses, '),
        (["list", "algorithms", "cubik"], 'knee list algorithms: got "cubik"; expected one of '),
        (
            ["report", "r", "--figure", "goodput", "--condition", "3", "--out", "x.svg"],
            '--condition: got 3 for the figure "goodput", which shows every condition; expected no --condition',
        ),
        (["version"], "knee: No such command 'version'. Did you mean '--version'? `knee --help`"),
    ],
)
def test_a_sentence_says_its_subject_what_it_got_and_ends_once(
    call: Call, place: Path, words: list[str], said: str
) -> None:
    [line] = lines_of(call(*words))
    assert line.startswith(said), line
    assert not re.search(r"\?\.|\.\.|sqlite_", line)
    assert len(line) < 400, "a wall of names helps nobody"


def test_of_many_names_the_nearest_are_said() -> None:
    names = [f"name-{number}" for number in range(30)]
    assert suggest("zame-7", names, "expected one of").startswith("expected one of name-7, ")
    assert suggest("zame-7", names, "expected one of").endswith(' and 25 more. Did you mean "name-7"?')
    assert suggest("x", ["a", "b"], "expected", besides=", or a column") == "expected a, b, or a column."


def test_help_and_version_are_found_under_every_name(call: Call) -> None:
    assert call("help").out == call("--help").out
    assert call("help", "fleet", "compare").out == call("fleet", "compare", "--help").out
    assert call("-V").out == call("--version").out
    assert call("-V").out.startswith(f"tcpknee {tcpknee.__version__} (commit ")
    [line] = lines_of(call("help", "nosuch"))
    assert "No such command 'nosuch'" in line


def test_one_entry_of_a_registry_is_listed_by_its_name(call: Call) -> None:
    listed = call("list", "algorithms", "bbr1", "cubic").out.splitlines()
    assert [line.split()[0] for line in listed if line and not line.startswith(" ")] == ["bbr1", "cubic"]
    assert "  Differs from source:" in listed and any(line.startswith("  Equations") for line in listed)
    assert call("list", "tables", "queue").out.splitlines()[0] == "queue"
    assert call("list", "keys", "path.rtt").out.startswith("path.rtt")


def test_a_scenario_comes_from_stdin_too(place: Path) -> None:
    words = [sys.executable, "-m", "tcpknee", "run", "-", "-q", "--out", "piped"]
    subprocess.run(words, cwd=place, input=SMALL.encode(), check=True, capture_output=True)
    assert tables_of(place / "piped") == tables_of(place / "r")


def test_completion_finds_what_is_imported_at_first_use() -> None:
    assert {"compare", "run", "open", "diff", "sql", "__version__"} <= set(dir(tcpknee))
    assert all(hasattr(tcpknee, name) for name in dir(tcpknee))
