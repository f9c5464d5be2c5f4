"""Where stdout cannot be written: one end for every verb, told from a failed expectation by its exit code.

Each command is started with stdout on a full disk, on a pipe that nobody reads, and closed; with stderr so besides.
"""

from __future__ import annotations

import base64
import json
import os
import stat
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest

from support import SMALL, SUITE, knee
from tcpknee.cli.app import app

DATA = Path(__file__).parents[2] / "crates/import/tests/data"
LINE = '192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "-"\n'

VERBS: dict[str, list[str]] = {
    "run": ["run", "small.toml", "--out", "OUT", "-q"],
    "compare": ["compare", "reno", "--duration", "1s", "--repeat", "1", "--out", "OUT", "-q"],
    "gallery": ["gallery", "demo", "--out", "OUT", "-q"],
    "gate": ["gate", "reno", "--suite", "./suite.toml", "--out", "OUT", "-q"],
    "list": ["list", "keys"],
    "sql": ["sql", "select * from flows", "RUN"],
    "suite": ["suite", "rfc9438", "--row", "10ms-1e-2", "-q"],
    "diff": ["diff", "RUN", "RUN", "-q"],
    "completion": ["completion", "bash"],
    "against": ["against", "reno", "reno", "--class", "loss 1 %"],
    "check": ["check", "mine.c"],
    "score": ["score", "reno", "bbr1", "--paths", "2", "--cells", "80", "-q"],
    "new algorithm": ["new", "algorithm", "mine"],
    "help": ["help", "run"],
    "report": ["report", "RUN", "--figure", "goodput", "--out", "OUT.svg"],
    "export": ["export", "RUN", "--format", "csv", "--out", "OUT"],
    "import ss": ["import", "ss", "ss.txt", "--out", "OUT", "-q"],
    "import nginx": ["import", "nginx", "access.log", "--out", "OUT", "-q"],
    "import iperf3": ["import", "iperf3", str(DATA / "iperf3/v3.12-omit.json"), "--out", "OUT", "-q"],
    "import flent": ["import", "flent", "a.flent", "--out", "OUT", "-q"],
    "import netperf": ["import", "netperf", str(DATA / "programs/netperf.txt"), "--out", "OUT", "-q"],
    "import memtier": ["import", "memtier", str(DATA / "programs/memtier.txt"), "--out", "OUT", "-q"],
    "import perf": ["import", "perf", str(DATA / "perf/perf-6.1.txt"), "--out", "OUT", "-q"],
    "import mpstat": ["import", "mpstat", str(DATA / "mpstat/text-12.6.txt"), "--out", "OUT", "-q"],
    "import tc": ["import", "tc", str(DATA / "tc/qdisc.txt"), "--out", "OUT", "-q"],
    "import tcp-info": ["import", "tcp-info", "info.jsonl", "--out", "OUT", "-q"],
    "import pcap": ["import", "pcap", "a.pcapng", "--out", "OUT", "-q"],
    "fleet compare": ["fleet", "compare", "RUN", "--partial", "-q"],
    "fleet report": ["fleet", "report", "RUN", "--partial", "--figure", "cdf", "--out", "OUT.svg", "-q"],
    "fleet connections": ["fleet", "connections", "RUN", "--out", "OUT", "-q"],
    "fleet synthesize": ["fleet", "synthesize", "demo", "--prefixes", "1", "--out", "OUT", "-q"],
    "fleet watch": ["fleet", "watch", "RUN", "--guard", "srtt_us ratio <= 1.1", "--json"],
    "assign": ["assign", "cubic=50%", "reno=50%", "--dry-run", "--seed", "1"],
    "whatif": ["whatif", "RUN", "--algorithms", "bbr1", "--json", "-q"],
    "recommend": ["recommend", "--role", "data-centre", "-q"],
    "snapshot": ["snapshot"],
    "doctor": ["doctor", "--explain", "bbr-without-fq"],
    "redteam": ["redteam", "bbr1", "--runs", "1", "-q"],
    "record": ["record", "--for", "200ms", "--every", "100ms", "--out", "OUT", "-q"],
    "watch": ["watch", "--once", "--every", "100ms"],
    "kernel add": ["kernel", "add", "6.12", "-q"],
    "kernel list": ["kernel", "list"],
    "kernel remove": ["kernel", "remove", "6.12"],
    "kernel rules": ["kernel", "rules"],
    "load": ["load", "reno"],
    "unload": ["unload", "reno"],
    "trace": ["trace", "--qdisc", "-q"],
    "profile": ["profile", "--no-bpf", "--no-softnet", "--for", "100ms", "--out", "OUT", "-q"],
    "calibrate": ["calibrate", "--out", "OUT.toml", "-q"],
    "conform": ["conform", "--out", "OUT", "-q"],
}
"""A command of each verb that prints."""

