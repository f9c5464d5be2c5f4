"""What an author should know of a scenario before its figures are trusted."""

from __future__ import annotations

import pytest

import tcpknee
from tcpknee.runs import api, doubts, manifest

PATH = 'duration = "20s"\nwarmup = "1s"\n[path]\nrate = "20Mbit/s"\nrtt = "30ms"\njitter = "1ms"\n'
FLOW = '[[flow]]\nalgorithm = "cubic"\n'


def cautions(text: str) -> list[str]:
    [cell] = api.parse(text, "s.toml").cells
    found: list[str] = cell["cautions"]
    return found


@pytest.mark.parametrize(
    ("flows", "last"),
    [
        (FLOW + FLOW + 'start = "10s"\n', "10s"),
        (FLOW + FLOW + 'count = 3\nstagger = "2s"\n', "4s"),
        (FLOW + FLOW + 'start = "500ms"\n', None),
        (FLOW + FLOW + 'start = "10s"\nworkload = "transfer"\nbytes = "1MB"\n', None),
        (FLOW + 'start = "10s"\n', None),
    ],
)
def test_flows_that_count_over_other_times_are_told_with_the_warm_up_that_has_one(flows: str, last: str | None) -> None:
    found = cautions(PATH + flows)
    if last is None:
        assert found == []
        return
    [said] = found
    assert f"goodput of some flows counts from 1s on, of others from up to {last}: Jain" in said
    assert f'With warmup = "{last}"' in said
    assert cautions(PATH.replace('"1s"', f'"{last}"') + flows) == []


def test_bbr_on_the_rules_of_a_release_that_had_none_is_told() -> None:
    text = PATH + '[[flow]]\nalgorithm = "bbr1"\n'
    [said] = cautions(f'kernel = "4.8"\n{text}')
    assert said.startswith('Linux has bbr1 from 4.9 on: with kernel = "4.8" it is that of later releases')
    assert cautions(f'kernel = "4.9"\n{text}') == cautions(text) == []
    assert cautions(f'kernel = "4.8"\n{PATH}{FLOW}') == []


def test_what_an_engine_does_not_do_is_a_caution_of_its_runs_alone() -> None:
    text = PATH + '[sender]\ncosts = ["none", "published"]\n' + FLOW
    scenario = api.parse(text, "s.toml")
    assert doubts.of_settings(manifest.cells(scenario, "sim")) == []
    [said] = doubts.of_settings(manifest.cells(scenario, "kernel"))
    assert said == "cell 1: sender.costs has no effect in the engine kernel, whose hosts are real."


def test_an_axis_by_which_nothing_differs_is_told() -> None:
    """A rate changes what a flow has; whether BBR looks for a policer does not, where it acts."""
    path = '[path]\nrate = ["8Mbit/s", "9Mbit/s"]\nrtt = "20ms"\n'
    flow = '[[flow]]\nalgorithm = ["bbr1", "cubic"]\nbbr1.policer_model = [true, false]\n'
    run = tcpknee.run(f'duration = "1s"\nrepeat = 2\n{path}{flow}')
    found = [line for line in run.summary.warnings if "changes nothing" in line]
    assert found == [
        "flow.0.bbr1.policer_model changes nothing here: true and false give every flow the same in each repetition."
    ]


@pytest.mark.parametrize(
    ("algorithm", "hosts", "is_told"),
    [
        ("prague", "", True),
        ("dctcp", "", True),
        ("dctcp", "[sender]\ntcp_ecn = 1\n[receiver]\ntcp_ecn = 1\n", True),
        ("dctcp", '[receiver]\nalgorithm = "dctcp"\n', False),
        ("prague", '[receiver]\nalgorithm = "prague"\n', False),
        ("prague", "[sender]\ntcp_ecn = 3\n[receiver]\ntcp_ecn = 3\n", False),
        ("dctcp", "[sender]\ntcp_ecn = 3\n[receiver]\ntcp_ecn = 3\n", False),
        ("cubic", "", False),
    ],
)
def test_an_algorithm_that_goes_by_marks_is_told_where_it_gets_none(algorithm: str, hosts: str, is_told: bool) -> None:
    text = f'{PATH}queue = "dualpi2"\n{hosts}[[flow]]\nalgorithm = "{algorithm}"\n'.replace("20s", "3s")
    marked = sum(row["marked_pkts"] for row in tcpknee.run(text).queue.arrow().to_pylist())
    if not is_told:
        assert cautions(text) == []
        assert marked or algorithm == "cubic"
        return
    [said] = cautions(text)
    assert said.startswith(f"{algorithm} goes by ECN, on which the ends of this scenario do not agree")
    assert marked == 0
