"""`knee diff`: cells and repetitions of two runs, paired or apart, and what it refuses."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from scipy import stats as scipy_stats

import tcpknee
from support import SMALL
from tcpknee import pages
from tcpknee.cli.app import app
from tcpknee.errors import UsageError
from tcpknee.evidence import stats
from tcpknee.evidence.metrics import BY_NAME
from tcpknee.evidence.verdicts import Pair, Side, Verdict, compare
from tcpknee.runs import differences, differences_text
from tcpknee.runs.results import Run
from tcpknee.runs.summary import REPETITION

Made = Callable[..., Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The folder of a run of `SMALL` with some of its text replaced, by its name."""
    folder = tmp_path_factory.mktemp("diff")

    def run(name: str, *changes: tuple[str, str]) -> Path:
        out = folder / name
        if not out.exists():
            text = SMALL
            for old, new in changes:
                assert old in text
                text = text.replace(old, new)
            tcpknee.run(text, out=out, workers=1)
        return out

    return run


@pytest.fixture(scope="module")
def alone(made: Made) -> list[Path]:
    """Runs of cubic and of bbr1 by itself, with repetitions enough to tell them apart."""
    repeats = ("repeat = 3", "repeat = 5")
    return [made(name, ('["cubic", "bbr1"]', f'"{name}"'), repeats) for name in ("cubic", "bbr1")]


def knee(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["diff", *map(str, words)])


def refused(*words: str | Path) -> str:
    """What the command says when it refuses."""
    found = knee(*words)
    assert found.exception is not None
    return str(found.exception) if isinstance(found.exception, UsageError) else found.output


def apart(left: list[float], right: list[float], metric: str = "goodput_bits_per_sec") -> Verdict:
    sides = [Side(name, np.arange(len(v)), {metric: np.array(v)}) for name, v in (("a", left), ("b", right))]
    [verdict] = compare([Pair(*sides, (metric,), False, (0, 0), {}, apart=True)], REPETITION)
    return verdict


def test_samples_apart_have_the_interval_of_welch() -> None:
    left, right = [2.0, 2.5, 1.8, 2.2], [2.4, 2.9, 2.6]
    expected = scipy_stats.ttest_ind(np.log(right), np.log(left), equal_var=False).confidence_interval(0.95)
    found = apart(left, right)
    assert (found.low, found.high) == pytest.approx((np.exp(expected.low), np.exp(expected.high)))
    assert found.value == pytest.approx(np.exp(np.mean(np.log(right)) - np.mean(np.log(left))))
    with_zero = apart([0.0, *left], right)
    expected = scipy_stats.ttest_ind(right, [0.0, *left], equal_var=False).confidence_interval(0.95)
    assert with_zero.scale == "difference"
    assert (with_zero.low, with_zero.high) == pytest.approx((expected.low, expected.high))


def test_samples_apart_do_not_pair_what_happens_to_stand_beside() -> None:
    """Each is 10 % above its neighbour, which shows nothing where neighbours have nothing in common."""
    left = [1.0, 3.0, 10.0, 5.0]
    assert apart(left, [1.1 * value for value in left]).decision == "none shown"


def test_one_repetition_on_either_side_is_no_verdict() -> None:
    assert apart([1.0, 1.1, 1.2], [2.0]).decision == apart([2.0], [1.0, 1.1]).decision == "single"


def test_constants_apart_are_the_same_or_differ_without_an_interval() -> None:
    assert apart([2.0, 2.0], [2.0, 2.0, 2.0]).decision == "same"
    found = apart([2.0, 2.0], [3.0, 3.0])
    assert found.decision == "more" and found.low == found.high == pytest.approx(1.5)
    # One side's scatter is the interval's.
    known = stats.estimate(np.log([3.0, 3.3, 3.1]))
    assert known is not None and known.low is not None
    assert apart([2.0] * 9, [3.0, 3.3, 3.1]).low == pytest.approx(np.exp(known.low) / 2)


