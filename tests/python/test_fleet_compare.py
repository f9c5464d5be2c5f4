"""`knee fleet compare`: cohorts, checks and verdicts, on fleets whose truth is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawn_fleets import HOUR, NOON, fleet, written
from support import Ended
from support import refused as refused_in_a_line
from tcpknee import fleet as fleets
from tcpknee.errors import RunFolderError, UsageError
from tcpknee.fleet.cohorts import before as before_module
from tcpknee.fleet.cohorts.verdicts import more
from tcpknee.fleet.statistics import Interval
from test_fleet_connections import recording, sample

Call = Callable[..., Ended]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bbr1 with 1.3 times the rate and three times the retransmissions, drawn by prefix."""
    return written(tmp_path_factory.mktemp("fleet"), fleet())


def test_a_known_effect_lies_within_the_interval_and_the_verdict_says_its_sign(drawn: Path) -> None:
    found = fleets.compare(drawn)
    rate, retrans = found.verdict("delivery_rate_bits_per_sec"), found.verdict("retransmit_pct")
    assert (rate.word, retrans.word) == ("better", "worse")
    assert rate.ratio.low < 1.3 < rate.ratio.high and retrans.ratio.low < 3 < retrans.ratio.high
    assert found.baseline == "cubic" and found.clusters == "client prefix"
    assert found.verdict("min_rtt_us").word == "no difference shown"


@pytest.mark.parametrize(
    ("metric", "cohort", "said"),
    [
        ("srtt", "bbr1", r'^metric: got "srtt"; expected one that is known of both cohorts: .*Did you mean "srtt_us"'),
        ("srtt_us", "bbr", r'^cohort: got "bbr"; expected bbr1\. Did you mean "bbr1"'),
        ("srtt_us", "cubic", r'^cohort: got "cubic"; expected bbr1\.'),
    ],
)
def test_a_verdict_that_there_is_not_is_refused_with_those_that_there_are(
    drawn: Path, metric: str, cohort: str, said: str
) -> None:
    found = fleets.compare(drawn)
    with pytest.raises(UsageError, match=said):
        found.verdict(metric, cohort)


def test_cohorts_that_do_not_differ_are_not_called_different(tmp_path: Path) -> None:
    same = {"rate": 1.0, "retrans": 1.0}
    found = fleets.compare(written(tmp_path / "aa", fleet(20_000, by="connection", **same)), margin="10%")
    assert {verdict.word for verdict in found.verdicts} <= {"no difference shown", "no worse than 10 %"}
    assert found.verdict("srtt_us").word == "no worse than 10 %"


def test_every_verdict_says_at_which_adoption_it_holds(drawn: Path) -> None:
    found = fleets.compare(drawn)
    share = 100 * found.counts.of_cohorts["bbr1"] / found.counts.total
    assert all(f"bbr1 at {share:.0f} % adoption" in verdict.told for verdict in found.verdicts)
    assert f"bbr1 against cubic, at {share:.0f} % adoption of bbr1:" in str(found)


def test_a_metric_that_is_another_one_by_name_is_no_comparison_of_its_own(tmp_path: Path) -> None:
    columns = fleet(20_000, rate=1.02, retrans=1.02)
    alone = fleets.compare(written(tmp_path / "alone", columns))
    twice = fleets.compare(written(tmp_path / "twice", {**columns, "loss_pct": columns["retransmit_pct"]}))
    assert twice.verdict("loss_pct").same_as is not None
    assert twice.verdict("loss_pct").p_adjusted == twice.verdict("retransmit_pct").p_adjusted
    assert [one.p_adjusted for one in twice.verdicts if not one.same_as] == [one.p_adjusted for one in alone.verdicts]
    [told] = [one for one in twice.as_json()["verdicts"] if one["same_as"]]
    assert (told["metric"], told["same_as"]) == ("loss_pct", "retransmit_pct")
    counted = f"corrected for {len(alone.verdicts)} comparisons"
    one, other = (" ".join(str(found).split()) for found in (alone, twice))
    assert counted in one and counted in other
    assert "each pair is one comparison: lost is retransmitted." in other and "each pair" not in one


def test_the_text_says_of_each_metric_which_statistic_is_compared(drawn: Path) -> None:
    text = str(fleets.compare(drawn))
    assert "retransmitted mean %" in text and "smoothed RTT P50 ms" in text


def test_the_text_has_at_most_100_columns_and_verdicts_before_quantiles(drawn: Path) -> None:
    lines = str(fleets.compare(drawn, strata=["rtt", "rate"], reweight="rtt")).splitlines()
    assert max(map(len, lines)) <= 100
    assert next(k for k, line in enumerate(lines) if "adoption of" in line) < next(
        k for k, line in enumerate(lines) if "P99" in line
    )


def test_p_values_are_printed_raw_and_corrected(drawn: Path) -> None:
    found = fleets.compare(drawn)
    [verdict] = [one for one in found.verdicts if one.metric.name == "srtt_us"]
    assert verdict.p_adjusted > verdict.p_value > 0.001
    raw, corrected = (f"{value:.3f}".lstrip("0") for value in (verdict.p_value, verdict.p_adjusted))
    assert f"smoothed RTT {raw}, {corrected}" in " ".join(str(found).split())


def test_json_has_every_interval_and_no_nan(call: Call, drawn: Path) -> None:
    ended = call("fleet", "compare", drawn, "--json", "--out", "out", "-q")
    found = json.loads(ended.out, parse_constant=lambda name: pytest.fail(name))
    assert found == json.loads(Path("out/comparison.json").read_text())
    assert {verdict["metric"] for verdict in found["verdicts"]} >= {"srtt_us", "retransmit_pct", "inflight_pkts"}
    own = found["values"]["bbr1"]["srtt_us"]
    assert list(own) == ["mean", "P25", "P50", "P75", "P95", "P99"] and own["P25"]["low"] < own["P25"]["high"]


