"""The site, built once for all of its tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The modules that build it stand there.
sys.path.insert(0, str(ROOT / "docs"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the present version."""
    out = tmp_path_factory.mktemp("site")
    words = [sys.executable, ROOT / "docs" / "site.py", out]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [folder] = [page.parent for page in out.glob("*/index.html")]
    return folder
