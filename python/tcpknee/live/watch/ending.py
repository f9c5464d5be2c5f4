"""The end of the screen, which is certain whatever holds the rest of the program up.

The screen's own loop cannot answer for it. Textual hands what is to be written to a thread by a queue with bounds:
where nobody reads the terminal, or it has gone, that queue stays full and the loop waits for it for good. So a thread
that needs no other listens for signals and for the terminal to hang up.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any

from tcpknee.live.record import stop_signals

GRACE_S = 1.5
"""What an end in order may take: ten times what it takes on a busy machine."""

LOOK_MS = 1_000
"""The kernel wakes who waits for a hang-up alone when a pty closes, but not for every kind of terminal."""

ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}

LEAVE = (
    b"\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"
)
"""Undoes what the screen asks of a terminal: paste, wrap, resize, mouse, keyboard, alternate screen, cursor, focus."""


class Ending:
    """While it is entered, a signal or `begin` ends the process within GRACE_S, a terminal that has gone at once."""

    def __init__(self) -> None:
        self._streams = [stream.fileno() for stream in (sys.__stdin__, sys.__stderr__) if stream is not None]
        self._before: list[Any] | None = None
        self._begun = False
        self._orderly: Callable[[], object] | None = None
        self._held = ExitStack()

    def __enter__(self) -> Ending:
        """From here on signals are noted instead of obeyed."""
        with suppress(termios.error):
            self._before = termios.tcgetattr(self._streams[0])
        woken = self._held.enter_context(stop_signals())
        self._reading, self._writing = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._listen, args=(woken,), name="ending", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """The screen has ended in order."""
        os.close(self._writing)
        self._thread.join()
        os.close(self._reading)
        self._held.close()

    def ready(self, orderly: Callable[[], object]) -> None:
        """From now on `orderly` may be called, from another thread, to end in order."""
        self._orderly = orderly
        if self._begun:
            orderly()

    def begin(self) -> None:
        """As a signal would."""
        os.write(self._writing, b"\0")

    def _listen(self, woken: int) -> None:
        # A process in the background may then set the terminal's modes.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        poll = select.poll()
        for descriptor in (woken, self._reading):
            poll.register(descriptor, select.POLLIN)
        for stream in self._streams:
            # Only that it has gone.
            poll.register(stream, 0)
        latest: float | None = None
        while latest is None or time.monotonic() < latest:
            for descriptor, _ in poll.poll(LOOK_MS if latest is None else 1e3 * max(0.0, latest - time.monotonic())):
                if descriptor in self._streams:
                    # There is nothing to give back, and nobody to tell.
                    os._exit(0)
                told = os.read(descriptor, 4096)
                if descriptor == self._reading and not told:
                    return
                # The other signals with a handler are noted too: of the window's size, of stopping and going on.
                if latest is None and (descriptor == self._reading or not ENDING.isdisjoint(told)):
                    latest = time.monotonic() + GRACE_S
                    self._begun = True
                    if self._orderly is not None:
                        # A loop that is closed has ended.
                        with suppress(RuntimeError):
                            self._orderly()
        self._give_back()
        os._exit(0)

    def _give_back(self) -> None:
        """As far as a terminal that may not be read any more takes it; nothing here waits."""
        if self._before is not None:
            with suppress(termios.error):
                termios.tcsetattr(self._streams[0], termios.TCSANOW, self._before)
        with suppress(OSError):
            # Opened anew: not to wait is a property of the open file, which the shell shares with us.
            screen = os.open(f"/proc/self/fd/{self._streams[-1]}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
            os.write(screen, LEAVE)
