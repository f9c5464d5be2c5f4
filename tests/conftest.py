"""What all tests share."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import hypothesis
import pytest

# A machine that is busy makes no example wrong.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

# A job that was started in the background ignores SIGINT, and so would every command that the tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Adds the skips of this run to the file that the environment names, for tools/skips.py."""
    # A process that runs a part of the tests tells its skips to the one that began it.
    is_part = hasattr(terminalreporter.config, "workerinput")
    if not is_part and (file := os.environ.get("TCPKNEE_SKIPS")):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        with Path(file).open("a", encoding="utf-8") as lines:
            for report in terminalreporter.stats.get("skipped", []):
                reason = report.longrepr[2].removeprefix("Skipped: ")
                lines.write(json.dumps({"test": report.nodeid.partition("@")[0], "reason": reason}) + "\n")
