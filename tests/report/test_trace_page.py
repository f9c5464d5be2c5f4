"""The page of a trace: what the terminal prints, and the figure."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import traces
from tcpknee.cli import report
from tcpknee.cli import trace as verb
from tcpknee.errors import UsageError
from tcpknee.live import trace
from tcpknee.pages import connections, trace_page, trace_text


class Cells(HTMLParser):
    """Rows of the page's table, its command, and all of its words."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.words: list[str] = []
        self.command = ""
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data
        elif "pre" in self._open:
            self.command += data


def read(html: str) -> Cells:
    found = Cells()
    found.feed(html)
    return found


def taken(tmp_path: Path, **options: Any) -> trace.Trace:
    return trace.read(traces.write(tmp_path / "trace", **options))


@pytest.mark.parametrize("connections", [1, 2, 50])
def test_the_page_has_what_the_terminal_prints(connections, tmp_path):
    found = taken(tmp_path, connections=connections)
    page = read(trace_page.page(found))
    head, *rows = page.rows
    assert head == list(trace_text.HEADS)
    assert len(rows) == connections
    printed = list(verb._connections(found))
    table = [re.split(r"\s{2,}", line) for line in printed[2 : 2 + min(connections, verb._SHOWN)]]
    assert rows[: len(table)] == table
    # What was counted and what it cost, line by line.
    counted, gaps, drops, *costs = printed[printed.index("") + 1 :]
    assert all(line in page.words for line in (counted, gaps, drops))
    assert drops.startswith("Dropped by the local qdisc tbf of eth0: 6,253 packets, of all connections; ")
    assert [line.split(": ")[0] for line in costs] == [
        "Cost in the kernel",
        "Left out by the kernel",
        "Cost of writing",
    ]
    assert all(word in page.words for line in costs for word in line.split(": ", 1))
    assert page.command == "knee trace --port 443"


def test_the_connections_of_the_figure_have_their_colour_in_the_table(tmp_path):
    page = trace_page.page(taken(tmp_path, connections=50))
    assert page.count('class="swatch"') == connections.SHOWN_AT_MOST


def test_a_page_tells_at_most_200_connections_and_says_so(tmp_path):
    page = trace_page.page(taken(tmp_path, connections=203, length_sec=1.0))
    assert len(read(page).rows) == 1 + trace_page.TOLD_AT_MOST == 201
    assert "3 more, which sent less, stand in connections.parquet." in page


def test_the_report_of_a_trace_is_its_page(tmp_path):
    found = taken(tmp_path)
    report.write(found.folder)
    assert (found.folder / "trace.html").read_text(encoding="utf-8") == trace_page.page(found)
    with pytest.raises(UsageError, match=r"expected \.html, \.pdf, \.svg or \.png"):
        trace_page.save(found, tmp_path / "trace.gif")


def test_a_trace_without_segments_has_nothing_to_draw(tmp_path):
    with pytest.raises(UsageError, match="no segment was traced"):
        trace_page.page(taken(tmp_path, connections=0))


def test_no_greatest_value_is_lost_on_the_way_to_the_page(tmp_path):
    found = taken(tmp_path)
    payload = json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', trace_page.page(found))[1]  # type: ignore[index]
    )
    blocks = payload["conditions"][0]["sets"]["cwnd"]
    for row, block in zip(found.summary, blocks, strict=True):
        low, step, _ = block["v"]["v"]
        assert low + step * 65_535 == pytest.approx(row["snd_cwnd_max"], rel=1e-4)
