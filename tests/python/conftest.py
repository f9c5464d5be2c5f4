"""Fixtures: `knee` in this process, with its exit code and what it printed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tcpknee import _core
from tcpknee.cli import main

sys.path.insert(0, str(Path(__file__).parent))

from support import SMALL, Ended


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Calls `knee` in an empty folder. It cannot load an algorithm: the kernel is everybody's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_core, "load", _load)
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*words: str | Path) -> Ended:
        monkeypatch.setattr(sys, "argv", ["knee", *map(str, words)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capfd.readouterr()
        return Ended(int(end.value.code or 0), out, err)

    return run


def _load(name: str, default_in: str | None = None) -> None:
    pytest.fail(f"this test loads {name} into the kernel")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A scenario file of two cells and three repetitions."""
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    return file


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run of that scenario, for tests that only read."""
    import tcpknee

    out = tmp_path_factory.mktemp("shared") / "run"
    tcpknee.run(SMALL, out=out)
    return out
