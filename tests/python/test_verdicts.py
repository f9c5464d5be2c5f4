"""Verdicts between algorithms: paired, honest about what they cannot tell."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from support import cell, compared, flow, flows
from tcpknee.evidence import stats
from tcpknee.evidence.verdicts import Verdict, price
from tcpknee.runs.summary import Summary, summarise


def goodput(values: dict[str, list[float]]) -> list[Verdict]:
    table, cells = compared(values)
    return [v for v in summarise(table, None, cells).verdicts if v.metric == "goodput_bits_per_sec"]


def test_ratio_is_the_paired_t_interval_of_log_ratios() -> None:
    cubic, bbr1 = [2.0, 2.5, 1.8, 2.2], [42.0, 51.0, 40.0, 44.0]
    [verdict] = goodput({"cubic": cubic, "bbr1": bbr1})
    expected = scipy_stats.ttest_rel(np.log(bbr1), np.log(cubic)).confidence_interval(0.95)
    assert verdict.value == pytest.approx(math.exp(np.mean(np.log(np.array(bbr1) / cubic))))
    assert (verdict.low, verdict.high) == pytest.approx((math.exp(expected.low), math.exp(expected.high)))
    assert (verdict.decision, verdict.scale, verdict.n) == ("more", "ratio", 4)
    assert verdict.text == "goodput: bbr1 is 20.9× cubic [19.4, 22.5]: better"


def test_the_greater_stands_first_whatever_the_order_of_the_file() -> None:
    [verdict] = goodput({"bbr1": [42.0, 51.0, 40.0, 44.0], "cubic": [2.0, 2.5, 1.8, 2.2]})
    assert verdict.decision == "less"
    assert verdict.text == "goodput: bbr1 is 20.9× cubic [19.4, 22.5]: better"


def summarised(workload: str, columns: dict[str, list[dict[str, object]]]) -> Summary:
    """Cells of an algorithm each, with a row for each of its dicts; those of a repetition share its number."""
    rows = [
        flow(index, 0, 1e6, name, workload=workload) | row
        for index, (name, of_name) in enumerate(columns.items())
        for row in of_name
    ]
    cells = [cell(i, [("flow.0.algorithm", name)], name) for i, name in enumerate(columns)]
    return summarise(flows(rows), None, cells)


@pytest.mark.parametrize(
    ("bbr1_us", "is_told"),
    [(60e3, True), (80e3, False), (79.9e3, False), (100e3, False)],
    ids=["more delay", "the same", "hardly more", "better at both"],
)
def test_what_better_goodput_costs_is_told(bbr1_us: float, *, is_told: bool) -> None:
    rows = {
        name: [{"rep": rep, "goodput_bits_per_sec": bits + rep, "srtt_us_p95": round(us) + rep} for rep in range(1, 4)]
        for name, bits, us in (("cubic", 48e6, 80e3), ("bbr1", 47e6, bbr1_us))
    }
    found = summarised("bulk", rows)
    [gain] = found.shown
    assert gain.text.startswith("goodput: cubic is 1.02") and gain.text.endswith(": better")
    cost = price(gain, found.verdicts)
    assert (cost is not None and cost.text.startswith("srtt p95: cubic is 1.33")) == is_told
    assert (cost is not None) == is_told
    assert all(price(one, found.verdicts) is None for one in found.verdicts if one is not gain)


def test_what_takes_longer_is_worse_and_says_so() -> None:
    rows = {
        name: [{"rep": rep, "completion_us": round(us * factor**rep)} for rep in range(1, 4)]
        for name, us, factor in (("cubic", 1e5, 1.0), ("bbr1", 1.1e5, 1.01))
    }
    found = summarised("transfer", rows)
    assert [(v.metric, v.word) for v in found.shown] == [("completion_us_p50", "worse")]
    assert found.shown[0].text == "completion p50: bbr1 takes 1.122× as long as cubic [1.095, 1.150]: worse"


def test_of_several_transfers_the_slow_ones_are_compared_too() -> None:
    rows = {
        name: [
            {"rep": rep, "completion_us": 1_000 * size * factor + rep}
            for rep in range(3)
            for size, factor in ((1, 1), (2, 1), (100, worst))
        ]
        for name, worst in (("cubic", 1), ("bbr1", 2))
    }
    found = {verdict.metric: verdict for verdict in summarised("web", rows).shown}
    assert list(found) == ["completion_us_p50", "completion_us_p95", "completion_us_p99"]
    assert found["completion_us_p50"].word == "same"
    assert found["completion_us_p99"].word == "worse"
    assert found["completion_us_p99"].text.endswith(": worse")


def test_neither_is_better_where_no_direction_is_or_the_path_is_shared() -> None:
    rows = [flow(0, rep, 1e6 * (1 + group) + rep, name, group) for rep in range(3) for group, name in enumerate("ab")]
    [shared] = [v for v in summarise(flows(rows), None, [cell(0, [], "a", "b")]).verdicts if v.shared]
    assert shared.decision == "more"
    assert not shared.text.endswith(("better", "worse"))


def test_where_buffers_limit_both_the_verdict_says_that_no_congestion_control_helps() -> None:
    def limited(us: int) -> list[str]:
        rows = {
            name: [{"rep": rep, "goodput_bits_per_sec": goodput, "sndbuf_limited_us": us} for rep in range(3)]
            for name, goodput in (("cubic", 1e6), ("bbr1", 1.02e6))
        }
        return [verdict.text for verdict in summarised("bulk", rows).shown]

    said = "both were held back by the send buffer (`tcp_wmem`): no congestion control changes that"
    assert limited(8_900_000)[0].endswith(f"better; {said}")
    assert said not in limited(4_000_000)[0]


def test_pairs_remove_what_seeds_have_in_common() -> None:
    """Repetitions differ tenfold among themselves, yet b is above a in each by 10 %."""
    a = [1.0, 3.0, 10.0, 5.0]
    [verdict] = goodput({"a": a, "b": [1.1, 3.31, 10.99, 5.5]})
    assert verdict.decision == "more"
    assert verdict.value == pytest.approx(1.1, rel=2e-3)


def test_an_interval_that_holds_equality_shows_no_difference() -> None:
    [verdict] = goodput({"a": [1.0, 2.0, 3.0], "b": [1.5, 1.4, 3.2]})
    assert verdict.decision == "none shown"
    assert "no difference shown" in verdict.text


def warnings(values: dict[str, list[float]]) -> list[str]:
    table, cells = compared(values)
    return [warning for warning in summarise(table, None, cells).warnings if "too wide" in warning]


def test_too_wide_an_interval_says_how_many_repetitions_would_do() -> None:
    values = {"a": [1.0, 1.0, 1.0], "b": [0.95, 1.05, 1.02]}
    [verdict] = goodput(values)
    deviation = float(np.std(np.log([0.95, 1.05, 1.02]), ddof=1))
    assert verdict.too_wide
    assert verdict.units_needed == stats.units_for(deviation, math.log(1.05)) == 7
    assert verdict.text.endswith("; too wide to decide 5 %, about 7 repetitions would do")
    assert warnings(values) == [
        "1 of 1 comparison is too wide to decide a difference of 5 %; about 7 repetitions would do (`repeat = 7`)."
    ]


def test_two_repetitions_advise_no_number() -> None:
    """Two that lie far apart would ask for 896."""
    values = {"a": [1.0, 1.0], "b": [0.5, 1.4]}
    [verdict] = goodput(values)
    assert (verdict.decision, verdict.too_wide, verdict.units_needed) == ("none shown", True, None)
    assert verdict.text.endswith("; too wide to decide 5 %")
    assert warnings(values) == [
        "1 of 1 comparison is too wide to decide a difference of 5 %; how many repetitions would do is told from 3 on."
    ]


def test_no_number_beyond_ten_times_the_repetitions_is_advised() -> None:
    values = {"a": [1.0, 1.0, 1.0], "b": [0.5, 1.4, 1.1]}
    [verdict] = goodput(values)
    assert (verdict.too_wide, verdict.units_needed) == (True, None)
    assert stats.units_for(float(np.std(np.log([0.5, 1.4, 1.1]), ddof=1)), math.log(1.05)) > 30
    assert verdict.text.endswith("; too wide to decide 5 %, more than 30 repetitions would be needed")
    assert warnings(values) == [
        "1 of 1 comparison is too wide to decide a difference of 5 %; more than 30 repetitions would be needed."
    ]


def test_warnings_count_the_comparisons_that_text_shows_and_no_others() -> None:
    """Goodput is narrow, smoothed RTT is wide, and only verdicts of goodput are shown."""
    apart = {"a": [2e4, 2e4, 2e4], "b": [1e4, 3e4, 2.5e4]}
    rows = [
        flow(index, rep, 1.0 + rep * 1e-3 * index, name, srtt_us_p95=srtt)
        for index, (name, series) in enumerate(apart.items())
        for rep, srtt in enumerate(series)
    ]
    cells = [cell(i, [("flow.0.algorithm", name)], name) for i, name in enumerate(apart)]
    found = summarise(flows(rows), None, cells)
    assert [(v.metric, v.too_wide) for v in found.verdicts] == [("goodput_bits_per_sec", False), ("srtt_us_p95", True)]
    assert [v.metric for v in found.shown] == ["goodput_bits_per_sec"]
    assert not any("too wide" in warning for warning in found.warnings)


def test_a_narrow_interval_around_equality_needs_no_more_repetitions() -> None:
    [verdict] = goodput({"a": [1.0, 1.0, 1.0, 1.0], "b": [1.001, 0.999, 1.002, 0.998]})
    assert verdict.decision == "none shown"
    assert (verdict.too_wide, verdict.units_needed) == (False, None)
    assert verdict.text.endswith("])"), "nothing stands behind the interval"


def test_identical_in_every_repetition() -> None:
    [same] = goodput({"a": [3.0, 3.0], "b": [3.0, 3.0]})
    assert (same.decision, same.text) == ("same", "goodput: a and b are identical in every repetition")
    [twice] = goodput({"a": [3.0, 3.0], "b": [6.0, 6.0]})
    assert (twice.decision, twice.text) == ("more", "goodput: b is 2.00× a, identical in every repetition: better")


def test_percentiles_in_buckets_side_by_side_are_not_called_different() -> None:
    """43 ms lie between two buckets of 512 us: one value more or less moves a percentile across."""
    for us, word in ((42_751.5, "none shown"), (41_727.5, "better")):
        rows = {
            name: [{"rep": rep, "srtt_us_p95": one} for rep in range(3)] for name, one in (("a", 43_263.5), ("b", us))
        }
        [found] = [one for one in summarised("bulk", rows).verdicts if one.metric == "srtt_us_p95"]
        assert found.word == word
        assert ("no difference shown" in found.text and "a bucket" in found.text) == (word == "none shown")


def test_one_repetition_is_no_verdict() -> None:
    [verdict] = goodput({"a": [1.0], "b": [5.0]})
    assert (verdict.decision, verdict.low, verdict.high) == ("single", None, None)
    assert verdict.text == "goodput: b is 5.00× a in the one repetition; no interval, so no verdict"


def test_a_zero_turns_the_ratio_into_a_difference() -> None:
    a, b = [0.0, 1e6, 2e6], [5e6, 6.5e6, 7e6]
    [verdict] = goodput({"a": a, "b": b})
    expected = scipy_stats.ttest_rel(b, a).confidence_interval(0.95)
    assert verdict.scale == "difference"
    assert (verdict.low, verdict.high) == pytest.approx((expected.low, expected.high))
    assert verdict.text.startswith("goodput: b is 5.17 Mbit/s above a [")
    [turned] = goodput({"b": b, "a": a})
    assert turned.text == verdict.text


def test_every_pair_of_three_algorithms_is_compared_once() -> None:
    pairs = {(v.a, v.b) for v in goodput({"a": [1.0, 1.1], "b": [2.0, 2.1], "c": [3.0, 3.1]})}
    assert pairs == {("a", "b"), ("a", "c"), ("b", "c")}


def test_only_cells_equal_but_for_the_algorithm_are_compared() -> None:
    axes = [[("path.rtt", rtt), ("flow.0.algorithm", name)] for rtt in ("1ms", "9ms") for name in ("a", "b")]
    cells = [cell(i, pairs, pairs[1][1]) for i, pairs in enumerate(axes)]
    rows = [flow(i, rep, i + 1.0 + rep / 10, pairs[1][1]) for i, pairs in enumerate(axes) for rep in range(3)]
    found = summarise(flows(rows), None, cells).verdicts
    assert [(v.places, dict(v.axes)) for v in found] == [((0, 1), {"path.rtt": "1ms"}), ((2, 3), {"path.rtt": "9ms"})]


def test_what_is_beside_one_algorithm_is_compared_with_itself_beside_another() -> None:
    """What an algorithm does to others: the second flow never changes, and the first one's delay is an axis besides."""
    axes = [[("path.rtt", rtt), ("flow.0.algorithm", name)] for rtt in ("1ms", "9ms") for name in ("a", "b")]
    cells = [cell(i, pairs, pairs[1][1], "web") for i, pairs in enumerate(axes)]
    rows = [flow(i, rep, 10.0 + i % 2 + rep / 10, pairs[1][1]) for i, pairs in enumerate(axes) for rep in range(3)]
    rows += [flow(i, rep, 8.0 - 4 * (i % 2) + rep / 10, "web", 1) for i in range(4) for rep in range(3)]
    found = [one for one in summarise(flows(rows), None, cells).verdicts if "web beside" in one.a]
    assert [(one.a, one.b, one.places, one.word, dict(one.axes)) for one in found] == [
        ("web beside a", "web beside b", (0, 1), "worse", {"path.rtt": "1ms"}),
        ("web beside a", "web beside b", (2, 3), "worse", {"path.rtt": "9ms"}),
    ]


