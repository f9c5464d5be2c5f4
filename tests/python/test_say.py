"""What others wrote is shown and drives no terminal, whichever way it is printed."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support import SMALL
from tcpknee import _core, cli, say
from tcpknee.cli import record, serving, shell, trace, unload
from tcpknee.errors import TcpkneeError
from tcpknee.imports import IMPORTERS, Count
from tcpknee.imports import text as import_text
from tcpknee.live import qdiscs
from tcpknee.live.watch import view
from tcpknee.pages import trace_text
from tcpknee.runs import job, progress

HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
TITLE = "\x1b]0;owned\x07"
"""Sets the title of a terminal's window."""

# Half of what is drawn is harmful, the rest all of Unicode.
FOREIGN = st.text(
    st.one_of(st.sampled_from("\x00\x07\x08\t\n\r\x1b\x7f\x85\x9b\u202e\u2028\u2066\udc9b[;m"), st.characters()),
    min_size=1,
    max_size=30,
)


class Terminal(io.StringIO):
    """Takes what is written, as a terminal or as a file."""

    encoding = "utf-8"

    def __init__(self, *, is_terminal: bool = True) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


@contextmanager
def terminals(*, is_terminal: bool = True) -> Iterator[tuple[Terminal, Terminal]]:
    """Meanwhile stdout and stderr."""
    before = sys.stdout, sys.stderr
    out, err = Terminal(is_terminal=is_terminal), Terminal(is_terminal=is_terminal)
    sys.stdout, sys.stderr = out, err
    try:
        yield out, err
    finally:
        sys.stdout, sys.stderr = before


def printed(sink: Callable[[str], object], text: str, *, is_terminal: bool = True) -> str:
    """What the sink makes of the text, on stdout and then on stderr."""
    with terminals(is_terminal=is_terminal) as (out, err):
        assert say.guarded(lambda: (sink(text) and 0) or 0) == 0
        return out.getvalue() + err.getvalue()


def a_socket(text: str) -> dict[str, str]:
    return {"source": text, "destination": text, "namespace": text}


def a_connection(text: str) -> dict[str, Any]:
    numbers = ("acks", "bytes_acked", "snd_cwnd_p50", "snd_cwnd_max", "srtt_us_p50", "srtt_us_p95", "retransmitted")
    ends = {"source": text, "source_port": 1, "destination": text, "destination_port": 2}
    return {**ends, "algorithm": text, **dict.fromkeys(numbers, 1)}


def a_qdisc(text: str) -> qdiscs.Latency:
    return qdiscs.Latency(1, 1, 1 << 16, text, text, 3, 2, 1, 10, 9, [(1, 2, 2)])


def a_trace(text: str) -> Any:
    cost = {"not_measured": text, "programs": []}
    drops = [{"netns": text, "device": text, "kind": text, "handle": text, "packets": 1}]
    rows = {"acks": 1, "events": 1}
    about = {"rows": rows, "seconds": 1.0, "lost": 0, "gaps": 0, "qdisc_drops": drops, "cost": cost}
    return SimpleNamespace(summary=[a_connection(text)], about=about)


def an_import(text: str) -> dict[str, Any]:
    return {
        "lines": 2,
        "lines_not_understood": 1,
        "first_not_understood": [(text, 1, text), (text, None, text)],
        "unknown_words": {text: 3},
        "unknown_links": {text: 2},
        "empty_files": [text],
    }


FOREIGN_KIND = dataclasses.replace(
    IMPORTERS["ss"],
    counts=[
        Count("unknown_words", "", "words that mean nothing to it: {list}.", ""),
        Count("unknown_links", "", "{count} packets have a link type that is not read: {what}.", ""),
    ],
)
"""Tells all words that an import can be told."""


def imported(text: str) -> None:
    for line in import_text.doubts(FOREIGN_KIND, an_import(text)):
        say.warn(f"knee import nginx: {line}")


def refused(text: str) -> None:
    cli._refuse(str(TcpkneeError(f"{text}: got {text!s}; expected other.")))


def drawn(text: str) -> None:
    bar = progress.watcher()
    bar.start(text, 2, 0, text)
    bar.tick()
    bar.stop()


