"""`knee score`: who is better, how sure that is, and what it may cost."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support import Ended, refused
from tcpknee.algorithms import compiler, outline
from tcpknee.cli.options import Whole
from tcpknee.cli.score import command
from tcpknee.errors import UsageError
from tcpknee.evidence.stats import LEAST_TO_LOOK, estimate, while_looking
from tcpknee.runs import api, score

Call = Callable[..., Ended]
SHORT = score.SUITE.read_text(encoding="utf-8").replace('"12s"', '"3s"').replace('"2s"', '"1s"')


@pytest.mark.parametrize("skew", [0.0, 1.0])
def test_an_interval_that_holds_while_one_looks_errs_seldom_and_a_plain_one_often(skew: float) -> None:
    """In 1500 sequences: 1.5 % without skew and 4.9 % of exponential draws, where a plain one errs in a quarter."""
    rng = np.random.default_rng(7)
    looks = range(LEAST_TO_LOOK, 129, 8)
    wrong = {while_looking: 0, estimate: 0}
    for _ in range(1500):
        values = rng.standard_normal(128) if not skew else rng.exponential(1.0, 128) - 1.0
        for interval in wrong:
            found = [interval(values[:n]) for n in looks]
            wrong[interval] += any(one.low > 0 or one.high < 0 for one in found)  # type: ignore[union-attr,operator]
    assert wrong[while_looking] <= 0.06 * 1500
    few = while_looking(values[: LEAST_TO_LOOK - 1])
    assert few is not None and few.low is None
    assert wrong[estimate] > 0.15 * 1500
    # Among more, each is surer.
    alone, among = while_looking(values), while_looking(values, of=10)
    assert alone is not None and among is not None
    assert among.low < alone.low < alone.high < among.high  # type: ignore[operator]


def test_the_same_seed_gives_the_same_scores_and_another_others(call: Call) -> None:
    words = ("score", "bbr1", "reno", "--paths", "16", "--json", "-q")
    first, again, other = (json.loads(call(*words, "--seed", seed).out) for seed in ("1", "1", "2"))
    assert first == again and first != other
    assert [one["algorithm"] for one in first["scores"]] == ["bbr1", "reno"]
    for one in first["scores"]:
        assert one["paths"] == 16 and one["held_out"]["n"] == 16
        assert one["held_out"]["mean"] != one["score"]["mean"], "of other paths"
    assert first["cells"] == 16 * 3 * 2


def test_a_loser_is_dropped_early_and_costs_no_more(call: Call) -> None:
    suite = score.SUITE.read_text(encoding="utf-8").replace('"12s"', '"4s"').replace('"2s"', '"1s"')
    Path("suite.toml").write_text(suite.replace('buffer = "1bdp"', 'buffer = "8bdp"'), encoding="utf-8")
    found = json.loads(call("score", "bbr1", "cubic", "--suite", "suite.toml", "--json", "-q").out)
    best, loser = found["scores"]
    assert (best["algorithm"], best["dropped"]) == ("bbr1", None)
    assert loser["dropped"] == f"behind bbr1 after {loser['paths']} paths" and loser["paths"] < best["paths"] == 64
    assert loser["held_out"] is None
    assert found["cells"] == 64 * 2 + loser["paths"] + 16 * 2
    assert loser["score"]["mean"] == 1.0, "cubic beside itself"


def test_it_costs_no_more_simulations_than_it_may(call: Call) -> None:
    """And what is held out is set aside first: the race does not spend it."""
    Path("suite.toml").write_text(SHORT, encoding="utf-8")
    words = ("score", "bbr1", "reno", "--suite", "suite.toml", "-q", "--json")
    found = json.loads(call(*words, "--cells", "110").out)
    assert found["cells"] <= 110
    assert {one["paths"] for one in found["scores"]} == {20}
    assert all(one["held_out"]["n"] == 16 and one["held_out"]["low"] is not None for one in found["scores"])
    refused(call(*words, "--cells", "95"), "--cells: got 95; expected 96 or more: 16 paths", "2 algorithms and cubic")
    refused(call(*words, "--cells", "4", "--paths", "2"), "--cells: got 4; expected 12 or more: 2 paths")


def test_what_is_said_of_intervals_is_said_where_there_are_some(call: Call) -> None:
    Path("suite.toml").write_text(SHORT, encoding="utf-8")
    words = ("score", "bbr1", "--suite", "suite.toml", "-q", "--paths")
    assert "Intervals hold at 95 %" in call(*words, "16").out
    few = call(*words, "15").out
    assert "There are no intervals of fewer than 16 paths." in few and "hold" not in few


def test_paths_have_luck_of_their_own_and_what_is_held_out_other_luck() -> None:
    """On one path drawn again and again only luck differs."""
    same = 'rtt = "40ms"\nrate = "8Mbit/s"\nloss = "1%"\n'
    suite = f'duration = "4s"\n[path]\n{same}[[flow]]\n[[sample]]\npath.jitter = "uniform 0ns to 1ns"\n'
    [found] = score.Race(["bbr1"], "cubic", suite, "suite.toml", 1, 8, 64).run()
    assert len(set(found.logs)) == 8 and not set(found.logs) & set(found.held_out)


def test_paths_on_which_nothing_is_delivered_are_left_out_and_counted(call: Call) -> None:
    """They were ties: the score of bbr1 was 3.2 there, and 5.9 on the 13 of 20 paths that tell."""
    head = 'duration = "3s"\nwarmup = "1s"\n[path]\nrtt = "40ms"\nrate = "8Mbit/s"\n[[flow]]\n[[sample]]\n'
    Path("suite.toml").write_text(f'{head}path.loss = "uniform 0% to 100%"\n', encoding="utf-8")
    words = ("score", "bbr1", "reno", "--suite", "suite.toml", "--paths", "20", "-q")
    ended = call(*words)
    race = score.Race(["bbr1", "reno"], "cubic", Path("suite.toml").read_text(), "suite.toml", 1, 20, 1000)
    for one, told in zip(race.run(), json.loads(call(*words, "--json").out)["scores"], strict=True):
        both = np.array([*one.logs, *one.held_out])
        left_out = int(np.isnan(both).sum())
        assert 0 < left_out == told["left_out_paths"]
        assert told["paths"] == told["score"]["n"] == 20 - int(np.isnan(one.logs).sum()) < 20
        assert told["score"]["mean"] == pytest.approx(np.exp(np.nanmean(one.logs)))
        assert told["held_out"]["n"] == 16 - int(np.isnan(one.held_out).sum())
        assert f"{one.name}: {left_out} paths left out, where it and cubic deliver nothing." in ended.out


def test_where_no_path_delivers_anything_there_is_no_score(call: Call) -> None:
    head = 'duration = "1s"\nwarmup = "0s"\n[path]\nrate = "8Mbit/s"\nloss = "100%"\n[[flow]]\n[[sample]]\n'
    Path("suite.toml").write_text(f'{head}path.rtt = "uniform 10ms to 20ms"\n', encoding="utf-8")
    words = ("score", "bbr1", "reno", "--suite", "suite.toml", "--paths", "16", "-q", "--json")
    for one in json.loads(call(*words).out)["scores"]:
        assert (one["score"], one["held_out"], one["dropped"]) == (None, None, None)
        assert (one["paths"], one["left_out_paths"]) == (0, 32)


def test_who_alone_delivers_nothing_stays_in_a_comparison() -> None:
    nan = float("nan")
    assert score._ahead([nan, 1.0, nan, 3.0], [nan, 0.5, 2.0, nan]).tolist() == [0.5, -2.0, 3.0]


def test_no_seed_reaches_the_paths_that_are_held_out() -> None:
    def seeds(seed: int, held_out: bool) -> list[str]:
        text, _ = score.scenario(score.SUITE.read_text(), "s.toml", "cubic", seed, 2, held_out=held_out)
        api.parse(text, "s.toml")
        return re.findall(r"(?m)^seed = (\d+)$", text)

    assert seeds(score.MOST_SEED, True) == [str((1 << 32) - 1), str((1 << 63) - 1)]
    assert seeds(0, True) == [str(1 << 31), str(1 << 62)]
    assert seeds(score.MOST_SEED, False) == [str((1 << 31) - 1), str((1 << 62) - 1)]
    most = next(one for one in command.params if one.name == "seed").type
    assert isinstance(most, Whole) and most.max == score.MOST_SEED


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_two_versions_of_one_algorithm_are_scored_against_each_other(call: Call) -> None:
    """Both call themselves cubic, and differ in beta: the one of `--against` is not taken for the other."""
    cubic, core = ((compiler.HEADERS / name).read_text(encoding="utf-8") for name in ("cubic.c", "cubic_core.h"))
    cubic = cubic.replace('#include "cubic_core.h"', core)
    assert cubic.count("P(beta, 717,") == 1
    Path("suite.toml").write_text(SHORT, encoding="utf-8")
    for beta in (512, 960):
        Path(str(beta)).mkdir()
        Path(f"{beta}/cubic.c").write_text(cubic.replace("P(beta, 717,", f"P(beta, {beta},"), encoding="utf-8")
    words = ("--suite", "suite.toml", "--paths", "4", "--json", "-q")
    beside, first, second = (
        json.loads(call("score", *asked, *words).out)["scores"]
        for asked in (
            ("./960/cubic.c", "--against", "./512/cubic.c"),
            ("./960/cubic.c", "cubic"),
            ("./512/cubic.c", "cubic"),
        )
    )
    of_960, of_512 = (next(one for one in each if one["algorithm"] != "cubic") for each in (first, second))
    assert of_960["score"]["mean"] != of_512["score"]["mean"]
    assert beside[0]["score"]["mean"] == pytest.approx(of_960["score"]["mean"] / of_512["score"]["mean"])


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_files_of_a_suite_and_files_of_far_folders_run(call: Call) -> None:
    """The suite's `./mine.c` lies in its folder, and is another one than that of the command line."""
    for folder, grow in (("suite", "out->snd_cwnd += 0;"), ("😀d", "cc_reno_cong_avoid(in, out, acked);")):
        Path(folder).mkdir()
        text = outline.of("mine").replace("cc_reno_cong_avoid(in, out, acked);", grow)
        Path(folder, "mine.c").write_text(text, encoding="utf-8")
    suite = SHORT.replace("\n[[sample]]", '\n[[flow]]\nalgorithm = "./mine.c"\n\n[[sample]]')
    Path("suite/suite.toml").write_text(suite, encoding="utf-8")
    words = ("--suite", "suite/suite.toml", "--paths", "2")
    reno = json.loads(call("score", "reno", *words, "--json", "-q").out)["scores"][0]["score"]
    os.chdir("😀d")
    ended = call("score", "./mine.c", "--suite", "../suite/suite.toml", "--paths", "2", "--json", "-q")
    [found] = json.loads(ended.out)["scores"]
    assert found["algorithm"] == "mine_file" and found["score"] == reno
    assert (
        "mine is the algorithm of ./mine.c" in ended.err and "mine_file is the algorithm mine of ./mine.c" in ended.err
    )


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_file_that_crashes_is_dropped_and_the_others_go_on(call: Call) -> None:
    grow = "cc_reno_cong_avoid(in, out, acked);"
    Path("bad.c").write_text(outline.of("bad").replace(grow, "out->snd_cwnd += acked / (in->lost + s->hystart);"))
    Path("good.c").write_text(outline.of("good"))
    ended = call("score", "./bad.c", "./good.c", "reno", "--paths", "8", "--json", "-q")
    found = {one["algorithm"]: one for one in json.loads(ended.out)["scores"]}
    assert found["bad"]["dropped"].startswith("bad divides by zero in cong_avoid") and found["bad"]["score"] is None
    assert found["bad"]["call"]["op"] == "cong_avoid" and found["good"]["call"] is None
    assert found["good"]["score"] == found["reno"]["score"]
    assert ended.code == 0
    assert call("score", "./bad.c", "--paths", "2", "-q").code == 1