def test_what_is_left_out_is_said_with_its_share(drawn: Path) -> None:
    found = fleets.compare(drawn, min_bytes="1MB", triggered=True)
    counts = found.counts
    assert sum(counts.kept.values()) + counts.too_small + counts.not_triggered == counts.total == 6000
    small, idle = (100 * share / counts.total for share in (counts.too_small, counts.not_triggered))
    assert f"Left out: {small:.0f} % moved less than 1 MB, {idle:.0f} % never left" in " ".join(str(found).split())


def test_what_was_not_triggered_is_said_also_beside_what_is_left_out(drawn: Path) -> None:
    found = fleets.compare(drawn, min_bytes="1MB")
    small, idle = (100 * share / 6000 for share in (found.counts.too_small, found.counts.not_triggered))
    told = f"{small:.0f} % moved less than 1 MB. {idle:.0f} % never left the initial window or were app-limited, which"
    assert told in " ".join(str(found).split())


def test_what_tells_no_cohort_is_left_out_once_and_what_has_no_cluster_is_told(tmp_path: Path) -> None:
    columns = fleet(2000, 200)
    at = np.arange(2000)
    columns["algorithm"] = [None if one % 4 == 0 else name for one, name in zip(at, columns["algorithm"], strict=True)]
    columns["bytes_acked"] = np.where((at % 4 == 0) | (at % 4 == 1), 1000, 10_000_000)
    columns["link"] = [None if one % 4 == 2 else f"link{one % 40}" for one in at]
    found = fleets.compare(written(tmp_path / "parts", columns), min_bytes="1MB", cluster="link", partial=True)
    counts = found.counts
    assert (counts.unknown, counts.too_small, counts.without_cluster, sum(counts.kept.values())) == (500,) * 4
    told = " ".join(str(found).split())
    assert "Left out: 25 % tell no algorithm, 25 % moved less than 1 MB, 25 % are of no link." in told


def test_what_few_connections_have_and_is_worse_is_shown(tmp_path: Path) -> None:
    """Less than one of a hundred: P99 is 0."""
    columns = fleet(12_000, 1200)
    treated = np.array(columns["algorithm"]) == "bbr1"
    rare = np.random.default_rng(1).random(12_000) < 0.009
    columns["retransmit_pct"] = np.where(rare, np.where(treated, 90.0, 0.01), 0.0)
    found = fleets.compare(written(tmp_path / "rare", columns))
    assert found.verdict("retransmit_pct").word == "worse"
    text = str(found)
    assert "retransmitted mean %" in text and "0 for 99 %" not in text


def test_metrics_that_are_all_zero_are_no_comparisons(tmp_path: Path) -> None:
    columns = fleet(3000, 300)
    usual = fleets.compare(written(tmp_path / "usual", columns))
    nothing = columns | {name: np.zeros(3000) for name in ("loss_pct", "rwnd_limited_pct", "sndbuf_limited_pct")}
    found = fleets.compare(written(tmp_path / "nothing", nothing))
    assert len(found.verdicts) == len(usual.verdicts) + 3
    for one in usual.verdicts:
        assert found.verdict(one.metric.name).p_adjusted == one.p_adjusted
    assert str(found).split("corrected for")[1] == str(usual).split("corrected for")[1]


def test_percentages_stay_within_what_they_can_be(tmp_path: Path) -> None:
    columns = fleet(400, 4)
    own = np.array([name.endswith(".0.0/24") for name in columns["remote_prefix"]])
    columns["rwnd_limited_pct"] = np.where(own, 95.0, 1.0)
    found = fleets.compare(written(tmp_path / "few", columns), partial=True)
    apart = found.verdict("rwnd_limited_pct").difference
    assert apart.low >= -100 and apart.high <= 100
    for cohort in found.cohorts:
        mean = found.values[cohort]["rwnd_limited_pct"]["mean"]
        assert mean.low >= 0 and mean.high <= 100


def test_cohorts_behind_the_same_prefixes_are_warned_of_and_clustered_ones_are_not(tmp_path: Path, drawn: Path) -> None:
    naive = fleets.compare(written(tmp_path / "naive", fleet(by="connection")))
    assert [one for one in naive.warnings if one.startswith("interference:") and "% adoption" in one]
    assert not [one for one in fleets.compare(drawn).warnings if one.startswith("interference:")]


def test_one_connection_of_a_cluster_more_or_less_does_not_narrow_the_interval(tmp_path: Path) -> None:
    """Connections of a client are not independent: ten times as many from the same prefixes tell little more."""
    few, many = (
        fleets.compare(written(tmp_path / str(count), fleet(count, 200))).verdict("min_rtt_us").value
        for count in (3000, 30_000)
    )
    assert (many.high - many.low) / many.value > 0.5 * (few.high - few.low) / few.value


def test_fewer_than_30_clusters_are_told(tmp_path: Path) -> None:
    found = fleets.compare(written(tmp_path / "few", fleet(2000, 12)))
    assert [one for one in found.warnings if "with fewer than 30 intervals are not to be trusted" in one]