def recorded(text: str) -> None:
    for line in record._doubts({"notes": [text]}):
        say.warn(line)


def shelled(text: str) -> None:
    outcome = SimpleNamespace(links=[], warnings=[text], exit_code=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "algorithms", lambda *_, **__: nullcontext({}))
        patch.setattr(_core, "shell", lambda *_: outcome)
        patch.setattr(shell, "_measured", lambda _: text)
        path = {"path.rate": "10Mbit/s", "path.rtt": "20ms"}
        shell.shell(["true"], path, algorithm="reno", bpf=False, quiet=False)


def failed(text: str) -> None:
    def raises() -> None:
        raise ValueError(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "excepthook", threading.__excepthook__)
        thread = threading.Thread(target=raises)
        thread.start()
        thread.join()


#: Each way to the terminal. What a name says is foreign in it.
SINKS: dict[str, Callable[[str], object]] = {
    "a line": say.line,
    "a warning": say.warn,
    "progress": lambda text: (say.progress(text), say.progress_ends()),
    "a bar of progress and its title": drawn,
    "an error": refused,
    "a table": lambda text: say.lines(say.aligned([["head", text], [text, "1"]], left=[True, False])),
    "a row of SQL as CSV": lambda text: say.csv([[text, 1, None], [text]]),
    "JSON": lambda text: say.json({text: [text, {"inner": text}]}),
    "a line of a log, a word and a file of an import": imported,
    "a connection of a trace, and why its cost is unknown": lambda text: say.lines(trace._connections(a_trace(text))),
    "a device and its qdisc": lambda text: say.lines(trace._histogram(a_qdisc(text))),
    "a socket that still runs an algorithm": lambda text: say.line(unload._still_used([a_socket(text)])),
    "a note of a recording": recorded,
    "a warning of a lab, as of its programs": shelled,
    "a cgroup of the exporter": lambda text: serving._ready([text], [text], {"netns": None}),
}

#: What libraries print is text of several lines: breaks of lines and tabs stay.
OF_LIBRARIES: dict[str, Callable[[str], object]] = {
    "print": print,
    "click": lambda text: __import__("click").echo(text),
    "a traceback of a thread": failed,
}


def own(text: str) -> str:
    """Less what we write ourselves: breaks of lines, and what progress draws with."""
    text = re.sub(r"\r\x1b\[K|\x1b\[(\?25[lh]|[\d;]*[mAGK2]*)|\r", "", text)
    return text.replace("\n", "")


@pytest.mark.parametrize("name", SINKS)
@settings(deadline=None)
@given(text=FOREIGN)
@example(text=TITLE)
@example(text="a\nknee: forged\r")
def test_no_control_character_of_foreign_text_reaches_a_terminal(name: str, text: str) -> None:
    found, plain = printed(SINKS[name], text), printed(SINKS[name], "x")
    assert not HARMFUL.search(own(found)), repr(found)
    # As many lines as of harmless text: a name cannot forge one.
    assert found.count("\n") == plain.count("\n")


@pytest.mark.parametrize("name", OF_LIBRARIES)
@settings(deadline=None)
@given(text=FOREIGN)
@example(text=TITLE)
def test_what_libraries_print_drives_no_terminal(name: str, text: str) -> None:
    assert not HARMFUL.search(re.sub(r"[\n\t]", "", printed(OF_LIBRARIES[name], text)))


@settings(deadline=None)
@given(FOREIGN)
def test_what_is_escaped_is_told_apart_and_the_rest_stays(text: str) -> None:
    shown = say.printable(text)
    assert not HARMFUL.search(shown)
    if not HARMFUL.search(text):
        assert shown == text


def test_escapes_are_those_that_a_programmer_knows() -> None:
    assert say.printable("\x1b[31m\x00\n\t\x7f\x9b\u202e\u2028") == r"\x1b[31m\x00\n\t\x7f\x9b\u202e\u2028"
    # A byte of a file name that is no UTF-8, as os.fsdecode has it.
    assert say.printable(b"a\xff\x9b".decode("utf-8", "surrogateescape")) == r"a\xff\x9b"
    assert say.printable("Zürich 東京 é ± × 👩‍👩‍👧") == "Zürich 東京 é ± × 👩‍👩‍👧"