def test_only_repetitions_that_both_have_are_paired() -> None:
    [verdict] = goodput({"a": [1.0, 1.2, 1.1], "b": [2.0, 2.3]})
    assert verdict.n == 2


def test_flows_that_share_a_cell_are_compared_per_flow() -> None:
    rows = [flow(0, rep, 10.0 + rep, "cubic", 0) for rep in range(3)]
    rows += [flow(0, rep, 40.0 + 4 * rep, "bbr1", 1) for rep in range(3) for _ in range(2)]
    [verdict] = summarise(flows(rows), None, [cell(0, [], "cubic", "bbr1")]).verdicts
    assert verdict.shared
    assert verdict.value == pytest.approx(4)
    assert verdict.text == "goodput per flow: bbr1 is 4.00× cubic, identical in every repetition"


def test_flows_in_cells_of_their_own_are_compared_together() -> None:
    rows = [flow(0, rep, 10.0 + rep, "a") for rep in range(3) for _ in range(2)]
    rows += [flow(1, rep, 40.0 + 4 * rep, "b") for rep in range(3)]
    cells = [cell(i, [("flow.0.algorithm", name)], name) for i, name in enumerate("ab")]
    [verdict] = [v for v in summarise(flows(rows), None, cells).verdicts if v.metric == "goodput_bits_per_sec"]
    assert not verdict.shared and verdict.value == pytest.approx(2)


