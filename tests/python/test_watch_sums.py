"""What `knee watch` says of samples whose values this test chose."""

import math

import numpy as np
import pyarrow as pa
import pytest

from tcpknee.errors import UsageError
from tcpknee.live.watch import filters, sample, view

IDLE = dict.fromkeys((*sample.COUNTERS, *sample.GAUGES), 0)


def taken(
    monkeypatch: pytest.MonkeyPatch, t_ms: int, before: sample.Sample | None, *rows: dict[str, object]
) -> sample.Sample:
    """A sample of these rows at this time."""
    told = [
        {
            "cookie": 1,
            "state": "ESTAB",
            "algorithm": "reno",
            "local_addr": "192.0.2.9",
            "remote_addr": "192.0.2.1",
            "t_mono_ns": t_ms * 10**6,
        }
        | IDLE
        | row
        for row in rows
    ]
    texts = pa.dictionary(pa.int32(), pa.string())
    kinds = {
        "cookie": pa.uint64(),
        "state": texts,
        "algorithm": texts,
        "local_addr": pa.string(),
        "remote_addr": pa.string(),
    }
    names = [*kinds, "t_mono_ns", *IDLE]
    columns = {name: pa.array([row[name] for row in told], kinds.get(name, pa.int64())) for name in names}
    # In two batches, each with a dictionary of its own, as a large dump is.
    whole = pa.table(columns)
    halves = [whole.slice(0, 1), whole.slice(1)]
    table = pa.concat_tables([pa.Table.from_pylist(half.to_pylist(), whole.schema) for half in halves])
    monkeypatch.setattr(sample, "sockets", lambda **wanted: table)
    return sample.take({}, before)


def test_rates_are_differences_of_the_same_cookie(monkeypatch: pytest.MonkeyPatch) -> None:
    first = taken(
        monkeypatch,
        1_000,
        None,
        {"cookie": 7, "bytes_acked": 1_000, "data_segs_out": 10},
        {"cookie": 2**63 + 5, "bytes_acked": 5_000, "total_retrans": 2**32 - 1, "data_segs_out": 2**32 - 50},
    )
    assert np.isnan(first.values["acked_bits_per_sec"]).all()
    second = taken(
        monkeypatch,
        1_500,
        first,
        {"cookie": 2**63 + 5, "bytes_acked": 6_000, "total_retrans": 4, "data_segs_out": 50},
        {"cookie": 9, "bytes_acked": 10**9},
        {"cookie": 7, "bytes_acked": 1_000, "data_segs_out": 10},
    )
    rates = second.values["acked_bits_per_sec"]
    assert rates[0] == 16_000
    # New: what it did before is not of this interval.
    assert math.isnan(rates[1])
    assert rates[2] == 0
    # 5 of 100, across the end of the kernel's 32 bits; of nothing sent there is no share.
    assert second.values["retransmit_pct"][0] == 5
    assert math.isnan(second.values["retransmit_pct"][2])
    assert second.find(9) == 1
    assert second.find(8) is None


@pytest.mark.parametrize(
    ("grown", "expected"),
    [
        ({}, "idle"),
        ({"busy_us": 100_000, "bytes_sent": 9}, "app"),
        ({"busy_us": 990_000, "rwnd_limited_us": 700_000}, "rwnd"),
        ({"busy_us": 990_000, "sndbuf_limited_us": 600_000}, "sndbuf"),
        ({"busy_us": 990_000, "snd_cwnd": 10, "inflight": 9}, "cwnd"),
        ({"busy_us": 990_000, "snd_cwnd": 10, "inflight": 2, "ca_state": 4}, "cwnd"),
        ({"busy_us": 990_000, "snd_cwnd": 10, "inflight": 5, "notsent_bytes": 1}, "pacing"),
        ({"busy_us": 990_000, "snd_cwnd": 10, "inflight": 5}, "app"),
        ({"busy_us": None}, ""),
    ],
)
def test_what_limits_is_what_took_most_of_the_interval(
    monkeypatch: pytest.MonkeyPatch, grown: dict[str, object], expected: str
) -> None:
    first = taken(monkeypatch, 0, None, {"snd_cwnd": 10})
    second = taken(monkeypatch, 1_000, first, {"snd_cwnd": 10, **grown})
    assert sample.LIMITED[first.limited[0]] == ""
    assert sample.LIMITED[second.limited[0]] == expected


