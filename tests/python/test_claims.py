"""The published claims: catalogue and gallery agree, checks can fail, verdicts are told, kept and taken up."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support import Ended
from tcpknee.errors import KernelUnsupported, RunFolderError
from tcpknee.evidence.expressions import Chain, Node, Number, Operation, parse, parse_value, terms_in
from tcpknee.fleet import synthetic
from tcpknee.live.qdiscs import Latency
from tcpknee.runs import api, scenarios
from tcpknee.runs.other_values import with_values
from tcpknee.runs.pool import Watcher
from tcpknee.runs.results import Run
from tcpknee.runs.terms import OfCells
from tcpknee.validation.claims import catalogue, checks, judging, verdicts
from tcpknee.validation.claims.catalogue import CLAIMS
from tcpknee.validation.claims.checks import (
    fleet,
    fq_qdisc_latency,
    gro_window,
    probe_rtt_dip,
    qdisc_waits,
    ss_old_and_new,
    steps,
)
from tcpknee.validation.claims.checks.check import Found, Request, fact, smaller
from tcpknee.validation.claims.claim import BOTH, Alike, Claim, OnKernel, by_engine

Call = Callable[..., Ended]

ROOT = Path(__file__).resolve().parents[2]
SIMULATED = [claim for claim in CLAIMS if claim.has_scenario]
ON_KERNEL = [claim for claim in CLAIMS if claim.on_kernel]
FORMS = [judging.Form(), judging.Form(quick=True), judging.Form(quick=True, seed=2)]

STORED = json.loads(verdicts.FILE.read_text(encoding="utf-8"))

LITTLE = """\
title = "Little"
claim = "little"
duration = "1s"
repeat = 3
seed = 1
[path]
rate = "5Mbit/s"
rtt = "20ms"
loss = "0.5%"
[[flow]]
algorithm = ["cubic", "reno"]
"""
HOLDS = '[[expect]]\nassert = "cubic.goodput > 1Mbit/s"\n'
UNDECIDED = '[[expect]]\nassert = "cubic.goodput > 1.001 * reno.goodput"\n'
FAILS = '[[expect]]\nassert = "reno.goodput > 50Mbit/s"\n'


@pytest.fixture
def little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., judging.Result]:
    """Judges a claim whose scenario is LITTLE with those expectations."""

    def judge(*expects: str, out: str = "out", resume: bool = False, **changed: Any) -> judging.Result:
        (tmp_path / "little.toml").write_text(LITTLE + "".join(expects))
        monkeypatch.setattr(scenarios, "path", lambda name: tmp_path / f"{name}.toml")
        form = changed.pop("form", judging.Form())
        claim = replace(
            Claim(
                "little", "D", "it is little", "a shape", limits=by_engine(sim="what is missing"), needs="nothing else"
            ),
            **changed,
        )
        return judging.judge(claim, form, tmp_path / out, resume=resume, workers=1, watcher=Watcher())

    return judge


def test_every_claim_of_the_gallery_is_in_the_catalogue_under_the_name_of_its_file() -> None:
    told = {name: api.parse(*api.read_scenario(scenarios.path(name))).claim for name in scenarios.names()}
    assert {name for name, claim in told.items() if claim} == {claim.id for claim in SIMULATED}
    assert all(name == claim for name, claim in told.items() if claim)
    assert len(catalogue.by_id()) == len(CLAIMS)


def test_every_check_belongs_to_a_claim_and_every_claim_has_something_that_is_checked() -> None:
    assert {claim.check for claim in CLAIMS if claim.check} == set(checks.NAMES)
    assert all(claim.has_scenario or claim.check for claim in CLAIMS)
    assert all(checks.file_of(name).is_file() and callable(checks.find(name)) for name in checks.NAMES)


@pytest.mark.parametrize("claim", SIMULATED, ids=lambda claim: claim.id)
def test_each_form_of_a_claim_parses_and_has_the_values_that_are_shown(claim: Claim) -> None:
    whole = [assertion for assertion, _ in api.parse(judging.text_of(claim, FORMS[0]), claim.id).expects]
    for form in FORMS:
        scenario = api.parse(judging.text_of(claim, form), claim.id)
        # A short form checks the same things on less.
        assert [assertion for assertion, _ in scenario.expects] == whole
        assert scenario.repeat >= 3 and scenario.seed == (form.seed or 1)
        for _, expression in claim.shows:
            used = terms_in(parse_value(expression))
            assert len(OfCells(scenario.cells).places(used)) == 1, expression


@pytest.mark.parametrize("claim", ON_KERNEL, ids=lambda claim: claim.id)
def test_the_form_of_a_claim_for_a_kernel_parses_and_has_the_values_that_are_shown(claim: Claim) -> None:
    file = judging.scenario_of(claim, "kernel")
    assert file != judging.scenario_of(claim, "sim")
    scenario = api.parse(judging.text_of(claim, judging.Form("kernel", seed=3, quick=True)), claim.id)
    assert (scenario.claim, scenario.seed) == (claim.id, 3)
    assert scenario.repeat >= 3 and scenario.expects
    assert claim.engines == BOTH and claim.on_kernel and claim.on_kernel.shows
    for _, expression in claim.on_kernel.shows:
        assert len(OfCells(scenario.cells).places(terms_in(parse_value(expression)))) == 1, expression


def numbers(node: Node) -> list[float]:
    """Every number in an expression."""
    if isinstance(node, Number):
        return [float(node.quantity.values[0])]
    if isinstance(node, Operation):
        return numbers(node.left) + (numbers(node.right) if node.right is not None else [])
    return []


def has_least_effect(chain: Chain) -> bool:
    """Is it no mere order of two measurements? Costs of the simulator have no deviation: any difference would hold."""
    left, right = terms_in(chain.left), terms_in(chain.right)
    if left and right:
        return bool(numbers(chain.left) + numbers(chain.right))
    measured, limit = (chain.left, chain.right) if left else (chain.right, chain.left)
    return len(terms_in(measured)) < 2 or numbers(limit) not in ([0.0], [1.0])


@pytest.mark.parametrize(
    ("assertion", "has"),
    [
        ("a.goodput < b.goodput", False),
        ("a.goodput / b.goodput > 1", False),
        ("0 < a.goodput - b.goodput", False),
        ("a.goodput <= 0.95 * b.goodput", True),
        ("a.goodput / b.goodput >= 1.05", True),
        ("a.ring_drops > 0", True),
    ],
)
def test_a_mere_order_has_no_least_effect(assertion: str, has: bool) -> None:
    assert [has_least_effect(chain) for chain in parse(assertion)] == [has]


@pytest.mark.parametrize("claim", SIMULATED, ids=lambda claim: claim.id)
def test_every_comparison_of_a_claim_has_a_least_effect(claim: Claim) -> None:
    for engine in ("sim", "kernel"):
        text = judging.scenario_of(claim, engine).read_text(encoding="utf-8")
        for assertion, _ in api.parse(text, claim.id).expects:
            assert all(map(has_least_effect, parse(assertion))), (engine, assertion)


def test_every_scenario_for_a_kernel_belongs_to_a_claim() -> None:
    files = {file.stem for file in (ROOT / "gallery" / "kernel").iterdir()}
    assert files == {claim.id for claim in ON_KERNEL}


def test_a_kernel_runs_the_form_that_is_for_it_with_its_instruments(
    little: Callable[..., judging.Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.toml"
    own.write_text(LITTLE.replace('"5Mbit/s"', '"7Mbit/s"') + HOLDS)
    monkeypatch.setattr(scenarios, "kernel_path", lambda name: own)
    ran: list[dict[str, Any]] = []

    def run(text: str, file: str, **given: Any) -> Run:
        ran.append({"text": text, "file": file, **given})
        return api.run_text(text, file, out=given["out"])

    monkeypatch.setattr(judging, "api", SimpleNamespace(run_text=run))
    on_kernel = OnKernel((("goodput", "reno.goodput"),), measure=("timers",))
    limits = by_engine(sim="what is missing", kernel="what a kernel lacks")
    found = little(FAILS, on_kernel=on_kernel, limits=limits, form=judging.Form("kernel"))
    assert (ran[0]["file"], ran[0]["measure"]) == ("gallery/kernel/little.toml", ("timers",))
    assert '"7Mbit/s"' in ran[0]["text"]
    assert (found.verdict, found.ours[0][0]) == (judging.REPRODUCED, "goodput")
    own.write_text(LITTLE + FAILS)
    found = little(HOLDS, out="again", on_kernel=on_kernel, limits=limits, form=judging.Form("kernel"))
    assert (found.verdict, found.why) == (judging.NOT_REPRODUCED, "what a kernel lacks")
    # The simulator runs the claim's scenario, without them.
    found = little(HOLDS, out="sim", on_kernel=on_kernel)
    assert (found.verdict, ran[-1]["file"], ran[-1]["measure"]) == (judging.REPRODUCED, "gallery/little.toml", ())


def test_a_key_is_set_in_its_own_table_and_every_line_keeps_its_number() -> None:
    text = 'rtt = "1ms"\n[path]\nrtt    = "20ms"   # near\n[[flow]]\nrtt = "30ms"\n'
    changed = with_values(text, {"path.rtt": '"5ms"'})
    assert changed == 'rtt = "1ms"\n[path]\nrtt    = "5ms"\n[[flow]]\nrtt = "30ms"\n'
    with pytest.raises(AssertionError, match=r"path\.loss"):
        with_values(text, {"path.loss": '"1%"'})


def test_a_claim_is_reproduced_partly_or_not_as_its_expectations_hold(little: Callable[..., judging.Result]) -> None:
    found = little(HOLDS, out="a")
    assert (found.verdict, found.why, found.holds) == (judging.REPRODUCED, "", True)
    found = little(HOLDS, FAILS, out="b")
    assert (found.verdict, found.why, found.holds) == (judging.PARTLY, "what is missing", False)
    found = little(FAILS, out="c", shows=(("goodput", "reno.goodput"),))
    assert (found.verdict, found.holds) == (judging.NOT_REPRODUCED, False)
    assert [one["verdict"] for one in found.found] == ["fails"]
    assert found.found[0]["detail"].startswith("left is ")
    assert found.ours[0][0] == "goodput" and found.ours[0][1].split()[1] == "Mbit/s"


def test_a_claim_is_undecided_while_nothing_fails_and_says_what_would_decide(
    little: Callable[..., judging.Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = little(HOLDS, UNDECIDED, out="a")
    assert (found.verdict, found.holds) == (judging.UNDECIDED, False)
    assert [one["verdict"] for one in found.found] == ["holds", "undecided"]
    assert found.needed is not None and found.needed > 3
    assert found.why == (
        f"An interval holds both outcomes; about {found.needed} repetitions would decide. what is missing"
    )
    assert "holds both outcomes; " in found.found[1]["detail"]
    # What fails is no matter of repetitions.
    assert little(FAILS, UNDECIDED, out="b").verdict == judging.NOT_REPRODUCED
    assert little(HOLDS, FAILS, UNDECIDED, out="c").verdict == judging.PARTLY


def test_that_a_difference_is_not_there_is_a_verdict_of_its_own(little: Callable[..., judging.Result]) -> None:
    def judged(out: str, *expects: str, ratio: str = "cubic.goodput / reno.goodput") -> judging.Result:
        alike = Alike((ratio,), 0.2, "A fifth is no matter.")
        return little(*expects, out=out, alike={"sim": alike})

    found = judged("a", HOLDS, UNDECIDED)
    assert (found.verdict, found.holds) == ("equivalent within 20 %", True)
    assert found.why == "A fifth is no matter. what is missing"
    assert found.found[-1]["assert"] == "0.8 <= cubic.goodput / reno.goodput <= 1.2"
    # A difference that holds is a difference, and one that is too large is none of these.
    assert judged("b", HOLDS).verdict == judging.REPRODUCED
    assert judged("c", FAILS, ratio="cubic.goodput / reno.goodput * 2").verdict == judging.NOT_REPRODUCED


def test_every_stored_verdict_but_the_first_has_its_reason_for_each_engine() -> None:
    for claim in CLAIMS:
        for one in STORED.get(claim.id, {"results": []})["results"]:
            why = judging.reason(claim, one["engine"], one["verdict"], one["needed"])
            assert bool(why) == (one["verdict"] != judging.REPRODUCED), (claim.id, one["engine"])
            # The data of an undecided one are few; what else is wrong with it nobody knows but who looked.
            assert claim.limits.get(one["engine"]) or not why, (claim.id, one["engine"])


def test_what_cannot_be_tested_here_says_why_and_is_no_failure(
    little: Callable[..., judging.Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = little(HOLDS, engines=("kernel",))
    assert (found.verdict, found.holds) == (judging.NOT_TESTABLE, True)
    assert found.why == "needs the host's kernel. nothing else"

    def refuses(*_: object, **__: object) -> None:
        raise KernelUnsupported("little: this kernel has no such thing.")

    monkeypatch.setattr(api, "run_text", refuses)
    found = little(HOLDS, out="other")
    assert (found.verdict, found.why) == (judging.NOT_TESTABLE, "little: this kernel has no such thing.")


def test_a_check_that_was_interrupted_is_made_again_and_what_it_left_stays(
    little: Callable[..., judging.Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun: list[Path] = []

    def check(given: Request) -> Found:
        given.folder.mkdir()
        begun.append(given.folder)
        if len(begun) == 1:
            raise KeyboardInterrupt
        return Found([fact("it ended", True, "")], [])

    monkeypatch.setattr(checks, "find", lambda name: check)
    with pytest.raises(KeyboardInterrupt):
        little(HOLDS, check=checks.NAMES[0])
    assert little(HOLDS, check=checks.NAMES[0], resume=True).verdict == judging.REPRODUCED
    assert begun == [tmp_path / "out" / f"little-check-{n}" for n in (1, 2)]
    assert all(folder.is_dir() for folder in begun)


def test_a_resumed_claim_is_taken_as_it_is_unless_its_file_or_form_has_changed(
    little: Callable[..., judging.Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = little(HOLDS)
    ran: list[object] = []
    run_text = api.run_text

    def counted(*given: Any, **named: Any) -> Run:
        ran.append(named["out"])
        return run_text(*given, **named)

    monkeypatch.setattr(api, "run_text", counted)
    again = little(HOLDS, resume=True)
    assert json.loads(json.dumps(again.json())) == json.loads(json.dumps(first.json()))
    assert not ran
    with pytest.raises(RunFolderError):
        little(HOLDS, FAILS, resume=True)
    assert ran


@pytest.mark.parametrize("other", [judging.Form(), judging.Form(seed=7, bpf=True), judging.Form(seed=7, quick=True)])
def test_a_verdict_is_of_one_seed_and_form(
    little: Callable[..., judging.Result], tmp_path: Path, other: judging.Form
) -> None:
    asked, claim = judging.Form(seed=7), Claim("little", "D", "", "")
    little(HOLDS, form=asked)
    assert judging.kept(claim, asked, tmp_path / "out") is not None
    assert judging.kept(claim, other, tmp_path / "out") is None


def test_claims_are_told_and_written(call: Call, tmp_path: Path) -> None:
    ended = call("gallery", "--only", "ss-old-and-new,per-namespace-choice", "--quick", "--out", "g", "-q")
    assert ended.code == 0, ended.err
    assert "ss-old-and-new        the two lines" in ended.out
    assert "per-namespace-choice: not testable here" in ended.out
    assert "2 claims: 1 not testable here, 1 reproduced." in ended.out
    told = json.loads((tmp_path / "g" / "gallery.json").read_text())
    assert [entry["id"] for entry in told["claims"]] == ["per-namespace-choice", "ss-old-and-new"]
    again = call("gallery", "--only", "ss-old-and-new", "--quick", "--out", "g", "-q")
    assert again.code == 2 and "already holds claims" in again.err
    again = call("gallery", "--only", "ss-old-and-new", "--quick", "--out", "g", "-q", "--resume", "--json")
    assert again.code == 0
    assert json.loads(again.out)["claims"] == told["claims"], "those that the folder holds stay in its summary"
    assert json.loads((tmp_path / "g" / "gallery.json").read_text())["claims"] == told["claims"]


def test_a_claim_that_does_not_hold_ends_with_exit_code_1(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = Claim("little", "D", "it is fast", "fast", "1 Gbit/s", shows=(("goodput", "cubic.goodput"),))
    (tmp_path / "little.toml").write_text(LITTLE + HOLDS + FAILS)
    monkeypatch.setattr(scenarios, "path", lambda name: tmp_path / f"{name}.toml")
    monkeypatch.setattr(catalogue, "CLAIMS", (claim,))
    ended = call("gallery", "--out", "g", "-q")
    assert ended.code == 1
    assert "1 claim: 1 partly." in ended.out
    assert "little: partly" in ended.out and "fails: reno.goodput > 50Mbit/s  (left is " in ended.out
    assert "1 Gbit/s" in ended.out


@pytest.mark.parametrize("began", [True, False])
def test_claims_interrupted_before_the_first_verdict_are_gone_on_with_by_what_is_said(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, began: bool
) -> None:
    def interrupted(claim: Claim, form: judging.Form, out: Path, **_: object) -> None:
        if began:
            (out / claim.id).mkdir(parents=True)
            (out / claim.id / "run.json").write_text("{}")
        raise KeyboardInterrupt

    words = ("gallery", "--only", "per-namespace-choice", "--out", "g", "-q")
    real = judging.judge
    monkeypatch.setattr(judging, "judge", interrupted)
    ended = call(*words)
    assert ended.code == 130
    again = "go on with: knee gallery --only per-namespace-choice --resume --out g\n"
    assert (again in ended.err, (tmp_path / "g").exists()) == (began, began), ended.err
    monkeypatch.setattr(judging, "judge", real)
    ended = call(*words, *(["--resume"] if began else []))
    assert ended.code == 0, ended.err


def test_what_is_asked_wrongly_is_refused(call: Call, tmp_path: Path) -> None:
    for words, said in (
        (["--only", "loss-1.6"], 'Did you mean "loss-1.5"?'),
        (["demo", "--quick"], "got --quick and the scenario demo"),
        (["demo", "--only", "loss-1.5"], "got --only and the scenario demo"),
        (["--resume"], "expected --out DIR"),
        (["--resume", "--out", "nowhere"], "nowhere: holds no claims to go on with"),
        (["--engine", "sim,kernel"], 'got "sim,kernel"; expected one engine, as a verdict is of one'),
        (["--engine", "sim", "--bpf"], "engine"),
        (["--engine", "kernel", "--workers", "2"], "which measures what it costs the host; expected 1"),
        (["--engine", "kernel", "--programs-as-root"], "got --programs-as-root without a scenario; expected one"),
        (["--engine", "kernel", "--allow-host-settings"], "got --allow-host-settings without a scenario; expected one"),
        (["--seed", "-1"], "--seed"),
    ):
        ended = call("gallery", *words)
        assert ended.code == 2 and said in ended.err, words
    assert not (tmp_path / "runs").exists()


def test_the_check_of_ss_fails_where_a_value_is_another_or_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def verdicts(folder: str) -> list[str]:
        found = ss_old_and_new.check(Request(None, 1, quick=True, folder=tmp_path / folder))
        return [outcome.verdict for outcome in found.outcomes]

    assert verdicts("a") == ["holds"] * 3
    monkeypatch.setattr(ss_old_and_new, "_NEW", ss_old_and_new._NEW.replace("minrtt:1.907", ""))
    assert verdicts("b") == ["holds", "holds", "fails"]
    monkeypatch.setattr(ss_old_and_new, "_OLD", ss_old_and_new._OLD.replace("cwnd:106", "cwnd:107 delivered:4"))
    assert verdicts("c") == ["fails", "fails", "fails"]


def test_the_check_of_rate_samples_fails_for_an_algorithm_that_uses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcpknee.validation.claims.checks import rate_sample_is_unused

    here = Request(None, 1, quick=True, folder=Path("none"))
    assert [outcome.verdict for outcome in rate_sample_is_unused.check(here).outcomes] == ["holds", "holds"]
    plain = rate_sample_is_unused._answers
    swapped = {"cubic": "bbr1", "bbr1": "cubic"}
    monkeypatch.setattr(rate_sample_is_unused, "_answers", lambda name, *rest: plain(swapped[name], *rest))
    assert [outcome.verdict for outcome in rate_sample_is_unused.check(here).outcomes] == ["fails", "fails"]


def stepped(axes: dict[str, str], rep: int, t_ms: list[float], values: list[float], end_ms: float) -> steps.Steps:
    return steps.Steps(axes, rep, np.array(t_ms) * 1e6, np.array(values, dtype=float), end_ms * 1e6)


@pytest.mark.parametrize(
    ("on", "verdicts"), [(0.5, ["holds", "holds"]), (1.0, ["fails", "fails"]), (2.0, ["fails", "fails"])]
)
def test_the_check_of_windows_compares_peaks_and_courses(
    on: float, verdicts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(_: object, column: str) -> list[steps.Steps]:
        return [
            stepped({"path.rtt": "1ms", "receiver.gro": gro}, rep, [0, 10, 20], [10 * f, 20 * f, (80 + rep) * f], 15)
            for rep in range(3)
            for gro, f in (("true", on), ("false", 1.0))
        ]

    monkeypatch.setattr(steps, "of", of)
    found = gro_window.check(Request(object(), 1, quick=True, folder=Path("none")))  # type: ignore[arg-type]
    assert [outcome.verdict for outcome in found.outcomes] == verdicts
    # What comes after the transfer is complete does not count.
    assert found.ours[1] == ("peak, GRO off, 1ms", "29.0 kB")


def test_the_check_of_dips_measures_depth_and_duration() -> None:
    times = [50.0 * n for n in range(41)]
    rates = [10.0] * 40
    rates[20:24] = [1.0, 1.0, 1.0, 8.0]
    acked = np.concatenate([[0], np.cumsum(rates)])
    dip = probe_rtt_dip._dip(stepped({}, 0, times, list(acked), 2000), 0.0)
    assert dip == pytest.approx((0.9, 200e6))


def waits(ns: Sequence[int], taken_in: int = 0) -> Latency:
    """A trace of a qdisc in which packets waited for these times."""
    buckets = [(value, value + 1, 1) for value in sorted(ns)]
    taken = taken_in or len(ns)
    return Latency(1, 1, 1 << 16, "lo", "htb", taken, len(ns), 0, sum(ns), max(ns), buckets)


def test_the_check_of_waits_fails_where_they_are_not_those_of_the_rate_or_are_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packet_ns = round(qdisc_waits.WIRE_BYTES * 8e9 / qdisc_waits.RATE_BITS_PER_SEC)
    burst = [packet_ns * at for at in range(qdisc_waits.BURST_PKTS)]
    free = [1_500] * 100

    def verdicts(**seen: Latency) -> list[str]:
        monkeypatch.setattr(fq_qdisc_latency, "_measured", seen.__getitem__)
        found = fq_qdisc_latency.check(Request(None, 1, quick=True, folder=Path("none")))
        return [outcome.verdict for outcome in found.outcomes]

    right, fast = waits(burst), waits(free)
    assert verdicts(free=fast, burst=right) == ["holds"] * 4
    assert verdicts(free=fast, burst=waits([ns // 2 for ns in burst])) == ["holds", "holds", "fails", "holds"]
    assert verdicts(free=right, burst=right) == ["holds", "holds", "holds", "fails"]
    assert verdicts(free=waits(free, taken_in=110), burst=right) == ["fails", "holds", "holds", "holds"]


def test_retransmissions_are_those_of_all_segments_and_not_a_mean_over_connections() -> None:
    prefixes = np.array([f"10.0.{number}.0/24" for number in range(40)] * 2)
    sent = np.array([100.0, 10_000.0] * 40)
    table = {
        "algorithm": np.array(["bbr1"] * 40 + ["bbr2"] * 40),
        "remote_prefix": prefixes,
        "data_segs_out": sent,
        # Both lose a tenth of what short connections send; of long ones 4 % and 1 %.
        "retransmit_pct": np.where(sent == 100, 10.0, np.array([4.0] * 40 + [1.0] * 40)),
    }
    found = fleet.retransmitted(table, "bbr1", "bbr2")
    assert found.value == pytest.approx((10 + 400) / (10 + 100), rel=1e-3)
    assert found.low < found.value < found.high


def interval(low: float, value: float, high: float) -> Any:
    """Of a hundred prefixes."""
    return SimpleNamespace(low=low, value=value, high=high, clusters=100)


def test_reordering_is_no_claim_where_no_path_reorders(monkeypatch: pytest.MonkeyPatch) -> None:
    def verdicts(events: float) -> list[str]:
        value = interval(events / 2, events, 2 * events)
        one = SimpleNamespace(value=value, base=value, word="none shown", told="", cohort="cubic", metric=None)
        monkeypatch.setattr(fleet, "_verdicts", lambda *_: (one, one))
        monkeypatch.setattr(fleet, "_middles", lambda *_: [])
        found = fleet.reordering(Request(None, 1, quick=True, folder=Path("none")))
        return [outcome.verdict for outcome in found.outcomes]

    assert verdicts(2.0) == ["holds", "holds"]
    assert verdicts(0.0) == ["fails", "holds"]


def test_an_undecided_comparison_of_fleets_says_how_many_prefixes_would_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "_text", lambda found: "")
    found = fleet._above("above 2", interval(1.75, 2.25, 2.75), 2)
    # Twice too wide on the side of the limit: four times as many.
    assert (found.verdict, found.needed) == ("undecided", 400)
    assert fleet._below("below 2.5", interval(1.75, 2.25, 2.75), 2.5).needed == 400
    assert fleet._above("above 1", interval(1.75, 2.25, 2.75), 1).needed is None
    assert [fleet._below("", interval(*ends), 1).verdict for ends in ((0.7, 0.8, 0.9), (1.1, 1.2, 1.3))] == [
        "holds",
        "fails",
    ]
    alike = {"holds": (0.95, 1, 1.05), "fails": (1.12, 1.2, 1.3), "undecided": (0.95, 1.0, 1.15)}
    assert [fleet._alike("", interval(*ends)).verdict for ends in alike.values()] == list(alike)
    assert fleet._alike("", interval(0.6, 0.7, 0.8)).verdict == "fails"
    assert fleet._alike("", interval(*alike["undecided"])).needed == 225


def test_a_comparison_without_an_interval_on_one_side_of_1_is_undecided() -> None:
    left, right = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0])
    assert smaller("a", left, right).verdict == "undecided"
    assert smaller("a", left / 10, right).verdict == "holds"
    assert smaller("a", left * 10, right).verdict == "fails"


OF_LONG = {"fleet-retrans", "fleet-throughput-high", "loss-matrix", "multi-queue", "redis-cubic-vs-bbr"}
"""Half of what all take together."""


@pytest.fixture
def one_fleet(once: Callable[[str, Callable[[Path], object]], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The fleet of article C is made once for the processes that run tests: it takes each of them a minute."""
    write = synthetic.write

    def given(mix: synthetic.Mix, folder: Path, **how: Any) -> None:
        folder.symlink_to(once(f"fleet-{mix.seed}", lambda place: write(mix, place, **how)))

    monkeypatch.setattr(synthetic, "write", given)


@pytest.mark.slow("some simulate fleets of thousands of connections")
@pytest.mark.usefixtures("one_fleet")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name in OF_LONG else ())
        for name in STORED
        if "sim" in catalogue.by_id()[name].engines
    ],
)
def test_the_short_form_of_a_claim_gives_the_verdict_of_the_page(name: str, tmp_path: Path) -> None:
    claim = catalogue.by_id()[name]
    form = judging.Form(quick=True)
    found = judging.judge(claim, form, tmp_path, resume=False, workers=1, watcher=Watcher())
    page = [one["verdict"] for one in STORED[name]["results"] if one["engine"] == "sim"]
    # A twentieth of the prefixes does not decide all that they decide together.
    told = {*page, judging.UNDECIDED} if claim.unit == "prefixes" else {page[0]}
    assert found.verdict in told, [one for one in found.found if one["verdict"] != "holds"]