@settings(deadline=None)
@given(st.dictionaries(FOREIGN, st.lists(FOREIGN), max_size=4))
def test_json_says_the_same_when_it_is_read_again(found: dict[str, list[str]]) -> None:
    text = printed(say.json, found)  # type: ignore[arg-type]
    assert not HARMFUL.search(text.replace("\n", ""))
    assert json.loads(text) == found


@settings(deadline=None)
@given(st.lists(st.lists(FOREIGN, min_size=2, max_size=2), min_size=1, max_size=5))
def test_columns_stay_below_each_other_whatever_stands_in_them(rows: list[list[str]]) -> None:
    lines = say.aligned([*rows, ["end", "|"]], left=[True, True])
    widths = [max(say.width(say.printable(row[0])) for row in [*rows, ["end"]])]
    for row, line in zip([*rows, ["end", "|"]], [lines[0], *lines[2:]], strict=True):
        first = say.printable(row[0])
        assert line.startswith((first + " " * (widths[0] - say.width(first)) + "  ").rstrip())


def test_csv_has_no_harmful_character_and_keeps_line_breaks_for_a_program() -> None:
    rows = [["a\nb", TITLE], [1, None]]
    assert printed(say.csv, rows, is_terminal=False) == '"a\nb",\\x1b]0;owned\\x07\n1,\n'  # type: ignore[arg-type]
    assert printed(say.csv, rows) == "a\\nb,\\x1b]0;owned\\x07\n1,\n"  # type: ignore[arg-type]


def test_an_encoding_without_a_character_is_no_traceback() -> None:
    raw = io.BytesIO()
    before, stream = sys.stdout, io.TextIOWrapper(raw, encoding="ascii")
    sys.stdout = stream
    try:
        assert say.guarded(lambda: say.line("±1") or 0) == 0  # type: ignore[func-returns-value]
    finally:
        sys.stdout = before
    assert raw.getvalue() == b"\\xb11\n"


def test_a_cell_of_watch_is_as_wide_as_asked_with_foreign_text(monkeypatch: pytest.MonkeyPatch) -> None:
    column = view.BY_NAME["algorithm"]
    for text in (TITLE, "a\nb", "\u202ex", "cubic"):
        shown = view._aligned(column, text, 15)
        assert len(shown) == 15 and not HARMFUL.search(shown)


def test_no_widget_of_watch_passes_a_control_character_on() -> None:
    from rich.segment import Segment
    from textual.color import Color
    from textual.filter import LineFilter

    from tcpknee.live.watch.app import Printable, Watch

    drawn = [Segment(f"a{TITLE}"), Segment("\u202eb")]
    assert [one.text for one in Printable().apply(drawn, Color(0, 0, 0))] == ["a]0;owned", "b"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Watch, "_take", lambda *_: (SimpleNamespace(cookies=[], values={}), None))
        patch.setattr("tcpknee.live.watch.app.History.add", lambda *_: None)
        filters: list[LineFilter] = list(Watch({}, None, 1.0, "peer").get_line_filters())
    assert isinstance(filters[-1], Printable)


def test_labels_of_a_trace_are_those_of_the_table() -> None:
    assert trace_text.row(a_connection("2001:db8::1"))[0] == "[2001:db8::1]:1 to [2001:db8::1]:2"


Call = Callable[..., Any]

LINE = b'192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] "GET /x HTTP/1.1" 200 5 "-" "-"\n'


def test_an_access_log_with_the_title_of_a_window_in_it(call: Call, tmp_path: Path) -> None:
    log = tmp_path / "a\x1b[31m.log"
    log.write_bytes(b"\x1b]0;owned\x07\x9b31m no request\n" + LINE.replace(b"/x", b"/\x1b]0;owned\x07"))
    ended = call("import", "nginx", log, "--out", "in\x1b[31m")
    assert ended.code == 0 and r"\x1b]0;owned\x07" in ended.err and r"a\x1b[31m.log:1" in ended.err
    assert r" in in\x1b[31m" in ended.out
    asked = call("sql", "select * from requests", "in\x1b[31m")
    assert asked.code == 0 and r"\x1b]0;owned\x07" in asked.out
    as_json = call("sql", "select * from requests", "in\x1b[31m", "--json")
    assert f"/{TITLE}" in json.loads(as_json.out)["rows"][0].values()
    strict = call("import", "nginx", log, "--strict")
    for one in (ended, asked, as_json, strict):
        assert not HARMFUL.search((one.out + one.err).replace("\n", ""))