def test_algorithms_are_summed_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [{"cookie": n, "algorithm": "bbr" if n < 3 else "reno", "srtt_us": 10_000 * n} for n in range(1, 5)]
    first = taken(monkeypatch, 0, None, *before)
    after = [{**row, "bytes_acked": 125, "data_segs_out": 10, "total_retrans": 1} for row in before]
    groups = {group.name: group for group in sample.per_algorithm(taken(monkeypatch, 1_000, first, *after))}
    assert groups["bbr"].connections == groups["reno"].connections == 2
    assert groups["bbr"].acked_bits_per_sec == 2_000
    assert groups["reno"].retransmit_pct == 10
    assert (groups["bbr"].srtt_us_p50, groups["reno"].srtt_us_p50) == (15_000, 35_000)


def test_rows_are_sorted_with_what_is_not_known_last(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"cookie": n, "srtt_us": srtt} for n, srtt in enumerate((20, None, 30, 20), 1)]
    found = taken(monkeypatch, 0, None, *rows)
    assert [int(found.cookies[row]) for row in view.ordered(found, "srtt_us", True)] == [3, 1, 4, 2]
    assert [int(found.cookies[row]) for row in view.ordered(found, "srtt_us", False)] == [1, 4, 3, 2]
    for column in view.COLUMNS:
        assert sorted(view.ordered(found, column.name, True)) == [0, 1, 2, 3]


def test_a_history_keeps_what_its_bound_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "KEPT_BYTES", 3 * 2 * (8 + 4 * len(sample.KEPT)))
    history = sample.History()
    for number in range(5):
        history.add(taken(monkeypatch, number, None, {"cookie": 2, "snd_cwnd": number}, {"cookie": 1}))
    assert history.of(2)["snd_cwnd"] == [2, 3, 4]
    assert history.of(3)["snd_cwnd"] == []


@pytest.mark.parametrize("peer_width", [0, 54])
def test_columns_fill_no_more_than_the_width(peer_width: int) -> None:
    for width in range(300):
        layout = view.fitting(width, peer_width)
        assert sum(room + 1 for _, room in layout) - 1 <= max(width, -1)
    assert [column.name for column, _ in view.fitting(80, peer_width)] == [column.name for column in view.COLUMNS[:9]]


def test_numbers_keep_within_their_columns() -> None:
    widths = {"whole": 5, "ms": 7, "pct": 6, "rate": 10, "bytes": 7, "count": 5}
    # Round-trip times have 32 bits of microseconds.
    values = {
        "whole": [0, 65535],
        "ms": [0, 7, 999, 1_000, 99_999, 10**6, 2**32 - 1],
        "pct": [0, 0.0123, 9.96, 99.4, 99.6, 100],
    }
    for kind, width in widths.items():
        for value in values.get(kind, [0, 1, 999, 999.6, 1023.9, 99_999, 1e6, 123_456_789, 2**40]):
            assert len(view.number(kind, value)) <= width, (kind, value, view.number(kind, value))
    assert view.number("rate", math.nan) == "-"
    assert view.number("ms", 7) == "0.007"


def test_a_filter_line_is_read_and_written_alike() -> None:
    line = "port=443,!8080 address=10.0.0.0/8 algorithm=bbr state=ESTAB min-bytes=1MB"
    wanted = filters.parse(line)
    assert wanted["ports"] == ["443", "!8080"]
    assert wanted["min_bytes"] == "1MB"
    assert filters.line(wanted) == line
    assert filters.parse("") == {}
    for refused in ("443", "port=", "foo=1", "mark=1 mark=2"):
        with pytest.raises(UsageError, match="filter: got"):
            filters.parse(refused)


def test_sparklines_span_from_zero_to_the_largest() -> None:
    assert view.sparkline([0, 4, 8, math.nan, 8], 10) == "▁▅█ █"
    assert view.sparkline([1, 2, 3], 2) == "▆█"
    assert view.sparkline([0, 0], 4) == "▁▁"
    assert view.sparkline([1], 0) == ""


def test_the_state_of_congestion_control_is_told_by_the_kernels_word() -> None:
    told = {
        state: dict(view.fields(pa.table({"ca_state": pa.array([state], pa.int32())})))["ca_state"]
        for state in (0, 3, 9)
    }
    assert told == {0: "Open (0)", 3: "Recovery (3)", 9: "9"}
