"""`knee fleet watch`: guards, and experiments that are followed and ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import Ended
from tcpknee.errors import UsageError
from tcpknee.fleet.assign import running
from tcpknee.fleet.following import following
from tcpknee.fleet.following.guards import Guard, parse

Call = Callable[..., Ended]
GUARD = "retransmit_pct ratio <= 1.2"


def experiment(
    folder: Path,
    *,
    treated_pct: float = 1.0,
    prefixes: int = 400,
    design: str = "cluster",
    final: bool = True,
    is_over: bool = False,
) -> Path:
    """Connections of two arms, and what `knee assign` says of itself. The control retransmits 1 %."""
    draws = np.random.default_rng(5)
    rows: list[dict[str, Any]] = []
    for cookie in range(prefixes * 3):
        prefix, arm = cookie % prefixes, "bbr1" if cookie % prefixes % 2 else "cubic"
        mean = treated_pct if arm == "bbr1" else 1.0
        rows.append(
            {
                "boot_id": "boot1",
                "cookie": cookie,
                "host_id": "host1",
                "host": "edge1",
                "remote_prefix": f"192.{prefix // 256}.{prefix % 256}.0/24",
                "arm": arm,
                "design": design,
                "allocation_pct": 50.0,
                "period": prefix if design == "switchback" else None,
                "final": final,
                "bytes_acked": 10_000,
                "begin_unix_ns": cookie * 1000,
                "end_unix_ns": cookie * 1000 + 500,
                "retransmit_pct": float(draws.gamma(4, mean / 4)),
                "srtt_us": 20_000.0,
            }
        )
    folder.mkdir()
    schema = {"cookie": pa.uint64(), "period": pa.int64()}
    table = pa.Table.from_pylist(rows)
    for name, kind in schema.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].cast(kind))
    pq.write_table(table, folder / "connections.parquet")
    about = {
        "schema": 1,
        "began": "2026-01-01T00:00:00+00:00",
        "is_over": is_over,
        "asked": {"arms": [{"name": "bbr1"}, {"name": "cubic"}]},
    }
    (folder / running.ABOUT).write_text(json.dumps(about))
    return folder


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("retransmit ratio <= 1.2", "Did you mean"),
        ("retransmit_pct <= 1.2", "expected"),
        ("retransmit_pct ratio < 1.2", "expected"),
        ("retransmit_pct ratio <= 0", "above 0"),
        ("cookie ratio <= 1", '"cookie"'),
        ("srtt_us ratio <= 1; drop table", "expected"),
    ],
)
def test_guards_that_say_nothing_are_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(text)


def test_a_guard_says_again_what_it_was_given() -> None:
    for text in (GUARD, "srtt_us difference >= -2000", "goodput_bits_per_sec ratio >= 0.9"):
        assert str(parse(text)) == text


def test_a_guard_is_crossed_when_the_whole_interval_is_beyond_it(tmp_path: Path) -> None:
    worse = experiment(tmp_path / "worse", treated_pct=2.0)
    look = following.look([worse], [parse(GUARD), parse("srtt_us ratio <= 1.1")])
    assert [one.is_crossed for one in look.judged["bbr1"]] == [True, False]
    assert look.crossed is not None and look.crossed.startswith(f"bbr1: {GUARD} does not hold: ")
    interval = look.judged["bbr1"][0].interval
    assert 1.2 < interval.low < 2.0 < interval.high
    assert (look.connections, look.clusters) == ({"bbr1": 600, "cubic": 600}, "client prefix")
    # Beyond the bound, but not surely.
    slight = experiment(tmp_path / "slight", treated_pct=1.25)
    assert following.look([slight], [parse(GUARD)]).crossed is None
    # The same data with the other sign, and with a bound that holds.
    assert following.look([worse], [parse("retransmit_pct ratio >= 1.2")]).crossed is None
    assert following.look([worse], [parse("retransmit_pct ratio >= 3")]).crossed is not None


@pytest.mark.parametrize(
    ("guard", "treated", "control", "crossed"),
    [
        ("retransmit_pct ratio <= 1.2", 20.0, 0.0, True),
        ("retransmit_pct ratio <= 1.2", 0.0, 20.0, False),
        ("retransmit_pct ratio <= 1.2", 0.0, 0.0, False),
        ("delivery_rate_bits_per_sec ratio >= 0.9", 0.0, 1e6, True),
        ("delivery_rate_bits_per_sec ratio >= 0.9", 1e6, 0.0, False),
    ],
)
def test_a_guard_on_a_ratio_is_judged_where_a_mean_is_zero(
    guard: str, treated: float, control: float, crossed: bool
) -> None:
    draws = np.random.default_rng(1).uniform(0.5, 1.5, (2, 1000))
    arms = [
        (mean * drawn, [f"{arm}{at // 10}" for at in range(1000)])
        for arm, mean, drawn in zip("tc", (treated, control), draws, strict=True)
    ]
    found = parse(guard).judge(*arms)
    assert found.is_crossed == crossed and "the control's, as a mean is 0, with 100 clusters" in found.told


def test_few_clusters_cross_nothing_however_large_the_difference(tmp_path: Path) -> None:
    look = following.look([experiment(tmp_path / "few", treated_pct=50, prefixes=40)], [parse(GUARD)])
    assert look.crossed is None
    assert "not judged before 30 clusters: 20 so far" in look.judged["bbr1"][0].told


def test_open_connections_are_not_counted(tmp_path: Path) -> None:
    look = following.look([experiment(tmp_path / "open", treated_pct=9, final=False)], [parse(GUARD)])
    assert look.crossed is None
    assert sum(look.connections.values()) == 0


def test_looking_often_ends_few_experiments_at_the_very_bound() -> None:
    """Of 80 at the bound, each looked at 8 times: 1 in 40 is expected at most, 2 of 80."""
    guard = Guard("srtt_us", "ratio", "<=", 1.0)
    draws = np.random.default_rng(11)
    names = [f"prefix{number}" for number in range(400)]
    ended = 0
    for _ in range(80):
        treated, control = draws.gamma(2, 1, 400), draws.gamma(2, 1, 400)
        looks = (
            guard.judge((treated[:n], names[:n]), (control[:n], [f"other {name}" for name in names[:n]]), planned=200)
            for n in range(50, 401, 50)
        )
        ended += any(look.is_crossed for look in looks)
    assert ended <= 4


def test_a_switchback_is_judged_by_its_periods(tmp_path: Path) -> None:
    look = following.look([experiment(tmp_path / "sb", design="switchback", prefixes=100)], [parse(GUARD)])
    assert look.clusters == "period, as assigned"
    assert look.judged["bbr1"][0].interval.clusters == 50


def test_the_control_is_the_last_arm_or_the_one_that_is_named(tmp_path: Path) -> None:
    data = [experiment(tmp_path / "rec", treated_pct=2.0)]
    assert set(following.look(data, [parse(GUARD)]).judged) == {"bbr1"}
    named = following.look(data, [parse("retransmit_pct ratio <= 0.9")], control="bbr1")
    assert set(named.judged) == {"cubic"} and named.crossed is None
    with pytest.raises(UsageError, match=r'control: got "cubix"; .*, one of bbr1, cubic'):
        following.look(data, [parse(GUARD)], control="cubix")
    # The log names the arms also before there is a connection of them.
    assert following.look(data, [parse(GUARD)], control="cubic", where="arm = 'bbr1'").crossed is None
    (data[0] / running.ABOUT).unlink()
    with pytest.raises(UsageError, match=r"control: is missing, .* assign\.json .*, one of bbr1, cubic"):
        following.look(data, [parse(GUARD)])
    with pytest.raises(UsageError, match=r'control: got "reno"; .*, one of bbr1, cubic'):
        following.look(data, [parse(GUARD)], control="reno")


def test_a_crossed_guard_tells_the_assignment_to_end(call: Call, tmp_path: Path) -> None:
    rec = experiment(tmp_path / "rec", treated_pct=2.0)
    ended = call("fleet", "watch", str(rec), "--guard", GUARD)
    assert ended.code == 1
    assert f"Crossed. bbr1: {GUARD} does not hold" in ended.out
    assert str(rec) in ended.out.splitlines()[-1]
    why = running.stopped(rec, "2026-01-01T00:00:00+00:00")
    assert why is not None and why.startswith(f"bbr1: {GUARD}")


def test_it_ends_with_the_assignment_when_nothing_is_crossed(call: Call, tmp_path: Path) -> None:
    rec = experiment(tmp_path / "rec", is_over=True)
    ended = call("fleet", "watch", str(rec), "--guard", GUARD, "--json")
    assert ended.code == 0
    told = json.loads(ended.out)
    assert told["crossed"] is None and told["ended"] == []
    assert told["guards"][0]["clusters"] == 200
    assert not (rec / running.STOP).exists()


def test_it_ends_after_its_time(call: Call, tmp_path: Path) -> None:
    rec = experiment(tmp_path / "rec")
    ended = call("fleet", "watch", str(rec), "--guard", GUARD, "--every", "100ms", "--for", "2s")
    assert ended.code == 0
    said = "connections that ended: bbr1 600 (at 50%), cubic 600 (at 50%); unit of inference: client prefix\n"
    assert ended.out.count(said) >= 2


def test_what_was_wrongly_given_is_told_with_its_option(call: Call, tmp_path: Path) -> None:
    rec = experiment(tmp_path / "rec")
    assert '--guard: got "srtt ratio"' in call("fleet", "watch", str(rec), "--guard", "srtt ratio").err
    assert "--where" in call("fleet", "watch", str(rec), "--guard", GUARD, "--where", "nonsense = 1").err
