"""The site, built once for all of its tests, whichever processes run them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The modules that build it stand there, and what says of which sources a playground is.
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "site" / "play")]


def built(out: Path, playground: Path) -> None:
    words = [sys.executable, ROOT / "docs" / "site.py", out, playground]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def site(once: Callable[[str, Callable[[Path], object]], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the present version. Its playground is a page without an engine, which takes long to build."""
    import built_of

    playground = tmp_path_factory.mktemp("play") / "play.html"
    page = '<!doctype html><html lang="en"><title>Playground</title><!-- home -->tcpknee<!-- /home --></html>'
    playground.write_text(page.replace("<title>", f"{built_of.mark()}<title>"), encoding="utf-8")
    out = once("site", lambda place: built(place, playground))
    [folder] = [page.parent for page in out.glob("*/index.html")]
    return folder
