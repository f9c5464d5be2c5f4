"""`knee redteam`: what is drawn can be run, finds repeat, are small, and are what their files show."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest

import tcpknee
from support import Ended, refused
from tcpknee import _core
from tcpknee.algorithms import naming, outline
from tcpknee.cli.redteam import _ending, _write
from tcpknee.errors import ScenarioError
from tcpknee.redteam import cases
from tcpknee.redteam.cases import Case, drawn, mutated, nearby
from tcpknee.redteam.judging import Question, Runs, Sides, all_judged, judged
from tcpknee.redteam.knobs import EVERY
from tcpknee.redteam.measured import Flow, Measured
from tcpknee.redteam.objectives import EVERY as OBJECTIVES
from tcpknee.redteam.objectives import NOTHING
from tcpknee.redteam.request import Answer, _finds
from tcpknee.redteam.search import sought
from tcpknee.redteam.shrink import Find, shrunk
from tcpknee.redteam.written import beside_finds, scenario, sentence
from tcpknee.runs import api
from tcpknee.runs.workers import on_processes

Call = Callable[..., Ended]
SIDES = Sides("bbr1", "cubic", "bbr1", "cubic")
CROWDED = Case.of({"path.rate": 10.0, "path.buffer": 0.5, "flow.count": 4.0, "path.jitter": 0.1, "sender.hz": "1000"})


def test_what_is_drawn_is_a_scenario_or_has_too_small_a_buffer() -> None:
    chance, refusals = Random(1), 0
    for _ in range(400):
        case = drawn(chance)
        for one in (case, mutated(case, chance), nearby(case, chance)):
            try:
                _core.parse(one.text("bbr1", "cubic", 1), "drawn.toml")
            except ScenarioError as error:
                assert "path.buffer" in str(error) and (not one.has_room or "path.trace" in one), (str(error), one)
                refusals += one.has_room
    assert refusals < 12


def test_every_objective_has_a_score_of_whatever_is_drawn() -> None:
    chance = Random(5)
    for place in range(40):
        case = drawn(chance, ("late.count", "other.count") if place % 2 else ())
        runs = Runs(SIDES, place)
        for one in OBJECTIVES:
            score, words = judged(Question(case, one.name, next(iter(case), "") if one.of_key else ""), runs)
            assert 0 <= max(score, 0.0) < 1e4 and (words or score <= 0), (one.name, case)


@pytest.mark.parametrize("knob", EVERY, ids=lambda knob: knob.name)
def test_each_knob_reaches_the_scenario(knob) -> None:  # type: ignore[no-untyped-def]
    chance = Random(2)
    wanted = [knob.name, *(("late.count", "other.count") if "." in knob.name else ())]
    case = next(one for one in iter(lambda: drawn(chance, wanted), None) if knob.name in one)
    # A path without its rate has no policer's rate either.
    if knob.name != "path.trace":
        case = case.without("path.trace")
    assert case.text("bbr1", "cubic", 1) != case.without(knob.name).text("bbr1", "cubic", 1)


def test_what_means_nothing_beside_the_rest_is_not_kept() -> None:
    assert "sender.steal" not in Case.of({"sender.steal": 50.0})
    full = Case.of({"sender.costs": '"published"', "sender.steal": 50.0, "sender.steal_slice": 3.0})
    assert full.without("sender.costs") == Case()


def test_a_find_is_made_small_and_its_cause_is_found_once() -> None:
    asked = Question(CROWDED, "loss")
    find, runs = shrunk((SIDES, 1, asked, ()))
    assert find is not None and runs > 20
    assert set(find.asked.case) < set(CROWDED) and "path.jitter" not in find.asked.case
    assert find.of_seeds >= 3 and find.of_nearby >= 10
    assert find.asked.case.text("bbr1", "cubic", 1, sampled=False).count("\n") <= 16
    # As it would be found again.
    again, _ = shrunk((SIDES, 1, find.asked, (find.asked,)))
    assert again is None or again.asked.cause != find.asked.cause


def test_a_find_is_confirmed_with_seeds_that_did_not_choose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a judge to whom only the first two seeds show something nothing is left."""

    def lucky(asked: Question, runs: Runs) -> tuple[float, str]:
        return (2.0 if runs.seed < 9 else 0.0), "is lucky"

    monkeypatch.setattr("tcpknee.redteam.shrink.judged", lucky)
    assert shrunk((SIDES, 7, Question(CROWDED, "loss"), ()))[0] is None
    find, _ = shrunk((SIDES, 1, Question(CROWDED, "loss"), ()))
    assert find is not None and find.of_seeds == 5 and "Shown with" not in sentence(find, SIDES)
    find, _ = shrunk((SIDES, 4, Question(CROWDED, "loss"), ()))
    assert find is not None and find.of_seeds == 3 and "Shown with 3 of 5 further seeds" in sentence(find, SIDES)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_crash_of_a_file_is_a_find_and_ends_nothing_else(tmp_path: Path) -> None:
    before = "\tout->ret = cc_max("
    text = outline.of("mine")
    assert before in text
    file = tmp_path / "mine.c"
    file.write_text(text.replace(before, "\t*(volatile u32 *)8 = 1;\n" + before), encoding="utf-8")
    (mine, cubic), of_files = naming.chosen("algorithms", (str(file), "cubic"))
    sides = Sides(mine, cubic, of_files[0].built.path, cubic, tuple(of_files))
    case = Case.of({"path.rate": 5.0, "path.rtt": 10.0, "sender.hz": "1000"})
    # What crashes asks nothing of its other judges; what does not goes on beside it in the same worker.
    calm = Case.of({"path.rate": 5.0, "path.rtt": 10.0, "flow.window_clamp": 4.0})
    with on_processes(2) as on_all:
        first, second = on_all("", all_judged, [(sides, 1, Question(one, "loss")) for one in (case, calm)])
        ((find, _),) = on_all("", shrunk, [(sides, 1, Question(case, "crash"), ())])
    assert first[0][Question(case, "loss")] == NOTHING and first[0][Question(case, "crash")][0] >= 1
    assert not any(one.objective == "crash" for one in second[0])
    assert find is not None and find.asked.case == Case() and (find.of_seeds, find.of_nearby) == (5, 20)
    assert "mine ends its run: it uses memory that is not its own" in sentence(find, sides)
    assert " in ssthresh" in sentence(find, sides) and "No seed changes it, and" in sentence(find, sides)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_finds_of_files_name_them_beside_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the files and the finds are, and under the names that the sentences have."""
    monkeypatch.chdir(tmp_path)
    for folder, beta in ((".", "700"), ("old", "800"), ("far/old", "900")):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        text = outline.of("mine").replace("#include", f"#define BETA {beta}\n#include", 1)
        (tmp_path / folder / "mine.c").write_text(text, encoding="utf-8")
    asked = Question(Case.of({"path.rate": 5.0, "other.count": 1.0}), "unfairness")
    for own, other in (("./mine.c", "old/mine.c"), ("old/mine.c", f"{tmp_path}/far/old/mine.c"), ("./mine.c", "cubic")):
        names, of_files = naming.chosen("algorithms", (own, other))
        sides = Sides(*names, own, other, tuple(of_files))
        named, sources = beside_finds(sides)
        find = Find(asked, 2.0, "wins", 5, 20, False)
        answer = Answer(sides, [find], {"find.toml": scenario(find, named, 1)}, sources, 1, 1, False, 0)
        out = tmp_path / "finds" / own / other.strip("/")
        _write(answer, out)
        found = api.parse((out / "find.toml").read_text(), str(out / "find.toml"))
        algorithms = [{flow["algorithm"] for flow in cell["flows"]} for cell in found.cells]
        assert algorithms == [{*names}, {names[1]}]
        assert [one.built.digest for one in naming.used_by(found)] == [one.built.digest for one in of_files]


def test_only_a_file_is_asked_for_a_crash() -> None:
    asked: list[str] = []

    def on_all(title: str, make: object, work: list[tuple[Sides, int, Question]]) -> list[object]:
        asked.extend(one.objective for _, _, one in work)
        return [({one: NOTHING}, 1) for _, _, one in work]

    sought(SIDES, runs=100, seed=1, until=float("inf"), on_all=on_all)
    assert len({*asked}) == len(OBJECTIVES) - 1 and "crash" not in asked


def test_a_plain_path_is_no_find_but_what_a_judge_wants() -> None:
    runs = Runs(Sides("cubic", "reno", "cubic", "reno"), 1)
    for one in OBJECTIVES:
        assert judged(Question(Case(), one.name, one.wanted[0][0] if one.of_key else ""), runs)[0] < 1
    assert judged(Question(Case.of({"path.rate": 5.0, "path.buffer": 9.0}), "standing-queue"), runs)[0] >= 1
    refused_one = Case.of({"path.rate": 0.5, "path.rtt": 0.2})
    assert judged(Question(refused_one, "loss"), runs) == NOTHING


def _slept(**changed: float) -> float:
    """The score of a flow that has sent all that was under way at 1.1 s, and sends again at 1.64 s."""
    steady = {"bytes_read": 0.0, "bytes_sent": 14480.0, "notsent_bytes": 14480.0, "unacked": 0.0}
    steady |= {"snd_wnd_bytes": 65535.0, "pacing_rate_bits_per_sec": 1e7, "srtt_us": 40_000.0, "rto_us": 240_000.0}
    samples = {name: np.full(3, value) for name, value in {**steady, **changed}.items()}
    samples["unacked"][[0, 2]] = 10.0
    samples["bytes_sent"][2] += 14480.0
    slept = Measured([Flow("first", {}, np.array([1.0e6, 1.1e6, 1.64e6]), samples)], np.empty(0))
    [judge] = [one.judge for one in OBJECTIVES if one.name == "lost-wake-up"]
    return judge(Case(), "", lambda *asked, **how: slept)[0]


def test_a_sample_holds_until_the_next_one() -> None:
    assert _slept() > 2, "540 ms, and 180 are allowed"
    assert _slept(snd_wnd_bytes=1448.0) == 0
    assert _slept(pacing_rate_bits_per_sec=44_000.0) < 1, "two packets of 1500 bytes each 545 ms"
    # The flow's last retransmission but one is at 3.4 s.
    runs = Runs(Sides("vegas", "cubic", "vegas", "cubic"), 1)
    bursts = Case.of({"path.rtt": 4.0, "path.loss": 3.0, "path.loss_burst": 10.0})
    words = judged(Question(bursts, "stuck"), runs)[1]
    assert float(words.removeprefix("is stuck: nothing is delivered for ").split()[0]) > 5


def test_the_finds_known_of_old_are_judged_as_such() -> None:
    """bbr1's loss in a short buffer, its collapse under stolen time, 3.10's slow-down by GRO, DCTCP beside CUBIC."""
    runs = Runs(SIDES, 1)
    shallow = Case.of({"flow.count": 4.0})
    stolen = Case.of({"sender.costs": '"published"', "sender.steal": 80.0})
    assert judged(Question(shallow, "loss"), runs)[0] >= 1
    assert judged(Question(stolen, "collapse", "sender.steal"), runs)[0] >= 1
    merged: dict[str, float | str] = {"path.rate": 1000.0, "path.rtt": 4.0, "receiver.gro": "true"}
    merged |= {"receiver.rx_coalesce": 500.0, "flow.workload": '"transfer"', "flow.bytes": 512.0}
    scores = {
        kernel: judged(
            Question(Case.of({**merged, "kernel": f'"{kernel}"'}), "costly-setting", "receiver.gro"),
            Runs(Sides("cubic", "reno", "cubic", "reno"), 1),
        )[0]
        for kernel in ("3.10", "7.2")
    }
    assert scores["3.10"] >= 1 > scores["7.2"]
    marked: dict[str, float | str] = {"path.rate": 200.0, "path.rtt": 5.0, "path.buffer": 4.0, "path.queue": '"step"'}
    marked |= {"path.step.ce_packets": 20.0, "sender.tcp_ecn": "1", "receiver.algorithm": '"dctcp"', "other.count": 1.0}
    dctcp = Runs(Sides("dctcp", "cubic", "dctcp", "cubic"), 1)
    assert judged(Question(Case.of(marked), "unfairness"), dctcp)[0] >= 1


@pytest.mark.slow("a search is run with one worker and with two, and what it found once more")
def test_finds_are_the_same_with_any_number_of_workers_and_their_files_run(call: Call, tmp_path: Path) -> None:
    words = ("redteam", "bbr1", "--runs", "100", "--seed", "3", "--json", "-q")
    one = call(*words, "--workers", "1", "--out", str(tmp_path / "one"))
    two = call(*words, "--workers", "2", "--out", str(tmp_path / "two"))
    assert one.code == two.code == 1
    assert one.out == two.out
    found = json.loads(one.out)
    assert not found["time_was_over"]
    assert any(find["objective"] == "loss" for find in found["finds"])
    for find in found["finds"]:
        text = (tmp_path / "one" / find["file"]).read_text()
        assert text == (tmp_path / "two" / find["file"]).read_text()
        assert find["seeds"]["shown"] >= 3 and find["nearby"]["shown"] >= 5
    loss = next(find["file"] for find in found["finds"] if find["objective"] == "loss")
    run = tcpknee.run(tmp_path / "one" / loss)
    rows = [row for row in run.rows("flows").to_pylist() if row["name"] != "other"]
    again = {name: _again([row for row in rows if row["algorithm"] == name]) for name in ("bbr1", "cubic")}
    assert again["bbr1"] > max(3 * again["cubic"], 0.05)


def _again(rows: list[dict[str, float]]) -> float:
    """The share of what was sent that was sent again beyond what the path lost."""
    retransmitted = sum(row["total_retrans"] - row["path_lost_pkts"] for row in rows)
    return retransmitted / sum(row["data_segs_out"] for row in rows)


def test_what_there_was_no_time_to_check_is_counted() -> None:
    """And is no find."""
    questions = [[Question(CROWDED, "loss"), Question(CROWDED, "stuck")], [Question(CROWDED, "starvation")]]
    assert _finds(SIDES, questions, 1, 0.0, lambda *work: []) == ([], 0, 3)
    assert "over first, with 3 candidates not checked: a" in _ending(Answer(SIDES, [], {}, {}, 9, 0, True, 3), 1)


def test_who_did_not_ask_for_files_is_told_how(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = Find(Question(CROWDED, "loss"), 2.0, "loses", 5, 20, False)
    answer = Answer(SIDES, [find], {"bbr1-loss-1.toml": "seed = 1\n"}, {}, 9, 1, False, 0)
    monkeypatch.setattr("tcpknee.redteam.request.answered", lambda *asked, **how: answer)
    said = "--out DIR writes the files."
    assert said in call("redteam", "bbr1", "-q").out and not list(tmp_path.iterdir())
    assert said not in call("redteam", "bbr1", "-q", "--out", "finds").out
    assert {file.name for file in (tmp_path / "finds").iterdir()} == {"bbr1-loss-1.toml", "finds.json"}


def test_no_time_is_said_and_a_comparison_with_itself_is_refused(call: Call) -> None:
    ended = call("redteam", "reno", "--budget", "1ms", "-q")
    # Without a single run it has found nothing out.
    assert ended.code == (1 if "after 0 runs" in ended.out else 0)
    assert "0 finds, after " in ended.out and "The time was over first" in ended.out
    refused(call("redteam", "cubic", "--against", "cubic"), "against: got cubic, which the search is about")
    refused(call("redteam", "cubik"), "cubik")


def test_what_undoes_a_knob_is_the_default_of_its_key() -> None:
    known = _core.keys()
    defaults = {key["path"]: key["default"] for key in known}
    # By default no release is named, and the rules are those of one.
    plain, named = (Case.of({"kernel": kernel} if kernel else {}) for kernel in ("", cases._OFF["kernel"]))
    told = [set(_core.parse(one.text("bbr1", "cubic", 1), "x").cells[0]["describe"]) for one in (plain, named)]
    assert [key for key, _, _ in told[0] ^ told[1]] == ["kernel"]
    undone = {name: value.strip('"') for name, value in cases._OFF.items() if name != "kernel"}
    assert undone == {name: defaults[name] for name in undone}