def test_a_cohort_of_one_cluster_keeps_its_values_and_lacks_the_intervals(call: Call, tmp_path: Path) -> None:
    columns = fleet(2000, 100)
    pairs = zip(columns["algorithm"], columns["remote_prefix"], strict=True)
    columns["remote_prefix"] = ["10.9.9.0/24" if algorithm == "bbr1" else prefix for algorithm, prefix in pairs]
    data = written(tmp_path / "one", columns)
    found = json.loads(call("fleet", "compare", data, "--json", "-q").out)
    treated = np.array(columns["algorithm"]) == "bbr1"
    for name, value in found["values"]["bbr1"]["srtt_us"].items():
        of = {"mean": np.mean}.get(name, lambda rows, name=name: np.percentile(rows, int(name[1:])))
        assert value["value"] == pytest.approx(of(columns["srtt_us"][treated]), rel=0.02)
        assert (value["low"], value["high"], value["clusters"]) == (None, None, 1)
    text = call("fleet", "compare", data, "-q").out
    [warning] = [one for one in found["warnings"] if one.startswith("bbr1 has 1 cluster: ")]
    assert "--cluster" in warning and "1 cluster that" not in text
    assert "[no interval] ×" in text and "cannot be told" in text and "p alone" not in text
    above, below = (text.split("P99")[part] for part in (0, 1))
    assert "smoothed RTT P50 ms" in above and "smoothed RTT ms" in below


def test_metrics_have_one_unit_in_all_parts_of_the_text(tmp_path: Path) -> None:
    """Of three cohorts, the pair of two slow ones would read better in kbit/s."""
    columns = fleet(3000, 300, algorithms=("cubic", "bbr1", "reno"), rate=1.0)
    slow = np.array(columns["algorithm"]) != "reno"
    columns["delivery_rate_bits_per_sec"] = columns["delivery_rate_bits_per_sec"] * np.where(slow, 0.001, 1.0)
    text = str(fleets.compare(written(tmp_path / "mixed", columns)))
    assert text.count("delivery rate P50 Mbit/s") == 2 and text.count("delivery rate Mbit/s") == 1


def test_cohorts_without_a_known_metric_are_told_so(call: Call, tmp_path: Path) -> None:
    """An import of dumps in which each connection is seen once."""
    columns = fleet(40)
    metrics = [name for name in columns if name.endswith(("_pct", "_us", "_per_sec", "_pkts"))]
    data = written(tmp_path / "unknown", {**columns, **{name: pa.nulls(40, pa.float64()) for name in metrics}})
    for words in (("compare", data), ("report", data, "--out", tmp_path / "page.html")):
        assert call("fleet", *words, "-q").code == 0
    text = call("fleet", "compare", data, "-q").out
    assert "No metric to compare: none is known of both" in text and "P99" not in text


def test_strata_that_go_the_other_way_than_the_total_are_told(tmp_path: Path) -> None:
    """Simpson's paradox: bbr1 is slower in each band, but serves the fast one."""
    columns = fleet(8000, 600, rate=0.7, by="connection")
    treated = np.array(columns["algorithm"]) == "bbr1"
    near = np.random.default_rng(3).random(8000) < np.where(treated, 0.9, 0.1)
    columns["min_rtt_us"] = np.where(near, 5_000.0, 60_000.0)
    columns["srtt_us"] = 1.2 * columns["min_rtt_us"]
    columns["delivery_rate_bits_per_sec"] = columns["delivery_rate_bits_per_sec"] * np.where(near, 6.0, 1.0)
    found = fleets.compare(written(tmp_path / "mix", columns), strata=["rtt"], reweight="rtt")
    assert found.verdict("delivery_rate_bits_per_sec").word == "better"
    assert [one for one in found.warnings if one.startswith("strata disagree: delivery rate of bbr1 is lower for rtt")]
    assert [one for one in found.warnings if one.startswith("not alike: the median least RTT of bbr1")]
    [again] = [one for one in found.reweighted if one.metric.name == "delivery_rate_bits_per_sec"]
    assert again.word == "worse" and again.ratio.low < 0.7 < again.ratio.high


def test_strata_that_a_cohort_lacks_are_told(tmp_path: Path) -> None:
    columns = fleet(3000, 300)
    treated = np.array(columns["algorithm"]) == "bbr1"
    columns["min_rtt_us"] = np.where(treated | (np.arange(3000) % 3 > 0), 20_000, 400_000)
    found = fleets.compare(written(tmp_path / "far", columns), strata=["rtt"], reweight="rtt")
    [told] = [one for one in found.warnings if one.startswith("with equal shares of rtt ")]
    assert "34 % of the connections of cubic are left out: another cohort has none of rtt from 300 ms" in told
    assert "no connection of one of the two" in str(found)


def test_equal_shares_of_strata_of_one_cohort_each_compare_nothing(drawn: Path) -> None:
    """Drawn by prefix, each has one algorithm."""
    found = fleets.compare(drawn, strata=["prefix"], reweight="prefix")
    assert not found.reweighted
    assert [one for one in found.warnings if "of the connections of bbr1 are left out: another cohort has none" in one]


def test_connections_of_no_stratum_are_told(tmp_path: Path, drawn: Path) -> None:
    found = fleets.compare(drawn, strata=["prefix"], reweight="prefix")
    within = sum(sum(stratum.connections.values()) for stratum in found.strata)
    share = f"{100 * (1 - within / 6000):.1f}"
    assert (
        f"with equal shares of prefix {share} % of the connections are left out: they are of no stratum"
        in found.warnings
    )
    table = tmp_path / "cities.csv"
    rows = [f"10.{k // 250}.{k % 250}.0/24,city{k % 40}" for k in range(300)]
    table.write_text("\n".join(["remote_prefix,city", *rows]))
    found = fleets.compare(drawn, strata=[str(table), "rtt"], reweight=str(table))
    assert len(found.strata) == 30 + 5
    assert [one for one in found.warnings if one.startswith(f"with equal shares of {table} ") and "no stratum" in one]
    assert not [one for one in fleets.compare(drawn, strata=["rtt"], reweight="rtt").warnings if "no stratum" in one]


