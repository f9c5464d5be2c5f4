"""The simulator and the running kernel agree on the short form of the matrix."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import probes
import punctual
import repeats
from building import ROOT
from waiting import PATIENCE_SEC

ATTEMPTS = 2
"""A machine that was late for some seconds is not so twice; a simulator that is wrong is."""

LATE_US = 3_000
"""A lab this late adds to round-trip times what the tolerances leave."""


@pytest.mark.slow("six cells of the matrix are in real time")
def test_simulator_and_kernel_agree_on_the_short_form(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    probes.need_lab()
    for attempt in range(ATTEMPTS):
        if attempt:
            record_property(repeats.REPEATED, attempt)
        out = tmp_path / str(attempt)
        command = [sys.executable, "-m", "tcpknee", "conform", "--quick", "--json", "--quiet", "--out", out]
        with punctual.beside() as machine:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False)
        assert done.returncode in (0, 1), done.stderr
        found = json.loads(done.stdout)
        for entry in found["compared"]:
            print(f"{entry['label']}: {entry['metric']} {entry['sim']:.4g} and {entry['kernel']:.4g}")
        assert len(found["compared"]) == 6 * 3
        outside = [verdict["what"] for verdict in found["verdicts"] if not verdict["ok"]]
        if not outside:
            return
    if machine.excuses(LATE_US):
        pytest.skip(f"the machine wakes 1 % of its processes {machine.late_us:.0f} us late; outside: {outside}")
    pytest.fail(f"outside each time, at last: {outside}")
