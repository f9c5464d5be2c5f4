"""Short runs of hosts that a veth pair joins, as root and as an ordinary user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import probes
import tcpknee
from tcpknee.runs.results import Run
from waiting import PATIENCE_SEC

KNEE = (sys.executable, "-m", "tcpknee")

HEAD = """\
duration = "2s"
warmup = "500ms"
[path]
backend = "veth"
rate = "unlimited"
rtt = "0s"
"""


def tried(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A short run, into the folder `out`."""
    (folder / "scenario.toml").write_text(text)
    command = [*KNEE, "run", "scenario.toml", "--engine", "kernel", "--quiet", "--out", "out", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False)


def run(folder: Path, text: str, *words: str) -> Run:
    probes.need_lab()
    ran = tried(folder, text, *words)
    assert ran.returncode == 0, ran.stderr
    return tcpknee.open(folder / "out")


def as_ordinary_user(tmp_path: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    tmp_path.mkdir()
    folder = probes.folder_of_nobody(tmp_path)
    (folder / "s.toml").write_text(text)
    command = [*probes.as_nobody(), "-m", "tcpknee", "run", "s.toml", "--engine", "kernel", "--out", "out", "-q"]
    return subprocess.run(
        [*command, *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False
    )
