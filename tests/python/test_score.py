"""`knee score`: who is better, how sure that is, and what it may cost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support import Ended, refused
from tcpknee.algorithms import outline
from tcpknee.errors import UsageError
from tcpknee.evidence.stats import LEAST_TO_LOOK, estimate, while_looking
from tcpknee.runs import score

Call = Callable[..., Ended]


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
    found = json.loads(call("score", "bbr1", "reno", "vegas", "--cells", "50", "--json", "-q").out)
    assert found["cells"] <= 50
    assert {one["paths"] for one in found["scores"]} == {12}


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_file_that_crashes_is_dropped_and_the_others_go_on(call: Call) -> None:
    grow = "cc_reno_cong_avoid(in, out, acked);"
    Path("bad.c").write_text(outline.of("bad").replace(grow, "out->snd_cwnd += acked / (in->lost + s->hystart);"))
    Path("good.c").write_text(outline.of("good"))
    ended = call("score", "./bad.c", "./good.c", "reno", "--paths", "8", "--json", "-q")
    found = {one["algorithm"]: one for one in json.loads(ended.out)["scores"]}
    assert "bad divides by zero in cong_avoid" in found["bad"]["dropped"] and found["bad"]["score"] is None
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
        ("[path]", "[path", "Expected a scenario without algorithms"),
        ("duration", "duratoin", "duratoin"),
    ):
        Path("suite.toml").write_text(text.replace(f"\n{old}", f"\n{new}", 1), encoding="utf-8")
        refused(call("score", "bbr1", "--suite", "suite.toml", "-q"), "suite.toml", said)
    with pytest.raises(UsageError, match=r"got no line \[\[flow\]\]; expected it by itself"):
        score.scenario("flow = [{}]\nsample = [{}]\n", "s.toml", "cubic", 1, 2)
