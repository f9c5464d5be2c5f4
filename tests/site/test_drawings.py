"""What the site draws is what was measured, and its stories quote the stored verdicts."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import drawings
import gallery
import pytest
import reference

from tcpknee.pages import palette
from tcpknee.validation.claims import verdicts

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
BAR = re.compile(r'<rect class="(\S+) bar" x="([\d.]+)" y="\S+" width="([\d.]+)"')


def test_a_bar_is_as_long_as_its_value_and_a_ratio_begins_at_one():
    drawn = drawings.values("x", [["cubic", "10 Mbit/s [9, 11]"], ["bbr1", "40 Mbit/s"]])
    [(ours, at, short), (other, same, long)] = BAR.findall(drawn)
    assert (ours, other) == (reference.look("cubic")[0], reference.look("bbr1")[0])
    assert at == same and float(long) / float(short) == pytest.approx(4, rel=0.01)
    [(_, half_at, half), (_, double_at, double)] = BAR.findall(drawings.values("x", [["a", "0.5×"], ["b", "2.0×"]]))
    assert half == double and float(half_at) + float(half) == pytest.approx(float(double_at), abs=0.2)


def test_values_that_span_orders_of_magnitude_are_dots_and_values_of_two_units_are_not_drawn():
    drawn = drawings.values("x", [["cubic", "1 ms"], ["bbr1", "1000 ms"]])
    assert drawn.count("<circle") == 2 and not BAR.search(drawn)
    assert drawings.values("x", [["cubic", "1 ms"], ["bbr1", "1 s"]]) == ""
    # A ratio is no number of packets, though neither has a unit.
    assert drawings.values("x", [["bbr1 ÷ cubic", "1.5"], ["bbr1", "126"]]) == ""
    assert "rule" in drawings.values("x", [["bbr1 ÷ cubic", "1.5"], ["bbr2 ÷ cubic", "1.2"]])


def test_most_claims_have_a_drawing():
    drawn = [name for name, found in verdicts.results().items() if found and drawings.values(name, found[0]["ours"])]
    assert len(drawn) > 35


def test_the_stories_quote_verdicts_and_have_no_number_of_ours_in_prose():
    told = (ROOT / "site" / "stories.md").read_text(encoding="utf-8")
    assert len(gallery.NUMBER.findall(told)) > 15
    index = gallery.index()
    assert not gallery.NUMBER.search(index) and not gallery.DRAWN.search(index)
    [(all_, every, none)] = re.findall(r"Of (\d+) claims, (\d+) are reproduced in every way .+, (\d+) in none", index)
    results = verdicts.results().values()
    assert int(all_) == len(results)
    assert int(every) == sum(bool(ways) and all(one["verdict"] == "reproduced" for one in ways) for ways in results)
    assert int(none) == sum(bool(ways) and all(one["verdict"] != "reproduced" for one in ways) for ways in results)
    ours = dict(verdicts.results()["ab-bias"][0]["ours"])
    assert ours["10 % treated"].split(" ")[0] in index


def test_every_family_has_its_colour_in_the_style_sheet():
    styles = drawings.styles()
    assert all(ink in styles for ink in palette.COLOURS[: len(palette.FAMILIES)])


def test_the_race_says_what_was_measured():
    """The words of the first page, and what screen readers hear, are those of the last rows of the file."""
    rows = (ROOT / "site" / "race.csv").read_text(encoding="utf-8").splitlines()
    last = {row.split(",")[0]: row.split(",") for row in rows}
    for name in ("cubic", "bbr1"):
        seconds = f"{float(last[name][1]):.1f}"
        assert drawings.race().count(seconds) >= 2 and int(last[name][2]) > 3_000_000


def parts(table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keys of hosts and path, each with its section."""
    for section in ("path", "sender", "receiver"):
        yield from ((f"{section}.{key}", value) for key, value in table.get(section, {}).items())


def test_a_claim_opens_in_the_playground_as_it_is_or_says_what_is_not_so_there():
    """Of every claim: each key of its scenario is in the link, or said to be left out, or there is no link."""
    linked = []
    for claim in gallery.CLAIMS:
        link = gallery._playground(claim)
        if not link:
            continue
        linked.append(claim.id)
        scenario = tomllib.loads((ROOT / "gallery" / f"{claim.id}.toml").read_text(encoding="utf-8"))
        address, said = html.unescape(link.split('"')[3]), link.rpartition("\n\n")[2]
        opened = {key: value for key, [value] in parse_qs(urlsplit(address).fragment).items()}
        given = dict(parts(scenario)) | {key: scenario[key] for key in ("duration", "kernel") if key in scenario}
        given["warmup"] = scenario.get("warmup", "0s")
        for key, value in given.items():
            there = opened.get(key.removeprefix("path."))
            if there is None or there not in (value if isinstance(value, list) else [value]):
                assert f"`{key}`" in said.partition("without")[2], (claim.id, key)
            elif isinstance(value, list):
                assert f"`{key}` = `{there}`" in said, (claim.id, key)
        wanted = Counter[tuple[str, str]]()
        for flow in scenario["flow"]:
            assert flow.keys() <= {"name", "algorithm", "start", "count", "workload"}, claim.id
            assert flow.get("workload", "bulk") == "bulk", claim.id
            names = flow["algorithm"] if isinstance(flow["algorithm"], list) else [flow["algorithm"]]
            wanted.update({(name, flow.get("start", "0s")): flow.get("count", 1) for name in names})
        flows = [one.partition("@") for one in opened["flows"].split(",")]
        assert Counter((name, start or "0s") for name, _, start in flows) == wanted and len(flows) <= 8, claim.id
        asked = {"title", "claim", "repeat", "seed", "samples", "sample_interval", "expect", "published"}
        assert scenario.keys() <= asked | {"duration", "warmup", "kernel", "path", "sender", "receiver", "flow"}
        assert not {"sender.costs", "receiver.costs", "sender.tcp_ecn", "receiver.tcp_ecn"} & given.keys(), claim.id
    assert {"bbr1-vs-cubic-share", "bbr1-shallow-buffer", "bufferbloat", "kernel-matters"} <= set(linked)
    # Flows with RTTs of their own, keys that change together, a loss that the page has not, and other applications.
    others = {
        "bbr-rtt-fairness",
        "ab-bias",
        "loss-1.5",
        "gro-window",
        "redis-cubic-vs-bbr",
        "pacing-timer",
        "cwnd-trace",
    }
    assert not others & set(linked)
