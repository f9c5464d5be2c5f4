"""Files of results that were measured elsewhere, and the simulator beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student_t

from support import Ended
from tcpknee.runs.pool import Watcher
from tcpknee.validation.references import beside, reference
from tcpknee.validation.references.beside import Beside
from tcpknee.validation.references.reference import Reference, ReferenceError

HEAD = """\
# tcpknee reference 1
# kernel = 6.12.1
# hz = 250
# clock = real
# a comment for people
# set path.rate = 10Mbit/s
# set receiver.gro = false
suite,group,run,flow,duration,warmup,path.rtt,path.loss,flow.algorithm,flow.start,goodput_bits_per_sec,srtt_us_p50,retransmit_pct
"""
ALONE = "one,reno,1,0,4s,1s,20ms,,reno,,9600000,38000,0.5\n"
LOSSY = "one,reno,1,0,4s,1s,20ms,1%,reno,,5000000,22000,1\none,reno,2,0,4s,1s,20ms,1%,reno,,5100000,22000,1.1\n"
PAIR = "two,pair,1,0,4s,1s,20ms,,reno,,5000000,38000,0.5\ntwo,pair,1,1,4s,1s,20ms,,cubic,1s,4600000,38000,0.5\n"


Call = Callable[..., Ended]


def parse(*rows: str, head: str = HEAD) -> Reference:
    return reference.parse(head + "".join(rows), "r.csv")


def refused(text: str) -> str:
    with pytest.raises(ReferenceError) as error:
        reference.parse(text, "r.csv").cells()
    return str(error.value)


def test_a_file_says_its_host_its_settings_and_its_cells() -> None:
    found = parse(ALONE, LOSSY, PAIR)
    assert found.facts == {"kernel": "6.12.1", "hz": "250", "clock": "real"}
    assert found.settings == {"path.rate": "10Mbit/s", "receiver.gro": "false"}
    cells = found.cells()
    assert [(cell.suite, cell.group, len(cell.flows), sorted(cell.runs), cell.line) for cell in cells] == [
        ("one", "reno", 1, [1], 9),
        ("one", "reno", 1, [1, 2], 10),
        ("two", "pair", 2, [1], 12),
    ]
    # An empty field sets nothing.
    assert cells[0].settings == {"duration": "4s", "warmup": "1s", "path.rtt": "20ms"}
    assert cells[2].flows == ({"flow.algorithm": "reno"}, {"flow.algorithm": "cubic", "flow.start": "1s"})
    assert cells[1].runs[2][0].metrics == {
        "goodput_bits_per_sec": 5100000.0,
        "srtt_us_p50": 22000.0,
        "retransmit_pct": 1.1,
    }


def test_a_small_file_of_ones_own_needs_few_columns() -> None:
    head = "# tcpknee reference 1\n# kernel = 5.10\n# hz = 1000\n# clock = real\n# set duration = 4s\n"
    columns = "path.rate,path.rtt,flow.algorithm,goodput_bits_per_sec,srtt_us_p50,retransmit_pct\n"
    [cell] = reference.parse(head + columns + "10Mbit/s,20ms,cubic,9600000,38000,\n", "mine.csv").cells()
    assert (cell.suite, cell.group, sorted(cell.runs)) == ("results", "cubic", [1])
    assert cell.runs[1][0].metrics["retransmit_pct"] is None


def test_settings_of_the_file_and_of_a_row_are_those_of_the_scenario() -> None:
    found = parse(PAIR)
    [cell] = found.cells()
    described = {key: text for key, text, _ in found.parsed(cell).cells[0]["describe"]}
    assert described["path.rate"] == "10Mbit/s"
    assert described["receiver.gro"] == "false"
    assert (described["sender.hz"], described["receiver.hz"]) == ("250", "250")
    assert (described["flow.0.start"], described["flow.1.start"]) == ("0s", "1s")
    assert (described["flow.0.algorithm"], described["flow.1.algorithm"]) == ("reno", "cubic")


def test_what_is_written_is_read_back() -> None:
    found = parse(ALONE, LOSSY, PAIR)
    again = reference.parse(reference.text_of(found), "r.csv")
    assert (again.facts, again.settings) == (found.facts, found.settings)
    assert [replace(row, line=0) for row in again.rows] == [replace(row, line=0) for row in found.rows]
    assert reference.text_of(again) == reference.text_of(found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 'r.csv:1: got an empty file; expected "# tcpknee reference 1"'),
        ("a,b\n1,2\n", 'r.csv:1: got "a,b"; expected "# tcpknee reference 1"'),
        ("\x1b[31m\n", 'got "\\x1b[31m"'),
        ("# tcpknee reference 2\n", 'r.csv:1: got version "2" of the format; expected 1.'),
        ("# tcpknee reference 1\n# hz = 250\n", 'r.csv:1: got no kernel; expected a line "# kernel = …"'),
        (HEAD.replace("hz = 250", "hz = 12"), 'r.csv:1: got hz "12"; expected 100, 250, 300 or 1000.'),
        (HEAD.replace("# a comment", "# hz = 100\n# a comment"), "r.csv:5: got hz a second time"),
        ("\n".join(HEAD.splitlines()[:7]), "r.csv:7: got no table"),
        (HEAD, "r.csv:8: got no row"),
        (HEAD.replace("path.rtt", "path_rtt"), 'r.csv:8: got the column "path_rtt"; expected suite'),
        (HEAD.replace("path.rtt", "repeat"), 'r.csv:8: got the column "repeat"'),
        (HEAD.replace("path.rtt", "path.loss"), 'r.csv:8: got the column "path.loss" twice'),
        (HEAD.replace(",srtt_us_p50", ""), "r.csv:8: got no column srtt_us_p50"),
        (HEAD + ALONE + "one,reno\n", "r.csv:10: got 2 fields; expected 13, one for each column."),
        (HEAD + ALONE.replace(",1,0,", ",x,0,"), 'r.csv:9: run: got "x"; expected a whole number.'),
        (HEAD + ALONE.replace(",1,0,", ",1,-1,"), 'r.csv:9: flow: got "-1"; expected a whole number.'),
        (HEAD + ALONE.replace("38000", "nan"), 'r.csv:9: srtt_us_p50: got "nan"; expected a number'),
        (HEAD + ALONE.replace("38000", "-1"), 'r.csv:9: srtt_us_p50: got "-1"'),
        (HEAD + ALONE.replace("0.5", "101"), 'r.csv:9: retransmit_pct: got "101"'),
        (HEAD + ALONE.replace("38000", "\x1b[2J"), 'got "\\x1b[2J"'),
        (HEAD + ALONE + ALONE, "r.csv:10: got run 1 of a cell a second time"),
        (HEAD + PAIR.splitlines(True)[1], "r.csv:9: got flow 1 of run 1; expected the flows of a run in rows"),
        (HEAD + PAIR.replace("two,pair,1,1", "two,pair,2,1"), "r.csv:10: got flow 1 of run 2"),
        (HEAD + PAIR.replace("20ms,,cubic", "30ms,,cubic"), 'r.csv:10: path.rtt: got "30ms"; expected "20ms"'),
        (HEAD + PAIR.replace("20ms,,cubic", "20ms,1%,cubic"), 'r.csv:10: path.loss: got "1%"; expected nothing'),
        (HEAD + '"one,reno\n', "r.csv:9: got no CSV"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_with_its_line(text: str, said: str) -> None:
    assert said in refused(text)


def test_the_first_twenty_mistakes_are_listed() -> None:
    said = refused(HEAD + "one\n" * 30).splitlines()
    assert len(said) == 21
    assert said[19].startswith("r.csv:28:")
    assert said[20] == "r.csv: only the first 20 of 30 mistakes are listed."


@given(st.text(), st.integers(0, len(HEAD + ALONE + PAIR)))
def test_no_text_is_more_than_refused(text: str, at: int) -> None:
    whole = HEAD + ALONE + PAIR
    for damaged in (text, whole[:at] + text + whole[at:], whole[:at]):
        try:
            reference.parse(damaged, "r.csv").cells()
        except ReferenceError as error:
            assert str(error).startswith("r.csv:")


def test_a_setting_that_is_no_scenario_is_refused_with_the_line_of_the_cell(call: Call, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(HEAD + ALONE + LOSSY.replace("20ms", "20"))
    ended = call("conform", "--against", "r.csv", "-q")
    assert ended.code == 2
    assert ended.err.startswith("r.csv:10: path.rtt: ")


def simulated(found: Reference) -> dict[Any, Any]:
    cells = found.cells()
    return beside.simulate(found, cells, beside.every_repetition(cells), workers=2, watcher=Watcher())


def like_the_simulator(found: Reference) -> Reference:
    """The file with what the simulator gives in the place of what was measured."""
    cells = found.cells()
    given = simulated(found)
    rows = []
    for i, cell in enumerate(cells):
        for run, of_run in cell.runs.items():
            rows += [replace(row, metrics=metrics) for row, metrics in zip(of_run, given[i, run - 1], strict=True)]
    return replace(found, rows=rows)


@pytest.fixture(scope="module")
def alike() -> Reference:
    return like_the_simulator(parse(ALONE, PAIR))


def with_metric(found: Reference, row: int, metric: str, value: float | None) -> list[Beside]:
    """How that file compares with what the simulator gives for it, one value of it being another."""
    given = {(i, 0): [row.metrics for row in cell.runs[1]] for i, cell in enumerate(found.cells())}
    rows = list(found.rows)
    rows[row] = replace(rows[row], metrics={**rows[row].metrics, metric: value})
    return beside.compare(replace(found, rows=rows).cells(), given)


def outside(compared: list[Beside]) -> list[tuple[str, str]]:
    return [(entry.suite, entry.metric) for entry in beside.outside(compared)]


def agreed(compared: list[Beside]) -> bool:
    """What the exit code says."""
    return all(verdict.ok for verdict in beside.verdicts(compared))


def test_what_the_simulator_gave_is_within_every_tolerance(alike: Reference) -> None:
    compared = beside.compare(alike.cells(), simulated(alike))
    assert [(entry.suite, entry.metric) for entry in compared] == [
        ("one", "goodput_bits_per_sec"),
        ("one", "srtt_us_p50"),
        ("one", "retransmit_pct"),
        ("two", "goodput_bits_per_sec"),
        ("two", "share"),
        ("two", "srtt_us_p50"),
        ("two", "srtt_us_p50"),
    ]
    assert {entry.difference for entry in compared} == {0.0}
    assert agreed(compared)


@pytest.mark.parametrize(
    ("metric", "within", "beyond"),
    [
        ("goodput_bits_per_sec", 1 / 1.009, 1 / 1.011),
        ("goodput_bits_per_sec", 1 / 0.991, 1 / 0.989),
        ("srtt_us_p50", 1 / 1.029, 1 / 1.031),
        ("srtt_us_p50", 1 / 0.971, 1 / 0.969),
    ],
)
def test_goodput_is_within_one_per_cent_and_the_round_trip_time_within_three(
    alike: Reference, metric: str, within: float, beyond: float
) -> None:
    value = alike.rows[0].metrics[metric]
    assert value is not None
    assert agreed(with_metric(alike, 0, metric, value * within))
    assert outside(with_metric(alike, 0, metric, value * beyond)) == [("one", metric)]


def test_retransmissions_are_within_a_fifth_of_a_point(alike: Reference) -> None:
    value = alike.rows[0].metrics["retransmit_pct"]
    assert value is not None
    assert agreed(with_metric(alike, 0, "retransmit_pct", value + 0.199))
    assert outside(with_metric(alike, 0, "retransmit_pct", value + 0.201)) == [("one", "retransmit_pct")]


@pytest.mark.parametrize(("runs", "within", "beyond"), [(2, 1.249, 1.251), (7, 1.249, 1.251), (8, 1.049, 1.051)])
def test_goodput_under_random_loss_is_within_5_per_cent_of_eight_runs_and_25_of_fewer(
    runs: int, within: float, beyond: float
) -> None:
    row = LOSSY.splitlines(True)[0]
    cells = parse(*(row.replace(",1,0,", f",{run},0,") for run in range(1, runs + 1))).cells()
    for factor, ok in ((within, True), (beyond, False)):
        given = {**cells[0].runs[1][0].metrics, "goodput_bits_per_sec": 5_000_000 * factor}
        [entry, *_] = beside.compare(cells, {(0, rep): [given] for rep in range(2 * runs)})
        assert (entry.metric, entry.lossy, entry.ok) == ("goodput_bits_per_sec", True, ok)


def test_a_share_is_within_a_tenth() -> None:
    [cell] = parse(PAIR).cells()
    measured = [row.metrics for row in cell.runs[1]]
    for moved, ok in ((950_000, True), (970_000, False)):
        ours = [
            {**measured[0], "goodput_bits_per_sec": 5_000_000 - moved},
            {**measured[1], "goodput_bits_per_sec": 4_600_000 + moved},
        ]
        assert [entry.ok for entry in beside.compare([cell], {(0, 0): ours}) if entry.metric == "share"] == [ok]


@pytest.mark.parametrize("value", [None, 0.0])
@pytest.mark.parametrize("row", [0, 2])
@pytest.mark.parametrize("metric", ["goodput_bits_per_sec", "srtt_us_p50", "retransmit_pct"])
def test_a_value_that_is_zero_or_missing_is_a_disagreement(
    alike: Reference, metric: str, row: int, value: float | None
) -> None:
    compared = with_metric(alike, row, metric, value)
    untold = [(entry.suite, entry.metric) for entry in compared if entry.difference is None]
    if row == 0:
        # Only retransmissions may be zero.
        assert untold == ([] if (metric, value) == ("retransmit_pct", 0.0) else [("one", metric)])
    elif metric == "retransmit_pct":
        assert untold == []
    else:
        assert ("two", "share" if metric == "goodput_bits_per_sec" else metric) in untold
    assert agreed(compared) == (not beside.outside(compared))
    if untold:
        assert not agreed(compared)


def test_a_repetition_that_the_simulator_lacks_is_a_disagreement(alike: Reference) -> None:
    cells = alike.cells()
    compared = beside.compare(cells, {(0, 0): [cells[0].runs[1][0].metrics]})
    assert {entry.suite for entry in beside.outside(compared)} == {"two"}
    assert not agreed(compared)
    assert not agreed([])


def test_a_cell_of_several_runs_is_simulated_twice_as_often() -> None:
    assert beside.every_repetition(parse(ALONE, LOSSY).cells()) == [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3)]


@pytest.mark.parametrize(("runs", "simulated"), [(1, 1), (2, 4), (8, 16), (12, 16), (20, 20)])
def test_a_distribution_is_simulated_as_often_as_it_was_measured(runs: int, simulated: int) -> None:
    rows = [ALONE.replace(",1,0,", f",{run},0,") for run in range(1, runs + 1)]
    [cell] = parse(*rows).cells()
    assert beside.repetitions(cell) == simulated


def test_a_difference_of_means_has_the_interval_of_welch() -> None:
    """Of 10, 12, 12 and 14 beside 9 and 11."""
    values = ("9000000", "11000000")
    [cell] = parse(*(LOSSY.splitlines(True)[i].replace(f"5{i}00000", value) for i, value in enumerate(values))).cells()
    assert [row.metrics["goodput_bits_per_sec"] for rows in cell.runs.values() for row in rows] == [9e6, 11e6]
    ours = [{**cell.runs[1][0].metrics, "goodput_bits_per_sec": value} for value in (10e6, 12e6, 12e6, 14e6)]
    [entry, *_] = beside.compare([cell], {(0, rep): [metrics] for rep, metrics in enumerate(ours)})
    assert entry.difference == pytest.approx(20)
    assert entry.low is not None
    assert entry.high is not None
    assert (entry.low + entry.high) / 2 == pytest.approx(20)
    error = (2 / 2 + 8 / 3 / 4) ** 0.5
    degrees = (2 / 2 + 8 / 3 / 4) ** 2 / ((2 / 2) ** 2 / 1 + (8 / 3 / 4) ** 2 / 3)
    assert entry.high - 20 == pytest.approx(10 * error * float(student_t.ppf(0.975, degrees)))


def test_one_run_has_no_interval(alike: Reference) -> None:
    assert {entry.low for entry in beside.compare(alike.cells(), simulated(alike))} == {None}


def test_periodic_loss_is_no_chance(alike: Reference) -> None:
    """The same packets are lost on both sides, so goodput is as near as without."""
    [cell] = parse(LOSSY.splitlines(True)[0].replace("1%", "periodic 1%")).cells()
    given = {**cell.runs[1][0].metrics, "goodput_bits_per_sec": 5_000_000 * 1.06}
    assert next((entry.lossy, entry.ok) for entry in beside.compare([cell], {(0, 0): [given]})) == (False, False)


def test_a_table_has_a_row_for_each_group_with_the_median_and_the_largest_difference(alike: Reference) -> None:
    value = alike.rows[0].metrics["goodput_bits_per_sec"]
    assert value is not None
    groups = beside.groups(with_metric(alike, 0, "goodput_bits_per_sec", value / 1.2))
    assert list(groups) == ["one", "two"]
    head, row = beside.table(groups["one"])
    assert head == ["group", "cells within", "goodput, no loss", "srtt p50", "srtt p50, ms", "retransmitted, points"]
    assert row == ["reno", "0 of 1", "20.0 (20.0) %", "0.0 (0.0) %", "0.00 (0.00)", "0.00 (0.00)"]
    missing = beside.groups(with_metric(alike, 0, "srtt_us_p50", None))
    assert beside.table(missing["one"])[1][3] == "1 unknown"


def test_what_is_kept_of_the_simulator_is_what_it_gave(alike: Reference) -> None:
    cells, given = alike.cells(), simulated(alike)
    text = reference.text_of(beside.to_keep(alike, cells, given))
    kept = beside.kept(cells, reference.parse(text, "kept.csv"))
    assert kept.keys() == given.keys()
    assert agreed(beside.compare(cells, kept))


def test_the_command_prints_tables_and_what_is_outside(call: Call, tmp_path: Path, alike: Reference) -> None:
    (tmp_path / "good.csv").write_text(reference.text_of(alike))
    good = call("conform", "--against", "good.csv", "-q")
    assert (good.code, good.err) == (0, "")
    assert "good.csv: Linux 6.12.1, HZ 250, clock real" in good.out
    assert "Outside" not in good.out
    (tmp_path / "bad.csv").write_text(HEAD + ALONE.replace("9600000", "4800000"))
    bad = call("conform", "--against", "bad.csv", "-q")
    assert bad.code == 1
    assert "  goodput, outside: 1 of 1 values, at most 0: OUTSIDE" in bad.out
    told = json.loads(call("conform", "--against", "bad.csv", "-q", "--json").out)
    assert {"schema", "file", "facts", "compared", "verdicts"} == told.keys()
    entry = told["compared"][0]
    assert (entry["metric"], entry["kernel"], entry["line"], entry["ok"]) == ("goodput_bits_per_sec", 4.8e6, 9, False)


def test_names_of_a_file_cannot_drive_the_terminal(call: Call, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(HEAD.replace("6.12.1", "6\x1b[2J") + ALONE.replace("one,reno", "\x1b[31m,\x1b[0m"))
    ended = call("conform", "--against", "r.csv", "-q")
    assert "\\x1b[31m" in ended.out
    assert "\x1b" not in ended.out + ended.err


def test_only_some_suites_groups_or_algorithms_are_compared(call: Call, tmp_path: Path, alike: Reference) -> None:
    (tmp_path / "r.csv").write_text(reference.text_of(alike))

    def suites(*words: str) -> list[str]:
        told = json.loads(call("conform", "--against", "r.csv", "-q", "--json", *words).out)
        return sorted({entry["suite"] for entry in told["compared"]})

    assert suites("--only", "one") == ["one"]
    assert suites("--only", "cubic") == ["two"]
    assert suites("--only", "one,pair") == ["one", "two"]
    (tmp_path / "r.csv").write_text(reference.text_of(alike).replace(",cubic,", ",bbr1,"))
    assert suites("--only", "bbr") == ["two"], "Linux's name"
    (tmp_path / "r.csv").write_text(reference.text_of(alike))
    wrong = call("conform", "--against", "r.csv", "--only", "renoo")
    assert (wrong.code, wrong.err) == (
        2,
        '--only: got "renoo"; r.csv has cubic, one, pair, reno, two. Did you mean "reno"?\n',
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "reno"], "knee conform --only: expected --against FILE.csv beside it.\n"),
        (["--against", "r.csv", "--quick"], "knee conform --against: got --out, --quick or --resume too"),
        (["--against", "nosuch.csv"], "nosuch.csv: No such file or directory. Expected a CSV file"),
        (["--against", "."], ".: Is a directory."),
        (["--against", "latin.csv"], "latin.csv:2: got the byte 0xe9, which is not UTF-8"),
    ],
)
def test_wrong_use_is_refused(call: Call, tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "latin.csv").write_bytes(b"# tcpknee reference 1\n# kernel = \xe9\n")
    ended = call("conform", *words)
    assert ended.code == 2
    assert ended.err.startswith(said)