@pytest.mark.parametrize(
    "words",
    [
        ("run", "\x1b[31m.toml"),
        ("run", "--\x1b[31m"),
        ("list", "\x1b[31m"),
        ("sql", "select 1", "\x1b[31m"),
        ("compare", "\x1b[31m"),
        ("compare", "cubic", "--rate", "\x1b[31m"),
        ("compare", "cubic", "--set", "\x1b[31m=1"),
        ("report", "\x1b[31m"),
        ("gallery", "\x1b[31m"),
        ("load", "\x1b[31m"),
        ("trace", "\x1b[31m"),
        ("watch", "--sort", "\x1b[31m"),
        ("export", "\x1b[31m", "--format", "csv", "--out", "\x1b[31m"),
        ("import", "ss", "\x1b[31m"),
        ("\x1b[31m",),
    ],
    ids=lambda words: " ".join(words).replace("\x1b", "ESC"),
)
def test_an_error_quotes_what_it_got_without_obeying_it(call: Call, words: tuple[str, ...]) -> None:
    ended = call(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1 and not HARMFUL.search(ended.err.rstrip("\n"))
    assert "[31m" in ended.err and "Traceback" not in ended.err


def test_a_name_of_a_scenario_makes_no_line_of_its_own(call: Call, tmp_path: Path) -> None:
    name = "a\nknee: forged.toml"
    for text in (None, b"\xff", b"nosuch = 1"):
        if text is not None:
            (tmp_path / name).write_bytes(text)
        ended = call("run", name)
        assert (ended.code, ended.out) == (2, "")
        assert all(line.startswith(r"a\nknee: forged.toml:") for line in ended.err.splitlines())


def test_an_argument_that_is_no_text_is_refused_and_shown(call: Call) -> None:
    ended = call("run", "\udcff.toml")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(r'knee: got the argument "\xff.toml", which is not UTF-8; expected text.')


def test_a_value_and_a_name_of_a_column_of_sql(call: Call, small_run: Path) -> None:
    ended = call("sql", "select chr(27) || '[31m' as \"a\x1b\", 'two' || chr(10) || 'lines' as b", small_run)
    assert ended.out.splitlines() == [r"a\x1b     b", r"--------  ----------", r"\x1b[31m  two\nlines"]


def test_a_title_of_a_run_is_shown_as_it_is_written_down(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(SMALL.replace("Small", "T\\u202e\\u2066"))
    ended = call("run", "a.toml", "--out", "run")
    assert ended.code == 0 and ended.out.startswith("T\\u202e\\u2066\n")
    meta = tmp_path / "run" / "run.json"
    # A folder that somebody else made.
    about = json.loads(meta.read_text())
    meta.write_text(json.dumps(about | {"title": f"{TITLE}\nforged"}))
    again = call("run", "--resume", "--out", "run")
    assert again.out.startswith("\\x1b]0;owned\\x07\\nforged\n")
    assert not HARMFUL.search((again.out + again.err).replace("\n", ""))


FORMULAS = ("=1+1", "@SUM(1)", "-rf", "+x", "\t=1", "\n=1", "=", "-", "=\x1b")


def test_nothing_in_csv_is_a_formula_of_a_spreadsheet() -> None:
    for text in FORMULAS:
        for is_terminal in (False, True):
            (cell,) = next(csv.reader([printed(say.csv, [[text]], is_terminal=is_terminal)]))  # type: ignore[arg-type]
            assert cell[0] in "'\\", text
    for text in ("a=1", "eth0", "-5", "+1.5", "-1e9", "", "'=1"):
        assert say.csv_cell(text) == text
