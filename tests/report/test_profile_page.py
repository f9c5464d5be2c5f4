"""The flame graph of a profile, in a browser."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import browser
from tcpknee.live import profile
from tcpknee.pages import profile_page

EVIL = '<img src=x onerror="alert(1)">'
STACKS = [
    ("app;main;send;tcp_sendmsg_[k]", 60, "TCP/IP"),
    ("app;main;send;tcp_ack_[k]", 20, "TCP/IP"),
    (EVIL, 20, "user"),
]

PROBE = """
const shown = () => boxes().map((g) => g.getAttribute('aria-label'));
const boxes = () => [...document.querySelectorAll('#flame g')];
const box = (name) => boxes().find((g) => g.getAttribute('aria-label').startsWith(name));
const width = (name) => Number(box(name).querySelector('rect').getAttribute('width'));
const told = { all: shown(), whole: width('all'), main: width('main') };
told.ink = box('tcp_ack').querySelector('rect').getAttribute('fill');
told.pictures = document.querySelectorAll('#flame img').length;
box('tcp_ack').dispatchEvent(new MouseEvent('click', { bubbles: true }));
told.zoomed = width('tcp_ack');
told.narrowed = shown();
box('all').dispatchEvent(new MouseEvent('click', { bubbles: true }));
told.back = shown();
const search = document.getElementById('search');
search.elements.wanted.value = 'SENDMSG';
search.dispatchEvent(new Event('input', { bubbles: true }));
told.matched = document.getElementById('matched').textContent;
told.found = document.querySelectorAll('#flame rect.found').length;
const said = document.createElement('pre');
said.id = 'probe';
said.textContent = JSON.stringify(told);
document.body.append(said);
"""


def taken(folder: Path, stacks: list[tuple[str, int, str]]) -> profile.Profile:
    """A profile with these stacks."""
    found = profile.take(folder, seconds=0.0, chosen=[])
    rows = [{"cell": 0, "rep": 0, "stack": stack, "samples": count, "class": kind} for stack, count, kind in stacks]
    pq.write_table(pa.Table.from_pylist(rows), folder / "stacks.parquet")
    (folder / "profile.json").write_text(json.dumps({**found.about, "seconds": 1.0}))
    return profile.read(folder)


def probed(tmp_path: Path, page: str) -> dict[str, object]:
    file = tmp_path / "page.html"
    file.write_text(browser.probed(page, PROBE))
    document, console, said = browser.opened(file, seconds=3)
    assert not console, console
    found = re.search(r'<pre id="probe">(.*?)</pre>', document, re.DOTALL)
    assert found, said
    told: dict[str, object] = json.loads(html.unescape(found[1]))
    return told


@browser.needed
def test_boxes_are_as_wide_as_their_share_and_a_click_widens_one(tmp_path: Path) -> None:
    told = probed(tmp_path, profile_page.page(taken(tmp_path / "p", STACKS)))
    assert told["main"] == pytest.approx(0.8 * told["whole"], rel=0.01)  # type: ignore[operator]
    assert told["zoomed"] == told["whole"]
    # Those that it was called by stay; what stood beside it goes.
    assert len(told["narrowed"]) == 5 and len(told["all"]) == len(told["back"]) == 7  # type: ignore[arg-type]
    assert (told["matched"], told["found"]) == ("60.0 % of the samples", 1)
    assert "TCP/IP" in str(told["all"])


@browser.needed
def test_a_hostile_name_is_a_label_and_no_element(tmp_path: Path) -> None:
    told = probed(tmp_path, profile_page.page(taken(tmp_path / "p", STACKS)))
    assert told["pictures"] == 0
    assert any(label.startswith(EVIL) for label in told["all"])  # type: ignore[attr-defined]


@browser.needed
def test_beside_another_profile_more_is_red_and_less_is_blue(tmp_path: Path) -> None:
    more = [("app;main;send;tcp_sendmsg_[k]", 60, "TCP/IP"), ("app;main;send;tcp_ack_[k]", 40, "TCP/IP")]
    less = [("app;main;send;tcp_sendmsg_[k]", 60, "TCP/IP"), ("app;main;send;tcp_ack_[k]", 5, "TCP/IP")]
    now, other = taken(tmp_path / "now", more), taken(tmp_path / "other", less)
    red = probed(tmp_path, profile_page.page(now, other))
    assert str(red["ink"]).startswith("hsl(8 ") and "the other" in str(red["all"])
    blue = probed(tmp_path, profile_page.page(other, now))
    assert str(blue["ink"]).startswith("hsl(215 ")
