"""The language of [[expect]]: what holds, what fails, what is undecided, and what is refused before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from support import cell, compared, flow, flows
from tcpknee.evidence import expect, metrics, published, written
from tcpknee.evidence.expressions import Problem, Quantity, parse, parse_figure
from tcpknee.evidence.published import Published
from tcpknee.evidence.stats import half_width
from tcpknee.runs.summary import Summary, summarise
from tcpknee.runs.terms import OfCells

RATES = {"cubic": [2.0e6, 2.1e6, 1.9e6], "bbr1": [42e6, 44.3e6, 39.8e6]}
"""bbr1 is 21 times cubic, within a half per cent; each of them varies by 5 %."""


def outcome(assertion: str, summary: Summary, cells: Sequence[dict[str, Any]]) -> expect.Outcome:
    assert expect.mistakes([(assertion, 9)], OfCells(cells)) == []
    [found] = expect.evaluate([(assertion, 9)], OfCells(cells, summary))
    return found


def verdict(assertion: str, values: dict[str, list[float]] = RATES) -> str:
    table, cells = compared(values)
    return outcome(assertion, summarise(table, None, cells), cells).verdict


@pytest.mark.parametrize(
    "assertion",
    [
        "bbr1.goodput > cubic.goodput",
        "bbr1.goodput / cubic.goodput >= 20",
        "20 <= bbr1.goodput / cubic.goodput",
        "20 < bbr1.goodput / cubic.goodput < 23",
        "bbr1.goodput_bits_per_sec >= 35Mbit/s",
        "bbr1.goodput >= 35000kbit/s and cubic.goodput < 3Mbit/s",
        "cubic.goodput < 6% * bbr1.goodput",
        "(bbr1.goodput - cubic.goodput) / cubic.goodput > 1800%",
        "bbr1.goodput - cubic.goodput * 2 > 0",
        "-cubic.goodput < 0",
        "cubic.retransmit_pct == 0",
        "cubic.retransmit_pct < 1.5%",
        'total[flow.0.algorithm="bbr1"].goodput > 1Mbit/s',
        "bbr1.goodput * 2s > 60MB - 52MB",
    ],
)
def test_holds(assertion: str) -> None:
    assert verdict(assertion) == "holds"


@pytest.mark.parametrize(
    "assertion",
    ["bbr1.goodput < cubic.goodput", "cubic.goodput >= 1Gbit/s", "cubic.retransmit_pct > 0", "cubic.rto_count > 0"],
)
def test_fails(assertion: str) -> None:
    assert verdict(assertion) == "fails"


def test_a_metric_without_a_value_says_what_it_would_need() -> None:
    table, cells = compared(RATES)
    found = outcome('total[flow.0.algorithm="bbr1"].jain > 0.1', summarise(table, None, cells), cells)
    assert found.verdict == "undecided"
    assert found.detail.startswith('no repetition has a value that is known; total[flow.0.algorithm="bbr1"].jain needs')
    assert "two flows or more that last, and transfers that come and go are none of these" in found.detail


def test_an_interval_that_holds_both_outcomes_is_undecided_and_does_not_pass() -> None:
    table, cells = compared(RATES)
    found = outcome("bbr1.goodput / cubic.goodput >= 21", summarise(table, None, cells), cells)
    assert found.verdict == "undecided"
    assert not found.passed
    assert found.detail.endswith("so the interval holds both outcomes; more than 30 repetitions would be needed")


def test_an_undecided_one_says_how_many_repetitions_would_decide_it() -> None:
    table, cells = compared(RATES)
    summary = summarise(table, None, cells)
    found = outcome("bbr1.goodput / cubic.goodput >= 20.9", summary, cells)
    assert found.verdict == "undecided" and found.needed is not None
    assert f"about {found.needed} repetitions would decide" in found.detail
    # At that deviation so many repetitions tell the mean from the limit, and one less does not.
    quotients = np.log(np.array(RATES["bbr1"]) / np.array(RATES["cubic"]))
    apart, deviation = abs(quotients.mean() - np.log(20.9)), quotients.std(ddof=1)
    assert half_width(deviation, found.needed) <= apart < half_width(deviation, found.needed - 1)


def test_the_worst_of_several_comparisons_counts() -> None:
    assert verdict("bbr1.goodput > cubic.goodput and bbr1.goodput < cubic.goodput") == "fails"
    assert verdict("bbr1.goodput > cubic.goodput and bbr1.goodput / cubic.goodput >= 21") == "undecided"


def test_sides_are_paired_by_repetition() -> None:
    """b is 5 % above a in each repetition, though repetitions differ tenfold."""
    assert verdict("b.goodput > a.goodput", {"a": [1e6, 5e6, 1e7], "b": [1.05e6, 5.26e6, 1.051e7]}) == "undecided"
    assert verdict("b.goodput / a.goodput > 1.04", {"a": [1e6, 5e6, 1e7], "b": [1.05e6, 5.26e6, 1.051e7]}) == "holds"


def test_one_repetition_is_judged_on_its_value_and_says_so() -> None:
    table, cells = compared({"cubic": [2e6], "bbr1": [42e6]})
    found = outcome("bbr1.goodput / cubic.goodput >= 20", summarise(table, None, cells), cells)
    assert found.verdict == "holds"
    assert "judged on one repetition" in found.detail


def test_deterministic_repetitions_are_decided() -> None:
    assert verdict("a.goodput == b.goodput", {"a": [3e6, 3e6], "b": [3e6, 3e6]}) == "holds"
    assert verdict("a.goodput >= 3Mbit/s", {"a": [3e6, 3e6], "b": [3e6, 3e6]}) == "holds"
    assert verdict("a.goodput > 3Mbit/s", {"a": [3e6, 3e6], "b": [3e6, 3e6]}) == "fails"


def test_equality_is_undecided_where_the_interval_holds_it() -> None:
    assert verdict("a.goodput == b.goodput", {"a": [3e6, 4e6, 3e6], "b": [3e6, 3e6, 4e6]}) == "undecided"
    assert verdict("a.goodput == b.goodput", {"a": [3e6, 3.1e6, 3e6], "b": [5e6, 5e6, 5.1e6]}) == "fails"


def test_a_ratio_to_zero_has_no_value() -> None:
    assert verdict("a.goodput / b.goodput > 1", {"a": [3e6, 3e6], "b": [0.0, 0.0]}) == "undecided"


def matrix() -> tuple[Summary, list[dict[str, Any]]]:
    """Loss 0 % and 1.5 % by cubic and bbr1: cubic falls from 50 to 1 Mbit/s, bbr1 from 48 to 46."""
    goodput = {("0%", "cubic"): 50e6, ("0%", "bbr1"): 48e6, ("1.5%", "cubic"): 1e6, ("1.5%", "bbr1"): 46e6}
    cells = [cell(i, [("path.loss", loss), ("flow.0.algorithm", name)], name) for i, (loss, name) in enumerate(goodput)]
    rows = [
        flow(i, rep, value * (1 + rep / 1000), name)
        for i, ((_, name), value) in enumerate(goodput.items())
        for rep in range(3)
    ]
    return summarise(flows(rows), None, cells), cells


def test_an_index_picks_a_value_of_an_axis() -> None:
    assert outcome('cubic[path.loss="1.5%"].goodput < 3% * cubic[path.loss="0%"].goodput', *matrix()).verdict == "holds"


def test_an_axis_that_is_left_open_must_hold_throughout() -> None:
    found = outcome("bbr1.goodput > cubic.goodput", *matrix())
    assert found.verdict == "fails"
    assert "path.loss=0%" in found.detail
    # In the order of the matrix; the text has what does not hold first.
    assert [(verdict, where) for verdict, where, _ in found.places] == [
        ("fails", "path.loss=0%"),
        ("holds", "path.loss=1.5%"),
    ]
    assert [place[0] for place in outcome("1Mbit/s < bbr1.goodput < 1Gbit/s", *matrix()).places] == ["holds"] * 4
    assert outcome('1Mbit/s < bbr1[path.loss="0%"].goodput < 1Gbit/s', *matrix()).places == ()
    assert outcome("bbr1.goodput > 40Mbit/s", *matrix()).verdict == "holds"


def test_an_axis_that_cells_of_another_algorithm_do_not_have_is_gone_through() -> None:
    axis = "flow.0.bbr1.cwnd_gain"
    labels = [("bbr1", [(axis, "512")]), ("bbr1", [(axis, "600")]), ("cubic", [])]
    cells = [cell(i, [("flow.0.algorithm", name), *more], name) for i, (name, more) in enumerate(labels)]
    rows = [flow(i, rep, (i + 1) * 1e6, name) for i, (name, _) in enumerate(labels) for rep in range(2)]
    summary = summarise(flows(rows), None, cells)
    assert outcome("bbr1.goodput / cubic.goodput < 0.7", summary, cells).verdict == "holds"
    assert outcome("bbr1.goodput / cubic.goodput < 0.5", summary, cells).verdict == "fails"


def test_shares_and_percentages_compare() -> None:
    rows = [flow(0, rep, 1e6, sndbuf_limited_us=5_400_000) for rep in range(2)]
    cells = [cell(0, [], "cubic")]
    summary = summarise(flows(rows), None, cells)
    assert outcome("cubic.limited_by.sndbuf > 50%", summary, cells).verdict == "holds"
    assert outcome("cubic.limited_by.sndbuf > 0.7", summary, cells).verdict == "fails"


@pytest.mark.parametrize(
    ("unit", "value", "bits", "seconds"),
    [
        ("bit/s", 1, 1, -1), ("kbit/s", 1e3, 1, -1), ("Mbit/s", 1e6, 1, -1), ("Gbit/s", 1e9, 1, -1),
        ("Tbit/s", 1e12, 1, -1),
        ("ns", 1e-9, 0, 1), ("us", 1e-6, 0, 1), ("ms", 1e-3, 0, 1), ("s", 1, 0, 1), ("min", 60, 0, 1),
        ("h", 3600, 0, 1),
        ("B", 8, 1, 0), ("kB", 8e3, 1, 0), ("MB", 8e6, 1, 0), ("GB", 8e9, 1, 0),
        ("KiB", 8 * 1024, 1, 0), ("MiB", 8 * 1024**2, 1, 0), ("GiB", 8 * 1024**3, 1, 0),
        ("/s", 1, 0, -1), ("%", 0.01, 0, 0),
    ],
)  # fmt: skip
def test_units_are_those_of_si_and_of_iec_80000_13(unit: str, value: float, bits: int, seconds: int) -> None:
    [chain] = parse(f"3{unit} < cubic.rto_count")
    found = chain.left.value({})
    assert found.values == pytest.approx([3 * value])
    assert (found.bits, found.seconds) == (bits, seconds)


@pytest.mark.parametrize(
    ("assertion", "detail"),
    [
        ("a.goodput > 1Mbit/s", "left is 2.00 Mbit/s"),
        ("1Mbit/s < a.goodput", "right is 2.0 Mbit/s [0.7, 3.3]"),
        ("a.goodput < b.goodput", "left - right is -6.05 Mbit/s"),
        ("b.goodput / a.goodput > 3", "left is 4.00"),
        ("b.goodput * 2s > 1MB", "left is 1.91 MiB"),
        ("a.limited_by.sndbuf >= 60%", "left is 60.0 %"),
        ("a.limited_by.sndbuf * 2 > 100%", "left is 120 %"),
        ("a.limited_by.sndbuf / 2 >= 30%", "left is 30.0 %"),
        ("a.srtt_us_p50 > 1ms", "left is 5.00 ms"),
        ("a.requests_per_sec * 1s > 100", "left is 250"),
    ],
)
def test_the_detail_is_of_the_side_that_varies_in_the_unit_that_it_has(assertion: str, detail: str) -> None:
    told = {"sndbuf_limited_us": 5_400_000, "srtt_us_p50": 5000, "requests_per_sec": 250}
    values = ((2e6, 8e6), (2e6, 8e6)) if "right" not in detail else ((1.9e6, 8e6), (2.1e6, 8.1e6))
    rows = [
        flow(index, rep, values[rep][index], name, **told) for index, name in enumerate(("a", "b")) for rep in range(2)
    ]
    cells = [cell(i, [("flow.0.algorithm", name)], name) for i, name in enumerate(("a", "b"))]
    found = outcome(assertion, summarise(flows(rows), None, cells), cells)
    assert found.detail.startswith(detail)


def test_an_expression_may_be_fifty_deep_itself_counted() -> None:
    assert verdict("(" * 49 + "cubic.goodput" + ")" * 49 + " > 1Mbit/s") == "holds"


def test_a_flows_name_comes_before_an_algorithm() -> None:
    spec = cell(0, [], "cubic", "bbr1")
    spec["flows"][1] |= {"name": "cubic", "algorithm": "bbr1"}
    spec["flows"][0] |= {"name": "background"}
    rows = [flow(0, rep, 1e6, "cubic", 0) for rep in range(2)] + [flow(0, rep, 9e6, "bbr1", 1) for rep in range(2)]
    assert outcome("cubic.goodput > 8Mbit/s", summarise(flows(rows), None, [spec]), [spec]).verdict == "holds"


@pytest.mark.parametrize(
    ("assertion", "message"),
    [
        (
            "cubci.goodput > 1Mbit/s",
            'got "cubci"; expected a flow or an algorithm: bbr1, cubic, total. Did you mean "cubic"?',
        ),
        ("cubic.godput > 1Mbit/s", 'Did you mean "goodput"?'),
        ("total.srtt_us_p50 > 1ms", "expected one of goodput_bits_per_sec, utilisation, jain"),
        ('cubic[path.loss="1%"].goodput > 1Mbit/s', 'got the axis "path.loss"; expected an axis of this scenario'),
        ('total[flow.0.algorithm="reno"].goodput > 1Mbit/s', "expected one of cubic, bbr1"),
        ("cubic.goodput > 20ms", "a rate cannot be compared with a time"),
        ("cubic.goodput > 5/s", "a rate cannot be compared with a number per second"),
        ("cubic.goodput > 1MB", "a rate cannot be compared with an amount of data"),
        ("cubic.goodput > 1%", "a rate cannot be compared with a percentage"),
        ("cubic.goodput > cubic.rto_count", "a rate cannot be compared with a number; write the unit"),
        ("cubic.goodput - 1s > 0", "a rate cannot be subtracted with a time"),
        # A share plus a percentage is a percentage.
        ("cubic.limited_by.cwnd + 10% > 0.5", "write the sign (1.5%)"),
        ("cubic.goodput > 1000000", "a rate cannot be compared with a bare number; write the unit"),
        ("cubic.retransmit_pct < 3", "write the sign (1.5%)"),
        ("cubic.goodput + cubic.srtt_us_p50 > 0", "a rate cannot be added to a time"),
        ("cubic.goodput", "expected a comparison"),
        ("cubic.goodput >", "got the end"),
        ("cubic > 1Mbit/s", 'expected "."'),
        ("1 < 2", "names no flow"),
        ("cubic.goodput > 5Mbps", 'got the unit "Mbps"'),
        ("cubic.goodput > 1Mbit/s or bbr1.goodput > 1Mbit/s", "expected an operator or the end"),
        ("cubic.goodput != 1Mbit/s", "expected a name, a number or a sign"),
        ("__import__('os').system('true') > 1", "expected"),
        ("(" * 50 + "cubic.goodput" + ")" * 50 + " > 1Mbit/s", "nested more than 50 deep"),
        ("cubic[path.loss=1.5%].goodput > 0", "expected a value in quotes"),
        ("", "got the end"),
    ],
)
def test_refusals_name_the_place_and_the_way_out(assertion: str, message: str) -> None:
    _, cells = compared(RATES)
    [(line, key, said)] = expect.mistakes([("cubic.goodput > 1bit/s", 3), (assertion, 12)], OfCells(cells))
    assert (line, key) == (12, "expect.1.assert")
    assert message in said


def test_a_name_that_could_mean_two_groups_is_refused() -> None:
    cells = [cell(0, [], "cubic", "cubic")]
    [(_, _, said)] = expect.mistakes([("cubic.goodput > 1Mbit/s", 4)], OfCells(cells))
    assert "could mean 2 groups of flows" in said


def test_a_name_that_is_in_other_cells_than_those_another_name_leaves_open_is_told_so() -> None:
    cells = [cell(i, [("flow.0.algorithm", name)], name, "cubic") for i, name in enumerate(("bbr1", "cubic"))]
    [(_, _, said)] = expect.mistakes([("bbr1.goodput / cubic.goodput >= 1", 4)], OfCells(cells))
    assert said.startswith('bbr1.goodput means nothing in the cells with flow.0.algorithm="cubic"')


def test_an_algorithm_beside_an_axis_of_algorithms_needs_a_name() -> None:
    axis = "flow.0.algorithm"
    cells = [cell(i, [(axis, name)], name, "cubic") for i, name in enumerate(("cubic", "bbr1"))]
    [(_, _, said)] = expect.mistakes([("cubic.goodput > 1Mbit/s", 4)], OfCells(cells))
    assert "could mean 2 groups of flows" in said
    assert expect.mistakes([("total.goodput > 1Mbit/s", 4)], OfCells(cells)) == []


def test_precedence_is_that_of_arithmetic() -> None:
    [chain] = parse("1 + 2 * 3 - 4 / 2 < cubic.rto_count")
    assert chain.left.value({}).values == pytest.approx([5])
    with pytest.raises(Problem):
        parse("1 + * 2 < cubic.rto_count")


def test_one_ratio_has_one_number_and_one_interval_wherever_it_is_written() -> None:
    """In the verdict, the expectation, the published comparison and the report's headline over several conditions."""
    values = {"cubic": [1.00e6, 1.13e6, 1.09e6], "bbr1": [104e6, 101e6, 117e6]}
    table, cells = compared(values)
    summary = summarise(table, None, cells)
    [said] = [v for v in summary.verdicts if v.metric == "goodput_bits_per_sec"]
    assert said.text == "goodput: bbr1 is 100× cubic [78, 127]: better"
    ratio = "bbr1.goodput / cubic.goodput"
    assert outcome(f"{ratio} >= 10", summary, cells).detail == "left is 100× [78, 127]"
    assert outcome(f"10 <= {ratio}", summary, cells).detail == "right is 100× [78, 127]"
    inverse = "cubic.goodput / bbr1.goodput < 5%"
    assert outcome(inverse, summary, cells).detail == "left is 1.00 % [0.78, 1.28]"
    [beside] = published.beside([Published(ratio, "50", "s", 3)], OfCells(cells, summary))
    assert (beside.ours_text, beside.ratio_text) == ("100× [78, 127]", "2.00× [1.57, 2.55]")
    assert beside.ours is not None and said.found.json() == beside.ours.json()