@pytest.mark.parametrize(
    ("metric", "word"),
    [
        ("goodput_bits_per_sec", "better"),
        ("srtt_us_p95", "worse"),
        ("completion_us_p50", "worse"),
        ("snd_cwnd_mean", "higher"),
    ],
)
def test_more_is_better_worse_or_neither_by_the_metric(metric: str, word: str) -> None:
    opposite = {"better": "worse", "worse": "better", "higher": "lower"}[word]
    assert apart([1.0, 1.01], [2.0, 2.01], metric).word == word
    assert apart([2.0, 2.01], [1.0, 1.01], metric).word == opposite


def test_a_run_beside_itself_is_the_same_in_everything(made: Made) -> None:
    run = made("before")
    found = tcpknee.diff(run, run)
    assert found.paired and {verdict.decision for verdict in found.verdicts} == {"same"}
    assert not found.differing and found.only == ([], [])
    # Two groups, and a whole cell each.
    assert [one.label for one in found.compared] == ["cubic", "all flows", "bbr1", "all flows"]


def test_repetitions_of_one_seed_and_engine_are_paired(made: Made) -> None:
    found = tcpknee.diff(
        made("before"), made("slower", ('rate = "10Mbit/s"', 'rate = "8Mbit/s"')), ["path.rate", "path.buffer"]
    )
    assert found.paired
    cubic = found.compared[0]
    left, right = (one.values["goodput_bits_per_sec"] for one in (cubic.a, cubic.b))
    expected = scipy_stats.ttest_rel(np.log(right), np.log(left)).confidence_interval(0.95)
    verdict = next(one for one in cubic.verdicts if one.metric == "goodput_bits_per_sec")
    assert (verdict.low, verdict.high) == pytest.approx((np.exp(expected.low), np.exp(expected.high)))


def test_runs_of_two_seeds_are_samples_apart_and_said_to_be(made: Made) -> None:
    before, other = made("before"), made("seeded", ("seed = 7", "seed = 8"))
    found = tcpknee.diff(before, other)
    assert not found.paired
    cubic = found.compared[0]
    left, right = (one.values["goodput_bits_per_sec"] for one in (cubic.a, cubic.b))
    expected = scipy_stats.ttest_ind(np.log(right), np.log(left), equal_var=False).confidence_interval(0.95)
    verdict = next(one for one in cubic.verdicts if one.metric == "goodput_bits_per_sec")
    assert (verdict.low, verdict.high) == pytest.approx((np.exp(expected.low), np.exp(expected.high)))
    assert "Not paired, as the runs are of two seeds" in knee(before, other).output


def test_scenarios_that_differ_are_refused_with_the_keys_that_differ(made: Made) -> None:
    before, lossier = made("before"), made("lossier", ('loss = "1%"', 'loss = "2%"'))
    for words in ([before, lossier], [before, lossier, "--report"]):
        said = refused(*words)
        assert "path.loss (1%; 2%)" in said and "--varying path.loss" in said
    assert "warmup" not in said and "bdp" not in said
    assert not (lossier / "diff.html").exists()


def test_keys_that_may_differ_are_named_and_told(made: Made) -> None:
    before, lossier = made("before"), made("lossier", ('loss = "1%"', 'loss = "2%"'))
    found = knee(before, lossier, "--varying", "path.loss")
    assert found.exit_code == 0
    assert "The scenarios differ in path.loss: 1% in A, 2% in B." in found.output
    assert "alike; they differ in no key" in refused(before, before, "--varying", "path.loss")
    assert "they differ in path.loss" in refused(before, lossier, "--varying", "path.los")


def test_a_key_that_only_one_scenario_has_differs_too(made: Made) -> None:
    jittered = made("jittered", ('rtt = "20ms"', 'rtt = "20ms"\njitter = "1ms"'))
    assert re.search(r"path\.jitter \(.*; 1ms\)", refused(made("before"), jittered))


def test_what_follows_from_a_key_is_not_named(made: Made) -> None:
    """A buffer of 1 BDP is another with another rate, and so is the buffer in packets, which is no key."""
    said = refused(made("before"), made("slower", ('rate = "10Mbit/s"', 'rate = "8Mbit/s"')))
    assert "path.buffer (" in said and "buffer_pkts" not in said and "bdp_bytes" not in said


