"""What all tests share."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
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


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """`once(name, make)`: a folder or file that `make` made at a free path, by the first process of this run of tests
    that asks for it; the others wait."""
    of_all = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        of_all = of_all.parent

    def made(name: str, make: Callable[[Path], object]) -> Path:
        place, whole = of_all / f"once-{name}", of_all / f"once-{name}.made"
        with (of_all / f"once-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not whole.exists():
                shutil.rmtree(place, ignore_errors=True)
                make(place)
                whole.touch()
        return place

    return made


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