def test_the_interval_that_is_shown_decides() -> None:
    table, cells = compared({"a": [1.00e6, 1.13e6, 1.09e6], "b": [104e6, 101e6, 117e6]})
    summary = summarise(table, None, cells)
    [said] = [v for v in summary.verdicts if v.metric == "goodput_bits_per_sec"]
    assert said.low is not None and said.high is not None
    for limit, verdict in (
        (said.low * 0.9999, "holds"),
        (said.low * 1.0001, "undecided"),
        (said.high * 0.9999, "undecided"),
        (said.high * 1.0001, "fails"),
    ):
        assert outcome(f"b.goodput / a.goodput >= {limit:.9f}", summary, cells).verdict == verdict


def test_a_metric_is_written_with_the_digits_and_the_bounds_of_the_table() -> None:
    table, cells = compared({"a": [1.000e6, 1.125e6, 1.100e6]})
    summary = summarise(table, None, cells)
    assert written.plus_minus(summary.groups[0].metrics["goodput_bits_per_sec"], 1e6) == ("1.07", "±0.17")
    assert outcome("a.goodput > 0", summary, cells).detail == "left is 1.07 Mbit/s [0.91, 1.24]"
    table, cells = compared({"a": [0.1e6, 1.0e6]})
    summary = summarise(table, None, cells)
    found = outcome("a.goodput >= 0", summary, cells)
    assert found.verdict == "holds" and "[0, " in found.detail, "a rate is never below 0"


