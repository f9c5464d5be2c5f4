"""Run folders made once per session."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import synthetic
from tcpknee.pages import page
from tcpknee.pages.run import ReportRun


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a case of `synthetic.CASES`, written at first use."""
    made: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in made:
            made[name] = synthetic.write_run(tmp_path_factory.mktemp(name) / "run", **synthetic.CASES[name])
        return made[name]

    return folder


@pytest.fixture(scope="session")
def pages(case: Callable[[str], Path]) -> Callable[[str], str]:
    """The page of a case, rendered at first use."""
    made: dict[str, str] = {}

    def html(name: str) -> str:
        if name not in made:
            made[name] = page.render(ReportRun.open(case(name)))
        return made[name]

    return html