def test_cells_are_found_by_their_axes_and_those_of_one_run_are_named(made: Made) -> None:
    short = made("short", ('"20ms"', '["20ms", "40ms"]'), ('["cubic", "bbr1"]', '["cubic", "reno"]'))
    long = made("long", ('"20ms"', '["60ms", "40ms"]'), ('["cubic", "bbr1"]', '["bbr1", "cubic"]'))
    found = tcpknee.diff(short, long)
    assert {one.place for one in found.compared} == {(("path.rtt", "40ms"), ("flow.0.algorithm", "cubic"))}
    assert "path.rtt 20ms, flow.0.algorithm cubic" in found.only[0]
    assert "path.rtt 60ms, flow.0.algorithm cubic" in found.only[1] and len(found.only[1]) == 3
    said = knee(short, long).output
    assert "Only in short" in said and "path.rtt 40ms, flow.0.algorithm reno" in said


def test_an_axis_of_one_run_is_found_by_the_value_that_the_other_has(made: Made) -> None:
    matrix = made("matrix", ('"20ms"', '["20ms", "40ms"]'))
    found = tcpknee.diff(matrix, made("before"))
    assert {dict(one.place)["path.rtt"] for one in found.compared} == {"20ms"}
    assert {verdict.decision for verdict in found.verdicts} == {"same"}


def test_runs_without_a_common_cell_are_refused(made: Made) -> None:
    other = made("other", ('["cubic", "bbr1"]', '["reno", "bbr3"]'))
    said = refused(made("before"), other)
    assert "have no cell in common" in said and "flow.0.algorithm reno" in said
    # An axis that may vary pairs nothing where it has several values.
    assert "cannot be told apart" in refused(made("before"), other, "--varying", "flow.0.algorithm")


def test_one_algorithm_beside_another_where_that_is_what_varies(alone: list[Path]) -> None:
    keys = re.search(r"--varying (\S+)", refused(*alone))
    assert keys and "flow.0.algorithm" in keys[1]
    found = tcpknee.diff(*alone, varying=keys[1].split(","))
    assert found.compared[0].label == "cubic and bbr1"
    assert found.compared[0].verdicts[0].text.startswith("goodput: bbr1 is ")


def test_the_other_way_round_it_is_the_inverse(made: Made) -> None:
    runs = made("before"), made("lossier", ('loss = "1%"', 'loss = "2%"'))
    there, back = (tcpknee.diff(*pair, varying=["path.loss"]) for pair in (runs, runs[::-1]))
    for one, other in zip(there.verdicts, back.verdicts, strict=True):
        assert one.scale != "ratio" or one.value == pytest.approx(1 / other.value)
        words = {"better": "worse", "worse": "better", "higher": "lower", "lower": "higher"}
        assert other.word == words.get(one.word, one.word)


def test_the_table_comes_first_and_fits_in_80_columns(made: Made) -> None:
    lossier = made("lossier", ('loss = "1%"', 'loss = "2%"'))
    for words in ([], ["--all"]):
        lines = knee(made("before"), lossier, "--varying", "path.loss", *words).output.splitlines()
        assert max(map(len, lines[: lines.index("", 8)])) <= 80
        assert lines[0] == "Small" and re.search(r"A +B +B / A", lines[6])
        assert any(re.match(r"  goodput, Mbit/s +[\d.]+ +[\d.]+ +[\d.]+× ", line) for line in lines)


def test_text_shows_what_differs_and_all_of_it_on_demand(made: Made) -> None:
    run = made("before")
    few, everything = knee(run, run).output, knee(run, run, "--all").output
    assert few.count("goodput") == 3 and "srtt" not in few  # once a group, and in the sentence
    assert "srtt p99, ms" in everything and "left out" not in everything
    assert "A and B are arithmetic means, B / A is that of geometric means" in few
    hidden = int(re.search(r"(\d+) comparisons left out", few)[1])  # type: ignore[index]
    assert hidden == len(tcpknee.diff(run, run).verdicts) - 2


