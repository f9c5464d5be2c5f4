"""What the intervals of `knee whatif` take for the simulator's distance from Linux is what the reference says."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from tcpknee.whatif.uncertainty import TRANSFER

TOOL = runpy.run_path(str(Path(__file__).resolve().parents[2] / "tools/whatif_transfer.py"), run_name="whatif_transfer")


def test_the_simulators_distance_from_linux_is_that_of_the_reference() -> None:
    found = {metric: TOOL["deviations"](cells.values()) for metric, cells in TOOL["differences"]().items()}
    asked = {
        "goodput_bits_per_sec": "goodput_bits_per_sec",
        "srtt_us_p50": "srtt_us_p50",
        "srtt_us_p95": "srtt_us_p50",
        "queue_delay_us_p95": "queue_delay_us",
        "retransmit_pct": "retransmit_pct",
    }
    assert {name: tuple(round(value, 4) for value in found[metric]) for name, metric in asked.items()} == TRANSFER


def test_what_paths_have_in_common_is_their_mean_and_how_little_so_few_tell_of_it() -> None:
    common, of_paths = TOOL["deviations"]([[0.1, -0.1, 0.1, -0.1]])
    assert of_paths == pytest.approx(0.1)
    assert common == pytest.approx(np.std([0.1, -0.1, 0.1, -0.1], ddof=1) / 2)
    assert TOOL["deviations"]([[0.1, 0.1]]) == pytest.approx((0.1, 0.1))
    # Of several algorithms, the mean square.
    assert TOOL["deviations"]([[0.2, 0.2], [0.0, 0.0]])[1] == pytest.approx(0.2 / np.sqrt(2))
