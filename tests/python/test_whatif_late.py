"""How late hosts send is read from recordings, and paths that disagree leave it open."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tcpknee.fleet.whatif import late
from tcpknee.fleet.whatif.fit import HELD_BACK, Fit, Tried
from tcpknee.fleet.whatif.model import HOST_NOISES_US, Flow, Load, Path, simulate
from tcpknee.fleet.whatif.recorded import Observed
from tcpknee.fleet.whatif.series import Series
from tcpknee.fleet.whatif.trial import Trial

PATHS = (
    Path(8e6, 40_000, 40_000),
    Path(20e6, 20_000, 50_000),
    Path(30e6, 40_000, 150_000),
    Path(12e6, 60_000, 120_000),
)
GRID_US = np.exp(late._GRID)


def given(path: Path, algorithm: str, noise_us: float, *, explanation: str = "given") -> Fit:
    """What was recorded on that path, whose fit is the path itself."""
    load = Load((Flow(algorithm, 0.0, ""),), 5e6, 100_000, 0.0)
    (series,) = simulate(path, load, seed=99, noise_us=noise_us)
    assert isinstance(series, Series)
    observed = Observed("given", (series,), load.interval_us)
    best = Tried(path, explanation, 0.0)
    return Fit(observed, load, Trial(observed, load), best, (best,))


def around(us: float, *, spread: float = 0.1) -> late.Numbers:
    """The witness of a path that says this lateness."""
    return -((np.log(GRID_US / us) / spread) ** 2) / 2


def spread_of(noises_us: Sequence[float]) -> float:
    return float(np.log(noises_us[-1] / noises_us[0]))


@pytest.mark.parametrize("algorithm", ["cubic", "bbr1"])
@pytest.mark.parametrize("noise_us", [30.0, 160.0])
def test_the_lateness_of_hosts_is_recovered_from_how_much_rtts_vary(algorithm: str, noise_us: float) -> None:
    found = late.likely_us([late.witness(given(path, algorithm, noise_us)) for path in PATHS], 4)
    assert list(found) == sorted(found)
    assert np.exp(np.mean(np.log(found))) == pytest.approx(noise_us, rel=0.35)
    assert spread_of(found) < 0.6 * spread_of(sorted(HOST_NOISES_US))


def test_paths_that_agree_leave_less_open_than_one_and_those_that_disagree_leave_more() -> None:
    one, more = (spread_of(late.likely_us([around(100, spread=0.5)] * count, 4)) for count in (1, 10))
    assert more < one
    apart = spread_of(late.likely_us([around(30)] * 5 + [around(300)] * 5, 4))
    assert apart > 3 * spread_of(late.likely_us([around(100)] * 10, 4))


def test_a_path_that_is_fitted_as_something_else_does_not_outvote_the_others() -> None:
    witnesses = [late.witness(given(path, "cubic", 30.0)) for path in PATHS]
    (wrong,) = [late.witness(given(Path(8e6, 40_000, 40_000), "cubic", 400.0))]
    noises = late.likely_us([*witnesses, wrong], 4)
    assert np.exp(np.mean(np.log(noises[:3]))) == pytest.approx(30, rel=0.5)


def test_without_a_path_that_tells_all_of_the_usual_range_is_simulated() -> None:
    held = given(PATHS[0], "cubic", 30.0, explanation=HELD_BACK)
    assert not np.any(late.witness(held))
    assert late.likely_us([late.witness(held)], 4) == HOST_NOISES_US
    # Beside others it says nothing either way.
    assert late.likely_us([around(50), late.SAYS_NOTHING], 4) == late.likely_us([around(50)], 4)
