"""The reference pages say what the registries say."""

from __future__ import annotations

import subprocess
import sys

from sources import ROOT


def test_the_reference_pages_are_not_stale() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
