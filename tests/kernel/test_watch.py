"""`knee watch` driven through a real terminal, on connections of a namespace that the test fills."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from waiting import PATIENCE_SEC

HELD = Path(__file__).with_name("held.py")
COMMAND = [sys.executable, "-m", "tcpknee", "watch", "--every", "200ms"]

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace to fill needs root"),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="a terminal to drive needs tmux (Debian: tmux)"),
]


@contextmanager
def ready_in_a_namespace(*program: str) -> Iterator[str]:
    """The PID of Python with that program in a network namespace of its own, once it has said that it is ready."""
    command = ["unshare", "--net", sys.executable, *program]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        yield str(holder.pid)
    finally:
        holder.kill()
        holder.communicate()


def connections(count: int) -> AbstractContextManager[str]:
    """The PID of a process in a namespace with that many connections."""
    return ready_in_a_namespace(str(HELD), str(count))


@pytest.fixture(scope="module")
def empty() -> Iterator[str]:
    with connections(0) as pid:
        yield pid


@pytest.fixture(scope="module")
def single() -> Iterator[str]:
    with connections(1) as pid:
        yield pid


@pytest.fixture(scope="module")
def many() -> Iterator[str]:
    with connections(2_000) as pid:
        yield pid


class Terminal:
    """`knee watch` in a terminal of tmux; a shell that goes on when it has ended."""

    def __init__(self, socket: Path, size: tuple[int, int], arguments: list[str], **environment: str) -> None:
        self._tmux = ["tmux", "-u", "-S", str(socket), "-f", "/dev/null"]
        self.left = socket.with_suffix(".left")
        width, height = map(str, size)
        env = [f"{name}={value}" for name, value in environment.items()]
        watched = shlex.join(["env", "LC_ALL=C.UTF-8", "TERM=tmux-256color", *env, *COMMAND, *arguments])
        script = f"stty -g >{self.left}.before; {watched}; echo exit $?; stty -g >{self.left}; exec cat"
        self.tmux("new-session", "-d", "-x", width, "-y", height, script)

    def tmux(self, *arguments: str) -> str:
        return subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, check=True).stdout

    def screen(self, *, escapes: bool = False) -> list[str]:
        return self.tmux("capture-pane", "-p", *(["-e"] if escapes else [])).split("\n")[:-1]

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def until(self, met: Callable[[str], object], what: str) -> list[str]:
        """The screen, once it is as asked for."""
        latest = time.monotonic() + PATIENCE_SEC
        while True:
            lines = self.screen()
            if met("\n".join(lines)):
                return lines
            assert time.monotonic() < latest, f"{what}; the screen is\n" + "\n".join(lines)
            time.sleep(0.03)

    def watcher(self) -> int:
        """The process of `knee watch`."""
        shell = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        children = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        return int(children[0])

    def ended(self) -> None:
        """The exit code is 0, and the terminal is as it was: its modes, its screen, its cursor."""
        self.until(lambda text: "exit 0" in text, "it did not end with 0")
        while not self.left.exists() or not self.left.read_text():
            time.sleep(0.01)
        assert self.left.read_text() == Path(f"{self.left}.before").read_text()
        flags = "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"
        assert self.tmux("display-message", "-p", flags).split() == ["0", "1", "0"]


@contextmanager
def watching(folder: Path, size: tuple[int, int], *arguments: str, **environment: str) -> Iterator[Terminal]:
    terminal = Terminal(folder / "tmux", size, list(arguments), **environment)
    try:
        yield terminal
    finally:
        terminal.tmux("kill-server")


def sampled(sockets: str) -> Callable[[str], object]:
    """A second sample is on the screen: rates are known."""
    return lambda text: sockets in text and "% CPU" in text


def test_an_empty_namespace_is_watched_until_q(tmp_path: Path, empty: str) -> None:
    with watching(tmp_path, (80, 24), "--netns", empty) as terminal:
        lines = terminal.until(lambda text: "no connections" in text, "no screen")
        # Behind it, from the second sample on, what watching costs.
        assert lines[1].split("  ")[0] == "0 sockets"
        assert lines[2].startswith("send -")
        terminal.keys("Enter", "End", "q")
        terminal.ended()


def test_80_columns_hold_what_matters_and_nothing_wraps(tmp_path: Path, many: str) -> None:
    with watching(tmp_path, (80, 24), "--netns", many) as terminal:
        lines = terminal.until(sampled("4,000 sockets: ESTAB 4,000"), "no second sample")
        head = next(number for number, line in enumerate(lines) if line.startswith("peer"))
        assert lines[head].split("  ")[0] == "peer"
        assert lines[head].endswith("rate bit/s retr % limit")
        first, *rest = lines[head + 1 : 23]
        # Only one of them sends: it is first by its rate.
        assert re.match(r"127\.1\.0\.1:5001 +\d+ \w+ +ESTAB +[\d.]+ +\d+ +[\d.]+[kM] +0 \w+", first)
        assert all(re.match(r"127\.[\d.]+:\d+ +\d+ \w+ +ESTAB .* idle$", line) for line in rest)
        assert len(rest) == 23 - head - 2
        assert lines[23].startswith(f"1-{1 + len(rest)} of 4,000 by rate bit/s down")


def test_200_columns_show_more(tmp_path: Path, many: str) -> None:
    with watching(tmp_path, (200, 50), "--netns", many) as terminal:
        lines = terminal.until(sampled("4,000 sockets"), "no second sample")
        head = next(line for line in lines if line.startswith("peer"))
        for title in ("inflight", "min_rtt ms", "pacing bit/s", "recv bit/s", "sent B", "delivery bit/s", "notsent B"):
            assert title in head
        assert sum(":5001 " in line or " 5001 " in line for line in lines) >= 40


def test_a_small_terminal_without_colours_gets_what_fits(tmp_path: Path, single: str) -> None:
    with watching(tmp_path, (40, 10), "--netns", single, NO_COLOR="1") as terminal:
        lines = terminal.until(lambda text: "2 sockets" in text and re.search(r"send \d", text), "no second sample")
        assert any(re.match(r"127\.1\.0\.1:5001 +[\d.]+ +[\d.]+[kM]$", line) for line in lines), lines
        terminal.keys("/")
        terminal.until(lambda text: "\nport=" in text, "no line for the filter")
        assert not re.search(r"\x1b\[([34][0-8]|9[0-7]|10[0-7])", "\n".join(terminal.screen(escapes=True)))
        terminal.keys("Escape")
        terminal.until(lambda text: "\nport=" not in text, "the line did not go")
        terminal.tmux("resize-window", "-x", "12", "-y", "3")
        terminal.keys("Down", "q")
        terminal.ended()


def test_a_connection_has_a_page_with_its_history(tmp_path: Path, single: str) -> None:
    with watching(tmp_path, (80, 24), "--netns", single) as terminal:
        terminal.until(sampled("2 sockets"), "no second sample")
        terminal.keys("Enter")
        lines = terminal.until(lambda text: re.search(r"rate +[▁▂▃▄▅▆▇█]{4}", text), "no history")
        # A machine that is busy may have let neither end send of late: then both are at rest, and either comes first.
        ends = (r"127\.0\.0\.1:\d+", r"127\.1\.0\.1:5001")
        way = "|".join(f"{one} to {other}" for one, other in (ends, ends[::-1]))
        assert re.match(rf"({way})  \w+  limited by: \w+", lines[0])
        assert re.match(r"cwnd  [▁▂▃▄▅▆▇█]+  \d+ \(\d+ to \d+\) segments", lines[1])
        assert re.match(r"srtt  [▁▂▃▄▅▆▇█]+  [\d.]+ \([\d.]+ to [\d.]+\) ms", lines[2])
        assert any(line.startswith("snd_cwnd ") for line in lines)
        terminal.keys("End", "Escape")
        terminal.until(lambda text: "of 2 by" in text, "the table did not come back")
        terminal.keys("C-c")
        terminal.ended()


def test_sort_filter_pause_and_interval_do_what_they_say(tmp_path: Path, many: str) -> None:
    with watching(tmp_path, (80, 24), "--netns", many, "--sort", "srtt_us") as terminal:
        terminal.until(lambda text: "by srtt ms down" in text, "not sorted as asked")
        terminal.keys(">", "r")
        terminal.until(lambda text: "by cwnd up" in text, "not sorted by the neighbour")
        terminal.keys("End")
        terminal.until(lambda text: "-4,000 of 4,000" in text, "the end is not seen")
        terminal.keys("/")
        terminal.until(lambda text: "\nport=443 " in text, "no line for the filter")
        terminal.type("port=nonsense")
        terminal.keys("Enter")
        terminal.until(lambda text: 'got "nonsense"' in text and "4,000 sockets" in text, "not refused")
        terminal.keys("/")
        terminal.until(lambda text: "\nport=443 " in text, "no line for the filter")
        terminal.type("address=127.1.9.9")
        terminal.keys("Enter")
        terminal.until(lambda text: "filter address=127.1.9.9" in text and "\n0 sockets" in text, "not filtered")
        terminal.keys("/")
        terminal.until(lambda text: "\naddress=127.1.9.9" in text, "no line for the filter")
        terminal.keys("C-u", "Enter")
        terminal.until(lambda text: "4,000 sockets" in text, "the filter did not go")
        # A new interval begins with a sample, which is under way when all is to stay as it is.
        for key, every in (("+", "0.5"), ("-", "0.2"), ("+", "0.5")):
            terminal.keys(key, "p")
            paused = terminal.until(lambda text, every=every: f"every {every} s  PAUSED" in text, "not paused")
            time.sleep(0.7)
            assert terminal.screen() == paused
            terminal.keys("p")
            terminal.until(lambda text: "PAUSED" not in text, "it does not go on")
        terminal.keys("?")
        terminal.until(lambda text: "keys and columns" in text, "no help")


def test_keys_typed_in_one_go_are_for_where_the_one_before_them_led(tmp_path: Path, single: str) -> None:
    with watching(tmp_path, (80, 24), "--netns", single) as terminal:
        terminal.until(sampled("2 sockets"), "no second sample")
        # Of the table these would be: pause, reverse, slower, quit.
        terminal.type("/port=8\x7f9 algorithm=pr+q\r>")
        terminal.until(lambda text: "filter port=9 algorithm=pr+q" in text, "not filtered")
        terminal.until(lambda text: "no connections" in text and "every 0.2 s" in text, "other keys were seen")
        terminal.type("/\x15\r+")
        terminal.until(lambda text: "2 sockets" in text and "every 0.5 s" in text, "the filter did not go")
        assert "PAUSED" not in "\n".join(terminal.screen())
        terminal.keys("q")
        terminal.ended()


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_signals_leave_the_terminal_as_it_was(tmp_path: Path, empty: str, by: signal.Signals) -> None:
    with watching(tmp_path, (80, 24), "--netns", empty) as terminal:
        terminal.until(lambda text: "0 sockets" in text, "no screen")
        os.kill(terminal.watcher(), by)
        terminal.ended()


HELD_BY_A_SAMPLE = """
import sys
from tcpknee.live.watch import sample, view
taken = sample.take({"netns": sys.argv[1]}, None)
taken = sample.take({"netns": sys.argv[1]}, taken)
rows = view.ordered(taken, "peer", False)
assert len(view.fields(sample.whole({"netns": sys.argv[1]}, taken.socket(int(rows[0]))))) > 60
arrays = [*taken.values.values(), taken.t_ns, taken.cookies, taken.order, taken.limited]
arrays += [taken.states.codes, taken.algorithms.codes, taken.ends]
print(sum(one.nbytes for one in arrays) // len(taken), "pandas" in sys.modules)
"""


def test_a_sample_holds_what_the_table_shows_and_no_more(many: str) -> None:
    done = subprocess.run([sys.executable, "-c", HELD_BY_A_SAMPLE, many], capture_output=True, text=True, check=True)
    # All columns take 900 bytes per connection, and pandas 50 MB, which pyarrow imports where there is one.
    per_connection, with_pandas = done.stdout.split()
    assert int(per_connection) < 320
    assert with_pandas == "False"


def test_one_interval_is_printed_where_there_is_no_terminal(single: str) -> None:
    refused = subprocess.run([*COMMAND, "--netns", single], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert "--once" in refused.stderr
    assert "knee record" in refused.stderr
    once = [*COMMAND, "--netns", single, "--once"]
    text = subprocess.run(once, capture_output=True, text=True, check=True).stdout.splitlines()
    assert text[0] == "2 sockets: ESTAB 2"
    told = json.loads(subprocess.run([*once, "--json"], capture_output=True, text=True, check=True).stdout)
    first, second = told["connections"]
    assert first["remote"] == "127.1.0.1:5001"
    assert (second["local"], second["remote"]) == (first["remote"], first["local"])
    # What one end has acknowledged the other has received, to about the time between the two rows.
    assert first["acked_bits_per_sec"] == pytest.approx(second["received_bits_per_sec"], rel=0.3)
    assert told["total"]["sent_bits_per_sec"] >= first["acked_bits_per_sec"] * 0.7
    assert told["elapsed_us"] >= 200_000


def test_a_namespace_that_may_not_be_entered_is_told_with_what_it_needs(empty: str) -> None:
    words = ["setpriv", "--bounding-set=-sys_admin", *COMMAND, "--once", "--netns", empty]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False)
    assert ended.returncode == 2
    assert f'--netns: got "{empty}", which could not be entered: Operation not permitted' in ended.stderr
    assert "Run it as root, or give it CAP_SYS_ADMIN" in ended.stderr