def test_many_comparisons_are_said_to_differ_by_chance(made: Made) -> None:
    said = knee(made("before"), made("seeded", ("seed = 7", "seed = 8")), "--all").output
    of, by_chance = map(int, re.search(r"Of (\d+) comparisons at 95 % about (\d+) differ by chance", said).groups())  # type: ignore[union-attr]
    assert of >= 20 and by_chance == round(0.05 * of)


def test_json_has_both_values_and_the_verdict_of_every_metric(made: Made) -> None:
    lossier = made("lossier", ('loss = "1%"', 'loss = "2%"'))
    found = knee(made("before"), lossier, "--varying", "path.loss", "--json")
    told: dict[str, Any] = json.loads(found.stdout)
    assert (told["a"]["name"], told["b"]["name"], told["paired"]) == ("before", "lossier", True)
    assert told["differing"] == [{"key": "path.loss", "a": ["1%"], "b": ["2%"]}]
    for one in told["compared"]:
        for name, metric in one["metrics"].items():
            assert {"mean", "low", "high", "n"} == set(metric["a"]) == set(metric["b"]) and name in BY_NAME
            assert metric["word"] in ("better", "worse", "higher", "lower", "same", "none shown")
            assert ("ratio" in metric) != ("difference" in metric)


def test_what_changed_in_what_held_it_back_is_said(alone: list[Path]) -> None:
    keys = re.search(r"--varying (\S+)", refused(*alone))
    assert keys
    assert re.search(r"  limited by: cwnd .* -> pacing ", knee(*alone, "--varying", keys[1]).output)
    assert "limited by" not in knee(alone[0], alone[0]).output


def test_out_without_a_report_and_what_is_no_run_are_refused(made: Made, tmp_path: Path) -> None:
    run = made("before")
    assert "--out: got it without --report" in refused(run, run, "--out", tmp_path / "x.html")
    assert knee(run, tmp_path).exception is not None
    for words in (("--engine", "sim"), ("--workers", "2")):
        assert f"{words[0]}: got it without --kernel" in refused(run, run, *words)


def test_the_page_has_the_figures_of_both(made: Made, tmp_path: Path) -> None:
    lossier, out = made("lossier", ('loss = "1%"', 'loss = "2%"')), tmp_path / "diff.html"
    found = knee(made("before"), lossier, "--varying", "path.loss", "--report", "--out", out)
    assert found.exit_code == 0 and found.output.endswith(f"Report: {out}\n")
    html = out.read_text()
    for label in ("cubic, before", "cubic, lossier", "bbr1, before", "bbr1, lossier"):
        assert label in html
    assert "The scenarios differ in <code>path.loss</code>: 1% in before, 2% in lossier." in html
    data = json.loads(html.split('id="data">')[1].split("</script>")[0])
    # One condition, in which both lie over each other.
    [condition] = data["conditions"]
    series = {block["c"]["series"] for block in condition["sets"]["lines_cwnd"]}
    assert series == {"cubic, before", "cubic, lossier", "bbr1, before", "bbr1, lossier"}


def test_runs_in_memory_are_compared_too_and_have_a_page(tmp_path: Path) -> None:
    runs: list[Run] = [tcpknee.compare("cubic", duration="1s", repeat=2, loss="1%", seed=seed) for seed in (1, 2)]
    found = differences.diff(*runs)
    assert found.names == ("A", "B") and not found.paired
    assert "cubic, B" in pages.write(found, tmp_path / "page.html").read_text()
    assert differences_text.lines(found)[1].startswith("A  A  sim, tcpknee ")


def test_a_run_without_flows_is_compared_with_nothing(made: Made, tmp_path: Path) -> None:
    without = tmp_path / "without"
    shutil.copytree(made("before"), without)
    flows = pq.read_table(without / "flows.parquet")
    pq.write_table(flows.slice(0, 0), without / "flows.parquet")
    for sides in ((without, made("before")), (made("before"), without), (without, without)):
        found = knee(*sides, "--report", "--out", tmp_path / "page.html", "--force")
        assert found.exit_code == 0, found.exception
        assert "No flows stand in both: nothing of them is compared." in found.output
