"""Intervals, aggregation within a repetition, totals and warnings, against values worked out by hand or by scipy."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from support import cell, compared, flow, flows
from tcpknee.datasets.table import Table
from tcpknee.evidence import metrics, stats
from tcpknee.runs import groups
from tcpknee.runs import summary as summaries
from tcpknee.runs.summary import summarise


@given(st.floats(1, 1e5))
def test_quantile_of_students_t_is_scipys(degrees: float) -> None:
    assert stats.t_quantile(degrees) == pytest.approx(scipy_stats.t.ppf(0.975, degrees), rel=1e-9)


@pytest.mark.parametrize("degrees", [1, 2, 1e6, 1e9, math.inf])
def test_quantile_of_one_and_of_very_many_degrees(degrees: float) -> None:
    assert stats.t_quantile(degrees) == pytest.approx(scipy_stats.t.ppf(0.975, degrees), rel=2e-6)


def test_interval_of_three_values_is_students_t() -> None:
    # mean 2, s = 1, t(0.975, 2) = 0.95 / sqrt(2 * 0.975 * 0.025) = 4.302653, half = 4.302653 / sqrt(3)
    found = stats.estimate([1.0, 2.0, 3.0])
    assert found is not None
    assert found.mean == 2
    assert found.low == pytest.approx(2 - 4.302652729749462 / math.sqrt(3), rel=1e-12)
    assert found.high == pytest.approx(2 + 4.302652729749462 / math.sqrt(3), rel=1e-12)
    assert (found.n, found.identical) == (3, False)


@given(st.lists(st.floats(1, 1e9), min_size=2, max_size=30).filter(lambda values: np.ptp(values) > 1e-6 * max(values)))
def test_intervals_agree_with_scipy(values: list[float]) -> None:
    found = stats.estimate(values)
    expected = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-3)


def test_one_repetition_has_no_interval() -> None:
    assert stats.estimate([5.0]) == stats.Estimate(5.0, None, None, 1)


def test_identical_repetitions_are_said_to_be_identical() -> None:
    assert stats.estimate([0.1 + 0.2, 0.3, 0.3]) == stats.Estimate(0.1 + 0.2, 0.1 + 0.2, 0.1 + 0.2, 3, identical=True)


def test_values_that_are_missing_do_not_count() -> None:
    found = stats.estimate([math.nan, 4.0, math.nan])
    assert found == stats.Estimate(4.0, None, None, 1)
    assert stats.estimate([math.nan]) is None


def test_interval_is_cut_to_what_the_quantity_can_be() -> None:
    found = stats.estimate([0.0, 4.0], metrics.BY_NAME["retransmit_pct"].bounds)
    assert found is not None
    assert found.low == 0
    found = stats.estimate([0.99, 1.0], metrics.BY_NAME["utilisation"].bounds)
    assert found is not None
    assert found.high == 1


def test_repetitions_for_is_the_least_number_that_suffices() -> None:
    for deviation in (0.01, 0.05, 0.2, 1.0):
        needed = stats.units_for(deviation, math.log(1.05))
        assert stats.half_width(deviation, needed) <= math.log(1.05)
        assert needed == 2 or stats.half_width(deviation, needed - 1) > math.log(1.05)


def test_members_of_a_group_are_one_value_per_repetition() -> None:
    """Goodput is summed, delay averaged, least RTT taken, retransmissions pooled; n stays the number of repetitions."""
    table = flows(
        [
            flow(0, rep, goodput, srtt_us_p50=srtt, min_rtt_us=low, total_retrans=lost, data_segs_out=sent)
            for rep in (0, 1)
            for goodput, srtt, low, lost, sent in ((10.0, 100.0, 90, 1, 100), (30.0, 300.0, 80, 0, 300))
        ]
    )
    [group] = summarise(table, None, [cell(0, [], "cubic")]).groups
    assert group.metrics["goodput_bits_per_sec"] == stats.Estimate(40, 40, 40, 2, identical=True)
    assert group.metrics["srtt_us_p50"].mean == 200
    assert group.metrics["min_rtt_us"].mean == 80
    assert group.metrics["retransmit_pct"].mean == pytest.approx(0.25)


def test_order_of_rows_changes_nothing() -> None:
    rows = [flow(c, r, 10.0 * c + r + 1, group=g, algorithm="ab"[g]) for c in (0, 1) for r in (0, 1, 2) for g in (0, 1)]
    cells = [cell(c, [("path.rtt", f"{c}ms")], "a", "b") for c in (0, 1)]
    ordered = summarise(flows(rows), None, cells)
    mixed = summarise(flows(reversed(rows)), None, cells)
    assert [group.metrics for group in ordered.groups] == [group.metrics for group in mixed.groups]
    assert ordered.verdicts == mixed.verdicts


def test_limits_are_shares_of_the_flows_steady_parts() -> None:
    # Warm-up 1 s of 10 s. Steady parts: 9 s, from 2 s to 6 s, and all 500 ms of a flow done before the warm-up: 13.5 s.
    table = flows(
        [
            flow(0, 0, 1.0, cwnd_limited_us=2_700_000, pacing_limited_us=1_000_000),
            flow(0, 0, 1.0, start_ns=2_000_000_000, end_ns=6_000_000_000, pacing_limited_us=4_000_000),
            flow(0, 0, 1.0, start_ns=100_000_000, end_ns=600_000_000, pacing_limited_us=400_000),
        ]
    )
    [group] = summarise(table, None, [cell(0, [], "cubic")]).groups
    shares = {limit: found.mean for limit, found in group.limited_by.items()}
    assert shares == pytest.approx({"cwnd": 0.2, "rwnd": 0, "sndbuf": 0, "pacing": 0.4, "app": 0, "other": 0.4})


def test_limits_that_were_counted_for_longer_than_the_run_are_shares_of_that() -> None:
    rows = [flow(0, 0, 1.0, cwnd_limited_us=9_000_000, pacing_limited_us=1_000_000)]
    [group] = summarise(flows(rows), None, [cell(0, [], "cubic")]).groups
    assert (group.limited_by["cwnd"].mean, group.limited_by["pacing"].mean) == pytest.approx((0.9, 0.1))
    assert group.limited_by["other"].mean == 0


def test_goodput_of_several_transfers_is_over_the_time_in_which_any_was_under_way() -> None:
    """Without the time between them. What is delivered in the steady part is as much of each as lies there."""
    rows = [
        flow(
            0,
            0,
            1e6,
            workload="transfer",
            start_ns=start * 10**9,
            end_ns=end * 10**9,
            completion_us=1,
            transfer_bytes=1,
        )
        for start, end in ((0, 1), (3, 5), (4, 6))
    ]
    summary = summarise(flows(rows), None, [{**cell(0, [], "cubic"), "warmup_ns": 4 * 10**9, "duration_ns": 8 * 10**9}])
    [group], [total] = summary.groups, summary.totals
    # 5 s of a transfer each, 4 s in which there was one.
    assert (group.metrics["goodput_bits_per_sec"].mean, total.metrics["goodput_bits_per_sec"].mean) == (1.25e6, 1.25e6)
    assert total.values["delivered_bytes"].tolist() == [3e6 / 8]


def test_completion_percentiles_wait_for_transfers_that_did_not_complete() -> None:
    table = flows(
        [flow(0, 0, 1.0, workload="transfer", completion_us=value) for value in (100, 300, 200, None)]
        + [flow(0, 1, 1.0, workload="transfer", completion_us=value) for value in (100, 300, 200, 400)]
    )
    summary = summarise(table, None, [cell(0, [], "cubic")])
    [group] = summary.groups
    # Rank 1.5 of [100, 200, 300, late] is known, rank 2.85 is not.
    assert group.values["completion_us_p50"].tolist() == [250, 250]
    # Of the repetitions that tell it alone it would be too good.
    assert np.isnan(group.values["completion_us_p95"]).all() and "completion_us_p95" not in group.metrics
    [warning] = [one for one in summary.warnings if "1 of 8 transfers were not complete" in one]
    assert "so that p95 and p99 of their completion cannot be known of every repetition" in warning


def test_percentiles_of_a_size_are_over_its_transfers_alone() -> None:
    """Bounds belong to the size above them; what is not complete makes late percentiles of its own size unknown."""
    done = {500: 10, 9_999: 30, 10_000: 100, 50_000: 200, 99_999: 600, 100_000: None, 900_000: 5_000, 20_000_000: 9e6}
    rows = [
        flow(0, 0, 1.0, workload="web", transfer_bytes=size, completion_us=us, slowdown=us and us / 10)
        for size, us in done.items()
    ]
    [group] = summarise(flows(rows), None, [cell(0, [], "cubic")]).groups
    found = {name: estimate.mean for name, estimate in group.metrics.items()}
    counts = {sizes.name: found[f"transfers_{sizes.name}"] for sizes in metrics.SIZES}
    assert counts == {"below_10kB": 2, "10kB_to_100kB": 3, "100kB_to_1MB": 2, "1MB_to_10MB": 0, "from_10MB": 1}
    assert found["transfers"] == sum(counts.values()) == len(done)
    assert [sizes.label for sizes in group.sizes] == ["< 10 kB", "10 to 100 kB", "100 kB to 1 MB", "≥ 10 MB"]
    assert found["completion_us_p50_below_10kB"] == 20
    assert found["completion_us_p50_10kB_to_100kB"] == 200
    assert found["completion_us_p95_10kB_to_100kB"] == pytest.approx(200 + 0.9 * 400)
    assert found["slowdown_p50_10kB_to_100kB"] == 20
    assert found["completion_us_p99_from_10MB"] == 9e6
    for name in ("completion_us_p50_100kB_to_1MB", "slowdown_p99_100kB_to_1MB", "completion_us_p50_1MB_to_10MB"):
        assert name not in found


def test_sizes_are_parted_at_each_power_of_ten_from_10_kilobytes_on() -> None:
    bounds = (10**4, 10**5, 10**6, 10**7)
    rows = [flow(0, 0, 1.0, workload="web", transfer_bytes=size) for bound in bounds for size in (bound - 1, bound)]
    [group] = summarise(flows(rows), None, [cell(0, [], "cubic")]).groups
    assert [group.metrics[f"transfers_{sizes.name}"].mean for sizes in metrics.SIZES] == [1, 2, 2, 2, 1]


def test_a_sum_of_what_no_member_tells_is_missing_and_not_zero() -> None:
    [group] = summarise(flows([flow(0, 0, 1.0), flow(0, 1, 2.0)]), None, [cell(0, [], "cubic")]).groups
    assert "requests_per_sec" not in group.metrics
    assert "min_rtt_us" not in group.metrics


def test_what_a_program_printed_stands_where_its_flows_tell_nothing() -> None:
    """Of the client: a server prints what it saw of all clients."""
    printed = [
        {"cell": 0, "group": 0, "rep": 0, "role": "server", "requests_per_sec": 9000.0},
        {"cell": 0, "group": 0, "rep": 0, "role": "client", "requests_per_sec": 700.0, "latency_us_p50": 120.0},
        {"cell": 0, "group": 1, "rep": 0, "role": "client", "requests_per_sec": 50.0},
    ]
    rows = [flow(0, 0, 1.0, "a", 0), flow(0, 0, 1.0, "b", 1, requests_per_sec=40.0)]
    names = {"cell", "group", "rep", "role", *groups.MEASURED}
    programs = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in printed])
    first, second = summarise(flows(rows), None, [cell(0, [], "a", "b")], programs).groups
    assert first.metrics["requests_per_sec"].mean == 700
    assert first.metrics["latency_us_p50"].mean == 120
    assert second.metrics["requests_per_sec"].mean == 40


def test_a_flow_that_stays_and_came_late_keeps_its_own_rate() -> None:
    [group] = summarise(flows([flow(0, 0, 40.0, start_ns=5e9)]), None, [cell(0, [], "cubic")]).groups
    assert group.metrics["goodput_bits_per_sec"].mean == 40


def test_flows_that_are_no_transfers_have_no_metric_of_them() -> None:
    table = flows([flow(0, 0, 1.0), flow(0, 1, 2.0)])
    for rows in (table, Table(table.arrow().drop_columns(["transfer_bytes", "slowdown"]))):
        [group] = summarise(rows, None, [cell(0, [], "cubic")]).groups
        assert not [name for name in group.metrics if name.startswith(("transfers", "completion", "slowdown"))]
        assert group.sizes == []


def test_jain_index_of_equal_and_of_unequal_flows() -> None:
    rows = [flow(0, 0, 5.0), flow(0, 0, 5.0), flow(1, 0, 9.0), flow(1, 0, 1.0), flow(2, 0, 4.0)]
    cells = [cell(c, [("path.rtt", f"{c}ms")], "cubic") for c in range(3)]
    equal, unequal, alone = summarise(flows(rows), None, cells).totals
    assert equal.metrics["jain"].mean == pytest.approx(1)
    assert unequal.metrics["jain"].mean == pytest.approx(100 / (2 * 82))
    assert "jain" not in alone.metrics


def test_goodput_of_transfers_that_come_and_go_is_over_the_whole_steady_part() -> None:
    # Warm-up 1 s of 10 s. In the 9 s: 90 bit/s for 1 s, for the 2 s of a transfer that began in the warm-up, and for
    # the last 3 s of one that is not complete. The first was done before and carried nothing in them.
    times = ((0, 0.5), (4, 5), (0.5, 3), (7, None))
    rows = [
        flow(0, 0, 90.0, workload="web", group=1, start_ns=start * 1e9, end_ns=end and end * 1e9)
        for start, end in times
    ]
    table = flows([flow(0, 0, 40.0), *rows, flow(1, 0, 40.0)])
    summary = summarise(table, None, [cell(0, [], "cubic", "web"), cell(1, [], "cubic")])
    web = summary.groups[1]
    assert web.metrics["goodput_bits_per_sec"].mean == pytest.approx(60)
    total, alone = summary.totals
    assert total.metrics["goodput_bits_per_sec"].mean == pytest.approx(100)
    assert "jain" not in total.metrics, "one flow stays"
    assert alone.metrics["goodput_bits_per_sec"].mean == 40


def test_a_total_counts_each_flow_for_its_part_of_the_steady_time() -> None:
    # Warm-up 1 s of 10 s: 40 bit/s throughout, 90 bit/s in the last 3 s, and a transfer that was over before.
    late = flow(0, 0, 90.0, group=1, start_ns=7e9)
    early = flow(0, 0, 500.0, group=2, workload="transfer", start_ns=0, end_ns=0.5e9, transfer_bytes=1)
    summary = summarise(flows([flow(0, 0, 40.0), late, early]), None, [cell(0, [], "cubic", "late", "early")])
    assert [group.metrics["goodput_bits_per_sec"].mean for group in summary.groups] == [40, 90, 500]
    [total] = summary.totals
    assert total.metrics["goodput_bits_per_sec"].mean == pytest.approx(70)


def test_utilisation_begins_at_the_warm_up_whenever_rows_are_written() -> None:
    # Nothing leaves in the first 2 s, and then all that can, 12.5 MB/s; the warm-up ends at 1 s. Between rows bytes
    # are taken to have left evenly: a third of what the row at 3 s has counts to the warm-up.
    for step, expected in ((1, 8 / 9), (3, (8 - 1 / 3) / 9), (4, (8 - 2 / 4) / 9), (9, (8 - 7 / 9) / 9)):
        times = [*range(0, 10, step), 10]
        queue = pa.Table.from_pylist(
            [
                {
                    "cell": 0,
                    "rep": 0,
                    "hop": 0,
                    "t_ns": t * 1_000_000_000,
                    "sent_bytes": max(t - 2, 0) * 12_500_000,
                    "offered_bytes": t * 12_500_000,
                }
                for t in times
            ]
        )
        [total] = summarise(flows([flow(0, 0, 1.0)]), queue.to_batches(), [cell(0, [], "cubic")]).totals
        assert total.metrics["utilisation"].mean == pytest.approx(expected), step


def test_utilisation_leaves_the_warm_up_out() -> None:
    # 100 Mbit/s; between 1 s and 10 s 56.25 MB of 112.5 MB left: a half. What left before 1 s does not count.
    queue = pa.table(
        {
            "cell": [0, 0, 0],
            "rep": [0, 0, 0],
            "hop": [0, 0, 0],
            "t_ns": [0, 1_000_000_000, 10_000_000_000],
            "sent_bytes": [0, 12_500_000, 12_500_000 + 56_250_000],
            "offered_bytes": [0, 12_500_000, 125_000_000],
        }
    )
    [total] = summarise(flows([flow(0, 0, 1.0)]), queue.to_batches(), [cell(0, [], "cubic")]).totals
    assert total.metrics["utilisation"].mean == pytest.approx(0.5)
    unlimited = queue.set_column(5, "offered_bytes", pa.nulls(3, pa.int64()))
    [total] = summarise(flows([flow(0, 0, 1.0)]), unlimited.to_batches(), [cell(0, [], "cubic")]).totals
    assert "utilisation" not in total.metrics


def test_utilisation_is_of_each_cell_and_each_repetition() -> None:
    # Each row: what left in 9 s at 100 Mbit/s, of 112.5 MB.
    sent = {(0, 0): 22_500_000, (0, 1): 45_000_000, (1, 0): 90_000_000, (1, 1): 112_500_000}
    rows = [
        {
            "cell": c,
            "rep": r,
            "hop": 0,
            "t_ns": t,
            "sent_bytes": left if t > 1_000_000_000 else 0,
            "offered_bytes": t // 80,
        }
        for (c, r), left in sent.items()
        for t in (1_000_000_000, 10_000_000_000)
    ]
    table = flows([flow(c, r, 1.0) for c, r in sent])
    cells = [cell(c, [("path.rtt", f"{c}ms")], "cubic") for c in (0, 1)]
    queue = pa.Table.from_pylist(rows)
    first, second = summarise(table, queue.to_batches(), cells).totals
    assert first.values["utilisation"].tolist() == pytest.approx([0.2, 0.4])
    assert second.values["utilisation"].tolist() == pytest.approx([0.8, 1.0])
    # A few rows at a time, and in any order.
    for batches in (queue.to_batches(1), queue.to_batches(3), queue.to_batches(1)[::-1]):
        again = summarise(table, batches, cells).totals
        assert [total.values["utilisation"].tolist() for total in again] == [
            total.values["utilisation"].tolist() for total in (first, second)
        ]


def test_one_repetition_is_warned_of() -> None:
    table, cells = compared({"cubic": [1.0], "bbr1": [2.0]})
    assert any("no intervals and no verdicts" in warning for warning in summarise(table, None, cells).warnings)


def test_repetitions_that_are_all_identical_are_said_to_be_needless() -> None:
    table, cells = compared({"cubic": [1.0, 1.0], "bbr1": [2.0, 2.0]})
    assert any("Every repetition is identical" in warning for warning in summarise(table, None, cells).warnings)
    table, cells = compared({"cubic": [1.0, 1.0], "bbr1": [2.0, 2.1]})
    assert not any("identical" in warning for warning in summarise(table, None, cells).warnings)


def test_cells_without_any_repetition_are_named() -> None:
    table, cells = compared({"cubic": [1.0, 1.1], "bbr1": [2.0]})
    found = summarise(table, None, [*cells, cell(2, [("flow.0.algorithm", "reno")], "reno")])
    assert any("between 1 and 2 repetitions" in warning for warning in found.warnings)
    assert any("1 of 3 cells have no repetition yet" in warning for warning in found.warnings)


def test_what_settings_are_warned_of_is_said_once_with_its_cells() -> None:
    table, cells = compared({"cubic": [1e6, 2e6], "reno": [1e6, 2e6]})
    for place, at in (("too short.", [0, 1]), ("cell 1: too short.", [1])):
        marked = [{**cell, "cautions": ["too short"]} if i in at else cell for i, cell in enumerate(cells)]
        summary = summarise(table, None, marked)
        assert [warning for warning in summary.warnings if "too short" in warning] == [place]


def test_a_run_without_flows_has_an_empty_summary() -> None:
    summary = summarise(flows([]), None, [cell(0, [], "cubic")])
    assert (summary.groups, summary.totals, summary.verdicts) == ([], [], [])


@pytest.mark.parametrize("untold", ["total_retrans", "data_segs_out"])
def test_retransmissions_that_the_kernel_does_not_tell_are_no_zero(untold: str) -> None:
    told = {"total_retrans": 5, "data_segs_out": 100}
    [group] = summarise(flows([flow(0, 0, 1.0, **told)]), None, [cell(0, [], "cubic")]).groups
    assert group.metrics["retransmit_pct"].mean == 5
    rows = [flow(0, 0, 1.0, **{**told, untold: None})]
    [group] = summarise(flows(rows), None, [cell(0, [], "cubic")]).groups
    assert "retransmit_pct" not in group.metrics


def test_what_limits_is_not_guessed_where_the_kernel_does_not_tell_the_rest() -> None:
    """What is left is no limit's, and is said to be left only where all else is told."""
    rows = {"cwnd_limited_us": None, "pacing_limited_us": None, "rwnd_limited_us": 0, "sndbuf_limited_us": 0}
    told = [flow(0, 0, 1.0, **rows, app_limited_us=9_000_000 / 4)]
    [group] = summarise(flows(told), None, [cell(0, [], "cubic")]).groups
    assert group.limited_by["other"].mean == pytest.approx(0.75)
    told = [flow(0, 0, 1.0, **rows, app_limited_us=9_000_000 / 4, cpu_limited_us=9_000_000 / 4)]
    [group] = summarise(flows(told), None, [cell(0, [], "cubic")]).groups
    assert (group.limited_by["cpu"].mean, group.limited_by["other"].mean) == pytest.approx((0.25, 0.5))
    rows |= {"rwnd_limited_us": None, "sndbuf_limited_us": None, "app_limited_us": None}
    [group] = summarise(flows([flow(0, 0, 1.0, **rows)]), None, [cell(0, [], "cubic")]).groups
    assert group.limited_by == {}


def test_a_cell_whose_programs_opened_no_connection_is_not_said_to_lack_a_repetition() -> None:
    table, cells = compared({"cubic": [1.0, 1.1]})
    more = [cell(index, [("flow.0.algorithm", name)], name) for index, name in ((1, "reno"), (2, "bbr1"))]
    by_cell = {one["index"]: one for one in [*cells, *more]}
    found = summarise(table, None, list(by_cell.values()))
    lines = summaries._warnings(found, by_cell, {0, 1}, set(), 2)
    assert any(line.startswith("The programs of 1 of 3 cells opened no connection") for line in lines)
    assert any("1 of 3 cells have no repetition yet" in line for line in lines)