def test_a_percentage_is_never_above_100() -> None:
    rows = [flow(0, rep, 1e6, "a", total_retrans=n, data_segs_out=100) for rep, n in enumerate((99, 60))]
    cells = [cell(0, [], "a")]
    summary = summarise(flows(rows), None, cells)
    found = outcome("a.retransmit_pct <= 100%", summary, cells)
    assert (found.verdict, found.detail) == ("holds", "left is 80 % [0, 100]")


def test_a_metric_is_bounded_by_what_its_kind_can_be() -> None:
    bounds = {name: metrics.BY_NAME[name].bounds for name in ("retransmit_pct", "utilisation", "srtt_us_p50")}
    assert bounds == {"retransmit_pct": (0, 100), "utilisation": (0, 1), "srtt_us_p50": (0, float("inf"))}


def test_only_a_percentage_over_a_number_stays_a_percentage() -> None:
    one = np.ones(1)
    percent, bare, rate = Quantity(one, percent=True), Quantity(one, bare=True), Quantity(one, bits=1, seconds=-1)
    assert percent.over(bare).percent
    assert not any(a.over(b).percent for a, b in ((percent, percent), (rate, bare), (bare, percent)))


def test_a_quotient_is_of_two_that_are_measured_in_one_unit() -> None:
    one = np.ones(1)
    made = partial(Quantity, one, bits=1, measured=True, bounds=(0.0, np.inf))
    rate, amount = (made(seconds=seconds) for seconds in (-1, 0))
    figure = Quantity(one, bits=1, seconds=-1)
    assert rate.over(rate).quotient
    assert not any(a.over(b).quotient for a, b in ((rate, figure), (figure, rate), (rate, amount), (figure, figure)))


