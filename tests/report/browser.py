"""Chromium without a window: what a page becomes, and what the browser says of it."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needed = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine: install the package chromium")


def opened(page: Path, *, seconds: int, width: int = 1300, fragment: str = "") -> tuple[str, list[str], str]:
    """The document after that much of its own time, the lines of its console, and all that the browser said."""
    assert PROGRAM
    command = [
        PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", f"--user-data-dir={page.parent / 'profile'}",
        f"--window-size={width},1300", f"--virtual-time-budget={1000 * seconds}", "--enable-logging=stderr",
        "--dump-dom", page.as_uri() + fragment,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line], done.stderr


def probed(page: str, script: str) -> str:
    """The page with one more script at its end, which its policy lets run beside its own."""
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert page.count("script-src ") == 1
    page = page.replace("script-src ", f"script-src 'sha256-{allowed}' ")
    head, _, tail = page.rpartition("</body>")
    return f"{head}<script>{script}</script></body>{tail}"