def test_strata_of_a_table_of_countries(tmp_path: Path, drawn: Path) -> None:
    table = tmp_path / "countries.csv"
    rows = [f"10.{k // 250}.{k % 250}.0/24,{'JP' if k % 2 else 'DE'}" for k in range(300)]
    table.write_text("\n".join(["remote_prefix,country", *rows]))
    found = fleets.compare(drawn, strata=[str(table)])
    assert {stratum.label for stratum in found.strata} == {"JP", "DE"}
    assert sum(sum(stratum.connections.values()) for stratum in found.strata) == 6000


def test_what_clusters_were_like_before_narrows_the_interval(tmp_path: Path) -> None:
    past, now = fleet(20_000, 400, rate=1.0, seed=5), fleet(20_000, 400, rate=1.2, seed=5)
    for end in ("begin_unix_ns", "end_unix_ns"):
        past[end] = past[end] - 48 * HOUR
    data, before = written(tmp_path / "now", now), written(tmp_path / "past", past)
    found = fleets.compare(data, before=[str(before)])
    [rate] = [one for one in found.adjusted if one.metric.name == "delivery_rate_bits_per_sec"]
    plain = found.verdict("delivery_rate_bits_per_sec").difference
    assert rate.difference.high - rate.difference.low < 0.6 * (plain.high - plain.low)
    assert rate.difference.low > 0 and rate.known == pytest.approx(1)


def test_a_period_before_that_is_of_the_time_of_data_is_refused(call: Call, tmp_path: Path, drawn: Path) -> None:
    later = fleet()
    later["begin_unix_ns"] = later["begin_unix_ns"] + HOUR
    for before in (drawn, written(tmp_path / "later", later)):
        ended = call("fleet", "compare", drawn, "--before", before, "--partial", "-q")
        refused_in_a_line(ended, "--before: has boot boot", "over a time that DATA has too")


def test_the_period_before_is_read_with_the_same_memory_and_tells_what_is_left_out_of_it(
    tmp_path: Path, drawn: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = fleet(seed=5)
    for end in ("begin_unix_ns", "end_unix_ns"):
        past[end] = past[end] - 48 * HOUR
    before, damaged = (written(tmp_path / name, past) for name in ("past", "damaged"))
    (damaged / "connections.parquet").write_bytes(b"PAR1 no table")
    given: list[dict[str, Any]] = []
    opened = before_module.opened
    monkeypatch.setattr(before_module, "opened", lambda *data, **more: given.append(more) or opened(*data, **more))
    found = fleets.compare(drawn, before=[str(before), str(damaged)], partial=True, memory="1GiB")
    assert found.adjusted and [one.get("memory") for one in given] == ["1GiB"]
    assert [one for one in found.notes if one.startswith("--before: left out: ") and str(damaged) in one]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--seed", "18446744073709551616", "expected a whole number from 0 to 9223372036854775807"),
        ("--memory", "-5GiB", '--memory: got "-5GiB"; expected a size with its unit'),
        ("--memory", "0B", '--memory: got "0B"'),
        ("--memory", "1kB", "--memory: does not do for DATA: "),
        ("--strata", "bin", '--strata: got "bin"; expected rtt, rate, prefix, or a file FILE.csv or FILE.parquet'),
        ("--strata", "bin.csv", "--strata: bin.csv: "),
    ],
)
def test_an_option_that_cannot_be_is_refused_with_its_name(
    call: Call, drawn: Path, option: str, value: str, said: str
) -> None:
    for name in ("bin", "bin.csv"):
        Path(name).write_bytes(np.random.default_rng(1).bytes(3000))
    ended = call("fleet", "compare", drawn, option, value, "-q")
    refused_in_a_line(ended, said)
    assert "SET memory_limit" not in ended.err and "Did you mean" not in ended.err


def test_a_seed_is_of_63_bits(drawn: Path) -> None:
    assert fleets.compare(drawn, seed=(1 << 63) - 1).verdicts
    with pytest.raises(UsageError, match="seed: got -1; expected a whole number from 0"):
        fleets.compare(drawn, seed=-1)


def test_cohorts_by_host_and_by_tag(tmp_path: Path) -> None:
    columns = fleet()
    columns["tags"] = [json.dumps({"site": "tokyo" if host == "edge1" else "osaka"}) for host in columns["host"]]
    data = written(tmp_path / "tags", columns)
    assert set(fleets.compare(data, by="site").cohorts) == {"tokyo", "osaka"}
    assert set(fleets.compare(data, by="host").cohorts) == {"edge0", "edge1", "edge2", "edge3"}


def test_a_baseline_is_compared_with_however_small_it_is(tmp_path: Path) -> None:
    columns = fleet(2000, 200)
    sizes = [100 if number < 20 else 200 + number % 9 for number in range(2000)]
    columns["host_id"] = [f"host{number}" for number in sizes]
    data = written(tmp_path / "many", columns)
    found = fleets.compare(data, by="host", baseline="host100")
    assert found.cohorts[0] == "host100" and len(found.cohorts) == 8
    assert [note for note in found.notes if note.startswith("left out: 2 further cohorts with 22 % ")]
    largest = fleets.compare(data, by="host")
    assert set(found.cohorts[1:]) < set(largest.cohorts) and "host100" not in largest.cohorts


