"""How comparisons in real time are laid out: the order of blocks, drift of the path, and ends before the last block."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tcpknee import _core
from tcpknee.errors import UsageError
from tcpknee.evidence import blocks
from tcpknee.evidence.stats import LEAST_TO_LOOK, Unit
from tcpknee.evidence.verdicts import Pair, Side, Verdict, compare
from tcpknee.pages import summary
from tcpknee.pages.run import ReportRun
from tcpknee.runs import api, drift, ending, engines, looking, output, pool, tables
from tcpknee.runs.ending import Ending
from tcpknee.runs.folder import RunFolder
from tcpknee.runs.looking import Looking

BLOCK = Unit("block", "blocks")


def test_a_linear_drift_cancels() -> None:
    """Over two blocks in a row each member has the same mean time, so that what grows evenly is the same for all."""
    for members, seed in ((2, 1), (3, 7), (8, 1 << 62)):
        for pair in range(20):
            ranks = np.zeros(members)
            for block in (2 * pair, 2 * pair + 1):
                drawn = blocks.order(members, block, seed)
                assert sorted(drawn) == list(range(members))
                for place, member in enumerate(drawn):
                    ranks[member] += block * members + place
            assert len(set(ranks.tolist())) == 1


def test_ratios_keep_the_square_of_a_linear_drift() -> None:
    """As docs/hosts.md says: 0.04 % of 2 % from run to run."""
    logs = np.zeros(2)
    for place, member in enumerate(blocks.order(2, 0, 1) + blocks.order(2, 1, 1)):
        logs[member] += np.log1p(0.02 * place) / 2
    assert abs(np.diff(logs)[0]) == pytest.approx(0.0004, rel=0.1)


def test_orders_are_drawn_from_the_seed() -> None:
    def orders(seed: int) -> list[list[int]]:
        return [blocks.order(4, block, seed) for block in range(40)]

    assert orders(1) == orders(1) != orders(2)
    firsts = [drawn[0] for seed in range(50) for drawn in orders(seed)]
    assert min(firsts.count(member) for member in range(4)) > 0.8 * len(firsts) / 4
    # As it was on the day it was made, on every machine.
    assert orders(1)[:2] == [[3, 0, 2, 1], [1, 2, 0, 3]]


def test_repetitions_in_real_time_come_in_blocks() -> None:
    every = pool.order(3, 4, seed=5)
    assert [rep for _, rep in every] == [rep for rep in range(4) for _ in range(3)]
    assert [cell for cell, rep in every if rep == 1] == [cell for cell, rep in every if rep == 0][::-1]
    # What goes on goes on in the same order.
    assert pool.order(3, 4, kept=every[:5], seed=5) == every[5:]


def _verdict(left: list[float], right: list[float], *, looking: bool = False) -> Verdict:
    name = "goodput_bits_per_sec"
    sides = [Side(label, np.arange(len(one)), {name: np.array(one)}) for label, one in (("a", left), ("b", right))]
    [found] = compare([Pair(*sides, (name,), False, (0, 1), {})], BLOCK, looking=looking)
    return found


def _aa(measure: Callable[[float], float], count: int, seed: int) -> tuple[list[float], list[float]]:
    """Two members that are the same, in blocks; `measure` at a place of the run from 0 to 1."""
    found: tuple[list[float], list[float]] = ([], [])
    for block in range(count):
        for place, member in enumerate(blocks.order(2, block, seed)):
            found[member].append(measure((2 * block + place + 0.5) / (2 * count)))
    return found


def _changing(rng: np.random.Generator) -> Callable[[float], float]:
    """A path whose rate falls or rises by 20 % somewhere in the middle half, with 2 % of noise."""
    at, after = rng.uniform(0.25, 0.75), rng.choice((0.8, 1.2))
    return lambda when: float((after if when >= at else 1.0) * np.exp(0.02 * rng.standard_normal()))


def test_a_path_that_changes_makes_no_difference_of_equals() -> None:
    """In 100 runs of one algorithm against itself, at most 5 % are wrong; one half after the other would be always."""
    wrong = apart = told = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        left, right = _aa(_changing(rng), 12, seed)
        wrong += _verdict(left, right).decision != "none shown"
        told += blocks.drifts({"goodput": np.sqrt(np.array(left) * np.array(right))})[0].shown
        changing = _changing(rng)
        halves = [[changing((half + place / 12) / 2) for place in range(12)] for half in (0, 1)]
        apart += _verdict(*halves).decision != "none shown"
    assert wrong <= 5
    assert told >= 90, told
    assert apart >= 90


def test_looking_after_each_block_stays_right() -> None:
    """The same where each block may be the last one, once the interval is decided."""
    wrong = 0
    for seed in range(100):
        left, right = _aa(_changing(np.random.default_rng(seed)), 40, seed)
        for n in range(LEAST_TO_LOOK, 41):
            found = _verdict(left[:n], right[:n], looking=True)
            if found.decision in ("more", "less"):
                wrong += 1
            if found.decision in ("more", "less") or not found.too_wide:
                break
    assert wrong <= 5


@pytest.mark.long
def test_simulated_paths_that_change_make_no_difference_of_equals() -> None:
    """The same with the simulator in the place of the path: 100 runs of ten blocks, each repetition with chance of its
    own."""
    wrong = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        at, after = rng.uniform(0.25, 0.75), rng.choice((0.8, 1.2))

        def measure(when: float, rng: np.random.Generator = rng, at: float = at, after: float = after) -> float:
            rate = 20e6 * (after if when >= at else 1.0)
            text = (
                f'duration = "2s"\nwarmup = "500ms"\nseed = {rng.integers(1 << 31)}\n[path]\nrate = "{rate:.0f}bit/s"\n'
                'rtt = "20ms"\nloss = "0.2%"\n[[flow]]\nalgorithm = "cubic"\n'
            )
            flows = tables.as_table(_core.parse(text, "aa.toml").run_cell(0, 0).flows)
            return float(flows["goodput_bits_per_sec"][0].as_py())

        wrong += _verdict(*_aa(measure, 10, seed)).decision != "none shown"
    assert wrong <= 5


def test_drift_finds_steps_and_slopes() -> None:
    rng = np.random.default_rng(3)
    noise = np.exp(0.03 * rng.standard_normal(16))
    step = np.where(np.arange(16) < 9, 1.0, 0.8)
    [found] = blocks.drifts({"rate": step * noise})
    assert found.shown and found.after == 9 and found.change == pytest.approx(0.8, rel=0.05)
    [slope] = blocks.drifts({"rate": np.linspace(1, 1.3, 16) * noise})
    assert slope.shown and slope.change > 1
    assert not blocks.drifts({"rate": step[:7]}), "fewer blocks tell nothing"
    gaps = np.r_[step, np.full(4, np.nan)]
    assert blocks.drifts({"rate": gaps})[0].blocks == 16
    less = {"rate": step[:9], "rtt": noise[:9]}
    assert not blocks.drifts(less), "9 blocks are too few for two quantities"
    assert [one.what for one in blocks.drifts({**less, "loss": noise})] == ["loss"], "what has enough of them is told"


@pytest.mark.parametrize("of", [1, 2, 6, 7, 23])
def test_the_least_number_of_blocks_can_show_a_drift(of: int) -> None:
    n = blocks.least_to_tell(of)
    assert n == {1: 8, 2: 10, 6: 10, 7: 12, 23: 12}[of]
    found = blocks.drifts({f"quantity {number}": np.arange(float(n)) for number in range(of)})
    assert len(found) == of and all(one.shown for one in found)


def test_a_drift_from_zero_is_told() -> None:
    """Ranks need no positive values; a multiple of 0 there is none."""
    loss = np.r_[np.zeros(8), np.full(8, 5.0)]
    [found] = blocks.drifts({"loss": loss})
    assert found.shown and found.after == 8 and found.more and found.change is None
    assert found.json()["change_pct"] is None
    [found] = blocks.drifts({"loss": loss[::-1]})
    assert found.shown and not found.more and found.change == 0


class _Group:
    """What drift asks of a group."""

    workload = "bulk"

    def __init__(self, goodputs: list[float]) -> None:
        self.reps = np.arange(len(goodputs))
        self.values = {"goodput_bits_per_sec": np.array(goodputs), "min_rtt_us": np.full(len(goodputs), np.nan)}
        self.metrics = dict.fromkeys(self.values)


def test_a_group_that_got_nothing_in_a_block_counts_too() -> None:
    groups = [_Group([4.0] * 6 + [0.0] * 6), _Group([4.0] * 12), _Group([np.nan] + [4.0] * 11)]
    run: Any = SimpleNamespace(meta={"engine": "kernel"}, summary=SimpleNamespace(groups=groups))
    run.drifts = drift.of_run(run)
    [line] = drift.lines(run)
    assert "goodput is 0.500× after block 5 of 11" in line, "the first block is one that a group lacks"
    for group in groups:
        group.reps, group.values = group.reps[:5], {name: some[:5] for name, some in group.values.items()}
    run.drifts = drift.of_run(run)
    assert list(drift.lines(run)) == ["Drift of the path: not told by 5 blocks of goodput; by 8 and more it is."]


def test_a_steady_path_is_said_to_drift_in_few_runs() -> None:
    """At most 5 %, of several quantities together; by shuffles and by the limit for many blocks."""
    for count, runs in ((12, 150), (450, 150)):
        wrong = 0
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            series = {what: np.exp(rng.standard_normal(count)) for what in ("rate", "rtt", "loss")}
            wrong += any(one.shown for one in blocks.drifts(series))
        assert wrong <= 0.05 * runs + 2 * np.sqrt(0.05 * 0.95 * runs)


CELLS = [
    {
        "index": index,
        "axes": [("flow.0.algorithm", name)],
        "duration_ns": 10**9,
        "warmup_ns": 0,
        "flows": [{"group": 0, "name": name, "algorithm": name, "workload": "bulk", "count": 1}],
    }
    for index, name in enumerate(("cubic", "reno"))
]


@pytest.fixture(scope="module")
def rows() -> Callable[[int, int, float], pa.Table]:
    """A row of `flows`, of a real one with another goodput."""
    text = 'duration = "200ms"\n[path]\nrate = "20Mbit/s"\nrtt = "10ms"\n[[flow]]\nalgorithm = "cubic"\n'
    real = tables.as_table(_core.parse(text, "a.toml").run_cell(0, 0).flows).to_pylist()[0]
    schema = tables.as_table(_core.parse(text, "a.toml").run_cell(0, 0).flows).schema

    def row(cell: int, rep: int, goodput: float) -> pa.Table:
        name = CELLS[cell]["flows"][0]["name"]  # type: ignore[index]
        told = {"cell": cell, "rep": rep, "goodput_bits_per_sec": goodput, "name": name, "algorithm": name}
        return pa.Table.from_pylist([{**real, **told, "bytes_sent": 1_000_000}], schema=schema)

    return row


def _looked(
    asked: Ending,
    rows: Callable[[int, int, float], pa.Table],
    better: float,
    noise: float,
    path_bytes: float = 0.0,
) -> Looking:
    rng = np.random.default_rng(1)
    note = {"data_packets": 1, "lab": {"measured": {"path_bytes": path_bytes}}}
    looks = Looking(asked, CELLS)
    for block in looks.blocks(pool.order(2, 60, seed=1)):
        for cell, rep in block:
            goodput = 1e7 * (better if cell else 1.0) * np.exp(noise * rng.standard_normal())
            looks.take((cell, rep), tables.with_note({"flows": rows(cell, rep, float(goodput))}, note))
    return looks


def test_a_run_ends_when_it_is_decided(rows: Callable[[int, int, float], pa.Table]) -> None:
    decided = Ending(until_decided=True)
    told = _looked(decided, rows, 1.3, 0.02).told()
    assert (told["by"], told["blocks"]) == ("decided", LEAST_TO_LOOK)
    told = _looked(decided, rows, 1.0, 0.02).told()
    assert (told["by"], told["blocks"]) == ("decided", LEAST_TO_LOOK), "so narrow that no difference of 5 % is left"
    later = _looked(decided, rows, 1.0, 0.09).told()
    assert later["by"] == "decided" and LEAST_TO_LOOK < later["blocks"] < 60
    assert _looked(decided, rows, 1.0, 0.6).told()["by"] == "repeat"


def test_a_budget_is_kept(rows: Callable[[int, int, float], pa.Table]) -> None:
    looks = _looked(Ending(budget="1h,9MB"), rows, 1.0, 0.1)
    assert (looks.by, looks.told()["blocks"]) == ("bytes", 4), "a fifth block would end at 10 MB"
    # What an earlier session sent counts, too.
    again = Looking(looks.ending, CELLS)
    for key, found in looks.kept.items():
        again.take(key, found)
    assert list(again.blocks(pool.order(2, 60, looks.kept, seed=1))) == []
    assert again.by == "bytes"
    short = _looked(Ending(budget="1ns"), rows, 1.0, 0.1)
    assert (short.by, short.told()["blocks"]) == ("time", 0)
    meta = {"ending": looks.told(), "repeat": 60}
    assert ending.text(meta) == "Ended after 4 blocks of up to 60: the budget of bytes is used up."


def test_a_block_that_an_earlier_session_began_is_finished(rows: Callable[[int, int, float], pa.Table]) -> None:
    looks = _looked(Ending(budget="9MB"), rows, 1.0, 0.1)
    last = next(key for key in looks.kept if key[1] == 3)
    again = Looking(Ending(budget="8MB"), CELLS)
    for key, found in looks.kept.items():
        if key != last:
            again.take(key, found)
    assert list(again.blocks(pool.order(2, 60, again.kept, seed=1))) == [[last]]
    assert again.by == "bytes"


def test_a_budget_counts_what_measuring_the_path_sends(
    rows: Callable[[int, int, float], pa.Table], tmp_path: Path
) -> None:
    looks = _looked(Ending(budget="9MB"), rows, 1.0, 0.1, path_bytes=500_000.0)
    assert (looks.by, looks.told()["blocks"]) == ("bytes", 3), "a fourth block would end at 12 MB"
    # Of an earlier session as well.
    folder = RunFolder.create(tmp_path / "run")
    again = Looking(looks.ending, CELLS)
    for key, found in looks.kept.items():
        folder.write_part(key, found)
        again.take(key, folder.read_part(key, looking.TABLES))
    assert list(again.blocks(pool.order(2, 60, looks.kept, seed=1))) == []
    assert again.by == "bytes"


def test_a_run_pauses_between_blocks_and_neither_before_nor_after(
    rows: Callable[[int, int, float], pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    paused: list[float] = []
    monkeypatch.setattr(looking.time, "sleep", paused.append)
    assert _looked(Ending(pause="1min"), rows, 1.0, 0.1).told() == {
        "until_decided": False,
        "budget": "",
        "pause": "1min",
        "by": "repeat",
        "blocks": 60,
    }
    assert [pause for pause in paused if pause] == [60.0] * 59
    short = _looked(Ending(pause="1min", budget="59s"), rows, 1.0, 0.1)
    assert (short.by, short.told()["blocks"]) == ("time", 1), "a second block would end later, for its pause"
    keys = pool.order(2, 3, seed=1)
    plain, pausing = (engines.real_seconds(CELLS, keys, 1, pause_sec) for pause_sec in (0.0, 60.0))
    assert pausing - plain == 120


@pytest.mark.parametrize(
    ("asked", "engine", "repeat", "words"),
    [
        (Ending(pause="2h"), "kernel", 5, "pause: got 2h; expected 1h at most"),
        (Ending(pause="1s"), "guest", 5, "pause: got it with the engine guest; expected one in real time"),
        (Ending(budget="10min"), "sim", 5, "budget: got it with the engine sim; expected one in real time"),
        (Ending(until_decided=True), "kernel", 5, "until_decided: got 5 repetitions; expected 16"),
        (Ending(budget="5GB,6GB"), "kernel", 5, 'budget: got "5GB,6GB"; expected a time, a size, or one of each'),
        (Ending(budget="lots"), "kernel", 5, 'budget: got "lots"; expected a time such as 10min'),
        (Ending(budget="1s"), "kernel", 5, "budget: got 1 s; expected 5 s or more"),
    ],
)
def test_what_cannot_end_a_run_is_refused(asked: Ending, engine: str, repeat: int, words: str) -> None:
    with pytest.raises(UsageError) as error:
        looking.check(asked, engine, CELLS, repeat, 0)
    assert words in str(error.value)


def test_what_a_run_was_begun_with_holds_where_a_later_session_asks_for_nothing_else() -> None:
    begun = Ending(until_decided=True, budget="10min", pause="1s")
    assert Ending().over(begun) == begun and begun.over(Ending()) == begun
    assert Ending(budget="20min").over(begun) == Ending(until_decided=True, budget="20min", pause="1s")
    assert Ending(pause="2s").over(begun) == Ending(until_decided=True, budget="10min", pause="2s")


def test_a_resumed_run_keeps_the_rest_of_its_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "in_real_time", lambda name: True)
    monkeypatch.setattr(engines, "default_workers", lambda name: 1)
    text = 'duration = "300ms"\nrepeat = 16\n[path]\nrate = "20Mbit/s"\nrtt = "10ms"\n[[flow]]\nalgorithm = "cubic"\n'
    executed = pool.execute

    def interrupted(engine: Any, keys: list[tuple[int, int]], *words: Any, **named: Any) -> Any:
        if keys[0][1] == 1:
            raise KeyboardInterrupt
        return executed(engine, keys, *words, **named)

    monkeypatch.setattr(Looking, "take", lambda *_: None)
    monkeypatch.setattr(pool, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        api.run(text, out=tmp_path / "run", until_decided=True, budget="1h")
    monkeypatch.setattr(pool, "execute", executed)
    told = api.run(out=tmp_path / "run", resume=True, budget="2MB").meta["ending"]
    assert (told["until_decided"], told["budget"]) == (True, "2MB")


def test_budgets_are_read() -> None:
    assert Ending(budget="10min,5GB").most == (600.0, 5e9)
    assert Ending(budget="1.5GiB").most == (None, 1.5 * 2**30)
    assert not Ending() and Ending(budget="10min") and Ending(pause="1s")
    assert Ending.of_stored({"until_decided": False, "budget": "", "pause": "1s"}).pause_sec == 1


def test_an_interval_of_looking_is_wider_and_begins_late() -> None:
    rng = np.random.default_rng(2)
    left, right = (np.exp(0.05 * rng.standard_normal(30)).tolist() for _ in "ab")
    for n, same in ((LEAST_TO_LOOK - 1, True), (LEAST_TO_LOOK, False)):
        plain, looked = (_verdict(left[:n], right[:n], looking=looking) for looking in (False, True))
        assert (plain.found == looked.found) == same
    assert looked.low is not None and plain.low is not None and looked.low < plain.low
    assert "would" not in looked.text, "how many blocks it takes, the run finds out"


def test_a_run_ends_by_its_budget_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way, with the simulator as an engine in real time."""
    monkeypatch.setattr(engines, "in_real_time", lambda name: True)
    monkeypatch.setattr(engines, "default_workers", lambda name: 1)
    text = 'duration = "300ms"\nrepeat = 12\n[path]\nrate = "20Mbit/s"\nrtt = "10ms"\nloss = "0.5%"\n[[flow]]\n'
    run = api.run(text + 'algorithm = ["cubic", "reno"]\n', budget="1h,10MB")
    assert run.meta["ending"]["by"] == "bytes"
    blocks_done = run.meta["ending"]["blocks"]
    assert 2 < blocks_done < 12
    cells = run.flows.arrow()["cell"].to_pylist()
    assert cells.count(0) == cells.count(1) == blocks_done
    told = "\n".join(output.lines(run))
    assert f"{blocks_done} repetitions, seed 1" in told
    assert f"Ended after {blocks_done} blocks of up to 12: the budget of bytes is used up." in told
    assert "Drift of the path: " in told
    assert output.as_json([run])["runs"][0]["ending"] == run.meta["ending"]
    assert any("the budget of bytes is used up" in line for line in summary.warnings(ReportRun(run)))
    with pytest.raises(UsageError, match="until_decided: got a scenario with"):
        expected = '[[expect]]\nassert = "cubic.goodput > reno.goodput"\n'
        api.run(text.replace("12", "20") + f'algorithm = ["cubic", "reno"]\n{expected}', until_decided=True)