FURTHER: dict[str, list[str]] = {
    "--help": ["--help"],
    "--version": ["--version"],
    "run --json": ["run", "small.toml", "--out", "OUT", "-q", "--json"],
    "run --dry-run": ["run", "small.toml", "--dry-run"],
    "gallery --only": ["gallery", "--only", "ss-old-and-new", "--out", "OUT", "-q"],
    "sql --csv": ["sql", "select * from samples", "RUN", "--csv"],
    "sql --json": ["sql", "select * from flows", "RUN", "--json"],
    "export --prometheus": ["export", "--prometheus", "127.0.0.1:0"],
}

SILENT = {"shell": "its stdout is that of the command it runs"}

INSTEAD = {
    "check": "from tcpknee.runs import checking; checking.check = lambda *_: [checking.Finding('compiles', True, '')]",
    "new": "import io; from contextlib import nullcontext; from tcpknee import writing; "
    "writing.replacing = lambda *_, **__: nullcontext(io.BytesIO())",
    "load": "from tcpknee import _core; _core.load = lambda name, default_in=None: (name, False)",
    "kernel": "from types import SimpleNamespace as Of; from tcpknee.kernels import building, cache; "
    "building.add = lambda *_, **__: Of(name='6.12', release='6.12.1', origin='here', is_repeatable=True); "
    "cache.remove = lambda name: None",
    "unload": "from tcpknee import _core; _core.unload = lambda name: []",
    "trace": "from tcpknee.live import qdiscs; "
    "qdiscs.qdiscs = lambda **_: qdiscs.QdiscTrace([], 0, {'not_measured': 'so', 'programs': []}, 1.0)",
    "calibrate": "from tcpknee.calibration import calibrate; "
    "calibrate.calibrate = lambda *_, **__: calibrate.Calibration({}, [], [], [], 2, 1.0, 0.0)",
    "fleet": "from types import SimpleNamespace as Of; from tcpknee.fleet.following import following; "
    "following.follow = lambda *_, **__: Of(look=Of(json=dict, crossed=None), told=[])",
    "whatif": "from types import SimpleNamespace as Of; from tcpknee.whatif import request; "
    "request.answered = lambda *_, **__: Of(refused='', json={})",
    "redteam": "from types import SimpleNamespace as Of; from tcpknee.redteam import request; "
    "request.answered = lambda *_, **__: Of(told=[], searched=1, spent=0, over=False)",
    "conform": "from tcpknee.validation.conformance import conform, overlay; "
    "conform.run = conform.compare = conform.verdicts = overlay.write = lambda *_, **__: []",
}
"""What would need root or half an hour says at once that it is done."""


