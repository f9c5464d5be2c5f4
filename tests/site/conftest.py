"""The site, built once for all of its tests, whichever processes run them."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
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
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the present version. Its playground is a page without an engine, which takes long to build."""
    import built_of

    of_all = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        of_all = of_all.parent
    out, playground = of_all / "site", of_all / "play.html"
    page = '<!doctype html><html lang="en"><title>Playground</title><!-- home -->tcpknee<!-- /home --></html>'
    with (of_all / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (out / "index.html").exists():
            playground.write_text(page.replace("<title>", f"{built_of.mark()}<title>"), encoding="utf-8")
            built(out, playground)
    [folder] = [page.parent for page in out.glob("*/index.html")]
    return folder