def test_what_is_no_suite_is_refused_by_name(call: Call) -> None:
    refused(call("score", "bbr9", "-q"), 'knee score: got "bbr9"', "bbr1")
    refused(call("score", "bbr1", "--suite", "none.toml", "-q"), "none.toml: there is no such file")
    text = score.SUITE.read_text(encoding="utf-8")
    for old, new, said in (
        ("[[sample]]", "[[sample]]\ncount = 3", "sets count, which `knee score` sets itself"),
        ("[[flow]]", '[[flow]]\nalgorithm = "reno"', "sets algorithm, which"),
        ("[[flow]]", "", "got no single [[sample]], or no [[flow]]"),
        ("[path]", "[path", "suite.toml:6: not valid TOML"),
        ("duration", "duratoin", "suite.toml:3: duratoin: unknown key"),
        ("path.rtt ", "path.rrt ", "suite.toml:13: sample.0.path.rrt: unknown key"),
        ("[path]", f"deep = {'[' * 5000}\n[path]", "suite.toml:6: not valid TOML: cannot recurse"),
        ("[path]", '[path]\nqueue = ["fifo", "codel"]', "has axes (path.queue); expected one value of each"),
        ("[path]", 'kernel = ["6.12", "5.4"]\n[path]', "has axes (kernel); expected one value of each"),
    ):
        Path("suite.toml").write_text(text.replace(f"\n{old}", f"\n{new}", 1), encoding="utf-8")
        refused(call("score", "bbr1", "--suite", "suite.toml", "-q"), "suite.toml", said)
    for no_tables in ("flow = [1]\nsample = [1]\n", "flow = [{}]\nsample = [1]\n", "flow = 1\nsample = 1\n"):
        Path("suite.toml").write_text(no_tables, encoding="utf-8")
        refused(call("score", "bbr1", "--suite", "suite.toml", "-q"), "got no single [[sample]], or no [[flow]]")
    with pytest.raises(UsageError, match=r"got no line \[\[flow\]\]; expected it by itself"):
        score.scenario("flow = [{}]\nsample = [{}]\n", "s.toml", "cubic", 1, 2)