def test_a_figure_in_no_unit_is_refused() -> None:
    with pytest.raises(Problem, match='got the figure "7 cows"; expected a number with one of the units'):
        parse_figure("7 cows")
    with pytest.raises(Problem, match='got the figure "7cows"'):
        parse_figure("7cows")


def test_the_total_of_a_cell_is_that_of_all_its_flows() -> None:
    rows = [flow(0, rep, 1e6 * (1 + group), name, group) for rep in range(3) for group, name in enumerate("ab")]
    cells = [cell(0, [], "a", "b")]
    summary = summarise(flows(rows), None, cells)
    found = outcome("total.goodput > 2.9Mbit/s", summary, cells)
    assert (found.verdict, found.detail.split(" [")[0]) == ("holds", "left is 3.00 Mbit/s")


def test_the_receivers_algorithm_is_an_axis_like_any_other() -> None:
    cells = [cell(i, [("receiver.algorithm", name)], "cubic") for i, name in enumerate(("cubic", "bbr1"))]
    rows = [flow(index, rep, 1e6 * (1 + rep)) for index in range(2) for rep in range(3)]
    summary = summarise(flows(rows), None, cells)
    ratio = 'cubic[receiver.algorithm="bbr1"].goodput / cubic[receiver.algorithm="cubic"].goodput'
    assert outcome(f"{ratio} == 1", summary, cells).verdict == "holds"
    both = outcome("cubic.goodput > 0bit/s", summary, cells).detail
    assert "(receiver.algorithm=cubic)" in both and "(receiver.algorithm=bbr1)" in both


def test_a_measured_side_that_is_the_same_in_every_repetition_is_no_number() -> None:
    table, cells = compared({"cubic": [1e6, 1e6, 1e6], "bbr1": [2e6, 3e6, 4e6]})
    found = outcome("bbr1.goodput > cubic.goodput", summarise(table, None, cells), cells)
    assert found.detail.startswith("left - right is ")


def test_what_may_be_below_0_is_no_quotient_of_logarithms() -> None:
    """Of differences that are all above 0 by chance a mean of logarithms would say that the difference is."""
    a, b = (Quantity.of_metric("rate", np.array(values)) for values in ([3e6, 5e6, 2.1e6], [2e6, 2e6, 2e6]))
    share = a.minus(b).over(b)
    assert not share.quotient and not share.over(Quantity(np.array([2.0]), bare=True)).quotient
    found = share.estimate()
    assert found is not None and found.low is not None
    assert (found.mean, found.low < 0) == (pytest.approx(0.6833, rel=1e-3), True)
    twice = Quantity(np.array([2.0]), bare=True)
    assert all(
        one.quotient for one in (a.over(b), a.plus(b, 1).over(b), a.times(twice).over(b), a.over(b).times(twice))
    )