def counted(folder: Path, host: int) -> None:
    """An hour of `counters` and `cpu` of a host, every other of which retransmits and works twice as much."""
    words = {"boot_id": f"boot{host}", "host": f"edge{host}"}
    grown = {"Tcp.RetransSegs": 100 * (host % 2 + 1), "Tcp.OutSegs": 10_000, "IpExt.OutOctets": 2_000_000_000}
    times = [NOON + 60 * 1_000_000_000 * at for at in (0, 30)]
    counters = [
        {**words, "t_unix_ns": t, "cpu": None, "name": name, "value": 7 + at * value}
        for name, value in grown.items()
        for at, t in enumerate(times)
    ]
    busy = {"user_us": 1_000_000 * (host % 2 + 1), "system_us": 1_000_000 * (host % 2 + 1), "idle_us": 500_000}
    zero = dict.fromkeys(("nice_us", "irq_us", "softirq_us", "steal_us", "iowait_us"), 0)
    cpu = [
        {**words, "t_unix_ns": t, "cpu": one, **zero, **{name: at * value for name, value in busy.items()}}
        for at, t in enumerate(times)
        for one in (0, 1)
    ]
    schema = pa.schema([("boot_id", pa.string()), ("host", pa.string()), ("t_unix_ns", pa.int64())])
    for column in (pa.field("cpu", pa.int32()), pa.field("name", pa.string()), pa.field("value", pa.int64())):
        schema = schema.append(column)
    pq.write_table(pa.Table.from_pylist(counters, schema=schema), folder / "counters-000001.parquet")
    pq.write_table(pa.Table.from_pylist(cpu), folder / "cpu-000001.parquet")


def test_cpu_per_gb_and_retransmissions_of_hosts_are_of_the_cohort_that_they_serve(tmp_path: Path) -> None:
    for host, algorithm in enumerate(("cubic", "bbr1") * 4):
        rows = [
            sample(at, cookie, boot_id=f"boot{host}", host=f"edge{host}", algorithm=algorithm)
            for at in range(3)
            for cookie in range(20)
        ]
        counted(recording(tmp_path / f"edge{host}", rows), host)
    found = fleets.compare(tmp_path)
    retrans, cpu = found.verdict("retrans_segs_pct"), found.verdict("cpu_us_per_gb")
    assert (retrans.base.value, retrans.value.value) == (pytest.approx(1), pytest.approx(2))
    assert (cpu.base.value, cpu.value.value) == (pytest.approx(2e6), pytest.approx(4e6))
    assert (retrans.word, cpu.word) == ("worse", "worse")


def test_hosts_that_serve_several_cohorts_are_left_out_of_what_hosts_count(tmp_path: Path) -> None:
    rows = [sample(at, k, algorithm=("cubic", "bbr1")[k % 2]) for at in range(3) for k in range(40)]
    counted(recording(tmp_path / "edge1", rows), 1)
    found = fleets.compare(tmp_path)
    assert not {"retrans_segs_pct", "cpu_us_per_gb"} & {verdict.metric.name for verdict in found.verdicts}
    assert [note for note in found.notes if note.startswith("1 host has connections of several cohorts")]


def test_a_host_whose_bytes_are_mostly_of_no_cohort_belongs_to_none(tmp_path: Path) -> None:
    for host, algorithm in enumerate(("cubic", "bbr1") * 4 + ("bbr1",)):
        rows = [
            sample(
                at, cookie, boot_id=f"boot{host}", host=f"edge{host}", algorithm=None if cookie < idle else algorithm
            )
            for idle in [38 if host == 8 else 0]
            for at in range(3)
            for cookie in range(40)
        ]
        counted(recording(tmp_path / f"edge{host}", rows), host)
    found = fleets.compare(tmp_path)
    assert found.verdict("retrans_segs_pct").value.value == pytest.approx(2)
    assert [note for note in found.notes if note.startswith("1 host has connections of several cohorts, or of none")]


# What cannot be compared.


def refused(call: Call, columns: dict[str, Any], *words: str, **tables: Any) -> str:
    """The error of a comparison, which is of exit code 2; and that --partial says it as well."""
    data = written(Path("data"), columns)
    for name, table in tables.items():
        written(data, table, name)
    ended = call("fleet", "compare", "data", *words)
    assert ended.code == 2 and not ended.out, ended.out
    return ended.err


def test_one_cohort_alone_is_nothing_to_compare(call: Call) -> None:
    assert "all 6,000 connections have algorithm cubic, so that there is nothing" in refused(
        call, fleet(algorithms=("cubic", "cubic"))
    )


def test_a_cohort_that_the_filters_empty_is_refused(call: Call) -> None:
    columns = fleet()
    columns["triggered"] = columns["triggered"] & (np.array(columns["algorithm"]) == "cubic")
    told = refused(call, columns, "--triggered")
    assert "algorithm bbr1 has 0 connections to compare" in told and "(triggered); expected 10 at least" in told


def test_five_connections_are_refused_and_compared_only_when_asked(call: Call) -> None:
    columns = {name: value[:5] for name, value in fleet(60, 2, by="connection").items()}
    columns["triggered"] = np.ones(5, bool)
    assert "expected 10 at least" in refused(call, columns)
    ended = call("fleet", "compare", "data", "--partial")
    assert ended.code == 0 and "not to be relied on: algorithm" in ended.err and "fewer than 30" in ended.out


def test_connections_that_the_application_limited_throughout_say_nothing(call: Call) -> None:
    columns = fleet()
    columns["triggered"] = np.zeros(6000, bool)
    columns["delivery_rate_bits_per_sec"] = np.full(6000, np.nan)
    assert "are limited by the application or never left their initial window" in refused(call, columns)


