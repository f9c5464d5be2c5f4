"""What all tests share."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path

import hypothesis
import pytest

# A machine that is busy makes no example wrong.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

# A job that was started in the background ignores SIGINT, and so would every command that the tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


SLOW_SEC = 10
"""A test that takes longer says why, by the marker `slow`."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"slow(why): it takes more than {SLOW_SEC} s, for this reason")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for marker in item.iter_markers("slow"):
            if not (marker.args and str(marker.args[0]).strip()):
                raise pytest.UsageError(f"{item.nodeid}: the marker slow says why")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Adds the skips of this run, and the slow tests that do not say why, to the file that the environment names, for
    tools/skips.py."""
    # A process that runs a part of the tests tells its skips to the one that began it.
    is_part = hasattr(terminalreporter.config, "workerinput")
    if is_part or not (file := os.environ.get("TCPKNEE_SKIPS")):
        return
    found = [
        {"test": report.nodeid.partition("@")[0], "reason": report.longrepr[2].removeprefix("Skipped: ")}
        for report in terminalreporter.stats.get("skipped", [])
    ]
    took: Counter[str] = Counter()
    for report in (one for kind in terminalreporter.stats.values() for one in kind):
        if isinstance(report, pytest.TestReport) and not {"slow", "long"} & report.keywords.keys():
            took[report.nodeid.partition("@")[0]] += report.duration
    found += [{"test": test, "took_sec": round(sec, 1)} for test, sec in took.items() if sec > SLOW_SEC]
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    with Path(file).open("a", encoding="utf-8") as lines:
        lines.writelines(json.dumps(one) + "\n" for one in found)