def test_of_two_that_are_equal_in_the_mean_the_second_is_named_first() -> None:
    [verdict] = goodput({"a": [1.0, 2.0, 4.0], "b": [2.0, 1.0, 4.0]})
    assert verdict.value == 1 and "(b is 1.0× a " in verdict.text


def test_between_cells_algorithms_are_named_and_within_one_the_flows() -> None:
    def named(cells: int) -> list[str]:
        rows = [
            flow(index if cells == 2 else 0, rep, (index + 1) * (10.0 + rep), name, index if cells == 1 else 0)
            | {"name": f"{name}-flow"}
            for index, name in enumerate("ab")
            for rep in range(2)
        ]
        apart = [cell(i, [("flow.0.algorithm", name)], name) for i, name in enumerate("ab")]
        return [v.text for v in summarise(flows(rows), None, apart if cells == 2 else [cell(0, [], "a", "b")]).verdicts]

    assert named(cells=2) == ["goodput: b is 2.00× a, identical in every repetition: better"]
    assert named(cells=1) == ["goodput per flow: b-flow is 2.00× a-flow, identical in every repetition"]


def test_of_requests_their_latency_matters_most_and_then_their_number() -> None:
    rows = [
        flow(
            index, rep, 1.0, name, workload="request-response", latency_us_p95=(index + 1) * 100.0, requests_per_sec=9.0
        )
        for index, name in enumerate("ab")
        for rep in range(2)
    ]
    cells = [cell(i, [("flow.0.algorithm", name)], name) for i, name in enumerate("ab")]
    found = summarise(flows(rows), None, cells).verdicts
    assert [(v.metric, v.primary, v.decision) for v in found] == [
        ("latency_us_p95", True, "more"),
        ("requests_per_sec", False, "same"),
    ]