@pytest.mark.parametrize(
    ("column", "factor", "told"),
    [
        ("delivery_rate_bits_per_sec", 1 / 8, "edge1: its delivery rates are"),
        ("srtt_us", 1e-3, "edge1: median srtt_us"),
        ("retransmit_pct", 1000.0, "edge1: retransmit_pct is outside 0 to 100"),
    ],
)
def test_units_that_are_mixed_between_hosts_are_refused(call: Call, column: str, factor: float, told: str) -> None:
    columns = fleet()
    columns[column] = columns[column] * np.where(np.array(columns["host"]) == "edge1", factor, 1.0)
    assert told in refused(call, columns)
    ended = call("fleet", "compare", "data", "--partial")
    assert ended.code == 0 and f"not to be relied on: {told}" in ended.err


def test_a_host_whose_clock_is_wrong_is_refused_and_one_of_another_day_told(call: Call, tmp_path: Path) -> None:
    columns = fleet()
    ahead = np.where(np.array(columns["host"]) == "edge1", 1, 0)
    day = 24 * HOUR
    wrong = {name: columns[name] + ahead * 40 * 365 * day for name in ("begin_unix_ns", "end_unix_ns")}
    assert "edge1: its rows are of 2066-" in refused(call, {**columns, **wrong})
    earlier = {name: columns[name] - ahead * 3 * day for name in ("begin_unix_ns", "end_unix_ns")}
    found = fleets.compare(written(tmp_path / "days", {**columns, **earlier}))
    assert [one for one in found.warnings if "the hosts were recorded on different days, or a clock is wrong" in one]


