"""`knee watch` ends within moments of being asked to, whatever became of its terminal.

Its screen blocks for good once it has more to write than a terminal takes that nobody reads, or that has gone. The
tests are such a terminal: a pty that they read or leave, or close. What hangs, hangs for good.
"""

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waiting import PATIENCE_SEC


class Pty:
    """`knee watch` on a terminal whose other end is ours. `nohup`: no SIGHUP reaches it, as in another session."""

    def __init__(self, nohup: bool) -> None:
        self.ours, theirs = pty.openpty()
        termios.tcsetwinsize(self.ours, (24, 80))
        self.before = termios.tcgetattr(self.ours)
        watch = [sys.executable, "-m", "tcpknee", "watch", "--every", "100ms"]
        self.process = subprocess.Popen(
            # A controlling terminal sends SIGHUP when it closes.
            ["setsid", *([] if nohup else ["--ctty"]), *watch],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
        )
        os.close(theirs)

    def until_seen(self, text: bytes) -> None:
        """Reads what it writes until this is in it."""
        seen = b""
        while text not in seen:
            assert select.select([self.ours], [], [], PATIENCE_SEC)[0], seen
            seen += os.read(self.ours, 1 << 16)

    def stall(self) -> None:
        """Lets it write much that nobody reads, until it is stuck: it takes no processor time any more."""
        # Help and back, a screen each.
        os.write(self.ours, b"h\x7f" * 400)
        before, unchanged = self.ticks(), 0
        latest = time.monotonic() + PATIENCE_SEC
        while unchanged < 5:
            assert time.monotonic() < latest, "it writes on"
            time.sleep(0.1)
            now = self.ticks()
            before, unchanged = now, unchanged + 1 if now == before else 0

    def ticks(self) -> int:
        """Its processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def close(self) -> None:
        """Hangs up."""
        os.close(self.ours)
        self.ours = -1


@contextmanager
def watched(*, nohup: bool = False) -> Iterator[Pty]:
    terminal = Pty(nohup)
    try:
        terminal.until_seen(b"% CPU")
        yield terminal
    finally:
        terminal.process.kill()
        terminal.process.wait()
        if terminal.ours >= 0:
            terminal.close()


def test_a_signal_ends_it_though_nobody_reads_its_terminal() -> None:
    with watched() as terminal:
        terminal.stall()
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.process.wait(PATIENCE_SEC) == 0
        assert termios.tcgetattr(terminal.ours) == terminal.before


def test_a_terminal_that_goes_away_ends_it_also_while_it_is_stuck() -> None:
    with watched() as terminal:
        terminal.stall()
        terminal.close()
        assert terminal.process.wait(PATIENCE_SEC) == 0


def test_a_terminal_that_goes_away_ends_it_without_a_signal() -> None:
    with watched(nohup=True) as terminal:
        terminal.close()
        assert terminal.process.wait(PATIENCE_SEC) == 0
