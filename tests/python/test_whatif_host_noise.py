"""How late hosts send is read from recordings, and paths that disagree leave it open."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tcpknee.whatif import host_noise
from tcpknee.whatif.fit import HELD_BACK, Fit, Tried
from tcpknee.whatif.model import HOST_NOISES_US, Flow, Load, Path, simulate
from tcpknee.whatif.observation import Observed
from tcpknee.whatif.series import Series
from tcpknee.whatif.trial import Trial

PATHS = (
    Path(8e6, 40_000, 40_000),
    Path(20e6, 20_000, 50_000),
    Path(30e6, 40_000, 150_000),
    Path(12e6, 60_000, 120_000),
)
GRID_US = np.exp(host_noise._GRID)


def given(path: Path, algorithm: str, noise_us: float, *, explanation: str = "given") -> Fit:
    """What was recorded on that path, whose fit is the path itself."""
    load = Load((Flow(algorithm, 0.0, ""),), 5e6, 100_000, 0.0)
    (series,) = simulate(path, load, seed=99, noise_us=noise_us)
    assert isinstance(series, Series)
    observed = Observed("given", (series,), load.interval_us)
    best = Tried(path, explanation, 0.0)
    return Fit(observed, load, Trial(observed, load), best, (best,))


def around(us: float, *, spread: float = 0.1) -> host_noise.Numbers:
    """The witness of a path that says this lateness."""
    return -((np.log(GRID_US / us) / spread) ** 2) / 2


def spread_of(noises_us: Sequence[float]) -> float:
    return float(np.log(noises_us[-1] / noises_us[0]))


@pytest.mark.parametrize("algorithm", ["cubic", "bbr1"])
@pytest.mark.parametrize("noise_us", [30.0, 160.0])
def test_the_lateness_of_hosts_is_recovered_from_how_much_rtts_vary(algorithm: str, noise_us: float) -> None:
    found = host_noise.likely_us([host_noise.witness(given(path, algorithm, noise_us)) for path in PATHS], 4)
    assert list(found) == sorted(found)
    assert np.exp(np.mean(np.log(found))) == pytest.approx(noise_us, rel=0.35)
    assert spread_of(found) < 0.6 * spread_of(sorted(HOST_NOISES_US))


def test_paths_that_agree_leave_less_open_than_one_and_those_that_disagree_leave_more() -> None:
    one, more = (spread_of(host_noise.likely_us([around(100, spread=0.5)] * count, 4)) for count in (1, 10))
    assert more < one
    apart = spread_of(host_noise.likely_us([around(30)] * 5 + [around(300)] * 5, 4))
    assert apart > 3 * spread_of(host_noise.likely_us([around(100)] * 10, 4))


def test_a_path_that_is_fitted_as_something_else_does_not_outvote_the_others() -> None:
    witnesses = [host_noise.witness(given(path, "cubic", 30.0)) for path in PATHS]
    (wrong,) = [host_noise.witness(given(Path(8e6, 40_000, 40_000), "cubic", 400.0))]
    noises = host_noise.likely_us([*witnesses, wrong], 4)
    assert np.exp(np.mean(np.log(noises[:3]))) == pytest.approx(30, rel=0.5)


def test_without_a_path_that_tells_all_of_the_usual_range_is_simulated() -> None:
    held = given(PATHS[0], "cubic", 30.0, explanation=HELD_BACK)
    assert not np.any(host_noise.witness(held))
    assert host_noise.likely_us([host_noise.witness(held)], 4) == HOST_NOISES_US
    # Beside others it says nothing either way.
    assert host_noise.likely_us([around(50), host_noise.SAYS_NOTHING], 4) == host_noise.likely_us([around(50)], 4)