def log_of(columns: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An assignment log by prefix that fits the connections: cubic is control."""
    prefixes = dict(zip(columns["remote_prefix"], columns["algorithm"], strict=True))
    hosts = dict(zip(columns["remote_prefix"], columns["host_id"], strict=True))
    rows = len(prefixes)
    log = {
        "t_unix_ns": np.full(rows, NOON - HOUR),
        "host_id": [hosts[prefix] for prefix in prefixes],
        "cookie": [None] * rows,
        "unit": list(prefixes),
        "arm": ["control" if algorithm == "cubic" else "treatment" for algorithm in prefixes.values()],
        "algorithm": list(prefixes.values()),
        "design": ["cluster"] * rows,
        "allocation_pct": [50.0] * rows,
    }
    return {**log, **more}


def test_arms_of_a_cluster_design_have_a_total_effect(tmp_path: Path) -> None:
    columns = fleet()
    data = written(tmp_path / "arms", columns)
    written(data, log_of(columns), "assignments")
    found = fleets.compare(data, by="arm")
    assert found.cohorts == ("control", "treatment")
    [rate] = [one for one in found.effects if one.metric.name == "delivery_rate_bits_per_sec"]
    assert rate.effect.design == "cluster" and rate.effect.total is not None
    assert rate.effect.total.low < 1.3 < rate.effect.total.high


def sharing(arm: np.ndarray[Any, Any], share: np.ndarray[Any, Any], seed: int = 4) -> dict[str, Any]:
    """Connections of two algorithms that are equal by themselves: beside each other bbr1 takes twice what cubic has,
    so that a naive comparison says 2 and the total effect is 1."""
    draw = np.random.default_rng(seed)
    rows = len(arm)
    whole = 10e6 / (share * 2 + (1 - share))
    columns = fleet(rows, 200, seed=seed, rate=1.0)
    columns["algorithm"] = np.where(arm, "bbr1", "cubic").tolist()
    columns["arm"] = np.where(arm, "treatment", "control").tolist()
    columns["delivery_rate_bits_per_sec"] = whole * np.where(arm, 2.0, 1.0) * np.exp(draw.normal(0, 0.3, rows))
    columns["goodput_bits_per_sec"] = columns["delivery_rate_bits_per_sec"]
    return columns


def of_rate(data: Path) -> tuple[Any, Any]:
    """The verdict about the rate, and its effect."""
    found = fleets.compare(data, by="arm")
    [effect] = [one for one in found.effects if one.metric.name == "delivery_rate_bits_per_sec"]
    return found.verdict("delivery_rate_bits_per_sec"), effect.effect


def test_a_switchback_finds_the_total_effect(tmp_path: Path) -> None:
    period = np.random.default_rng(2).integers(0, 40, 8000)
    arm = period % 2 == 1
    columns = sharing(arm, arm.astype(float))
    columns |= {"design": ["switchback"] * 8000, "period": period}
    columns["begin_unix_ns"] = NOON + period * HOUR + np.random.default_rng(3).integers(0, HOUR, 8000)
    columns["end_unix_ns"] = columns["begin_unix_ns"] + 10**9
    _, effect = of_rate(written(tmp_path / "data", columns))
    assert effect.design == "switchback" and effect.total is not None and effect.total.low < 1 < effect.total.high < 1.1


def test_paired_links_find_the_total_effect_and_the_spillover_where_the_naive_ratio_is_wrong(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    link = draw.integers(0, 2, 8000)
    treated = np.where(link == 1, 0.95, 0.05)
    arm = draw.random(8000) < treated
    columns = sharing(arm, treated)
    columns |= {"design": ["paired-link"] * 8000, "link": [str(one) for one in link]}
    columns["allocation_pct"] = 100 * np.where(arm, treated, 1 - treated)
    naive, effect = of_rate(written(tmp_path / "data", columns))
    assert effect.total is not None and effect.spillover is not None
    assert 0.9 < effect.total.value < 1.15 and effect.spillover.value < 0.7
    assert naive.ratio.value > 1.02 or naive.ratio.value < 0.98


def test_a_ramp_extrapolates_to_all_treated(tmp_path: Path) -> None:
    draw = np.random.default_rng(6)
    step = draw.choice([0.1, 0.3, 0.5, 0.7, 0.9], 8000)
    arm = draw.random(8000) < step
    columns = sharing(arm, step)
    columns |= {"design": ["ramp"] * 8000, "allocation_pct": 100 * np.where(arm, step, 1 - step)}
    naive, effect = of_rate(written(tmp_path / "data", columns))
    assert effect.total is not None and 0.8 < effect.total.value < 1.3
    assert effect.spillover is not None and effect.spillover.value < 0.75 and naive.word == "better"


def test_a_log_that_disagrees_with_the_data_is_refused(call: Call) -> None:
    columns = fleet()
    log = log_of(columns)
    log["arm"] = log["arm"][1:] + log["arm"][:1]
    log["algorithm"] = ["cubic" if arm == "control" else "bbr1" for arm in log["arm"]]
    told = refused(call, columns, "--by", "arm", assignments=log)
    assert "the assignment log disagrees with the data:" in told and "another algorithm than that of their arm" in told


def test_shares_of_arms_that_were_not_intended_are_told_before_any_metric(tmp_path: Path) -> None:
    columns = fleet()
    data = written(tmp_path / "srm", columns)
    shares = {"control": 80.0, "treatment": 20.0}
    log = log_of(columns)
    log["allocation_pct"] = [shares[arm] for arm in log["arm"]]
    written(data, log, "assignments")
    found = fleets.compare(data, by="arm")
    assert found.warnings[0].startswith("sample-ratio mismatch in design cluster")
    assert "believe no metric before it is known why" in found.warnings[0]


def test_an_arm_without_a_connection_is_missed(tmp_path: Path) -> None:
    columns = fleet()
    log = log_of(columns)
    log["allocation_pct"] = [40.0] * len(log["arm"])
    written(written(tmp_path / "data", columns), log, "assignments")
    found = fleets.compare(tmp_path / "data", by="arm")
    assert found.warnings[0].startswith("sample-ratio mismatch in design cluster")
    assert "an arm of which there is none 0 units where 20 % were intended" in found.warnings[0]
    found = fleets.compare(tmp_path / "data", by="arm", where="arm <> 'third'")
    assert not [one for one in found.warnings if one.startswith("sample-ratio mismatch")]


def test_steps_of_a_ramp_and_periods_of_a_switchback_have_the_shares_that_were_intended(tmp_path: Path) -> None:
    draw = np.random.default_rng(8)
    step = draw.integers(0, 2, 6000)
    arm = draw.random(6000) < np.array([0.1, 0.5])[step]
    ramp = {"design": ["ramp"] * 6000, "period": step, "allocation_pct": np.where(step == 1, 50, np.where(arm, 10, 90))}
    period = draw.integers(0, 10, 6000)
    alone = {"design": ["switchback"] * 6000, "period": period, "allocation_pct": [100] * 6000}
    for name, design, treated in (("ramp", ramp, arm), ("switchback", alone, period == 3)):
        columns = fleet() | design | {"arm": np.where(treated, "treatment", "control").tolist()}
        found = fleets.compare(written(tmp_path / name, columns), by="arm")
        assert not [one for one in found.warnings if one.startswith("sample-ratio mismatch")], name


def test_the_log_may_lie_in_a_folder_of_its_own(call: Call, tmp_path: Path) -> None:
    columns = fleet()
    data, log = written(tmp_path / "data", columns), written(tmp_path / "log", log_of(columns), "assignments-000001")
    assert fleets.compare(data, log, by="arm").cohorts == ("control", "treatment")
    ended = call("fleet", "compare", log)
    assert ended.code == 2 and "holds an assignment log alone" in ended.err


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ("h{:016x}", "the ids of boots (`--anonymize`), and the log has the ids. Record without --anonymize"),
        ("other{}", "the log is of other hosts or boots. Give the recordings of those."),
    ],
)
def test_a_log_that_joins_no_connection_is_told(call: Call, tmp_path: Path, ids: str, told: str) -> None:
    columns = fleet()
    log = log_of(columns)
    for name in ("host_id", "boot_id"):
        columns[name] = [ids.format(int(one[4:])) for one in columns[name]]
    data = written(tmp_path / "data", columns)
    written(data, log, "assignments-000001")
    said = "no connection has an arm, though the assignment log has 300 rows: "
    ended = call("fleet", "compare", data, "--by", "arm")
    assert ended.code == 2 and said in ended.err and told in ended.err
    [note] = [one for one in fleets.compare(data).notes if one.startswith(said)]
    assert told in note
    # The log may be of connections that were left out.
    log["host_id"][0] = columns["host_id"][0]
    written(data, log, "assignments-000001")
    assert not [one for one in fleets.compare(data, where="cookie > 0").notes if one.startswith(said)]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"by": "algoritm; drop"}, "by: got"),
        ({"by": "nothing"}, "no connection has nothing"),
        ({"cluster": "city"}, "cluster: got"),
        ({"strata": ["city"]}, "strata: got"),
        ({"reweight": "rtt"}, "reweight: got"),
        ({"min_bytes": "1"}, "min_bytes: got"),
        ({"margin": "two"}, "margin: got"),
        ({"baseline": "bbr2"}, "baseline: got"),
        ({"where": "bytes > 1"}, "where: "),
        ({"where": "bytes_acked < 0"}, "holds for no connection"),
        ({"memory": "much"}, "memory: got"),
    ],
)
def test_an_option_that_cannot_be_is_refused(drawn: Path, options: dict[str, Any], told: str) -> None:
    with pytest.raises((UsageError, RunFolderError), match=told):
        fleets.compare(drawn, **options)


@pytest.mark.parametrize(
    ("by", "cluster", "told"),
    [
        ("algorithm", None, ", of which the intervals know nothing: --cluster host counts hosts. "),
        ("algorithm", "host", "is taken for the cohorts' difference. "),
        ("host", None, ""),
    ],
)
def test_hosts_of_one_cohort_each_are_told_from_cohorts_on_all_hosts(
    tmp_path: Path, drawn: Path, by: str, cluster: str | None, told: str
) -> None:
    """What was drawn by host says nothing of the algorithm that other hosts lack."""
    columns = fleet()
    treated = np.array(columns["algorithm"]) == "bbr1"
    columns["host_id"] = [f"edge{number % 2 + 2 * is_treated}" for number, is_treated in enumerate(treated)]
    found = fleets.compare(written(tmp_path / "apart", columns), by=by, cluster=cluster)
    warned = [one for one in found.warnings if one.startswith("each host has one cohort (cubic 2 hosts, bbr1 2 hosts)")]
    assert len(warned) == bool(told) and all(told in one for one in warned)
    assert not [one for one in fleets.compare(drawn).warnings if one.startswith("each host has one cohort")]


def test_clusters_for_a_difference_are_of_cohorts_of_one_size(tmp_path: Path) -> None:
    """A cohort of a tenth of the clusters is the less sure one: as many of each are needed, whatever there is now."""
    needed = []
    for size in (0.5, 0.1):
        columns = fleet(12_000, 1200, rate=1.0, retrans=1.0, srtt=1.0, seed=3)
        few = [
            int(name.split(".")[1]) * 250 + int(name.split(".")[2]) < 1200 * size for name in columns["remote_prefix"]
        ]
        columns["algorithm"] = ["bbr1" if one else "cubic" for one in few]
        found = fleets.compare(written(tmp_path / str(size), columns), detect="5%")
        needed.append(found.verdict("min_rtt_us").clusters_to_detect(0.05))
    assert needed[1] == pytest.approx(needed[0], rel=0.25)


def test_clusters_for_a_difference_are_such_that_as_many_show_it(tmp_path: Path) -> None:
    """Four times the clusters show half the difference, so that the same number is needed. What a draw of 300 clusters
    with heavy tails says of it is within a third in four of five seeds."""
    few, many = (
        fleets.compare(
            written(tmp_path / str(size), fleet(20 * size, size, rate=1.0, retrans=1.0, seed=5)), detect="5%"
        )
        for size in (300, 1200)
    )
    for metric in ("delivery_rate_bits_per_sec", "min_rtt_us"):
        verdicts = [found.verdict(metric) for found in (few, many)]
        needed = [verdict.clusters_to_detect(0.05) for verdict in verdicts]
        assert needed[0] == pytest.approx(needed[1], rel=0.35)
        assert verdicts[0].clusters_to_detect(verdicts[0].least) == pytest.approx(verdicts[0].ratio.clusters, rel=0.1)
        [told] = [one for one in few.as_json()["verdicts"] if one["metric"] == metric]
        assert told["clusters_to_detect"] == needed[0]
        assert f"{needed[0]:,}" in str(few)
    assert "for 5 %: how many clusters of each cohort" in " ".join(str(few).split())
    assert max(map(len, str(few).splitlines())) <= 100
    with pytest.raises(UsageError, match=r'^detect: got "5"; expected a share'):
        fleets.compare(tmp_path / "300", detect="5")


def test_no_percentage_is_above_100_and_each_interval_has_its_value(tmp_path: Path) -> None:
    """Bins are wider than what is left to 100 %."""
    columns = fleet()
    columns["busy_pct"] = np.minimum(100, 99 + np.random.default_rng(2).random(len(columns["cookie"])) * 1.5)
    values = fleets.compare(written(tmp_path / "busy", columns)).as_json()["values"]
    for cohort in values.values():
        for metric, statistics in cohort.items():
            for one in statistics.values():
                assert one["low"] <= one["value"] <= one["high"]
                assert metric != "busy_pct" or one["high"] <= 100


@pytest.mark.parametrize(
    ("kind", "ends", "text"),
    [
        ("pct", (0.5, 0.4, 0.6), "0.500 [0.400, 0.600] points more"),
        ("pct", (-0.5, -0.6, 0.1), "0.500 [-0.100, 0.600] points less"),
        ("time", (-12_000.0, -19_000.0, -5_000.0), "12.0 [5.00, 19.0] ms less"),
        ("time", (12_000.0, float("nan"), float("nan")), "12.0 ms more [no interval]"),
        ("pct", (0.0, float("nan"), float("nan")), "no difference [no interval]"),
    ],
)
def test_differences_say_which_way_and_percentages_differ_by_points(
    kind: str, ends: tuple[float, float, float], text: str
) -> None:
    assert more(kind, Interval(*ends, 100, 50, 50, 1, 49)) == text


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_changes_no_digit(tmp_path: Path, drawn: Path, seed: int) -> None:
    """DuckDB gives rows as its threads finish them, and sums of floats depend on the order."""
    table = pq.read_table(drawn / "connections.parquet")
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    pq.write_table(table.take(np.random.default_rng(seed).permutation(len(table))), mixed / "connections.parquet")
    found = [fleets.compare(one, strata=["rtt"], reweight="rtt").as_json() for one in (drawn, mixed)]
    assert json.dumps(found[0]) == json.dumps(found[1])