@pytest.mark.parametrize(
    ("factor", "size"),
    [(1.00213, "1.0021×"), (1.0333, "1.033×"), (1.5, "1.50×"), (9.87, "9.87×"), (21.4, "21.4×"), (640.0, "640×")],
)
def test_a_ratio_has_the_digits_that_tell_it_from_1(factor: float, size: str) -> None:
    [verdict] = goodput({"a": [3e6, 3e6], "b": [3e6 * factor, 3e6 * factor]})
    assert verdict.text == f"goodput: b is {size} a, identical in every repetition: better" + (
        ", by less than 1 %" if factor < 1.01 else ""
    )


@pytest.mark.parametrize(("high", "is_small"), [(1.0095, True), (1.03, False)])
def test_a_difference_that_is_shown_may_be_too_small_to_choose_by(high: float, is_small: bool) -> None:
    [verdict] = goodput({"a": [3e6, 3e6, 3e6], "b": [3e6 * 1.009, 3e6 * high, 3e6 * 1.0092]})
    assert verdict.decision == ("more" if is_small else "none shown")
    assert verdict.text.endswith(": better, by less than 1 %") is is_small


def test_transfers_of_many_sizes_are_compared_by_their_slowdown_too() -> None:
    rows = [
        flow(index, rep, 1.0, name, workload="web", transfer_bytes=1000, completion_us=600.0, slowdown=late + rep / 10)
        for index, (name, late) in enumerate((("a", 2.0), ("b", 8.0)))
        for rep in range(3)
    ]
    cells = [cell(i, [("flow.0.algorithm", name)], name) for i, name in enumerate("ab")]
    found = {verdict.metric: verdict for verdict in summarise(flows(rows), None, cells).verdicts}
    assert found["completion_us_p50"].primary and found["completion_us_p50"].decision == "same"
    assert found["slowdown_p99"].decision == "more"
    assert found["slowdown_p99"].text.startswith("slowdown p99: b is 3.8")


def test_a_workload_that_only_another_version_knows_is_compared_by_its_goodput() -> None:
    rows = [
        flow(index, rep, 1e6 * (index + 1), name, workload="sung")
        for index, name in enumerate("ab")
        for rep in range(2)
    ]
    cells = [cell(i, [("flow.0.algorithm", name)], name) for i, name in enumerate("ab")]
    found = summarise(flows(rows), None, cells).verdicts
    assert [(v.metric, v.primary) for v in found] == [("goodput_bits_per_sec", True)]
