"""`knee whatif`: what a recording says, what it leaves open, and what is predicted where the truth is known."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path as File

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dask_here import dask
from support import Ended, refused
from tcpknee.algorithms import outline
from tcpknee.errors import UsageError
from tcpknee.runs import api
from tcpknee.runs.workers import on_processes
from tcpknee.whatif import observation, populations, predict, render, request, uncertainty
from tcpknee.whatif.distance import SCALES
from tcpknee.whatif.fit import Fit, Tried, fit
from tcpknee.whatif.identifiability import Bounds, Judged, Others, draws, judged
from tcpknee.whatif.model import Load, Path, load_of, simulate
from tcpknee.whatif.observation import Observed
from tcpknee.whatif.replay import replayed
from tcpknee.whatif.series import Series, Starved, measured, whole_goodput_bits_per_sec
from tcpknee.whatif.trial import Trial
from whatif_paths import PLAIN, fitted, held_back, load, recording

Call = Callable[..., Ended]


FIT_TOLD = render.FitTold(1, 1, {"queue": 1}, 1.0, 100.0, {"goodput_bits_per_sec": 1.0}, (30.0, 50.0))


def test_the_buffer_of_a_path_that_never_filled_is_open_and_warned_of() -> None:
    found = judged(fit(held_back()))
    assert found.buffer.high is None and not found.buffer.identified
    assert found.rate.high is None
    open_ones = render.open_values([found])
    shares = {one.what: one.connections_pct for one in open_ones}
    assert shares["buffer"] == 100 and shares["bottleneck rate"] == 100
    said = render.lines(observation.Recording((), 1, 0), FIT_TOLD, open_ones, [])
    assert any(line.startswith("Bottleneck rate: cannot") and "Mbit/s" in line for line in said)
    short = " ".join(render.summary(observation.Recording((), 1, 0), FIT_TOLD, open_ones, []))
    assert "warning: only 1 path" in short and "cannot be identified for 100 % of the connections" in short


def test_a_policer_that_was_never_met_is_said_and_warned_of_by_nothing() -> None:
    path = judged(fitted(PLAIN, load("cubic")))
    found = render.open_values([path])
    assert [one.what for one in found] == ["a policer above the rate that was sent"]
    assert not render.warning(replace(FIT_TOLD, paths=render.FEW), found)


def test_paths_that_no_explanation_fits_are_left_out_and_too_many_of_them_are_refused() -> None:
    path = judged(fitted(PLAIN, load("cubic")))
    off = replace(path, fit=replace(path.fit, best=replace(path.fit.best, score=9.0 * len(SCALES))))
    assert render.well_fitted([path, off]) == [path]
    assert render.refusal(1, 2) is None
    for fitted_well, paths, said in (
        (1, 3, "of 3 paths a simulation does on 1 what"),
        (0, 1, "of 1 path a simulation does on none"),
    ):
        why = render.refusal(fitted_well, paths)
        assert why is not None and said in why and "knee record --every 100ms" in why
    short = " ".join(render.summary(observation.Recording((), 3, 0), replace(FIT_TOLD, unfitted=2), [], []))
    short = " ".join(short.split())
    assert "2 others left out, which no explanation fits" in short


def test_the_short_answer_has_a_line_for_each_algorithm_and_no_noise_as_data() -> None:
    sure = predict.Change(0.12, 0.05, 0.2, 0.1, 0.14, 0.0)
    small, noise = replace(sure, value=0.001, low=-0.02, high=0.03), replace(sure, value=2.0, low=-0.978, high=307.0)
    points = replace(sure, value=0.03, low=0.0, high=100.0)

    def of(name: str, adoption: float, *three: predict.Change) -> predict.Prediction:
        every = dict(zip(render.SHORT, three, strict=True))
        return predict.Prediction(name, adoption, every, every, {})

    predicted = [
        of("bbr1", 10, noise, noise, noise),
        of("bbr1", 100, sure, small, points),
        of("bbr3", 100, noise, sure, points),
    ]
    text = render.summary(observation.Recording((), 40, 2), replace(FIT_TOLD, paths=40), [], predicted)
    rows = [line.split("  ") for line in text if line.startswith("bbr")]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        [
            "bbr1",
            "+12.0 % (+5.0 % to +20.0 %)",
            "no change shown (-2.0 % to +3.0 %)",
            "cannot be told (+0.00 points to +100.00 points)",
        ],
        [
            "bbr3",
            "cannot be told (-97.8 % to x 308)",
            "+12.0 % (+5.0 % to +20.0 %)",
            "cannot be told (+0.00 points to +100.00 points)",
        ],
    ]
    assert not any("warning" in line for line in text) and len(text) == 9
    assert text[-1].startswith("Next: `knee assign bbr1=10%")
    assert "40 connections, 2 of them too short" in text[0]


def test_open_values_are_drawn_from_those_that_are_larger() -> None:
    others = Others([Bounds(10, 10), Bounds(20, 20), Bounds(40, 40), Bounds(15, None)])
    assert {round(others.above(15, share)) for share in (0.1, 0.4, 0.6, 0.9)} == {20, 40}
    beyond = [others.above(50, share) for share in (0.0, 0.5, 1.0)]
    assert beyond == pytest.approx([50, 50 * 8**0.5, 400])
    # The one known from below is one of the larger ones, so they are more than one in three each.
    assert others.weights == pytest.approx([1 / 4, 3 / 8, 3 / 8])


def test_draws_keep_what_is_known_and_vary_what_is_open() -> None:
    found = judged(fitted(PLAIN, load("cubic")))
    open_buffer = replace(found, buffer=Bounds(40_000, None))
    others = Others([Bounds(100_000, 100_000)])
    rng = np.random.default_rng(1)
    assert {round(path.buffer_us) for path in draws(open_buffer, others, others, 5, rng)} == {100_000}
    known = draws(found, others, others, 5, rng)
    assert all(path.rate_bits_per_sec == pytest.approx(8e6, rel=0.05) for path in known)


def test_an_explanation_without_hope_is_never_drawn() -> None:
    observed = recording(PLAIN, load("cubic"))
    near = Tried(PLAIN, "given", 0.0)
    far = Tried(PLAIN.faster(1 / 9), "hopeless", 16_000.0)
    found = judged(Fit(observed, load("cubic"), Trial(observed, load("cubic")), near, (near, far)))
    others = Others([found.rate])
    assert draws(found, others, Others([found.buffer]), 4, np.random.default_rng(1)) == [PLAIN] * 4


def test_the_naive_replay_gives_every_algorithm_what_was_recorded() -> None:
    observed = recording(replace(PLAIN, loss_pct=2), load("cubic"))
    (again,) = simulate(replayed(observed), load("bbr1"))
    assert isinstance(again, Series)
    before = measured(observed.connections[0])["goodput_bits_per_sec"]
    assert measured(again)["goodput_bits_per_sec"] == pytest.approx(before, rel=0.1)


def outcomes_of(paths: list[Judged], *levels: float) -> predict.Outcomes:
    with on_processes(1) as on_all:
        return predict.outcomes(paths, ["bbr1"], levels, seed=1, on_all=on_all)


def known(path: Path, asked_for: Load) -> Judged:
    """A recording whose path is given and not fitted."""
    observed = recording(path, asked_for)
    best = Tried(path, "given", 0.0)
    return judged(Fit(observed, asked_for, Trial(observed, asked_for), best, (best,)))


def test_bbr_gains_on_a_lossy_path_as_predicted_and_the_naive_replay_misses_it() -> None:
    lossy = replace(PLAIN, loss_pct=0.8)
    paths = [known(lossy, load("cubic"))]
    (found,) = predict.predictions(outcomes_of(paths, 100.0), ["bbr1"], [100.0], 1)
    (then,) = recording(lossy, load("bbr1")).connections
    (now,) = paths[0].fit.observed.connections
    true = measured(then)["goodput_bits_per_sec"] / measured(now)["goodput_bits_per_sec"] - 1
    gain = found.everyone["goodput_bits_per_sec"]
    assert true > 0.5
    assert abs(gain.value - true) < abs(gain.naive - true) / 2
    assert gain.low_here <= true <= gain.high_here and gain.low <= true <= gain.high
    assert found.stayed == {}


@pytest.mark.slow("several shares of a path that many connections have are simulated")
def test_along_adoption_who_shares_a_path_is_told_apart_from_who_moved() -> None:
    shallow = replace(PLAIN, buffer_bytes=20_000)
    paths = [known(shallow, load("cubic", "cubic"))]
    few, whole = predict.predictions(outcomes_of(paths, 10.0, 100.0), ["bbr1"], [10.0, 100.0], 1)
    moved, stayed = (group["goodput_bits_per_sec"].value for group in (few.moved, few.stayed))
    # One that moves takes from the one that stays; once both have moved there is no more to be taken.
    assert moved > 0.2
    assert abs(stayed) < moved
    assert abs(whole.everyone["goodput_bits_per_sec"].value) < 0.15


def test_an_interval_holds_how_far_the_model_is_off_and_how_far_a_rehearsal_was() -> None:
    paths = [known(PLAIN, load("cubic")) for _ in range(4)]
    found = outcomes_of(paths, 100.0)
    # No draw differs from the others by luck.
    mean = found.now.mean(axis=1)
    exact = replace(found, recorded=mean, now=np.repeat(mean[:, np.newaxis], predict.DRAWS, axis=1))
    none = 0 * found.recorded
    either_way = np.array([[0.2], [-0.2], [0.2], [-0.2]])

    def width(of: predict.Outcomes, wrong: np.ndarray, late: float = 0.0) -> float:
        then = of.now + 0.1 + late * np.array([-1, 1, -1, 1])[:, np.newaxis]
        change = predict.changes(of, then, none, wrong, 1)["goodput_bits_per_sec"]
        return change.high_here - change.low_here

    # Without any, what is left is what the simulator is off for the algorithm, on all paths and on each of the four:
    # two deviations either way.
    common, of_path = uncertainty.TRANSFER["goodput_bits_per_sec"]
    assert width(exact, none) == pytest.approx(4 * 1.105 * np.hypot(common, of_path / 2), rel=0.15)
    off = replace(exact, recorded=exact.recorded + either_way)
    assert width(off, none) > width(exact, none) + 0.1
    assert width(exact, none + either_way) > width(exact, none) + 0.1
    # One that is the same for all paths does not become smaller with their number.
    assert width(exact, none + 0.2) > 1.5 * width(exact, none + either_way)
    # A population has other paths, on which more or less may change.
    apart = predict.changes(exact, exact.now + either_way[:, np.newaxis], none, none, 1)["goodput_bits_per_sec"]
    assert apart.high - apart.low > 3 * (apart.high_here - apart.low_here)
    # Nor does it help against hosts whose lateness nobody knows.
    assert width(exact, none, late=0.1) > 0.2
    # What nobody lost cannot become less, whatever may be off.
    lossless = replace(exact, recorded=mean * 0, now=exact.now * 0)
    change = predict.changes(lossless, lossless.now - 1.0, none, none + 5.0, 1)["retransmit_pct"]
    assert change.value == change.low == change.low_here == 0 < change.high_here


def test_what_was_luck_is_not_predicted_again_and_what_the_simulator_cannot_do_is() -> None:
    found = outcomes_of([known(PLAIN, load("cubic")) for _ in range(2)], 100.0)
    now = np.zeros_like(found.now) + np.array([-0.1, 0.1, -0.1, 0.1])[:, np.newaxis]
    off = replace(found, recorded=np.array([[0.05], [0.5]]) + 0 * found.recorded, now=now)
    (lucky, *_), (wrong, *_) = predict.differences_of(off, now + 0.3)
    # The first is within what differs from draw to draw, so what is predicted is the simulated 0.3 itself.
    assert 0.05 + lucky == pytest.approx(0.3)
    assert 0.5 + wrong == pytest.approx(0.8, abs=0.03)


def test_predictions_are_rehearsed_but_on_paths_that_others_calibrated() -> None:
    paths = [judged(fitted(PLAIN, load("cubic"))), populations.as_recorded("theirs", PLAIN, "cubic")]
    ours, theirs = outcomes_of(paths, 100.0).wrong["bbr1"]
    assert np.any(ours != 0) and np.abs(ours[:3]).max() < 0.2
    assert np.all(theirs == 0)


def test_a_path_that_many_share_is_rehearsed_though_one_of_them_does_not_get_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tcpknee.whatif.surrogate._MOST_STEPS", 2)
    observed = recording(PLAIN, load(*["cubic"] * 12, seconds=3.0))
    (late, *_) = set(range(12)) - observed.telling
    flows = list(load_of(observed).flows)
    flows[late] = replace(flows[late], start_us=observed.horizon_us - 1000)
    hindered = replace(load_of(observed), flows=tuple(flows))
    best = Tried(PLAIN, "given", 0.0)
    one = judged(Fit(observed, hindered, Trial(observed, hindered), best, (best,)))
    assert isinstance(simulate(PLAIN, hindered)[late], Starved)
    (wrong,) = outcomes_of([one], 100.0).wrong["bbr1"]
    assert np.any(wrong != 0)


@pytest.mark.parametrize("count", [2, 10])
def test_a_transfer_that_was_under_way_is_simulated_from_its_own_begin(count: int) -> None:
    whole = recording(PLAIN, load(*["cubic"] * count, seconds=3.0))
    late = from_sample(4, whole.connections[-1])
    observed = replace(whole, connections=(*whole.connections[:-1], late))
    asked_for = load_of(observed)
    # None of the others was under way.
    assert asked_for.lead_us == late.busy_us[0]
    assert asked_for.flows[-1].start_us == late.t_us[0]
    again = simulate(PLAIN, asked_for)[-1]
    # Where its recording begins, the simulated one begins as well.
    assert isinstance(again, Series) and late.t_us[0] - 1e5 < again.t_us[0] < late.t_us[0] + 2e5 and not again.fresh


def test_a_transfer_that_was_under_way_for_longer_than_the_lead_ends_when_it_ended() -> None:
    whole = recording(PLAIN, load("cubic", workload='workload = "transfer"\nbytes = "6MB"', seconds=9.0))
    (series,) = whole.connections
    assert series.final
    late = from_sample(int(np.searchsorted(series.t_us, 4e6)), series)
    asked_for = load_of(replace(whole, connections=(late,)))
    (again,) = simulate(PLAIN, replace(asked_for, duration_us=asked_for.duration_us + 1e6))
    assert isinstance(again, Series) and again.final
    assert again.t_us[-1] == pytest.approx(late.t_us[-1], abs=0.4e6)
    assert again.acked == pytest.approx(late.acked, rel=0.1)


def test_a_transfer_whose_end_alone_was_seen_is_compared_only_if_all_are_such() -> None:
    pair = recording(PLAIN, load("cubic", "cubic"))
    first, second = pair.connections
    end, more = (from_sample(place, second) for place in (40, 10))
    assert end.only_its_end and not more.only_its_end and not replace(end, final=False).only_its_end
    assert replace(pair, connections=(first, end)).telling == {0}
    assert replace(pair, connections=(first, more)).telling == {0, 1}
    assert replace(pair, connections=(end, end)).telling == {0, 1}


def test_a_starved_connection_counts_with_what_it_delivered() -> None:
    (found,) = simulate(replace(PLAIN, loss_pct=80), load("cubic", seconds=1.0))
    assert isinstance(found, Starved) and 0 < found.goodput_bits_per_sec < 50_000
    whole = recording(PLAIN, load("cubic", "cubic")).connections
    before = np.array([predict.mean_of([series]) for series in whole])
    lives = np.log([whole_goodput_bits_per_sec(series) for series in whole])
    other, (goodput, *others) = predict._values([whole[1], found], predict._OfPath(before, lives))
    # Its recording has the whole life.
    assert goodput == pytest.approx(np.log(found.goodput_bits_per_sec))
    # Its queue is that of the other one.
    assert others == pytest.approx(list(before[1, 1:] + (other - before[0])[1:]))


def test_a_path_that_is_not_rehearsed_takes_the_error_of_one_like_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "MOST_REHEARSALS", 1)
    one, other = outcomes_of([known(PLAIN, load("cubic")) for _ in range(2)], 100.0).wrong["bbr1"]
    assert np.any(one != 0) and np.all(one == other)


def test_a_rehearsal_on_which_all_starve_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (known(PLAIN, load("cubic")) for _ in range(2))
    starving, every = [], predict.draws

    def drawn(one: Judged, rates: Others, buffers: Others, count: int, rng: np.random.Generator) -> list[Path]:
        if one is first and count == 1:
            starving.append(replace(PLAIN, loss_pct=90))
            return starving[-1:]
        return every(one, rates, buffers, count, rng)

    monkeypatch.setattr(predict, "draws", drawn)
    found = outcomes_of([first, second], 100.0)
    assert len(starving) == 3
    # It is not taken for one without an error: that of the other path stands for it.
    assert found.rehearsed_on.tolist() == [1, 1]
    one, other = found.wrong["bbr1"]
    assert np.any(one != 0) and np.all(one == other)
    # Where nothing was rehearsed, the draws alone tell.
    alone = outcomes_of([first], 100.0)
    assert np.all(alone.wrong["bbr1"] == 0)
    (told,) = predict.predictions(alone, ["bbr1"], [100.0], 1)
    rtt = told.everyone["srtt_us_p50"]
    assert rtt.low_here < rtt.value < rtt.high_here


def test_prefixes_share_a_bottleneck_and_names_stand_for_themselves() -> None:
    assert observation.prefix("192.0.2.77") == "192.0.2.0/24"
    assert observation.prefix("::ffff:192.0.2.77") == "192.0.2.0/24"
    assert observation.prefix("2001:db8:1:2::3") == "2001:db8:1::/48"
    assert observation.prefix("a91f") == "a91f"


def from_sample(place: int, series: Series) -> Series:
    """As if its recorder had begun there."""
    kept: dict[str, np.ndarray] = {
        name: value[place:] for name, value in vars(series).items() if isinstance(value, np.ndarray)
    }
    return replace(series, **kept, fresh=False, final=True)


def written(folder: File, observed: dict[str, Observed], algorithm: str | None = None) -> File:
    """A recording with those connections, by remote address."""
    rows: dict[str, list[object]] = {}
    for number, (address, path) in enumerate(observed.items()):
        for series in path.connections:
            for place in range(1, len(series.t_us)):
                row = {
                    "boot_id": "boot",
                    "cookie": number,
                    "remote_addr": address,
                    "algorithm": algorithm or series.algorithm,
                    "t_mono_ns": int(series.t_us[place] * 1e3),
                    "final": False,
                    "snd_mss_bytes": 1448,
                    "rwnd_limited_us": 0,
                    "delivery_rate_app_limited": bool(series.app_limited[place]),
                    **{
                        name: int(getattr(series, name)[place]) for name in (*observation.COUNTERS, *observation.GAUGES)
                    },
                }
                for name, value in row.items():
                    rows.setdefault(name, []).append(value)
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table(rows), folder / "sockets-000001.parquet")
    return folder


def test_a_begin_was_seen_though_the_first_ack_came_late(tmp_path: File) -> None:
    far = Path(8e6, 500_000, 400_000)
    observed = recording(far, replace(load("cubic"), interval_us=50_000))
    (path,) = observation.read([written(tmp_path / "rec", {"192.0.2.1": observed})]).paths
    (series,) = path.connections
    assert series.fresh and series.t_us[1] - series.t_us[0] > 500_000 > 2 * path.interval_us
    # In the second round trip it is none that began just now.
    cut = {"192.0.2.1": replace(observed, connections=(from_sample(3, observed.connections[0]),))}
    (path,) = observation.read([written(tmp_path / "late", cut)]).paths
    assert not path.connections[0].fresh


def test_a_recording_is_read_as_it_was_simulated(tmp_path: File) -> None:
    observed = recording(PLAIN, load("cubic"))
    found = observation.read([written(tmp_path / "rec", {"192.0.2.1": observed, "192.0.2.9": observed})])
    (path,) = found.paths
    assert path.key == "192.0.2.0/24" and len(path.connections) == 2
    assert path.interval_us == pytest.approx(100_000)
    before, after = (measured(series[0].connections[0]) for series in ([observed], [path]))
    assert after == pytest.approx(before, rel=0.02)
    assert path.connections[0].fresh


def test_connections_of_other_boots_or_namespaces_share_no_path(tmp_path: File) -> None:
    """Each boot has a clock of its own: that of the first was at 30 hours when the host began again."""
    folder = written(tmp_path / "rec", {"192.0.2.1": recording(PLAIN, load("cubic"))})
    (alone,) = observation.read([folder]).paths
    file = folder / "sockets-000001.parquet"
    rows = pq.read_table(file)
    parts = []
    for cookie, (boot, netns, hours) in enumerate((("a", "net:[1]", 30), ("b", "net:[1]", 0), ("b", "net:[2]", 0))):
        columns = {name: rows[name].to_pylist() for name in rows.column_names}
        columns["t_mono_ns"] = [t_ns + hours * 3_600_000_000_000 for t_ns in columns["t_mono_ns"]]
        same = {"boot_id": boot, "netns": netns, "cookie": cookie}
        parts.append(pa.table(columns | {name: [value] * rows.num_rows for name, value in same.items()}))
    pq.write_table(pa.concat_tables(parts), file)
    found = observation.read([folder])
    assert [path.key for path in found.paths] == [
        "192.0.2.0/24 of a net:[1]",
        "192.0.2.0/24 of b net:[1]",
        "192.0.2.0/24 of b net:[2]",
    ]
    assert (found.connections, found.late, found.cut) == (3, 0, 0)
    assert [path.horizon_us for path in found.paths] == pytest.approx([alone.horizon_us] * 3)
    pq.write_table(parts[0], file)
    assert observation.read([folder]).paths[0].key == "192.0.2.0/24"


def test_what_is_left_out_of_a_path_that_carried_much_is_counted(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = recording(PLAIN, load("cubic", "cubic", starts=(0.0, 4e6)))
    first = pair.connections[0].segments
    monkeypatch.setattr(observation, "MOST_SEGMENTS", first / 2)
    apart = {f"192.0.2.{number}": replace(pair, connections=(one,)) for number, one in enumerate(pair.connections)}
    found = observation.read([written(tmp_path / "rec", apart)])
    (path,) = found.paths
    assert (found.connections, found.short, found.late, found.cut) == (2, 0, 1, 1)
    assert sum(series.segments for series in path.connections) == pytest.approx(first / 2, rel=0.05)
    whole = observation.Recording((), 2, 0)
    assert "came later" in "".join(render.lines(found, FIT_TOLD, [], []))
    assert "came later" not in "".join(render.lines(whole, FIT_TOLD, [], []))


def test_a_run_is_read_as_paths_of_its_cells(small_run: File) -> None:
    found = observation.read([small_run])
    assert found.connections == 6
    assert {series.algorithm for path in found.paths for series in path.connections} == {"cubic", "bbr1"}
    assert len(found.chosen(2, 1).paths) == 2


def test_transfers_of_a_run_end_and_bulk_does_not(tmp_path: File) -> None:
    flow = '[[flow]]\nalgorithm = "cubic"\n'
    text = (
        'duration = "4s"\nsample_interval = "50ms"\n[path]\nrate = "20Mbit/s"\nrtt = "40ms"\n'
        f'{flow}{flow}workload = "transfer"\nbytes = "2MB"\n'
    )
    api.run(text, out=tmp_path / "run")
    (path,) = observation.read([tmp_path / "run"]).paths
    assert [series.final for series in path.connections] == [False, True]
    bulk, transfer = load_of(path).flows
    assert "transfer" not in bulk.workload and "transfer" in transfer.workload


def test_what_says_nothing_is_refused(tmp_path: File) -> None:
    short = recording(PLAIN, load("cubic"))
    cut: dict[str, np.ndarray] = {
        name: value[:5] for name, value in vars(short.connections[0]).items() if isinstance(value, np.ndarray)
    }
    few = Observed("few", (replace(short.connections[0], **cut),), 100_000)
    with pytest.raises(UsageError, match="got 1 connections, none with 8 samples"):
        observation.read([written(tmp_path / "short", {"192.0.2.1": few})])
    pq.write_table(pa.table({"x": [1]}), tmp_path / "things-000001.parquet")
    with pytest.raises(UsageError, match="expected sockets, of a recording, or samples"):
        observation.read([tmp_path])


def test_pantheons_paths_and_ibox_profiles_are_populations(tmp_path: File) -> None:
    pantheon = dict(populations.named("pantheon"))
    assert len(pantheon) == 6
    assert pantheon["AWS Korea to China"] == Path(77.72e6, 102_000, 94 * 1500, 0.06)
    uplink = {"bottleneck_bandwidth": 3000, "propagation_delay": 80, "buffer_size_bytes": 90_000}
    profile = tmp_path / "here" / "network-profile-1.json"
    profile.parent.mkdir()
    profile.write_text(json.dumps({"config": {"uplink": {**uplink, "cross_traffic_pattern": [0, 600]}}}))
    assert populations.is_ibox(tmp_path)
    assert populations.ibox(tmp_path) == [
        ("here/network-profile-1.json", Path(3e6, 80_000, 90_000, hidden_load_bits_per_sec=300_000))
    ]
    profile.write_text(json.dumps({"config": {"uplink": uplink}}))
    with pytest.raises(UsageError, match="KeyError: 'cross_traffic_pattern'; expected a profile of iBox"):
        populations.ibox(tmp_path)
    impossible = {
        "propagation_delay": "-10",
        "buffer_size_bytes": '"many"',
        "bottleneck_bandwidth": "1" * 400,
        "cross_traffic_pattern": "[NaN]",
    }
    for key, value in impossible.items():
        fields = {**dict.fromkeys(uplink, "1"), "cross_traffic_pattern": "[1]", key: value}
        text = ", ".join(f'"{name}": {told}' for name, told in fields.items())
        profile.write_text(f'{{"config": {{"uplink": {{{text}}}}}}}')
        with pytest.raises(UsageError, match=r"network-profile-1\.json: got .*none of them negative"):
            populations.ibox(tmp_path)
    profile.write_text('{"config": ' + "[" * 100_000)
    with pytest.raises(UsageError, match="maximum recursion depth exceeded"):
        populations.ibox(tmp_path)


def test_the_fitted_paths_are_a_table_that_a_scenario_reads(tmp_path: File) -> None:
    one = judged(fitted(PLAIN, load("cubic")))
    best = replace(one.fit.best, path=replace(PLAIN, policer_rate_bits_per_sec=3e6, policer_burst_bytes=50_000))
    policed = replace(one, fit=replace(one.fit, best=best))
    (tmp_path / "paths.csv").write_text(request.paths_csv([one, policed]))
    text = 'duration = "1s"\n[[flow]]\nalgorithm = "bbr1"\n[[sample]]\nfile = "paths.csv"\n'
    assert len(api.parse(text, str(tmp_path / "s.toml")).cells) == 2


def test_the_command_predicts_and_writes(call: Call, tmp_path: File) -> None:
    folder = written(tmp_path / "rec", {"192.0.2.1": recording(PLAIN, load("cubic"))})
    out = tmp_path / "out"
    ended = call("whatif", folder, "--algorithms", "bbr1", "--adoption", "100", "--json", "--out", out, "-q")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    (prediction,) = found["predictions"]
    assert prediction["algorithm"] == "bbr1" and prediction["adoption_pct"] == 100
    assert set(prediction["everyone"]["goodput_bits_per_sec"]) == {
        "value",
        "low",
        "high",
        "low_here",
        "high_here",
        "naive",
    }
    assert json.loads((out / "whatif.json").read_text()) == found
    assert (out / "paths.csv").read_text().startswith("path.rate,path.rtt,path.buffer")


def test_two_processes_predict_the_same_and_tell_how_far_they_are(tmp_path: File) -> None:
    observed = recording(PLAIN, load("cubic", seconds=2.0))
    folder = written(tmp_path / "rec", {"192.0.2.1": observed, "198.51.100.1": observed})
    one = request.Question((str(folder),), ("bbr1",), (100.0,), 200, 1, "cubic", 1)
    said: list[str] = []
    assert request.answered(replace(one, workers=2), progress=said.append) == request.answered(one)
    assert said == [
        f"{title}: {done} of 2 done" for title in ("Fitting paths", "Simulating algorithms on them") for done in (1, 2)
    ]


def test_a_cluster_predicts_the_same(tmp_path: File) -> None:
    folder = written(tmp_path / "rec", {"192.0.2.1": recording(PLAIN, load("cubic"))})
    here = request.Question((str(folder),), ("bbr1",), (100.0,), 200, 1, "cubic", 1)
    with dask(tmp_path / "dask") as found:
        there = replace(here, cluster=found.address)
        assert request.answered(here) == request.answered(there)


def test_the_command_refuses_what_it_cannot_answer(call: Call, tmp_path: File, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = held_back()
    folder = written(tmp_path / "rec", {"192.0.2.1": limited})
    monkeypatch.setattr(render, "GOOD_MISFIT", -1.0)
    refused(call("whatif", folder, "--algorithms", "bbr1", "-q"), "nothing can be predicted from this recording", "rec")
    monkeypatch.undo()
    refused(call("whatif", folder, "--algorithms", "bbr9"), '--algorithms: got "bbr9"', "bbr1")
    refused(call("whatif", folder, "--algorithms", "bbr1", "--adoption", "0"), '--adoption: got "0"')
    both = ("--cluster", "tls://10.0.0.5:8786", "--workers", "2")
    refused(call("whatif", folder, "--algorithms", "bbr1", *both), "got --workers and --cluster; expected one of them")
    refused(call("whatif", folder, "pantheon", "--algorithms", "bbr1"), "expected recordings, or paths")
    foreign = written(tmp_path / "foreign", {"192.0.2.1": limited}, "wonderful")
    refused(call("whatif", foreign, "--algorithms", "bbr1"), "wonderful", "expected algorithms that the simulator has")


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_file_is_predicted_as_the_same_algorithm_of_ours_and_named_when_it_crashes(
    call: Call, tmp_path: File
) -> None:
    file = tmp_path / "😀d" / "mine.c"
    file.parent.mkdir()
    text = outline.of("mine")
    file.write_text(text, encoding="utf-8")
    words = ("pantheon", "--paths", "1", "--adoption", "100", "--workers", "1", "-q")
    asked = ("--algorithms", f"{file},reno")
    of_file, of_ours = (
        one["everyone"] for one in json.loads(call("whatif", *words, *asked, "--json").out)["predictions"]
    )
    assert of_file == of_ours
    grow = "cc_reno_cong_avoid(in, out, acked);"
    file.write_text(text.replace(grow, "out->snd_cwnd += acked / (in->lost + s->hystart);"), encoding="utf-8")
    crashed = call("whatif", *words, *asked)
    assert (crashed.code, crashed.out) == (2, "")
    assert crashed.err.endswith("on a path that was fitted\n") and "mine divides by zero in cong_avoid" in crashed.err
    cluster = ("--cluster", "tls://10.0.0.5:8786")
    refused(call("whatif", "pantheon", *asked, *cluster), "expected algorithms of ours there")


def test_a_table_of_series_has_one_length() -> None:
    (series,) = recording(PLAIN, load("cubic")).connections
    arrays = [value for value in vars(series).values() if isinstance(value, np.ndarray)]
    assert len(arrays) == 11 and {len(array) for array in arrays} == {len(series.t_us)}
    assert isinstance(series, Series)