def leaves(group: click.Group, before: str = "") -> Iterator[str]:
    """Every command that can be typed."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def test_every_verb_is_here() -> None:
    assert VERBS.keys() | SILENT.keys() == set(leaves(app))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, small_run: Path) -> Path:
    """What the commands read."""
    full = Path("/dev/full").stat()
    assert stat.S_ISCHR(full.st_mode) and full.st_rdev == os.makedev(1, 7), "/dev/full is not the kernel's device"
    made = tmp_path_factory.mktemp("stdout")
    (made / "small.toml").write_text(SMALL)
    (made / "suite.toml").write_text(SUITE)
    (made / "RUN").symlink_to(small_run)
    (made / "access.log").write_text(LINE)
    (made / "ss.txt").write_text(SS)
    (made / "info.jsonl").write_text(INFO)
    for format, name in (("flent", "a.flent"), ("pcapng", "a.pcapng")):
        assert knee("export", "RUN", "--format", format, "--out", name, cwd=made).code == 0
    return made


SS = """State  Recv-Q Send-Q Local Address:Port Peer Address:Port
ESTAB  0      0      192.0.2.1:443      192.0.2.7:40000
\t cubic wscale:7,7 rto:204 rtt:1.5/0.75 mss:1448 cwnd:10
"""
SOCKET = struct.pack("<BBBB", 2, 1, 0, 0) + struct.pack("!HH", 443, 50123) + bytes(64)
INFO = json.dumps({
    "Timestamp": "2026-07-01T00:00:12.092Z",
    "RawIDM": base64.b64encode(SOCKET).decode(),
    "Attributes": [None, None, base64.b64encode(bytes(224)).decode()],
})  # fmt: skip


class Started:
    """A command whose stdout and stderr go where the way says: `full`, `gone`, `closed` or `read`."""

    def __init__(self, folder: Path, words: list[str], out: str, err: str) -> None:
        place = str(folder / f"out-{out}-{err}-{len(list(folder.iterdir()))}")
        self.words = [word.replace("OUT", place) for word in words]
        self._ends: list[int] = []
        closed = (" >&-" if out == "closed" else "") + (" 2>&-" if err == "closed" else "")
        program = f"{INSTEAD.get(words[0], '')}\nfrom tcpknee.cli import main\nmain()"
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@"{closed}', "bash", sys.executable, "-c", program, *self.words],
            cwd=folder,
            stdout=self._end(out),
            stderr=self._end(err),
            text=True,
            # An empty text is no such variable: output waits in its buffer, as a user's does.
            env={**os.environ, "COLUMNS": "100", "PYTHONUNBUFFERED": ""},
        )
        for end in self._ends:
            os.close(end)

    def _end(self, way: str) -> int:
        if way == "read":
            return subprocess.PIPE
        if way == "full":
            self._ends.append(os.open("/dev/full", os.O_WRONLY))
        elif way == "gone":
            reading, writing = os.pipe()
            os.close(reading)
            self._ends.append(writing)
        else:
            return subprocess.DEVNULL
        return self._ends[-1]

    def ended(self) -> tuple[int, str]:
        """Exit code and stderr."""
        _, err = self.process.communicate(timeout=120)
        return self.process.returncode, err or ""


LOST = "knee: stdout: cannot be written ({}), so that the output is not complete; expected a file, pipe or terminal "
WAYS = {
    ("full", "read"): (2, LOST.format("No space left on device")),
    ("closed", "read"): (2, LOST.format("Bad file descriptor")),
    ("full", "full"): (2, ""),
    ("closed", "closed"): (2, ""),
    ("gone", "read"): (141, ""),
    ("gone", "gone"): (141, ""),
    ("read", "full"): (0, ""),
    ("read", "gone"): (0, ""),
    ("read", "closed"): (0, ""),
}
"""(stdout, stderr): exit code, and the beginning of what stderr says."""


def check(folder: Path, words: list[str], ways: Iterable[tuple[str, str]]) -> None:
    """Starts the command in each of these ways, side by side."""
    started = {way: Started(folder, words, *way) for way in ways}
    for way, one in started.items():
        code, said = WAYS[way]
        found, err = one.ended()
        assert found == code, (way, err)
        assert err.startswith(said) and err.count("\n") == bool(said), (way, err)
        assert "Traceback" not in err and "Exception" not in err


@pytest.mark.parametrize("verb", [*VERBS, *FURTHER])
def test_a_verb_whose_output_is_lost_says_so_by_its_exit_code(verb: str, folder: Path) -> None:
    check(folder, (VERBS | FURTHER)[verb], [("full", "read"), ("gone", "read")])


@pytest.mark.parametrize("verb", ["list", "sql", "run"])
def test_whatever_becomes_of_stderr_besides(verb: str, folder: Path) -> None:
    check(folder, VERBS[verb], WAYS)


def test_help_of_every_verb_on_a_full_disk(folder: Path) -> None:
    started = [Started(folder, [*verb.split(), "--help"], "full", "read") for verb in leaves(app)]
    assert {one.ended()[0] for one in started} == {2}


def test_an_error_ends_with_its_code_where_stderr_takes_nothing(folder: Path) -> None:
    for way in ("full", "gone", "closed"):
        assert Started(folder, ["run", "nosuch.toml"], "read", way).ended()[0] == 2


def test_a_failed_expectation_is_still_1_and_a_lost_output_is_not(folder: Path) -> None:
    (folder / "fails.toml").write_text(SMALL + '[[expect]]\nassert = "cubic.goodput > 1Gbit/s"\n')
    words = ["run", "fails.toml", "--out", "OUT", "-q"]
    started = {way: Started(folder, words, way, "read") for way in ("read", "full", "gone")}
    assert {way: one.ended()[0] for way, one in started.items()} == {"read": 1, "full": 2, "gone": 141}


def test_no_file_gets_the_number_of_a_closed_stdout(folder: Path) -> None:
    """Else what is printed would stand in it."""
    code, err = Started(folder, ["run", "small.toml", "--out", "OUT", "-q"], "closed", "read").ended()
    assert code == 2, err
    newest = max(folder.glob("out-closed-read-*"), key=lambda path: path.stat().st_mtime)
    asked = subprocess.run(
        [sys.executable, "-m", "tcpknee", "sql", "select count(*) as n from flows", newest, "--csv"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert asked.stdout == "n\n6\n"
