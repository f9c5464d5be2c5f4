"""What the site draws is what was measured, and its stories quote the stored verdicts."""

from __future__ import annotations

import html
import math
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


OURS = re.compile(r"\d[\d.]*(?: ?(?:%|×|ms|[kMG]bit/s|/s|times)| of CUBIC)")
"""A result in prose: a number with what it is of."""


def test_the_stories_quote_verdicts_and_have_no_number_of_ours_in_prose():
    told = (ROOT / "site" / "stories.md").read_text(encoding="utf-8")
    assert len(gallery.NUMBER.findall(told)) > 15
    # What stands in prose is of a set-up or of a source: its sentence says so, and the number stands in the claim.
    stated = {"5 Gbit/s", "100 ms", "1.5 %", "10.5 Mbit/s", "200 Mbit/s"}
    assert set(OURS.findall(gallery.NUMBER.sub("", told))) == stated
    claim = gallery.BY_ID["loss-1.5"]
    published = gallery._claim(claim, verdicts.results()["loss-1.5"], "")
    assert "10.5Mbit/s" in published and "333Mbit/s" in published
    index = gallery.index()
    assert not gallery.NUMBER.search(index) and not gallery.DRAWN.search(index)


def test_the_tally_of_the_gallery_is_that_of_the_verdicts():
    index = gallery.index()
    [(all_, every, none)] = re.findall(r"Of (\d+) claims, (\d+) are reproduced in every way .+, (\d+) in none", index)
    results = verdicts.results().values()
    assert int(all_) == len(results)
    assert int(every) == sum(bool(ways) and all(one["verdict"] == "reproduced" for one in ways) for ways in results)
    assert int(none) == sum(bool(ways) and all(one["verdict"] != "reproduced" for one in ways) for ways in results)
    ours = dict(verdicts.results()["ab-bias"][0]["ours"])
    assert ours["10 % treated"].split(" ")[0] in index


def test_a_drawing_of_a_claim_says_of_which_way_it_is():
    for name, results in verdicts.results().items():
        drawn = gallery._drawing(name, results)
        assert not drawn or f"Drawn: {verdicts.form(results[0])}." in drawn, name


def test_every_family_has_its_colour_in_the_style_sheet():
    styles = drawings.styles()
    assert all(ink in styles for ink in palette.COLOURS[: len(palette.FAMILIES)])


def test_the_picture_of_the_readme_has_the_colours_of_all_figures():
    """It is drawn by hand, and kept: the palette may have moved since."""
    drawn = (ROOT / "docs" / "pictures" / "loss.svg").read_text(encoding="utf-8").upper()
    greys = {"#1C1F23", "#5B626B", "#B4BAC1", "#E4E7EA"}
    inks = {palette.colour(palette.KNOWN[name]).upper() for name in ("cubic", "reno", "bbr1", "bbr3")}
    assert set(re.findall("#[0-9A-F]{6}", drawn)) - greys == inks


def test_the_race_says_what_was_measured():
    """What stands beside its lines, and what screen readers hear, are the last rows of the file, of each run."""
    lines = (ROOT / "site" / "race.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith(
        "# tools/race.py: knee shell --rate 30Mbit/s --rtt 60ms --loss 1%, 3000000 bytes, Linux "
    )
    last = {tuple(row.split(",")[:2]): row.split(",")[2:] for row in lines[2:]}
    assert {key: int(got) > 3_000_000 for key, (_, got) in last.items()} == {
        (name, run): True for name in ("cubic", "bbr1") for run in "12"
    }
    drawn = drawings.race()
    told = []
    for name, label in (("cubic", "CUBIC"), ("bbr1", "BBR")):
        took = sorted(float(last[name, run][0]) for run in "12")
        told.append(f"{label}: {' and '.join(dict.fromkeys(f'{one:.1f}' for one in took))} s")
        assert f">{told[-1]}</text>" in drawn
    assert f'aria-label="A download of 3 MB, twice each. {told[0]}. {told[1]}."' in drawn
    assert drawn.count('class="line"') == drawn.count("<circle") == 4


def test_the_simulator_beside_a_kernel_is_drawn_where_it_is_and_said_with_its_worst():
    drawn = drawings.beside()
    panels = drawn.split("<svg")[1:]
    compared = reference.compared("linux-6.12.csv")
    for metric, panel in zip(("goodput_bits_per_sec", "srtt_us_p50"), panels, strict=True):
        cells = [one for one in compared if one.metric == metric]
        dots = [
            (float(x), float(y)) for x, y in re.findall(r'<circle class="\S+ dot" cx="([\d.]+)" cy="([\d.]+)"', panel)
        ]
        assert len(dots) == len(cells)
        # A logarithmic axis: what lies off the line by a factor lies off it by as many pixels, at the ends too.
        apart = [math.log(one.sim / one.kernel) for one in cells]
        # The line itself: from the lower left corner to the upper right one.
        ends = re.search(r'<path class="rule" d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"', panel)
        assert ends
        left, bottom, right, top = map(float, ends.groups())
        off = [(bottom - y) / (bottom - top) - (x - left) / (right - left) for x, y in dots]
        values = [side for one in cells for side in (one.sim, one.kernel)]
        wide = math.log(max(values) * 1.1 / (min(values) / 1.1))
        assert off == pytest.approx([one / wide for one in apart], abs=0.002)
        worst = max(100 * abs(one.sim / one.kernel - 1) for one in cells)
        said = f"{sum(one.ok for one in cells)} of {len(cells)} cells within their bounds."
        assert f"<p>{said}" in panel and f" {worst:.0f} % at worst.</p>" in panel and said in panel.split(">")[0]


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
